//! SIGINT and SIGTERM ask for the end; the run then ends in its own order.

use stillwell_scope::{Place, Scope, Token};
use tokio::signal::unix::{SignalKind, signal};

const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;

/// Calls `raise` with the number of every SIGINT and SIGTERM that comes, from a
/// thread of the returned scope, until that is closed.
///
/// # Errors
/// The kernel's answer where it gives no thread.
pub(crate) fn listen(raise: impl Fn(i32) + Send + 'static) -> std::io::Result<Scope> {
    let mut scope = Scope::new(&Token::new());
    scope.worker(Place::default(), "signals", move |token| async move {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        loop {
            // All three are cancel-safe: a signal that came stays noted.
            tokio::select! {
                () = token.cancelled() => return Ok(()),
                _ = interrupt.recv() => raise(SIGINT),
                _ = terminate.recv() => raise(SIGTERM),
            }
        }
    })?;
    Ok(scope)
}
