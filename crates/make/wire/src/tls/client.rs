//! The side that connects.

use std::sync::Arc;

use rustls::client::danger::ServerCertVerifier;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use stillwell_plan::tls::{Alpn, ClientTlsPlan, PemSource, RootSource, Verification};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

use super::host_roots::add_host_roots;
use super::pem::{Identity, add_roots, unusable};
use super::suites::{provider, quic_provider};
use super::unverified::Unverified;
use super::{HandshakeError, TlsError, TlsStream};
use crate::quic::noted::NotingVerifier;

/// Sessions that one worker keeps for later connections.
const SESSIONS_MAX: usize = 256;

/// TLS of a client, ready for use.
#[derive(Clone, Debug)]
pub struct ClientTls {
    config: Arc<ClientConfig>,
    /// The name to request, in place of the target's.
    server_name: Option<ServerName<'static>>,
    resumption: bool,
}

impl ClientTls {
    /// Makes the configuration of `plan` and reads its files.
    ///
    /// # Errors
    /// [`TlsError`] with the file or the name that is wrong.
    pub fn new(plan: &ClientTlsPlan) -> Result<Self, TlsError> {
        Self::trusting(plan, &[])
    }

    /// The same, with the roots in `authorities` besides, which need not be files. They
    /// have no effect where certificates are not checked.
    ///
    /// # Errors
    /// As [`ClientTls::new`].
    pub fn trusting(plan: &ClientTlsPlan, authorities: &[PemSource]) -> Result<Self, TlsError> {
        let is_quic = plan.alpn.contains(&Alpn::Http3);
        let (provider, versions) = if is_quic {
            quic_provider(&plan.suites)?
        } else {
            provider(&plan.suites)?
        };
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
        let refused = |source| TlsError::Refused { source };
        let builder = builder.with_protocol_versions(&versions).map_err(refused)?;
        let builder = match &plan.verification {
            Verification::None | Verification::Name => {
                let checks_name = plan.verification == Verification::Name;
                let verifier = Arc::new(Unverified {
                    provider,
                    checks_name,
                });
                builder
                    .dangerous()
                    .with_custom_certificate_verifier(noting(verifier))
            }
            Verification::Roots { extra, public } => {
                let mut roots = root_store(extra, *public)?;
                add_roots(&mut roots, authorities.iter().cloned())?;
                let verifier =
                    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
                let verifier = verifier.build().map_err(|error| TlsError::Refused {
                    source: rustls::Error::General(error.to_string()),
                })?;
                builder
                    .dangerous()
                    .with_custom_certificate_verifier(noting(verifier))
            }
        };
        let mut config = match &plan.identity {
            None => builder.with_no_client_auth(),
            Some(from) => {
                let identity = Identity::read(from)?;
                let config = builder.with_client_auth_cert(identity.certificates, identity.key);
                config.map_err(unusable(from))?
            }
        };
        config.alpn_protocols = names(&plan.alpn);
        config.resumption = resumption(plan.resumption);
        let server_name = plan.server_name.as_deref().map(server_name).transpose()?;
        Ok(Self {
            config: Arc::new(config),
            server_name,
            resumption: plan.resumption,
        })
    }

    /// The same for one worker: its sessions are its own, so no worker ever
    /// waits for another.
    #[must_use]
    pub fn for_worker(&self) -> Self {
        let mut config = ClientConfig::clone(&self.config);
        config.resumption = resumption(self.resumption);
        Self {
            config: Arc::new(config),
            server_name: self.server_name.clone(),
            resumption: self.resumption,
        }
    }

    /// The same, offering only `alpn`.
    #[must_use]
    pub fn offering(&self, alpn: &[Alpn]) -> Self {
        let mut config = ClientConfig::clone(&self.config);
        config.alpn_protocols = names(alpn);
        Self {
            config: Arc::new(config),
            server_name: self.server_name.clone(),
            resumption: self.resumption,
        }
    }

    /// For QUIC.
    pub(crate) fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.config)
    }

    /// The name that connections to `host` request: a host name, or an address
    /// with or without brackets.
    ///
    /// # Errors
    /// [`TlsError::ServerName`] where it is neither.
    pub fn server_name(&self, host: &str) -> Result<ServerName<'static>, TlsError> {
        match &self.server_name {
            Some(name) => Ok(name.clone()),
            None => server_name(host),
        }
    }

    /// Opens a connection with the server of this `name` over `stream`, and completes the
    /// handshake.
    ///
    /// # Errors
    /// [`HandshakeError`] with what to do about it.
    pub async fn connect<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        name: &ServerName<'static>,
    ) -> Result<TlsStream<S>, HandshakeError> {
        let connector = TlsConnector::from(Arc::clone(&self.config));
        let handshaking = connector.connect(name.clone(), stream);
        TlsStream::shake(handshaking, &name.to_str(), true).await
    }
}

/// The roots in `extra`, and those that ship with Stillwell if `is_public`.
fn root_store(extra: &[RootSource], is_public: bool) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    if is_public {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    for source in extra {
        match source {
            RootSource::File(path) => add_roots(&mut roots, [PemSource::File(path.clone())])?,
            RootSource::System => add_host_roots(&mut roots)?,
        }
    }
    Ok(roots)
}

fn noting(verifier: Arc<dyn ServerCertVerifier>) -> Arc<dyn ServerCertVerifier> {
    Arc::new(NotingVerifier(verifier))
}

pub(super) fn names(alpn: &[Alpn]) -> Vec<Vec<u8>> {
    alpn.iter()
        .map(|protocol| protocol.name().as_bytes().to_vec())
        .collect()
}

fn resumption(is_wanted: bool) -> Resumption {
    if is_wanted {
        Resumption::in_memory_sessions(SESSIONS_MAX)
    } else {
        Resumption::disabled()
    }
}

fn server_name(host: &str) -> Result<ServerName<'static>, TlsError> {
    let bare = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let bare = bare.unwrap_or(host).to_owned();
    ServerName::try_from(bare).map_err(|_| TlsError::ServerName {
        name: host.to_owned(),
    })
}
