//! Tests of means by Student's t: one column against a number, two columns
//! against each other.

use crate::estimate::Estimate;
use crate::level::Level;
use crate::number::float;
use crate::sample::{Sample, SampleError};
use crate::student::{DegreesError, StudentT};

/// Two columns of numbers that are not paired, and the difference of their means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Welch {
    /// The difference in standard errors. Where neither column varies: 0, or
    /// infinite where they differ.
    pub t: f64,
    /// The degrees of freedom: Welch and Satterthwaite's, which need not be
    /// whole, or n₁ + n₂ − 2 where neither column varies.
    pub degrees: f64,
    /// Probability that columns with the same true mean would differ at least so far, on
    /// either side.
    pub p_value: f64,
    /// Comparison less baseline, with its interval.
    pub difference: Estimate,
    /// The mean of the baseline.
    pub baseline_mean: f64,
    /// The mean of the comparison.
    pub comparison_mean: f64,
}

/// Welch's test of two columns, at least two numbers each, whose variances may
/// differ (1947; SciPy's `ttest_ind` with `equal_var=False`).
///
/// # Errors
/// [`SampleError`] where a column is too short, too long for the t distribution,
/// or has a number that is not finite: with its index in its own column.
pub fn welch(baseline: &[f64], comparison: &[f64], level: Level) -> Result<Welch, SampleError> {
    let (before, after) = (Moments::of(baseline)?, Moments::of(comparison)?);
    let (left, right) = (before.squared_error(), after.squared_error());
    let sum = left + right;
    let spread = left * left / before.degrees() + right * right / after.degrees();
    let degrees = if spread > 0.0 {
        sum * sum / spread
    } else {
        before.degrees() + after.degrees()
    };
    compare(before, after, sum.sqrt(), degrees, level)
}

fn compare(
    baseline: Moments,
    comparison: Moments,
    standard_error: f64,
    degrees: f64,
    level: Level,
) -> Result<Welch, SampleError> {
    let student = student(degrees, baseline.count + comparison.count)?;
    let difference = comparison.mean - baseline.mean;
    let t = in_errors(difference, standard_error);
    Ok(Welch {
        t,
        degrees,
        p_value: student.two_sided(t),
        difference: Estimate::around(difference, student.critical(level) * standard_error),
        baseline_mean: baseline.mean,
        comparison_mean: comparison.mean,
    })
}

/// One column of numbers, and its mean against a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OneSample {
    /// Number of standard errors the mean lies above the number. Where nothing
    /// varies: 0, or infinite.
    pub t: f64,
    /// n − 1.
    pub degrees: f64,
    /// Probability that a column whose true mean is the number would lie at least so far
    /// from it, on either side.
    pub p_value: f64,
    /// The mean, with its interval.
    pub mean: Estimate,
}

/// Student's test of at least two numbers against a true mean of `expected`.
///
/// # Errors
/// [`SampleError`] for too few, too many for the t distribution, or a number
/// that is not finite.
pub fn one_sample(values: &[f64], expected: f64, level: Level) -> Result<OneSample, SampleError> {
    let moments = Moments::of(values)?;
    let student = student(moments.degrees(), moments.count)?;
    let t = moments.t(expected);
    let half_width = student.critical(level) * moments.standard_error();
    Ok(OneSample {
        t,
        degrees: moments.degrees(),
        p_value: student.two_sided(t),
        mean: Estimate::around(moments.mean, half_width),
    })
}

/// Moments of a column for a t test.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moments {
    pub(crate) count: usize,
    pub(crate) mean: f64,
    pub(crate) standard_deviation: f64,
}

impl Moments {
    /// Those of at least two finite numbers.
    pub(crate) fn of(values: &[f64]) -> Result<Self, SampleError> {
        let sample = Sample::try_new(values, 2)?;
        Ok(Self {
            count: sample.len(),
            mean: sample.mean(),
            // A sample of two or more has one.
            standard_deviation: sample.standard_deviation().unwrap_or(0.0),
        })
    }

    pub(crate) fn standard_error(self) -> f64 {
        self.standard_deviation / float(self.count).sqrt()
    }

    /// Number of standard errors the mean lies above `expected`.
    pub(crate) fn t(self, expected: f64) -> f64 {
        in_errors(self.mean - expected, self.standard_error())
    }

    pub(crate) fn degrees(self) -> f64 {
        float(self.count) - 1.0
    }

    fn squared_error(self) -> f64 {
        self.standard_deviation.powi(2) / float(self.count)
    }
}

/// `difference` in standard errors; none of nothing is none.
fn in_errors(difference: f64, standard_error: f64) -> f64 {
    if standard_error > 0.0 || difference.abs() > 0.0 {
        difference / standard_error
    } else {
        0.0
    }
}

fn student(degrees: f64, result: usize) -> Result<StudentT, SampleError> {
    StudentT::try_new(degrees)
        .map_err(|DegreesError { .. }| SampleError::TooMany { actual: result })
}
