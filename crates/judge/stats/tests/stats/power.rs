//! Pairs needed: the known table, its edges, and how it must rise and fall.

use proptest::prelude::*;
use stillwell_stats::{Level, PowerError, paired_power, pairs_needed};

/// Standard deviation of a pair in percent, then the pairs needed at powers of
/// 80 and 95 % for changes of 0.5, 1, 2 and 5 %: from the noncentral t, never
/// below 3.
const TABLE: [(f64, [[usize; 2]; 4]); 6] = [
    (0.3, [[6, 7], [3, 4], [3, 3], [3, 3]]),
    (0.5, [[10, 16], [5, 6], [3, 4], [3, 3]]),
    (1.0, [[34, 54], [10, 16], [5, 6], [3, 3]]),
    (2.0, [[128, 210], [34, 54], [10, 16], [4, 5]]),
    (3.0, [[285, 470], [73, 119], [20, 32], [6, 7]]),
    (5.0, [[787, 1302], [199, 327], [52, 84], [10, 16]]),
];

#[test]
fn the_table_of_pairs_needed() {
    for (noise, row) in TABLE {
        for (percent, expected) in [0.5, 1.0, 2.0, 5.0].into_iter().zip(row) {
            // The table's changes are logarithms.
            let change = f64::exp_m1(percent / 100.0);
            let result = [0.8, 0.95].map(|power| {
                let pairs = pairs_needed(noise / 100.0, change, power, Level::NINETY_FIVE);
                pairs.unwrap().max(3)
            });
            assert_eq!(result, expected, "noise {noise} %, change {percent} %");
        }
    }
}

#[test]
fn without_noise_two_pairs_are_enough() {
    assert_eq!(pairs_needed(0.0, 0.01, 0.8, Level::NINETY_FIVE), Ok(2));
    assert_eq!(paired_power(2, 0.0, 0.01, Level::NINETY_FIVE), Ok(1.0));
}

#[test]
fn arguments_out_of_bounds_are_refused() {
    let level = Level::NINETY_FIVE;
    for noise in [-0.1, f64::NAN, f64::INFINITY] {
        let error = pairs_needed(noise, 0.01, 0.8, level).unwrap_err();
        assert!(matches!(error, PowerError::Deviation { .. }), "{noise}");
    }
    for change in [0.0, -1.0, -2.0, f64::NAN, f64::INFINITY] {
        let error = pairs_needed(0.1, change, 0.8, level).unwrap_err();
        assert!(matches!(error, PowerError::Change { .. }), "{change}");
    }
    for power in [0.0, 1.0, 80.0, f64::NAN] {
        let error = pairs_needed(0.1, 0.01, power, level).unwrap_err();
        assert!(matches!(error, PowerError::Power { .. }), "{power}");
    }
    for pairs in [0, 1, 100_001] {
        let error = paired_power(pairs, 0.1, 0.01, level).unwrap_err();
        assert_eq!(error, PowerError::Pairs { actual: pairs });
    }
    let error = pairs_needed(10.0, 1e-4, 0.8, level).unwrap_err();
    assert_eq!(error, PowerError::OutOfReach);
}

proptest! {
    /// For all noises and changes: the pairs needed reach the power, and one
    /// fewer does not.
    #[test]
    fn the_answer_is_the_smallest(
        noise in 1e-4..0.1_f64,
        ratio in 0.05..10.0,
        power in 0.1..0.99,
        share in 0.6..0.999,
    ) {
        let level = Level::try_new(share).unwrap();
        let change = f64::exp_m1(noise * ratio);
        let pairs = pairs_needed(noise, change, power, level).unwrap();
        prop_assert!(paired_power(pairs, noise, change, level).unwrap() >= power);
        if pairs > 2 {
            prop_assert!(paired_power(pairs - 1, noise, change, level).unwrap() < power);
        }
    }

    /// For all noises: no change but noise is called a change at the error rate.
    #[test]
    fn hardly_any_change_has_the_power_of_the_error_rate(pairs in 2_usize..300, share in 0.5..0.999) {
        let level = Level::try_new(share).unwrap();
        let power = paired_power(pairs, 1.0, 1e-9, level).unwrap();
        prop_assert!((power - level.error_rate()).abs() < 1e-7);
    }
}
