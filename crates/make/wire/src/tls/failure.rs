//! Reasons for which a handshake failed, and remedies.

use std::io;

use rustls::{AlertDescription, CertificateError, Error, PeerIncompatible};
use stillwell_metric::{Outcome, Remedy, TlsWish};

/// Reasons for which a handshake failed.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum HandshakeFailure {
    /// The peer's certificate has expired.
    Expired,
    /// The peer's certificate is not valid yet.
    NotYetValid,
    /// The peer's certificate comes from an authority that is not known.
    UnknownAuthority,
    /// The peer's certificate is for other names.
    OtherName,
    /// The peer shows the certificate of an authority as its own.
    Authority,
    /// The peer's certificate is wrong in some other way.
    BadCertificate,
    /// The peer wants a certificate from us, or another one.
    CertificateWanted,
    /// The peer does not take our certificate.
    CertificateRefused,
    /// There is no version or suite that both sides speak.
    NothingInCommon,
    /// There is no application protocol that both sides speak.
    NoProtocol,
    /// The peer does not know the requested name.
    UnknownName,
    /// The peer does not speak TLS.
    NotTls,
    /// The peer closed the connection.
    PeerClosed,
    /// Anything else.
    Other,
}

/// A TLS handshake that failed, with the cause.
#[derive(Debug, thiserror::Error)]
#[error("complete the TLS handshake with {peer}{}", advice(*.failure, *.is_client))]
pub struct HandshakeError {
    /// The server's name, or that it was a client.
    pub peer: String,
    /// Kind of failure.
    pub failure: HandshakeFailure,
    /// True if this side connected.
    is_client: bool,
    /// The error of the library or the kernel.
    pub source: io::Error,
}

impl HandshakeError {
    pub(super) fn new(peer: &str, is_client: bool, source: io::Error) -> Self {
        let tls_error = source.get_ref().and_then(|cause| cause.downcast_ref());
        let (failure, source) = match (source.kind(), tls_error) {
            // An alert of a TLS connection below, to a proxy, has another kind.
            (io::ErrorKind::InvalidData | io::ErrorKind::Other, Some(error)) => {
                (failure_of(error), source)
            }
            (kind @ io::ErrorKind::UnexpectedEof, _) => {
                (HandshakeFailure::PeerClosed, io::Error::from(kind))
            }
            (io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe, _) => {
                (HandshakeFailure::PeerClosed, source)
            }
            _ => (HandshakeFailure::Other, source),
        };
        Self {
            peer: peer.to_owned(),
            failure,
            is_client,
            source,
        }
    }

    /// A handshake of a client that the library ended with `error`.
    fn of_client(peer: &str, error: Error) -> Self {
        Self::new(
            peer,
            true,
            io::Error::new(io::ErrorKind::InvalidData, error),
        )
    }

    /// The same over QUIC, where `error` is all that there is.
    pub(crate) fn of_quic(peer: &str, error: Error) -> Self {
        Self::of_client(peer, error)
    }

    /// The alert by which a server ended a connection behind its handshake, if
    /// that is what `error` of a read or a write was: with TLS 1.3 a server says
    /// only there what it holds of our certificate.
    #[must_use]
    pub fn behind(peer: &str, error: &io::Error) -> Option<Self> {
        let inner = error.get_ref()?.downcast_ref::<Error>()?;
        matches!(inner, Error::AlertReceived(_)).then(|| Self::of_client(peer, inner.clone()))
    }

    /// Returns a setting that may help, where this side connected; `of_proxy` is true if the
    /// peer is a proxy.
    #[must_use]
    pub fn remedy(&self, of_proxy: bool) -> Option<Remedy> {
        let wish = self.failure.wish().filter(|_| self.is_client)?;
        Some(Remedy { wish, of_proxy })
    }

    /// Returns the outcome that it counts as.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        match self.failure {
            HandshakeFailure::PeerClosed => Outcome::PeerClosed,
            _ => Outcome::ConnectFailed,
        }
    }
}

/// The library's name for the certificate of an authority in the wrong place.
const AUTHORITY: &str = "CaUsedAsEndEntity";

fn failure_of(error: &Error) -> HandshakeFailure {
    use HandshakeFailure as Failure;
    match error {
        Error::InvalidCertificate(error) => match error {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Failure::Expired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                Failure::NotYetValid
            }
            CertificateError::UnknownIssuer => Failure::UnknownAuthority,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Failure::OtherName
            }
            // The library has no other word for it.
            CertificateError::Other(error) if format!("{error:?}").contains(AUTHORITY) => {
                Failure::Authority
            }
            _ => Failure::BadCertificate,
        },
        Error::AlertReceived(alert) => match alert {
            AlertDescription::CertificateRequired => Failure::CertificateWanted,
            AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::DecryptError
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied => Failure::CertificateRefused,
            AlertDescription::HandshakeFailure
            | AlertDescription::ProtocolVersion
            | AlertDescription::InsufficientSecurity => Failure::NothingInCommon,
            AlertDescription::NoApplicationProtocol => Failure::NoProtocol,
            AlertDescription::UnrecognisedName => Failure::UnknownName,
            _ => Failure::Other,
        },
        Error::PeerIncompatible(PeerIncompatible::NoCertificateRequestSignatureSchemesInCommon) => {
            Failure::CertificateWanted
        }
        Error::PeerIncompatible(_) => Failure::NothingInCommon,
        Error::NoApplicationProtocol => Failure::NoProtocol,
        Error::NoCertificatesPresented => Failure::CertificateWanted,
        Error::InvalidMessage(_) => Failure::NotTls,
        _ => Failure::Other,
    }
}

const fn advice(failure: HandshakeFailure, is_client: bool) -> &'static str {
    use HandshakeFailure as Failure;
    if !is_client {
        return "";
    }
    match failure {
        Failure::Expired => ": its certificate has expired; renew it",
        Failure::NotYetValid => {
            ": its certificate is not valid yet; check the clocks of both hosts"
        }
        Failure::UnknownAuthority => ": its certificate comes from an unknown authority",
        Failure::OtherName => ": its certificate is for other names; connect to one of them",
        Failure::Authority => {
            ": its certificate is that of an authority (CA:TRUE); replace it by one with \
             basicConstraints=CA:FALSE"
        }
        Failure::BadCertificate => ": its certificate is invalid; replace it",
        Failure::CertificateWanted => ": it requires a client certificate",
        Failure::CertificateRefused => ": it rejected the client certificate",
        Failure::NothingInCommon => {
            ": no TLS version or cipher suite is supported by both; Stillwell supports TLS 1.2 and 1.3, \
             and suites with ECDHE"
        }
        Failure::NoProtocol => ": it does not support the requested version of HTTP",
        Failure::UnknownName => ": it does not serve that host name",
        Failure::NotTls => ": it does not speak TLS; try http:// instead of https://",
        Failure::PeerClosed => ": it closed the connection",
        Failure::Other => "",
    }
}

impl HandshakeFailure {
    /// Returns the setting of the connecting side that may help, if there is one.
    #[must_use]
    pub const fn wish(self) -> Option<TlsWish> {
        Some(match self {
            Self::UnknownAuthority => TlsWish::Trust,
            Self::Expired | Self::Authority | Self::BadCertificate => TlsWish::Unchecked,
            Self::OtherName | Self::UnknownName => TlsWish::Name,
            Self::CertificateWanted | Self::CertificateRefused => TlsWish::Identity,
            Self::NotYetValid
            | Self::NothingInCommon
            | Self::NoProtocol
            | Self::NotTls
            | Self::PeerClosed
            | Self::Other => return None,
        })
    }
}
