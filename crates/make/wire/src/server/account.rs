//! Time breakdown of a worker.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;

use stillwell_metric::{AccountCells, TimeState};
use stillwell_scope::clock;
use stillwell_units::Moment;

use super::worker::ServerWorker;

/// The time of one worker up to its last look at the clock: while one of its
/// futures is polled it runs, else it waits for data.
#[derive(Debug)]
pub struct TimeAccount {
    until: Cell<Moment>,
}

impl TimeAccount {
    /// Begins now.
    #[must_use]
    pub fn begin() -> Self {
        Self {
            until: Cell::new(clock::now()),
        }
    }

    /// Adds the time since the last call to `state`, and returns the time of this call.
    pub fn pass(&self, state: TimeState, cells: &AccountCells) -> Moment {
        let now = clock::now();
        cells.of(state).add(now.since(self.until.get()).as_u64());
        self.until.set(now);
        now
    }
}

/// `future`, with the time in which it is polled accounted as running. To be
/// put around each of a worker's tasks, never around a part of one.
pub async fn accounted<T>(worker: Rc<ServerWorker>, future: impl Future<Output = T>) -> T {
    active(worker, Rc::default(), future).await
}

/// The same, and keeps the time of the last poll in `activity`. While a part of `future` is
/// [`busy`](super::open::busy), the connection is not idle.
pub(super) async fn active<T>(
    worker: Rc<ServerWorker>,
    activity: Rc<Cell<Moment>>,
    future: impl Future<Output = T>,
) -> T {
    let mut future = pin!(future);
    poll_fn(|context| {
        let cells = &worker.shard.account;
        // Before the poll, in which a part that is busy sets another time.
        activity.set(worker.account.pass(TimeState::Idle, cells));
        let before = worker.shard.bytes.total();
        let polled = future.as_mut().poll(context);
        let now = worker.account.pass(TimeState::Running, cells);
        if worker.shard.bytes.total() != before {
            worker.shard.received_at.set(now.as_u64());
        }
        polled
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::Arc;
    use std::task::{Context, Waker};

    use stillwell_metric::{Labels, SinkShard};
    use stillwell_scope::Token;

    use super::super::open::{Activity, busy};
    use super::*;

    #[test]
    fn a_connection_is_active_at_each_poll_and_at_all_times_while_a_part_is_busy() {
        let shard = SinkShard::new(Labels::none());
        let worker = Rc::new(ServerWorker::new(Arc::new(shard), Token::new()));
        for is_busy in [false, true] {
            let activity = Activity::default();
            let waiting = async {
                if is_busy {
                    busy(&activity, pending::<()>()).await;
                } else {
                    pending::<()>().await;
                }
            };
            let before = clock::now();
            let mut waiting = pin!(active(Rc::clone(&worker), Rc::clone(&activity), waiting));
            let mut context = Context::from_waker(Waker::noop());
            assert!(waiting.as_mut().poll(&mut context).is_pending());
            assert!(activity.get() >= before);
            assert_eq!(activity.get() > clock::now(), is_busy);
        }
    }
}
