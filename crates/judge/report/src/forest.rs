//! Intervals as lines on one axis, in plain characters.
//!
//! `-` is the band of the tolerance on both sides of zero, `|` is zero, and
//! `[==o==]` is the interval with its estimate; `<` and `>` stand where it
//! leaves the axis.

use stillwell_units::{float_from_u64, floor_to_u64};
use stillwell_verdict::{Change, GoalVerdict};

/// An axis of relative changes from −`reach` to `reach`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    reach: f64,
    /// Cells on each side of zero.
    half: u64,
}

impl Axis {
    /// An axis on which the goals that have a change fit, at most so many
    /// tolerances wide that these can still be seen; `None` without any.
    pub(crate) fn of<'g>(goals: impl Iterator<Item = &'g GoalVerdict>, width: u16) -> Option<Self> {
        const TOLERANCES_MAX: f64 = 8.0;
        let (mut reach, mut tolerance, mut any) = (0.0_f64, 0.0_f64, false);
        for goal in goals {
            tolerance = tolerance.max(goal.tolerance.share());
            if let Some(change) = goal.change {
                any = true;
                reach = reach.max(change.lower.abs()).max(change.upper.abs());
            }
        }
        let reach = (reach * 1.1).clamp(tolerance * 2.0, tolerance * TOLERANCES_MAX);
        let half = u64::from(width.clamp(21, 61) - 1) / 2;
        any.then_some(Self { reach, half })
    }

    /// Cells of a line.
    pub(crate) fn cells(&self) -> usize {
        usize::try_from(2 * self.half + 1).unwrap_or(usize::MAX)
    }

    /// How far it reaches to each side, as a share.
    pub(crate) const fn reach(&self) -> f64 {
        self.reach
    }

    /// The line of one goal.
    pub(crate) fn line(&self, change: Change, tolerance: f64) -> String {
        let mut cells = vec![' '; self.cells()];
        let mut fill = |from: f64, to: f64, mark: char| {
            for cell in &mut cells[self.cell(from)..=self.cell(to)] {
                *cell = mark;
            }
        };
        fill(-tolerance, tolerance, '-');
        fill(0.0, 0.0, '|');
        fill(change.lower, change.upper, '=');
        let end = |place: f64, inside: char, outside: char| {
            if place.abs() > self.reach {
                outside
            } else {
                inside
            }
        };
        fill(change.lower, change.lower, end(change.lower, '[', '<'));
        fill(change.upper, change.upper, end(change.upper, ']', '>'));
        let outside = if change.estimate < 0.0 { '<' } else { '>' };
        fill(
            change.estimate,
            change.estimate,
            end(change.estimate, 'o', outside),
        );
        cells.into_iter().collect()
    }

    /// The cell of `change`; the outermost ones for what lies beyond.
    fn cell(&self, change: f64) -> usize {
        let half = float_from_u64(self.half);
        let place = (change / self.reach).clamp(-1.0, 1.0) * half + half;
        usize::try_from(floor_to_u64(place.round())).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// For all changes: the line has its width and shows an estimate.
        #[test]
        fn lines_fit(
            lower in -1.0_f64..1.0,
            below in 0.0_f64..1.0,
            above in 0.0_f64..1.0,
            infinite: bool,
        ) {
            let axis = Axis { reach: 0.1, half: 20 };
            let upper = if infinite { f64::INFINITY } else { lower + below + above };
            let change = Change { estimate: lower + below, lower, upper };
            let line = axis.line(change, 0.03);
            prop_assert_eq!(line.chars().count(), 41);
            prop_assert!(line.contains(['o', '<', '>']), "{}", line);
        }
    }

    #[test]
    fn a_line_shows_band_zero_interval_and_estimate() {
        let axis = Axis {
            reach: 0.1,
            half: 20,
        };
        let change = Change {
            estimate: 0.05,
            lower: 0.03,
            upper: 0.08,
        };
        assert_eq!(
            axis.line(change, 0.02),
            "                ----|---- [===o=====]    "
                .get(..41)
                .unwrap()
        );
    }
}
