//! A report for programs.

use serde_json::{Map, Value, json as object};
use stillwell_plan::GoalMetric;
use stillwell_plan::goal::{Direction, Scale};
use stillwell_plan::stopping::DesignPlan;
use stillwell_units::Nanos;
use stillwell_verdict::{
    Change, CheckVerdict, Confirmation, ErrorBudget, ExperimentVerdict, GoalVerdict, Moved,
    Protection, RateFigure, RunNotUsed, RunNoteCount, Sensitivity, SkippedGoal, StopReason,
    Verdict,
};

use crate::suite::{links, profiles_data};
use crate::{ExperimentRuns, SuiteProblem, SuiteReport};

/// Names the shape of [`json`]'s text; keys are added within a version and never
/// removed.
pub const REPORT_SCHEMA: &str = "stillwell/report/v3";

/// The report for programs: base units in the names of keys, changes as shares
/// of one (comparison / baseline − 1), keys in one order for all time. What was
/// not measured, and what is not finite, is `null`.
#[must_use]
pub fn json(report: &SuiteReport) -> String {
    let host = report.host.iter();
    let host: Map<String, Value> = host
        .map(|(name, fact)| (name.clone(), fact.clone().into()))
        .collect();
    let experiments = report.experiments.iter().map(|verdict| {
        let mut value = experiment(verdict, report);
        let mut runs = report.runs.iter();
        let runs = runs.find(|runs| runs.experiment == verdict.name);
        value["runs"] = runs.map(self::runs).unwrap_or_default();
        value
    });
    let value = object!({
        "schema": REPORT_SCHEMA,
        "title": report.title,
        "baseline": report.baseline,
        "comparison": report.comparison,
        "experiments": experiments.collect::<Vec<_>>(),
        "budget": budget(&report.budget),
        "problems": report.problems.iter().map(SuiteProblem::line).collect::<Vec<_>>(),
        "results_folder": report.results_folder,
        "command": report.command,
        "seed": report.seed,
        "version": report.version,
        "host": host,
        "elapsed_ns": report.elapsed.as_u64(),
        "next": report.next,
    });
    // `#` formats indented text; printing a value cannot fail.
    format!("{value:#}\n")
}

fn experiment(verdict: &ExperimentVerdict, report: &SuiteReport) -> Value {
    let links = links::filled(verdict, report).into_iter();
    let links =
        links.map(|report_link| object!({ "text": report_link.text, "link": report_link.link }));
    let family = verdict.family.as_ref().map(|family| {
        let parameters = family.parameters.iter();
        let parameters = parameters.map(|(name, value)| object!({ "name": name, "value": value }));
        object!({ "name": family.name, "parameters": parameters.collect::<Vec<_>>() })
    });
    object!({
        "name": verdict.name,
        "summary": verdict.summary,
        "verdict": verdict.verdict.name(),
        "gate": verdict.gate.name(),
        "erratic": verdict.erratic,
        "variants": verdict.variants,
        "builds": verdict.builds,
        "pairs_planned": verdict.pairs_planned,
        "pairs_used": verdict.pairs_used,
        "pairs_valid": verdict.pairs_valid,
        "pairs_discarded": verdict.pairs_discarded,
        "conduct": conduct(verdict),
        "family": family,
        "goals": verdict.goals.iter().map(goal).collect::<Vec<_>>(),
        "skipped": verdict.skipped.iter().map(skipped).collect::<Vec<_>>(),
        "moved": verdict.moved.iter().map(moved).collect::<Vec<_>>(),
        "moved_of": verdict.moved_of,
        "checks": verdict.checks.iter().map(check).collect::<Vec<_>>(),
        "warnings": verdict.not_used.iter().map(warnings).collect::<Vec<_>>(),
        "notes": verdict.notes.iter().map(note).collect::<Vec<_>>(),
        "target_cpus": verdict.cpus.target,
        "load_cpus": verdict.cpus.workers,
        "rates": verdict.rate.iter().map(rate).collect::<Vec<_>>(),
        "warmup_ns": verdict.warmup.as_u64(),
        "measure_ns": verdict.measure.as_u64(),
        "report_links": links.collect::<Vec<_>>(),
    })
}

