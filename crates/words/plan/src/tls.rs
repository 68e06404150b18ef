//! Settings of both ends of a TLS connection.

use std::path::{Path, PathBuf};

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
    /// Against the roots that ship with Stillwell, and further ones.
    Roots {
        /// Sources of further roots.
        extra: Vec<RootSource>,
        /// True if the roots of Stillwell count, or only the further ones.
        public: bool,
    },
    /// The certificate must carry the name, and may be of any origin: a man in the middle is
    /// possible.
    Name,
    /// No verification: a man in the middle is possible.
    None,
}

/// The word for the certificates of the host.
const SYSTEM: &str = "system";

/// Source of root certificates. As text it is the word `system` or a path; a file of that
/// name is `./system`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(from = "PathBuf", into = "PathBuf")]
pub enum RootSource {
    /// A PEM file.
    File(PathBuf),
    /// The certificates of the host that connects.
    System,
}

impl From<PathBuf> for RootSource {
    /// Reads `system` or a path, as users write them.
    fn from(text: PathBuf) -> Self {
        match text.as_os_str() == SYSTEM {
            true => Self::System,
            false => Self::File(text),
        }
    }
}

impl From<RootSource> for PathBuf {
    fn from(source: RootSource) -> Self {
        match source {
            RootSource::System => SYSTEM.into(),
            RootSource::File(path) if path.as_os_str() == SYSTEM => Path::new(".").join(path),
            RootSource::File(path) => path,
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Other tools name files without that word: such a file is one in a plan that is read
    /// back, too.
    #[test]
    fn the_word_system_is_the_host_and_a_path_is_a_file() {
        for (text, is_system) in [
            ("system", true),
            ("./system", false),
            ("/etc/system", false),
            ("system.pem", false),
            ("System", false),
        ] {
            let source = RootSource::from(PathBuf::from(text));
            assert_eq!(source == RootSource::System, is_system, "{text}");
            let written = serde_json::to_string(&source).unwrap();
            assert_eq!(written, format!("\"{text}\""));
            let read: RootSource = serde_json::from_str(&written).unwrap();
            assert_eq!(read, source, "{text}");
        }
        let file = RootSource::File("system".into());
        assert_eq!(serde_json::to_string(&file).unwrap(), "\"./system\"");
    }
}
