//! Traces for Datadog's agent, Prometheus remote write and flow records.

use serde::{Deserialize, Serialize};

use super::between::Between;

/// Maximum number of contexts of traces.
pub const TRACE_AGENT_CONTEXTS_MAX: u32 = 1_000_000;

/// Maximum number of time series.
pub const REMOTE_WRITE_SERIES_MAX: u32 = 1_000_000;

/// Traces as Datadog's agent accepts them at `/v0.4/traces`.
///
/// A context is a service with its operation, resource and type; exactly as
/// many as drawn from `contexts` are sent, each before any is sent again.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct TraceAgentPlan {
    /// Encoding of traces.
    pub encoding: TraceEncoding,
    /// Distinct contexts.
    pub contexts: Between<u32>,
    /// Spans of a trace.
    pub spans_per_trace: Between<u8>,
    /// Texts of a span.
    pub tags_per_span: Between<u8>,
    /// Numbers of a span.
    pub metrics_per_span: Between<u8>,
    /// Probability that a span fails, from 0 to 1.
    pub error_rate: f64,
    /// Characters of a service's name.
    pub service_name_length: Between<u8>,
    /// Characters of an operation's name.
    pub operation_name_length: Between<u8>,
    /// Characters of a resource's name.
    pub resource_name_length: Between<u8>,
    /// Characters of a span's type.
    pub span_type_length: Between<u8>,
    /// Characters of a tag's key.
    pub tag_key_length: Between<u8>,
    /// Characters of a tag's value.
    pub tag_value_length: Between<u8>,
    /// Characters of a number's key.
    pub metric_key_length: Between<u8>,
}

/// Encoding of traces.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceEncoding {
    /// `MessagePack`
    #[default]
    Msgpack,
    /// JSON
    Json,
}

impl Default for TraceAgentPlan {
    fn default() -> Self {
        let length = Between::new(0, 128);
        Self {
            encoding: TraceEncoding::Msgpack,
            contexts: Between::new(5000, 10_000),
            spans_per_trace: Between::new(1, 50),
            tags_per_span: Between::new(2, 20),
            metrics_per_span: Between::new(0, 5),
            error_rate: 0.01,
            service_name_length: length,
            operation_name_length: length,
            resource_name_length: length,
            span_type_length: length,
            tag_key_length: length,
            tag_value_length: length,
            metric_key_length: length,
        }
    }
}

impl TraceAgentPlan {
    /// Number of distinct contexts that names of these lengths allow.
    #[must_use]
    pub fn contexts_possible(&self) -> u64 {
        let longest = self
            .service_name_length
            .high
            .max(self.operation_name_length.high)
            .max(self.resource_name_length.high);
        match longest.checked_sub(1) {
            Some(more) => 36_u64.saturating_pow(u32::from(more)).saturating_mul(26),
            None => 1,
        }
    }
}

/// Samples as Prometheus writes them to a remote store: one compressed request
/// a block.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct RemoteWritePlan {
    /// Distinct time series.
    pub series: Between<u32>,
    /// Labels of a series beside its name, `job` and `instance`.
    pub labels_per_series: Between<u8>,
    /// Samples of a request, each of another series.
    pub samples_per_request: Between<u32>,
    /// When the first samples were taken.
    #[serde(default)]
    pub times: EventTimes,
}

/// The time in the first event of a generator.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EventTimes {
    /// At a time that follows from the seed, as all else does.
    #[default]
    Seed,
    /// When it was built, just before the run, and no later set before it was: for stores
    /// that take nothing that is older than what others send. Runs differ in their bytes
    /// then. Times run ahead where all series are sent more than 300 times a second.
    Now,
}

impl Default for RemoteWritePlan {
    fn default() -> Self {
        Self {
            series: Between::only(10_000),
            labels_per_series: Between::new(1, 8),
            samples_per_request: Between::new(500, 2000),
            times: EventTimes::default(),
        }
    }
}

/// Flow records as routers export them: one packet a block.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct NetflowPlan {
    /// The protocol.
    pub version: NetflowVersion,
    /// Flow records of a packet.
    pub flows_per_packet: Between<u8>,
    /// Number of the first worker's exporter: engine, source or observation domain. Each next
    /// worker has the next number.
    pub exporter: u8,
    /// Packets from one with a template to the next; version 5 has none.
    pub template_every: u16,
}

/// A protocol for flow records.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NetflowVersion {
    /// `NetFlow` version 5
    #[default]
    V5,
    /// `NetFlow` version 9 (RFC 3954)
    V9,
    /// IPFIX (RFC 7011)
    Ipfix,
}

impl Default for NetflowPlan {
    fn default() -> Self {
        Self {
            version: NetflowVersion::V5,
            flows_per_packet: Between::new(1, 30),
            exporter: 0,
            template_every: 20,
        }
    }
}
