//! The side that is connected to.

use std::sync::Arc;

use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{RootCertStore, ServerConfig};
use stillwell_plan::tls::{Alpn, PemSource, ServerIdentity, ServerTlsPlan};
use tokio_rustls::TlsAcceptor;

use super::client::names;
use super::pem::{Identity, add_roots, unusable};
use super::suites::{provider, quic_provider};
use super::{HandshakeError, TlsError, TlsGreeting, TlsStream};
use crate::Stream;
use crate::quic::noted::noting_key;

/// The peer, in errors.
pub(super) const CLIENT: &str = "a client";

/// TLS of a server, ready for use.
#[derive(Clone, Debug)]
pub struct ServerTls {
    config: Arc<ServerConfig>,
    /// The certificate that was made for it, as PEM.
    made: Option<Arc<str>>,
}

impl ServerTls {
    /// Makes the configuration of `plan`, reads its files and makes its certificate.
    ///
    /// # Errors
    /// [`TlsError`] with the file or the name that is wrong.
    pub fn new(plan: &ServerTlsPlan) -> Result<Self, TlsError> {
        let is_quic = plan.alpn.contains(&Alpn::Http3);
        let (provider, versions) = if is_quic {
            quic_provider(&plan.suites)?
        } else {
            provider(&plan.suites)?
        };
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let refused = |source| TlsError::Refused { source };
        let builder = builder.with_protocol_versions(&versions).map_err(refused)?;
        let builder = if plan.client_roots.is_empty() {
            builder.with_no_client_auth()
        } else {
            let mut roots = RootCertStore::empty();
            add_roots(
                &mut roots,
                plan.client_roots.iter().cloned().map(PemSource::File),
            )?;
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
            let verifier = verifier.build().map_err(|error| TlsError::Refused {
                source: rustls::Error::General(error.to_string()),
            })?;
            builder.with_client_cert_verifier(verifier)
        };
        let (identity, made) = match &plan.identity {
            ServerIdentity::Given(from) => (Identity::read(from)?, None),
            ServerIdentity::SelfSigned { names } => {
                let (identity, pem) = self_signed(names)?;
                (identity, Some(pem.into()))
            }
        };
        let certified = CertifiedKey::from_der(identity.certificates, identity.key, &provider);
        let configured = certified.map(|certified| {
            let shown = SingleCertAndKey::from(noting_key(certified));
            builder.with_cert_resolver(Arc::new(shown))
        });
        let mut config = configured.map_err(|source| match &plan.identity {
            ServerIdentity::Given(from) => unusable(from)(source),
            ServerIdentity::SelfSigned { .. } => refused(source),
        })?;
        config.alpn_protocols = names(&plan.alpn);
        // Tickets alone: sessions are kept by those who resume them.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        if plan.resumption {
            config.ticketer = Ticketer::new().map_err(refused)?;
        } else {
            config.send_tls13_tickets = 0;
        }
        Ok(Self {
            config: Arc::new(config),
            made,
        })
    }

    /// For QUIC.
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config)
    }

    /// The certificate that was made for it, as PEM, so clients can have it
    /// for a root; none where it was given one.
    #[must_use]
    pub fn made_certificate(&self) -> Option<&str> {
        self.made.as_deref()
    }

    /// Opens a connection with the client at the other end of `stream`, and completes the
    /// handshake.
    ///
    /// # Errors
    /// [`HandshakeError`] with the cause.
    pub async fn accept(&self, stream: Stream) -> Result<TlsStream, HandshakeError> {
        let handshaking = TlsAcceptor::from(Arc::clone(&self.config)).accept(stream);
        TlsStream::shake(handshaking, CLIENT, false).await
    }

    /// Completes the handshake of a client whose first bytes were read.
    ///
    /// # Errors
    /// [`HandshakeError`] with the cause.
    pub async fn accept_greeted(&self, greeting: TlsGreeting) -> Result<TlsStream, HandshakeError> {
        let handshaking = greeting.into_handshake(Arc::clone(&self.config));
        TlsStream::shake(handshaking, CLIENT, false).await
    }
}

/// A certificate for `names` with its key, and it alone as PEM.
fn self_signed(names: &[String]) -> Result<(Identity, String), TlsError> {
    let made = rcgen::generate_simple_self_signed(names).map_err(|error| TlsError::SelfSigned {
        names: names.join(", "),
        message: error.to_string(),
    })?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let identity = Identity {
        certificates: vec![made.cert.der().clone()],
        key: PrivateKeyDer::Pkcs8(key),
    };
    Ok((identity, made.cert.pem()))
}
