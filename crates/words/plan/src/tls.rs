//! Settings of both ends of a TLS connection.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Settings of TLS of clients.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ClientTlsPlan {
    /// Check of the server's certificate.
    pub verification: Verification,
    /// Certificate of the client, if any.
    pub identity: Option<TlsIdentity>,
    /// Protocols that are offered, the preferred one first; none for no ALPN.
    pub alpn: Vec<Alpn>,
    /// The name in SNI, which the certificate must carry, if it
    /// is not the target's own.
    pub server_name: Option<String>,
    /// True if later connections resume the sessions of earlier ones.
    pub resumption: bool,
    /// The offered versions and cipher suites.
    pub suites: TlsSuites,
}

impl Default for ClientTlsPlan {
    /// Certificates are checked against public roots; no protocol is offered.
    fn default() -> Self {
        Self {
            verification: Verification::Roots {
                extra: Vec::new(),
                public: true,
            },
            identity: None,
            alpn: Vec::new(),
            server_name: None,
            resumption: true,
            suites: TlsSuites::default(),
        }
    }
}

/// Check of a certificate.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verification {
    /// Against the roots that ship with Stillwell, and those of these files.
    Roots {
        /// PEM files of further roots.
        extra: Vec<PathBuf>,
        /// True if the roots of Stillwell count, or only those of the files.
        public: bool,
    },
    /// The certificate must carry the name, and may be of any origin: a man in the middle is
    /// possible.
    Name,
    /// No verification: a man in the middle is possible.
    None,
}

/// A certificate and its key.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct TlsIdentity {
    /// The chain, its own certificate first.
    pub certificates: PemSource,
    /// The key.
    pub key: PemSource,
}

/// Source of PEM.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PemSource {
    /// In a file.
    File(PathBuf),
    /// Here.
    Text(String),
}

/// A protocol that ALPN can choose.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Alpn {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
    /// HTTP/3, over QUIC alone.
    Http3,
}

impl Alpn {
    /// The protocol's name in the handshake.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http1 => "http/1.1",
            Self::Http2 => "h2",
            Self::Http3 => "h3",
        }
    }

    /// The protocol of this name in the handshake.
    #[must_use]
    pub fn of_name(name: &[u8]) -> Option<Self> {
        let mut all = [Self::Http1, Self::Http2, Self::Http3].into_iter();
        all.find(|protocol| protocol.name().as_bytes() == name)
    }
}

/// Settings of TLS of a server.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ServerTlsPlan {
    /// Its certificate.
    pub identity: ServerIdentity,
    /// Protocols that it takes, the preferred one first; none for no ALPN.
    pub alpn: Vec<Alpn>,
    /// PEM files of roots that clients' certificates must come from; none where
    /// clients need no certificate.
    pub client_roots: Vec<PathBuf>,
    /// True if clients may resume sessions.
    pub resumption: bool,
    /// The accepted versions and cipher suites.
    pub suites: TlsSuites,
}

/// Certificate of a server.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerIdentity {
    /// A certificate that is made when it starts, for these names and addresses,
    /// self-signed.
    SelfSigned {
        /// Names and addresses.
        names: Vec<String>,
    },
    /// This one.
    Given(TlsIdentity),
}

/// Versions and cipher suites.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct TlsSuites {
    /// The least version, if any is named.
    pub version_min: Option<TlsVersion>,
    /// The greatest version, if any is named.
    pub version_max: Option<TlsVersion>,
    /// Names of cipher suites, as IANA or OpenSSL writes them; empty for all.
    pub names: Vec<String>,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TlsVersion {
    /// 1.2.
    V1_2,
    /// 1.3.
    V1_3,
}
