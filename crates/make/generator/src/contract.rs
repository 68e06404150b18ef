//! The contract of push transports, and the error of all kinds. Imports no kind.

use std::error::Error;
use std::future::Future;
use std::io;

use stillwell_http::HeadError;
use stillwell_metric::Outcome;
use stillwell_plan::LoadPlanError;
use stillwell_units::TargetError;
use stillwell_wire::DialError;
use stillwell_wire::tls::TlsError;

/// Takes bytes and says nothing back; driven by [`drive`](crate::drive::drive).
pub(crate) trait Transport: 'static {
    /// One open connection or socket.
    type Connection;

    /// Whether each block is a message of its own; else blocks join.
    const IS_MESSAGES: bool;

    /// Opens one more connection.
    fn connect(&self) -> impl Future<Output = Result<Self::Connection, DialError>>;

    /// Hands bytes to the kernel, as many as it takes at once; all or none where
    /// they are a message.
    fn try_send(connection: &Self::Connection, bytes: &[u8]) -> io::Result<usize>;

    /// Waits until the kernel may take more. Cancel-safe.
    fn writable(connection: &Self::Connection) -> impl Future<Output = io::Result<()>>;

    /// Sees to it that what was handed over arrives, before the connection goes. May
    /// be cut off.
    fn finish(_connection: &Self::Connection) -> impl Future<Output = ()> {
        std::future::ready(())
    }

    /// What a refusal by the kernel means.
    fn failure(error: &io::Error) -> Failure;
}

/// What a refusal by the kernel means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Failure {
    pub(crate) outcome: Outcome,
    /// Whether the connection is still good.
    pub(crate) is_good: bool,
}

/// A transport that cannot be prepared.
#[derive(Debug, thiserror::Error)]
#[error("{doing}")]
pub(crate) struct TransportError {
    /// The step that failed, as a fragment before "of generator".
    pub(crate) doing: &'static str,
    pub(crate) source: Box<dyn Error + Send + Sync>,
}

impl TransportError {
    pub(crate) fn new(doing: &'static str, source: impl Error + Send + Sync + 'static) -> Self {
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
