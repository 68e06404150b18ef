//! The proxy through which a load goes.

use anyhow::{Context, bail};
use stillwell_http::Scheme;
use stillwell_nighthawk::envoy::{EnvoyMessage, upstream_tls};
use stillwell_plan::{ClientTlsPlan, TunnelPlan, TunnelProtocol, Verification};

use super::endpoint::{target, tls_host};
use super::nighthawk::for_quic;
use crate::arguments::{Header, LoadTunnelArguments, NighthawkProtocol, NighthawkTarget};

/// The proxy that was typed, if any.
pub(super) fn plan(arguments: &LoadTunnelArguments) -> anyhow::Result<Option<TunnelPlan>> {
    let Some(uri) = &arguments.tunnel_uri else {
        return Ok(None);
    };
    let proxy = target(uri).context("read --tunnel-uri")?;
    if proxy.path_and_query() != "/" {
        bail!("--tunnel-uri `{uri}` has a path: a proxy is a host and a port");
    }
    let is_secure = proxy.scheme() == Scheme::Https;
    for (flag, is_given) in [
        ("--tunnel-insecure", arguments.tunnel_insecure),
        ("--tunnel-ca", !arguments.tunnel_ca.is_empty()),
    ] {
        if is_given && !is_secure {
            bail!(
                "{flag} has no effect where the proxy is not https: write https://, or leave it out"
            );
        }
    }
    let verification = if arguments.tunnel_insecure {
        Verification::None
    } else {
        Verification::Roots {
            extra: arguments.tunnel_ca.clone(),
            public: true,
        }
    };
    let headers = arguments.tunnel_header.iter();
    Ok(Some(TunnelPlan {
        address: proxy.dial_address(),
        protocol: arguments
            .tunnel_protocol
            .map_or(TunnelProtocol::Http1, TunnelProtocol::from),
        tls_host: tls_host(&proxy),
        tls: ClientTlsPlan {
            verification,
            ..ClientTlsPlan::default()
        },
        headers: headers
            .map(|Header(name, value)| (name.clone(), value.clone()))
            .collect(),
    }))
}

/// The proxy that was asked for in Nighthawk's words: TLS is spoken with it where
/// its URI or a context says so.
pub(super) fn of_nighthawk(own: &NighthawkTarget) -> anyhow::Result<Option<TunnelPlan>> {
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
