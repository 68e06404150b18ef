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

/// The same, and keeps the time of the last poll in `activity`.
pub(super) async fn active<T>(
    worker: Rc<ServerWorker>,
    activity: Rc<Cell<Moment>>,
    future: impl Future<Output = T>,
) -> T {
    let mut future = pin!(future);
    poll_fn(|context| {
        let cells = &worker.shard.account;
        worker.account.pass(TimeState::Idle, cells);
        let before = worker.shard.bytes.total();
        let polled = future.as_mut().poll(context);
        let now = worker.account.pass(TimeState::Running, cells);
        activity.set(now);
        if worker.shard.bytes.total() != before {
            worker.shard.received_at.set(now.as_u64());
        }
        polled
    })
    .await
}