/// The name of a goal's base unit, as it ends the names of keys.
pub(crate) const fn base_unit(metric: &GoalMetric) -> &'static str {
    match metric {
        GoalMetric::Cpu => "cpu_seconds_per_second",
        GoalMetric::CpuPerEvent => "cpu_ns_per_event",
        GoalMetric::EgressThroughput | GoalMetric::IngressThroughput => "bytes_per_second",
        GoalMetric::EventLatency(_)
        | GoalMetric::FirstByte(_)
        | GoalMetric::Latency(_)
        | GoalMetric::ServiceTime(_) => "ns",
        GoalMetric::Duplicated
        | GoalMetric::ErrorShare
        | GoalMetric::Loss
        | GoalMetric::Status(_) => "share",
        GoalMetric::Route(goal) => base_unit(goal.metric()),
        GoalMetric::RequestThroughput => "requests_per_second",
        GoalMetric::Memory | GoalMetric::MemoryPeak => "bytes",
        GoalMetric::InstructionsPerEvent => "instructions_per_event",
        GoalMetric::MemorySlope => "share_per_minute",
        GoalMetric::Series(_) => "as_recorded",
    }
}

/// The numbers of every run, in base units: a row for each run with a value for each metric.
fn runs(runs: &ExperimentRuns) -> Value {
    let metrics = runs.metrics.iter();
    let metrics: Vec<_> = metrics.map(|metric| metric.name()).collect();
    let rows = runs.values.iter();
    let rows = rows.map(|run| {
        let values = run.values.iter().map(|value| value.map(rounded));
        let values: Vec<Option<f64>> = values.collect();
        object!([run.stage, run.pair, run.variant, values])
    });
    let mut object = object!({
        "metrics": metrics,
        "columns": ["stage", "pair", "variant", "values"],
        "rows": rows.collect::<Vec<_>>(),
    });
    if !runs.profiles.comparisons.is_empty() {
        object["profiles"] = profiles_data(&runs.profiles);
    }
    object
}

/// Returns a number with seven significant digits: more than a measurement has, and fewer bytes.
fn rounded(value: f64) -> f64 {
    format!("{value:.6e}").parse().unwrap_or(value)
}

fn change(change: Change) -> Value {
    object!({
        "estimate_share": change.estimate,
        "lower_share": change.lower,
        "upper_share": change.upper,
    })
}

fn confirmation(entry: &Confirmation) -> Value {
    object!({
        "search_verdict": entry.searched.name(),
        "search_change": entry.search_change.map(change),
        "pairs_wanted": entry.pairs_wanted,
        "pairs": entry.pairs,
        "pair_changes": entry.pair_changes,
        "change": entry.change.map(change),
        "pooled_change": entry.pooled.map(change),
        "p_value": entry.p_value,
        "confirmed": entry.confirmed,
    })
}

fn sensitivity(entry: Sensitivity) -> Value {
    object!({
        "wilcoxon_p": entry.wilcoxon_p,
        "hodges_lehmann": entry.hodges_lehmann,
        "disagrees": entry.disagrees,
    })
}

fn moved(entry: &Moved) -> Value {
    object!({
        "comparison": entry.comparison,
        "series": entry.series,
        "unit": entry.unit,
        "baseline_mean": entry.baseline_mean,
        "comparison_mean": entry.comparison_mean,
        "change_share": entry.change,
        "at_least_share": entry.at_least,
        "p_adjusted": entry.p_adjusted,
        "pairs": entry.pairs,
    })
}

fn budget(entry: &ErrorBudget) -> Value {
    object!({
        "comparisons": entry.comparisons,
        "protection": match entry.protection {
            Protection::Single => "single",
            Protection::Confirmation => "confirmation",
            Protection::Holm => "holm",
            Protection::Mixed => "mixed",
        },
        "false_alarm_bound_share": entry.false_alarm_bound,
        "confirmed": entry.confirmed,
        "not_confirmed": entry.not_confirmed,
        "demoted": entry.demoted,
    })
}

