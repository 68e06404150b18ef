//! The absolute schedule of one worker.

#[cfg(test)]
mod tests;

use stillwell_units::{Moment, Nanos};

use crate::curve::Curve;
use stillwell_plan::RateShape;

use crate::Share;

/// Handling of units that are long overdue.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum CatchUp {
    /// They are all sent, as fast as the peer takes them.
    #[default]
    Full,
    /// Those overdue by more than this are dropped, and counted.
    Bounded(Nanos),
}

/// Due times of a worker's units: the first once the shape has requested
/// one whole unit (not at the start), and so on.
///
/// What is due is a function of the start, the time and the number of units
/// alone; no rounding gathers. Nothing here allocates, and every call takes the
/// same time however far the schedule has come.
#[derive(Clone, Debug)]
pub struct Schedule {
    curve: Curve,
    share: Share,
    catch_up: CatchUp,
    start: Moment,
    /// Units sent or given up: the number, in this share, of the next one.
    position: u64,
    given_up: u64,
    /// Due time of the unit at `position`; stored because it is read most often.
    next: Moment,
}

impl Schedule {
    /// This share of the schedule of `shape` that begins at `start`, with
    /// [`CatchUp::Full`].
    #[must_use]
    pub fn new(shape: RateShape, share: Share, start: Moment) -> Self {
        let curve = Curve::from(shape);
        Self {
            next: curve.moment_of(share.total_at(0), start),
            curve,
            share,
            catch_up: CatchUp::Full,
            start,
            position: 0,
            given_up: 0,
        }
    }

    /// The same schedule with another way to treat what is overdue.
    #[must_use]
    pub fn with_catch_up(self, catch_up: CatchUp) -> Self {
        Self { catch_up, ..self }
    }

    /// The intended moment of the unit that would be sent next; for
    /// [`RateShape::Max`] that is `now`. A moment of `u64::MAX` is never.
    #[must_use]
    pub const fn next_due(&self, now: Moment) -> Moment {
        if self.curve.is_max() { now } else { self.next }
    }

    /// The intended moment of the last of the next `units` units: when a block
    /// of that many is due as a whole. Zero units are due like one.
    #[must_use]
    pub fn due_as_a_whole(&self, units: u64, now: Moment) -> Moment {
        match units {
            _ if self.curve.is_max() => now,
            0 | 1 => self.next,
            _ => self.moment_of(self.position.saturating_add(units - 1)),
        }
    }

    /// Units due at `now` and neither sent nor given up; for [`RateShape::Max`]
    /// always `u64::MAX`.
    #[must_use]
    pub fn due(&self, now: Moment) -> u64 {
        if self.curve.is_max() {
            return u64::MAX;
        }
        if now < self.next {
            return 0;
        }
        self.requested_whole(now).saturating_sub(self.position)
    }

    /// Records `units` as sent, due or not.
    pub fn advance(&mut self, units: u64) {
        self.position = self.position.saturating_add(units);
        self.next = self.moment_of(self.position);
    }

    /// Under [`CatchUp::Bounded`], drops the units that are overdue by more than
    /// the bound, and returns how many. Otherwise drops none.
    pub fn give_up(&mut self, now: Moment) -> u64 {
        let CatchUp::Bounded(bound) = self.catch_up else {
            return 0;
        };
        if self.curve.is_max() || now.since(self.next) <= bound {
            return 0;
        }
        // Overdue by more than the bound is what was due a nanosecond before it.
        let dropped = self
            .requested_whole(now - bound - Nanos::new(1))
            .saturating_sub(self.position);
        self.advance(dropped);
        self.given_up = self.given_up.saturating_add(dropped);
        dropped
    }

    /// Units that this share requested from the start until `now`, with the
    /// part of a unit that is under way: the requested rate times the time. Infinite
    /// for [`RateShape::Max`].
    #[must_use]
    pub fn requested_until(&self, now: Moment) -> f64 {
        self.curve.requested_at(now.since(self.start).as_u64()) / f64::from(self.share.of())
    }

    /// Units recorded as sent.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.position.saturating_sub(self.given_up)
    }

    /// Units dropped by [`Self::give_up`] so far.
    #[must_use]
    pub const fn given_up(&self) -> u64 {
        self.given_up
    }

    /// Whole units of this share requested until `now`.
    fn requested_whole(&self, now: Moment) -> u64 {
        let total = self.curve.total_at(now.since(self.start).as_u64());
        self.share.of_total(total)
    }

    fn moment_of(&self, position: u64) -> Moment {
        self.curve
            .moment_of(self.share.total_at(position), self.start)
    }
}
