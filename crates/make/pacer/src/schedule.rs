//! The absolute schedule of one worker.

#[cfg(test)]
mod tests;

use stillwell_plan::load::Spacing;
use stillwell_units::{Moment, Seed, float_from_u64};

use crate::curve::Curve;
use stillwell_plan::RateShape;

use crate::{Arrivals, Part, Share};

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
    start: Moment,
    /// Units sent: the number, in this share, of the next one.
    position: u64,
    /// Due time of the unit at `position`; stored because it is read most often.
    next: Moment,
    /// Due times of single units, where they are not even.
    spaced: Option<Box<Arrivals>>,
    /// The same, as far as [`Self::requested_so_far`] has drawn them.
    ahead: Option<Box<Arrivals>>,
}

impl Schedule {
    /// This share of the schedule of `shape` that begins at `start`.
    #[must_use]
    pub fn new(shape: &RateShape, share: Share, start: Moment) -> Self {
        let curve = Curve::from(shape);
        Self {
            next: curve.moment_of(share.total_at(0), start),
            curve,
            share,
            start,
            position: 0,
            spaced: None,
            ahead: None,
        }
    }

    /// The same with a spacing of single units, whose random gaps follow from `seed`.
    #[must_use]
    pub fn spaced(self, shape: &RateShape, spacing: Spacing, seed: &Seed) -> Self {
        if spacing == Spacing::Even || self.curve.is_max() {
            return self;
        }
        let part = Part::whole(self.share);
        let arrivals = Arrivals::new(shape, spacing, part, self.start, seed);
        Self {
            next: arrivals.next_due(),
            ahead: Some(Box::new(arrivals.clone())),
            spaced: Some(Box::new(arrivals)),
            ..self
        }
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
        match (units, &self.spaced) {
            _ if self.curve.is_max() => now,
            (0 | 1, _) => self.next,
            (_, Some(arrivals)) => {
                let mut last = Arrivals::clone(arrivals);
                (1..units).for_each(|_| last.advance());
                last.next_due()
            }
            (_, None) => self.moment_of(self.position.saturating_add(units - 1)),
        }
    }

    /// Units due at `now` and not sent; for [`RateShape::Max`]
    /// always `u64::MAX`. At most one where a spacing makes single units due.
    #[must_use]
    pub fn due(&self, now: Moment) -> u64 {
        if self.curve.is_max() {
            return u64::MAX;
        }
        if now < self.next {
            return 0;
        }
        if self.spaced.is_some() {
            return 1;
        }
        self.requested_whole(now).saturating_sub(self.position)
    }

    /// Records `units` as sent, due or not.
    pub fn advance(&mut self, units: u64) {
        self.position = self.position.saturating_add(units);
        if let Some(arrivals) = &mut self.spaced {
            (0..units).for_each(|_| arrivals.advance());
            self.next = arrivals.next_due();
            return;
        }
        self.next = self.moment_of(self.position);
    }

    /// Units that this share requested from the start until `now`, with the
    /// part of a unit that is under way: the requested rate times the time. Infinite
    /// for [`RateShape::Max`]. With a spacing, the number of units that were due.
    #[must_use]
    pub fn requested_until(&self, now: Moment) -> f64 {
        if let Some(arrivals) = &self.spaced {
            let due = arrivals.overdue(Moment::default(), now, None);
            return float_from_u64(self.position.saturating_add(due));
        }
        self.curve.requested_at(now.since(self.start).as_u64()) / f64::from(self.share.of())
    }

    /// The same as [`Self::requested_until`], for moments that do not go back from call to call:
    /// each unit of a spacing is drawn once, however many calls find it due and not sent.
    #[must_use]
    pub fn requested_so_far(&mut self, now: Moment) -> f64 {
        let (Some(arrivals), Some(ahead)) = (&self.spaced, &mut self.ahead) else {
            return self.requested_until(now);
        };
        if ahead.taken() < arrivals.taken() {
            ahead.clone_from(arrivals);
        }
        float_from_u64(ahead.walk_until(now, arrivals.taken()))
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
