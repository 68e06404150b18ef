//! Two modes or one, from a handful of run means.

use crate::simulated::{Noise, share};
use stillwell_stats::modes::gap_test;

/// The share of columns called bimodal at 5 %, where each value is normal and
/// every second one lies `apart` standard deviations higher.
fn alarms(seed: u64, trials: u32, count: usize, apart: f64) -> f64 {
    let mut noise = Noise::seeded(seed);
    share(trials, |trial| {
        let values: Vec<f64> = (0..count)
            .map(|place| {
                let mode = if place % 2 == 0 { apart } else { 0.0 };
                50.0 + 0.3 * (noise.normal() + mode)
            })
            .collect();
        gap_test(&values, trial.into()).unwrap().p_value <= 0.05
    })
}

#[test]
fn one_mode_has_its_rate_of_alarms() {
    for count in [6, 20] {
        let rate = alarms(1, 300, count, 0.0);
        assert!((rate - 0.05).abs() < 0.03, "{count}: {rate}");
    }
}

#[test]
fn two_modes_are_found() {
    assert!(alarms(2, 100, 8, 10.0) > 0.9);
    assert!(alarms(3, 100, 12, 8.0) > 0.9);
}

#[test]
fn a_gap_has_a_place() {
    let values = [5.1, 9.0, 5.0, 9.1, 5.2, 9.2, 5.1, 9.05];
    let gap = gap_test(&values, 1).unwrap();
    assert_eq!((gap.lower, gap.upper), (5.2, 9.0));
    assert_eq!((gap.below, gap.above), (4, 4));
    assert!(gap.p_value < 0.01);
    assert_eq!(gap_test(&values, 1), Some(gap));
    let scaled = values.map(|value| 100.0 - 3.0 * value);
    let scaled = gap_test(&scaled, 1).unwrap();
    assert!((scaled.p_value - gap.p_value).abs() < 1e-9);
}

/// One run that went astray is no mode.
#[test]
fn an_outlier_is_no_mode() {
    let gap = gap_test(&[5.1, 5.0, 5.2, 5.15, 5.05, 5.12, 5.08, 9.0], 1).unwrap();
    assert!(gap.p_value > 0.5, "{gap:?}");
}

#[test]
fn too_few_values_and_equal_ones_have_no_modes() {
    assert_eq!(gap_test(&[1.0, 2.0, 1.0, 2.0, 1.0], 1), None);
    assert_eq!(gap_test(&[2.0; 10], 1), None);
    assert_eq!(gap_test(&[1.0, 2.0, f64::NAN, 2.0, 1.0, 2.0], 1), None);
}
