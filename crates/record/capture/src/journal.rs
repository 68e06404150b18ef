//! One row of a capture, and its line in the journal.
//!
//! A line is an object in the shape of lading's JSON lines: reserved keys first,
//! labels flattened beside them, `value` a number. Ours adds `phase`,
//! `moment_ns` and, for histograms, `value_histogram` as hexadecimal digits of
//! the HdrHistogram V2 encoding. A label with a reserved key, such as `phase`, is
//! written as `label.phase`.

use std::io::{self, Write};

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use serde_json::{Map, Number, Value as Json};
use stillwell_metric::{Beat, Kind, Labels, Sample, SeriesName, Value};
use stillwell_plan::Phase;
use stillwell_units::Moment;

use crate::schema;

/// One value of one series at one beat.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The beat.
    pub beat: Beat,
    /// The phase in which the beat was taken.
    pub phase: Phase,
    /// The series.
    pub name: SeriesName,
    /// The kind of its values.
    pub kind: Kind,
    /// Its labels.
    pub labels: Labels,
    /// The value.
    pub value: Value,
}

impl Row {
    pub(crate) fn new(beat: &Beat, phase: Phase, sample: &Sample) -> Self {
        Self {
            beat: *beat,
            phase,
            name: sample.name.clone(),
            kind: sample.kind,
            labels: sample.labels.clone(),
            value: sample.value.clone(),
        }
    }
}

const VALUE: &str = schema::VALUE;
const RESERVED: [&str; 9] = [
    schema::RUN_ID,
    schema::TIME,
    schema::FETCH_INDEX,
    schema::METRIC_NAME,
    schema::METRIC_KIND,
    VALUE,
    schema::PHASE,
    schema::MOMENT_NS,
    schema::VALUE_HISTOGRAM,
];

/// Prefix of the key of a label that is reserved, with or without this prefix already.
const ESCAPE: &str = "label.";

fn needs_escape(key: &str) -> bool {
    RESERVED.contains(&key.trim_start_matches(ESCAPE))
}

/// Returns the key that the label `key` has in a line.
fn escaped(key: &str) -> String {
    match needs_escape(key) {
        true => format!("{ESCAPE}{key}"),
        false => key.to_owned(),
    }
}

/// Returns the label that has `key` in a line.
fn unescaped(key: &str) -> &str {
    let label = key.strip_prefix(ESCAPE);
    label.filter(|label| needs_escape(label)).unwrap_or(key)
}

/// Writes the line of `row`.
pub(crate) fn write(out: &mut impl Write, run: &str, row: &Row) -> io::Result<()> {
    let mut line = Map::new();
    let mut set = |key: &str, value: Json| line.insert(key.to_owned(), value);
    set(schema::RUN_ID, run.into());
    set(schema::TIME, row.beat.wall_millis.into());
    set(schema::FETCH_INDEX, row.beat.index.into());
    set(schema::METRIC_NAME, row.name.as_str().into());
    set(schema::METRIC_KIND, row.kind.name().into());
    set(schema::PHASE, row.phase.name().into());
    set(schema::MOMENT_NS, row.beat.moment.as_u64().into());
    match &row.value {
        Value::Int(value) => set(VALUE, (*value).into()),
        // JSON has no infinity and no NaN: those are written as text.
        Value::Float(value) => set(
            VALUE,
            Number::from_f64(*value).map_or_else(|| value.to_string().into(), Json::Number),
        ),
        Value::Histogram(bytes) => {
            set(schema::VALUE_HISTOGRAM, HEXLOWER.encode(bytes).into());
            set(VALUE, 0.0.into())
        }
    };
    for (key, value) in row.labels.iter() {
        line.insert(escaped(key), value.into());
    }
    serde_json::to_writer(&mut *out, &line)?;
    out.write_all(b"\n")
}

