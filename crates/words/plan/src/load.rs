//! Requests that are sent for their own sake: to see how fast, and with which
//! latency, a service answers.

mod check;
mod fleet;
mod grpc;
mod pace;
mod request;
mod routes;
mod telemetry;
mod tunnel;

use std::net::SocketAddr;
use std::ops::Deref;

use serde::{Deserialize, Serialize};
use stillwell_metric::{CounterFacts, HttpVersion, LoadCounter};
use stillwell_units::{Nanos, Seed};

use crate::Validity;
use crate::tls::ClientTlsPlan;

pub use check::LoadPlanError;
pub(crate) use check::check_requests;
pub use fleet::FleetShare;
pub use grpc::{GrpcMessages, GrpcPlan, TypedMessages};
pub use pace::{LoadPace, LoadPacing, Overflow, Spacing};
pub use request::{BodyPlan, EndpointPlan, RequestPlan};
pub use routes::Routes;
pub use telemetry::{
    AnswerHeadersPlan, ReceiverPlan, SpanProtocol, SpanSinkPlan, StatsPagePlan, StatsProtocol,
    StatsSinkPlan, StatsdNamesPlan, TelemetryPlan, TraceHeaders, TracePlan,
};
pub use tunnel::{TunnelPlan, TunnelProtocol};

/// One load: which requests go where, when, over what, until when.
///
/// Every plan keeps the rules of [`LoadPlanError`]: [`LoadPlan::try_new`] checks them, and
/// the parts are read only.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(remote = "Self", try_from = "LoadPlanParts", into = "LoadPlanParts")]
pub struct LoadPlan(LoadPlanParts);

crate::json::by_json_value!(LoadPlan);

/// The parts of a [`LoadPlan`], which may still contradict each other.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct LoadPlanParts {
    /// Destinations of requests, at least one.
    pub endpoints: Vec<EndpointPlan>,
    /// When they are sent.
    pub pace: LoadPace,
    /// Connections to them.
    #[serde(flatten)]
    pub client: ClientPlan,
    /// Threads over which connections are spread, at least one and at most as
    /// many as there are connections.
    pub workers: u16,
    /// When it is over.
    pub until: UntilPlan,
    /// Requests that are sent earlier than this after the start are counted
    /// apart, and their times are not recorded.
    pub warmup: Nanos,
    /// True if each worker sends one request before the start, as part of the
    /// warm-up; of a load with a schedule only.
    pub first_request: bool,
    /// The header of answers whose number of nanoseconds is recorded, if any.
    pub latency_header: Option<String>,
    /// Time for requests in flight to end after the load.
    pub grace: Nanos,
    /// Exporters that receive figures during the load.
    pub telemetry: TelemetryPlan,
    /// From which everything random follows.
    pub seed: Seed,
    /// Strictness of the limits above which the result is unreliable.
    #[serde(default, skip_serializing_if = "Validity::is_normal")]
    pub validity: Validity,
    /// The part that this process sends, where several generators make the load; its
    /// counts of connections and requests are those of all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<FleetShare>,
}

impl LoadPlan {
    /// Makes a plan of `parts`.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn try_new(parts: LoadPlanParts) -> Result<Self, LoadPlanError> {
        parts.check()?;
        Ok(Self(parts))
    }

    /// The addresses that this process connects to: that of the proxy, or else those of
    /// all endpoints. No rule depends on them.
    pub fn dialled_addresses_mut(&mut self) -> Vec<&mut String> {
        match &mut self.0.client.tunnel {
            Some(tunnel) => vec![&mut tunnel.address],
            None => {
                let endpoints = self.0.endpoints.iter_mut();
                endpoints.map(|endpoint| &mut endpoint.address).collect()
            }
        }
    }
}

impl LoadPlanParts {
    /// Returns the load of `endpoints` over `client` from one worker: without a schedule, an end, a
    /// warm-up or exporters. Requests in flight have a second to end.
    #[must_use]
    pub fn closed(endpoints: Vec<EndpointPlan>, client: ClientPlan, seed: Seed) -> Self {
        Self {
            endpoints,
            pace: LoadPace::Closed,
            client,
            workers: 1,
            until: UntilPlan::default(),
            warmup: Nanos::ZERO,
            first_request: false,
            latency_header: None,
            grace: Nanos::SECOND,
            telemetry: TelemetryPlan::default(),
            seed,
            validity: Validity::Normal,
            fleet: None,
        }
    }

    /// Returns the load that waits at its end until each request in flight is answered or times out: bounds
    /// need the time of every request.
    #[must_use]
    pub const fn with_timeout_as_grace(mut self) -> Self {
        self.grace = self.client.timeout;
        self
    }

