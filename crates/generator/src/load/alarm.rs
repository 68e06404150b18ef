//! The deadline of a request.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use stillwell_metric::Outcome;
use stillwell_scope::clock;
use stillwell_units::{Moment, Nanos};
use tokio::time::{Sleep, sleep};

/// The deadline of the request under way. The runtime's timer is set once every
/// timeout and not for each request.
pub(super) struct Alarm {
    pub(super) deadline: Moment,
    /// Goes off no later than `deadline`.
    sleep: Pin<Box<Sleep>>,
    is_set: bool,
}

impl Alarm {
    pub(super) fn new(timeout: Nanos) -> Self {
        Self {
            deadline: clock::now() + timeout,
            sleep: Box::pin(sleep(timeout.as_duration())),
            is_set: false,
        }
    }

    /// Waits for `what` until the deadline.
    pub(super) async fn wait<T>(
        &mut self,
        mut what: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Result<T, Outcome> {
        poll_fn(|context| match what(context) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending if self.is_over(context) => Poll::Ready(Err(Outcome::TimedOut)),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    /// Whether the deadline has passed; else the task is woken once it has. All
    /// waits are one task's, so that a timer that is set stays so.
    pub(super) fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        if self.is_set && !self.sleep.is_elapsed() {
            return false;
        }
        while self.sleep.as_mut().poll(context).is_ready() {
            let left = self.deadline.since(clock::now());
            let later = self.sleep.deadline() + left.as_duration();
            if left == Nanos::ZERO {
                self.is_set = false;
                return true;
            }
            self.sleep.as_mut().reset(later);
        }
        self.is_set = true;
        false
    }
}
