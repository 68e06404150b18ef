//! A report for programs.

use serde_json::{Map, Value, json as object};
use stillwell_plan::{Direction, GoalMetric, RateUnit};
use stillwell_verdict::{
    CautionSeen, CheckVerdict, ExperimentVerdict, GoalVerdict, RateFigure, RunNotUsed,
};

use crate::LabReport;

/// Names the shape of [`json`]'s text; keys are added within a version and never
/// removed.
pub const REPORT_SCHEMA: &str = "stillwell/report/v1";

/// The report for programs: base units in the names of keys, changes as shares
/// of one (comparison / baseline − 1), keys in one order for all time. What was
/// not measured, and what is not finite, is `null`.
#[must_use]
pub fn json(report: &LabReport) -> String {
    let host = report.host.iter();
    let host: Map<String, Value> = host
        .map(|(name, fact)| (name.clone(), fact.clone().into()))
        .collect();
    let experiments = report.experiments.iter().map(experiment);
    let value = object!({
        "schema": REPORT_SCHEMA,
        "title": report.title,
        "baseline": report.baseline,
        "comparison": report.comparison,
        "experiments": experiments.collect::<Vec<_>>(),
        "results_folder": report.results_folder,
        "command": report.command,
        "seed": report.seed,
        "version": report.version,
        "host": host,
        "elapsed_ns": report.elapsed.as_u64(),
        "next": report.next,
    });
    // `#` asks for indented text; printing a value cannot fail.
    format!("{value:#}\n")
}

fn experiment(verdict: &ExperimentVerdict) -> Value {
    let links = verdict.report_links.iter();
    let links = links.map(|own| object!({ "text": own.text, "link": own.link }));
    object!({
        "name": verdict.name,
        "summary": verdict.summary,
        "verdict": verdict.verdict.name(),
        "gate": verdict.gate.name(),
        "erratic": verdict.erratic,
        "variants": verdict.variants,
        "pairs_planned": verdict.pairs_planned,
        "pairs_used": verdict.pairs_used,
        "pairs_discarded": verdict.pairs_discarded,
        "goals": verdict.goals.iter().map(goal).collect::<Vec<_>>(),
        "checks": verdict.checks.iter().map(check).collect::<Vec<_>>(),
        "doubts": verdict.not_used.iter().map(doubts).collect::<Vec<_>>(),
        "cautions": verdict.cautions.iter().map(caution).collect::<Vec<_>>(),
        "subject_cpus": verdict.cpus.subject,
        "own_cpus": verdict.cpus.own,
        "rates": verdict.rate.iter().map(rate).collect::<Vec<_>>(),
        "warmup_ns": verdict.warmup.as_u64(),
        "measure_ns": verdict.measure.as_u64(),
        "report_links": links.collect::<Vec<_>>(),
    })
}

/// The name of a goal's base unit, as it ends the names of keys.
const fn base_unit(metric: GoalMetric) -> &'static str {
    match metric {
        GoalMetric::Cpu => "cpu_seconds_per_second",
        GoalMetric::CpuPerEvent => "cpu_ns_per_event",
        GoalMetric::EgressThroughput | GoalMetric::IngressThroughput => "bytes_per_second",
        GoalMetric::Memory => "bytes",
    }
}

fn goal(goal: &GoalVerdict) -> Value {
    let change = goal.change.map(|change| {
        object!({
            "estimate_share": change.estimate,
            "lower_share": change.lower,
            "upper_share": change.upper,
        })
    });
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
        "change": change,
        "interval_level_share": 0.95,
        "smallest_visible_share": goal.smallest_visible,
        "pairs": goal.pairs,
        "pairs_needed": goal.pairs_needed,
        "pair_ratios": goal.pair_ratios,
        "reason": goal.reason,
        "note": goal.note,
    });
    let unit = base_unit(goal.metric);
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

fn doubts(run: &RunNotUsed) -> Value {
    let texts = run.doubts.iter().map(ToString::to_string);
    object!({
        "pair": run.pair,
        "variant": run.variant,
        "run": run.run.to_string(),
        "texts": texts.collect::<Vec<_>>(),
        "doubts": run.doubts,
    })
}

fn caution(seen: &CautionSeen) -> Value {
    object!({
        "text": seen.caution.to_string(),
        "caution": seen.caution,
        "runs": seen.runs,
        "of_runs": seen.of,
    })
}

fn rate(figure: &RateFigure) -> Value {
    object!({
        "generator": figure.id,
        "unit": match figure.unit {
            RateUnit::Bytes => "bytes",
            RateUnit::Events => "events",
            RateUnit::Blocks => "blocks",
        },
        "asked_per_second": figure.asked_per_second,
        "achieved_per_second": figure.achieved_per_second,
    })
}
