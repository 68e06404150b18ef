//! The deadline of a request.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use stillwell_metric::Outcome;
use stillwell_scope::clock;
use stillwell_units::{Moment, Nanos};
use tokio::task::unconstrained;
use tokio::time::{Sleep, sleep};

/// The deadline of the request under way. The runtime's timer is set once every
/// timeout and not for each request.
pub(super) struct Alarm {
    pub(super) deadline: Moment,
    /// Goes off no later than `deadline`.
    sleep: Pin<Box<Sleep>>,
    /// Waker of the task that `sleep` wakes; `None` if it is not set.
    waker: Option<Waker>,
}

impl Alarm {
    pub(super) fn new(timeout: Nanos) -> Self {
        Self {
            deadline: clock::now() + timeout,
            sleep: Box::pin(sleep(timeout.as_duration())),
            waker: None,
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

    /// Returns true if the deadline has passed; else the task is woken at the deadline. A timer
    /// that is set for this task is kept; a wait of another task sets it again.
    pub(super) fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        let waker = context.waker();
        let is_set = self.waker.as_ref().is_some_and(|set| set.will_wake(waker));
        if is_set && !self.sleep.is_elapsed() {
            return false;
        }
        loop {
            let left = self.deadline.since(clock::now());
            if left == Nanos::ZERO {
                self.waker = None;
                return true;
            }
            if self.sleep.is_elapsed() {
                let later = self.sleep.deadline() + left.as_duration();
                self.sleep.as_mut().reset(later);
            }
            // A task that reads without a pause is kept from its timers, too: a peer
            // that never stops talking would never be too late.
            if pin!(unconstrained(self.sleep.as_mut()))
                .poll(context)
                .is_pending()
            {
                self.waker = Some(context.waker().clone());
                return false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::fixture::block_on;

    /// Reading took the task's whole turn, and the timer was never looked at.
    #[test]
    fn a_peer_that_never_stops_sending_was_never_too_late() {
        block_on(async {
            let mut alarm = Alarm::new(Nanos::from_millis(20));
            loop {
                // As a stream does that always has something to read.
                let read = alarm.wait(|context| pin!(tokio::task::consume_budget()).poll(context));
                if let Err(outcome) = read.await {
                    return assert_eq!(outcome, Outcome::TimedOut);
                }
            }
        });
    }

    /// The timer woke only the task of the first wait: a later user of the same connection waited
    /// for a silent peer without end.
    #[test]
    fn a_deadline_wakes_the_task_that_waits_for_it_last() {
        block_on(async {
            let timeout = Nanos::from_millis(20);
            let mut alarm = Alarm::new(timeout);
            let mut earlier = Context::from_waker(Waker::noop());
            let first = pin!(alarm.wait(|_| Poll::<()>::Pending)).poll(&mut earlier);
            // A thread that stalls is late already.
            assert!(matches!(first, Poll::Pending | Poll::Ready(Err(_))));
            alarm.deadline = clock::now() + timeout;
            let last = alarm.wait(|_| Poll::<()>::Pending);
            let waited = tokio::time::timeout(Duration::from_secs(60), last)
                .await
                .expect("the deadline woke no task");
            assert_eq!(waited, Err(Outcome::TimedOut));
        });
    }
}
