//! Interval of a probability, from a count of cases.

use statrs::function::beta::beta_reg;

use crate::estimate::Estimate;
use crate::level::Level;

/// Halvings of an interval of length one, after which neighbouring floats are
/// all that is left of it.
const HALVINGS: u32 = 80;

/// The share of trials in which something happens, where it happened in
/// `successes` of `trials`, with its exact interval (Clopper and Pearson, 1934):
/// it holds the true share at least as often as `level` says, however few the
/// trials are. More successes than trials count as all of them; without trials
/// nothing is known, and the value is the middle.
#[must_use]
pub fn binomial_share(successes: u32, trials: u32, level: Level) -> Estimate {
    if trials == 0 {
        return Estimate {
            value: 0.5,
            lower: 0.0,
            upper: 1.0,
        };
    }
    let (hits, of) = (f64::from(successes.min(trials)), f64::from(trials));
    let tail = 0.5 * level.error_rate();
    // P(at least k of n) at a share of p is the incomplete beta I_p(k, n − k + 1).
    let lower = match hits {
        0.0 => 0.0,
        _ => rising_root(|share| beta_reg(hits, of - hits + 1.0, share) - tail),
    };
    let upper = if hits < of {
        rising_root(|share| beta_reg(hits + 1.0, of - hits, share) - (1.0 - tail))
    } else {
        1.0
    };
    Estimate {
        value: hits / of,
        lower,
        upper,
    }
}

/// Zero of `rising`, which rises from below zero at 0 to above it at 1.
fn rising_root(rising: impl Fn(f64) -> f64) -> f64 {
    let (mut below, mut above) = (0.0, 1.0);
    for _ in 0..HALVINGS {
        let middle = 0.5 * (below + above);
        if rising(middle) < 0.0 {
            below = middle;
        } else {
            above = middle;
        }
    }
    0.5 * (below + above)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// By bisection of the sum of binomial probabilities with 50 digits.
    const KNOWN: [(u32, u32, f64, f64); 8] = [
        (0, 1, 0.0, 0.975),
        (0, 10, 0.0, 0.308_497_107_818_760_83),
        (1, 10, 0.002_528_578_544_461_784_3, 0.445_016_117_028_195_43),
        (10, 10, 0.691_502_892_181_239_2, 1.0),
        (3, 100, 0.006_229_971_538_306_394, 0.085_176_052_974_280_03),
        (18, 20, 0.683_017_285_980_917_6, 0.987_651_472_829_705_2),
        (
            1,
            600,
            0.000_042_195_456_387_170_08,
            0.009_250_772_279_374_589,
        ),
        (36, 40, 0.763_362_600_123_900_1, 0.972_074_584_705_780_7),
    ];

    #[test]
    fn intervals_are_exact() {
        for (successes, trials, lower, upper) in KNOWN {
            let share = binomial_share(successes, trials, Level::NINETY_FIVE);
            let close = |reported: f64, known: f64| (reported - known).abs() <= 1e-12;
            assert!(
                close(share.lower, lower) && close(share.upper, upper),
                "{successes} of {trials}: {share:?}"
            );
        }
    }

    #[test]
    fn without_trials_nothing_is_known() {
        let share = binomial_share(0, 0, Level::NINETY_FIVE);
        assert!(share.contains(0.0) && share.contains(1.0));
    }

    proptest! {
        /// For all counts: an event and its opposite give mirrored intervals.
        #[test]
        fn the_other_outcome_has_the_mirrored_interval(trials in 1_u32..500, part in 0.0_f64..1.0) {
            let successes = (0..=trials).find(|&value| f64::from(value) >= part * f64::from(trials)).unwrap();
            let share = binomial_share(successes, trials, Level::NINETY_FIVE);
            let right = binomial_share(trials - successes, trials, Level::NINETY_FIVE);
            prop_assert!(share.contains(share.value));
            prop_assert!((share.lower - (1.0 - right.upper)).abs() < 1e-9);
            prop_assert!((share.upper - (1.0 - right.lower)).abs() < 1e-9);
        }
    }
}
