//! The moments of single requests.

mod draw;

#[cfg(test)]
mod tests;

use stillwell_plan::RateShape;
use stillwell_plan::load::Spacing;
use stillwell_units::{Moment, Nanos, Seed, float_from_u64, floor_to_u64};

use crate::Part;
use crate::curve::Curve;
use draw::{Draw, Zipf};

/// Largest rounding error of a whole request.
const ROUNDING: f64 = 1e-6;

/// Of so many what is drawn comes near enough to its mean.
const WALKED_MAX: u64 = 100_000;

/// The moments, one after the other, at which the requests of a [`Part`] are due.
/// They never go back, follow from plan and seed alone, and in the long run are
/// as many as the curve requests: exactly so if they are even, in bursts or
/// jittered, in the mean where they are drawn.
#[derive(Clone, Debug)]
pub struct Arrivals {
    curve: Curve,
    spacing: State,
    part: Part,
    start: Moment,
    /// Number of taken requests.
    taken: u64,
    next: Moment,
}

/// A spacing and what it has come to.
#[derive(Clone, Debug)]
enum State {
    Even,
    Burst {
        size: u64,
    },
    Jitter {
        most_ns: u64,
        draw: Draw,
    },
    /// Gaps in units of the part, with what they have come to.
    Gaps {
        zipf: Option<Zipf>,
        draw: Draw,
        units: f64,
    },
}

impl Arrivals {
    /// The moments of `part` of the requests that `curve` requests from `start`
    /// on.
    #[must_use]
    pub fn new(
        curve: &RateShape,
        spacing: Spacing,
        part: Part,
        start: Moment,
        seed: &Seed,
    ) -> Self {
        let draw = || Draw::new(seed, part.number(0));
        let gaps = |zipf| State::Gaps {
            zipf,
            draw: draw(),
            units: 0.0,
        };
        let spacing = match spacing {
            Spacing::Even => State::Even,
            Spacing::Burst { size } => State::Burst {
                size: u64::from(size.max(1)),
            },
            Spacing::JitterUniform { most } => State::Jitter {
                most_ns: most.as_u64(),
                draw: draw(),
            },
            Spacing::Poisson => gaps(None),
            Spacing::Zipf { exponent } => gaps(Some(Zipf::new(exponent))),
        };
        let mut arrivals = Self {
            curve: curve.into(),
            spacing,
            part,
            start,
            taken: 0,
            next: start,
        };
        arrivals.next = arrivals.draw_next();
        arrivals
    }

    /// When the next one is due; `u64::MAX` for never.
    #[must_use]
    pub const fn next_due(&self) -> Moment {
        self.next
    }

    /// The number of the next request in the whole load, counted from zero.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.part.number(self.taken)
    }

    /// Takes the next one.
    pub fn advance(&mut self) {
        self.taken += 1;
        self.next = self.draw_next().max(self.next);
    }

    /// Takes the next `count`, in a time that is bounded for any number of them: of very many
    /// drawn gaps, the last ones count by their mean. The next jittered request is due by its own
    /// delay, although that of a request before it may end later.
    pub fn skip(&mut self, count: u64) {
        let Some(before_last) = count.checked_sub(1) else {
            return;
        };
        match &mut self.spacing {
            State::Even | State::Burst { .. } => {}
            State::Jitter { draw, .. } => draw.skip(before_last),
            State::Gaps { zipf, draw, units } => {
                let walked = before_last.min(WALKED_MAX);
                for _ in 0..walked {
                    *units += gap(zipf.as_ref(), draw);
                }
                draw.skip(before_last - walked);
                *units += float_from_u64(before_last - walked);
            }
        }
        self.taken = self.taken.saturating_add(count);
        self.next = self.draw_next().max(self.next);
    }

    /// Number of taken requests.
    #[must_use]
    pub const fn taken(&self) -> u64 {
        self.taken
    }

    /// Number of requests that the curve requested of this part until `now`, of the first `most`
    /// of the whole load: the requested rate times the time. Whole requests, except for
    /// spacings that are drawn, where the curve says how many there are in the mean.
    #[must_use]
    pub fn requested_until(&self, now: Moment, most: Option<u64>) -> f64 {
        let all = self.curve.requested_at(now.since(self.start).as_u64());
        let all = most.map_or(all, |most| all.min(float_from_u64(most)));
        match self.spacing {
            State::Gaps { .. } => all * self.part.fraction(),
            State::Even | State::Burst { .. } | State::Jitter { .. } => {
                float_from_u64(self.part.of_total(floor_to_u64(all + ROUNDING)))
            }
        }
    }

    /// Number of requests that are due from `from` to `until` and not taken, of the first
    /// `most` of the whole load. Takes longer the more they are; of very many the
    /// last ones are computed from the curve and not drawn.
    #[must_use]
    pub fn overdue(&self, from: Moment, until: Moment, most: Option<u64>) -> u64 {
        let mut ahead = self.clone();
        let mut count = 0;
        while ahead.next <= until && most.is_none_or(|most| ahead.number() < most) {
            if ahead.taken - self.taken >= WALKED_MAX {
                return count + ahead.computed_until(until, from, most);
            }
            count += u64::from(ahead.next >= from);
            ahead.advance();
        }
        count
    }

    /// Takes the requests that are due until `until`, as far as [`Self::overdue`] draws them after
    /// the first `taken` ones. Returns the number of requests due from the start until `until`;
    /// the last ones are computed as there.
    pub(crate) fn walk_until(&mut self, until: Moment, taken: u64) -> u64 {
        while self.next <= until {
            if self.taken.saturating_sub(taken) >= WALKED_MAX {
                let computed = self.computed_until(until, Moment::default(), None);
                return self.taken.saturating_add(computed);
            }
            self.advance();
        }
        self.taken
    }

    /// Number of requests from the next one or `from` (the later one) until `until`: by the
    /// curve.
    fn computed_until(&self, until: Moment, from: Moment, most: Option<u64>) -> u64 {
        let before = self.next.max(from) - Nanos::new(1);
        let [all, counted] = [until, before].map(|at| self.requested_until(at, most));
        floor_to_u64((all - counted).max(0.0).round())
    }

    /// When the one after those that were taken is due.
    fn draw_next(&mut self) -> Moment {
        let number = self.part.number(self.taken);
        let elapsed_ns = match &mut self.spacing {
            State::Even => self.curve.reaches(number.saturating_add(1)),
            State::Burst { size } => {
                let burst = (number / *size).saturating_add(1);
                self.curve.reaches(burst.saturating_mul(*size))
            }
            State::Jitter { most_ns, draw } => {
                let even = self.curve.reaches(number.saturating_add(1));
                even.saturating_add(draw.up_to(*most_ns))
            }
            State::Gaps { zipf, draw, units } => {
                *units += gap(zipf.as_ref(), draw);
                self.curve.reaches_units(*units / self.part.fraction())
            }
        };
        self.start + Nanos::new(elapsed_ns)
    }
}

/// Draws the gap before a request, whose mean is one unit.
fn gap(zipf: Option<&Zipf>, draw: &mut Draw) -> f64 {
    match zipf {
        Some(zipf) => zipf.gap(draw),
        None => draw.exponential(),
    }
}