/// The row of a line; `None` if it is not one, such as a last line that was cut, be it within a character.
pub(crate) fn parse(line: &[u8]) -> Option<Row> {
    let Json::Object(line) = serde_json::from_slice(line).ok()? else {
        return None;
    };
    let number = |key: &str| line.get(key).and_then(Json::as_u64);
    let text = |key: &str| line.get(key).and_then(Json::as_str);
    let value = match (text(schema::VALUE_HISTOGRAM), line.get(VALUE)?) {
        (Some(digits), _) => Value::Histogram(HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).ok()?),
        (None, Json::Number(number)) => number
            .as_u64()
            .map(Value::Int)
            .or_else(|| number.as_f64().map(Value::Float))?,
        (None, Json::String(text)) => Value::Float(text.parse().ok()?),
        _ => return None,
    };
    Some(Row {
        beat: Beat {
            index: number(schema::FETCH_INDEX)?,
            moment: Moment::new(number(schema::MOMENT_NS)?),
            wall_millis: number(schema::TIME)?,
        },
        phase: Phase::from_name(text(schema::PHASE)?)?,
        name: SeriesName::recorded(text(schema::METRIC_NAME)?.to_owned()),
        kind: Kind::from_name(text(schema::METRIC_KIND)?)?,
        labels: line
            .iter()
            .filter(|(key, _)| !RESERVED.contains(&key.as_str()))
            .filter_map(|(key, value)| {
                Some((unescaped(key).to_owned(), value.as_str()?.to_owned()))
            })
            .collect(),
        value,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![
            any::<u64>().prop_map(Value::Int),
            any::<f64>()
                // -0.0 and whole floats come back as other kinds of the same number.
                .prop_filter("fractional", |v| v.fract() != 0.0 && !v.is_nan())
                .prop_map(Value::Float),
            Just(Value::Float(f64::INFINITY)),
            any::<Vec<u8>>().prop_map(Value::Histogram),
        ]
    }

    /// Keys of labels, reserved ones and escaped ones among them.
    fn key() -> impl Strategy<Value = String> {
        prop_oneof![
            "[a-z]{1,6}",
            "(label\\.){1,2}(phase|[a-z]{1,6})",
            prop::sample::select(&RESERVED[..]).prop_map(str::to_owned),
        ]
    }

    proptest! {
        /// For all rows: what is written reads back.
        #[test]
        fn lines_read_back(
            value in value(),
            name in "[a-z_/.]{1,20}",
            labels in prop::collection::vec((key(), ".{0,9}"), 0..4),
            index: u64,
            moment: u64,
        ) {
            let row = Row {
                beat: Beat { index, moment: Moment::new(moment), wall_millis: 7 },
                phase: Phase::Measure,
                name: SeriesName::recorded(name),
                kind: Kind::Gauge,
                labels: labels.into_iter().collect(),
                value,
            };
            let mut line = Vec::new();
            write(&mut line, "0a", &row).unwrap();
            prop_assert_eq!(parse(&line), Some(row));
        }

        /// For all texts: reading never panics, and a cut line is no row.
        #[test]
        fn any_text_is_read_without_panic(text in ".{0,200}") {
            let _row: Option<Row> = parse(text.as_bytes());
        }
    }

    #[test]
    fn labels_with_reserved_keys_are_kept_and_hide_nothing() {
        let labels = Labels::none().with("value", "9").with("id", "a");
        let sample = Sample {
            name: SeriesName::recorded("m".to_owned()),
            kind: Kind::Counter,
            labels: labels.with("phase", "b").with("label.phase", "c"),
            value: Value::Int(1),
        };
        let beat = Beat {
            index: 0,
            moment: Moment::new(1),
            wall_millis: 2,
        };
        let mut line = Vec::new();
        let row = Row::new(&beat, Phase::Warmup, &sample);
        write(&mut line, "0a", &row).unwrap();
        assert_eq!(parse(&line), Some(row));
        let text = String::from_utf8(line).unwrap();
        assert!(text.contains(r#""label.value":"9""#), "{text}");
    }

    #[test]
    fn a_line_that_was_cut_within_a_character_is_no_row() {
        assert_eq!(parse(b"{\"run_id\":\"\xc3"), None);
    }
}
