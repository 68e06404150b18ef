//! The columns of `series.parquet`.
//!
//! The first nine are lading's capture schema version 2, so its tools read
//! ours; `phase` and `moment_ns` are added behind them.

/// The run's name: 32 hexadecimal digits.
pub const RUN_ID: &str = "run_id";
/// Wall clock of the beat: milliseconds since 1970.
pub const TIME: &str = "time";
/// Number of the beat, from 0.
pub const FETCH_INDEX: &str = "fetch_index";
/// Name of the metric.
pub const METRIC_NAME: &str = "metric_name";
/// `counter`, `gauge` or `histogram`.
pub const METRIC_KIND: &str = "metric_kind";
/// The value in a line, be it a whole number or not.
pub const VALUE: &str = "value";
/// The value, if it is a whole number.
pub const VALUE_INT: &str = "value_int";
/// The value, if it is any other number.
pub const VALUE_FLOAT: &str = "value_float";
/// Labels, as a map from text to text.
pub const LABELS: &str = "labels";
/// The value, if it is a histogram: HdrHistogram V2.
pub const VALUE_HISTOGRAM: &str = "value_histogram";
/// The phase in which the beat was taken.
pub const PHASE: &str = "phase";
/// Monotonic clock of the beat, in nanoseconds.
pub const MOMENT_NS: &str = "moment_ns";

/// The schema in Parquet's own notation.
pub const MESSAGE_TYPE: &str = "
message capture {
    REQUIRED BYTE_ARRAY run_id (UTF8);
    REQUIRED INT64 time (TIMESTAMP(MILLIS,true));
    REQUIRED INT64 fetch_index (INTEGER(64,false));
    REQUIRED BYTE_ARRAY metric_name (UTF8);
    REQUIRED BYTE_ARRAY metric_kind (UTF8);
    OPTIONAL INT64 value_int (INTEGER(64,false));
    OPTIONAL DOUBLE value_float;
    REQUIRED GROUP labels (MAP) {
        REPEATED GROUP entries {
            REQUIRED BYTE_ARRAY key (UTF8);
            REQUIRED BYTE_ARRAY value (UTF8);
        }
    }
    OPTIONAL BYTE_ARRAY value_histogram;
    REQUIRED BYTE_ARRAY phase (UTF8);
    REQUIRED INT64 moment_ns (INTEGER(64,false));
}";
