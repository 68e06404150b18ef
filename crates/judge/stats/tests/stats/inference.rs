//! Tests of one or two columns against SciPy and statsmodels, and by hand.

use proptest::collection::vec;
use proptest::prelude::*;
use stillwell_stats::{
    Level, SampleError, benjamini_hochberg, hodges_lehmann, holm, mann_whitney, one_sample, welch,
    wilcoxon_signed_rank,
};

use crate::golden::{assert_close, number, numbers, rows};

fn level(text: &str) -> Level {
    Level::try_new(number(text)).unwrap()
}

#[test]
fn two_samples_agree() {
    let mut cases = 0;
    for row in rows(include_str!("../golden/two_samples.csv")) {
        let (baseline, comparison) = (numbers(row[1]), numbers(row[2]));
        let result = welch(&baseline, &comparison, level(row[0])).unwrap();
        let reach = number(row[8]) - number(row[7]);
        assert_close(result.t, number(row[3]), 0.1, "t");
        assert_close(result.degrees, number(row[4]), 0.0, "degrees");
        assert_close(result.p_value, number(row[5]), 0.0, "p");
        assert_close(result.difference.value, number(row[6]), reach, "difference");
        assert_close(result.difference.lower, number(row[7]), reach, "lower");
        assert_close(result.difference.upper, number(row[8]), reach, "upper");
        let difference = result.comparison_mean - result.baseline_mean;
        assert_eq!(result.difference.value, difference);
        cases += 1;
    }
    assert_eq!(cases, 18);
}

#[test]
fn one_sample_tests_agree() {
    let mut cases = 0;
    for row in rows(include_str!("../golden/one_sample.csv")) {
        let values = numbers(row[1]);
        let result = one_sample(&values, number(row[2]), level(row[0])).unwrap();
        assert_close(result.t, number(row[3]), 0.1, "t");
        assert_close(result.p_value, number(row[4]), 0.0, "p");
        assert_close(result.mean.lower, number(row[5]), 1.0, "lower");
        assert_close(result.mean.upper, number(row[6]), 1.0, "upper");
        cases += 1;
    }
    assert_eq!(cases, 18);
}

#[test]
fn signed_ranks_agree() {
    let mut exact = 0;
    let mut cases = 0;
    for row in rows(include_str!("../golden/signed_ranks.csv")) {
        let result = wilcoxon_signed_rank(&numbers(row[0])).unwrap();
        assert_close(result.statistic, number(row[1]), 0.0, row[0]);
        assert_close(result.p_value, number(row[2]), 0.0, row[0]);
        exact += u32::from(result.exact);
        cases += 1;
    }
    assert!(
        cases >= 55 && (30..cases).contains(&exact),
        "{exact} of {cases}"
    );
}

#[test]
fn mann_whitney_agrees() {
    let mut exact = 0;
    let mut cases = 0;
    for row in rows(include_str!("../golden/mann_whitney.csv")) {
        let result = mann_whitney(&numbers(row[0]), &numbers(row[1])).unwrap();
        assert_close(result.u, number(row[2]), 0.0, row[0]);
        assert_close(result.p_value, number(row[3]), 0.0, row[0]);
        exact += u32::from(result.exact);
        cases += 1;
    }
    assert!(
        cases == 40 && (10..cases).contains(&exact),
        "{exact} of {cases}"
    );
}

#[test]
fn hodges_lehmann_agrees() {
    let mut cases = 0;
    for row in rows(include_str!("../golden/hodges_lehmann.csv")) {
        let centre = hodges_lehmann(&numbers(row[0])).unwrap();
        assert_close(centre, number(row[1]), 0.0, "centre");
        cases += 1;
    }
    assert_eq!(cases, 21);
}

#[test]
fn adjusted_p_values_agree() {
    for row in rows(include_str!("../golden/multiplicity.csv")) {
        let p_values = numbers(row[0]);
        let result = holm(&p_values).into_iter().zip(numbers(row[1]));
        let fdr = benjamini_hochberg(&p_values)
            .into_iter()
            .zip(numbers(row[2]));
        for (result, expected) in result.chain(fdr) {
            assert_close(result, expected, 0.0, row[0]);
        }
    }
}

#[test]
fn what_is_not_a_number_is_not_a_test() {
    let result = holm(&[0.03, f64::NAN, 0.01]);
    assert_eq!((result[0], result[2]), (0.03, 0.02));
    assert!(result[1].is_nan());
    let result = benjamini_hochberg(&[f64::NAN, 0.03, 0.01]);
    assert_eq!((result[1], result[2]), (0.03, 0.02));
    assert!(result[0].is_nan());
    assert!(holm(&[]).is_empty() && benjamini_hochberg(&[]).is_empty());
}

