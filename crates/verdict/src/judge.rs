//! From the runs of an experiment to its verdict.

mod aggregate;
mod compare;
mod table;
#[cfg(test)]
mod tests;

use stillwell_plan::{
    Direction, ExperimentPlan, GoalMetric, GoalPlan, RateUnit, ReportLink, VariantPlan,
};
use stillwell_units::{Nanos, RunId, Tolerance};

use self::table::RunTable;
use crate::caution::Caution;
use crate::doubt::Doubt;
use crate::gate::Gate;
use crate::rule::{Change, Verdict};
use crate::summary::RunSummary;

/// What an experiment says.
#[derive(Clone, Debug, PartialEq)]
pub struct ExperimentVerdict {
    /// The experiment.
    pub name: String,
    /// The first line of prose of its README or its description.
    pub summary: Option<String>,
    /// Whether it is shown but never gates.
    pub erratic: bool,
    /// Its variants; the first is the baseline.
    pub variants: Vec<String>,
    /// Pairs that were to be run.
    pub pairs_planned: u32,
    /// Pairs that the primary goal was judged by; with more than two variants
    /// the fewest of all comparisons.
    pub pairs_used: u32,
    /// Pairs that were run and say nothing about the primary goal.
    pub pairs_discarded: u32,
    /// Runs with doubts, by pair and variant.
    pub not_used: Vec<RunNotUsed>,
    /// The goals of the plan in its order, the primary one first; with more than
    /// two variants all goals of the first comparison, then all of the second.
    pub goals: Vec<GoalVerdict>,
    /// The checks of the plan in its order.
    pub checks: Vec<CheckVerdict>,
    /// What readers should know, each once.
    pub cautions: Vec<CautionSeen>,
    /// CPUs that it had.
    pub cpus: PlacedCpus,
    /// Rates as they were carried out, one for each generator.
    pub rate: Vec<RateFigure>,
    /// Length of each run's load that was not measured.
    pub warmup: Nanos,
    /// Length of each run's measured phase.
    pub measure: Nanos,
    /// Links that reports carry.
    pub report_links: Vec<ReportLink>,
    /// The primary goal's; with more than two variants the gravest of them.
    pub verdict: Verdict,
    /// What a script is told.
    pub gate: Gate,
}

/// What an experiment says about one goal.
#[derive(Clone, Debug, PartialEq)]
pub struct GoalVerdict {
    /// What is compared.
    pub metric: GoalMetric,
    /// Which variant is compared with the baseline.
    pub comparison: String,
    /// Whether it decides over the experiment.
    pub primary: bool,
    /// Which way is better.
    pub direction: Direction,
    /// How large a change must be to matter.
    pub tolerance: Tolerance,
    /// The answer.
    pub verdict: Verdict,
    /// Geometric mean of the baseline's runs in valid pairs, in the goal's base
    /// unit.
    pub baseline_mean: Option<f64>,
    /// The same of the comparison's runs.
    pub comparison_mean: Option<f64>,
    /// Comparison / baseline − 1, from two valid pairs on.
    pub change: Option<Change>,
    /// The smallest relative change that these pairs would have told from none
    /// in about four of five experiments.
    pub smallest_visible: Option<f64>,
    /// Pairs that a change as large as the tolerance needs at this noise, at
    /// least [`PAIRS_MIN`](crate::limits::PAIRS_MIN); `None` if unknown or beyond
    /// reach.
    pub pairs_needed: Option<u32>,
    /// Valid pairs.
    pub pairs: u32,
    /// Comparison / baseline of each valid pair, in the order of pairs.
    pub pair_ratios: Vec<f64>,
    /// Why it is invalid or inconclusive, where noise is not the reason.
    pub reason: Option<String>,
    /// What readers should know when they read the number.
    pub note: Option<String>,
}

/// A run with doubts.
#[derive(Clone, Debug, PartialEq)]
pub struct RunNotUsed {
    /// Its pair, from 1.
    pub pair: u32,
    /// Its variant.
    pub variant: String,
    /// The run.
    pub run: RunId,
    /// At least one.
    pub doubts: Vec<Doubt>,
}

