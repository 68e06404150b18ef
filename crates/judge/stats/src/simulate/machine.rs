//! Simulated machines.

use crate::draw::Draws;
use crate::number::{count, float};
use crate::order::{PairOrder, balanced_order};

/// Differences between a machine's runs, all as shares of the level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scenario {
    /// Its name in tables.
    pub name: &'static str,
    /// Standard deviation of a run's own level.
    pub run_noise: f64,
    /// Standard deviation of one second within a run.
    pub second_noise: f64,
    /// Correlation of each second with the one before it.
    pub correlation: f64,
}

/// Machines from one whose seconds are independent to a very noisy one.
pub const SCENARIOS: [Scenario; 6] = [
    Scenario {
        name: "no run effect, independent seconds",
        run_noise: 0.0,
        second_noise: 0.02,
        correlation: 0.0,
    },
    Scenario {
        name: "no run effect, correlated seconds",
        run_noise: 0.0,
        second_noise: 0.02,
        correlation: 0.6,
    },
    Scenario {
        name: "seed-like",
        run_noise: 0.002,
        second_noise: 0.0042,
        correlation: 0.5,
    },
    Scenario {
        name: "quiet",
        run_noise: 0.01,
        second_noise: 0.005,
        correlation: 0.3,
    },
    Scenario {
        name: "typical",
        run_noise: 0.01,
        second_noise: 0.02,
        correlation: 0.6,
    },
    Scenario {
        name: "noisy",
        run_noise: 0.02,
        second_noise: 0.05,
        correlation: 0.9,
    },
];

impl Scenario {
    /// A machine whose log ratios have this standard deviation from pair to pair,
    /// and whose seconds do not vary at all.
    #[must_use]
    pub fn of_pair_noise(standard_deviation: f64) -> Self {
        Self {
            name: "stated",
            run_noise: standard_deviation * std::f64::consts::FRAC_1_SQRT_2,
            second_noise: 0.0,
            correlation: 0.0,
        }
    }
}

/// Disturbance common to all runs of an experiment, as shares of the level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// Its name in tables.
    pub name: &'static str,
    /// Distance by which the level moves, evenly, from the first run to the last.
    pub trend: f64,
    /// Standard deviation of what wanders.
    pub noise: f64,
    /// Correlation of what wanders from one run to the next.
    pub correlation: f64,
}

impl Drift {
    /// A machine that stays as it is.
    pub const NONE: Self = Self {
        name: "none",
        trend: 0.0,
        noise: 0.0,
        correlation: 0.0,
    };
}

/// Three ways to drift that defeat tests which run one variant after the other.
pub const DRIFTS: [Drift; 3] = [
    Drift {
        name: "wandering 1 %",
        trend: 0.0,
        noise: 0.01,
        correlation: 0.9,
    },
    Drift {
        name: "wandering 2 %, slowly",
        trend: 0.0,
        noise: 0.02,
        correlation: 0.95,
    },
    Drift {
        name: "trend of 3 %, wandering 1 %",
        trend: 0.03,
        noise: 0.01,
        correlation: 0.9,
    },
];

/// A machine, how long each run is measured on it, and what the change truly
/// does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Differences between its runs.
    pub scenario: Scenario,
    /// Disturbance common to all of them.
    pub drift: Drift,
    /// Measured seconds of each run, at least one.
    pub seconds: u32,
    /// True relative change of the comparison, above −1.
    pub change: f64,
}

impl Machine {
    /// The (baseline, comparison) numbers of `pairs` pairs, each in an order that
    /// is random and balanced: the mean over the seconds of each run.
    #[must_use]
    pub fn pairs(&self, seed: u64, pairs: u32) -> Vec<(f64, f64)> {
        let mut draws = Draws::seeded(seed);
        let order_seed = std::array::from_fn(|_| u8::try_from(draws.below(256)).unwrap_or(0));
        let orders = balanced_order(order_seed, count(pairs));
        let mut drift = Wander::new(self.drift, 2 * count(pairs));
        let mut mean = |change: f64| {
            let level = drift.next(&mut draws) + change.ln_1p();
            let mut sum = 0.0;
            self.run(level, &mut draws, |second| sum += second);
            sum / f64::from(self.seconds.max(1))
        };
        let mut pair = |order| match order {
            PairOrder::BaselineFirst => {
                let baseline = mean(0.0);
                (baseline, mean(self.change))
            }
            PairOrder::ComparisonFirst => {
                let comparison = mean(self.change);
                (mean(0.0), comparison)
            }
        };
        orders.into_iter().map(&mut pair).collect()
    }

