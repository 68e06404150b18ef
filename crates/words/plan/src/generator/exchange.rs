//! How requests and answers are exchanged.

use serde::{Deserialize, Serialize};
use stillwell_units::Nanos;

use crate::{ClientTlsPlan, LoadProtocol, Reuse};

/// How requests with blocks and their answers are exchanged.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ExchangePlan {
    /// What is spoken on connections.
    pub protocol: LoadProtocol,
    /// Requests under way on one connection at most; 1 for HTTP/1.1.
    pub streams: u32,
    /// How TLS is spoken where the URL asks for it; what is offered by ALPN is the
    /// protocol.
    pub tls: ClientTlsPlan,
    /// How long an answer may take, writing the request included.
    pub timeout: Nanos,
    /// How long connecting may take, TLS included.
    pub connect_timeout: Nanos,
    /// Which of several idle connections is used.
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
