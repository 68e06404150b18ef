//! A load as it was typed: strings and options, not yet checked against each other.

use std::path::PathBuf;

use stillwell_plan::RateShape;
use stillwell_plan::load::{
    IdleStrategy, LoadProtocol, PredicatePlan, Reuse, SpanSinkPlan, StatsPagePlan, StatsSinkPlan,
    TraceHeaders, TunnelProtocol,
};
use stillwell_units::{Nanos, RunId, Seed};

use super::{Concurrency, Header, RequestSource};
use crate::MethodName;

/// A load as it was typed.
#[derive(Clone, Debug)]
pub struct LoadSpec {
    /// Targets, each `URL` or `WEIGHT*URL`.
    pub urls: Vec<String>,
    /// Rate of requests.
    pub rate: RateShape,
    /// Distribution of requests in time.
    pub shape: ShapeSpec,
    /// Length of the load, warm-up included.
    pub duration: Option<Nanos>,
    /// Number of requests after which the load ends.
    pub requests: Option<u64>,
    /// Length of the warm-up.
    pub warmup: Nanos,
    /// `true`: the rate waits for answers.
    pub closed_loop: bool,
    /// Predicates that end the load well.
    pub termination: Vec<PredicatePlan>,
    /// Predicates that end the load with a failure.
    pub failure: Vec<PredicatePlan>,
    /// Threads that send.
    pub concurrency: Concurrency,
    /// Numbers of the CPUs for these threads.
    pub cpus: Vec<u16>,
    /// Content of requests.
    pub request: RequestSpec,
    /// gRPC call.
    pub grpc: GrpcSpec,
    /// Opening and use of connections.
    pub connecting: ConnectingSpec,
    /// TLS settings for targets.
    pub tls: TlsSpec,
    /// The proxy through which targets are reached.
    pub tunnel: TunnelSpec,
    /// Counts and times that are exported while the load goes on.
    pub stats: StatsSpec,
    /// Tracing of requests.
    pub trace: TraceSpec,
    /// Seed of everything random.
    pub seed: Seed,
    /// Name of this load for those that receive its series and traces.
    pub run: RunId,
}

/// Distribution of requests in time; at most one field is given.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ShapeSpec {
    /// Requests that are sent at once.
    pub burst_size: Option<u32>,
    /// Largest delay of a request.
    pub jitter_uniform: Option<Nanos>,
    /// `true`: gaps are exponential.
    pub poisson: bool,
    /// Exponent of the Zipf distribution of gaps.
    pub zipf: Option<f64>,
}

/// Content of requests.
#[derive(Clone, Debug, Default)]
pub struct RequestSpec {
    /// Method of requests that name none.
    pub method: Option<String>,
    /// Headers of every request.
    pub headers: Vec<Header>,
    /// Body: text, `@FILE` or `payload:FORMAT:SIZE`.
    pub body: Option<String>,
    /// File of requests, one a line.
    pub requests_file: Option<PathBuf>,
    /// HTTP archive.
    pub har: Option<PathBuf>,
    /// Requests of a list.
    pub list: Option<RequestSource>,
}

/// gRPC call.
#[derive(Clone, Debug, Default)]
pub struct GrpcSpec {
    /// The method.
    pub method: Option<MethodName>,
    /// Message as JSON, or `@FILE` with it.
    pub json: Option<String>,
    /// Message in the text format of protocol buffers, or `@FILE` with it.
    pub text: Option<String>,
    /// File with a descriptor set.
    pub descriptors: Option<PathBuf>,
    /// Sides that stream, where nothing describes the method.
    pub streaming: Option<Streaming>,
    /// Time limit of a call.
    pub deadline: Option<Nanos>,
    /// Messages in each call.
    pub messages: Option<u64>,
    /// Time between two messages of a call.
    pub message_every: Option<Nanos>,
}

/// Sides of a gRPC call that send a stream of messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Streaming {
    /// Neither: one message each.
    None,
    /// The client.
    Client,
    /// The server.
    Server,
    /// Both.
    Both,
}

impl Streaming {
    /// Returns true if the client streams.
    #[must_use]
    pub const fn of_client(self) -> bool {
        matches!(self, Self::Client | Self::Both)
    }

    /// Returns true if the server streams.
    #[must_use]
    pub const fn of_server(self) -> bool {
        matches!(self, Self::Server | Self::Both)
    }
}

/// Opening and use of connections.
#[derive(Clone, Copy, Debug)]
pub struct ConnectingSpec {
    /// Connections over all workers.
    pub connections: u32,
    /// Protocol.
    pub protocol: LoadProtocol,
    /// Requests at once on each connection.
    pub streams: u32,
    /// Time limit of an answer.
    pub timeout: Nanos,
    /// Time limit of connecting.
    pub connect_timeout: Nanos,
    /// `true`: connections are opened when they are needed, not before the start.
    pub late: bool,
    /// Time over which they are opened one after the other.
    pub over: Option<Nanos>,
    /// Requests that one connection carries at most.
    pub requests_max: Option<u64>,
    /// Choice among several idle connections.
    pub reuse: Option<Reuse>,
    /// Way in which a worker waits for the next send.
    pub idle: Option<IdleStrategy>,
}

/// TLS settings for targets.
#[derive(Clone, Debug, Default)]
pub struct TlsSpec {
    /// `true`: any certificate is accepted.
    pub insecure: bool,
    /// Files with more authorities; `system` for those of the host.
    pub ca: Vec<PathBuf>,
    /// File with the certificate of this client.
    pub certificate: Option<PathBuf>,
    /// File with its key.
    pub key: Option<PathBuf>,
    /// Requested name.
    pub sni: Option<String>,
    /// `true`: no session is resumed.
    pub no_resumption: bool,
    /// Cipher suites that are offered.
    pub cipher_suites: Vec<String>,
}

/// The proxy through which targets are reached.
#[derive(Clone, Debug, Default)]
pub struct TunnelSpec {
    /// Its URL.
    pub uri: Option<String>,
    /// Protocol.
    pub protocol: Option<TunnelProtocol>,
    /// Headers of each `CONNECT`.
    pub headers: Vec<Header>,
    /// `true`: any certificate of it is accepted.
    pub insecure: bool,
    /// Files with authorities for its certificate; `system` for those of the host.
    pub ca: Vec<PathBuf>,
}

/// Counts and times that are exported while a load goes on.
#[derive(Clone, Debug, Default)]
pub struct StatsSpec {
    /// Receivers.
    pub sinks: Vec<StatsSinkPlan>,
    /// Time between two exports.
    pub flush_every: Option<Nanos>,
    /// Page that others scrape.
    pub page: Option<StatsPagePlan>,
    /// Labels of all series.
    pub labels: Vec<(String, String)>,
}

/// Tracing of requests.
#[derive(Clone, Debug, Default)]
pub struct TraceSpec {
    /// Receiver of spans.
    pub sink: Option<SpanSinkPlan>,
    /// Share of requests that is sampled.
    pub sample: Option<f64>,
    /// Headers that carry the trace.
    pub headers: Option<TraceHeaders>,
}
