//! The figures of Vector's soak rig of 2022, to compare with its old reports.
//!
//! They are kept as they were, and mislead: the seconds of all runs are pooled
//! as if each were an experiment, which calls two equal versions different in 70
//! to 90 of 100 comparisons; central differences make neighbouring seconds
//! overlap; seconds in which nothing came through are dropped, so a stall
//! does not count; and "confidence" is 1 − p, not the chance to be right.

use crate::level::Level;
use crate::number::float;
use crate::sample::{Sample, SampleError};
use crate::welch::{Welch, welch};

mod gradient;

pub use gradient::{CounterReading, ReadingsError};
pub(crate) use gradient::{check, rates};

/// Tukey's fences lie this many interquartile ranges beyond the quartiles.
const FENCE: f64 = 1.5;

/// Options of the soak rig.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SoakOptions {
    /// CPUs given to the target: all counts are divided by it.
    pub cpus: f64,
    /// Seconds up to and including this one are left out.
    pub warmup_seconds: f64,
    /// A variant above this coefficient of variation is erratic.
    pub erratic_limit: f64,
    /// Changes with a p value below this are shown.
    pub p_value: f64,
    /// Changes of the mean beyond this many percent are shown.
    pub drift_percent: f64,
    /// True if the experiment was declared erratic, which hides its changes.
    pub declared_erratic: bool,
    /// The column in which outliers are counted.
    pub outliers: OutlierColumn,
}

impl Default for SoakOptions {
    /// Defaults of the script.
    fn default() -> Self {
        Self {
            cpus: 1.0,
            warmup_seconds: 30.0,
            erratic_limit: 0.1,
            p_value: 0.1,
            drift_percent: 5.0,
            declared_erratic: false,
            outliers: OutlierColumn::CumulativeValue,
        }
    }
}

/// The column in which outliers are counted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OutlierColumn {
    /// The counter itself, as the soak rig did: a mistake, since a counter that
    /// climbs evenly has no outliers for any throughput.
    CumulativeValue,
    /// The throughput, as was meant.
    Throughput,
}

/// One soak, compared as the soak rig did.
#[derive(Clone, Debug, PartialEq)]
pub struct SoakComparison {
    /// All seconds of all runs of the baseline.
    pub baseline: SoakVariant,
    /// All seconds of all runs of the comparison.
    pub comparison: SoakVariant,
    /// "Δ mean": comparison − baseline, per second and CPU.
    pub mean_difference: f64,
    /// "Δ mean %": of the baseline, rounded to two decimals.
    pub mean_difference_percent: f64,
    /// Welch's t, baseline less comparison as the soak rig had it.
    pub t: f64,
    /// Its two-sided p value.
    pub p_value: f64,
    /// "confidence": (1 − p)·100.
    pub confidence_percent: f64,
    /// True if either variant is above the limit of erratic ones.
    pub erratic: bool,
    /// True if the comparison is erratic, and neither is the baseline nor was it declared.
    pub newly_erratic: bool,
    /// True if the change was shown among the interesting ones.
    pub interesting: bool,
    /// True if the soak rig failed it: interesting, and for the worse (less).
    pub regression: bool,
}

/// One variant of a soak.
#[derive(Clone, Debug, PartialEq)]
pub struct SoakVariant {
    /// The seconds of all its runs together.
    pub pooled: SoakSummary,
    /// Each run; `None` where fewer than two seconds are left of it.
    pub runs: Vec<Option<SoakSummary>>,
}

/// Description of some seconds of throughput, per second and CPU, as pandas and
/// SciPy do it.
#[derive(Clone, Debug, PartialEq)]
pub struct SoakSummary {
    /// Number of seconds.
    pub samples: usize,
    /// Their mean.
    pub mean: f64,
    /// Their sample standard deviation (divisor n − 1).
    pub standard_deviation: f64,
    /// The standard error that they would have if they were independent.
    pub standard_error: f64,
    /// The smallest.
    pub min: f64,
    /// The median.
    pub median: f64,
    /// The 90th percentile, interpolated linearly, as are the others.
    pub p90: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The largest.
    pub max: f64,
    /// The adjusted Fisher-Pearson skewness G1; `None` below three seconds.
    pub skewness: Option<f64>,
    /// The standard deviation with divisor n over the mean.
    pub coefficient_of_variation: f64,
    /// The share outside Tukey's fences, in percent: [`OutlierColumn`].
    pub outlier_percent: f64,
}

/// Compares the runs of two variants, each given by the readings of a
/// cumulative counter.
///
/// # Errors
/// [`SoakError`] for readings that have no rates, and where fewer than two
/// seconds of a variant are left.
pub fn soak(
    baseline: &[&[CounterReading]],
    comparison: &[&[CounterReading]],
    options: &SoakOptions,
) -> Result<SoakComparison, SoakError> {
    let baseline_seconds = seconds_of(baseline, options)?;
    let comparison_seconds = seconds_of(comparison, options)?;
    let all =
        |runs: &[Vec<Second>]| -> Vec<f64> { runs.iter().flatten().map(|s| s.rate).collect() };
    let (before, after) = (all(&baseline_seconds), all(&comparison_seconds));
    let Welch { t, p_value, .. } = welch(&before, &after, Level::NINETY_FIVE)?;
    let baseline = SoakVariant::of(&baseline_seconds, options.outliers)?;
    let comparison = SoakVariant::of(&comparison_seconds, options.outliers)?;
    let mean_difference = comparison.pooled.mean - baseline.pooled.mean;
    let percent = round_to_hundredths(mean_difference / baseline.pooled.mean * 100.0);
    let shown = p_value < options.p_value && !options.declared_erratic;
    let is_erratic =
        |variant: &SoakVariant| variant.pooled.coefficient_of_variation > options.erratic_limit;
    let (was_erratic, is_erratic) = (is_erratic(&baseline), is_erratic(&comparison));
    Ok(SoakComparison {
        mean_difference,
        mean_difference_percent: percent,
        t: -t,
        p_value,
        confidence_percent: (1.0 - p_value) * 100.0,
        erratic: was_erratic || is_erratic,
        newly_erratic: is_erratic && !was_erratic && !options.declared_erratic,
        interesting: shown && percent.abs() > options.drift_percent,
        regression: shown && percent < -options.drift_percent,
        baseline,
        comparison,
    })
}

