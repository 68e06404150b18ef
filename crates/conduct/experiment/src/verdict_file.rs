//! The verdict of an experiment and its course, for scripts: `verdict.json`.
//!
//! Everything else in a report follows from the summaries beside it.

use serde::Serialize;
use stillwell_plan::goal::Direction;
use stillwell_plan::{ExperimentPlan, GoalMetric};
use stillwell_units::{Nanos, Seed};
use stillwell_verdict::{
    ArmDiscards, Change, Confirmation, ExperimentVerdict, GoalVerdict, RunNotUsed, RunStage,
    RunSummary, SkippedGoal,
};

use crate::audit::{Audit, LookRecord, PairRecord, pairs_of};
use crate::health::{HealthRule, health_rules};
use crate::request::{PADDING, PADDING_MAX};

/// Names the shape of [`VerdictRecord`]; keys are added within a version and
/// never removed.
const VERDICT_SCHEMA: &str = "stillwell/verdict/v2";

/// The course of an experiment, kept until its verdict is final.
#[derive(Debug)]
pub(crate) struct Conduct {
    seed: Seed,
    design: &'static str,
    audit: Audit,
    pairs: Vec<PairRecord>,
}

impl Conduct {
    pub(crate) fn new(
        seed: Seed,
        plan: &ExperimentPlan,
        audit: Audit,
        runs: &[RunSummary],
    ) -> Self {
        Self {
            seed,
            design: plan.design.name(),
            pairs: pairs_of(runs, &audit),
            audit,
        }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct VerdictRecord<'a> {
    schema: &'static str,
    experiment: &'a str,
    verdict: &'static str,
    gate: &'static str,
    /// The reason why no more pairs were run; null where it was not ended by what is known.
    stopped: Option<&'static str>,
    pairs_planned: u32,
    pairs_used: u32,
    pairs_valid: u32,
    pairs_discarded: u32,
    discards: Vec<DiscardsRecord<'a>>,
    discards_unbalanced: bool,
    #[serde(rename = "warmup_ns")]
    warmup: Nanos,
    goals: Vec<GoalRecord<'a>>,
    /// Goals that this machine cannot measure, and the reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skipped: Vec<SkippedRecord<'a>>,
    /// The state at each look.
    looks: &'a [LookRecord],
    /// Unreliable runs, and the reasons.
    not_used: Vec<NotUsedRecord<'a>>,
    design: &'static str,
    /// From which all orders, bytes and paddings follow.
    seed: &'a Seed,
    pairs: &'a [PairRecord],
    environment_padding: PaddingRecord,
    /// The limits that made runs unreliable.
    health: Vec<HealthRule>,
}

/// Counts of one variant's discarded runs.
#[derive(Debug, Serialize)]
struct DiscardsRecord<'a> {
    variant: &'a str,
    runs: u32,
    target_failures: u32,
}

/// A goal that this machine cannot measure.
#[derive(Debug, Serialize)]
struct SkippedRecord<'a> {
    metric: &'a GoalMetric,
    code: &'static str,
    reason: String,
    was_primary: bool,
}

#[derive(Debug, Serialize)]
struct NotUsedRecord<'a> {
    stage: RunStage,
    pair: u32,
    variant: &'a str,
    warnings: Vec<String>,
}

/// The variable whose length moves the target's stack: the same rule for all
/// variants, another length for each run; each manifest has it.
#[derive(Debug, Serialize)]
struct PaddingRecord {
    variable: &'static str,
    bytes_max: u64,
}

/// All changes are comparison / baseline − 1, or comparison − baseline where the
/// goal is itself a share.
#[derive(Debug, Serialize)]
struct GoalRecord<'a> {
    metric: &'a GoalMetric,
    comparison: &'a str,
    primary: bool,
    direction: Direction,
    tolerance: f64,
    verdict: &'static str,
    baseline_mean: Option<f64>,
    comparison_mean: Option<f64>,
    change: Option<ChangeRecord>,
    confirmation: Option<ConfirmationRecord>,
    smallest_visible: Option<f64>,
    pairs: u32,
    reason: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct ChangeRecord {
    estimate: f64,
    lower: f64,
    upper: f64,
}

