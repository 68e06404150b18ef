//! The end of a loop over a socket.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use stillwell_units::{Moment, Nanos};
use tokio::task::yield_now;
use tokio::time::timeout;
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::{Token, clock};

/// Time in which a loop that must end still reads what its socket has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Drain {
    /// Longest time.
    pub length: Nanos,
    /// and until it has taken so many items since, in case that it was off its
    /// CPU for all of that time.
    pub items: u32,
    /// Longest wait for each next item within that time: more items of a stream may still be at the
    /// sender. Zero where all that was sent is in the socket.
    pub quiet: Nanos,
}

/// Ends a loop over a socket once its token is cancelled and nothing more arrives, or once its
/// [`Drain`] is over.
#[derive(Debug)]
pub struct Stopping {
    token: Token,
    cancelled: Pin<Box<WaitForCancellationFutureOwned>>,
    drain: Drain,
    /// Set when the loop first sees the cancellation.
    drained_by: Option<Moment>,
    drained_items: u32,
    /// True if the kernel was polled since the last item.
    was_polled: bool,
}

impl Stopping {
    /// For one loop, which ends by `token`.
    #[must_use]
    pub fn new(token: &Token, drain: Drain) -> Self {
        Self {
            token: token.clone(),
            cancelled: Box::pin(token.clone().cancelled_owned()),
            drain,
            drained_by: None,
            drained_items: 0,
            was_polled: false,
        }
    }

    /// The next that `poll` gives; `None` once the loop is to end. Cancel-safe
    /// where `poll` is. For a worker of a [`crate::Scope`].
    pub async fn next<T>(
        &mut self,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Option<T> {
        loop {
            if self.is_overdue() {
                return None;
            }
            let cancelled = self.cancelled.as_mut();
            if let Some(next) = ready_or_cancelled(cancelled, &mut poll).await {
                self.was_polled = false;
                return Some(next);
            }
            if self.was_polled {
                let next = self.wait(&mut poll).await?;
                self.was_polled = false;
                return Some(next);
            }
            // The runtime's state of the socket may be old, and a task that has done much gets
            // `Pending`: yielding corrects both.
            self.was_polled = true;
            yield_now().await;
        }
    }

    /// Waits for the next item during the drain.
    async fn wait<T>(&self, poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Option<T> {
        let left = self.drained_by?.since(clock::now());
        let quiet = self.drain.quiet.min(left);
        if quiet == Nanos::ZERO {
            return None;
        }
        // The socket is polled before the clock is read, because this thread may have had no CPU.
        timeout(quiet.as_duration(), poll_fn(poll)).await.ok()
    }

    fn is_overdue(&mut self) -> bool {
        if !self.token.is_cancelled() {
            return false;
        }
        let now = clock::now();
        let drained_by = *self.drained_by.get_or_insert(now + self.drain.length);
        self.drained_items = self.drained_items.saturating_add(1);
        self.drained_items > self.drain.items && now > drained_by
    }
}

async fn ready_or_cancelled<T>(
    mut cancelled: Pin<&mut WaitForCancellationFutureOwned>,
    mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
) -> Option<T> {
    poll_fn(|context| match poll(context) {
        Poll::Ready(next) => Poll::Ready(Some(next)),
        Poll::Pending => cancelled.as_mut().poll(context).map(|()| None),
    })
    .await
}

#[cfg(test)]
mod tests;