    /// All seconds of `runs` runs of the baseline and then as many of the
    /// comparison: as a suite measures that does not alternate.
    #[must_use]
    pub fn blocks(&self, seed: u64, runs: u32) -> [Vec<f64>; 2] {
        let mut draws = Draws::seeded(seed);
        let mut drift = Wander::new(self.drift, 2 * count(runs));
        [0.0, self.change].map(|change| {
            let mut seconds = Vec::with_capacity(count(runs) * count(self.seconds));
            for _ in 0..runs {
                let level = drift.next(&mut draws) + change.ln_1p();
                self.run(level, &mut draws, |second| seconds.push(second));
            }
            seconds
        })
    }

    /// One run at this log level, second by second.
    fn run(&self, level: f64, draws: &mut Draws, mut second: impl FnMut(f64)) {
        let Scenario {
            run_noise,
            second_noise,
            correlation,
            ..
        } = self.scenario;
        let level = level + run_noise * draws.normal();
        let mut state = Autoregression::new(second_noise, correlation);
        for _ in 0..self.seconds.max(1) {
            second((level + state.next(draws)).exp());
        }
    }
}

/// The drift from run to run.
struct Wander {
    trend_per_run: f64,
    trend: f64,
    state: Autoregression,
}

impl Wander {
    fn new(drift: Drift, runs: usize) -> Self {
        Self {
            trend_per_run: drift.trend / float(runs.max(2) - 1),
            trend: 0.0,
            state: Autoregression::new(drift.noise, drift.correlation),
        }
    }

    fn next(&mut self, draws: &mut Draws) -> f64 {
        let level = self.trend + self.state.next(draws);
        self.trend += self.trend_per_run;
        level
    }
}

/// Normal values of one standard deviation, each correlated with the one before.
struct Autoregression {
    standard_deviation: f64,
    correlation: f64,
    before: Option<f64>,
}

impl Autoregression {
    const fn new(standard_deviation: f64, correlation: f64) -> Self {
        Self {
            standard_deviation,
            correlation,
            before: None,
        }
    }

    fn next(&mut self, draws: &mut Draws) -> f64 {
        if self.standard_deviation <= 0.0 {
            return 0.0;
        }
        let fresh = self.standard_deviation * draws.normal();
        let value = match self.before {
            None => fresh,
            Some(before) => {
                let rest = (1.0 - self.correlation * self.correlation).sqrt();
                self.correlation * before + rest * fresh
            }
        };
        self.before = Some(value);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paired::LogRatios;
    use crate::sample::Sample;

    fn machine(scenario: Scenario, change: f64) -> Machine {
        Machine {
            scenario,
            drift: Drift::NONE,
            seconds: 20,
            change,
        }
    }

    /// Noise of a pair: private levels, and the mean of an
    /// autoregression over so many seconds.
    #[test]
    fn pairs_are_as_noisy_as_stated() {
        for scenario in SCENARIOS
            .into_iter()
            .chain([Scenario::of_pair_noise(0.015)])
        {
            let pairs = machine(scenario, 0.03).pairs(5, 20_000);
            let effect = LogRatios::from_pairs(&pairs).unwrap();
            let sample = Sample::try_new(effect.values(), 2).unwrap();
            let lags: f64 = (1..20)
                .map(|lag| 2.0 * f64::from(20 - lag) * scenario.correlation.powi(lag))
                .sum();
            let of_seconds = scenario.second_noise.powi(2) * (20.0 + lags) / 400.0;
            let stated = (2.0 * (scenario.run_noise.powi(2) + of_seconds)).sqrt();
            let result = sample.standard_deviation().unwrap();
            assert!(
                (result / stated - 1.0).abs() < 0.02,
                "{}: {result}",
                scenario.name
            );
            let bias = (sample.mean() - 0.03_f64.ln_1p()) / (stated / 20_000_f64.sqrt());
            assert!(bias.abs() < 4.0, "{}: {bias}", scenario.name);
        }
    }

    #[test]
    fn a_trend_moves_every_run_equally() {
        let still = Scenario::of_pair_noise(0.0);
        let trend = Drift {
            trend: 0.03,
            ..Drift::NONE
        };
        let machine = Machine {
            drift: trend,
            ..machine(still, 0.0)
        };
        let [baseline, comparison] = machine.blocks(1, 2);
        assert_eq!((baseline.len(), comparison.len()), (40, 40));
        assert!((baseline[0] - 1.0).abs() < 1e-12);
        assert!((comparison[39] - 0.03_f64.exp()).abs() < 1e-12);
        // Two pairs in balanced order: the trend is gone from their mean.
        let effect = LogRatios::from_pairs(&machine.pairs(1, 2)).unwrap();
        assert!(effect.values().iter().sum::<f64>().abs() < 1e-12);
        assert!((effect.values()[0].abs() - 0.01).abs() < 1e-12);
    }
}
