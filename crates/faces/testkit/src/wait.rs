//! Waiting for a thing itself.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A TCP port of loopback that was free a moment ago.
///
/// # Panics
/// If the kernel has none.
#[must_use]
pub fn free_port() -> u16 {
    // The kernel may give a port again as soon as it is free.
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    loop {
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .expect("the kernel has a free port")
            .port();
        let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
        if given.insert(port) {
            return port;
        }
    }
}

/// Asks `done` until it says yes, but not longer than `at_most`; whether it did.
#[expect(
    clippy::disallowed_methods,
    reason = "tests have no scope; this pauses between questions and never hopes"
)]
pub fn wait_until(at_most: Duration, mut done: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + at_most;
    loop {
        if done() {
            return true;
        }
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
