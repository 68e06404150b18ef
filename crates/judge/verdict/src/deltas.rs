//! Differences of pairs, on the scale of their goal.

use stillwell_plan::goal::Scale;
use stillwell_stats::{Level, LogRatios, PairedError, Sample, StudentT, normal};
use stillwell_units::float_from_u64;

use crate::limits;
use crate::rule::Change;

/// Log ratios or differences of pairs, in their order.
#[derive(Debug)]
pub(crate) struct Deltas {
    scale: Scale,
    values: Vec<f64>,
}

impl Deltas {
    /// Of these (baseline, comparison) pairs.
    pub(crate) fn of(scale: Scale, pairs: &[(f64, f64)]) -> Result<Self, PairedError> {
        let values = match scale {
            Scale::Ratio => LogRatios::from_pairs(pairs)?.values().to_vec(),
            Scale::Difference => pairs.iter().map(|(left, right)| right - left).collect(),
        };
        Ok(Self { scale, values })
    }

    /// All of them.
    pub(crate) fn values(&self) -> &[f64] {
        &self.values
    }

    /// Mean and spread of the first `pairs`; `None` for fewer than two.
    pub(crate) fn spread(&self, pairs: u32) -> Option<Spread> {
        let pairs = usize::try_from(pairs).ok()?.min(self.values.len());
        Spread::of(self.scale, &self.values[..pairs])
    }
}

/// Mean and spread of log ratios or differences: at least two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) scale: Scale,
    pub(crate) pairs: u32,
    pub(crate) mean: f64,
    pub(crate) deviation: f64,
}

impl Spread {
    pub(crate) fn of(scale: Scale, values: &[f64]) -> Option<Self> {
        let sample = Sample::try_new(values, 2).ok()?;
        Some(Self {
            scale,
            pairs: u32::try_from(values.len()).ok()?,
            mean: sample.mean(),
            deviation: sample.standard_deviation()?,
        })
    }

    /// The same, were there so many pairs.
    pub(crate) const fn with_pairs(self, pairs: u32) -> Self {
        Self { pairs, ..self }
    }

    /// Standard error of the mean.
    pub(crate) fn error(&self) -> f64 {
        self.deviation / float_from_u64(u64::from(self.pairs)).sqrt()
    }

    /// The mean over its standard error; infinite where all agree on a change.
    pub(crate) fn t(&self) -> f64 {
        if self.error() > 0.0 {
            self.mean / self.error()
        } else if self.mean.abs() > 0.0 {
            f64::INFINITY.copysign(self.mean)
        } else {
            0.0
        }
    }

    /// The change with an interval of so many standard errors to each side.
    pub(crate) fn change(&self, critical: f64) -> Change {
        let half = if self.error() > 0.0 {
            critical * self.error()
        } else {
            0.0
        };
        Change {
            estimate: on_scale(self.scale, self.mean),
            lower: on_scale(self.scale, self.mean - half),
            upper: on_scale(self.scale, self.mean + half),
        }
    }

    /// Distance by which an interval of so many standard errors reaches, as a change from
    /// none.
    pub(crate) fn half_width(&self, critical: f64) -> f64 {
        on_scale(self.scale, critical * self.error())
    }

    /// The smallest change that such an interval would have distinguished from none in
    /// about four of five experiments.
    pub(crate) fn smallest_visible(&self, critical: f64) -> f64 {
        self.half_width(critical + normal::quantile(limits::POWER))
    }

    /// Student's multiplier for one look.
    pub(crate) fn plain_critical(&self) -> Option<f64> {
        Some(self.student()?.critical(Level::NINETY_FIVE))
    }

    /// Student's p for one look, two-sided; `None` where all pairs agree exactly, because
    /// a spread of zero estimates no noise.
    pub(crate) fn p_value(&self) -> Option<f64> {
        let t = self.t();
        t.is_finite()
            .then(|| Some(self.student()?.two_sided(t)))
            .flatten()
    }

    fn student(&self) -> Option<StudentT> {
        StudentT::try_new(float_from_u64(u64::from(self.pairs)) - 1.0).ok()
    }
}

/// A log ratio as a relative change; a difference as it is.
pub(crate) fn on_scale(scale: Scale, delta: f64) -> f64 {
    match scale {
        Scale::Ratio => delta.exp_m1(),
        Scale::Difference => delta,
    }
}

/// The mean of some runs' numbers: geometric where compared by ratio.
pub(crate) fn mean_on(scale: Scale, values: impl Iterator<Item = f64>) -> Option<f64> {
    let mean = |values: &[f64]| Sample::try_new(values, 1).ok().map(|sample| sample.mean());
    match scale {
        Scale::Difference => mean(&values.collect::<Vec<f64>>()),
        Scale::Ratio => {
            let logs: Vec<f64> = values.map(f64::ln).collect();
            // A zero has no logarithm: the geometric mean of anything with it is
            // zero.
            let zero = || logs.contains(&f64::NEG_INFINITY).then_some(0.0);
            mean(&logs).map(f64::exp).or_else(zero)
        }
    }
}