/// A check's answer over all completed runs.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckVerdict {
    /// What reports call it.
    pub name: String,
    /// Why it is there.
    pub description: Option<String>,
    /// Runs that kept it.
    pub passed: u32,
    /// Runs in which there was nothing to hold against it.
    pub not_measured: u32,
    /// Runs in all.
    pub runs: u32,
    /// The observed value nearest to or farthest beyond a bound, in `unit`.
    pub worst_observed: Option<f64>,
    /// It must not lie above.
    pub upper: Option<f64>,
    /// It must not lie below.
    pub lower: Option<f64>,
    /// Unit of values and bounds, as the catalogue has it.
    pub unit: String,
    /// Variants with a run that broke it.
    pub failed_variants: Vec<String>,
}

impl CheckVerdict {
    /// Runs that broke it.
    #[must_use]
    pub const fn failed(&self) -> u32 {
        self.runs
            .saturating_sub(self.passed)
            .saturating_sub(self.not_measured)
    }
}

/// A caution, and how many runs carry one like it.
#[derive(Clone, Debug, PartialEq)]
pub struct CautionSeen {
    /// The first of its kind.
    pub caution: Caution,
    /// Runs that carry one like it.
    pub runs: u32,
    /// Runs in all.
    pub of: u32,
}

/// CPUs of an experiment's runs; `None` for any.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlacedCpus {
    /// The subject's.
    pub subject: Option<Vec<u16>>,
    /// Those of generators, sinks and observers.
    pub own: Option<Vec<u16>>,
}

/// A generator's rate as it was carried out: the mean over all runs.
#[derive(Clone, Debug, PartialEq)]
pub struct RateFigure {
    /// The generator.
    pub id: String,
    /// What its rate counts.
    pub unit: RateUnit,
    /// Units asked for each second; `None` at full speed.
    pub asked_per_second: Option<f64>,
    /// Units sent for each second.
    pub achieved_per_second: Option<f64>,
}

/// The verdict over the runs of an experiment so far, at the last look at the
/// data: whoever looks earlier and stops by what they see breaks the interval's
/// promise.
///
/// Runs come in any order and are told apart by their identity; runs of other
/// experiments and probes (pair 0) are left out. Where a pair has two runs of
/// one variant, the one without doubts counts. A pair counts for a goal if both
/// of its runs are valid for it and measured it. With more than two variants
/// each is compared with the first.
#[must_use]
pub fn judge(plan: &ExperimentPlan, runs: &[RunSummary]) -> ExperimentVerdict {
    let table = RunTable::of(plan, runs);
    let goals = goals(plan, &table);
    let primaries = || goals.iter().filter(|goal| goal.primary);
    let verdict = primaries()
        .map(|goal| goal.verdict)
        .reduce(Verdict::graver)
        .unwrap_or(Verdict::Invalid);
    let checks = aggregate::checks(plan, &table);
    let pairs_used = primaries().map(|goal| goal.pairs).min().unwrap_or(0);
    ExperimentVerdict {
        name: plan.name.clone(),
        summary: plan.summary.clone(),
        erratic: plan.erratic,
        variants: plan.variants.iter().map(|v| v.name.clone()).collect(),
        pairs_planned: plan.pairs,
        pairs_used,
        pairs_discarded: table.finished_pairs().saturating_sub(pairs_used),
        not_used: aggregate::not_used(&table),
        gate: gate(verdict, &checks),
        checks,
        cautions: aggregate::cautions(&table),
        cpus: aggregate::cpus(&table),
        rate: aggregate::rate(&table),
        warmup: plan.rig.phases.warmup,
        measure: plan.rig.phases.measure,
        report_links: plan.report_links.clone(),
        verdict,
        goals,
    }
}

fn goals(plan: &ExperimentPlan, table: &RunTable<'_>) -> Vec<GoalVerdict> {
    let [baseline, comparisons @ ..] = plan.variants.as_slice() else {
        return Vec::new();
    };
    let of = |comparison: &VariantPlan| {
        let goals = plan.goals.iter().enumerate();
        let judged = goals.map(|(index, goal): (usize, &GoalPlan)| GoalVerdict {
            primary: index == 0,
            ..compare::compare(goal, &baseline.name, &comparison.name, table)
        });
        judged.collect::<Vec<_>>()
    };
    comparisons.iter().flat_map(of).collect()
}

fn gate(verdict: Verdict, checks: &[CheckVerdict]) -> Gate {
    if verdict == Verdict::Regressed {
        Gate::Regressed
    } else if checks.iter().any(|check| check.failed() > 0) {
        Gate::CheckFailed
    } else if verdict == Verdict::Invalid || checks.iter().any(|check| check.not_measured > 0) {
        Gate::Invalid
    } else if verdict == Verdict::Inconclusive {
        Gate::Inconclusive
    } else {
        Gate::Held
    }
}
