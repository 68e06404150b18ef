//! Samples: what is refused, and what holds for every column of numbers.

use proptest::collection::vec;
use proptest::prelude::*;
use stillwell_stats::{Sample, SampleError};

#[test]
fn too_few_values_are_refused() {
    let result = |values: &[f64], at_least| Sample::try_new(values, at_least).unwrap_err();
    let none = SampleError::TooFew {
        actual: 0,
        needed: 1,
    };
    assert_eq!(result(&[], 0), none);
    assert_eq!(
        result(&[1.0, 2.0], 3).to_string(),
        "too few values: 2, at least 3 are needed"
    );
}

#[test]
fn values_that_are_not_finite_are_refused_by_name() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let error = Sample::try_new(&[1.0, bad], 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("value {bad} at index 1 is not finite")
        );
    }
}

#[test]
fn one_value_has_no_deviation() {
    let sample = Sample::try_new(&[4.5], 1).unwrap();
    assert_eq!(sample.standard_deviation(), None);
    assert_eq!(sample.quantile(0.3), Some(4.5));
    assert_eq!(sample.len(), 1);
}

#[test]
fn shares_outside_zero_to_one_have_no_quantile() {
    let sample = Sample::try_new(&[1.0, 2.0], 1).unwrap();
    for share in [-0.1, 1.1, f64::NAN] {
        assert_eq!(sample.quantile(share), None, "{share}");
    }
}

proptest! {
    /// For all columns: smallest ≤ every quantile ≤ largest, and quantiles rise.
    #[test]
    fn quantiles_rise_within_the_range(
        values in vec(-1e100..1e100, 1..50),
        low in 0.0..=1.0,
        high in 0.0..=1.0,
    ) {
        let sample = Sample::try_new(&values, 1).unwrap();
        let (low, high) = if low <= high { (low, high) } else { (high, low) };
        let sorted = sample.sorted();
        let quantiles = [sorted.quantile(low).unwrap(), sorted.quantile(high).unwrap()];
        prop_assert!(sample.min() <= quantiles[0]);
        prop_assert!(quantiles[0] <= quantiles[1]);
        prop_assert!(quantiles[1] <= sample.max());
        prop_assert_eq!(sorted.quantile(0.0), Some(sample.min()));
        prop_assert_eq!(sorted.quantile(1.0), Some(sample.max()));
    }

    /// For all columns of one repeated value: it is the mean, and nothing varies.
    #[test]
    fn equal_values_have_exactly_no_deviation(value in -1e100..1e100, count in 2_usize..100) {
        let values = vec![value; count];
        let sample = Sample::try_new(&values, 2).unwrap();
        prop_assert_eq!(sample.mean(), value);
        prop_assert_eq!(sample.standard_deviation(), Some(0.0));
    }

    /// For all columns: an offset far above the spread changes no deviation.
    #[test]
    fn an_offset_leaves_the_deviation(values in vec(-1.0..1.0, 2..50), offset in -1e6..1e6) {
        let shifted: Vec<f64> = values.iter().map(|value| value + offset).collect();
        let deviation = |values: &[f64]| {
            Sample::try_new(values, 2).unwrap().standard_deviation().unwrap()
        };
        prop_assert!((deviation(&values) - deviation(&shifted)).abs() < 1e-9);
    }
}
