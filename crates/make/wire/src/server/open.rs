//! The connections that are open on one listener, with the time of each one's last activity.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;

use stillwell_scope::{Tasks, clock};
use stillwell_units::{Moment, Nanos};
use tokio::task::AbortHandle;

/// Below that a connection is not idle: a client may wait for an answer that comes late.
const IDLE_MIN: Nanos = Nanos::from_secs(5);

/// The connections of one listener. Those that have ended are forgotten now and then.
#[derive(Debug, Default)]
pub struct OpenConnections {
    connections: Vec<OpenConnection>,
    /// Number of connections at which the list is cleared of those that have ended.
    clear_at: usize,
}

#[derive(Debug)]
struct OpenConnection {
    task: AbortHandle,
    active_at: Rc<Cell<Moment>>,
}

impl OpenConnections {
    /// Returns true if `tasks` has room for a connection, or the idlest one at `now` may be
    /// closed for it.
    #[must_use]
    pub fn has_room(&self, tasks: &Tasks, now: Moment) -> bool {
        let is_idle = |open: &OpenConnection| {
            !open.task.is_finished() && now.since(open.active_at.get()) >= IDLE_MIN
        };
        tasks.has_room() || self.connections.iter().any(is_idle)
    }

    /// Starts what `serve` returns, which keeps the time of its last activity in the cell.
    /// Returns true if another connection was closed for it.
    pub fn spawn<F: Future<Output = ()> + 'static>(
        &mut self,
        tasks: &mut Tasks,
        serve: impl FnOnce(Rc<Cell<Moment>>) -> F,
    ) -> bool {
        let is_closed = !tasks.has_room() && self.close_idlest();
        if self.connections.len() >= self.clear_at {
            self.clear();
            self.clear_at = 64.max(self.connections.len() * 2);
        }
        let active_at = Rc::new(Cell::new(clock::now()));
        let task = tasks.spawn(serve(Rc::clone(&active_at)));
        self.connections.push(OpenConnection { task, active_at });
        is_closed
    }

    fn close_idlest(&mut self) -> bool {
        self.clear();
        let active_at = |index: &usize| self.connections[*index].active_at.get();
        let Some(idlest) = (0..self.connections.len()).min_by_key(active_at) else {
            return false;
        };
        self.connections.swap_remove(idlest).task.abort();
        true
    }

    fn clear(&mut self) {
        self.connections.retain(|open| !open.task.is_finished());
    }
}

/// `future`, with the time of its last poll kept in `active_at`.
pub async fn watched<T>(active_at: Rc<Cell<Moment>>, future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    poll_fn(|context| {
        active_at.set(clock::now());
        future.as_mut().poll(context)
    })
    .await
}
