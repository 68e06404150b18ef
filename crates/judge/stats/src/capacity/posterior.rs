//! Posterior of threshold, width and stray results together.

use crate::estimate::Estimate;
use crate::number::{ceil_index, float};

/// Relative widths of the transition from held to failed, and their prior weights: from a
/// limiter that cuts off to a threshold that moves by half from probe to probe.
const WIDTHS: [(f64, f64); 7] = [
    (0.001, 0.08),
    (0.004, 0.14),
    (0.012, 0.28),
    (0.03, 0.22),
    (0.08, 0.14),
    (0.2, 0.08),
    (0.5, 0.06),
];
/// Shares of probes that fail at any rate, and their prior weights. A busy machine makes
/// probes fail.
const STRAY_FAILURES: [(f64, f64); 4] = [(0.005, 0.6), (0.06, 0.2), (0.15, 0.12), (0.3, 0.08)];
/// Shares of probes that hold at any rate, and their prior weights.
const STRAY_HOLDS: [(f64, f64); 2] = [(0.005, 0.9), (0.06, 0.1)];
/// Number of grid points in the requested precision.
const STEPS_WITHIN: f64 = 5.0;
/// Maximum number of grid points; beyond, the grid is coarser.
const POINTS_MAX: usize = 8192;
/// Weights below this share of the largest are skipped.
const WEIGHT_MIN: f64 = 1e-20;
/// Factor by which the grid exceeds both ends.
const BEYOND: f64 = 1.1;

/// Weights over thresholds, widths and shares of stray results.
#[derive(Clone, Debug)]
pub(super) struct Posterior {
    /// Natural logarithm of the first threshold.
    first: f64,
    /// Distance between two thresholds.
    step: f64,
    /// Threshold by threshold, of all shapes in turn; the largest is 1.
    weights: Vec<f64>,
    points: usize,
}

const STRAYS: usize = STRAY_FAILURES.len() * STRAY_HOLDS.len();
const SHAPES: usize = WIDTHS.len() * STRAYS;

/// Shares of stray failures and stray holds, with the prior weight of both.
fn strays() -> impl Iterator<Item = (f64, f64, f64)> {
    STRAY_FAILURES
        .into_iter()
        .flat_map(|(failures, by_failures)| {
            let holds = STRAY_HOLDS.into_iter();
            holds.map(move |(holds, by_holds)| (failures, holds, by_failures * by_holds))
        })
}

fn prior() -> impl Iterator<Item = f64> {
    WIDTHS
        .into_iter()
        .flat_map(|(_, width)| strays().map(move |(_, _, stray)| width * stray))
}

/// Share of probes that hold, without strays, where the threshold is `above` the rate.
fn share_held(above: f64, width: f64) -> f64 {
    1.0 / (1.0 + (-above / width).exp())
}

impl Posterior {
    /// Returns the prior: all thresholds from a little below `from` to a little above `to`
    /// are equally likely on a logarithmic scale.
    pub(super) fn new(from: f64, to: f64, within: f64) -> Self {
        let (first, last) = ((from / BEYOND).ln(), (to * BEYOND).ln());
        let points = ceil_index((last - first) / within * STEPS_WITHIN).clamp(2, POINTS_MAX);
        Self {
            first,
            step: (last - first) / float(points - 1),
            weights: (0..points).flat_map(|_| prior()).collect(),
            points,
        }
    }

    /// Takes in that a probe at `rate` held, or failed.
    pub(super) fn observe(&mut self, rate: f64, held: bool) {
        let rate = rate.ln();
        let strays: Vec<(f64, f64, f64)> = strays().collect();
        let mut largest = 0.0_f64;
        for (index, weights) in self.weights.chunks_exact_mut(SHAPES).enumerate() {
            if weights.iter().all(|weight| *weight < WEIGHT_MIN) {
                continue;
            }
            let above = self.first + self.step * float(index) - rate;
            for ((width, _), weights) in WIDTHS.iter().zip(weights.chunks_exact_mut(STRAYS)) {
                let share = share_held(above, *width);
                for ((failures, holds, _), weight) in strays.iter().zip(weights) {
                    let holds = holds + (1.0 - failures - holds) * share;
                    *weight *= if held { holds } else { 1.0 - holds };
                    largest = largest.max(*weight);
                }
            }
        }
        self.weights
            .iter_mut()
            .for_each(|weight| *weight /= largest);
    }

    /// Returns the probability that a probe at `rate` holds, by the posterior.
    pub(super) fn predicted(&self, rate: f64) -> f64 {
        let rate = rate.ln();
        let strays: Vec<(f64, f64, f64)> = strays().collect();
        let (mut held, mut whole) = (0.0, 0.0);
        for (index, weights) in self.weights.chunks_exact(SHAPES).enumerate() {
            if weights.iter().all(|weight| *weight < WEIGHT_MIN) {
                continue;
            }
            let above = self.first + self.step * float(index) - rate;
            for ((width, _), weights) in WIDTHS.iter().zip(weights.chunks_exact(STRAYS)) {
                let share = share_held(above, *width);
                for ((failures, holds, _), weight) in strays.iter().zip(weights) {
                    held += weight * (holds + (1.0 - failures - holds) * share);
                    whole += weight;
                }
            }
        }
        held / whole
    }

    /// Returns the geometric mean of the relative width of the transition.
    pub(super) fn width(&self) -> f64 {
        let (mut sum, mut whole) = (0.0, 0.0);
        for weights in self.weights.chunks_exact(SHAPES) {
            for ((width, _), weights) in WIDTHS.iter().zip(weights.chunks_exact(STRAYS)) {
                let weight: f64 = weights.iter().sum();
                sum += weight * width.ln();
                whole += weight;
            }
        }
        (sum / whole).exp()
    }

    /// Returns the median threshold, and the interval with equal tails that has this share
    /// of the weight.
    pub(super) fn share(&self, share: f64) -> Estimate {
        let shares = self.weights.chunks_exact(SHAPES);
        let shares: Vec<f64> = shares.map(|weights| weights.iter().sum()).collect();
        let whole: f64 = shares.iter().sum();
        let at = |quantile: f64| self.quantile(&shares, quantile * whole);
        Estimate {
            value: at(0.5),
            lower: at(0.5 * (1.0 - share)),
            upper: at(0.5 * (1.0 + share)),
        }
    }

    /// The threshold below which `probability` of the weight lies, interpolated between points.
    fn quantile(&self, shares: &[f64], probability: f64) -> f64 {
        let mut below = 0.0;
        for (index, share) in shares.iter().enumerate() {
            if below + share >= probability && *share > 0.0 {
                // A point represents the cell around it.
                let within = (probability - below) / share - 0.5;
                return (self.first + self.step * (float(index) + within)).exp();
            }
            below += share;
        }
        (self.first + self.step * float(self.points - 1)).exp()
    }
}
