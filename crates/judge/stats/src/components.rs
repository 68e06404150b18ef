//! Sources of the noise of a comparison, and the best length of a run.

use crate::level::Level;
use crate::number::float;
use crate::paired::{LogRatios, PairedError};
use crate::sample::{Sample, SampleError};
use crate::student::StudentT;
use crate::warmup::lag_one;

/// The fewest seconds of a run that say something about neighbours.
const SECONDS_MIN: usize = 8;

/// Correlations beyond this, to either side, are more than seconds can show.
const CORRELATION_MAX: f64 = 0.98;

/// No forecast looks further: so many pairs are impractical.
const PAIRS_MAX: u32 = 10_000;

/// The noise of a comparison, taken apart: what differs between runs, what
/// differs between the seconds of a run, and how much neighbouring seconds
/// resemble each other.
///
/// All are shares of the mean. A pair of runs that measure n seconds each has a
/// log ratio with variance 2·\[between² + within²·(1 + r) / ((1 − r)·n)\].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VarianceComponents {
    /// Number of pairs of runs this comes from. From fewer than ten `between` is
    /// uncertain by a factor of two.
    pub pairs: usize,
    /// The standard deviation of what one run has to itself (process, layout,
    /// moment), beyond the chance of its seconds and what it shares with the
    /// other half of its pair. 0 where the seconds explain all of the noise.
    pub between: f64,
    /// The standard deviation of the seconds of a run about its mean.
    pub within: f64,
    /// The lag-one correlation r of the seconds of a run, free of the bias of
    /// short runs; negative where bursts cancel out.
    pub correlation: f64,
}

impl VarianceComponents {
    /// From the rate in each second of the measured part of the runs of some
    /// pairs: (baseline, comparison). Seconds of zero count.
    ///
    /// # Errors
    /// [`ComponentsError`] for fewer than two pairs, for a run with fewer than
    /// eight seconds or one that is not finite, and for a run whose mean is not
    /// positive.
    pub fn from_pairs(pairs: &[(&[f64], &[f64])]) -> Result<Self, ComponentsError> {
        let mut means = Vec::with_capacity(pairs.len());
        let mut runs = Vec::with_capacity(2 * pairs.len());
        for (index, (baseline, comparison)) in pairs.iter().enumerate() {
            let baseline = RunNoise::of(index, baseline)?;
            let comparison = RunNoise::of(index, comparison)?;
            means.push((baseline.mean, comparison.mean));
            runs.extend([baseline, comparison]);
        }
        let ratios = LogRatios::from_pairs(&means).map_err(ComponentsError::Pairs)?;
        let correlation = pooled_correlation(&runs);
        let within = pooled_within(&runs, correlation);
        let of_pair = Sample::try_new(ratios.values(), 2)
            .ok()
            .and_then(|sample| sample.standard_deviation())
            .unwrap_or(0.0);
        let of_seconds: f64 = runs
            .iter()
            .map(|run| mean_variance(within, correlation, run.seconds))
            .sum::<f64>()
            / float(runs.len());
        let between = (0.5 * of_pair * of_pair - of_seconds).max(0.0).sqrt();
        Ok(Self {
            pairs: pairs.len(),
            between,
            within,
            correlation,
        })
    }

    /// The standard deviation of the log ratio of a pair whose runs measure
    /// this many seconds each.
    #[must_use]
    pub fn pair_deviation(&self, seconds: f64) -> f64 {
        let of_seconds = mean_variance(self.within, self.correlation, seconds);
        (2.0 * (self.between * self.between + of_seconds)).sqrt()
    }

    /// The length of run that gives the narrowest interval for the time it
    /// takes, where each run costs `overhead_seconds` besides (start, warm-up,
    /// stop): √(overhead · within²·(1 + r) / (1 − r)) / between, held within
    /// `bounds` (Kalibera and Jones, 2013, with correlated seconds).
    #[must_use]
    pub fn run_length(&self, overhead_seconds: f64, bounds: RunBounds) -> RunLength {
        let per_second = mean_variance(self.within, self.correlation, 1.0);
        // Without noise between runs, one run may as well be endless; without
        // any noise at all the shortest will do.
        let ideal_seconds = if per_second > 0.0 {
            (overhead_seconds.max(0.0) * per_second).sqrt() / self.between
        } else {
            0.0
        };
        let (seconds, held) = if ideal_seconds < bounds.shortest {
            (bounds.shortest, Some(Held::Shortest))
        } else if ideal_seconds > bounds.longest {
            (bounds.longest, Some(Held::Longest))
        } else {
            (ideal_seconds, None)
        };
        RunLength {
            seconds,
            ideal_seconds,
            held,
            overhead_seconds: overhead_seconds.max(0.0),
            pair_deviation: self.pair_deviation(seconds),
        }
    }
}

/// The shortest and longest measured part of a run that may be proposed, in
/// seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunBounds {
    shortest: f64,
    longest: f64,
}

impl RunBounds {
    /// From `shortest_seconds`, above 0, to `longest_seconds`.
    ///
    /// # Errors
    /// [`RunBoundsError`] where they are not in this order, or not finite.
    pub fn try_new(shortest_seconds: f64, longest_seconds: f64) -> Result<Self, RunBoundsError> {
        let ordered = 0.0 < shortest_seconds && shortest_seconds <= longest_seconds;
        if ordered && longest_seconds.is_finite() {
            Ok(Self {
                shortest: shortest_seconds,
                longest: longest_seconds,
            })
        } else {
            Err(RunBoundsError {
                shortest_seconds,
                longest_seconds,
            })
        }
    }
}

