//! Joint posterior of threshold, width and stray answers.

use crate::estimate::Estimate;
use crate::number::{ceil_index, float};

/// Relative widths of the threshold that are thought possible, and how likely each
/// is thought to be at first: from a limiter that cuts off to a queue whose tail
/// wanders from probe to probe.
const WIDTHS: [(f64, f64); 5] = [
    (0.001, 0.3),
    (0.004, 0.3),
    (0.012, 0.2),
    (0.03, 0.15),
    (0.08, 0.05),
];
/// Shares of answers that are the wrong way round wherever the rate is, and how
/// likely each is thought to be at first.
const STRAYS: [(f64, f64); 2] = [(0.005, 0.85), (0.08, 0.15)];
/// Steps of the grid in the requested width.
const STEPS_WITHIN: f64 = 5.0;
/// Most points of the grid: beyond, it is coarser.
const POINTS_MAX: usize = 8192;
/// Distance by which the grid goes beyond both ends.
const BEYOND: f64 = 1.1;
/// Weights below this logarithm never matter again.
const DEAD: f64 = -60.0;

/// Weights over thresholds, widths and shares of stray answers.
#[derive(Clone, Debug)]
pub(super) struct Posterior {
    /// Natural logarithm of the first threshold.
    first: f64,
    /// Between two thresholds.
    step: f64,
    /// Natural logarithms, threshold by threshold, of all shapes in turn; the
    /// largest is 0.
    weights: Vec<f64>,
    points: usize,
}

const SHAPES: usize = WIDTHS.len() * STRAYS.len();

/// Prior of each shape, as logarithms.
fn shapes() -> impl Iterator<Item = f64> {
    WIDTHS.into_iter().flat_map(|(_, width)| {
        let strays = STRAYS.into_iter();
        strays.map(move |(_, stray)| (width * stray).ln())
    })
}

impl Posterior {
    /// Every threshold from a little below `from` to a little above `to` is as
    /// likely as any other, on a scale of ratios.
    pub(super) fn new(from: f64, to: f64, within: f64) -> Self {
        let (first, last) = ((from / BEYOND).ln(), (to * BEYOND).ln());
        let points = ceil_index((last - first) / within * STEPS_WITHIN).clamp(2, POINTS_MAX);
        Self {
            first,
            step: (last - first) / float(points - 1),
            weights: (0..points).flat_map(|_| shapes()).collect(),
            points,
        }
    }

    /// Takes in that a probe at `rate` held, or failed.
    pub(super) fn observe(&mut self, rate: f64, held: bool) {
        let rate = rate.ln();
        let mut largest = f64::NEG_INFINITY;
        for (index, weights) in self.weights.chunks_exact_mut(SHAPES).enumerate() {
            if weights.iter().all(|weight| *weight < DEAD) {
                continue;
            }
            let above = self.first + self.step * float(index) - rate;
            let mut weights = weights.iter_mut();
            for (width, _) in WIDTHS {
                let share = 1.0 / (1.0 + (-above / width).exp());
                for (stray, _) in STRAYS {
                    let holds = stray + (1.0 - 2.0 * stray) * share;
                    let likely = if held { holds } else { 1.0 - holds };
                    if let Some(weight) = weights.next() {
                        *weight += likely.ln();
                        largest = largest.max(*weight);
                    }
                }
            }
        }
        self.weights
            .iter_mut()
            .for_each(|weight| *weight -= largest);
    }

    /// The median threshold, and the interval with equal tails that holds this
    /// share of the weight.
    pub(super) fn share(&self, share: f64) -> Estimate {
        let shares = self.weights.chunks_exact(SHAPES);
        let shares: Vec<f64> = shares
            .map(|weights| weights.iter().map(|weight| weight.exp()).sum())
            .collect();
        let whole: f64 = shares.iter().sum();
        let at = |quantile: f64| self.quantile(&shares, quantile * whole);
        Estimate {
            value: at(0.5),
            lower: at(0.5 * (1.0 - share)),
            upper: at(0.5 * (1.0 + share)),
        }
    }

    /// The threshold below which `sought` of the weight lies, between points by
    /// its share of the next one.
    fn quantile(&self, shares: &[f64], sought: f64) -> f64 {
        let mut below = 0.0;
        for (index, share) in shares.iter().enumerate() {
            if below + share >= sought && *share > 0.0 {
                // A point represents the cell around it.
                let within = (sought - below) / share - 0.5;
                return (self.first + self.step * (float(index) + within)).exp();
            }
            below += share;
        }
        (self.first + self.step * float(self.points - 1)).exp()
    }
}
