//! The t distribution: bounds, symmetry, and that both directions agree.

use proptest::prelude::*;
use stillwell_stats::{Level, StudentT, normal};

#[test]
fn levels_and_degrees_have_bounds() {
    for share in [0.0, 1.0, -0.5, 95.0, f64::NAN] {
        assert!(Level::try_new(share).is_err(), "{share}");
    }
    for degrees in [0.0, -1.0, 1e6, f64::INFINITY, f64::NAN] {
        assert!(StudentT::try_new(degrees).is_err(), "{degrees}");
    }
    let error = Level::try_from(95.0).unwrap_err();
    assert_eq!(error.to_string(), "level 95 does not lie between 0 and 1");
}

#[test]
fn the_ends_of_the_line() {
    let student = StudentT::try_new(3.0).unwrap();
    assert_eq!(student.quantile(0.0), f64::NEG_INFINITY);
    assert_eq!(student.quantile(0.5), 0.0);
    assert_eq!(student.quantile(1.0), f64::INFINITY);
    assert_eq!(student.two_sided(f64::INFINITY), 0.0);
    assert_eq!(student.two_sided(0.0), 1.0);
    assert_eq!(normal::quantile(0.0), f64::NEG_INFINITY);
    assert_eq!(normal::quantile(1.0), f64::INFINITY);
    for bad in [-0.1, 1.1, f64::NAN] {
        assert!(student.quantile(bad).is_nan(), "{bad}");
        assert!(normal::quantile(bad).is_nan(), "{bad}");
    }
    assert!(student.two_sided(f64::NAN).is_nan());
}

#[test]
fn extreme_tails_come_back() {
    for degrees in [0.5, 1.0, 4.0, 40.0, 4e4] {
        let student = StudentT::try_new(degrees).unwrap();
        for tail in [1e-60, 1e-30, 1e-15, 0.499_999_999] {
            let back = student.upper_tail(-student.quantile(tail));
            assert!((back / tail - 1.0).abs() < 1e-9, "{degrees} {tail:e}");
        }
    }
}

proptest! {
    /// For all degrees and probabilities: the quantile has that probability
    /// below it, and the other side mirrors it.
    #[test]
    fn quantile_and_tail_are_inverse(degrees in 0.5..1e5, probability in 1e-9..1.0 - 1e-9) {
        let student = StudentT::try_new(degrees).unwrap();
        let value = student.quantile(probability);
        prop_assert!((student.upper_tail(-value) - probability).abs() < 1e-10);
        let mirrored = student.quantile(1.0 - probability);
        prop_assert!((value + mirrored).abs() <= 1e-6 * value.abs().max(1.0));
    }

    /// For all levels: fewer degrees need more standard errors, and never
    /// fewer than the normal distribution.
    #[test]
    fn fewer_degrees_cost_more(degrees in 1.0..1000.0, share in 0.01..0.9999) {
        let level = Level::try_new(share).unwrap();
        let critical = |degrees| StudentT::try_new(degrees).unwrap().critical(level);
        prop_assert!(critical(degrees) > critical(degrees + 1.0));
        prop_assert!(critical(degrees) > -normal::quantile(0.5 * level.error_rate()));
    }
}
