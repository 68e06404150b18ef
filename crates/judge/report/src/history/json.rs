//! A history for programs.

use serde_json::{Value, json as object};
use stillwell_plan::goal::Scale;
use stillwell_verdict::history::{Basis, Lead, Method, Suspect, Trend, TrendPoint};

use super::{HistoryReport, document};

/// Names the shape of the JSON of a history; keys are added within a version and
/// never removed.
pub const HISTORY_SCHEMA: &str = "stillwell/history/v1";

/// Numbers as numbers, in base units, changes as shares of one; what is not
/// known, and what is not finite, is `null`. `value`, `before`, `after`, `delta` and the standard deviations are
/// natural logarithms if `scale` is `ratio`; `level` and its like are not.
pub(super) fn json(report: &HistoryReport) -> String {
    let method = match report.method {
        Method::Stillwell { alarm_rate } => object!({ "name": "own", "alarm_rate": alarm_rate }),
        Method::Otava(options) => object!({
            "name": "otava",
            "p_value": options.p_value,
            "window": options.window,
        }),
    };
    let skipped = report.skipped.iter();
    let skipped = skipped.map(|(folder, reason)| object!({ "results": folder, "reason": reason }));
    let value = object!({
        "schema": HISTORY_SCHEMA,
        "method": method,
        "alarms": report.alarms(),
        "trends": report.trends.iter().map(trend).collect::<Vec<_>>(),
        "skipped": skipped.collect::<Vec<_>>(),
        "command": report.command,
        "version": report.version,
    });
    // `#` formats indented text; printing a value cannot fail.
    format!("{value:#}\n")
}

fn trend(entry: &Trend) -> Value {
    let leads = entry.leads.iter().map(|lead| change(entry, lead));
    object!({
        "experiment": entry.experiment,
        "comparison": entry.comparison,
        "metric": entry.metric.name(),
        "better": entry.direction.better(),
        "scale": match entry.scale {
            Scale::Ratio => "ratio",
            Scale::Difference => "difference",
        },
        "tolerance_share": entry.tolerance.share(),
        "gates": entry.gates,
        "basis": match entry.basis {
            Basis::Anchor => "anchor",
            Basis::Level => "level",
        },
        "latest": entry.latest.name(),
        "alarm": entry.alarm().is_some(),
        "p_value": entry.p_value,
        "stretches": entry.stretches,
        "points_needed": entry.points_needed,
        "points": entry.points.iter().map(|item| point(entry, item)).collect::<Vec<_>>(),
        "changes": leads.collect::<Vec<_>>(),
    })
}

fn point(trend: &Trend, entry: &TrendPoint) -> Value {
    let (origin, measured) = (&entry.origin, &entry.measured);
    object!({
        "time_millis": origin.time_millis,
        "run_id": origin.run,
        "commit": origin.commit,
        "version": origin.version,
        "machine": origin.machine,
        "anchor": origin.anchor,
        "pairs": measured.pairs,
        "baseline_mean": measured.baseline_mean,
        "comparison_mean": measured.comparison_mean,
        "delta": measured.delta,
        "standard_error": measured.standard_error(),
        "value": entry.value,
        "level": document::level_number(trend, entry.value),
    })
}

fn change(trend: &Trend, lead: &Lead) -> Value {
    let [before, here] = [lead.index - 1, lead.index].map(|place| &trend.points[place].origin);
    let suspects = lead.suspects.iter().map(|suspect| match suspect {
        Suspect::OtherMachine => "other_machine",
        Suspect::SameProgram => "same_program",
    });
    object!({
        "index": lead.index,
        "time_millis": here.time_millis,
        "run_id": here.run,
        "commit_before": before.commit,
        "commit": here.commit,
        "change_share": lead.change,
        "before": lead.before,
        "after": lead.after,
        "before_level": document::level_number(trend, lead.before),
        "after_level": document::level_number(trend, lead.after),
        "standard_deviation_before": lead.deviation_before,
        "standard_deviation_after": lead.deviation_after,
        "p_value": lead.p_value,
        "worse": lead.worse,
        "beyond_tolerance": lead.matters,
        "suspects": suspects.collect::<Vec<_>>(),
        "confirm_with": document::bisect_command(trend, lead).filter(|_| lead.worse),
    })
}
