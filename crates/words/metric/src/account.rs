//! Time breakdown of a worker.

use crate::cell::Cell;

/// Activity of a worker. The time in each activity shows the bottleneck; CPU percent does not.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum TimeState {
    /// Nothing is due: it waits for its schedule.
    Idle,
    /// Something is due and the peer does not take it, or has not answered.
    Blocked,
    /// It runs.
    Running,
    /// Something was due, nothing was in the way, and it did not run.
    Late,
}

impl TimeState {
    /// All of them, in the order of [`AccountCells`].
    pub const ALL: [Self; 4] = [Self::Idle, Self::Blocked, Self::Running, Self::Late];

    /// Its place in [`TimeState::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Nanoseconds that a worker spent in each [`TimeState`], as its shard shows
/// them.
#[derive(Debug, Default)]
pub struct AccountCells {
    /// Waiting for the schedule.
    pub idle: Cell,
    /// Waiting for the peer.
    pub blocked: Cell,
    /// Running.
    pub running: Cell,
    /// Overslept.
    pub late: Cell,
}

impl AccountCells {
    /// The cell of `state`.
    #[must_use]
    pub const fn of(&self, state: TimeState) -> &Cell {
        match state {
            TimeState::Idle => &self.idle,
            TimeState::Blocked => &self.blocked,
            TimeState::Running => &self.running,
            TimeState::Late => &self.late,
        }
    }
}
