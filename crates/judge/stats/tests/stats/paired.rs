//! Paired effects: what is refused, the edges, and what holds for all pairs.

use proptest::collection::vec;
use proptest::prelude::*;
use stillwell_stats::{Differences, Half, Level, LogRatios, Looks, PairedEffect, PairedError};

fn effect(pairs: &[(f64, f64)]) -> PairedEffect {
    PairedEffect::from_pairs(pairs, Level::NINETY_FIVE).unwrap()
}

fn error(pairs: &[(f64, f64)]) -> PairedError {
    PairedEffect::from_pairs(pairs, Level::NINETY_FIVE).unwrap_err()
}

/// True if both agree to 1e-9 of `scale` or of 1.
fn close(left: f64, right: f64, scale: f64) -> bool {
    (left - right).abs() <= 1e-9 * scale.max(1.0)
}

#[test]
fn one_pair_is_too_few() {
    assert_eq!(error(&[]), PairedError::TooFewPairs { actual: 0 });
    assert_eq!(
        error(&[(1.0, 2.0)]).to_string(),
        "too few pairs: 1, at least 2 are needed"
    );
}

#[test]
fn a_value_that_is_not_positive_is_named() {
    for bad in [0.0, -0.0, -3.0, f64::NAN, f64::INFINITY] {
        let first = error(&[(bad, 1.0), (1.0, 1.0)]);
        let expected = format!("baseline value {bad} of pair 1 is not a positive, finite number");
        assert_eq!(first.to_string(), expected);
        let second = error(&[(1.0, 1.0), (1.0, 1.0), (1.0, bad)]);
        assert!(
            matches!(
                second,
                PairedError::NotPositive {
                    pair: 3,
                    half: Half::Comparison,
                    ..
                }
            ),
            "{second}"
        );
    }
}

#[test]
fn equal_halves_are_no_change_for_certain() {
    let none = effect(&[(3.0, 3.0), (0.1, 0.1), (7.7, 7.7)]);
    assert_eq!(none.p_value(), 1.0);
    assert_eq!(none.smallest_visible(), 0.0);
    let log = none.mean();
    assert_eq!((log.lower, log.value, log.upper), (0.0, 0.0, 0.0));
    assert!(!none.relative().excludes_zero());
}

#[test]
fn the_same_change_in_every_pair_is_certain() {
    let same = effect(&[(100.0, 103.0); 5]);
    assert_eq!(same.p_value(), 0.0);
    assert_eq!(same.mean_half_width(), 0.0);
    assert!(close(same.relative().value, 0.03, 1.0));
    assert!(same.relative().excludes_zero());
    assert_eq!(same.pairs(), 5);
}

/// Worked by hand: logs 0.01, 0.02, 0.03 have mean 0.02, sd 0.01, standard error
/// 0.01/√3, and t for two degrees at 95 % is 4.302653.
#[test]
fn a_small_case_by_hand() {
    let pairs = [0.01_f64, 0.02, 0.03].map(|log| (50.0, 50.0 * log.exp()));
    let effect = effect(&pairs);
    let half = 4.302_652_729_9 * 0.01 / 3.0_f64.sqrt();
    assert!((effect.mean().value - 0.02).abs() < 1e-12);
    assert!((effect.standard_deviation() - 0.01).abs() < 1e-12);
    assert!((effect.mean_half_width() - half).abs() < 1e-11);
    let visible = (half + 0.841_621_233_6 * 0.01 / 3.0_f64.sqrt()).exp_m1();
    assert!((effect.smallest_visible() - visible).abs() < 1e-11);
    // t = 2·√3 with two degrees: p = 1 − t/√(2 + t²).
    let t = 2.0 * 3.0_f64.sqrt();
    assert!((effect.p_value() - (1.0 - t / (2.0 + t * t).sqrt())).abs() < 1e-11);
}

#[test]
fn ratios_that_do_not_fit_still_have_a_logarithm() {
    let far = effect(&[(1e-300, 1e300), (2e-300, 1e300)]);
    assert!(close(
        far.mean().value,
        600.0 * 10.0_f64.ln() - 0.5 * 2.0_f64.ln(),
        1e3
    ));
}

/// Shares may be zero on either side, and are reported as differences.
#[test]
fn differences_are_reported_as_differences() {
    let pairs = [(0.0, 0.010), (0.01, 0.030), (0.02, 0.050)];
    let differences = Differences::from_pairs(&pairs).unwrap();
    assert!(close(differences.values()[1], 0.02, 0.0));
    let effect = differences.effect(Level::NINETY_FIVE).unwrap();
    let half = 4.302_652_729_9 * 0.01 / 3.0_f64.sqrt();
    assert!((effect.relative().value - 0.02).abs() < 1e-12);
    assert!((effect.relative().upper - 0.02 - half).abs() < 1e-11);
    let visible = half + 0.841_621_233_6 * 0.01 / 3.0_f64.sqrt();
    assert!((effect.smallest_visible() - visible).abs() < 1e-11);
    let overflow = Differences::from_pairs(&[(-1e308, 1e308), (0.0, 1.0)]).unwrap();
    let refused = overflow.effect(Level::NINETY_FIVE).unwrap_err();
    assert_eq!(refused, PairedError::NotFinite { pair: 1 });
    let infinite = Differences::from_pairs(&[(0.0, 1.0), (f64::INFINITY, 1.0)]).unwrap_err();
    assert_eq!(
        infinite.to_string(),
        "baseline value inf of pair 2 is not a finite number"
    );
}

