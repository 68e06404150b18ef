//! The universal scalability law: against SciPy's `curve_fit`, and against laws
//! that are known.

use stillwell_stats::Level;
use stillwell_stats::capacity::usl::{Usl, UslError};

use crate::golden::{numbers, rows};
use crate::simulated::{Noise, share};

const LOADS: [f64; 10] = [1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0];

fn law(n: f64) -> f64 {
    500.0 * n / (1.0 + 0.05 * (n - 1.0) + 0.005 * n * (n - 1.0))
}

#[test]
fn fits_agree() {
    let mut cases = 0;
    for row in rows(include_str!("../golden/usl.csv")) {
        let points: Vec<_> = numbers(row[0]).into_iter().zip(numbers(row[1])).collect();
        let fit = Usl::fit(&points).unwrap();
        let result = [fit.lambda, fit.sigma, fit.kappa];
        for (index, (expected, error)) in
            numbers(row[2]).into_iter().zip(numbers(row[3])).enumerate()
        {
            // Both minima agree only as finely as the sum of squares does.
            let apart = (result[index] - expected).abs();
            assert!(
                apart <= 1e-6 * expected.abs() + 1e-6 * error,
                "{result:?} {row:?}"
            );
            let deviation = fit.covariance[index][index].sqrt();
            assert!(
                (deviation - error).abs() <= 1e-4 * error,
                "{deviation} {row:?}"
            );
        }
        let residual = numbers(row[4])[0];
        assert!((fit.residual / residual - 1.0).abs() < 1e-9, "{row:?}");
        cases += 1;
    }
    assert!(cases >= 16, "{cases} cases");
}

#[test]
fn a_law_without_noise_is_found_exactly() {
    let points = LOADS.map(|n| (n, law(n)));
    let fit = Usl::fit(&points).unwrap();
    assert!((fit.lambda / 500.0 - 1.0).abs() < 1e-9, "{fit:?}");
    assert!((fit.sigma / 0.05 - 1.0).abs() < 1e-7, "{fit:?}");
    assert!((fit.kappa / 0.005 - 1.0).abs() < 1e-7, "{fit:?}");
    let peak = fit.peak(Level::NINETY_FIVE).unwrap();
    assert!((peak.concurrency.value - (0.95_f64 / 0.005).sqrt()).abs() < 1e-5);
    // Power is throughput by the time of an answer, which is n by throughput.
    let power = |n: f64| law(n) * law(n) / n;
    let knee = fit.knee(Level::NINETY_FIVE).unwrap().concurrency.value;
    assert!(
        power(knee) > power(knee * 1.01) && power(knee) > power(knee / 1.01),
        "{knee}"
    );
    assert!(knee < peak.concurrency.value);
}

#[test]
fn intervals_of_knee_and_peak_hold_the_truth_at_their_level() {
    let truth = (0.95_f64 / 0.005).sqrt();
    let exact = Usl::fit(&LOADS.map(|n| (n, law(n)))).unwrap();
    let knee = exact.knee(Level::NINETY_FIVE).unwrap().concurrency.value;
    let mut noise = Noise::seeded(11);
    let (mut peaks, mut knees) = (0, 0);
    let fitted = share(400, |_| {
        let points: Vec<_> = LOADS
            .iter()
            .flat_map(|n| [*n; 3])
            .map(|n| (n, law(n) * (0.02 * noise.normal()).exp()))
            .collect();
        let Ok(fit) = Usl::fit(&points) else {
            return false;
        };
        let holds = |point: Option<stillwell_stats::capacity::usl::UslPoint>, truth: f64| {
            u32::from(point.is_some_and(|point| point.concurrency.contains(truth)))
        };
        peaks += holds(fit.peak(Level::NINETY_FIVE), truth);
        knees += holds(fit.knee(Level::NINETY_FIVE), knee);
        true
    });
    assert!(fitted > 0.99, "{fitted}");
    for covered in [f64::from(peaks) / 400.0, f64::from(knees) / 400.0] {
        assert!((0.90..=0.99).contains(&covered), "{covered}");
    }
}

#[test]
fn a_straight_line_has_no_knee_and_few_points_no_law() {
    let line = LOADS.map(|n| (n, 100.0 * n));
    let fit = Usl::fit(&line).unwrap();
    assert!(fit.peak(Level::NINETY_FIVE).is_none(), "{fit:?}");
    let few = Usl::fit(&[(1.0, 1.0), (2.0, 2.0), (2.0, 2.1), (3.0, 3.0)]);
    assert_eq!(few, Err(UslError::TooFew { actual: 3 }));
    assert!(matches!(
        Usl::fit(&[(0.0, 1.0)]),
        Err(UslError::Unfit { .. })
    ));
}
