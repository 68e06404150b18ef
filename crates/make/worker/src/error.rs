//! The error of transports that cannot be prepared.

use std::error::Error;

use stillwell_http::HeadError;
use stillwell_plan::load::LoadPlanError;
use stillwell_units::TargetError;
use stillwell_wire::tls::TlsError;

/// A transport that cannot be prepared.
#[derive(Debug, thiserror::Error)]
#[error("{doing}")]
pub struct TransportError {
    /// The step that failed, as a fragment before "of generator".
    pub doing: &'static str,
    /// The cause.
    pub source: Box<dyn Error + Send + Sync>,
}

impl TransportError {
    /// The step `doing` failed because of `source`.
    pub fn new(doing: &'static str, source: impl Error + Send + Sync + 'static) -> Self {
        let source = Box::new(source);
        Self { doing, source }
    }
}

impl From<TargetError> for TransportError {
    fn from(source: TargetError) -> Self {
        Self::new("read the target", source)
    }
}

impl From<HeadError> for TransportError {
    fn from(source: HeadError) -> Self {
        Self::new("write the request head", source)
    }
}

impl From<LoadPlanError> for TransportError {
    fn from(source: LoadPlanError) -> Self {
        Self::new("plan the requests", source)
    }
}

impl From<TlsError> for TransportError {
    fn from(source: TlsError) -> Self {
        Self::new("prepare TLS", source)
    }
}
