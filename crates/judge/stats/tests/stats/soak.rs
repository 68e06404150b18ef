//! The ancestors' figures, against pandas and SciPy: `tests/golden/soak.py`
//! wrote the expected ones.

use stillwell_stats::smp::{SmpOptions, SmpSeries, smp};
use stillwell_stats::soak::{
    CounterReading, OutlierColumn, ReadingsError, SoakError, SoakOptions, SoakSummary, soak,
};

fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().skip(2).map(|line| line.split(',').collect())
}

fn number(text: &str) -> f64 {
    text.parse().unwrap()
}

fn runs(text: &str) -> Vec<Vec<CounterReading>> {
    let reading = |cell: &str| {
        let (second, value) = cell.split_once(':').unwrap();
        CounterReading {
            second: number(second),
            value: number(value),
        }
    };
    text.split('|')
        .map(|run| run.split(';').map(reading).collect())
        .collect()
}

fn borrowed(runs: &[Vec<CounterReading>]) -> Vec<&[CounterReading]> {
    runs.iter().map(Vec::as_slice).collect()
}

#[track_caller]
fn assert_close(result: f64, expected: f64, scale: f64, what: &str) {
    let allowed = 1e-9 * expected.abs().max(scale);
    assert!(
        (result - expected).abs() <= allowed,
        "{what}: {result:e}, expected {expected:e}"
    );
}

/// Asserts the fourteen figures of one group of columns; `fair` has the outliers
/// of the throughput.
#[track_caller]
fn assert_summary(result: &SoakSummary, fair: &SoakSummary, columns: &[&str]) {
    let figures = [
        f64::from(u32::try_from(result.samples).unwrap()),
        result.mean,
        result.standard_deviation,
        result.standard_error,
        result.min,
        result.median,
        result.p90,
        result.p95,
        result.p99,
        result.max,
        result.skewness.unwrap(),
        result.coefficient_of_variation,
        result.outlier_percent,
        fair.outlier_percent,
    ];
    for (place, (result, expected)) in figures.into_iter().zip(columns).enumerate() {
        assert_close(result, number(expected), 1e-3, &format!("figure {place}"));
    }
}

#[test]
fn soaks_agree() {
    let mut outliers = [0.0, 0.0];
    for row in rows(include_str!("../golden/soak.csv")) {
        let (baseline, comparison) = (runs(row[0]), runs(row[1]));
        let options = SoakOptions {
            cpus: number(row[2]),
            warmup_seconds: number(row[3]),
            ..SoakOptions::default()
        };
        let by_throughput = SoakOptions {
            outliers: OutlierColumn::Throughput,
            ..options
        };
        let (baseline, comparison) = (borrowed(&baseline), borrowed(&comparison));
        let result = soak(&baseline, &comparison, &options).unwrap();
        let fair = soak(&baseline, &comparison, &by_throughput).unwrap();
        let noise = result.baseline.pooled.standard_error;
        assert_close(result.mean_difference, number(row[4]), noise, "difference");
        assert_close(result.mean_difference_percent, number(row[5]), 0.01, "%");
        assert_close(result.t, number(row[6]), 1.0, "t");
        assert_close(result.p_value, number(row[7]), 0.0, "p");
        assert_close(result.confidence_percent, number(row[8]), 1.0, "confidence");
        assert_summary(&result.baseline.pooled, &fair.baseline.pooled, &row[9..23]);
        assert_summary(
            &result.comparison.pooled,
            &fair.comparison.pooled,
            &row[23..37],
        );
        let first = |variant: &[Option<SoakSummary>]| variant[0].clone().unwrap();
        let run = first(&result.baseline.runs);
        assert_summary(&run, &first(&fair.baseline.runs), &row[37..51]);
        outliers[0] += result.baseline.pooled.outlier_percent;
        outliers[1] += fair.baseline.pooled.outlier_percent;
    }
    // The mistake that is kept shows: a climbing counter has no outliers.
    assert!(outliers[0] == 0.0 && outliers[1] > 0.0, "{outliers:?}");
}

#[test]
fn smps_agree() {
    let mut cases = 0;
    for row in rows(include_str!("../golden/smp.csv")) {
        let series = match row[0] {
            "gauge" => SmpSeries::Gauge,
            _ => SmpSeries::Counter,
        };
        let (baseline, comparison) = (runs(row[1]), runs(row[2]));
        let options = SmpOptions::stated(series);
        let result = smp(&borrowed(&baseline), &borrowed(&comparison), &options).unwrap();
        assert_eq!(
            result.baseline_samples.to_string(),
            row[3].trim_end_matches(".0")
        );
        assert_eq!(
            result.comparison_samples.to_string(),
            row[4].trim_end_matches(".0")
        );
        assert_close(result.baseline_mean, number(row[5]), 0.0, "baseline");
        assert_close(result.comparison_mean, number(row[6]), 0.0, "comparison");
        let percent = result.mean_difference_percent;
        assert_close(percent.value, number(row[7]), 0.1, "%");
        assert_close(percent.lower, number(row[8]), 0.1, "lower");
        assert_close(percent.upper, number(row[9]), 0.1, "upper");
        assert_close(result.p_value, number(row[10]), 0.0, "p");
        let erratic = number(row[11]) > 0.1;
        let certain = number(row[8]) > 0.0 || number(row[9]) < 0.0;
        assert_eq!(result.erratic, erratic);
        assert_eq!(
            result.flagged,
            number(row[7]).abs() >= 5.0 && certain && !erratic
        );
        cases += 1;
    }
    assert_eq!(cases, 4);
}

/// A counter that climbs by `rate` a second, more in every third.
fn climbing(rate: f64, seconds: u32) -> Vec<CounterReading> {
    (0..seconds)
        .map(|second| CounterReading {
            second: f64::from(second),
            value: rate * f64::from(second) + f64::from(second % 3),
        })
        .collect()
}

#[test]
fn declared_erratic_soaks_are_never_interesting() {
    let (baseline, comparison) = (climbing(100.0, 90), climbing(80.0, 90));
    let judged = |options| soak(&[&baseline], &[&comparison], &options).unwrap();
    let result = judged(SoakOptions::default());
    assert!(result.interesting && result.regression && !result.erratic);
    let declared = judged(SoakOptions {
        declared_erratic: true,
        ..SoakOptions::default()
    });
    assert!(!declared.interesting && !declared.regression);
    let better = soak(&[&comparison], &[&baseline], &SoakOptions::default()).unwrap();
    assert!(better.interesting && !better.regression);
}

#[test]
fn readings_without_rates_are_refused() {
    let good = climbing(10.0, 60);
    let mut twice = good.clone();
    twice[7].second = 6.0;
    let judged = |bad: &[CounterReading]| soak(&[&good, bad], &[&good], &SoakOptions::default());
    let of = |source| Err(SoakError::Readings { run: 2, source });
    assert_eq!(judged(&twice), of(ReadingsError::OutOfOrder { index: 7 }));
    assert_eq!(judged(&good[..1]), of(ReadingsError::TooFew { actual: 1 }));
    twice[3].value = f64::NAN;
    assert_eq!(judged(&twice), of(ReadingsError::NotFinite { index: 3 }));
    let short = climbing(10.0, 20);
    let nothing_left = soak(&[&short], &[&short], &SoakOptions::default());
    assert!(matches!(nothing_left, Err(SoakError::Seconds(_))));
}
