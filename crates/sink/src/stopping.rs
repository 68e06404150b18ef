//! How a loop over a socket ends.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use stillwell_scope::{Token, clock};
use stillwell_units::{Moment, Nanos};
use tokio::task::yield_now;
use tokio_util::sync::WaitForCancellationFutureOwned;

/// So long a loop goes on taking what its socket holds already,
const DRAIN_MAX: Nanos = Nanos::from_millis(100);
/// and so much, where it was off its CPU for all of that time.
const DRAIN_ITEMS: u32 = 1024;

/// Ends a loop over a socket once its token asks for that and the socket holds
/// nothing more, or once it has had [`DRAIN_MAX`] and [`DRAIN_ITEMS`] since.
#[derive(Debug)]
pub(crate) struct Stopping {
    token: Token,
    cancelled: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Set when the loop first hears that it is to end.
    drained_by: Option<Moment>,
    drained_items: u32,
    /// Whether the kernel was asked since anything last came.
    asked: bool,
}

impl Stopping {
    pub(crate) fn new(token: &Token) -> Self {
        Self {
            token: token.clone(),
            cancelled: Box::pin(token.clone().cancelled_owned()),
            drained_by: None,
            drained_items: 0,
            asked: false,
        }
    }

    /// The next that `poll` gives; `None` once the loop is to end. Cancel-safe
    /// where `poll` is.
    pub(crate) async fn next<T>(
        &mut self,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Option<T> {
        loop {
            if self.is_overdue() {
                return None;
            }
            let cancelled = self.cancelled.as_mut();
            if let Some(next) = ready_or_cancelled(cancelled, &mut poll).await {
                self.asked = false;
                return Some(next);
            }
            if self.asked {
                return None;
            }
            // What the runtime knows of the socket may be old, and a task that
            // has done much is told that nothing is there: yielding mends both.
            self.asked = true;
            yield_now().await;
        }
    }

    fn is_overdue(&mut self) -> bool {
        if !self.token.is_cancelled() {
            return false;
        }
        let now = clock::now();
        let drained_by = *self.drained_by.get_or_insert(now + DRAIN_MAX);
        self.drained_items = self.drained_items.saturating_add(1);
        self.drained_items > DRAIN_ITEMS && now > drained_by
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