/// A proposed length of run, and what to expect of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunLength {
    /// The seconds to measure in each run, within the bounds.
    pub seconds: f64,
    /// Best length without bounds; infinite where runs do not differ.
    pub ideal_seconds: f64,
    /// The bound held it, if any.
    pub held: Option<Held>,
    /// Overhead of each run, in seconds.
    pub overhead_seconds: f64,
    /// The standard deviation of the log ratio of a pair of such runs.
    pub pair_deviation: f64,
}

impl RunLength {
    /// The fewest pairs of such runs after which the t interval of this level
    /// is expected to reach at most `half_width` (a relative change) to each
    /// side; `None` where 10 000 do not suffice.
    #[must_use]
    pub fn pairs_to_half_width(&self, half_width: f64, level: Level) -> Option<u32> {
        pairs_to_half_width(self.pair_deviation, half_width, |pairs| {
            let degrees = f64::from(pairs) - 1.0;
            Some(StudentT::try_new(degrees).ok()?.critical(level))
        })
    }

    /// Time that this many pairs of such runs take one after the other, in
    /// minutes.
    #[must_use]
    pub fn minutes(&self, pairs: u32) -> f64 {
        2.0 * f64::from(pairs) * (self.seconds + self.overhead_seconds) / 60.0
    }
}

/// The bound a length of run was held at.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Held {
    /// The longest: the noise lies within the runs.
    Longest,
    /// The shortest: the noise lies between the runs.
    Shortest,
}

/// The fewest pairs, at least two, after which an interval of ± c·s / √pairs is
/// expected to reach at most `half_width` (a relative change) to each side,
/// where the log ratios of pairs have standard deviation `pair_deviation` and
/// `critical` gives c: that of the t distribution, or of a plan of looks (`None`
/// where there is no look). `None` where 10 000 pairs do not suffice.
#[must_use]
pub fn pairs_to_half_width(
    pair_deviation: f64,
    half_width: f64,
    critical: impl Fn(u32) -> Option<f64>,
) -> Option<u32> {
    let log_half_width = half_width.ln_1p();
    let reached = |pairs: u32| {
        critical(pairs).is_some_and(|critical| {
            critical * pair_deviation / f64::from(pairs).sqrt() <= log_half_width
        })
    };
    (2..=PAIRS_MAX).find(|&pairs| reached(pairs))
}

/// Statistics of one run's seconds, relative to its mean.
struct RunNoise {
    mean: f64,
    seconds: f64,
    squares: f64,
    correlation: f64,
}

impl RunNoise {
    fn of(pair: usize, seconds: &[f64]) -> Result<Self, ComponentsError> {
        let sample = Sample::try_new(seconds, SECONDS_MIN).map_err(|source| {
            let pair = pair + 1;
            ComponentsError::Seconds { pair, source }
        })?;
        let mean = sample.mean();
        if mean <= 0.0 {
            let pair = pair + 1;
            return Err(ComponentsError::Mean { pair, mean });
        }
        let deviations: Vec<f64> = seconds.iter().map(|value| value / mean - 1.0).collect();
        Ok(Self {
            mean,
            seconds: float(seconds.len()),
            squares: deviations.iter().map(|value| value * value).sum(),
            correlation: lag_one(&deviations),
        })
    }
}

/// The mean of the lag-one correlations, each freed of the bias −(1 + 3r) / n
/// that taking off the mean of n values gives it, weighted by length.
fn pooled_correlation(runs: &[RunNoise]) -> f64 {
    let (mut weighted, mut weights) = (0.0, 0.0);
    for run in runs {
        let corrected = (run.seconds * run.correlation + 1.0) / (run.seconds - 3.0);
        weighted += run.seconds * corrected;
        weights += run.seconds;
    }
    (weighted / weights).clamp(-CORRELATION_MAX, CORRELATION_MAX)
}

/// The standard deviation of the seconds about the long-run mean of their run.
/// Taking off the mean of n correlated seconds leaves n − (1 + r) / (1 − r)
/// degrees of freedom, not n − 1.
fn pooled_within(runs: &[RunNoise], correlation: f64) -> f64 {
    let inflation = (1.0 + correlation) / (1.0 - correlation);
    let (mut squares, mut degrees) = (0.0, 0.0);
    for run in runs {
        squares += run.squares;
        degrees += (run.seconds - inflation).max(1.0);
    }
    (squares / degrees).sqrt()
}

/// The variance of the mean of this many seconds about that of its run.
fn mean_variance(within: f64, correlation: f64, seconds: f64) -> f64 {
    within * within * (1.0 + correlation) / ((1.0 - correlation) * seconds)
}

/// Reason why runs do not give [`VarianceComponents`].
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ComponentsError {
    /// A run whose mean is not positive has no relative noise.
    #[error("a run of pair {pair} has mean {mean}, which is not positive")]
    Mean {
        /// Number of the pair, counted from one.
        pair: usize,
        /// The mean of its seconds.
        mean: f64,
    },
    /// The means of the runs do not make pairs.
    #[error("the means of the runs make no log ratios")]
    Pairs(#[source] PairedError),
    /// The seconds of a run are too few or not finite.
    #[error("the seconds of a run of pair {pair} cannot be used")]
    Seconds {
        /// Number of the pair, counted from one.
        pair: usize,
        /// Fault of the values.
        source: SampleError,
    },
}

/// Bounds that are not in order.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{shortest_seconds} to {longest_seconds} seconds are not valid bounds for a run")]
pub struct RunBoundsError {
    /// The given shortest.
    pub shortest_seconds: f64,
    /// The given longest.
    pub longest_seconds: f64,
}
