//! The proxy through which a load goes.

use stillwell_plan::load::{TunnelPlan, TunnelProtocol};
use stillwell_plan::tls::{ClientTlsPlan, RootSource, Verification};
use stillwell_units::Scheme;

use super::endpoint::{target, tls_host};
use super::error::{LoadSpecError, While as _};
use super::{Header, TunnelSpec};

/// The proxy that was typed, if any.
pub(super) fn plan(spec: &TunnelSpec) -> Result<Option<TunnelPlan>, LoadSpecError> {
    let Some(uri) = &spec.uri else {
        return Ok(None);
    };
    let proxy = target(uri).reading(|| "read --tunnel-uri")?;
    if proxy.path_and_query() != "/" {
        return Err(LoadSpecError::text(format!(
            "--tunnel-uri `{uri}` has a path: a proxy is a host and a port"
        )));
    }
    let is_secure = proxy.scheme() == Scheme::Https;
    for (flag, is_given) in [
        ("--tunnel-insecure", spec.insecure),
        ("--tunnel-ca", !spec.ca.is_empty()),
    ] {
        if is_given && !is_secure {
            return Err(LoadSpecError::text(format!(
                "{flag} has no effect where the proxy is not https: write https://, or leave it out"
            )));
        }
    }
    let verification = if spec.insecure {
        Verification::None
    } else {
        Verification::Roots {
            extra: spec.ca.iter().cloned().map(RootSource::from).collect(),
            public: true,
        }
    };
    let headers = spec.headers.iter();
    Ok(Some(TunnelPlan {
        address: proxy.dial_address(),
        protocol: spec.protocol.unwrap_or(TunnelProtocol::Http1),
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
