//! Waiting for others, who cannot wake this process.

use std::sync::mpsc::{RecvTimeoutError, sync_channel};

use stillwell_run::Interrupt;
use stillwell_units::Nanos;

/// The longest wait that an interrupt does not end.
const SLICE: Nanos = Nanos::from_millis(20);

/// Waits for `length`, or until `interrupt` is raised.
pub(crate) fn pause(interrupt: &Interrupt, length: Nanos) {
    let (_keep, receiver) = sync_channel::<()>(0);
    let mut rest = length;
    while rest > Nanos::ZERO && interrupt.signal().is_none() {
        let slice = rest.min(SLICE);
        // Nothing is ever sent, so this waits for the whole length.
        match receiver.recv_timeout(slice.as_duration()) {
            Ok(()) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        rest = rest.saturating_sub(slice);
    }
}
