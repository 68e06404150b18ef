//! Exchange of requests and answers.

use serde::{Deserialize, Serialize};
use stillwell_units::Nanos;

use crate::load::{ClientPlan, ConnectingPlan, IdleStrategy, LoadProtocol, Reuse};
use crate::tls::ClientTlsPlan;

/// Exchange of requests with blocks and their answers.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ExchangePlan {
    /// The protocol of connections.
    pub protocol: LoadProtocol,
    /// Requests under way on one connection at most; 1 for HTTP/1.1.
    pub streams: u32,
    /// The settings of TLS for `https` URLs; the offer of ALPN is the
    /// protocol.
    pub tls: ClientTlsPlan,
    /// Timeout of an answer, writing the request included.
    pub timeout: Nanos,
    /// Timeout of connecting, TLS included.
    pub connect_timeout: Nanos,
    /// The choice among several idle connections.
    pub reuse: Reuse,
    /// Requests that one connection carries at most.
    pub requests_max: Option<u64>,
}

impl Default for ExchangePlan {
    /// HTTP/1.1 with all connections in turn; certificates are checked.
    fn default() -> Self {
        Self {
            protocol: LoadProtocol::Http1,
            streams: 1,
            tls: ClientTlsPlan::default(),
            timeout: Nanos::from_secs(30),
            connect_timeout: Nanos::from_secs(10),
            reuse: Reuse::Lru,
            requests_max: None,
        }
    }
}

impl ExchangePlan {
    /// Returns the client that exchanges requests and answers in this way. The generator says
    /// how many connections there are and how a worker waits.
    #[must_use]
    pub fn client(&self) -> ClientPlan {
        ClientPlan {
            connecting: ConnectingPlan {
                connections: 1,
                protocol: self.protocol,
                streams: self.streams,
                prefetch: true,
                over: Nanos::ZERO,
                reuse: self.reuse,
                requests_max: self.requests_max,
                timeout: self.connect_timeout,
                without_alpn: false,
                states_empty_length: false,
                source: None,
            },
            tunnel: None,
            tls: self.tls.clone(),
            timeout: self.timeout,
            idle: IdleStrategy::Sleep,
        }
    }
}