/// Design and stopping rule of the experiment, beside the fields of `experiment`.
fn conduct(verdict: &ExperimentVerdict) -> Value {
    let discards = verdict.discards.iter().map(|arm| {
        object!({
            "variant": arm.variant,
            "runs": arm.runs,
            "target_failures": arm.target_failures,
        })
    });
    let signs = verdict.erratic_signs.iter().map(ToString::to_string);
    let design = match verdict.design {
        DesignPlan::Paired => object!({ "kind": "paired" }),
        DesignPlan::Duet => object!({ "kind": "duet" }),
        DesignPlan::Sliced { turn_min, turn_max } => object!({
            "kind": "sliced",
            "turn_min_ns": turn_min.as_u64(),
            "turn_max_ns": turn_max.as_u64(),
        }),
    };
    object!({
        "design": design,
        "looks": verdict.stopping.looks(),
        "stopped": verdict.stopped.map(StopReason::name),
        "likely_pairs": verdict.likely_pairs,
        "likely_left_ns": verdict.likely_left.map(Nanos::as_u64),
        "discards": discards.collect::<Vec<_>>(),
        "discards_unbalanced": verdict.discards_unbalanced,
        "erratic_signs": signs.collect::<Vec<_>>(),
        "advice": verdict.advice,
    })
}

fn goal(goal: &GoalVerdict) -> Value {
    let mut value = object!({
        "metric": goal.metric.name(),
        "comparison": goal.comparison,
        "primary": goal.primary,
        "better": match goal.direction {
            Direction::HigherIsBetter => "higher",
            Direction::LowerIsBetter => "lower",
        },
        "tolerance_share": goal.tolerance.share(),
        "verdict": goal.verdict.name(),
        "scale": match goal.scale {
            Scale::Ratio => "ratio",
            Scale::Difference => "difference",
        },
        "change": goal.change.map(change),
        "interval_level_share": 0.95,
        "pair_deviation": goal.pair_deviation,
        "sensitivity": goal.sensitivity.map(sensitivity),
        "confirmation": goal.confirmation.as_ref().map(confirmation),
        "smallest_visible_share": goal.smallest_visible,
        "pairs": goal.headline_pairs(),
        "pairs_searched": goal.pairs,
        "pairs_needed": goal.pairs_needed,
        "pairs_valid": goal.pairs_valid,
        "pair_changes": goal.pair_changes,
        "reason": goal.reason,
        "note": goal.note,
        "reliable": goal.verdict != Verdict::Invalid,
    });
    let unit = base_unit(&goal.metric);
    if let Some(estimate) = &goal.unreliable {
        let mut unreliable = object!({
            "change": estimate.change.map(change),
            "pairs": estimate.pairs,
        });
        unreliable[format!("baseline_mean_{unit}")] = estimate.baseline_mean.into();
        unreliable[format!("comparison_mean_{unit}")] = estimate.comparison_mean.into();
        value["unreliable"] = unreliable;
    }
    value[format!("baseline_mean_{unit}")] = goal.baseline_mean.into();
    value[format!("comparison_mean_{unit}")] = goal.comparison_mean.into();
    value
}

fn check(check: &CheckVerdict) -> Value {
    object!({
        "name": check.name,
        "description": check.description,
        "runs": check.runs,
        "passed": check.passed,
        "failed": check.failed(),
        "not_measured": check.not_measured,
        "worst_observed": check.worst_observed,
        "upper": check.upper,
        "lower": check.lower,
        "unit": check.unit,
        "failed_variants": check.failed_variants,
    })
}

fn warnings(run: &RunNotUsed) -> Value {
    let texts = run.warnings.iter().map(ToString::to_string);
    let values = run.values.iter().map(|(metric, value)| {
        let mut number = Map::new();
        number.insert(base_unit(metric).to_string(), Value::from(*value));
        (metric.name().to_string(), Value::from(number))
    });
    object!({
        "stage": run.stage,
        "pair": run.pair,
        "variant": run.variant,
        "run": run.run.to_string(),
        "texts": texts.collect::<Vec<_>>(),
        "warnings": run.warnings,
        "values": values.collect::<Map<_, _>>(),
    })
}

/// A goal that the machine cannot measure.
fn skipped(goal: &SkippedGoal) -> Value {
    object!({
        "metric": goal.metric,
        "code": goal.obstacle.name(),
        "reason": goal.obstacle.to_string(),
        "was_primary": goal.was_primary,
    })
}

fn note(seen: &RunNoteCount) -> Value {
    object!({
        "text": seen.note.to_string(),
        "note": seen.note,
        "runs": seen.runs,
        "of_runs": seen.of,
    })
}

fn rate(figure: &RateFigure) -> Value {
    object!({
        "generator": figure.id,
        "unit": figure.unit.plural(),
        "requested_per_second": figure.requested_per_second,
        "achieved_per_second": figure.achieved_per_second,
    })
}
