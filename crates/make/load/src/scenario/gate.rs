//! Requests of users in flight, and the end after which none begins.

use std::cell::Cell;
use std::future::pending;

use tokio::sync::Notify;

/// Counts the requests in flight of one worker. It is open until [`Self::close`].
#[derive(Debug, Default)]
pub(super) struct RequestGate {
    in_flight: Cell<usize>,
    is_closed: Cell<bool>,
    last_ended: Notify,
}

/// A request in flight, which ends when this is dropped.
pub(super) struct RequestInFlight<'g>(&'g RequestGate);

impl RequestGate {
    /// Returns at once while the gate is open, and never after that.
    pub(super) async fn pass(&self) {
        if self.is_closed.get() {
            pending::<()>().await;
        }
    }

    /// Begins a request. Never returns after the gate was closed.
    pub(super) async fn begin(&self) -> RequestInFlight<'_> {
        self.pass().await;
        self.in_flight.set(self.in_flight.get() + 1);
        RequestInFlight(self)
    }

    /// Closes the gate and waits until no request is in flight. Cancel-safe.
    pub(super) async fn close(&self) {
        self.is_closed.set(true);
        while self.in_flight.get() > 0 {
            self.last_ended.notified().await;
        }
    }
}

impl Drop for RequestInFlight<'_> {
    fn drop(&mut self) {
        let Self(gate) = self;
        let left = gate.in_flight.get() - 1;
        gate.in_flight.set(left);
        if left == 0 && gate.is_closed.get() {
            gate.last_ended.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn a_closed_gate_begins_nothing_and_waits_for_each_request_in_flight() {
        let gate = RequestGate::default();
        let mut task = Context::from_waker(Waker::noop());
        assert!(pin!(gate.pass()).poll(&mut task).is_ready());
        let mut requests = Vec::new();
        for _ in 0..2 {
            match pin!(gate.begin()).poll(&mut task) {
                Poll::Ready(request) => requests.push(request),
                Poll::Pending => panic!("an open gate does not wait"),
            }
        }
        let mut close = pin!(gate.close());
        assert!(close.as_mut().poll(&mut task).is_pending());
        assert!(pin!(gate.pass()).poll(&mut task).is_pending());
        assert!(pin!(gate.begin()).poll(&mut task).is_pending());
        requests.pop();
        assert!(close.as_mut().poll(&mut task).is_pending());
        requests.pop();
        assert!(close.as_mut().poll(&mut task).is_ready());
    }
}
