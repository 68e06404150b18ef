//! OpenTelemetry logs, metrics and traces in protobuf.

use serde::{Deserialize, Serialize};

use super::between::Between;

/// Maximum number of contexts.
pub const OTLP_CONTEXTS_MAX: u32 = 1_000_000;

/// Resources, their scopes, and the records or metrics of scopes.
///
/// A context is a metric's resource, scope, name and attributes, or a log
/// record's resource, scope and attributes. There are as many as drawn from
/// `contexts`, in as many resources as they need.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct OtlpContexts {
    /// Distinct contexts.
    pub contexts: Between<u32>,
    /// Attributes of a resource.
    pub attributes_per_resource: Between<u8>,
    /// Scopes of a resource.
    pub scopes_per_resource: Between<u8>,
    /// Attributes of a scope.
    pub attributes_per_scope: Between<u8>,
    /// Log records or metrics of a scope.
    pub items_per_scope: Between<u8>,
    /// Attributes of a log record or metric.
    pub attributes_per_item: Between<u8>,
}

impl Default for OtlpContexts {
    fn default() -> Self {
        Self {
            contexts: Between::only(100),
            attributes_per_resource: Between::new(1, 20),
            scopes_per_resource: Between::new(1, 20),
            attributes_per_scope: Between::only(0),
            items_per_scope: Between::new(1, 20),
            attributes_per_item: Between::new(0, 10),
        }
    }
}

/// Shape of log records.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct OtlpLogsPlan {
    /// Resources, scopes and attributes of records.
    pub contexts: OtlpContexts,
    /// Weight of each severity.
    pub severity_weights: OtlpSeverities,
    /// Distinct traces that records belong to; 0 for none.
    pub trace_cardinality: Between<u32>,
    /// Bytes of a record's text.
    pub body_size: Between<u16>,
}

/// Relative weight of each severity.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct OtlpSeverities {
    /// TRACE
    pub trace: u8,
    /// DEBUG
    pub debug: u8,
    /// INFO
    pub info: u8,
    /// WARN
    pub warn: u8,
    /// ERROR
    pub error: u8,
    /// FATAL
    pub fatal: u8,
}

impl Default for OtlpLogsPlan {
    fn default() -> Self {
        Self {
            contexts: OtlpContexts::default(),
            severity_weights: OtlpSeverities {
                trace: 5,
                debug: 10,
                info: 50,
                warn: 20,
                error: 10,
                fatal: 5,
            },
            trace_cardinality: Between::only(0),
            body_size: Between::new(1, 16),
        }
    }
}

/// Shape of metrics. Each has one data point.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct OtlpMetricsPlan {
    /// Resources, scopes and attributes of metrics.
    pub contexts: OtlpContexts,
    /// Weight of each kind.
    pub metric_weights: OtlpMetricKinds,
    /// The largest counts in histograms.
    pub histogram_count_limits: OtlpHistogramLimits,
}

/// Relative weight of each kind of metric.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct OtlpMetricKinds {
    /// Gauges.
    pub gauge: u8,
    /// Sums since the last time.
    pub sum_delta: u8,
    /// Sums since the beginning.
    pub sum_cumulative: u8,
    /// Histograms since the last time.
    pub histogram_delta: u8,
    /// Histograms since the beginning.
    pub histogram_cumulative: u8,
    /// Exponential histograms since the last time.
    pub exp_histogram_delta: u8,
    /// Exponential histograms since the beginning.
    pub exp_histogram_cumulative: u8,
    /// Summaries.
    pub summary: u8,
}

impl Default for OtlpMetricKinds {
    fn default() -> Self {
        Self {
            gauge: 30,
            sum_delta: 15,
            sum_cumulative: 15,
            histogram_delta: 10,
            histogram_cumulative: 10,
            exp_histogram_delta: 5,
            exp_histogram_cumulative: 5,
            summary: 10,
        }
    }
}

/// The largest counts in histograms.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct OtlpHistogramLimits {
    /// In one bucket.
    pub bucket: u64,
    /// In the bucket around zero of an exponential histogram.
    pub zero: u64,
    /// In all buckets together.
    pub total: u64,
}

impl Default for OtlpHistogramLimits {
    fn default() -> Self {
        Self {
            bucket: u64::from(u32::MAX),
            zero: u64::from(u32::MAX),
            total: i64::MAX.cast_unsigned(),
        }
    }
}
