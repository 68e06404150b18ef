//! The universal scalability law: how throughput grows with concurrency.
//!
//! With N requests at once a system answers
//! `X(N) = λ·N / (1 + σ·(N − 1) + κ·N·(N − 1))` of them a second (Gunther, 1993):
//! λ is what one alone gets, σ the share of the work that waits in a queue for
//! others, κ what each pair of requests costs in keeping their views alike.
//!
//! The knee is where throughput divided by the time of an answer is largest
//! (Kleinrock's power, 1979): below it more load buys throughput, above it
//! mostly waiting. The peak, where there is one, is the most that the law allows.

use crate::estimate::Estimate;
use crate::level::Level;
use crate::number::float;
use crate::student::StudentT;

/// Parameters of the law.
const PARAMETERS: usize = 3;
/// Steps of the fit at most; some ten are usual.
const STEPS_MAX: usize = 400;
/// The fit ends where a step changes no parameter by more than this share.
const STEP_MIN: f64 = 1e-13;
/// Sigma and kappa below this are none: no answer differs by it.
const NOTHING: f64 = 1e-12;

/// A fitted law.
#[derive(Clone, Debug, PartialEq)]
pub struct Usl {
    /// Throughput of one request at a time.
    pub lambda: f64,
    /// Contention: 0 or more.
    pub sigma: f64,
    /// Crosstalk: 0 or more.
    pub kappa: f64,
    /// Standard deviation of the measured throughputs around the law.
    pub residual: f64,
    /// Covariances of the three in this order; zeros for those that were held
    /// at 0 because the data pull them below.
    pub covariance: [[f64; PARAMETERS]; PARAMETERS],
    degrees: f64,
}

/// A load that deviates from the fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UslPoint {
    /// Requests at once.
    pub concurrency: Estimate,
    /// Requests answered a second there.
    pub throughput: Estimate,
}

/// Reason why no law was fitted.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum UslError {
    /// Too few points for three parameters and their uncertainty.
    #[error("{actual} different numbers of connections are too few: at least 4 are needed")]
    TooFew {
        /// Different concurrencies.
        actual: usize,
    },
    /// A load or throughput that is none.
    #[error("a throughput of {throughput} at a concurrency of {concurrency} is not valid")]
    Unfit {
        /// The load.
        concurrency: f64,
        /// Its throughput.
        throughput: f64,
    },
    /// The points follow no such law.
    #[error("the throughputs do not follow the Universal Scalability Law")]
    NoFit,
}

impl Usl {
    /// Returns a law that was fitted before, with its uncertainty unknown.
    #[must_use]
    pub const fn recorded([lambda, sigma, kappa]: [f64; PARAMETERS], residual: f64) -> Self {
        Self {
            lambda,
            sigma,
            kappa,
            residual,
            covariance: [[0.0; PARAMETERS]; PARAMETERS],
            degrees: 0.0,
        }
    }

    /// The law that comes nearest to `points`, each a concurrency of at least 1
    /// and a throughput above zero, by least squares of throughput; σ and κ are
    /// not below 0.
    ///
    /// # Errors
    /// [`UslError`] for too few or unfit points.
    pub fn fit(points: &[(f64, f64)]) -> Result<Self, UslError> {
        let unfit = points
            .iter()
            .find(|(n, x)| !(*n >= 1.0 && n.is_finite() && *x > 0.0 && x.is_finite()));
        if let Some(&(concurrency, throughput)) = unfit {
            return Err(UslError::Unfit {
                concurrency,
                throughput,
            });
        }
        let mut loads: Vec<f64> = points.iter().map(|point| point.0).collect();
        loads.sort_by(f64::total_cmp);
        loads.dedup();
        if loads.len() <= PARAMETERS {
            return Err(UslError::TooFew {
                actual: loads.len(),
            });
        }
        // Free at first; what is pulled below 0 is then held there.
        let mut best: Option<Self> = None;
        for held in [[false, false], [false, true], [true, false], [true, true]] {
            let fit = descend(points, held);
            let is_within = |fit: &Self| fit.sigma >= 0.0 && fit.kappa >= 0.0;
            if let Some(fit) = fit.filter(is_within)
                && best
                    .as_ref()
                    .is_none_or(|best| fit.residual < best.residual)
            {
                best = Some(fit);
            }
            if held == [false, false] && best.is_some() {
                break;
            }
        }
        best.ok_or(UslError::NoFit)
    }

    /// Load at which throughput divided by the time of an answer is largest, with an
    /// interval; `None` where the law is a straight line.
    #[must_use]
    pub fn knee(&self, level: Level) -> Option<UslPoint> {
        self.point(knee, level)
    }

    /// Load at which throughput is largest, with an interval; `None` if it grows for
    /// ever.
    #[must_use]
    pub fn peak(&self, level: Level) -> Option<UslPoint> {
        self.point(peak, level)
    }

    const fn parameters(&self) -> [f64; PARAMETERS] {
        [self.lambda, self.sigma, self.kappa]
    }

