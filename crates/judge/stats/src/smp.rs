//! The figures of the Regression Detector of 2023, to compare with its reports.
//!
//! Its source is closed. What its reports print, and how their figures hang
//! together, fits Welch's interval on the pooled seconds of all runs, and that
//! is what is computed here. It shares the fault of the soak rig before it (see
//! [`soak`](mod@crate::soak)): seconds are no experiments, so the interval is far too
//! narrow where runs differ, and only the threshold of 5 % hides it; which in
//! turn hides every change below 5 %.

use crate::estimate::Estimate;
use crate::level::Level;
use crate::number::float;
use crate::sample::{Sample, SampleError};
use crate::soak::{CounterReading, ReadingsError, check, rates};
use crate::welch::welch;

/// Kind of series that the readings are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SmpSeries {
    /// A cumulative counter: the rate from each reading to the next is judged.
    Counter,
    /// Something measured again each time, such as memory: the readings are.
    Gauge,
}

/// Options of the detector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SmpOptions {
    /// Kind of the readings.
    pub series: SmpSeries,
    /// Seconds up to and including this one are left out.
    pub warmup_seconds: f64,
    /// The level of the interval.
    pub level: Level,
    /// Changes of less than this many percent are never flagged.
    pub effect_percent: f64,
    /// A variant above this coefficient of variation is erratic.
    pub erratic_limit: f64,
    /// True if the experiment was declared erratic, which hides its changes.
    pub declared_erratic: bool,
}

impl SmpOptions {
    /// Options that its reports state: 90 % intervals, 5 % at the least, erratic above
    /// 0.1, and 45 s of warm-up.
    #[must_use]
    pub fn stated(series: SmpSeries) -> Self {
        Self {
            series,
            warmup_seconds: 45.0,
            level: Level::try_new(0.9).expect("0.9 lies between 0 and 1"),
            effect_percent: 5.0,
            erratic_limit: 0.1,
            declared_erratic: false,
        }
    }
}

/// One experiment, compared as the detector does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SmpComparison {
    /// The mean of all seconds of all runs of the baseline.
    pub baseline_mean: f64,
    /// The mean of all seconds of all runs of the comparison.
    pub comparison_mean: f64,
    /// Number of seconds of the baseline.
    pub baseline_samples: usize,
    /// Number of seconds of the comparison.
    pub comparison_samples: usize,
    /// "Δ mean": comparison − baseline, with its interval.
    pub mean_difference: Estimate,
    /// "Δ mean %" and "Δ mean % CI": the same in percent of the baseline mean.
    pub mean_difference_percent: Estimate,
    /// The two-sided p value of Welch's test.
    pub p_value: f64,
    /// "confidence": (1 − p)·100, as its earlier reports had it.
    pub confidence_percent: f64,
    /// True if either variant is above the limit of erratic ones.
    pub erratic: bool,
    /// True if the comparison is erratic, and neither is the baseline nor was it declared.
    pub newly_erratic: bool,
    /// True if the detector flags the change: large enough, with an interval
    /// that excludes zero, and not erratic, be it declared or seen.
    pub flagged: bool,
}

/// Compares the runs of two variants, each given by its readings.
///
/// # Errors
/// [`SmpError`] for readings that have no rates, where fewer than two seconds
/// of a variant are left, and for a baseline whose mean is zero.
pub fn smp(
    baseline: &[&[CounterReading]],
    comparison: &[&[CounterReading]],
    options: &SmpOptions,
) -> Result<SmpComparison, SmpError> {
    let before = seconds_of(baseline, options)?;
    let after = seconds_of(comparison, options)?;
    let test = welch(&before, &after, options.level)?;
    let percent = |value: f64| value / test.baseline_mean * 100.0;
    if test.baseline_mean.abs() <= 0.0 {
        return Err(SmpError::ZeroBaseline);
    }
    let ends = [
        percent(test.difference.lower),
        percent(test.difference.upper),
    ];
    let mean_difference_percent = Estimate {
        value: percent(test.difference.value),
        // A negative baseline turns the interval over.
        lower: ends[0].min(ends[1]),
        upper: ends[0].max(ends[1]),
    };
    let is_erratic = |seconds: &[f64]| {
        coefficient_of_variation(seconds).is_none_or(|result| result > options.erratic_limit)
    };
    let (was_erratic, is_erratic) = (is_erratic(&before), is_erratic(&after));
    let erratic = was_erratic || is_erratic;
    let large = mean_difference_percent.value.abs() >= options.effect_percent;
    Ok(SmpComparison {
        baseline_mean: test.baseline_mean,
        comparison_mean: test.comparison_mean,
        baseline_samples: before.len(),
        comparison_samples: after.len(),
        mean_difference: test.difference,
        mean_difference_percent,
        p_value: test.p_value,
        confidence_percent: (1.0 - test.p_value) * 100.0,
        erratic,
        newly_erratic: is_erratic && !was_erratic && !options.declared_erratic,
        flagged: large
            && mean_difference_percent.excludes_zero()
            && !erratic
            && !options.declared_erratic,
    })
}

/// All seconds of all runs after the warm-up, those of zero included.
fn seconds_of(runs: &[&[CounterReading]], options: &SmpOptions) -> Result<Vec<f64>, SmpError> {
    let mut seconds = Vec::new();
    for (run, readings) in runs.iter().enumerate() {
        check(readings).map_err(|source| SmpError::Readings {
            run: run + 1,
            source,
        })?;
        let (values, readings) = match options.series {
            SmpSeries::Counter => (rates(readings), &readings[1..]),
            SmpSeries::Gauge => (
                readings.iter().map(|reading| reading.value).collect(),
                *readings,
            ),
        };
        let kept = readings
            .iter()
            .zip(values)
            .filter(|(reading, _)| reading.second > options.warmup_seconds);
        seconds.extend(kept.map(|(_, value)| value));
    }
    Ok(seconds)
}

/// The standard deviation with divisor n over the mean; `None` for mean zero.
fn coefficient_of_variation(seconds: &[f64]) -> Option<f64> {
    let sample = Sample::try_new(seconds, 2).ok()?;
    let count = float(sample.len());
    let deviation = sample.standard_deviation()? * ((count - 1.0) / count).sqrt();
    let mean = sample.mean();
    (mean.abs() > 0.0).then(|| deviation / mean.abs())
}

/// Reason why an experiment cannot be compared.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SmpError {
    /// Readings that have no rates.
    #[error("the readings of run {run} have no rates")]
    Readings {
        /// Number of the run in its variant, counted from one.
        run: usize,
        /// Fault of the values.
        source: ReadingsError,
    },
    /// Too few seconds left of a variant, or some that are not finite.
    #[error("the seconds of a variant cannot be used")]
    Seconds(#[from] SampleError),
    /// Nothing can be said in percent of zero.
    #[error("the mean of the baseline is zero")]
    ZeroBaseline,
}