#[test]
fn a_look_uses_the_pairs_before_it() {
    let pairs: Vec<_> = (0..8)
        .map(|index| (5.0, 5.0 + 0.1 * f64::from(index)))
        .collect();
    let ratios = LogRatios::from_pairs(&pairs).unwrap();
    let looks = Looks::group_sequential(&[4, 6, 10], Level::NINETY_FIVE).unwrap();
    let at = ratios.effect_at(&looks, 6).unwrap();
    let plain = PairedEffect::from_pairs(&pairs[..6], Level::NINETY_FIVE).unwrap();
    assert_eq!((at.pairs(), at.mean().value), (6, plain.mean().value));
    assert_eq!(at.p_value(), plain.p_value());
    let reach = looks.critical(6).unwrap() * plain.standard_error();
    assert!(close(at.mean_half_width(), reach, 0.0) && reach > plain.mean_half_width());
    let not_a_look = ratios.effect_at(&looks, 5).unwrap_err();
    assert_eq!(not_a_look, PairedError::NotALook { pairs: 5 });
    let too_few = ratios.effect_at(&looks, 10).unwrap_err();
    assert_eq!(too_few, PairedError::TooFewPairs { actual: 8 });
    let fixed = Looks::fixed(8, Level::NINETY_FIVE);
    let all = ratios.effect(Level::NINETY_FIVE).unwrap();
    assert_eq!(ratios.effect_at(&fixed, 8).unwrap(), all);
}

fn positive_pairs() -> impl Strategy<Value = Vec<(f64, f64)>> {
    vec((1e-3..1e3, 1e-3..1e3), 2..40)
}

proptest! {
    /// For all pairs: swapping baseline and comparison turns the sign and
    /// nothing else.
    #[test]
    fn swapping_negates(pairs in positive_pairs()) {
        let swapped: Vec<_> = pairs.iter().map(|&(left, right)| (right, left)).collect();
        let (before, after) = (effect(&pairs), effect(&swapped));
        let scale = before.mean_half_width();
        prop_assert!(close(before.mean().value, -after.mean().value, scale));
        prop_assert!(close(before.mean().lower, -after.mean().upper, scale));
        prop_assert!(close(before.mean().upper, -after.mean().lower, scale));
        prop_assert!(close(before.p_value(), after.p_value(), 1.0));
    }

    /// For all pairs: the unit in which both are counted does not matter.
    #[test]
    fn scaling_both_changes_nothing(pairs in positive_pairs(), unit in 1e-9..1e9) {
        let scaled: Vec<_> = pairs.iter().map(|&(left, right)| (left * unit, right * unit)).collect();
        let (before, after) = (effect(&pairs), effect(&scaled));
        let scale = before.mean_half_width();
        prop_assert!(close(before.mean().lower, after.mean().lower, scale));
        prop_assert!(close(before.mean().upper, after.mean().upper, scale));
        prop_assert!(close(before.p_value(), after.p_value(), 1.0));
    }

    /// For all pairs: a factor on every comparison shifts the log by its
    /// logarithm and leaves the noise.
    #[test]
    fn a_factor_shifts(pairs in positive_pairs(), factor in 0.01..100.0_f64) {
        let changed: Vec<_> = pairs.iter().map(|&(left, right)| (left, right * factor)).collect();
        let (before, after) = (effect(&pairs), effect(&changed));
        let scale = before.mean_half_width();
        prop_assert!(close(before.mean().value + factor.ln(), after.mean().value, scale));
        prop_assert!(close(before.mean_half_width(), after.mean_half_width(), scale));
        prop_assert!(close(before.smallest_visible(), after.smallest_visible(), 1e3 * before.smallest_visible()));
    }

    /// For all pairs and levels: the interval holds its estimate, is wider at a
    /// higher level, excludes zero just where p is below the error rate, and
    /// what is visible is no less than the half width.
    #[test]
    fn interval_and_p_value_agree(pairs in positive_pairs(), share in 0.5..0.99) {
        let level = Level::try_new(share).unwrap();
        let higher = Level::try_new(share + 0.005).unwrap();
        let effect = PairedEffect::from_pairs(&pairs, level).unwrap();
        let wider = PairedEffect::from_pairs(&pairs, higher).unwrap();
        let log = effect.mean();
        prop_assert!(log.lower <= log.value && log.value <= log.upper);
        prop_assert!(effect.relative().contains(effect.relative().value));
        prop_assert!(wider.mean_half_width() >= effect.mean_half_width());
        prop_assert!(effect.smallest_visible() >= effect.mean_half_width().exp_m1());
        if (effect.p_value() - level.error_rate()).abs() > 1e-9 {
            prop_assert_eq!(log.excludes_zero(), effect.p_value() < level.error_rate());
        }
    }

    /// For all pairs: their sequence does not matter.
    #[test]
    fn the_sequence_does_not_matter(pairs in positive_pairs()) {
        let reversed: Vec<_> = pairs.iter().rev().copied().collect();
        let (before, after) = (effect(&pairs), effect(&reversed));
        prop_assert!(close(before.mean().lower, after.mean().lower, before.mean_half_width()));
    }
}
