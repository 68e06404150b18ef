//! Likelihood ratio of a step in a history whose neighbours are correlated.

use super::split::{Split, deviations, windows};
use crate::number::float;

/// Correlations that are tried, between 0 and the largest.
const CORRELATIONS: u8 = 4;

/// Residual squares below this share of all squares are rounding errors.
const ROUNDING: f64 = 1e-12;

/// The split that explains most of a segment, if the deviations of its values are an autoregression of
/// the first order with a correlation from 0 to `correlation_max`. `None` where all values are the same.
///
/// In each window, both the model without a step and the one with a step choose the correlation that
/// fits best. So a large step is not explained as correlation, and drift is not explained as a step.
/// The distance of the split is the likelihood ratio as a normal score, which makes windows of all
/// lengths comparable.
pub(super) fn clearest_step(
    values: &[f64],
    side_min: usize,
    correlation_max: f64,
) -> Option<Split> {
    let deviations = deviations(values);
    let floor = ROUNDING * deviations.iter().map(|value| value * value).sum::<f64>();
    if floor <= 0.0 {
        return None;
    }
    let models: Vec<Whitened<'_>> = (0..=CORRELATIONS)
        .map(|step| correlation_max * f64::from(step) / f64::from(CORRELATIONS))
        .map(|correlation| Whitened::of(&deviations, correlation))
        .collect();
    let mut best: Option<Split> = None;
    for window in windows(values.len(), side_min) {
        let penalties: Vec<f64> = models
            .iter()
            .map(|model| model.penalty(window.len()))
            .collect();
        let least = |squares: &dyn Fn(&Whitened<'_>) -> f64| {
            let penalised = models
                .iter()
                .zip(&penalties)
                .map(|(model, penalty)| penalty * squares(model));
            penalised.fold(f64::INFINITY, f64::min).max(floor)
        };
        let without = least(&|model| model.squares(window.start, window.end));
        for index in window.start + side_min..=window.end - side_min {
            let with = least(&|model| model.squares_of_sides(window.start, index, window.end));
            let distance = normal_score(without / with - 1.0, float(window.len()) - 3.0);
            if best.is_none_or(|best| distance > best.distance) {
                best = Some(Split { index, distance });
            }
        }
    }
    best
}

/// The normal score of a t statistic whose square is `reduction` × `degrees` (Wallace 1959).
fn normal_score(reduction: f64, degrees: f64) -> f64 {
    let factor = (8.0 * degrees + 1.0) / (8.0 * degrees + 3.0);
    factor * (degrees * reduction.max(0.0).ln_1p()).sqrt()
}

/// Prefix sums of a history without the share that each value has of the one before.
struct Whitened<'a> {
    deviations: &'a [f64],
    correlation: f64,
    sums: Vec<Products>,
}

/// Sums of products of the design and the deviations.
#[derive(Clone, Copy, Debug, Default)]
struct Products {
    design: f64,
    both: f64,
    deviation: f64,
}

impl Products {
    fn of(design: f64, deviation: f64) -> Self {
        Self {
            design: design * design,
            both: design * deviation,
            deviation: deviation * deviation,
        }
    }

    fn plus(self, right: Self) -> Self {
        Self {
            design: self.design + right.design,
            both: self.both + right.both,
            deviation: self.deviation + right.deviation,
        }
    }

    fn minus(self, right: Self) -> Self {
        Self {
            design: self.design - right.design,
            both: self.both - right.both,
            deviation: self.deviation - right.deviation,
        }
    }
}

impl<'a> Whitened<'a> {
    fn of(deviations: &'a [f64], correlation: f64) -> Self {
        let mut whitened = Self {
            deviations,
            correlation,
            sums: Vec::with_capacity(deviations.len() + 1),
        };
        let mut sum = Products::default();
        // No range of sums begins at the first value.
        whitened.sums.extend([sum, sum]);
        for index in 1..deviations.len() {
            let innovation = whitened.deviation(index);
            sum = sum.plus(Products::of(1.0 - correlation, innovation));
            whitened.sums.push(sum);
        }
        whitened
    }

    fn deviation(&self, index: usize) -> f64 {
        self.deviations[index] - self.correlation * self.deviations[index - 1]
    }

    /// Sums of the values from `start` to `end` that have a predecessor in their window.
    fn sum(&self, start: usize, end: usize) -> Products {
        self.sums[end].minus(self.sums[start])
    }

    /// Products of the first value of a window, which has no predecessor.
    fn first(&self, index: usize) -> Products {
        let scale = (1.0 - self.correlation * self.correlation).sqrt();
        Products::of(scale, scale * self.deviations[index])
    }

    /// Factor of the residual squares for the determinant in the likelihood.
    fn penalty(&self, count: usize) -> f64 {
        (1.0 - self.correlation * self.correlation).powf(-float(count).recip())
    }

    /// Residual squares of a window with one level.
    fn squares(&self, start: usize, end: usize) -> f64 {
        let all = self.first(start).plus(self.sum(start + 1, end));
        all.deviation - all.both * all.both / all.design
    }

    /// Residual squares of a window with another level from `index` on.
    fn squares_of_sides(&self, start: usize, index: usize, end: usize) -> f64 {
        let (left, right) = (-self.correlation, 1.0);
        let innovation = self.deviation(index);
        let before = self.first(start).plus(self.sum(start + 1, index));
        let before = before.plus(Products {
            deviation: 0.0,
            ..Products::of(left, innovation)
        });
        let after = Products::of(right, innovation).plus(self.sum(index + 1, end));
        let across = left * right;
        let determinant = before.design * after.design - across * across;
        let explained = before.both * before.both * after.design
            - 2.0 * before.both * after.both * across
            + after.both * after.both * before.design;
        before.deviation + after.deviation - explained / determinant
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_are_those_of_generalised_least_squares() {
        let deviations = [0.3, -0.5, 0.2, 1.1, 0.9, 1.4];
        let model = Whitened::of(&deviations, 0.4);
        for (result, expected) in [
            (model.squares(0, 6), generalised(&deviations, 6)),
            (model.squares_of_sides(0, 3, 6), generalised(&deviations, 3)),
        ] {
            assert!((result - expected).abs() < 1e-12, "{result} {expected}");
        }
    }

    /// Minimum of the residual squares over both levels, by coordinate descent.
    fn generalised(deviations: &[f64], split: usize) -> f64 {
        let squares = |levels: [f64; 2]| {
            let residual = |index: usize| deviations[index] - levels[usize::from(index >= split)];
            let first = (1.0 - 0.16) * residual(0).powi(2);
            let later =
                (1..deviations.len()).map(|index| residual(index) - 0.4 * residual(index - 1));
            first + later.map(|value| value * value).sum::<f64>()
        };
        let mut levels = [0.0, 0.0];
        let mut step = 1.0;
        while step > 1e-9 {
            let moves = [[step, 0.0], [-step, 0.0], [0.0, step], [0.0, -step]];
            let better = moves
                .map(|[left, right]| [levels[0] + left, levels[1] + right])
                .into_iter()
                .find(|moved| squares(*moved) < squares(levels));
            match better {
                Some(moved) => levels = moved,
                None => step /= 2.0,
            }
        }
        squares(levels)
    }
}
