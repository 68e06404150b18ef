//! The effect of a change, from pairs of runs.

mod error;

use crate::estimate::Estimate;
use crate::level::Level;
use crate::looks::Looks;
use crate::normal;
use crate::number::{count, float};
use crate::sample::SampleError;
use crate::student::{DegreesError, StudentT};
use crate::welch::Moments;
pub use error::{Half, PairedError};

/// The power with which [`PairedEffect::smallest_visible`] is seen.
const VISIBLE_POWER: f64 = 0.8;

/// Change between the halves of pairs of runs, with its interval.
///
/// Means are taken of one value a pair: the log ratio ln(comparison / baseline)
/// of [`LogRatios`], the difference comparison − baseline of [`Differences`].
/// It reports the relative change comparison / baseline − 1 of the first,
/// and the difference itself of the second. Which sign is worse is for the
/// caller to say, and so is whether the pairs are enough: with fewer than four
/// the interval is right but rarely useful.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairedEffect {
    pairs: usize,
    level: Level,
    scale: Scale,
    mean: f64,
    standard_deviation: f64,
    mean_half_width: f64,
    p_value: f64,
}

impl PairedEffect {
    /// The relative change in these (baseline, comparison) pairs, one number a
    /// run: [`LogRatios::effect`].
    ///
    /// # Errors
    /// [`PairedError`] for fewer than two pairs, and for a value that is not
    /// positive and finite.
    pub fn from_pairs(pairs: &[(f64, f64)], level: Level) -> Result<Self, PairedError> {
        LogRatios::from_pairs(pairs)?.effect(level)
    }

    /// Number of pairs.
    #[must_use]
    pub const fn pairs(&self) -> usize {
        self.pairs
    }

    /// Share of intervals made like this one hold the truth: at a look, all of
    /// all looks together.
    #[must_use]
    pub const fn level(&self) -> Level {
        self.level
    }

    /// The change, on the reported scale: comparison / baseline − 1
    /// by the geometric mean over the pairs, or the mean of comparison − baseline.
    /// Few and wild pairs may give an upper end of infinity.
    #[must_use]
    pub fn relative(&self) -> Estimate {
        self.mean().map(|value| self.scale.reported(value))
    }

    /// The mean of the log ratios, or of the differences, with its interval.
    #[must_use]
    pub fn mean(&self) -> Estimate {
        Estimate::around(self.mean, self.mean_half_width)
    }

    /// The sample standard deviation of the log ratios, or of the differences.
    #[must_use]
    pub const fn standard_deviation(&self) -> f64 {
        self.standard_deviation
    }

    /// The standard error of the mean.
    #[must_use]
    pub fn standard_error(&self) -> f64 {
        self.standard_deviation / float(self.pairs).sqrt()
    }

    /// Distance by which the interval reaches to each side of the mean.
    #[must_use]
    pub const fn mean_half_width(&self) -> f64 {
        self.mean_half_width
    }

    /// Probability that as many pairs without any true change would give a mean at least
    /// this many standard errors from zero, on either side: the plain t test of
    /// these pairs, for any earlier looks. Decide by the interval.
    ///
    /// Where all values are the same it is 1 if they are zero, else 0.
    #[must_use]
    pub const fn p_value(&self) -> f64 {
        self.p_value
    }

    /// The smallest change, on the reported scale, that this many
    /// pairs with this noise would have distinguished from none in about four of five
    /// experiments: half width plus 0.84 standard errors.
    /// [`paired_power`](crate::paired_power) is exact for one look.
    #[must_use]
    pub fn smallest_visible(&self) -> f64 {
        let margin = normal::quantile(VISIBLE_POWER) * self.standard_error();
        self.scale.reported(self.mean_half_width + margin)
    }
}

/// The log ratios ln(comparison / baseline) of at least two pairs of runs, in
/// the order of the pairs.
#[derive(Clone, Debug, PartialEq)]
pub struct LogRatios(Column);

impl LogRatios {
    /// The log ratios of these (baseline, comparison) pairs, one number a run.
    ///
    /// # Errors
    /// [`PairedError`] for fewer than two pairs, and for the first value that is
    /// not positive and finite.
    pub fn from_pairs(pairs: &[(f64, f64)]) -> Result<Self, PairedError> {
        let value = |index, (baseline, comparison)| {
            check_positive(index, Half::Baseline, baseline)?;
            check_positive(index, Half::Comparison, comparison)?;
            Ok(log_ratio(baseline, comparison))
        };
        Column::of(pairs, Scale::LogRatio, value).map(Self)
    }

