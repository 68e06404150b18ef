//! Ends of connections, and of attempts at one.

use std::io;

use quinn_proto::{ConnectionError, TransportErrorCode};
use rustls::{AlertDescription, Error};
use stillwell_metric::{Outcome, Remedy};

use super::noted::Noted;
use crate::tls::HandshakeError;

/// Codes from here on are alerts of TLS (RFC 9001, 4.8).
const ALERTS_FROM: u64 = 0x100;

/// Reasons for which there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum QuicRefused {
    /// No program listens there, or it takes no more connections.
    #[error("connect to {address} over QUIC")]
    Connect {
        /// `host:port`.
        address: String,
        /// The kernel's answer, or the peer's.
        source: io::Error,
    },
    /// No hands were shaken.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
}

impl QuicRefused {
    /// Returns the outcome that it counts as.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Connect { source, .. } => match source.kind() {
                io::ErrorKind::ConnectionRefused => Outcome::ConnectRefused,
                io::ErrorKind::TimedOut => Outcome::ConnectTimedOut,
                _ => Outcome::ConnectFailed,
            },
            Self::Handshake(_) => Outcome::HandshakeFailed,
        }
    }

    /// Returns a setting that may help, of the proxy if `of_proxy`.
    #[must_use]
    pub fn remedy(&self, of_proxy: bool) -> Option<Remedy> {
        match self {
            Self::Connect { .. } => None,
            Self::Handshake(error) => error.remedy(of_proxy),
        }
    }

    pub(super) fn connect(address: &str, source: io::Error) -> Self {
        Self::Connect {
            address: address.to_owned(),
            source,
        }
    }

    /// The connection to `address` ended with the handshake under way.
    pub(super) fn of(address: &str, peer: &str, noted: Option<&Noted>, end: QuicEnd) -> Self {
        let refused = |kind| {
            let error = io::Error::new(kind, end.to_string());
            Self::connect(address, error)
        };
        let tls = |error| Self::Handshake(HandshakeError::of_quic(peer, error));
        match &end {
            QuicEnd::Unreachable => refused(io::ErrorKind::ConnectionRefused),
            QuicEnd::Ended(ConnectionError::TimedOut) => refused(io::ErrorKind::TimedOut),
            QuicEnd::Ended(ConnectionError::ConnectionClosed(close)) => {
                match alert(u64::from(close.error_code)) {
                    Some(alert) => tls(Error::AlertReceived(alert)),
                    None if close.error_code == TransportErrorCode::CONNECTION_REFUSED => {
                        refused(io::ErrorKind::ConnectionRefused)
                    }
                    None => refused(io::ErrorKind::ConnectionAborted),
                }
            }
            QuicEnd::Ended(ConnectionError::TransportError(error)) => {
                let noted = noted.and_then(|noted| noted.failure.clone());
                match (noted, alert(u64::from(error.code))) {
                    (Some(failure), _) => tls(failure),
                    (None, Some(AlertDescription::NoApplicationProtocol)) => {
                        tls(Error::NoApplicationProtocol)
                    }
                    (None, Some(_)) => tls(Error::General(error.reason.clone())),
                    (None, None) => refused(io::ErrorKind::InvalidData),
                }
            }
            QuicEnd::Ended(_) | QuicEnd::Cut(_) => refused(io::ErrorKind::ConnectionAborted),
        }
    }
}

fn alert(code: u64) -> Option<AlertDescription> {
    let alert = u8::try_from(code.checked_sub(ALERTS_FROM)?).ok()?;
    Some(AlertDescription::from(alert))
}

/// Reasons for which a connection ended.
#[derive(Clone, Debug, thiserror::Error)]
pub enum QuicEnd {
    /// The peer's host reports that no program listens there any more.
    #[error("no program listens at the other end")]
    Unreachable,
    /// The carrier of the datagrams ended, for this reason.
    #[error("the other end cannot be reached any more: {0}")]
    Cut(String),
    /// The library says how.
    #[error("the connection ended")]
    Ended(#[source] ConnectionError),
}

impl QuicEnd {
    /// Returns the outcome of requests that were under way.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        match self {
            Self::Ended(ConnectionError::TimedOut) => Outcome::TimedOut,
            Self::Ended(ConnectionError::TransportError(_) | ConnectionError::VersionMismatch) => {
                Outcome::Malformed
            }
            Self::Unreachable | Self::Cut(_) | Self::Ended(_) => Outcome::PeerClosed,
        }
    }
}