    fn point(&self, of: Found, level: Level) -> Option<UslPoint> {
        let concurrency = |parameters| of(parameters).map(f64::ln);
        let reached = |parameters| Some(throughput(parameters, of(parameters)?).ln());
        Some(UslPoint {
            concurrency: self.interval(concurrency, level)?.map(f64::exp),
            throughput: self.interval(reached, level)?.map(f64::exp),
        })
    }

    /// Value derived from the parameters, with the interval that follows from
    /// theirs to the first order.
    fn interval(
        &self,
        reported: impl Fn([f64; PARAMETERS]) -> Option<f64>,
        level: Level,
    ) -> Option<Estimate> {
        let value = reported(self.parameters())?;
        let mut slopes = [0.0; PARAMETERS];
        for (index, slope) in slopes.iter_mut().enumerate() {
            let deviation = self.covariance[index][index].sqrt();
            if deviation > 0.0 {
                let step = (1e-4 * deviation).max(1e-9 * self.parameters()[index].abs());
                let moved = |by: f64| {
                    let mut parameters = self.parameters();
                    parameters[index] += by;
                    reported(parameters)
                };
                *slope = (moved(step)? - value) / step;
            }
        }
        let mut variance = 0.0;
        for (row, item) in self.covariance.iter().zip(slopes) {
            for (covariance, right) in row.iter().zip(slopes) {
                variance += item * covariance * right;
            }
        }
        let critical = StudentT::try_new(self.degrees).map_or(f64::INFINITY, |t| t.critical(level));
        let reach = critical * variance.max(0.0).sqrt();
        Some(Estimate::around(value, reach))
    }
}

type Found = fn([f64; PARAMETERS]) -> Option<f64>;

fn divisor([_, sigma, kappa]: [f64; PARAMETERS], n: f64) -> f64 {
    1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0)
}

fn throughput(parameters: [f64; PARAMETERS], n: f64) -> f64 {
    parameters[0] * n / divisor(parameters, n)
}

/// The positive root of `3κN² + (σ − κ)N − (1 − σ)`, where `X² / N` is largest.
fn knee([_, sigma, kappa]: [f64; PARAMETERS]) -> Option<f64> {
    if sigma >= 1.0 {
        return Some(1.0);
    }
    let half = sigma - kappa;
    if kappa.abs() < NOTHING {
        return (sigma > NOTHING).then(|| ((1.0 - sigma) / sigma).max(1.0));
    }
    let root = 12.0f64.mul_add(kappa * (1.0 - sigma), half * half);
    (root >= 0.0).then(|| ((root.sqrt() - half) / (6.0 * kappa)).max(1.0))
}

fn peak([_, sigma, kappa]: [f64; PARAMETERS]) -> Option<f64> {
    (kappa > NOTHING && sigma < 1.0).then(|| ((1.0 - sigma) / kappa).sqrt().max(1.0))
}

/// Slopes of the throughput by each parameter.
fn slopes(parameters: [f64; PARAMETERS], n: f64) -> [f64; PARAMETERS] {
    let under = divisor(parameters, n);
    let by_divisor = -parameters[0] * n / (under * under);
    [
        n / under,
        by_divisor * (n - 1.0),
        by_divisor * n * (n - 1.0),
    ]
}

/// Levenberg's and Marquardt's descent, with σ or κ held at 0 where requested.
fn descend(points: &[(f64, f64)], held: [bool; 2]) -> Option<Usl> {
    let held = [false, held[0], held[1]];
    let mut parameters = beginning(points, held)?;
    let mut squares = squares_of(points, parameters);
    let mut damping = 1e-3;
    for _ in 0..STEPS_MAX {
        let (mut normal, gradient) = normal_equations(points, parameters, held);
        for (index, row) in normal.iter_mut().enumerate() {
            row[index] *= 1.0 + damping;
        }
        let step = solve(normal, gradient)?;
        let mut next = parameters;
        next.iter_mut().zip(step).for_each(|(item, by)| *item += by);
        let result = squares_of(points, next);
        if result <= squares && next[0] > 0.0 {
            let moved = step.iter().zip(parameters);
            let is_still = moved
                .into_iter()
                .all(|(by, item)| by.abs() <= STEP_MIN * item.abs());
            (parameters, squares) = (next, result);
            damping = (damping * 0.1).max(1e-15);
            if is_still {
                break;
            }
        } else {
            damping *= 10.0;
            if damping > 1e12 {
                break;
            }
        }
    }
    let free = held.iter().filter(|held| !**held).count();
    let degrees = float(points.len()) - float(free);
    let variance = squares / degrees;
    let (normal, _) = normal_equations(points, parameters, held);
    Some(Usl {
        lambda: parameters[0],
        sigma: parameters[1],
        kappa: parameters[2],
        residual: variance.sqrt(),
        covariance: inverse(normal, held, variance)?,
        degrees,
    })
}

