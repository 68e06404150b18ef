//! Descriptions of gRPC methods from a server. The caller sends the requests: this crate opens no
//! connection.

use std::error::Error;
use std::fmt;

use stillwell_plan::tls::ClientTlsPlan;
use stillwell_units::Nanos;

/// Requests the files that describe a service, by gRPC's reflection.
pub trait Reflection {
    /// Returns the descriptors of the files that describe `request.service`, each encoded
    /// as a `FileDescriptorProto`.
    ///
    /// # Errors
    /// Why there are none.
    fn files(&self, request: &ReflectionRequest) -> Result<Vec<Vec<u8>>, ReflectionFailure>;
}

/// A question to a server about one of its services.
#[derive(Clone, Debug, PartialEq)]
pub struct ReflectionRequest {
    /// `host:port` to dial.
    pub address: String,
    /// TLS settings, if it uses TLS.
    pub tls: Option<ClientTlsPlan>,
    /// Metadata, names in lower case.
    pub headers: Vec<(String, String)>,
    /// Full name of the service.
    pub service: String,
    /// Time limit of the whole exchange.
    pub timeout: Nanos,
}

/// Reason why reflection describes nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReflectionFailureKind {
    /// The server does not offer reflection.
    NotOffered,
    /// The server cannot be reached.
    Unreachable,
    /// Anything else, such as an answer that makes no sense.
    Failed,
}

/// A question to a server that brought no description.
#[derive(Debug)]
pub struct ReflectionFailure {
    kind: ReflectionFailureKind,
    error: Box<dyn Error + Send + Sync>,
}

impl ReflectionFailure {
    /// A failure of `kind`, which reads like `error`.
    pub fn new(
        kind: ReflectionFailureKind,
        error: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        let error = error.into();
        Self { kind, error }
    }

    /// Returns true if the server does not offer reflection.
    #[must_use]
    pub fn is_not_offered(&self) -> bool {
        self.kind == ReflectionFailureKind::NotOffered
    }

    /// Returns true if the server cannot be reached.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        self.kind == ReflectionFailureKind::Unreachable
    }
}

impl fmt::Display for ReflectionFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl Error for ReflectionFailure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}
