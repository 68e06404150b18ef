//! Progress of an experiment.

use std::collections::BTreeSet;

use stillwell_capture::RunStage;
use stillwell_plan::stopping::DesignPlan;
use stillwell_plan::{ExperimentPlan, StoppingPlan};
use stillwell_units::Nanos;
use stillwell_verdict::{ExperimentVerdict, NextStep, RunSummary, Standing};

use crate::RunsLeft;
use crate::audit::Audit;

/// Share of the planned pairs after which an experiment of which nothing is
/// known yet is likely to end: seven of ten, which is what one without any
/// change needs in simulation.
const LIKELY_TENTHS: u64 = 7;

/// Progress of an experiment.
#[derive(Debug, Default)]
pub(super) struct Course {
    /// All that is to be judged, lost pairs included.
    pub(super) runs: Vec<RunSummary>,
    /// The pairs that these are of.
    places: BTreeSet<(RunStage, u32)>,
    /// Pairs whose runs all completed.
    pub(super) finished: u32,
    /// Pairs of which one failed.
    pub(super) lost: u32,
    /// The state at each look.
    pub(super) audit: Audit,
}

impl Course {
    /// Adds a pair whose runs all completed.
    pub(super) fn finish(&mut self, stage: RunStage, pair: u32, runs: Vec<RunSummary>) {
        self.finished += 1;
        self.add(stage, pair, runs);
    }

    /// Adds a pair that is lost.
    pub(super) fn lose(&mut self, stage: RunStage, pair: u32, runs: Vec<RunSummary>) {
        self.lost += 1;
        self.add(stage, pair, runs);
    }

    fn add(&mut self, stage: RunStage, pair: u32, runs: Vec<RunSummary>) {
        self.places.insert((stage, pair));
        self.runs.extend(runs);
    }

    /// The number of the next pair: the smallest that was never used.
    pub(super) fn next_pair(&self, stage: RunStage) -> u32 {
        let mut numbers = 1..u32::MAX;
        let free = numbers.find(|pair| !self.places.contains(&(stage, *pair)));
        free.unwrap_or(u32::MAX)
    }

    /// Returns true if so many pairs of a stage were run that asking for more must be a defect.
    /// Each run counts for a second of the time in which pairs are replaced.
    pub(super) fn is_endless(&self, stage: RunStage, wanted: u32, max_time: Nanos) -> bool {
        let run = self.places.iter().filter(|place| place.0 == stage).count() as u64;
        let replaced = max_time.as_u64() / Nanos::SECOND.as_u64();
        run > u64::from(wanted) * 2 + 1 + replaced
    }
}

/// Executions that a pair takes: one where its runs share the time.
pub(super) const fn executions_per_pair(plan: &ExperimentPlan) -> u64 {
    match plan.design {
        DesignPlan::Paired => plan.variants.len() as u64,
        DesignPlan::Duet | DesignPlan::Sliced { .. } => 1,
    }
}

/// The executions that an experiment still takes, where `standing` is what is
/// known of it.
pub(super) fn runs_left(plan: &ExperimentPlan, standing: &Standing) -> RunsLeft {
    let NextStep::Run {
        stage,
        valid_pairs_wanted,
        likely_pairs,
    } = standing.next
    else {
        return RunsLeft::NONE;
    };
    let valid = valid_pairs(&standing.verdict, stage);
    let left = |pairs: u32| u64::from(pairs.saturating_sub(valid));
    let least = left(valid_pairs_wanted);
    let pairs = match stage {
        RunStage::Confirm => RunsLeft {
            least,
            likely: least,
            most: left(last_fresh(plan)).max(least),
        },
        RunStage::Search => {
            let searching = left(plan.stopping.max_pairs()).max(least);
            let confirming = if plan.confirm {
                u64::from(last_fresh(plan))
            } else {
                0
            };
            RunsLeft {
                least,
                likely: likely_pairs
                    .map_or_else(
                        || guess(plan.stopping).saturating_sub(u64::from(valid)),
                        left,
                    )
                    .clamp(least, searching),
                most: searching + confirming,
            }
        }
    };
    pairs.map(|pairs| pairs.saturating_mul(executions_per_pair(plan)))
}

/// The most fresh valid pairs of a confirmation.
pub(super) fn last_fresh(plan: &ExperimentPlan) -> u32 {
    plan.stopping.fresh_looks().last().copied().unwrap_or(0)
}

/// After how many pairs an experiment ends of which nothing is known yet.
fn guess(stopping: StoppingPlan) -> u64 {
    let most = u64::from(stopping.max_pairs());
    match stopping {
        StoppingPlan::Fixed { .. } => most,
        StoppingPlan::Sequential { .. } | StoppingPlan::Open { .. } => {
            (most * LIKELY_TENTHS).div_ceil(10)
        }
    }
}

/// Valid pairs of a stage so far.
pub(super) fn valid_pairs(verdict: &ExperimentVerdict, stage: RunStage) -> u32 {
    match stage {
        RunStage::Search => verdict.pairs_valid,
        RunStage::Confirm => {
            let primaries = verdict.goals.iter().filter(|goal| goal.primary);
            let fresh = primaries.filter_map(|goal| goal.confirmation.as_ref());
            fresh.map(|goal| goal.pairs).min().unwrap_or(0)
        }
    }
}
