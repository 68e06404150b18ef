//! Waits of a worker's parts, on its account of time.

use std::future::poll_fn;
use std::task::{Context, Poll};

use stillwell_scope::clock;

use super::{Wait, Worker};

/// Waits for `what`, and accounts for the time from the first time on that it is
/// not ready, even where the waiting is given up.
pub async fn watched<T>(
    worker: &Worker,
    wait: Wait,
    mut what: impl FnMut(&mut Context<'_>) -> Poll<T>,
) -> T {
    let mut waiting = None;
    poll_fn(|context| {
        let polled = what(context);
        if polled.is_pending() && waiting.is_none() {
            waiting = Some(Waiting::begin(worker, wait));
        }
        polled
    })
    .await
}

/// A wait that lasts until it is dropped.
#[derive(Debug)]
pub(super) struct Waiting<'w> {
    worker: &'w Worker,
    wait: Wait,
}

impl<'w> Waiting<'w> {
    pub(super) fn begin(worker: &'w Worker, wait: Wait) -> Self {
        worker.state.borrow_mut().suspend(wait, clock::now());
        Self { worker, wait }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.worker.state.borrow_mut();
        state.resume(self.wait, clock::now());
    }
}
