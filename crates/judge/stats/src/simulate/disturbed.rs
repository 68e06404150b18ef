//! Simulated pairs with noise that the interval does not assume.

use crate::draw::Draws;
use crate::normal;
use crate::number::count;
use crate::order::{PairOrder, balanced_order};
use crate::paired::{LogRatios, PairedError};

/// Noise of each pair, as a share of the level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PairNoise {
    /// Normal, with this standard deviation.
    Normal(f64),
    /// One-sided: exponential, with this standard deviation, around its mean.
    Exponential(f64),
    /// Normal, and in a share of the runs of the comparison a fault.
    Faults {
        /// Standard deviation of the normal part.
        noise: f64,
        /// Share of the runs.
        share: f64,
        /// Change of such a run.
        size: f64,
    },
}

/// Disturbance that all runs of an experiment share, as a share of the level. Time is counted
/// in lengths of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SharedNoise {
    /// None.
    Absent,
    /// A sine wave.
    Sine {
        /// Its amplitude.
        amplitude: f64,
        /// Runs in a period.
        period: f64,
    },
    /// On for half of each period.
    Square {
        /// Its height.
        height: f64,
        /// Runs in a period.
        period: f64,
    },
    /// Each run resembles the one before.
    Correlated {
        /// Standard deviation.
        noise: f64,
        /// Correlation with the run before.
        correlation: f64,
    },
    /// The second run of a pair differs by this.
    Position(f64),
    /// Each run loses a share of its level to other programs, uniform up to `most`.
    Loss {
        /// The largest loss.
        most: f64,
        /// Correlation with the run before.
        correlation: f64,
    },
}

/// A machine, and two executables on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DisturbedMachine {
    /// Noise of each pair.
    pub noise: PairNoise,
    /// Disturbance that all runs share.
    pub shared: SharedNoise,
    /// Standard deviation of the difference of two builds of the same source.
    pub layout: f64,
    /// Builds of each variant, with another layout each. One build is used in all pairs, also in
    /// those of the confirmation; of several, half are used in turn by the search and the others
    /// by the confirmation.
    pub builds: u32,
    /// True relative change of the source, above −1.
    pub change: f64,
    /// Longest pause before a run, in lengths of a run; pauses are uniform up to it.
    pub pause: f64,
}

impl DisturbedMachine {
    /// Equal sources, pairs of normal noise, pauses as an experiment makes them.
    #[must_use]
    pub const fn of_noise(noise: f64) -> Self {
        Self {
            noise: PairNoise::Normal(noise),
            shared: SharedNoise::Absent,
            layout: 0.0,
            builds: 1,
            change: 0.0,
            pause: 0.2,
        }
    }

    /// The relative change that the mean of many pairs would show, without layout.
    #[must_use]
    pub fn truth(&self) -> f64 {
        let faults = match self.noise {
            PairNoise::Faults { share, size, .. } => share * size.ln_1p(),
            PairNoise::Normal(_) | PairNoise::Exponential(_) => 0.0,
        };
        (self.change.ln_1p() + faults).exp_m1()
    }

    /// Log ratios of `pairs` pairs of a search, and of as many of its confirmation.
    ///
    /// # Errors
    /// [`PairedError`] for fewer than two pairs.
    pub fn stages(&self, seed: u64, pairs: u32) -> Result<[LogRatios; 2], PairedError> {
        let mut draws = Draws::seeded(seed);
        let change = self.change.ln_1p();
        let only_build = self.layout * draws.normal();
        let mut clock = SharedState::new(self.shared, &mut draws);
        let mut stage = |builds: u32| {
            let order_seed = std::array::from_fn(|_| u8::try_from(draws.below(256)).unwrap_or(0));
            let orders = balanced_order(order_seed, count(pairs));
            let layouts: Vec<f64> = match self.builds {
                0 | 1 => vec![only_build],
                _ => (0..builds).map(|_| self.layout * draws.normal()).collect(),
            };
            let deltas = orders
                .into_iter()
                .zip(layouts.iter().cycle())
                .map(|(order, layout)| {
                    let mut run = |position| {
                        let pause = self.pause * draws.uniform();
                        clock.next(pause, position, &mut draws)
                    };
                    let (first, second) = (run(0), run(1));
                    let shared = match order {
                        PairOrder::BaselineFirst => second - first,
                        PairOrder::ComparisonFirst => first - second,
                    };
                    (
                        1.0,
                        (change + layout + shared + self.noise_of_pair(&mut draws)).exp(),
                    )
                });
            LogRatios::from_pairs(&deltas.collect::<Vec<_>>())
        };
        Ok([
            stage(self.builds.div_ceil(2))?,
            stage((self.builds / 2).max(1))?,
        ])
    }

    fn noise_of_pair(&self, draws: &mut Draws) -> f64 {
        match self.noise {
            PairNoise::Normal(noise) => noise * draws.normal(),
            PairNoise::Exponential(noise) => noise * (-draws.uniform().ln() - 1.0),
            PairNoise::Faults { noise, share, size } => {
                let fault = if draws.uniform() <= share {
                    size.ln_1p()
                } else {
                    0.0
                };
                noise * draws.normal() + fault
            }
        }
    }
}

/// The shared disturbance as time goes on.
struct SharedState {
    shared: SharedNoise,
    now: f64,
    level: f64,
}

impl SharedState {
    fn new(shared: SharedNoise, draws: &mut Draws) -> Self {
        let (now, level) = match shared {
            SharedNoise::Sine { period, .. } | SharedNoise::Square { period, .. } => {
                (period * draws.uniform(), 0.0)
            }
            SharedNoise::Correlated { noise, .. } => (0.0, noise * draws.normal()),
            SharedNoise::Loss { .. } => (0.0, draws.normal()),
            SharedNoise::Absent | SharedNoise::Position(_) => (0.0, 0.0),
        };
        Self { shared, now, level }
    }

    /// Mean disturbance of the next run, which begins after `pause`.
    fn next(&mut self, pause: f64, position: u32, draws: &mut Draws) -> f64 {
        let begin = self.now + pause;
        let end = begin + 1.0;
        self.now = end;
        match self.shared {
            SharedNoise::Absent => 0.0,
            SharedNoise::Sine { amplitude, period } => {
                let turn = std::f64::consts::TAU / period;
                amplitude * ((turn * begin).cos() - (turn * end).cos()) / turn
            }
            SharedNoise::Square { height, period } => {
                let on = |time: f64| {
                    let periods = (time / period).floor();
                    period / 2.0 * periods + (time - periods * period).min(period / 2.0)
                };
                height * (on(end) - on(begin))
            }
            SharedNoise::Correlated { noise, correlation } => {
                let fresh = (1.0 - correlation * correlation).sqrt() * noise * draws.normal();
                self.level = correlation * self.level + fresh;
                self.level
            }
            SharedNoise::Loss { most, correlation } => {
                let fresh = (1.0 - correlation * correlation).sqrt() * draws.normal();
                self.level = correlation * self.level + fresh;
                (-most * normal::upper_tail(self.level)).ln_1p()
            }
            SharedNoise::Position(change) => change * f64::from(position),
        }
    }
}
