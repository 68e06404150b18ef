//! A history for programs.

use serde_json::{Value, json as object};
use stillwell_verdict::history::{Basis, Lead, Method, Suspect, Trend, TrendPoint};

use super::{HistoryReport, document};

/// Names the shape of the JSON of a history; keys are added within a version and
/// never removed.
pub const HISTORY_SCHEMA: &str = "stillwell/history/v1";

/// Numbers as numbers, in base units, changes as shares of one; what is not
/// known, and what is not finite, is `null`.
pub(super) fn json(report: &HistoryReport) -> String {
    let method = match report.method {
        Method::Own { alarm_rate } => object!({ "name": "own", "alarm_rate": alarm_rate }),
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
    // `#` asks for indented text; printing a value cannot fail.
    format!("{value:#}\n")
}

fn trend(own: &Trend) -> Value {
    let leads = own.leads.iter().map(|lead| change(own, lead));
    object!({
        "experiment": own.experiment,
        "comparison": own.comparison,
        "metric": own.metric.name(),
        "better": own.direction.better(),
        "tolerance_share": own.tolerance.share(),
        "gates": own.gates,
        "basis": match own.basis {
            Basis::Anchor => "anchor",
            Basis::Level => "level",
        },
        "latest": own.latest.name(),
        "alarm": own.alarm().is_some(),
        "p_value": own.p_value,
        "stretches": own.stretches,
        "points_needed": own.points_needed,
        "points": own.points.iter().map(point).collect::<Vec<_>>(),
        "changes": leads.collect::<Vec<_>>(),
    })
}

fn point(own: &TrendPoint) -> Value {
    let (origin, measured) = (&own.origin, &own.measured);
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
        "value": own.value,
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
        "standard_deviation_before": lead.deviation_before,
        "standard_deviation_after": lead.deviation_after,
        "p_value": lead.p_value,
        "worse": lead.worse,
        "beyond_tolerance": lead.matters,
        "suspects": suspects.collect::<Vec<_>>(),
        "confirm_with": document::bisect_command(trend, lead).filter(|_| lead.worse),
    })
}