/// `N / X` is a line in `N − 1` and `N(N − 1)`: least squares of that is near
/// enough to begin with.
fn beginning(points: &[(f64, f64)], held: [bool; PARAMETERS]) -> Option<[f64; PARAMETERS]> {
    let mut normal = [[0.0; PARAMETERS]; PARAMETERS];
    let mut right = [0.0; PARAMETERS];
    for (n, x) in points {
        // Weighed, so errors count as those of throughput do.
        let (weight, reported) = (x * x / n, n / x);
        let columns = [1.0, n - 1.0, n * (n - 1.0)];
        add_products(&mut normal, &mut right, columns, reported, weight * weight);
    }
    hold(&mut normal, &mut right, held);
    let [item, by_one, by_pair] = solve(normal, right)?;
    let lambda = 1.0 / item;
    (lambda.is_finite() && lambda > 0.0).then_some([lambda, by_one * lambda, by_pair * lambda])
}

fn squares_of(points: &[(f64, f64)], parameters: [f64; PARAMETERS]) -> f64 {
    let errors = points.iter().map(|(n, x)| x - throughput(parameters, *n));
    errors.map(|error| error * error).sum()
}

type Matrix = [[f64; PARAMETERS]; PARAMETERS];

fn normal_equations(
    points: &[(f64, f64)],
    parameters: [f64; PARAMETERS],
    held: [bool; PARAMETERS],
) -> (Matrix, [f64; PARAMETERS]) {
    let mut normal = [[0.0; PARAMETERS]; PARAMETERS];
    let mut gradient = [0.0; PARAMETERS];
    for (n, x) in points {
        let error = x - throughput(parameters, *n);
        add_products(
            &mut normal,
            &mut gradient,
            slopes(parameters, *n),
            error,
            1.0,
        );
    }
    hold(&mut normal, &mut gradient, held);
    (normal, gradient)
}

fn add_products(
    normal: &mut Matrix,
    right: &mut [f64; PARAMETERS],
    columns: [f64; PARAMETERS],
    reported: f64,
    weight: f64,
) {
    for (index, item) in columns.iter().enumerate() {
        right[index] += weight * item * reported;
        for (cell, right) in normal[index].iter_mut().zip(columns) {
            *cell += weight * item * right;
        }
    }
}

/// Takes the parameters that are held at 0 out of the equations.
fn hold(normal: &mut Matrix, right: &mut [f64; PARAMETERS], held: [bool; PARAMETERS]) {
    for index in (0..PARAMETERS).filter(|index| held[*index]) {
        right[index] = 0.0;
        normal[index] = [0.0; PARAMETERS];
        normal.iter_mut().for_each(|row| row[index] = 0.0);
        normal[index][index] = 1.0;
    }
}

/// Solves three equations by elimination, the largest number first; rows are
/// scaled, since the parameters differ by many powers of ten.
fn solve(mut matrix: Matrix, mut right: [f64; PARAMETERS]) -> Option<[f64; PARAMETERS]> {
    let mut scale = [1.0; PARAMETERS];
    for (index, scale) in scale.iter_mut().enumerate() {
        *scale = matrix[index][index].abs().sqrt();
    }
    for row in 0..PARAMETERS {
        right[row] /= scale[row];
        for column in 0..PARAMETERS {
            matrix[row][column] /= scale[row] * scale[column];
        }
    }
    for column in 0..PARAMETERS {
        let size = |row: &usize| matrix[*row][column].abs();
        let pivot = (column..PARAMETERS).max_by(|a, b| size(a).total_cmp(&size(b)))?;
        if size(&pivot).is_nan() || size(&pivot) < f64::MIN_POSITIVE {
            return None;
        }
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        for row in column + 1..PARAMETERS {
            let share = matrix[row][column] / matrix[column][column];
            let above = matrix[column];
            let cells = matrix[row].iter_mut().zip(above).skip(column);
            cells.for_each(|(cell, above)| *cell -= share * above);
            right[row] -= share * right[column];
        }
    }
    let mut result = [0.0; PARAMETERS];
    for row in (0..PARAMETERS).rev() {
        let known: f64 = (row + 1..PARAMETERS)
            .map(|column| matrix[row][column] * result[column])
            .sum();
        result[row] = (right[row] - known) / matrix[row][row];
    }
    result
        .iter_mut()
        .zip(scale)
        .for_each(|(item, by)| *item /= by);
    result.iter().all(|item| item.is_finite()).then_some(result)
}

fn inverse(normal: Matrix, held: [bool; PARAMETERS], variance: f64) -> Option<Matrix> {
    let mut result = [[0.0; PARAMETERS]; PARAMETERS];
    for index in (0..PARAMETERS).filter(|index| !held[*index]) {
        let mut unit = [0.0; PARAMETERS];
        unit[index] = variance;
        let column = solve(normal, unit)?;
        for (row, item) in column.into_iter().enumerate() {
            result[row][index] = item;
        }
    }
    Some(result)
}
