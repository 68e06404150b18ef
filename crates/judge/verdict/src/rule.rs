//! The rule that turns an interval into a word.

use stillwell_plan::goal::Direction;
use stillwell_stats::Estimate;
use stillwell_units::Tolerance;

/// A relative change, comparison / baseline − 1, with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The estimate: the geometric mean over the pairs.
    pub estimate: f64,
    /// The interval's lower end, at most the estimate.
    pub lower: f64,
    /// Its upper end, at least the estimate; may be infinite.
    pub upper: f64,
}

impl From<Estimate> for Change {
    fn from(estimate: Estimate) -> Self {
        Self {
            estimate: estimate.value,
            lower: estimate.lower,
            upper: estimate.upper,
        }
    }
}

impl Change {
    /// The same change with the worse side up: what rises where less is better,
    /// and what falls where more is better.
    ///
    /// This only turns signs, so tolerances hold for the very percentages
    /// that are printed. So it is not the same on both sides: twice the
    /// throughput is +100 %, half of it −50 %. At the size of tolerances the two
    /// differ by the tolerance's square.
    #[must_use]
    pub const fn for_the_worse(self, direction: Direction) -> Self {
        match direction {
            Direction::LowerIsBetter => self,
            Direction::HigherIsBetter => Self {
                estimate: -self.estimate,
                lower: -self.upper,
                upper: -self.lower,
            },
        }
    }
}

/// Verdict on a goal of an experiment.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Verdict {
    /// Its runs are unreliable.
    Invalid,
    /// Surely a change for the worse, and probably beyond the tolerance.
    Regressed,
    /// Surely a change for the better, and probably beyond the tolerance.
    Improved,
    /// Surely within the tolerance on both sides.
    Equivalent,
    /// Surely a change, but neither surely within the tolerance nor probably
    /// beyond it.
    Different,
    /// The runs are not decisive.
    Inconclusive,
}

impl Verdict {
    /// The word in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Regressed => "regressed",
            Self::Improved => "improved",
            Self::Equivalent => "equivalent",
            Self::Different => "different",
            Self::Inconclusive => "inconclusive",
        }
    }

    /// Returns true for a verdict that must hold on fresh pairs.
    pub(crate) const fn is_flag(self) -> bool {
        matches!(self, Self::Regressed | Self::Improved)
    }

    /// Of two comparisons' verdicts the one that matters more to a reader.
    #[must_use]
    pub fn more_severe(self, right: Self) -> Self {
        if self.severity() >= right.severity() {
            self
        } else {
            right
        }
    }

    const fn severity(self) -> u8 {
        match self {
            Self::Regressed => 5,
            Self::Invalid => 4,
            Self::Inconclusive => 3,
            Self::Different => 2,
            Self::Improved => 1,
            Self::Equivalent => 0,
        }
    }
}

/// The verdict on a change that was measured, at the last look at the data.
/// [`Verdict::Invalid`] is decided before, by validity.
#[must_use]
pub fn verdict_of(change: Change, direction: Direction, tolerance: Tolerance) -> Verdict {
    let worse = change.for_the_worse(direction);
    let margin = tolerance.share();
    if worse.lower > 0.0 && worse.estimate >= margin {
        Verdict::Regressed
    } else if worse.upper < 0.0 && worse.estimate <= -margin {
        Verdict::Improved
    } else if -margin < worse.lower && worse.upper < margin {
        Verdict::Equivalent
    } else if worse.lower > 0.0 || worse.upper < 0.0 {
        Verdict::Different
    } else {
        Verdict::Inconclusive
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// For the tables: estimate, lower and upper in percent, tolerance 3 %.
    fn lower_is_better(estimate: f64, lower: f64, upper: f64) -> Verdict {
        judged(estimate, lower, upper, Direction::LowerIsBetter)
    }

    fn judged(estimate: f64, lower: f64, upper: f64, direction: Direction) -> Verdict {
        let change = Change {
            estimate: estimate / 100.0,
            lower: lower / 100.0,
            upper: upper / 100.0,
        };
        verdict_of(change, direction, Tolerance::try_new(0.03).unwrap())
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        use Verdict::{Different, Equivalent, Improved, Inconclusive, Regressed};
        for (estimate, lower, upper, verdict) in [
            (5.0, 4.0, 6.0, Regressed),
            (3.0, 0.1, 6.0, Regressed),
            // Exactly at zero is not beyond it.
            (3.0, 0.0, 6.0, Inconclusive),
            (2.9, 0.1, 6.0, Different),
            (-5.0, -6.0, -4.0, Improved),
            (-3.0, -6.0, -0.1, Improved),
            (-3.0, -6.0, 0.0, Inconclusive),
            (-2.9, -6.0, -0.1, Different),
            (0.0, -1.0, 1.0, Equivalent),
            // Sure and small stays equivalent.
            (1.0, 0.5, 1.5, Equivalent),
            (0.0, 0.0, 0.0, Equivalent),
            // The interval's end on the tolerance is not within it.
            (1.0, -1.0, 3.0, Inconclusive),
            (-1.0, -3.0, 1.0, Inconclusive),
            (2.0, 0.5, 3.5, Different),
            (0.0, -9.0, 9.0, Inconclusive),
            (9.0, -1.0, 20.0, Inconclusive),
            (1.0, -99.0, f64::INFINITY, Inconclusive),
        ] {
            assert_eq!(
                lower_is_better(estimate, lower, upper),
                verdict,
                "{estimate} [{lower}, {upper}]"
            );
        }
    }

    proptest! {
        /// For all changes: what is worse for a cost is better for a yield.
        #[test]
        fn direction_turns_worse_into_better(
            estimate in -50.0_f64..50.0,
            below in 0.0_f64..20.0,
            above in 0.0_f64..20.0,
        ) {
            let cost = lower_is_better(estimate, estimate - below, estimate + above);
            let yielded = judged(
                estimate,
                estimate - below,
                estimate + above,
                Direction::HigherIsBetter,
            );
            let turned = match cost {
                Verdict::Regressed => Verdict::Improved,
                Verdict::Improved => Verdict::Regressed,
                right => right,
            };
            prop_assert_eq!(yielded, turned);
        }
    }
}
