//! The proxy of a load that was asked for in Nighthawk's words.

use anyhow::Context;
use stillwell_config::requests::target;
use stillwell_nighthawk::envoy::{EnvoyMessage, upstream_tls};
use stillwell_plan::{TunnelPlan, TunnelProtocol};
use stillwell_units::Scheme;

use super::plan::for_quic;
use crate::arguments::{NighthawkProtocol, NighthawkTarget};

/// The proxy that was asked for: TLS is spoken with it where its URI or a context says so.
pub(super) fn plan(own: &NighthawkTarget) -> anyhow::Result<Option<TunnelPlan>> {
    let (Some(uri), Some(protocol)) = (&own.tunnel_uri, own.tunnel_protocol) else {
        return Ok(None);
    };
    let protocol = match protocol {
        NighthawkProtocol::Http1 => TunnelProtocol::Http1,
        NighthawkProtocol::Http2 => TunnelProtocol::Http2,
        NighthawkProtocol::Http3 => TunnelProtocol::Http3,
    };
    let proxy = target(uri).with_context(|| format!("Invalid tunnel URI: '{uri}'"))?;
    let (mut tls, is_secure) = match &own.tunnel_tls_context {
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
