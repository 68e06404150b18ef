//! A calibration for programs.

use serde_json::{Map, Value, json as object};
use stillwell_plan::Scale;
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
    // `#` asks for indented text; printing a value cannot fail.
    format!("{value:#}\n")
}

fn experiment(own: &CalibratedExperiment) -> Value {
    let alike = own.alike;
    let of = alike.comparisons;
    let (worse, reason) = match &own.worse {
        Ok(found) => (worse(found), Value::Null),
        Err(reason) => (Value::Null, Value::from(reason.as_str())),
    };
    object!({
        "name": own.name,
        "alike": {
            "comparisons": of,
            "invalid": alike.invalid,
            "flagged_by_search": rate(alike.flagged_by_search, of),
            "flagged": rate(alike.flagged, of),
            "without_zero": rate(alike.without_zero, of),
            "equivalent": rate(alike.equivalent, of),
        },
        "worse": worse,
        "worse_reason": reason,
        "goals": own.goals.iter().map(goal).collect::<Vec<_>>(),
        "pair_ns": own.pair_time.as_u64(),
        "max_pairs": own.max_pairs,
        "machine": machine(&own.machine),
    })
}

fn worse(own: &WorseFound) -> Value {
    let of = own.comparisons;
    object!({
        "how": match own.how {
            Slowdown::Burn => "burn",
            Slowdown::Pause => "pause",
        },
        "truth": own.truth,
        "comparisons": of,
        "invalid": own.invalid,
        "found_by_search": rate(own.found_by_search, of),
        "found": rate(own.confirmed, of),
        "covered": rate(own.covered, of),
        "changes": own.changes.iter().map(change).collect::<Vec<_>>(),
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

fn goal(own: &CalibratedGoal) -> Value {
    let visible = own.visible.iter().map(
        |seen| object!({ "minutes": seen.minutes, "pairs": seen.pairs, "change": seen.change }),
    );
    object!({
        "metric": own.metric.name(),
        "scale": match own.scale {
            Scale::Ratio => "ratio",
            Scale::Difference => "difference",
        },
        "tolerance_share": own.tolerance.share(),
        "comparisons": own.comparisons,
        "flagged": own.flagged,
        "pairs": own.pairs,
        "pair_deviation": own.pair_deviation,
        "apart_deviation": own.apart_deviation,
        "within_share": own.within_share,
        "better_seconds": own.better_seconds,
        "visible": visible.collect::<Vec<_>>(),
    })
}

fn machine(own: &MachineMet) -> Value {
    let warnings = own.warnings.iter();
    let warnings = warnings.map(|(code, runs)| object!({ "code": code, "runs": runs }));
    let share = |share: Option<(f64, f64)>| {
        share.map(|(mean, most)| object!({ "mean_share": mean, "most_share": most }))
    };
    object!({
        "runs": own.runs,
        "pairs_discarded": own.pairs_discarded,
        "warnings": warnings.collect::<Vec<_>>(),
        "foreign_cpu": share(own.foreign),
        "steal": share(own.steal),
    })
}
