//! The effect of a change, from pairs of runs.

use std::fmt;

use crate::estimate::Estimate;
use crate::level::Level;
use crate::normal;
use crate::number::float;
use crate::sample::Sample;
use crate::student::{DegreesError, StudentT};

/// The power with which [`PairedEffect::smallest_visible`] is seen.
const VISIBLE_POWER: f64 = 0.8;

/// The mean log ratio of pairs of runs, with its t interval.
///
/// All that is called "log" is ln(comparison / baseline); all else is relative:
/// comparison / baseline − 1. Which sign is worse is for the caller to say, and
/// so is whether the pairs are enough: with fewer than four the interval is
/// right but seldom useful.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairedEffect {
    pairs: usize,
    level: Level,
    log_mean: f64,
    log_standard_deviation: f64,
    log_half_width: f64,
    p_value: f64,
}

impl PairedEffect {
    /// The effect in these (baseline, comparison) pairs, one number a run.
    ///
    /// # Errors
    /// [`PairedError`] for fewer than two pairs, and for a value that is not
    /// positive and finite.
    pub fn from_pairs(pairs: &[(f64, f64)], level: Level) -> Result<Self, PairedError> {
        LogRatios::from_pairs(pairs)?.effect(level)
    }

    /// How many pairs there are.
    #[must_use]
    pub const fn pairs(&self) -> usize {
        self.pairs
    }

    /// How often intervals made like this one hold the truth.
    #[must_use]
    pub const fn level(&self) -> Level {
        self.level
    }

    /// The relative change, comparison / baseline − 1, with its interval; the
    /// geometric mean over the pairs. Few and wild pairs may give an upper end
    /// of infinity.
    #[must_use]
    pub fn relative(&self) -> Estimate {
        self.log().log_to_relative()
    }

    /// The mean log ratio with its interval.
    #[must_use]
    pub fn log(&self) -> Estimate {
        Estimate::around(self.log_mean, self.log_half_width)
    }

    /// The sample standard deviation of the log ratios.
    #[must_use]
    pub const fn log_standard_deviation(&self) -> f64 {
        self.log_standard_deviation
    }

    /// The standard error of the mean log ratio.
    #[must_use]
    pub fn log_standard_error(&self) -> f64 {
        self.log_standard_deviation / float(self.pairs).sqrt()
    }

    /// How far the interval reaches to each side of the mean log ratio.
    #[must_use]
    pub const fn log_half_width(&self) -> f64 {
        self.log_half_width
    }

    /// How far the interval reaches, as a relative change from none.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        self.log_half_width.exp_m1()
    }

    /// How often pairs without any true change would give a mean log ratio at
    /// least this many standard errors from zero, on either side.
    ///
    /// Where all log ratios are the same it is 1 if they are zero, else 0.
    #[must_use]
    pub const fn p_value(&self) -> f64 {
        self.p_value
    }

    /// The smallest relative change that this many pairs with this noise would
    /// have told from none in about four of five experiments: half width plus
    /// 0.84 standard errors. [`paired_power`](crate::paired_power) is exact.
    #[must_use]
    pub fn smallest_visible(&self) -> f64 {
        let margin = normal::quantile(VISIBLE_POWER) * self.log_standard_error();
        (self.log_half_width + margin).exp_m1()
    }
}

/// The log ratios ln(comparison / baseline) of at least two pairs of runs, in
/// the order of the pairs.
#[derive(Clone, Debug, PartialEq)]
pub struct LogRatios {
    values: Vec<f64>,
}

impl LogRatios {
    /// The log ratios of these (baseline, comparison) pairs, one number a run.
    ///
    /// # Errors
    /// [`PairedError`] for fewer than two pairs, and for the first value that is
    /// not positive and finite.
    pub fn from_pairs(pairs: &[(f64, f64)]) -> Result<Self, PairedError> {
        if pairs.len() < 2 {
            return Err(PairedError::TooFewPairs { found: pairs.len() });
        }
        let values = pairs
            .iter()
            .enumerate()
            .map(|(index, &(baseline, comparison))| {
                check_positive(index, Half::Baseline, baseline)?;
                check_positive(index, Half::Comparison, comparison)?;
                Ok(log_ratio(baseline, comparison))
            })
            .collect::<Result<_, PairedError>>()?;
        Ok(Self { values })
    }

    /// The log ratios, one a pair.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Their mean with its t interval.
    ///
    /// # Errors
    /// [`PairedError::TooManyPairs`] above 100 001 pairs.
    pub fn effect(&self, level: Level) -> Result<PairedEffect, PairedError> {
        let pairs = self.values.len();
        let too_few = PairedError::TooFewPairs { found: pairs };
        let Ok(sample) = Sample::try_new(&self.values, 2) else {
            return Err(too_few);
        };
        let log_standard_deviation = sample.standard_deviation().ok_or(too_few)?;
        let student = StudentT::try_new(float(pairs - 1))
            .map_err(|DegreesError { .. }| PairedError::TooManyPairs { found: pairs })?;
        let log_mean = sample.mean();
        let standard_error = log_standard_deviation / float(pairs).sqrt();
        let p_value = if standard_error > 0.0 {
            student.two_sided(log_mean / standard_error)
        } else if log_mean.abs() > 0.0 {
            0.0
        } else {
            1.0
        };
        Ok(PairedEffect {
            pairs,
            level,
            log_mean,
            log_standard_deviation,
            log_half_width: student.critical(level) * standard_error,
            p_value,
        })
    }
}

fn check_positive(index: usize, half: Half, value: f64) -> Result<(), PairedError> {
    if value > 0.0 && value.is_finite() {
        return Ok(());
    }
    Err(PairedError::NotPositive {
        pair: index + 1,
        half,
        value,
    })
}

fn log_ratio(baseline: f64, comparison: f64) -> f64 {
    let ratio = comparison / baseline;
    if ratio.is_normal() {
        ratio.ln()
    } else {
        // Values so far apart that their ratio does not fit.
        comparison.ln() - baseline.ln()
    }
}

/// One half of a pair.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Half {
    /// The run of the baseline.
    Baseline,
    /// The run of the comparison.
    Comparison,
}

impl fmt::Display for Half {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Baseline => "baseline",
            Self::Comparison => "comparison",
        })
    }
}

/// Why pairs have no [`PairedEffect`].
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PairedError {
    /// One pair says nothing about noise.
    #[error("too few pairs: {found}, at least 2 are needed")]
    TooFewPairs {
        /// How many there are.
        found: usize,
    },
    /// More pairs than the t distribution is accurate for.
    #[error("{found} pairs are more than a t interval is made for")]
    TooManyPairs {
        /// How many there are.
        found: usize,
    },
    /// A value without a logarithm.
    #[error("{half} value {value} of pair {pair} is not a positive, finite number")]
    NotPositive {
        /// Which pair, counted from one.
        pair: usize,
        /// Which half of it.
        half: Half,
        /// What was found.
        value: f64,
    },
}
