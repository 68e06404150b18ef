//! Stillwell's own detector: the best split against best splits of histories
//! in which nothing changed.

use std::ops::Range;

use super::null::Null;
use super::split::Split;
use super::step::clearest_step;
use super::{ChangeError, ChangePoint, describe};
use crate::draw::Draws;
use crate::number::{float, floor_index};
use crate::sample::Sample;

/// Shorter segments are not tested: they have too few orders.
const SEGMENT_MIN: usize = 6;

/// The fewest and the most histories drawn from the null. With fewer the p
/// value is coarse; more take longer than they help.
const DRAWS: Range<usize> = 999..9999;

/// Number of times finer than the level the p value is, within [`DRAWS`].
const RESOLUTION: f64 = 20.0;

/// Options of [`detect`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangeOptions {
    /// The share of histories without any change in which a change point may be
    /// found.
    pub alarm_rate: f64,
    /// The fewest values on either side of a change point.
    pub side_min: usize,
    /// The largest correlation of neighbouring values beside the steps, from 0 to below 1. With
    /// any from 0 to this, about as many histories as stated show a change at most (simulated: 1.01 %
    /// of 20,000 of 20 values at the bound, at a stated 1 %); the power is that of the least
    /// favourable one.
    pub correlation_max: f64,
    /// Decides the draws: the same seed, the same result.
    pub seed: u64,
}

impl Default for ChangeOptions {
    /// One false alarm in a hundred histories, two values on each side, a correlation of at most 0.6.
    fn default() -> Self {
        Self {
            alarm_rate: 0.01,
            side_min: 2,
            correlation_max: 0.6,
            seed: 0,
        }
    }
}

/// Result of [`detect`].
#[derive(Clone, Debug, PartialEq)]
pub struct Detection {
    /// The change points in order. Their p values are multiples of those of
    /// their segments, to be held against the alarm rate of the history.
    pub points: Vec<ChangePoint>,
    /// Probability that a history without any change has a split no worse than the best
    /// of this one; 1 where there is nothing to test. An upper bound where the
    /// drawing ended early because it was clear.
    pub p_value: f64,
    /// The lag-one correlation of the null histories that decided.
    pub correlation: f64,
}

/// The change points of a history. Each value counts the same.
///
/// The statistic is the largest likelihood ratio of a step at any split of the history or of
/// its overlapping halves, quarters and so on. Its p value is the larger of two: of histories in
/// which the deviations are in random order, and of histories in which the innovations of a
/// first-order autoregression with the largest correlation are. So drift is not taken for a step.
/// A split that is found divides the history, and both parts are tested in turn, each at the share
/// of the alarm rate that it has of the values: so all that is found in histories, or parts of
/// them, in which nothing changed adds up to the alarm rate at most.
///
/// `cargo xtask calibrate --full histories` simulates rates and power.
///
/// # Errors
/// [`ChangeError`] for no values, values that are not finite, and an alarm rate that is
/// not between 0 and 1.
pub fn detect(values: &[f64], options: &ChangeOptions) -> Result<Detection, ChangeError> {
    Sample::try_new(values, 1)?;
    let result = options.alarm_rate;
    if !(result > 0.0 && result < 1.0) {
        return Err(ChangeError::AlarmRate { actual: result });
    }
    let history = History { values, options };
    let mut draws = Draws::seeded(options.seed);
    let whole = history.test(0..values.len(), &mut draws);
    let (p_value, correlation) = whole
        .as_ref()
        .map_or((1.0, 0.0), |tested| (tested.p_value, tested.correlation));
    let mut result = Vec::new();
    let mut open: Vec<(Range<usize>, Option<Tested>)> = vec![(0..values.len(), whole)];
    // Every round either ends a segment or divides it, so this ends.
    while let Some((segment, tested)) = open.pop() {
        let Some(tested) = tested.filter(|tested| tested.p_value <= options.alarm_rate) else {
            continue;
        };
        result.push((tested.index, tested.p_value));
        for part in [segment.start..tested.index, tested.index..segment.end] {
            let tested = history.test(part.clone(), &mut draws);
            open.push((part, tested));
        }
    }
    result.sort_unstable_by_key(|&(index, _)| index);
    Ok(Detection {
        points: history.describe(&result),
        p_value,
        correlation,
    })
}

/// The best split of a segment, and how surprising it is.
struct Tested {
    index: usize,
    /// Times the number of such segments that the history has room for.
    p_value: f64,
    correlation: f64,
}

struct History<'a> {
    values: &'a [f64],
    options: &'a ChangeOptions,
}

impl History<'_> {
    /// Tests one segment; `None` where it is too short or all its values are
    /// the same.
    fn test(&self, segment: Range<usize>, draws: &mut Draws) -> Option<Tested> {
        let side_min = self.options.side_min.max(1);
        if segment.len() < SEGMENT_MIN.max(2 * side_min) {
            return None;
        }
        let values = &self.values[segment.clone()];
        let options = self.options;
        let clearest = |values: &[f64]| clearest_step(values, side_min, options.correlation_max);
        let split = clearest(values)?;
        let segments = float(self.values.len()) / float(values.len());
        let level = options.alarm_rate / segments;
        let (mut p_value, mut correlation) = (0.0, 0.0);
        // The least favourable correlation decides; the largest comes first, as it mostly is that.
        for assumed in [options.correlation_max, 0.0] {
            let null = Null::of(values, assumed);
            let result = null.p_value(split, level, draws, clearest);
            if result > p_value {
                (p_value, correlation) = (result, assumed);
            }
            if p_value > level {
                break;
            }
        }
        Some(Tested {
            index: segment.start + split.index,
            p_value: (p_value * segments).min(1.0),
            correlation,
        })
    }

    /// The change points between their neighbours.
    fn describe(&self, result: &[(usize, f64)]) -> Vec<ChangePoint> {
        let starts = std::iter::once(0).chain(result.iter().map(|&(index, _)| index));
        let ends = result.iter().skip(1).map(|&(index, _)| index);
        starts
            .zip(result)
            .zip(ends.chain([self.values.len()]))
            .map(|((start, &(index, p_value)), end)| {
                let (mean_before, before) = describe(&self.values[start..index], 1);
                let (mean_after, after) = describe(&self.values[index..end], 1);
                ChangePoint {
                    index,
                    mean_before,
                    standard_deviation_before: before,
                    mean_after,
                    standard_deviation_after: after,
                    p_value,
                }
            })
            .collect()
    }
}

impl Null {
    /// Probability that a history from the null has a best split no worse than
    /// `split`. Drawing ends early once it can no longer come below `level`.
    fn p_value(
        &self,
        split: Split,
        level: f64,
        draws: &mut Draws,
        best: impl Fn(&[f64]) -> Option<Split>,
    ) -> f64 {
        let wanted = floor_index(RESOLUTION / level).clamp(DRAWS.start, DRAWS.end);
        let enough = level * float(wanted + 1);
        let (mut at_least, mut drawn) = (0, 0);
        let mut innovations = self.innovations().to_vec();
        let mut history = vec![0.0; innovations.len()];
        while drawn < wanted {
            draws.shuffle(&mut innovations);
            self.history(&innovations, &mut history);
            drawn += 1;
            if best(&history).is_some_and(|result| result.distance >= split.distance) {
                at_least += 1;
                if float(at_least + 1) > enough {
                    break;
                }
            }
        }
        float(at_least + 1) / float(drawn + 1)
    }
}