    /// Returns the properties that counters depend on, of a load that was not interrupted.
    #[must_use]
    pub fn counter_facts(&self) -> CounterFacts {
        CounterFacts {
            http: match self.client.connecting.protocol {
                LoadProtocol::Http1 => HttpVersion::One,
                LoadProtocol::Http2 => HttpVersion::Two,
                LoadProtocol::Http3 => HttpVersion::Three,
            },
            targets: self.endpoints.len() as u64,
            terminations: self.until.termination.len() as u64,
            was_stopped: false,
        }
    }
}

impl Deref for LoadPlan {
    type Target = LoadPlanParts;

    fn deref(&self) -> &LoadPlanParts {
        &self.0
    }
}

impl TryFrom<LoadPlanParts> for LoadPlan {
    type Error = LoadPlanError;

    fn try_from(parts: LoadPlanParts) -> Result<Self, LoadPlanError> {
        Self::try_new(parts)
    }
}

impl From<LoadPlan> for LoadPlanParts {
    fn from(plan: LoadPlan) -> Self {
        plan.0
    }
}

/// The connections of a client of HTTP, and its waits.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ClientPlan {
    /// Opening and use of connections.
    pub connecting: ConnectingPlan,
    /// The proxy through which they lead, if any; endpoints are then looked up by
    /// it.
    pub tunnel: Option<TunnelPlan>,
    /// The settings of TLS for endpoints that use it; the offer of ALPN is
    /// the protocol of the connections.
    pub tls: ClientTlsPlan,
    /// Timeout of an answer, from the sent time on.
    pub timeout: Nanos,
    /// The way in which a worker waits for the next due request.
    pub idle: IdleStrategy,
}

/// Opening and use of connections.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ConnectingPlan {
    /// Connections in all, at least one for each endpoint and worker.
    pub connections: u32,
    /// Their protocol.
    pub protocol: LoadProtocol,
    /// Requests under way on one connection at most; 1 for HTTP/1.1.
    pub streams: u32,
    /// True if all are opened before the start, rather than when one is needed.
    pub prefetch: bool,
    /// Over how long from the start on they are opened, one after the other; zero
    /// for all at once. None is opened before the start then.
    pub over: Nanos,
    /// The choice among several idle connections.
    pub reuse: Reuse,
    /// Requests that one connection carries at most.
    pub requests_max: Option<u64>,
    /// Timeout of connecting.
    pub timeout: Nanos,
    /// True if HTTP/2 is spoken over TLS to a server that chooses no protocol by ALPN.
    #[serde(default)]
    pub without_alpn: bool,
    /// True if requests of HTTP/1.1 without a body say `content-length: 0` with every
    /// method.
    #[serde(default)]
    pub states_empty_length: bool,
    /// The local address that connections come from, where it is not the
    /// kernel's choice; port 0 for one that the kernel chooses.
    pub source: Option<SocketAddr>,
}

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadProtocol {
    /// HTTP/1.1, one request after the other.
    Http1,
    /// HTTP/2, by prior knowledge where there is no TLS.
    Http2,
    /// HTTP/3, over TLS alone.
    Http3,
}

impl LoadProtocol {
    /// Its name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http1 => "http1",
            Self::Http2 => "http2",
            Self::Http3 => "http3",
        }
    }
}

/// The choice among several idle connections.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reuse {
    /// The one that was used last: few connections are busy, the others idle.
    Mru,
    /// The one that was used longest ago: all take turns.
    Lru,
}

/// The way in which a worker waits for the next due request.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IdleStrategy {
    /// Sleeps, but spins for the last fifty microseconds.
    Spin,
    /// Sleeps: costs less CPU time, and sends as late as the kernel wakes it.
    Sleep,
}

/// The end of a load: the first of these conditions.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct UntilPlan {
    /// After this time from the start, warm-up included.
    pub duration: Option<Nanos>,
    /// After this many requests, those of the warm-up included.
    pub requests: Option<u64>,
    /// Well, once a counter exceeds a threshold.
    pub termination: Vec<PredicatePlan>,
    /// Badly, once a counter exceeds a threshold.
    pub failure: Vec<PredicatePlan>,
    /// True if a predicate looks at each worker's own counters and ends that
    /// worker, rather than at the sum of all and ends all.
    pub by_worker: bool,
}

/// Holds once a counter of the measured time exceeds a threshold.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct PredicatePlan {
    /// The counted quantity.
    pub counter: LoadCounter,
    /// The value that it must exceed.
    pub threshold: u64,
}
