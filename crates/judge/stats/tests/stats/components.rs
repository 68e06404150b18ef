//! Sources of noise, and the length of run that follows.

use crate::simulated::Noise;
use stillwell_stats::components::{
    ComponentsError, Held, RunBounds, VarianceComponents, pairs_to_half_width,
};
use stillwell_stats::{Level, Looks};

/// Seconds of runs with known noise: between runs, within them, lag-one
/// correlation.
struct Machine {
    between: f64,
    within: f64,
    correlation: f64,
    noise: Noise,
}

impl Machine {
    fn run(&mut self, level: f64, seconds: usize) -> Vec<f64> {
        let noise_of_run = self.between * self.noise.normal();
        let seconds = self.noise.correlated(seconds, self.correlation);
        let within = self.within;
        seconds
            .into_iter()
            .map(|second| level * (1.0 + noise_of_run + within * second))
            .collect()
    }

    /// Both runs of each pair share what moves the machine.
    fn pairs(&mut self, pairs: usize, seconds: usize) -> VarianceComponents {
        let runs: Vec<_> = (0..pairs)
            .map(|_| {
                let shared = 5e4 * (1.0 + 0.03 * self.noise.normal());
                (self.run(shared, seconds), self.run(0.98 * shared, seconds))
            })
            .collect();
        let borrowed: Vec<_> = runs
            .iter()
            .map(|(baseline, comparison)| (baseline.as_slice(), comparison.as_slice()))
            .collect();
        VarianceComponents::from_pairs(&borrowed).unwrap()
    }
}

/// "Typical" and "quiet" of the reference, and one with correlated seconds.
#[test]
fn known_noise_is_found_again() {
    for (between, within, correlation) in [(0.01, 0.02, 0.6), (0.01, 0.005, 0.3), (0.02, 0.05, 0.9)]
    {
        let noise = Noise::seeded(7);
        let mut machine = Machine {
            between,
            within,
            correlation,
            noise,
        };
        let result = machine.pairs(600, 60);
        assert_eq!(result.pairs, 600);
        assert!((result.between / between - 1.0).abs() < 0.1, "{result:?}");
        assert!((result.within / within - 1.0).abs() < 0.06, "{result:?}");
        assert!(
            (result.correlation - correlation).abs() < 0.03,
            "{result:?}"
        );
    }
}

/// Few pairs are right on average: the variance, not its square root.
#[test]
fn four_pairs_are_not_biased() {
    let mut machine = Machine {
        between: 0.01,
        within: 0.02,
        correlation: 0.6,
        noise: Noise::seeded(8),
    };
    let mean = (0..500)
        .map(|_| machine.pairs(4, 20).pair_deviation(20.0).powi(2))
        .sum::<f64>()
        / 500.0;
    let truth = 2.0 * (0.01_f64.powi(2) + 0.02_f64.powi(2) * 4.0 / 20.0);
    // Where the seconds explain more than all of the noise, the rest is held at
    // zero, which adds a little.
    assert!((mean / truth - 1.0).abs() < 0.15, "{mean} for {truth}");
}

/// The table in section 2.6 of the reference: seed-like, quiet, typical, noisy.
#[test]
fn run_lengths_are_those_of_the_reference() {
    let bounds = RunBounds::try_new(0.1, 1e4).unwrap();
    for (between, within, correlation, expected) in [
        (0.002, 0.0042, 0.5, [8.0, 14.0, 24.0]),
        (0.01, 0.005, 0.3, [1.5, 2.6, 4.6]),
        (0.01, 0.02, 0.6, [9.0, 16.0, 27.0]),
        (0.02, 0.05, 0.9, [24.0, 42.0, 73.0]),
    ] {
        let components = VarianceComponents {
            pairs: 4,
            between,
            within,
            correlation,
        };
        for (overhead, expected) in [5.0, 15.0, 45.0].into_iter().zip(expected) {
            let length = components.run_length(overhead, bounds);
            assert!((length.seconds - expected).abs() < 0.6, "{length:?}");
            assert_eq!(length.held, None);
        }
    }
}

#[test]
fn run_lengths_are_held_within_bounds() {
    let bounds = RunBounds::try_new(10.0, 60.0).unwrap();
    let components = |between, within| VarianceComponents {
        pairs: 4,
        between,
        within,
        correlation: 0.0,
    };
    let seconds = |between, within| {
        let length = components(between, within).run_length(15.0, bounds);
        (length.seconds, length.held)
    };
    assert_eq!(seconds(0.01, 0.001), (10.0, Some(Held::Shortest)));
    assert_eq!(seconds(0.0, 0.02), (60.0, Some(Held::Longest)));
    assert_eq!(seconds(0.0, 0.0), (10.0, Some(Held::Shortest)));
    assert!(RunBounds::try_new(0.0, 60.0).is_err());
    assert!(RunBounds::try_new(60.0, 10.0).is_err());
    assert!(RunBounds::try_new(1.0, f64::INFINITY).is_err());
}

/// Forecast of pairs and minutes: 2 % half width at a pair deviation of 2 %
/// takes 7 pairs (2.4469 / √7 < 1), of 30 s each run.
#[test]
fn pairs_and_minutes_are_forecast() {
    let components = VarianceComponents {
        pairs: 4,
        between: 0.02_f64.ln_1p() / 2.0_f64.sqrt(),
        within: 0.0,
        correlation: 0.0,
    };
    let bounds = RunBounds::try_new(20.0, 60.0).unwrap();
    let length = components.run_length(10.0, bounds);
    let pairs = length
        .pairs_to_half_width(0.02, Level::NINETY_FIVE)
        .unwrap();
    assert_eq!(pairs, 7);
    assert!((length.minutes(pairs) - 7.0).abs() < 1e-12);
    assert_eq!(length.pairs_to_half_width(1e-6, Level::NINETY_FIVE), None);
}

#[test]
fn pairs_follow_the_plan_of_looks() {
    let looks: Vec<u32> = (4..=20).step_by(2).collect();
    let plan = Looks::group_sequential(&looks, Level::NINETY_FIVE).unwrap();
    let deviation = 0.02_f64.ln_1p();
    let pairs = pairs_to_half_width(deviation, 0.02, |pairs| plan.critical(pairs)).unwrap();
    assert!(
        looks.contains(&pairs) && (8..=14).contains(&pairs),
        "{pairs}"
    );
    assert_eq!(
        pairs_to_half_width(0.05, 0.02, |pairs| plan.critical(pairs)),
        None
    );
}

#[test]
fn runs_with_negligible_noise_are_refused() {
    let good = [1.0; 10];
    let of = |second: &[f64]| VarianceComponents::from_pairs(&[(&good, &good), (&good, second)]);
    assert!(matches!(
        of(&good[..7]),
        Err(ComponentsError::Seconds { pair: 2, .. })
    ));
    let idle = [0.0; 10];
    assert_eq!(of(&idle), Err(ComponentsError::Mean { pair: 2, mean: 0.0 }));
    let single = VarianceComponents::from_pairs(&[(&good, &good)]);
    assert!(matches!(single, Err(ComponentsError::Pairs(_))));
    let still = of(&good).unwrap();
    assert_eq!((still.between, still.within), (0.0, 0.0));
}
