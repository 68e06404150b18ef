//! Intervals by resampling.

use crate::draw::Draws;
use crate::estimate::Estimate;
use crate::level::Level;
use crate::normal;
use crate::number::float;
use crate::sample::{Sample, SampleError, Sorted};

/// `count` resamples of `len` numbers: each a row of `len` indices below `len`,
/// drawn with replacement from xoshiro256++ seeded with `seed`.
#[must_use]
pub fn resamples(seed: u64, len: usize, count: usize) -> Vec<Vec<usize>> {
    let mut draws = Draws::seeded(seed);
    let mut row = || (0..len).map(|_| draws.below(len)).collect();
    (0..count).map(|_| row()).collect()
}

/// The bias-corrected and accelerated bootstrap interval of any statistic of one
/// column of numbers (Efron 1987; SciPy's `bootstrap` with method `BCa`), from
/// stored resamples: each row holds indices into `values`.
///
/// `statistic` is computed for `values`, for each resample, and for `values` less
/// each one. For means of runs the t interval is as good and needs no
/// resamples: this is for what has none, such as a median.
///
/// # Errors
/// [`BcaError`] for too few or unfit values, an index without a value, and where
/// the statistic does not vary or lies outside all of its resamples.
pub fn bca(
    values: &[f64],
    resamples: &[Vec<usize>],
    level: Level,
    statistic: impl Fn(&[f64]) -> f64,
) -> Result<Estimate, BcaError> {
    Sample::try_new(values, 2).map_err(BcaError::Values)?;
    let value = statistic(values);
    let replicates = replicates(values, resamples, &statistic)?;
    let bias = normal::quantile(share_below(&replicates, value));
    let acceleration = acceleration(values, &statistic);
    if bias.is_infinite() {
        return Err(BcaError::Degenerate);
    }
    let end = |deviations: f64| {
        let moved = bias + deviations;
        let place = bias + moved / (1.0 - acceleration * moved);
        replicates.quantile(normal::upper_tail(-place))
    };
    let outermost = normal::quantile(0.5 * level.error_rate());
    match (end(outermost), end(-outermost)) {
        (Some(lower), Some(upper)) => Ok(Estimate {
            value,
            lower,
            upper,
        }),
        _ => Err(BcaError::Degenerate),
    }
}

fn replicates(
    values: &[f64],
    resamples: &[Vec<usize>],
    statistic: &impl Fn(&[f64]) -> f64,
) -> Result<Sorted, BcaError> {
    let mut result = Vec::with_capacity(resamples.len());
    let mut resample = Vec::new();
    for row in resamples {
        resample.clear();
        for &index in row {
            let value = values.get(index).ok_or(BcaError::Index { index })?;
            resample.push(*value);
        }
        result.push(statistic(&resample));
    }
    match Sample::try_new(&result, 1) {
        Ok(sample) => Ok(sample.sorted()),
        Err(SampleError::TooFew { .. } | SampleError::TooMany { .. }) => Err(BcaError::NoResample),
        Err(SampleError::NotFinite { .. }) => Err(BcaError::Degenerate),
    }
}

/// The share of the replicates below `value`; equal ones count half.
fn share_below(replicates: &Sorted, value: f64) -> f64 {
    let ordered = replicates.values();
    let below = ordered.partition_point(|replicate| *replicate < value);
    let at_most = ordered.partition_point(|replicate| *replicate <= value);
    0.5 * float(below + at_most) / float(ordered.len())
}

/// Rate at which the noise of the statistic changes with its value, by leaving out
/// each number in turn.
fn acceleration(values: &[f64], statistic: &impl Fn(&[f64]) -> f64) -> f64 {
    let without: Vec<f64> = (0..values.len())
        .map(|left_out| {
            let rest = [&values[..left_out], &values[left_out + 1..]].concat();
            statistic(&rest)
        })
        .collect();
    let mean = without.iter().sum::<f64>() / float(without.len());
    let (mut squares, mut cubes) = (0.0, 0.0);
    for value in without {
        let influence = mean - value;
        squares += influence * influence;
        cubes += influence * influence * influence;
    }
    cubes / (6.0 * squares.powf(1.5))
}

/// Reason why there is no bootstrap interval.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BcaError {
    /// The values themselves are unfit.
    #[error("the values cannot be resampled")]
    Values(#[source] SampleError),
    /// No resample at all.
    #[error("no resample is given")]
    NoResample,
    /// A resample points at nothing.
    #[error("a resample has index {index}, and there is no such value")]
    Index {
        /// The index, counted from zero.
        index: usize,
    },
    /// The statistic is not finite, does not vary, or lies outside all resamples.
    #[error("the statistic does not vary enough among the resamples")]
    Degenerate,
}
