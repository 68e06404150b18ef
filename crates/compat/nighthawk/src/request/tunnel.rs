//! The proxy of a load.

use stillwell_config::requests::target;
use stillwell_plan::load::{TunnelPlan, TunnelProtocol};
use stillwell_units::Scheme;

use super::NighthawkTarget;
use super::error::RequestError;
use super::plan::for_quic;
use crate::Protocol;
use crate::envoy::{EnvoyMessage, upstream_tls};

/// Returns the proxy, over TLS if its URI or a context requires it.
pub(super) fn plan(options: &NighthawkTarget) -> Result<Option<TunnelPlan>, RequestError> {
    let (Some(uri), Some(protocol)) = (&options.tunnel_uri, options.tunnel_protocol) else {
        return Ok(None);
    };
    let protocol = match protocol {
        Protocol::Http1 => TunnelProtocol::Http1,
        Protocol::Http2 => TunnelProtocol::Http2,
        Protocol::Http3 => TunnelProtocol::Http3,
    };
    let proxy = target(uri).map_err(|source| RequestError::TunnelUri {
        uri: uri.clone(),
        source,
    })?;
    let (mut tls, is_secure) = match &options.tunnel_tls_context {
        Some(text) => {
            let message = EnvoyMessage::parse("--tunnel-tls-context", text)?;
            (message.tls_context()?, true)
        }
        None => (upstream_tls(), proxy.scheme() == Scheme::Https),
    };
    if protocol == TunnelProtocol::Http3 {
        for_quic(&mut tls);
    }
    Ok(Some(TunnelPlan {
        address: proxy.dial_address(),
        protocol,
        tls_host: is_secure.then(|| proxy.host().to_owned()),
        tls,
        headers: Vec::new(),
    }))
}