    /// The log ratios, one a pair.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.0.values
    }

    /// Their mean with its t interval.
    ///
    /// # Errors
    /// [`PairedError::TooManyPairs`] above 100 001 pairs.
    pub fn effect(&self, level: Level) -> Result<PairedEffect, PairedError> {
        self.0.effect(level)
    }

    /// The mean of the first `pairs` of them, with the interval that the look
    /// there gives: all looks hold the truth together.
    ///
    /// # Errors
    /// [`PairedError::NotALook`] where `looks` has no look with an interval after
    /// `pairs` pairs, [`PairedError::TooFewPairs`] where there are not so many.
    pub fn effect_at(&self, looks: &Looks, pairs: u32) -> Result<PairedEffect, PairedError> {
        self.0.effect_at(looks, pairs)
    }
}

/// The differences comparison − baseline of at least two pairs of runs, in the
/// order of the pairs: for what is itself a share, and may be zero or less.
#[derive(Clone, Debug, PartialEq)]
pub struct Differences(Column);

impl Differences {
    /// The differences of these (baseline, comparison) pairs, one number a run.
    ///
    /// # Errors
    /// [`PairedError`] for fewer than two pairs, and for the first value that is
    /// not finite.
    pub fn from_pairs(pairs: &[(f64, f64)]) -> Result<Self, PairedError> {
        let value = |index, (baseline, comparison)| {
            check_finite(index, Half::Baseline, baseline)?;
            check_finite(index, Half::Comparison, comparison)?;
            Ok(comparison - baseline)
        };
        Column::of(pairs, Scale::Difference, value).map(Self)
    }

    /// The differences, one a pair.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.0.values
    }

    /// Their mean with its t interval.
    ///
    /// # Errors
    /// [`PairedError::TooManyPairs`] above 100 001 pairs, and
    /// [`PairedError::NotFinite`] where a difference overflows.
    pub fn effect(&self, level: Level) -> Result<PairedEffect, PairedError> {
        self.0.effect(level)
    }
}

/// On what scale the halves of a pair are compared.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Scale {
    LogRatio,
    Difference,
}

impl Scale {
    /// Converts from the scale of the means to the reported one.
    fn reported(self, value: f64) -> f64 {
        match self {
            Self::LogRatio => value.exp_m1(),
            Self::Difference => value,
        }
    }
}

/// One value for each pair.
#[derive(Clone, Debug, PartialEq)]
struct Column {
    scale: Scale,
    values: Vec<f64>,
}

impl Column {
    fn of(
        pairs: &[(f64, f64)],
        scale: Scale,
        value: impl Fn(usize, (f64, f64)) -> Result<f64, PairedError>,
    ) -> Result<Self, PairedError> {
        if pairs.len() < 2 {
            return Err(PairedError::TooFewPairs {
                actual: pairs.len(),
            });
        }
        let values = pairs.iter().enumerate();
        let values = values
            .map(|(index, &pair)| value(index, pair))
            .collect::<Result<_, PairedError>>()?;
        Ok(Self { scale, values })
    }

    fn effect(&self, level: Level) -> Result<PairedEffect, PairedError> {
        let student = student(self.values.len())?;
        effect(self.scale, &self.values, level, student.critical(level))
    }

    fn effect_at(&self, looks: &Looks, pairs: u32) -> Result<PairedEffect, PairedError> {
        let critical = looks.critical(pairs);
        let critical = critical.ok_or(PairedError::NotALook { pairs })?;
        let result = self.values.len();
        let first = self.values.get(..count(pairs));
        let first = first.ok_or(PairedError::TooFewPairs { actual: result })?;
        effect(self.scale, first, looks.level(), critical)
    }
}

fn effect(
    scale: Scale,
    values: &[f64],
    level: Level,
    critical: f64,
) -> Result<PairedEffect, PairedError> {
    let student = student(values.len())?;
    let moments = Moments::of(values).map_err(|error| match error {
        SampleError::TooFew { actual, .. } => PairedError::TooFewPairs { actual },
        SampleError::TooMany { actual } => PairedError::TooManyPairs { actual },
        SampleError::NotFinite { index, .. } => PairedError::NotFinite { pair: index + 1 },
    })?;
    Ok(PairedEffect {
        pairs: values.len(),
        level,
        scale,
        mean: moments.mean,
        standard_deviation: moments.standard_deviation,
        mean_half_width: critical * moments.standard_error(),
        p_value: student.two_sided(moments.t(0.0)),
    })
}

fn student(pairs: usize) -> Result<StudentT, PairedError> {
    if pairs < 2 {
        return Err(PairedError::TooFewPairs { actual: pairs });
    }
    let student = StudentT::try_new(float(pairs - 1));
    student.map_err(|DegreesError { .. }| PairedError::TooManyPairs { actual: pairs })
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

fn check_finite(index: usize, half: Half, value: f64) -> Result<(), PairedError> {
    if value.is_finite() {
        return Ok(());
    }
    Err(PairedError::NotANumber {
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
