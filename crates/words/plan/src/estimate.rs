//! Estimate of an experiment's length.

use stillwell_units::{Nanos, floor_to_u64};

use crate::ExperimentPlan;
use crate::experiment::OperatingPoint;
use crate::stopping::DesignPlan;

/// Start, stop and close of a run, and the drain before them, as they are for a
/// small target.
const OVERHEAD_GUESS: Nanos = Nanos::from_secs(2);

/// Shortest and longest time of an experiment according to its plan: with no
/// builds, no repeated pair, and targets that start within two seconds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TimeEstimate {
    /// The verdict is certain at the first look, and needs no confirmation.
    pub least: Nanos,
    /// It is certain at the last look only, and is confirmed.
    pub most: Nanos,
}

impl ExperimentPlan {
    /// Its length in whole seconds.
    #[must_use]
    pub fn time(&self) -> TimeEstimate {
        let first = self.stopping.first_look();
        let last = self.stopping.max_pairs();
        let confirmation = if self.confirm {
            self.stopping.fresh_looks().last().copied().unwrap_or(0)
        } else {
            0
        };
        let probe = match self.operating_point {
            OperatingPoint::Probe { length, .. } => {
                self.run_plan.phases.warmup + length + OVERHEAD_GUESS
            }
            OperatingPoint::Max | OperatingPoint::Stated => Nanos::ZERO,
        };
        let pairs = |count: u64| whole_seconds(probe + times(self.pair_time(), count));
        TimeEstimate {
            least: pairs(first.into()),
            most: pairs(u64::from(last) + u64::from(confirmation)),
        }
    }

    /// One run of each variant.
    fn pair_time(&self) -> Nanos {
        let phases = &self.run_plan.phases;
        let run = phases.warmup + phases.measure + phases.quiet + OVERHEAD_GUESS;
        match self.design {
            // Both at once; where the load takes turns, a pair lasts as long as one run.
            DesignPlan::Duet | DesignPlan::Sliced { .. } => run,
            DesignPlan::Paired => times(run, self.variants.len() as u64),
        }
    }
}

const fn times(length: Nanos, count: u64) -> Nanos {
    Nanos::new(length.as_u64().saturating_mul(count))
}

/// Rounded up to a second.
fn whole_seconds(length: Nanos) -> Nanos {
    Nanos::from_secs(floor_to_u64(length.as_secs_f64().ceil()))
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::stopping::WarmupPlan;
    use crate::{GoalMetric, GoalPlan, PhasesPlan, RunPlan, StoppingPlan, VariantPlan};
    use stillwell_units::Seed;

    use super::*;

    /// Two variants, runs of ten seconds and as many pairs as `stopping` says.
    pub(crate) fn experiment(stopping: StoppingPlan) -> ExperimentPlan {
        ExperimentPlan {
            name: "one".to_owned(),
            summary: None,
            folder: "/lab/one".into(),
            run_plan: RunPlan {
                phases: PhasesPlan {
                    warmup: Nanos::from_secs(2),
                    measure: Nanos::from_secs(5),
                    quiet: Nanos::SECOND,
                    ..PhasesPlan::default()
                },
                ..RunPlan::idle(Seed::from_number(0))
            },
            variants: ["baseline", "comparison"]
                .map(|name| VariantPlan::unchanged(name.to_owned()))
                .to_vec(),
            goals: vec![GoalPlan::new(GoalMetric::Cpu)],
            stopping,
            design: DesignPlan::Paired,
            warmup: WarmupPlan::Stated,
            max_time: crate::experiment::MAX_TIME_DEFAULT,
            confirm: true,
            builds: 1,
            family: None,
            operating_point: OperatingPoint::Stated,
            stated_max: Vec::new(),
            report_links: Vec::new(),
            erratic: false,
        }
    }

    fn seconds(plan: &ExperimentPlan) -> (u64, u64) {
        let time = plan.time();
        (
            time.least.as_u64() / 1_000_000_000,
            time.most.as_u64() / 1_000_000_000,
        )
    }

    #[test]
    fn time_follows_from_looks_runs_and_confirmation() {
        let sequential = experiment(StoppingPlan::DEFAULT);
        assert_eq!(seconds(&sequential), (4 * 20, 40 * 20));
        let fixed = experiment(StoppingPlan::Fixed { pairs: 4 });
        assert_eq!(seconds(&fixed), (4 * 20, (4 + 6) * 20));
        let unconfirmed = ExperimentPlan {
            confirm: false,
            ..fixed
        };
        assert_eq!(seconds(&unconfirmed), (80, 80));
        let duet = ExperimentPlan {
            design: DesignPlan::Duet,
            ..unconfirmed
        };
        assert_eq!(seconds(&duet), (40, 40));
        let mut three = experiment(StoppingPlan::Fixed { pairs: 1 });
        three.confirm = false;
        three
            .variants
            .push(VariantPlan::unchanged("third".to_owned()));
        three.operating_point = OperatingPoint::Probe {
            share: 0.6,
            length: Nanos::from_millis(2_500),
        };
        assert_eq!(seconds(&three), (30 + 7, 30 + 7));
    }

    #[test]
    fn a_time_beyond_all_bounds_is_still_a_time() {
        let mut plan = experiment(StoppingPlan::Open {
            max_pairs: u32::MAX,
        });
        plan.run_plan.phases.measure = Nanos::new(u64::MAX);
        let time = plan.time();
        assert!(time.least <= time.most);
    }
}
