//! What is told to others while a load goes on: counts and times to stats sinks,
//! and traces.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use stillwell_units::{Nanos, RunId};

/// What is told to others while a load goes on. The default tells nobody.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct TelemetryPlan {
    /// Tells the series and traces of this load from those of another.
    pub run: RunId,
    /// Labels that all series carry, beside our own.
    pub labels: Vec<(String, String)>,
    /// Who is told counts and times.
    pub sinks: Vec<StatsSinkPlan>,
    /// How often they are told; at the end they are in any case.
    pub flush_every: Nanos,
    /// The page to scrape, if there is one.
    pub page: Option<StatsPagePlan>,
    /// How requests are traced, if they are.
    pub trace: Option<TracePlan>,
    /// Which headers of answers are told, to whoever conducts the load.
    pub headers: Vec<AnswerHeadersPlan>,
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
        }
    }
}

impl TelemetryPlan {
    /// How often sinks are told where nobody says.
    pub const FLUSH_EVERY: Nanos = Nanos::from_secs(5);

    /// Returns true if anybody is told anything besides the target itself.
    #[must_use]
    pub fn has_exporters(&self) -> bool {
        let exports = self.trace.as_ref().is_some_and(|it| it.export.is_some());
        !self.sinks.is_empty() || self.page.is_some() || exports
    }
}

/// Headers of answers that are told as they arrive.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct AnswerHeadersPlan {
    /// Their names in lower case; none for all headers.
    pub names: Vec<String>,
    /// True if answers with a status from 200 to 299 are passed over.
    pub passes_over_2xx: bool,
}

/// Somebody who is told counts and times.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct StatsSinkPlan {
    /// As it was asked for; names it in what is said about it.
    pub name: String,
    /// What is spoken.
    pub protocol: StatsProtocol,
    /// With whom.
    pub receiver: ReceiverPlan,
    /// What stands before every name, without the dot behind it; only of statsd.
    pub prefix: String,
}

/// What is spoken with a stats sink.
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

/// Where something is told.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ReceiverPlan {
    /// `host:port` to dial.
    pub address: String,
    /// The host that its certificate is for, where TLS is spoken with it.
    pub tls_host: Option<String>,
    /// What stands in `Host` or `:authority`; of HTTP only.
    pub authority: String,
    /// Path and query; of HTTP only.
    pub path: String,
}

/// A page of counts and times that others scrape.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct StatsPagePlan {
    /// Where it is to be had.
    pub address: SocketAddr,
    /// How long it stays at most once the load is over, unless somebody has seen
    /// the last state earlier.
    pub linger: Nanos,
}

/// How requests are traced.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct TracePlan {
    /// How a request says which trace it belongs to.
    pub headers: TraceHeaders,
    /// The share of requests, from 0 to 1, whose spans are sampled. All others
    /// say that they are not.
    pub sample: f64,
    /// Who gets the spans, if anybody.
    pub export: Option<SpanSinkPlan>,
}

/// How a request says which trace it belongs to.
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

/// Who gets spans.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct SpanSinkPlan {
    /// As it was asked for; names it in what is said about it.
    pub name: String,
    /// What is spoken.
    pub protocol: SpanProtocol,
    /// With whom.
    pub receiver: ReceiverPlan,
}

/// What is spoken with whoever gets spans.
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
