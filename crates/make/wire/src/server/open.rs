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

/// The last activity of a connection that must not be closed as idle.
const NEVER_IDLE: Moment = Moment::new(u64::MAX);

/// The time of a connection's last activity.
pub type Activity = Rc<Cell<Moment>>;

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
    active_at: Activity,
}

impl OpenConnections {
    /// Returns true if `tasks` has room for a connection, or the idlest one at `now` may be
    /// closed for it.
    #[must_use]
    pub fn has_room(&self, tasks: &Tasks, now: Moment) -> bool {
        let is_open = |open: &&OpenConnection| !open.task.is_finished();
        let open = self.connections.iter().filter(is_open);
        tasks.has_room() || idlest(open.map(|open| open.active_at.get()), now).is_some()
    }

    /// Starts the future of `serve`, which keeps the time of its last activity in the cell. Returns true if another
    /// connection was closed for it. Where none is idle any more, all stay open, one more than the limit.
    pub fn spawn<F: Future<Output = ()> + 'static>(
        &mut self,
        tasks: &mut Tasks,
        serve: impl FnOnce(Activity) -> F,
    ) -> bool {
        let now = clock::now();
        let is_closed = !tasks.has_room() && self.close_idlest(now);
        if self.connections.len() >= self.clear_at {
            self.clear();
            self.clear_at = 64.max(self.connections.len() * 2);
        }
        let active_at = Rc::new(Cell::new(now));
        let task = tasks.spawn(serve(Rc::clone(&active_at)));
        self.connections.push(OpenConnection { task, active_at });
        is_closed
    }

    fn close_idlest(&mut self, now: Moment) -> bool {
        self.clear();
        let active_at = self.connections.iter().map(|open| open.active_at.get());
        let Some(idlest) = idlest(active_at, now) else {
            return false;
        };
        self.connections.swap_remove(idlest).task.abort();
        true
    }

    fn clear(&mut self) {
        self.connections.retain(|open| !open.task.is_finished());
    }
}

/// Returns the index of the connection that has been idle longest at `now`, by the last activity of each; `None` where
/// none is idle.
fn idlest(active_at: impl Iterator<Item = Moment>, now: Moment) -> Option<usize> {
    let idle = active_at
        .enumerate()
        .filter(|(_, active_at)| now.since(*active_at) >= IDLE_MIN);
    let idlest = idle.min_by_key(|(_, active_at)| *active_at);
    idlest.map(|(index, _)| index)
}

/// `future`, with the time of its last poll kept in `active_at`.
pub async fn watched<T>(active_at: Activity, future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    poll_fn(|context| {
        active_at.set(clock::now());
        future.as_mut().poll(context)
    })
    .await
}

/// `future`, a part of one that is [`watched`] or that [`accept`](fn@super::accept) serves. While it waits the connection
/// is not idle: its client waits for its server, or something that was received would be lost with it.
pub async fn busy<T>(active_at: &Activity, future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    poll_fn(|context| {
        let polled = future.as_mut().poll(context);
        if polled.is_pending() {
            active_at.set(NEVER_IDLE);
        }
        polled
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn only_a_connection_without_activity_for_five_seconds_is_closed_for_another() {
        let now = Moment::new(60_000_000_000);
        let ago = |millis: u64| now - Nanos::from_millis(millis);
        for (active_at, expected) in [
            (vec![], None),
            (vec![ago(0), ago(4999)], None),
            (vec![ago(4999), ago(5000)], Some(1)),
            (vec![ago(6000), ago(9000), ago(7000)], Some(1)),
            (vec![NEVER_IDLE, ago(1000)], None),
            (vec![NEVER_IDLE, ago(8000)], Some(1)),
        ] {
            let shown = format!("{active_at:?}");
            assert_eq!(idlest(active_at.into_iter(), now), expected, "{shown}");
        }
    }

    /// Polls `future` once, which waits then; returns true if its connection is idle a minute later.
    fn becomes_idle(active_at: &Activity, future: impl Future<Output = ()>) -> bool {
        let mut future = pin!(watched(Rc::clone(active_at), future));
        let mut context = Context::from_waker(Waker::noop());
        assert!(future.as_mut().poll(&mut context).is_pending());
        let later = clock::now() + Nanos::from_secs(60);
        idlest([active_at.get()].into_iter(), later).is_some()
    }

    #[test]
    fn a_connection_is_idle_while_it_waits_for_its_client_and_not_for_its_server() {
        let active_at = Activity::default();
        assert!(becomes_idle(&active_at, pending()));
        assert!(!becomes_idle(&active_at, busy(&active_at, pending())));
        let waits_again = async {
            busy(&active_at, ready(())).await;
            pending().await
        };
        assert!(becomes_idle(&active_at, waits_again));
    }
}
