//! Against the kernel itself.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "wire/client.rs"]
mod client;
#[path = "wire/dial.rs"]
mod dial;
#[path = "wire/listen.rs"]
mod listen;
#[path = "wire/quic.rs"]
mod quic;
#[path = "wire/timer.rs"]
mod timer;
#[path = "wire/tls.rs"]
mod tls;

use std::future::Future;

use stillwell_scope::{PartError, Place, Scope, Token};
use stillwell_units::Nanos;

/// Runs `body` on a worker and fails as it fails.
fn on_worker<F>(body: impl FnOnce() -> F + Send + 'static)
where
    F: Future<Output = Result<(), PartError>>,
{
    let mut scope = Scope::new(&Token::new());
    scope
        .worker(Place::default(), "test", |_| body())
        .expect("a thread can be started");
    for end in scope.close(Nanos::from_secs(60)) {
        end.result.expect("nothing in the body fails");
    }
}
