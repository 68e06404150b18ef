//! A way to endpoints that leads through a proxy.

use serde::{Deserialize, Serialize};

use crate::tls::ClientTlsPlan;

/// A proxy that connects with the endpoints on `CONNECT`.
///
/// Each connection of the load has a connection of its own with the proxy, over
/// which it speaks with its endpoint as it would without.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct TunnelPlan {
    /// `host:port` of the proxy.
    pub address: String,
    /// Its protocol.
    pub protocol: TunnelProtocol,
    /// The host that its certificate is for, where TLS is spoken with it.
    pub tls_host: Option<String>,
    /// Its settings of TLS; the offer of ALPN is the protocol.
    pub tls: ClientTlsPlan,
    /// Headers of each `CONNECT`, in this order.
    pub headers: Vec<(String, String)>,
}

impl TunnelPlan {
    /// The proxy in its own words: by its name, where that is known, with the port.
    #[must_use]
    pub fn authority(&self) -> String {
        match (&self.tls_host, self.address.rsplit_once(':')) {
            (Some(host), Some((_, port))) if host.contains(':') && !host.starts_with('[') => {
                format!("[{host}]:{port}")
            }
            (Some(host), Some((_, port))) => format!("{host}:{port}"),
            _ => self.address.clone(),
        }
    }
}

/// The protocol of a proxy.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TunnelProtocol {
    /// HTTP/1.1: what follows the answer is the endpoint's.
    Http1,
    /// HTTP/2: the bodies of one stream.
    Http2,
    /// HTTP/3: the same, over TLS alone.
    Http3,
}
