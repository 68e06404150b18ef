//! The state of a worker: schedule and time. Reads no clock.
//!
//! Schedule and time breakdown go by *worker time*. It is the clock's time, but pauses while
//! a worker that takes turns waits for its turn. Other moments are the clock's.

#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::sync::Arc;

use stillwell_metric::{GeneratorShard, Recorder, TimeState};
use stillwell_pacer::{Schedule, TimeAccount, Turns, lateness};
use stillwell_payload::BlockSet;
use stillwell_plan::RateUnit;
use stillwell_units::{Moment, Nanos, as_usize, floor_to_u64};

use crate::slice::{Most, Reach, Slice, last_within, pass, units};

/// A sleep that took no longer than this beyond its end was not late.
const OVERSLEPT_MIN: Nanos = Nanos::from_millis(1);

/// If the next send is nearer than this, a worker that shares its CPU does not wake for it
/// alone…
const COALESCE_BELOW: Nanos = Nanos::new(100_000);
/// …except for all that is due after this.
const COALESCE_TO: Nanos = Nanos::new(200_000);

/// Interval at which the shard's time breakdown is brought up to date under load.
const PUBLISH_EVERY: Nanos = Nanos::from_millis(10);

/// Lateness is recorded for each block of a slice of at most this many, and for
/// the first, which is the latest, of a larger one.
const LATENESS_EACH_MAX: usize = 64;

/// Pause of a task that has nothing left to send; the end of the load ends it.
const NOTHING_LEFT: Nanos = Nanos::from_secs(3600);

/// The event that a part of the worker waits for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Wait {
    /// For the schedule, until then.
    Schedule(Moment),
    /// For room to write the rest of what was begun.
    Room,
    /// For anything else: an answer, a connection, its turn.
    Other,
}

/// The next step.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Next {
    /// To send this.
    Send(Slice),
    /// Nothing before then.
    SleepUntil(Moment),
}

/// The schedule of a worker, and its account of time.
#[derive(Debug)]
pub struct State {
    /// In worker_time time.
    pub(crate) schedule: Schedule,
    /// When it may send at all, where it takes turns.
    pub(crate) turns: Option<Turns>,
    pub(crate) unit: RateUnit,
    pub(crate) is_max: bool,
    pub(crate) reserved: bool,
    /// Nothing is sent earlier, however fast.
    pub(crate) start: Moment,
    /// When the account was opened.
    pub(crate) opened: Moment,
    pub(crate) shard: Arc<GeneratorShard>,
    pub(crate) lateness: Recorder,
    pub(crate) response_time: Recorder,
    pub(crate) service_time: Recorder,
    /// In worker_time time: what is beyond it is waiting for a turn.
    pub(crate) account: TimeAccount,
    /// The time until which a task waits for the schedule, in worker time.
    pub(crate) asleep_until: Option<Moment>,
    /// Number of tasks that wait with something half written.
    pub(crate) half_written: u32,
    pub(crate) published_at: Moment,
    /// After the stop, `requested_units` no longer grows.
    pub(crate) stopped: bool,
    /// True if the intended time of the last block of a slice is needed.
    pub(crate) stamps: bool,
    /// Number of blocks still to be taken, where they have an end.
    pub(crate) blocks_left: Option<u64>,
    /// Slices that were taken and are not finished.
    pub(crate) unfinished: u64,
}

impl State {
    /// Takes what is due from the blocks at `next`: at most `most`, or one block.
    pub(crate) fn take(
        &mut self,
        set: &BlockSet,
        next: &Cell<usize>,
        most: impl Into<Most>,
        now: Moment,
    ) -> Next {
        let intended = match self.look(now) {
            Ok(intended) => intended,
            Err(at) => return Next::SleepUntil(at),
        };
        let worker_time = self.worker_time(now);
        let due = self.schedule.due(worker_time);
        let unit = self.unit;
        let first = next.get();
        let most = most.into();
        let reach = Reach { most, due, unit };
        let last = self.within_end(first, last_within(set, first, reach));
        let intended_last = if self.stamps {
            let before = units(set, first, last - 1, unit);
            self.schedule.due_as_a_whole(before + 1, worker_time)
        } else {
            intended
        };
        let slice = Slice {
            first,
            last,
            intended,
            intended_last,
        };
        self.record_lateness(set, slice, worker_time);
        self.schedule.advance(units(set, first, last, unit));
        pass(set, next, last);
        if let Some(left) = &mut self.blocks_left {
            *left = left.saturating_sub((last - first) as u64);
        }
        self.unfinished += 1;
        Next::Send(slice)
    }

    /// `last`, or where nothing more is to be taken after it.
    fn within_end(&self, first: usize, last: usize) -> usize {
        let left = self.blocks_left.unwrap_or(u64::MAX);
        let left = as_usize(left);
        last.min(first.saturating_add(left))
    }

    /// Returns true once all blocks are taken and finished.
    pub(crate) const fn is_done(&self) -> bool {
        matches!(self.blocks_left, Some(0)) && self.unfinished == 0
    }

    /// The intended time, in worker_time time, of what is due; or when to look again.
    pub fn look(&mut self, now: Moment) -> Result<Moment, Moment> {
        if now < self.start {
            return Err(self.start);
        }
        if self.blocks_left == Some(0) {
            return Err(now + NOTHING_LEFT);
        }
        if let Some(turns) = &self.turns
            && !turns.is_on(now)
        {
            let turn = turns.next_change(now);
            // Publishes the totals of the turn that has ended.
            self.publish(now);
            return Err(turn);
        }
        let worker_time = self.worker_time(now);
        let intended = self.schedule.next_due(worker_time);
        if self.schedule.due(worker_time) == 0 {
            return Err(self.wake_at(intended, now));
        }
        Ok(intended)
    }