/// The six run means printed in the ancestor's report (MiB/s, rounded there).
#[test]
fn the_ancestors_run_means_show_no_difference() {
    let baseline = [7.88, 7.86, 7.85];
    let comparison = [7.86, 7.84, 7.82];
    let result = welch(&baseline, &comparison, Level::NINETY_FIVE).unwrap();
    assert!((result.p_value - 0.188).abs() < 5e-4, "{}", result.p_value);
    let percent = |value: f64| 100.0 * value / result.baseline_mean;
    assert!((percent(result.difference.value) + 0.30).abs() < 5e-3);
    assert!((percent(result.difference.lower) + 0.82).abs() < 5e-3);
    assert!((percent(result.difference.upper) - 0.23).abs() < 5e-3);
}

#[test]
fn columns_that_do_not_vary_are_certain() {
    let level = Level::NINETY_FIVE;
    let same = welch(&[2.0, 2.0], &[2.0, 2.0, 2.0], level).unwrap();
    assert_eq!((same.t, same.p_value, same.degrees), (0.0, 1.0, 3.0));
    let apart = welch(&[2.0, 2.0], &[1.0, 1.0], level).unwrap();
    assert_eq!((apart.t, apart.p_value), (f64::NEG_INFINITY, 0.0));
    assert_eq!(
        (apart.difference.lower, apart.difference.upper),
        (-1.0, -1.0)
    );
    let needed = SampleError::TooFew {
        actual: 1,
        needed: 2,
    };
    assert_eq!(welch(&[1.0, 2.0], &[1.0], level), Err(needed));
}

#[test]
fn zeros_alone_have_no_position() {
    let zeros = wilcoxon_signed_rank(&[0.0, -0.0, 0.0]).unwrap();
    assert_eq!(
        (zeros.statistic, zeros.p_value, zeros.exact),
        (0.0, 1.0, true)
    );
    assert_eq!(wilcoxon_signed_rank(&[]), None);
    assert_eq!(wilcoxon_signed_rank(&[1.0, f64::NAN]), None);
    assert_eq!(mann_whitney(&[1.0], &[]), None);
    assert_eq!(hodges_lehmann(&[]), None);
    // −0 and 0 are equal.
    let tied = mann_whitney(&[0.0, 1.0], &[-0.0, 2.0]).unwrap();
    assert_eq!((tied.u, tied.exact), (1.5, false));
    let same = mann_whitney(&[1.0; 9], &[1.0; 9]).unwrap();
    assert_eq!((same.u, same.p_value), (40.5, 1.0));
}

fn numbers_between() -> impl Strategy<Value = Vec<f64>> {
    vec(-1e3..1e3_f64, 2..30)
}

proptest! {
    /// For all columns: swapping them turns every sign and no p value.
    #[test]
    fn swapping_columns_negates(left in numbers_between(), fdr in numbers_between()) {
        let level = Level::NINETY_FIVE;
        let (here, there) = (welch(&left, &fdr, level).unwrap(), welch(&fdr, &left, level).unwrap());
        prop_assert_eq!(here.difference.value, -there.difference.value);
        prop_assert_eq!(here.difference.lower, -there.difference.upper);
        prop_assert_eq!(here.p_value, there.p_value);
        let (here, there) = (mann_whitney(&left, &fdr).unwrap(), mann_whitney(&fdr, &left).unwrap());
        let pairs = f64::from(u32::try_from(left.len() * fdr.len()).unwrap());
        prop_assert_eq!(here.u + there.u, pairs);
        prop_assert!((here.p_value - there.p_value).abs() < 1e-12);
    }

    /// For all columns: what lies around zero lies as much around it mirrored.
    #[test]
    fn mirrored_numbers_have_mirrored_centres(values in numbers_between()) {
        let mirrored: Vec<f64> = values.iter().map(|value| -value).collect();
        let (here, there) = (wilcoxon_signed_rank(&values).unwrap(), wilcoxon_signed_rank(&mirrored).unwrap());
        prop_assert_eq!(here.statistic, there.statistic);
        prop_assert!((here.p_value - there.p_value).abs() < 1e-12);
        prop_assert_eq!(hodges_lehmann(&values), hodges_lehmann(&mirrored).map(|centre| -centre));
    }

    /// For all p values: adjusting keeps their order, never makes one smaller, and
    /// Holm's are never below Benjamini and Hochberg's.
    #[test]
    fn adjusting_keeps_the_order(p_values in vec(0.0..=1.0_f64, 1..40)) {
        let (holm, fdr) = (holm(&p_values), benjamini_hochberg(&p_values));
        for index in 0..p_values.len() {
            prop_assert!(p_values[index] <= fdr[index] * (1.0 + 1e-12));
            prop_assert!(fdr[index] <= holm[index] * (1.0 + 1e-12));
            prop_assert!(holm[index] <= 1.0);
            for against in 0..p_values.len() {
                if p_values[index] <= p_values[against] {
                    prop_assert!(holm[index] <= holm[against] && fdr[index] <= fdr[against]);
                }
            }
        }
    }
}
