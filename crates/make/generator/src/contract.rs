//! The contract of push transports. Imports no kind.

use std::future::Future;
use std::io;

use stillwell_metric::Outcome;
use stillwell_wire::{DialError, stream_outcome};

/// Takes bytes and says nothing back; driven by [`drive`](crate::drive::drive).
pub(crate) trait Transport: 'static {
    /// One open connection or socket.
    type Connection;

    /// True where each block is a message; else blocks join.
    const IS_MESSAGES: bool;

    /// Opens one more connection.
    fn connect(&self) -> impl Future<Output = Result<Self::Connection, DialError>>;

    /// Hands bytes to the kernel, as many as it takes at once; all or none where
    /// they are a message. Only a file may take part of a message: the next call then returns
    /// the error.
    fn try_send(connection: &Self::Connection, bytes: &[u8]) -> io::Result<usize>;

    /// Waits until the kernel may take more. Cancel-safe.
    fn writable(connection: &Self::Connection) -> impl Future<Output = io::Result<()>>;

    /// Closes the connection after all bytes that were handed over have arrived. May be
    /// cancelled.
    fn finish(_connection: Self::Connection) -> impl Future<Output = ()> {
        std::future::ready(())
    }

    /// Returns the meaning of a refusal by the kernel; unless stated otherwise, that of a stream.
    fn failure(error: &io::Error) -> Failure {
        Failure {
            outcome: stream_outcome(error),
            is_good: false,
        }
    }
}

/// Meaning of a refusal by the kernel.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Failure {
    pub(crate) outcome: Outcome,
    /// True where the connection is still usable.
    pub(crate) is_good: bool,
}