    /// Worker time at `now`.
    #[must_use]
    pub fn worker_time(&self, now: Moment) -> Moment {
        self.turns
            .as_ref()
            .map_or(now, |turns| turns.active_time(now))
    }

    /// The clock's time at `worker_time`.
    #[must_use]
    pub fn clock_time(&self, worker_time: Moment) -> Moment {
        let turns = self.turns.as_ref();
        turns.map_or(worker_time, |turns| turns.clock_time(worker_time))
    }

    /// When to look again, where nothing is due before `intended` in worker_time time:
    /// at the end of this turn at the latest.
    fn wake_at(&self, intended: Moment, now: Moment) -> Moment {
        let due = self.turns.as_ref().map_or(intended, |turns| {
            turns.clock_time(intended).min(turns.next_change(now))
        });
        if !self.reserved && due.since(now) < COALESCE_BELOW {
            now + COALESCE_TO
        } else {
            due
        }
    }

    /// At full speed nothing is late: there is no schedule.
    fn record_lateness(&mut self, set: &BlockSet, slice: Slice, worker_time: Moment) {
        if self.is_max {
            return;
        }
        if slice.last - slice.first > LATENESS_EACH_MAX {
            self.lateness.record(lateness(slice.intended, worker_time));
            return;
        }
        for block in slice.first..slice.last {
            let before = units(set, slice.first, block, self.unit);
            let intended = self.schedule.due_as_a_whole(before + 1, worker_time);
            self.lateness.record(lateness(intended, worker_time));
        }
    }

    /// An answer came at `now` to what was sent at `sent` and intended for
    /// `intended` in worker_time time: waiting for a turn is nothing that the peer did.
    /// Returns the response time.
    pub fn record_answer(&mut self, intended: Moment, sent: Moment, now: Moment) -> Nanos {
        let service = now.since(sent);
        let waited = lateness(intended, self.worker_time(sent));
        let response = waited + service;
        self.response_time.record(response);
        self.service_time.record(service);
        response
    }

    /// A part of the worker begins to wait.
    pub fn suspend(&mut self, wait: Wait, now: Moment) {
        match wait {
            Wait::Schedule(until) => self.asleep_until = Some(self.worker_time(until)),
            Wait::Room => self.half_written += 1,
            Wait::Other => {}
        }
        self.idle(self.worker_time(now));
    }

    /// It waits no longer.
    pub fn resume(&mut self, wait: Wait, now: Moment) {
        let worker_time = self.worker_time(now);
        self.book_delay(worker_time);
        self.account.switch(worker_time, TimeState::Running);
        match wait {
            Wait::Schedule(_) => self.asleep_until = None,
            Wait::Room => self.half_written -= 1,
            Wait::Other => {}
        }
    }

    /// Brings the shard up to date, and hands over what was recorded.
    pub(crate) fn publish(&mut self, now: Moment) {
        let worker_time = self.worker_time(now);
        self.book_delay(worker_time);
        self.published_at = now;
        let mut totals = self.account.totals(worker_time);
        totals[TimeState::Idle.index()] += self.off_turn(now);
        let account = &self.shard.account;
        let cells = [
            &account.idle,
            &account.blocked,
            &account.running,
            &account.late,
        ];
        for (cell, total) in cells.into_iter().zip(totals) {
            cell.set(total.as_u64());
        }
        if !self.is_max && !self.stopped {
            let requested = floor_to_u64(self.schedule.requested_so_far(worker_time));
            self.shard.requested_units.set(requested);
        }
        self.lateness.hand_over();
        self.response_time.hand_over();
        self.service_time.hand_over();
    }

    /// Hands over all that was recorded, even without a request: no later call will.
    pub(crate) fn flush(&mut self) {
        self.lateness.flush();
        self.response_time.flush();
        self.service_time.flush();
    }

    /// Total time spent off turn until `now`.
    fn off_turn(&self, now: Moment) -> Nanos {
        let behind = |moment: Moment| moment.since(self.worker_time(moment));
        behind(now).saturating_sub(behind(self.opened))
    }

    /// Returns true if [`State::publish`] is due.
    pub(crate) fn is_publish_due(&self, now: Moment) -> bool {
        now.since(self.published_at) >= PUBLISH_EVERY
    }

    /// The worker does nothing from `worker_time` on, unless another part of it goes on
    /// at once.
    fn idle(&mut self, worker_time: Moment) {
        let doing = if self.asleep_until.is_some() {
            TimeState::Idle
        } else if self.half_written > 0 || self.next_due(worker_time) <= worker_time {
            TimeState::Blocked
        } else {
            // Becomes blocked when the next is due: see `book_delay`.
            TimeState::Idle
        };
        self.account.switch(worker_time, doing);
    }

    /// Books time that began as idle and became late or blocked since.
    fn book_delay(&mut self, worker_time: Moment) {
        if self.account.state() != TimeState::Idle {
            return;
        }
        match self.asleep_until {
            Some(until) => {
                if worker_time.since(until) > OVERSLEPT_MIN {
                    self.account.switch(until, TimeState::Late);
                }
            }
            None => {
                let due = self.next_due(worker_time);
                if due < worker_time {
                    self.account.switch(due, TimeState::Blocked);
                }
            }
        }
    }

    /// When the next send is due.
    fn next_due(&self, worker_time: Moment) -> Moment {
        if self.is_max {
            self.start
        } else {
            self.schedule.next_due(worker_time).max(self.start)
        }
    }
}
