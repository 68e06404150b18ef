//! A calibration for programs.

use serde_json::{Map, Value, json as object};
use stillwell_plan::goal::Scale;
use stillwell_stats::{Level, binomial_share};
use stillwell_verdict::Change;

use super::{
    CalibratedExperiment, CalibratedGoal, CalibrationReport, MachineMet, Slowdown, WorseFound,
};

/// Names the shape of a calibration's JSON; keys are added within a version and
/// never removed.
pub const CALIBRATION_SCHEMA: &str = "stillwell/calibration/v2";

pub(super) fn json(report: &CalibrationReport) -> String {
    let host = report.host.iter();
    let host: Map<String, Value> = host
        .map(|(name, fact)| (name.clone(), fact.clone().into()))
        .collect();
    let value = object!({
        "schema": CALIBRATION_SCHEMA,
        "title": report.title,
        "experiments": report.experiments.iter().map(experiment).collect::<Vec<_>>(),
        "results_folder": report.results_folder,
        "command": report.command,
        "version": report.version,
        "host": host,
        "elapsed_ns": report.elapsed.as_u64(),
    });
    // `#` formats indented text; printing a value cannot fail.
    format!("{value:#}\n")
}

fn experiment(entry: &CalibratedExperiment) -> Value {
    let self_comparison = entry.self_comparison;
    let of = self_comparison.comparisons;
    let (worse, reason) = match &entry.worse {
        Ok(result) => (worse(result), Value::Null),
        Err(reason) => (Value::Null, Value::from(reason.as_str())),
    };
    object!({
        "name": entry.name,
        "alike": {
            "comparisons": of,
            "invalid": self_comparison.invalid,
            "flagged_by_search": rate(self_comparison.flagged_by_search, of),
            "flagged": rate(self_comparison.flagged, of),
            "without_zero": rate(self_comparison.without_zero, of),
            "equivalent": rate(self_comparison.equivalent, of),
        },
        "worse": worse,
        "worse_reason": reason,
        "goals": entry.goals.iter().map(goal).collect::<Vec<_>>(),
        "pair_ns": entry.pair_time.as_u64(),
        "max_pairs": entry.max_pairs,
        "machine": machine(&entry.machine),
    })
}

fn worse(entry: &WorseFound) -> Value {
    let of = entry.comparisons;
    object!({
        "how": match entry.how {
            Slowdown::Burn => "burn",
            Slowdown::Pause => "pause",
        },
        "truth": entry.truth,
        "comparisons": of,
        "invalid": entry.invalid,
        "found_by_search": rate(entry.found_by_search, of),
        "found": rate(entry.confirmed, of),
        "covered": entry.covered.map(|covered| rate(covered, of)),
        "changes": entry.changes.iter().map(change).collect::<Vec<_>>(),
    })
}

fn change(change: &Change) -> Value {
    object!({ "estimate": change.estimate, "lower": change.lower, "upper": change.upper })
}

/// A count with the exact 95 % interval of its share.
fn rate(hits: u32, of: u32) -> Value {
    let share = binomial_share(hits, of, Level::NINETY_FIVE);
    object!({ "count": hits, "lower_share": share.lower, "upper_share": share.upper })
}

fn goal(entry: &CalibratedGoal) -> Value {
    let visible = entry.visible.iter().map(
        |seen| object!({ "minutes": seen.minutes, "pairs": seen.pairs, "change": seen.change }),
    );
    object!({
        "metric": entry.metric.name(),
        "scale": match entry.scale {
            Scale::Ratio => "ratio",
            Scale::Difference => "difference",
        },
        "tolerance_share": entry.tolerance.share(),
        "comparisons": entry.comparisons,
        "flagged": entry.flagged,
        "pairs": entry.pairs,
        "pair_deviation": entry.pair_deviation,
        "apart_deviation": entry.apart_deviation,
        "within_share": entry.within_share,
        "better_seconds": entry.better_seconds,
        "visible": visible.collect::<Vec<_>>(),
    })
}

fn machine(met: &MachineMet) -> Value {
    let warnings = met.warnings.iter();
    let warnings = warnings.map(|(code, runs)| object!({ "code": code, "runs": runs }));
    let share = |share: Option<(f64, f64)>| {
        share.map(|(mean, most)| object!({ "mean_share": mean, "most_share": most }))
    };
    object!({
        "runs": met.runs,
        "pairs_discarded": met.pairs_discarded,
        "warnings": warnings.collect::<Vec<_>>(),
        "foreign_cpu": share(met.foreign),
        "steal": share(met.steal),
    })
}
