//! Number of pairs that a change needs.

use statrs::function::gamma::ln_gamma;

use crate::level::Level;
use crate::normal;
use crate::number::{float, floor_index};
use crate::student::StudentT;

/// Largest number of pairs; above it the answer is that it is impossible.
const PAIRS_MAX: usize = 100_000;

/// Gauss and Legendre's five points on −1 to 1: place and weight.
const GAUSS_LEGENDRE: [(f64, f64); 5] = [
    (-0.906_179_845_938_664, 0.236_926_885_056_189_1),
    (-0.538_469_310_105_683_1, 0.478_628_670_499_366_47),
    (0.0, 0.568_888_888_888_888_9),
    (0.538_469_310_105_683_1, 0.478_628_670_499_366_47),
    (0.906_179_845_938_664, 0.236_926_885_056_189_1),
];

/// The fewest pairs, at least two, for which the t interval of this level
/// excludes zero in `power` of all experiments, where the true relative change
/// is `change` and the log ratios of the pairs have standard deviation
/// `log_standard_deviation`.
///
/// # Errors
/// [`PowerError`] for an argument out of bounds, and where more than 100 000
/// pairs would be needed.
pub fn pairs_needed(
    log_standard_deviation: f64,
    change: f64,
    power: f64,
    level: Level,
) -> Result<usize, PowerError> {
    let noise_to_change = noise_to_change(log_standard_deviation, change)?;
    if !(power > 0.0 && power < 1.0) {
        return Err(PowerError::Power { actual: power });
    }
    // With known noise; not knowing it costs a few pairs more.
    let deviations = normal::quantile(power) - normal::quantile(0.5 * level.error_rate());
    let known_noise = (deviations.max(0.0) * noise_to_change).powi(2);
    if known_noise > float(PAIRS_MAX) {
        return Err(PowerError::OutOfReach);
    }
    let mut pairs = floor_index(known_noise).max(2);
    while pairs > 2 && power_at(pairs - 1, noise_to_change, level)? >= power {
        pairs -= 1;
    }
    while pairs <= PAIRS_MAX {
        if power_at(pairs, noise_to_change, level)? >= power {
            return Ok(pairs);
        }
        pairs += 1;
    }
    Err(PowerError::OutOfReach)
}

/// The share of experiments with `pairs` pairs whose t interval of this level
/// excludes zero, where the true relative change is `change` and the log ratios
/// of the pairs have standard deviation `log_standard_deviation`.
///
/// # Errors
/// [`PowerError`] for an argument out of bounds, and for fewer than 2 or more
/// than 100 000 pairs.
pub fn paired_power(
    pairs: usize,
    log_standard_deviation: f64,
    change: f64,
    level: Level,
) -> Result<f64, PowerError> {
    let noise_to_change = noise_to_change(log_standard_deviation, change)?;
    power_at(pairs, noise_to_change, level)
}

/// Ratio of the noise to the change, both on the scale of the log ratios.
fn noise_to_change(deviation: f64, change: f64) -> Result<f64, PowerError> {
    if !(deviation >= 0.0 && deviation.is_finite()) {
        return Err(PowerError::Deviation { actual: deviation });
    }
    let log_change = change.ln_1p();
    if !(log_change.abs() > 0.0 && log_change.is_finite()) {
        return Err(PowerError::Change { actual: change });
    }
    Ok(deviation / log_change.abs())
}

/// The power by the noncentral t distribution: the normal probability of
/// exceeding the critical value, averaged over what the estimated standard
/// deviation may turn out to be, as a share of the true one.
fn power_at(pairs: usize, noise_to_change: f64, level: Level) -> Result<f64, PowerError> {
    let student = match StudentT::try_new(float(pairs) - 1.0) {
        Ok(student) if pairs <= PAIRS_MAX => student,
        _ => return Err(PowerError::Pairs { actual: pairs }),
    };
    let centre = float(pairs).sqrt() / noise_to_change;
    if centre.is_infinite() {
        return Ok(1.0);
    }
    let critical = student.critical(level);
    let exceeded = |deviation: f64| {
        normal::upper_tail(critical * deviation - centre)
            + normal::upper_tail(critical * deviation + centre)
    };
    // Where the probability falls from one to nothing, which may be narrow.
    let steep = [(centre - 8.0) / critical, (centre + 8.0) / critical];
    Ok(mean_over_deviations(student.degrees(), steep, exceeded).clamp(0.0, 1.0))
}

/// The mean of `value` over the distribution of s / σ with these degrees of
/// freedom: the square root of chi squared over its degrees. `value` changes
/// fast only within `steep`.
fn mean_over_deviations(degrees: f64, steep: [f64; 2], value: impl Fn(f64) -> f64) -> f64 {
    let half = 0.5 * degrees;
    let ln_scale = std::f64::consts::LN_2 + half * half.ln() - ln_gamma(half);
    let weighted = |deviation: f64| {
        let ln_density = ln_scale + (degrees - 1.0) * deviation.ln() - half * deviation.powi(2);
        ln_density.exp() * value(deviation)
    };
    let reach = 12.0 / (2.0 * degrees).sqrt();
    let (start, end) = ((1.0 - reach).max(0.0), 1.0 + reach);
    let [from, to] = steep.map(|place| place.clamp(start, end));
    [(start, from), (from, to), (to, end)]
        .into_iter()
        .map(|(start, end)| integral(start, end, &weighted))
        .sum()
}

/// The integral from `start` to `end`, without its two ends.
fn integral(start: f64, end: f64, value: &impl Fn(f64) -> f64) -> f64 {
    const PANELS: usize = 30;
    let radius = 0.5 * (end - start) / float(PANELS);
    if radius <= 0.0 {
        return 0.0;
    }
    let mut total = 0.0;
    for panel in 0..PANELS {
        let middle = start + radius * (2.0 * float(panel) + 1.0);
        for (place, weight) in GAUSS_LEGENDRE {
            total += weight * value(middle + radius * place);
        }
    }
    total * radius
}

/// Reason why a number of pairs, or their power, cannot be given.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PowerError {
    /// A standard deviation that is negative or not finite.
    #[error("standard deviation {actual} is not finite and at least 0")]
    Deviation {
        /// The given value.
        actual: f64,
    },
    /// A relative change that is zero, not above −1, or not finite.
    #[error("relative change {actual} is not above -1, finite and other than 0")]
    Change {
        /// The given value.
        actual: f64,
    },
    /// A power that is not a probability between 0 and 1.
    #[error("power {actual} does not lie between 0 and 1")]
    Power {
        /// The given value.
        actual: f64,
    },
    /// Too few or too many pairs.
    #[error("{actual} pairs are not within 2 and {PAIRS_MAX}")]
    Pairs {
        /// The given value.
        actual: usize,
    },
    /// The change drowns in the noise.
    #[error("more than {PAIRS_MAX} pairs would be needed")]
    OutOfReach,
}
