//! Warm-up and trends, on the simulated ramps of the reference: 120 samples,
//! standard deviation 2 %, lag-one correlation 0.6.

use crate::simulated::{Noise, share};
use stillwell_stats::Level;
use stillwell_stats::warmup::{Slope, SteadyState, slope_test_at, steady_state};

fn steady(samples: &[f64]) -> Option<SteadyState> {
    steady_state(samples, Level::NINETY_FIVE)
}

fn slope_test(samples: &[f64]) -> Option<Slope> {
    slope_test_at(samples, Level::NINETY_FIVE)
}

/// A run that starts `depth` below its level and comes up with time constant
/// `samples_up`.
fn ramp(
    noise: &mut Noise,
    count: usize,
    depth: f64,
    samples_up: f64,
    correlation: f64,
) -> Vec<f64> {
    let chance = noise.correlated(count, correlation);
    (0_u32..)
        .zip(chance)
        .map(|(place, chance)| {
            let missing = depth * (-f64::from(place) / samples_up).exp();
            1.0 - missing + 0.02 * chance
        })
        .collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / f64::from(u32::try_from(values.len()).unwrap())
}

/// The mean bias of a run's mean once MSER-5 has cut it, and the mean cut.
fn bias_and_cut(seed: u64, depth: f64, samples_up: f64) -> (f64, f64) {
    let mut noise = Noise::seeded(seed);
    let (mut bias, mut cuts) = (0.0, 0.0);
    for _ in 0..1000 {
        let run = ramp(&mut noise, 120, depth, samples_up, 0.6);
        let cut = steady(&run).unwrap().cut;
        bias += (mean(&run[cut..]) - 1.0) / 1000.0;
        cuts += f64::from(u32::try_from(cut).unwrap()) / 1000.0;
    }
    (bias, cuts)
}

#[test]
fn mser5_takes_the_ramps_of_the_reference_away() {
    let (bias, cut) = bias_and_cut(1, 0.0, 1.0);
    assert!(
        bias.abs() < 5e-4 && (5.0..13.0).contains(&cut),
        "{bias}, {cut}"
    );
    let (bias, _) = bias_and_cut(2, 0.2, 5.0);
    assert!(bias.abs() < 1e-3, "{bias}");
    let (bias, cut) = bias_and_cut(3, 0.2, 15.0);
    assert!(bias.abs() < 4e-3 && cut > 25.0, "{bias}, {cut}");
    let (bias, _) = bias_and_cut(4, 0.2, 40.0);
    assert!(bias < -0.015, "{bias}: cannot work and must be flagged");
}

fn unsteady(seed: u64, count: usize, depth: f64, samples_up: f64, correlation: f64) -> f64 {
    let mut noise = Noise::seeded(seed);
    share(1000, |_| {
        let run = ramp(&mut noise, count, depth, samples_up, correlation);
        let state = steady(&run).unwrap();
        state.at_bound || state.slope.interval.excludes_zero()
    })
}

#[test]
fn steady_runs_are_rarely_called_unsteady() {
    for (seed, correlation) in [(11, 0.0), (12, 0.6)] {
        let rate = unsteady(seed, 120, 0.0, 1.0, correlation);
        assert!(rate < 0.08, "{correlation}: {rate}");
    }
    let rate = unsteady(13, 600, 0.0, 1.0, 0.9);
    assert!(rate < 0.08, "{rate}");
}

#[test]
fn warm_ups_that_never_end_are_flagged() {
    let short = unsteady(21, 120, 0.2, 5.0, 0.6);
    assert!(short < 0.1, "{short}");
    let endless = unsteady(22, 120, 0.2, 40.0, 0.6);
    assert!(endless > 0.6, "{endless}");
}

/// The slope test rejects a window without a trend about as often as it says,
/// however much neighbours resemble each other.
#[test]
fn slopes_keep_their_error_rate_under_autocorrelation() {
    for (seed, count, correlation) in [(31, 16, 0.0), (32, 60, 0.3), (33, 110, 0.6), (34, 600, 0.9)]
    {
        let mut noise = Noise::seeded(seed);
        let rate = share(1000, |_| {
            let slope = slope_test(&noise.correlated(count, correlation)).unwrap();
            assert_eq!(slope.p_value < 0.05, slope.interval.excludes_zero());
            slope.p_value < 0.05
        });
        assert!(
            (rate - 0.05).abs() < 0.025,
            "{count}, {correlation}: {rate}"
        );
    }
}

#[test]
fn a_straight_line_has_its_slope() {
    let line: Vec<f64> = (0_u32..83)
        .map(|place| 7.0 - 0.25 * f64::from(place))
        .collect();
    let slope = slope_test(&line).unwrap();
    assert!((slope.per_step + 0.25).abs() < 1e-12, "{slope:?}");
    assert!(slope.p_value < 1e-9 && slope.interval.excludes_zero());
    let level = slope_test(&[3.0; 40]).unwrap();
    assert_eq!((level.per_step, level.p_value), (0.0, 1.0));
}

#[test]
fn cuts_are_whole_batches_of_at_most_half() {
    let step: Vec<f64> = (0..64)
        .map(|place| if place < 12 { 0.5 } else { 1.0 })
        .collect();
    let cut = |samples: &[f64]| Some(steady(samples)?.cut);
    assert_eq!(cut(&step), Some(15));
    let late: Vec<f64> = (0..64)
        .map(|place| if place < 60 { 0.5 } else { 1.0 })
        .collect();
    assert!(cut(&late).unwrap() <= 32);
    assert_eq!(cut(&[1.0; 20]), Some(0));
    assert_eq!(cut(&[1.0; 19]), None);
    assert_eq!(slope_test(&[1.0; 15]), None);
    assert_eq!(slope_test(&[f64::NAN; 40]), None);
    assert_eq!(steady(&[f64::INFINITY; 40]), None);
}
