//! SIGINT and SIGTERM ask for the end; the run then ends in its own order.

use std::sync::mpsc::sync_channel;

use stillwell_scope::{Place, Scope, Token};
use tokio::signal::unix::{SignalKind, signal};

const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;

/// Calls `raise` with the number of every SIGINT and SIGTERM that comes, from a
/// thread of the returned scope, until that is closed. When this returns none is
/// missed any more: who reads that something listens may signal at once.
///
/// # Errors
/// The kernel's answer where it gives no thread.
pub(crate) fn listen(raise: impl Fn(i32) + Send + 'static) -> std::io::Result<Scope> {
    let mut scope = Scope::new(&Token::new());
    // Nothing is ever sent: that the sender has gone says that all is in place.
    let (installing, installed) = sync_channel::<()>(1);
    scope.worker(Place::default(), "signals", move |token| async move {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        drop(installing);
        loop {
            // All three are cancel-safe: a signal that came stays noted.
            tokio::select! {
                () = token.cancelled() => return Ok(()),
                _ = interrupt.recv() => raise(SIGINT),
                _ = terminate.recv() => raise(SIGTERM),
            }
        }
    })?;
    installed.recv().unwrap_or_default();
    Ok(scope)
}
