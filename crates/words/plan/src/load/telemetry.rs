//! Export during a load: counts and times to stats sinks,
//! and traces.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use stillwell_metric::LoadCounter;
use stillwell_units::{Nanos, RunId};

/// Export during a load. The default exports nothing.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct TelemetryPlan {
    /// Identifies the series and traces of this load.
    pub run: RunId,
    /// Labels that all series carry, beside our own.
    pub labels: Vec<(String, String)>,
    /// Receivers of counts and times.
    pub sinks: Vec<StatsSinkPlan>,
    /// Export interval; there is always a last export at the end.
    pub flush_every: Nanos,
    /// The page to scrape, if there is one.
    pub page: Option<StatsPagePlan>,
    /// Tracing of requests, if any.
    pub trace: Option<TracePlan>,
    /// Headers of answers that are reported to the caller of the load.
    pub headers: Vec<AnswerHeadersPlan>,
    /// True if the end of each answer over HTTP/1.1 is reported to the caller of the load.
    #[serde(default)]
    pub completions: bool,
    /// Names that statsd's receivers get, if not Stillwell's.
    #[serde(default)]
    pub statsd_names: Option<StatsdNamesPlan>,
}

impl Default for TelemetryPlan {
    fn default() -> Self {
        Self {
            run: RunId::from_bytes([0; 16]),
            labels: Vec::new(),
            sinks: Vec::new(),
            flush_every: Self::FLUSH_EVERY,
            page: None,
            trace: None,
            headers: Vec::new(),
            completions: false,
            statsd_names: None,
        }
    }
}

impl TelemetryPlan {
    /// Default interval of exports.
    pub const FLUSH_EVERY: Nanos = Nanos::from_secs(5);

    /// Returns true if anything is exported.
    #[must_use]
    pub fn has_exporters(&self) -> bool {
        let exports = self
            .trace
            .as_ref()
            .is_some_and(|trace| trace.export.is_some());
        !self.sinks.is_empty() || self.page.is_some() || exports
    }
}

/// Headers of answers that are reported as they arrive.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct AnswerHeadersPlan {
    /// Their names in lower case; none for all headers.
    pub names: Vec<String>,
    /// True if answers with a status from 200 to 299 are skipped.
    pub passes_over_2xx: bool,
}

/// A receiver of counts and times.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct StatsSinkPlan {
    /// The text of its flag; its name in messages.
    pub name: String,
    /// The protocol.
    pub protocol: StatsProtocol,
    /// With whom.
    pub receiver: ReceiverPlan,
    /// Prefix of every name, without the dot behind it; statsd only.
    pub prefix: String,
}

/// Names of counts and times for receivers of statsd, in place of Stillwell's. Times are sent
/// as a line for each of them, not as quantiles.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct StatsdNamesPlan {
    /// The part of each name before the number of the worker: `cluster` for `cluster.0.NAME`.
    pub before_worker: String,
    /// The key of the tag that holds that number, where a receiver takes tags.
    pub worker_tag: String,
    /// The counters of each worker.
    pub counters: Vec<(LoadCounter, String)>,
    /// The times from sending a request to the end of its answer, by the name of the outcome.
    pub times: Vec<(String, String)>,
}

/// The protocol of a stats sink.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StatsProtocol {
    /// Lines of statsd in datagrams, names with dots.
    Statsd,
    /// The same over TCP.
    StatsdTcp,
    /// Lines of statsd in datagrams, with tags.
    Dogstatsd,
    /// OpenTelemetry's metrics in protobuf over HTTP.
    OtlpHttp,
    /// The same by gRPC.
    OtlpGrpc,
    /// Prometheus' remote write, version 1.
    RemoteWrite,
}

/// Address of a receiver.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ReceiverPlan {
    /// `host:port` to dial.
    pub address: String,
    /// The host that its certificate is for, where TLS is spoken with it.
    pub tls_host: Option<String>,
    /// Value of `Host` or `:authority`; HTTP only.
    pub authority: String,
    /// Path and query; of HTTP only.
    pub path: String,
}

/// A page of counts and times that others scrape.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct StatsPagePlan {
    /// Its address.
    pub address: SocketAddr,
    /// Maximum time for which it stays after the load, unless a client has read
    /// the last state earlier.
    pub linger: Nanos,
}

/// Tracing of requests.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct TracePlan {
    /// Headers that carry the trace of a request.
    pub headers: TraceHeaders,
    /// The share of requests, from 0 to 1, whose spans are sampled. All others
    /// say that they are not.
    pub sample: f64,
    /// Receiver of the spans, if any.
    pub export: Option<SpanSinkPlan>,
}

/// Headers that carry the trace of a request.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceHeaders {
    /// `traceparent` of W3C Trace Context.
    W3c,
    /// B3 in one header.
    B3,
    /// B3 in several headers.
    B3Multi,
}

impl TraceHeaders {
    /// The headers, in the order in which they are sent.
    #[must_use]
    pub const fn names(self) -> &'static [&'static str] {
        match self {
            Self::W3c => &["traceparent"],
            Self::B3 => &["b3"],
            Self::B3Multi => &["x-b3-traceid", "x-b3-spanid", "x-b3-sampled"],
        }
    }
}

/// Receiver of spans.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct SpanSinkPlan {
    /// The text of its flag; its name in messages.
    pub name: String,
    /// The protocol.
    pub protocol: SpanProtocol,
    /// With whom.
    pub receiver: ReceiverPlan,
}

/// The protocol of a receiver of spans.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SpanProtocol {
    /// OpenTelemetry's traces in protobuf over HTTP.
    OtlpHttp,
    /// The same by gRPC.
    OtlpGrpc,
    /// Zipkin's JSON, version 2, over HTTP.
    Zipkin,
}