#[derive(Debug, Serialize)]
struct ConfirmationRecord {
    search_verdict: &'static str,
    search_change: Option<ChangeRecord>,
    pairs_wanted: u32,
    pairs: u32,
    change: Option<ChangeRecord>,
    pooled_change: Option<ChangeRecord>,
    p_value: Option<f64>,
    confirmed: Option<bool>,
}

impl<'a> VerdictRecord<'a> {
    pub(crate) fn new(verdict: &'a ExperimentVerdict, conduct: &'a Conduct) -> Self {
        Self {
            schema: VERDICT_SCHEMA,
            experiment: &verdict.name,
            verdict: verdict.verdict.name(),
            gate: verdict.gate.name(),
            stopped: verdict.stopped.map(|reason| reason.name()),
            pairs_planned: verdict.pairs_planned,
            pairs_used: verdict.pairs_used,
            pairs_valid: verdict.pairs_valid,
            pairs_discarded: verdict.pairs_discarded,
            discards: verdict.discards.iter().map(DiscardsRecord::new).collect(),
            discards_unbalanced: verdict.discards_unbalanced,
            warmup: verdict.warmup,
            goals: verdict.goals.iter().map(GoalRecord::new).collect(),
            skipped: verdict.skipped.iter().map(SkippedRecord::new).collect(),
            looks: &conduct.audit.looks,
            not_used: verdict.not_used.iter().map(NotUsedRecord::new).collect(),
            design: conduct.design,
            seed: &conduct.seed,
            pairs: &conduct.pairs,
            environment_padding: PaddingRecord {
                variable: PADDING,
                bytes_max: PADDING_MAX,
            },
            health: health_rules(),
        }
    }
}

impl<'a> DiscardsRecord<'a> {
    fn new(discards: &'a ArmDiscards) -> Self {
        Self {
            variant: &discards.variant,
            runs: discards.runs,
            target_failures: discards.target_failures,
        }
    }
}

impl<'a> NotUsedRecord<'a> {
    fn new(run: &'a RunNotUsed) -> Self {
        Self {
            stage: run.stage,
            pair: run.pair,
            variant: &run.variant,
            warnings: run.warnings.iter().map(ToString::to_string).collect(),
        }
    }
}

impl<'a> SkippedRecord<'a> {
    fn new(skipped: &'a SkippedGoal) -> Self {
        Self {
            metric: &skipped.metric,
            code: skipped.obstacle.name(),
            reason: skipped.obstacle.to_string(),
            was_primary: skipped.was_primary,
        }
    }
}

impl<'a> GoalRecord<'a> {
    fn new(goal: &'a GoalVerdict) -> Self {
        Self {
            metric: &goal.metric,
            comparison: &goal.comparison,
            primary: goal.primary,
            direction: goal.direction,
            tolerance: goal.tolerance.share(),
            verdict: goal.verdict.name(),
            baseline_mean: goal.baseline_mean,
            comparison_mean: goal.comparison_mean,
            change: goal.change.map(ChangeRecord::new),
            confirmation: goal.confirmation.as_ref().map(ConfirmationRecord::new),
            smallest_visible: goal.smallest_visible,
            pairs: goal.headline_pairs(),
            reason: goal.reason.as_deref(),
        }
    }
}

impl ChangeRecord {
    const fn new(change: Change) -> Self {
        Self {
            estimate: change.estimate,
            lower: change.lower,
            upper: change.upper,
        }
    }
}

impl ConfirmationRecord {
    fn new(fresh: &Confirmation) -> Self {
        Self {
            search_verdict: fresh.searched.name(),
            search_change: fresh.search_change.map(ChangeRecord::new),
            pairs_wanted: fresh.pairs_wanted,
            pairs: fresh.pairs,
            change: fresh.change.map(ChangeRecord::new),
            pooled_change: fresh.pooled.map(ChangeRecord::new),
            p_value: fresh.p_value,
            confirmed: fresh.confirmed,
        }
    }
}
