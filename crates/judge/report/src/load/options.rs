//! The options of a load.

use std::fmt;

use serde::{Deserialize, Serialize};
use stillwell_plan::Validity;
use stillwell_units::Nanos;

/// The options of a load. Quantities are totals over all workers.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LoadOptions {
    /// The URLs, in order; several are used in turn or by weight.
    pub targets: Vec<String>,
    /// Protocol of the targets.
    pub protocol: LoadProtocol,
    /// The rate over all workers.
    pub rate: RequestedRate,
    /// The shape of the schedule, for readers: `constant`, `poisson`, `ramp over
    /// 5s`, `bursts of 10`.
    pub arrival: String,
    /// True if the schedule continues without regard to the target, and latency counts from it.
    /// False with a rate: the rate is a maximum that falls while the target stalls, and latency
    /// counts from the sent time.
    pub open_loop: bool,
    /// Duration of the load; `None` for no end.
    #[serde(rename = "duration_ns")]
    pub duration: Option<Nanos>,
    /// Duration of the warm-up, which is not measured.
    #[serde(rename = "warmup_ns")]
    pub warmup: Nanos,
    /// Threads that send.
    pub workers: u32,
    /// Connections over all workers.
    pub connections: u32,
    /// Requests at once on each connection.
    pub streams: u32,
    /// Timeout of a request.
    #[serde(rename = "request_timeout_ns")]
    pub request_timeout: Option<Nanos>,
    /// Timeout of a connection attempt.
    #[serde(rename = "connect_timeout_ns")]
    pub connect_timeout: Option<Nanos>,
    /// The method of requests.
    pub method: String,
    /// Headers beside those that every request has.
    pub headers: Vec<(String, String)>,
    /// Bytes of each request's body.
    pub body_bytes: u64,
    /// The most that is randomly added to each intended time.
    #[serde(rename = "jitter_uniform_ns")]
    pub jitter_uniform: Nanos,
    /// The method that is called by gRPC, where requests are calls: its service's full
    /// name, `/`, its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grpc_method: Option<String>,
    /// Strictness of the limits above which the result is unreliable.
    #[serde(default, skip_serializing_if = "Validity::is_normal")]
    pub validity: Validity,
    /// Labels that the user gave to this load.
    pub labels: Vec<String>,
    /// The options in the form of another tool, where the load was requested in its
    /// words: printed unchanged in its formats. Where this is `None` they are
    /// derived from the fields above.
    pub original: Option<serde_json::Value>,
}

/// Over which protocol requests go.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadProtocol {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2.
    Http2,
    /// HTTP/3.
    Http3,
}

impl fmt::Display for LoadProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http1 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
            Self::Http3 => "HTTP/3",
        })
    }
}

/// Requested rate.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestedRate {
    /// As fast as responses arrive.
    #[default]
    Max,
    /// So many requests a second over all workers, the average where the
    /// schedule has a shape.
    PerSecond(f64),
}