/// One second that counts.
struct Second {
    /// The counter per CPU.
    value: f64,
    /// Its rate per second and CPU.
    rate: f64,
}

/// The seconds of each run after the warm-up in which anything came through.
fn seconds_of(
    runs: &[&[CounterReading]],
    options: &SoakOptions,
) -> Result<Vec<Vec<Second>>, SoakError> {
    runs.iter()
        .enumerate()
        .map(|(run, readings)| {
            check(readings).map_err(|source| SoakError::Readings {
                run: run + 1,
                source,
            })?;
            let per_cpu: Vec<_> = readings
                .iter()
                .map(|reading| CounterReading {
                    value: reading.value / options.cpus,
                    ..*reading
                })
                .collect();
            let seconds = per_cpu.iter().zip(gradient::gradient(&per_cpu));
            Ok(seconds
                .filter(|(reading, rate)| reading.second > options.warmup_seconds && *rate > 0.0)
                .map(|(reading, rate)| Second {
                    value: reading.value,
                    rate,
                })
                .collect())
        })
        .collect()
}

impl SoakVariant {
    fn of(runs: &[Vec<Second>], outliers: OutlierColumn) -> Result<Self, SampleError> {
        let pooled: Vec<&Second> = runs.iter().flatten().collect();
        Ok(Self {
            pooled: SoakSummary::of(&pooled, outliers)?,
            runs: runs
                .iter()
                .map(|run| SoakSummary::of(&run.iter().collect::<Vec<_>>(), outliers).ok())
                .collect(),
        })
    }
}

impl SoakSummary {
    fn of(seconds: &[&Second], outliers: OutlierColumn) -> Result<Self, SampleError> {
        let rates: Vec<f64> = seconds.iter().map(|second| second.rate).collect();
        let sample = Sample::try_new(&rates, 2)?;
        let sorted = sample.sorted();
        let percentile = |share: f64| sorted.quantile(share).unwrap_or(f64::NAN);
        let mean = sample.mean();
        let standard_deviation = sample.standard_deviation().unwrap_or(f64::NAN);
        let count = float(sample.len());
        let population_deviation = standard_deviation * ((count - 1.0) / count).sqrt();
        let column: Vec<f64> = match outliers {
            OutlierColumn::CumulativeValue => seconds.iter().map(|second| second.value).collect(),
            OutlierColumn::Throughput => rates.clone(),
        };
        Ok(Self {
            samples: sample.len(),
            mean,
            standard_deviation,
            standard_error: standard_deviation / count.sqrt(),
            min: sample.min(),
            median: sorted.median(),
            p90: percentile(0.9),
            p95: percentile(0.95),
            p99: percentile(0.99),
            max: sample.max(),
            skewness: skewness(sample),
            coefficient_of_variation: population_deviation / mean,
            outlier_percent: outlier_percent(Sample::try_new(&column, 2)?),
        })
    }
}

/// The adjusted Fisher-Pearson coefficient G1; 0 where all values are equal.
fn skewness(sample: Sample<'_>) -> Option<f64> {
    if sample.len() < 3 {
        return None;
    }
    let (count, mean) = (float(sample.len()), sample.mean());
    let sum_of_powers = |power: i32| -> f64 {
        let deviations = sample.values().iter().map(|value| value - mean);
        deviations.map(|deviation| deviation.powi(power)).sum()
    };
    let squares = sum_of_powers(2);
    if squares <= 0.0 {
        return Some(0.0);
    }
    let adjusted = count * (count - 1.0).sqrt() / (count - 2.0);
    Some(adjusted * sum_of_powers(3) / squares.powf(1.5))
}

fn outlier_percent(column: Sample<'_>) -> f64 {
    let sorted = column.sorted();
    let quartile = |share: f64| sorted.quantile(share).unwrap_or(f64::NAN);
    let (low, high) = (quartile(0.25), quartile(0.75));
    let reach = FENCE * (high - low);
    let outside = column
        .values()
        .iter()
        .filter(|&&value| value < low - reach || value > high + reach)
        .count();
    float(outside) / float(column.len()) * 100.0
}

/// Rounded to two decimals as NumPy does it: ties of the hundredfold to even.
fn round_to_hundredths(value: f64) -> f64 {
    (value * 100.0).round_ties_even() / 100.0
}

/// Reason why a soak cannot be compared.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SoakError {
    /// Readings that have no rates.
    #[error("the readings of run {run} have no rates")]
    Readings {
        /// Number of the run in its variant, counted from one.
        run: usize,
        /// Fault of the values.
        source: ReadingsError,
    },
    /// Too few seconds left of a variant, or some whose rate is not finite.
    #[error("the seconds of a variant cannot be used")]
    Seconds(#[from] SampleError),
}
