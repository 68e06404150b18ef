//! Every figure against SciPy: `tests/golden/make.py` wrote the expected ones.

use stillwell_stats::{Level, LogRatios, Sample, StudentT, normal, paired_power};

/// The rows of a golden file, without its remark and header.
pub(crate) fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .skip(1)
        .map(|line| line.split(',').collect())
}

pub(crate) fn number(text: &str) -> f64 {
    text.parse().unwrap()
}

pub(crate) fn numbers(text: &str) -> Vec<f64> {
    text.split(';').map(number).collect()
}

/// Asserts that both agree to 1e-9, relative to the larger of `expected` and
/// `scale`.
#[track_caller]
pub(crate) fn assert_close(result: f64, expected: f64, scale: f64, what: &str) {
    let allowed = 1e-9 * expected.abs().max(scale);
    assert!(
        (result - expected).abs() <= allowed,
        "{what}: {result:e} where SciPy has {expected:e}"
    );
}

#[test]
fn paired_effects_agree() {
    let mut cases = 0;
    for row in rows(include_str!("../golden/paired.csv")) {
        let pairs: Vec<_> = numbers(row[1]).into_iter().zip(numbers(row[2])).collect();
        let level = Level::try_new(number(row[0])).unwrap();
        let effect = LogRatios::from_pairs(&pairs)
            .unwrap()
            .effect(level)
            .unwrap();
        let log = effect.mean();
        // Means and ends near zero are differences of larger numbers.
        let noise = number(row[4]);
        assert_close(log.value, number(row[3]), noise, "mean");
        assert_close(effect.standard_deviation(), noise, 0.0, "sd");
        assert_close(log.lower, number(row[5]), noise, "lower");
        assert_close(log.upper, number(row[6]), noise, "upper");
        assert_close(effect.p_value(), number(row[7]), 0.0, "p");
        let relative = effect.relative();
        assert_close(relative.lower, number(row[5]).exp() - 1.0, 1.0, "relative");
        cases += 1;
    }
    assert!(cases >= 30, "{cases} cases");
}

#[test]
fn t_quantiles_and_tails_agree() {
    let mut cases = 0;
    for row in rows(include_str!("../golden/student.csv")) {
        let [degrees, tail, value] = [number(row[0]), number(row[1]), number(row[2])];
        let student = StudentT::try_new(degrees).unwrap();
        let what = format!("{degrees} degrees, tail {tail:e}");
        assert_close(-student.quantile(tail), value, 1.0, &what);
        assert_close(student.upper_tail(value), tail, 0.0, &what);
        assert_close(student.two_sided(-value), 2.0 * tail, 0.0, &what);
        cases += 1;
    }
    assert!(cases >= 200, "{cases} cases");
}

#[test]
fn normal_quantiles_and_tails_agree() {
    let mut cases = 0;
    for row in rows(include_str!("../golden/normal.csv")) {
        let [probability, value] = [number(row[0]), number(row[1])];
        assert_close(normal::quantile(probability), value, 1e-3, "quantile");
        assert_close(normal::upper_tail(-value), probability, 0.0, "tail");
        cases += 1;
    }
    assert!(cases >= 10, "{cases} cases");
}

#[test]
fn samples_agree() {
    let mut cases = 0;
    for row in rows(include_str!("../golden/sample.csv")) {
        let values = numbers(row[0]);
        let sample = Sample::try_new(&values, 2).unwrap();
        let noise = number(row[4]);
        for (share, expected) in numbers(row[1]).into_iter().zip(numbers(row[2])) {
            let quantile = sample.quantile(share).unwrap();
            assert_close(quantile, expected, noise, "quantile");
            cases += 1;
        }
        assert_close(sample.mean(), number(row[3]), noise, "mean");
        let deviation = sample.standard_deviation().unwrap();
        assert_close(deviation, noise, 0.0, "sd");
        assert_close(sample.median(), number(row[5]), noise, "median");
    }
    assert!(cases >= 150, "{cases} cases");
}

#[test]
fn power_agrees() {
    let mut cases = 0;
    for row in rows(include_str!("../golden/power.csv")) {
        let pairs = row[0].strip_suffix(".0").unwrap().parse().unwrap();
        let level = Level::try_new(number(row[3])).unwrap();
        let change = number(row[2]).exp_m1();
        let power = paired_power(pairs, number(row[1]), change, level).unwrap();
        assert_close(power, number(row[4]), 0.0, &row.join(" "));
        cases += 1;
    }
    assert!(cases >= 30, "{cases} cases");
}
