//! Intervals as lines on one axis, in plain characters.
//!
//! `-` is the band of the tolerance on both sides of zero, `|` is zero, and `[==o==]` is
//! the interval with its estimate; `<` and `>` mark an interval that leaves the axis.

use stillwell_units::human::percent;
use stillwell_units::{as_usize, count, float_from_u64, floor_to_u64};
use stillwell_verdict::Change;

use crate::document::{Interval, IntervalRow, Role, Text};

/// Explanation of the characters of a line.
pub(super) const LEGEND: &str = "(- within tolerance, | zero, [=o=] interval and estimate)";

/// Columns beside the axis: usual names, and margins.
const NAME_AND_MARGIN: usize = 36;
/// Margins alone.
const MARGIN: usize = 6;

/// Returns the scale and a line for each row that has an interval, for a screen of `width` columns.
pub(super) fn rows(rows: &[IntervalRow], width: usize) -> Vec<Vec<Text>> {
    let with_interval = rows.iter().filter_map(|row| Some((row, row.interval?)));
    let (names, intervals): (Vec<&str>, Vec<_>) = with_interval
        .map(|(row, interval)| (row.name.as_str(), (interval, row.tolerance)))
        .unzip();
    let longest = names
        .iter()
        .map(|name| name.chars().count())
        .max()
        .unwrap_or(0);
    let beside = NAME_AND_MARGIN.max(longest + MARGIN);
    let lines = lines(&intervals, width.saturating_sub(beside));
    let names = [""].into_iter().chain(names);
    // Prose would lose its leading spaces where it is broken.
    let cells = |(name, line): (&str, String)| vec![Text::from(name), Text::of(Role::Number, line)];
    names.zip(lines).map(cells).collect()
}

/// Returns the scale of an axis of about `width` columns, and a line on it for each change with its tolerance:
/// see this crate's terminal reports for the meaning of the characters.
#[must_use]
pub fn forest_lines(changes: &[(Change, f64)], width: usize) -> Vec<String> {
    let intervals = changes
        .iter()
        .map(|(change, tolerance)| ((*change).into(), *tolerance));
    lines(&intervals.collect::<Vec<_>>(), width)
}

fn lines(intervals: &[(Interval, f64)], width: usize) -> Vec<String> {
    let axis = ForestAxis::of(intervals, width);
    let reach = percent(axis.reach);
    let inner = axis.cells().saturating_sub(2 * (reach.chars().count() + 1));
    let scale = format!("-{reach}{:^inner$}+{reach}", "0");
    let lines = intervals
        .iter()
        .map(|(interval, tolerance)| axis.line(*interval, *tolerance));
    [scale].into_iter().chain(lines).collect()
}

/// An axis of relative changes from −`reach` to `reach`.
#[derive(Clone, Copy, Debug)]
struct ForestAxis {
    reach: f64,
    /// Cells on each side of zero.
    half: u64,
}

impl ForestAxis {
    /// Returns an axis with all estimates on which each tolerance has at least one cell on each side of zero; what is beyond is
    /// marked.
    fn of(intervals: &[(Interval, f64)], width: usize) -> Self {
        const TOLERANCES_MAX: f64 = 8.0;
        let (mut reach, mut estimates, mut tolerance) = (0.0_f64, 0.0_f64, 0.0_f64);
        for (interval, of_row) in intervals {
            tolerance = tolerance.max(*of_row);
            estimates = estimates.max(interval.estimate.abs());
            reach = reach.max(interval.low.abs()).max(interval.high.abs());
        }
        let half = (u64::from(count(width.clamp(21, 61))) - 1) / 2;
        let visible = (tolerance * TOLERANCES_MAX).max(estimates * 1.1);
        let visible = visible.min(tolerance * float_from_u64(half));
        let reach = (reach * 1.1).max(tolerance * 2.0).min(visible);
        Self { reach, half }
    }

    /// Cells of a line.
    fn cells(&self) -> usize {
        as_usize(2 * self.half + 1)
    }

    /// The line of one goal.
    fn line(&self, change: Interval, tolerance: f64) -> String {
        let mut cells = vec![' '; self.cells()];
        let mut fill = |from: f64, to: f64, mark: char| {
            for cell in &mut cells[self.cell(from)..=self.cell(to)] {
                *cell = mark;
            }
        };
        fill(-tolerance, tolerance, '-');
        fill(0.0, 0.0, '|');
        fill(change.low, change.high, '=');
        let end = |place: f64, inside: char, outside: char| {
            if place.abs() > self.reach {
                outside
            } else {
                inside
            }
        };
        fill(change.low, change.low, end(change.low, '[', '<'));
        fill(change.high, change.high, end(change.high, ']', '>'));
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
            let axis = ForestAxis { reach: 0.1, half: 20 };
            let upper = if infinite { f64::INFINITY } else { lower + below + above };
            let change = Interval { estimate: lower + below, low: lower, high: upper };
            let line = axis.line(change, 0.03);
            prop_assert_eq!(line.chars().count(), 41);
            prop_assert!(line.contains(['o', '<', '>']), "{}", line);
        }
    }

    /// The rule: an estimate is on the axis as long as the tolerance has a cell; an interval without an end leaves it.
    #[test]
    fn large_estimates_are_on_the_axis() {
        let row = |low, estimate, high| {
            (
                Interval {
                    estimate,
                    low,
                    high,
                },
                0.03,
            )
        };
        let rows = [row(0.087, 0.441, 0.91), row(-0.02, 0.0, f64::INFINITY)];
        let lines = lines(&rows, 44);
        assert!(lines[0].ends_with("+48.5 %"), "{lines:?}");
        assert!(
            lines[1].contains('o') && lines[1].ends_with('>'),
            "{lines:?}"
        );
        assert!(
            lines[2].contains('o') && lines[2].ends_with('>'),
            "{lines:?}"
        );
    }

    #[test]
    fn a_line_shows_band_zero_interval_and_estimate() {
        let axis = ForestAxis {
            reach: 0.1,
            half: 20,
        };
        let change = Interval {
            estimate: 0.05,
            low: 0.03,
            high: 0.08,
        };
        assert_eq!(
            axis.line(change, 0.02),
            "                ----|---- [===o=====]    "
                .get(..41)
                .unwrap()
        );
    }
}
