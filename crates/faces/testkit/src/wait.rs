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
    // The kernel may return a port again as soon as it is free.
    static USED: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    loop {
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .expect("the kernel has a free port")
            .port();
        let mut used = USED.lock().unwrap_or_else(PoisonError::into_inner);
        if used.insert(port) {
            return port;
        }
    }
}

/// Polls `done` until it returns true, at most for `at_most`. Returns the last result.
#[expect(
    clippy::disallowed_methods,
    reason = "tests have no scope; this pauses between polls"
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
