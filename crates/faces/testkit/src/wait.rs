//! Waiting for a thing itself.

use std::net::{TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Limit of a wait in tests. Nothing that succeeds takes this long, even on a machine with ten runnable programs for each CPU.
pub const LONG: Duration = Duration::from_secs(180);

/// First port of [`free_port`]. All are below those that Linux gives to clients and to servers at port 0, which may take a port
/// between this function and its use.
const FIRST_PORT: u32 = 20_000;
const PORTS: u32 = 12_000;

/// A port of loopback that is free for TCP and UDP.
///
/// # Panics
/// If there is none.
#[must_use]
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Processes begin at different ports.
    let offset = std::process::id().wrapping_mul(997);
    for _ in 0..PORTS {
        let number = offset.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(FIRST_PORT + number % PORTS).expect("it is below 32,000");
        let address = ("127.0.0.1", port);
        if TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok() {
            return port;
        }
    }
    panic!("no port from {FIRST_PORT} on is free");
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
