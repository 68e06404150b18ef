//! Detection of warm-up, and a test for a steady remainder.

use crate::estimate::Estimate;
use crate::level::Level;
use crate::number::float;
use crate::sample::Sample;
use crate::student::StudentT;

mod autocorrelation;

pub(crate) use autocorrelation::{Autocorrelation, lag_one};

/// Samples in a batch of MSER-5: the five in its name.
const MSER_BATCH: usize = 5;

/// Fewer batches than this leave nothing to choose between.
const MSER_BATCHES_MIN: usize = 4;

/// Batches into which [`slope_test_at`] divides a window: few, so neighbours
/// are nearly independent, yet enough for six degrees of freedom.
const SLOPE_BATCHES: usize = 8;

/// Samples a batch of the slope test needs at the least.
const SLOPE_BATCH_MIN: usize = 2;

/// The batches at the start of a run to leave out as warm-up, by MSER-5, and whether
/// they are as many as are allowed: of all cuts at batches of five samples and at most
/// half of the run, the one that leaves the smallest squared standard error of the mean
/// (White, 1997).
///
/// `None` below 20 samples, and where a sample is not finite. Where there is
/// nothing to cut it cuts some 8 % of a run on average; a warm-up that takes
/// half of the run it cannot see: see [`SteadyState::at_bound`].
fn mser_cut(samples: &[f64]) -> Option<(usize, bool)> {
    Sample::try_new(samples, MSER_BATCH * MSER_BATCHES_MIN).ok()?;
    let means = batch_means(samples, MSER_BATCH);
    let bound = means.len() / 2;
    let mut cut = 0;
    let mut smallest = f64::INFINITY;
    for batches in 0..=bound {
        let rest = Sample::try_new(&means[batches..], 2).ok()?;
        let deviation = rest.standard_deviation()?;
        let count = float(rest.len());
        let squared_error = deviation * deviation * (count - 1.0) / (count * count);
        if squared_error < smallest {
            (cut, smallest) = (batches, squared_error);
        }
    }
    Some((cut, cut == bound))
}

/// The means of whole batches from the start on; what is left over at the end
/// is left out.
fn batch_means(samples: &[f64], batch: usize) -> Vec<f64> {
    samples
        .chunks_exact(batch)
        .filter_map(|batch| Sample::try_new(batch, 1).ok())
        .map(|batch| batch.mean())
        .collect()
}

/// A straight line through a window of samples: how much it climbs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slope {
    /// The change from one sample to the next, in the unit of the samples.
    pub per_step: f64,
    /// The same with its interval.
    pub interval: Estimate,
    /// Probability that a window without a trend would climb or fall this fast.
    pub p_value: f64,
}

/// The slope of a window of evenly spaced samples: least squares on the means
/// of eight batches, with a t interval of six degrees of freedom.
///
/// Neighbouring samples resemble each other, which makes a plain regression see
/// trends everywhere. Batches take most of that away; what is left between
/// neighbouring batches follows from the correlation of neighbouring samples
/// about the line, and widens the interval. Simulated at 5 % the test rejects
/// windows without a trend in 4 to 5.5 % where neighbours are independent (from
/// 16 samples on); with a lag-one correlation of 0.6 in 8 % of 32 samples and
/// 4 to 5 % of 60 or more, of 0.9 in 12 % of 60, 8 % of 110 and 5 % of 600.
///
/// `None` below 16 samples, and where a sample is not finite. The samples that
/// do not fill the last batch are left out at the start.
#[must_use]
pub fn slope_test_at(samples: &[f64], level: Level) -> Option<Slope> {
    Sample::try_new(samples, SLOPE_BATCHES * SLOPE_BATCH_MIN).ok()?;
    let batch = samples.len() / SLOPE_BATCHES;
    let window = &samples[samples.len() - batch * SLOPE_BATCHES..];
    let means = batch_means(window, batch);
    let line = Line::through(&means);
    let residuals = Line::through(window).residuals(window);
    let correlation = Autocorrelation::of_residuals(&residuals, 2);
    let standard_error = line.standard_error(&means, &correlation.of_batches(batch, means.len()));
    let student = StudentT::try_new(float(SLOPE_BATCHES - 2)).ok()?;
    let per_step = line.slope / float(batch);
    let error_per_step = standard_error / float(batch);
    let p_value = if error_per_step > 0.0 {
        student.two_sided(per_step / error_per_step)
    } else if per_step.abs() > 0.0 {
        0.0
    } else {
        1.0
    };
    Some(Slope {
        per_step,
        interval: Estimate::around(per_step, student.critical(level) * error_per_step),
        p_value,
    })
}

