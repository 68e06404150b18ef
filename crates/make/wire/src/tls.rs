//! TLS by rustls and tokio-rustls: the configuration of both ends, and the stream.
//!
//! A [`ClientTls`] or [`ServerTls`] is made once from its plan, before any worker starts, so
//! a missing file, a wrong key or an unknown suite is an error early. Each worker takes
//! a copy by `for_worker`, and makes a [`TlsStream`] of each connection. A handshake is
//! measured; a failure is a [`HandshakeError`], which says what to do.

mod client;
mod failure;
mod greeting;
mod host_roots;
mod pem;
mod server;
mod stream;
mod suites;
mod unverified;

pub use client::ClientTls;
pub use failure::{HandshakeError, HandshakeFailure};
pub use greeting::{Greeting, TlsGreeting, read_greeting};
pub use server::ServerTls;
pub use stream::{Handshake, TlsStream};
pub(crate) use suites::{name_of as suite_name, name_of_signature};

use std::path::PathBuf;

/// Reasons for which TLS cannot be configured.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("read {path}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// A text that should be PEM is not.
    #[error("{place} is not PEM: {message}")]
    Pem {
        /// The file, or what it is for.
        place: String,
        /// The cause.
        message: String,
    },
    /// A PEM file without what is looked for.
    #[error("{place} holds no {missing}: a section `-----BEGIN {section}-----` is expected")]
    Missing {
        /// The file, or what it is for.
        place: String,
        /// The missing part.
        missing: &'static str,
        /// The section that holds it.
        section: &'static str,
    },
    /// A root certificate that is none.
    #[error("{place} holds a certificate that cannot be used as a root certificate")]
    Root {
        /// The file.
        place: String,
        /// The cause.
        source: rustls::Error,
    },
    /// The host has no certificate of an authority.
    #[error(
        "load the certificates of this host (`system`): {cause}; set SSL_CERT_FILE to a file \
         of certificates in PEM, or SSL_CERT_DIR to a folder of such files"
    )]
    HostRoots {
        /// The cause.
        cause: String,
    },
    /// A certificate and a key that cannot be used together.
    #[error("use the certificate in {certificates} with the key in {key}")]
    Identity {
        /// The file of the certificate.
        certificates: String,
        /// The file of the key.
        key: String,
        /// The cause.
        source: rustls::Error,
    },
    /// A certificate or a key of a kind that TLS has given up.
    #[error(
        "{place} is for a DSA key, which TLS no longer supports: make one with RSA of \
         2048 bits or more, ECDSA over P-256 or P-384, or Ed25519"
    )]
    Dsa {
        /// The file, or what it is for.
        place: String,
    },
    /// A cipher suite that there is none of.
    #[error("unknown cipher suite `{name}`: the accepted ones are {accepted}")]
    Suite {
        /// The name.
        name: String,
        /// Those that are, by OpenSSL's names.
        accepted: String,
    },
    /// No suite is left for the versions, or no version at all.
    #[error("no cipher suite is left for the requested versions of TLS")]
    NothingLeft,
    /// QUIC, and no TLS 1.3.
    #[error(
        "HTTP/3 needs TLS 1.3 and one of its cipher suites, which are not among the requested ones"
    )]
    NoTls13,
    /// A name that no certificate can carry.
    #[error("`{name}` is neither a host name nor an address")]
    ServerName {
        /// The name.
        name: String,
    },
    /// A self-signed certificate cannot be made.
    #[error("make a certificate for {names}: {message}")]
    SelfSigned {
        /// Its names.
        names: String,
        /// The cause.
        message: String,
    },
    /// Anything else that the library refuses.
    #[error("configure TLS")]
    Refused {
        /// The cause.
        source: rustls::Error,
    },
}