/// Description of a run once its warm-up is cut off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyState {
    /// The samples to leave out at the start, by MSER-5.
    pub cut: usize,
    /// True if the cut is the largest that was allowed, half of the run: then
    /// the warm-up may well be longer.
    pub at_bound: bool,
    /// The trend of what remains.
    pub slope: Slope,
}

/// The warm-up of a run and the trend of what remains; `None` where the samples
/// are too few (below 32 it depends on the cut) or not finite.
///
/// Judge a hundred samples or more, several a second if need be. At a level of
/// 95 % a steady run of 120 samples is called unsteady in 5 % of cases; with
/// fewer samples chance alone pushes the cut to its bound, in 2 % of 110, 8 % of
/// 60 and 23 % of 32. A warm-up with a time constant of a third of the run is
/// caught in 70 % of runs, so judge several.
#[must_use]
pub fn steady_state(samples: &[f64], level: Level) -> Option<SteadyState> {
    let (batches, at_bound) = mser_cut(samples)?;
    let cut = batches * MSER_BATCH;
    Some(SteadyState {
        cut,
        at_bound,
        slope: slope_test_at(&samples[cut..], level)?,
    })
}

/// A least-squares line over values at 0, 1, 2, …
struct Line {
    mean: f64,
    middle: f64,
    slope: f64,
    /// The sum of squared distances of the places from their middle.
    spread: f64,
}

impl Line {
    fn through(values: &[f64]) -> Self {
        let count = float(values.len());
        let middle = 0.5 * (count - 1.0);
        let mean = values.iter().sum::<f64>() / count;
        let spread = count * (count * count - 1.0) / 12.0;
        let product: f64 = places(values)
            .map(|(place, value)| (place - middle) * (value - mean))
            .sum();
        let slope = product / spread;
        Self {
            mean,
            middle,
            slope,
            spread,
        }
    }

    fn residuals(&self, values: &[f64]) -> Vec<f64> {
        places(values)
            .map(|(place, value)| value - self.mean - self.slope * (place - self.middle))
            .collect()
    }

    /// The standard error of the slope where values `lag` apart correlate by
    /// `correlations[lag]`.
    ///
    /// With covariance σ²·C the slope has variance σ²·w'Cw, and the squared
    /// residuals add up to σ²·trace(MC), where w are the weights of the slope
    /// and M takes the line away. So both the visible and the true noise are
    /// known up to σ², which drops out.
    fn standard_error(&self, values: &[f64], correlations: &[f64]) -> f64 {
        let squares: f64 = self.residuals(values).iter().map(|r| r * r).sum();
        let count = float(values.len());
        let (mut of_slope, mut trace) = (0.0, 0.0);
        for row in 0..values.len() {
            for column in 0..values.len() {
                let correlation = correlations[row.abs_diff(column)];
                let product =
                    (float(row) - self.middle) * (float(column) - self.middle) / self.spread;
                of_slope += product * correlation / self.spread;
                trace -= (1.0 / count + product) * correlation;
            }
            trace += 1.0;
        }
        (squares.max(0.0) / trace.max(f64::MIN_POSITIVE) * of_slope.max(0.0)).sqrt()
    }
}

/// Each value with its place.
fn places(values: &[f64]) -> impl Iterator<Item = (f64, f64)> {
    values
        .iter()
        .enumerate()
        .map(|(place, &value)| (float(place), value))
}
