//! A comparison for programs.

use serde_json::{Value, json as object};
use stillwell_plan::goal::{Direction, Scale};
use stillwell_verdict::Verdict;

use super::{ComparedRuns, ComparisonGroup, ComparisonReport, ComparisonRow, Finding};

/// Names the shape of a comparison's JSON; keys are added within a version and
/// never removed.
pub const COMPARISON_SCHEMA: &str = "stillwell/comparison/v1";

/// Base units, changes as shares of one (comparison / baseline − 1, or the
/// difference where the scale says so); what is not there is `null`.
pub(super) fn json(report: &ComparisonReport) -> String {
    let value = object!({
        "schema": COMPARISON_SCHEMA,
        "baseline": report.baseline,
        "comparison": report.comparison,
        "experiments": report.groups.iter().map(group).collect::<Vec<_>>(),
        "remarks": report.remarks,
        "command": report.command,
        "version": report.version,
    });
    // `#` formats indented text; printing a value cannot fail.
    format!("{value:#}\n")
}

fn group(group: &ComparisonGroup) -> Value {
    object!({
        "name": group.name,
        "metrics": group.rows.iter().map(row).collect::<Vec<_>>(),
        "method": group.ancestors.as_ref().map(super::AncestorTables::json),
        "remarks": group.remarks,
    })
}

fn row(row: &ComparisonRow) -> Value {
    let better = row.direction.map(|direction| match direction {
        Direction::HigherIsBetter => "higher",
        Direction::LowerIsBetter => "lower",
    });
    let scale = match row.scale {
        Scale::Ratio => "ratio",
        Scale::Difference => "difference",
    };
    object!({
        "metric": row.metric,
        "unit": row.unit.symbol(),
        "per_second": row.per_second,
        "primary": row.primary,
        "better": better,
        "tolerance": row.tolerance.share(),
        "scale": scale,
        "verdict": row.verdict.map(Verdict::name),
        "reason": row.reason,
        "baseline": side(&row.baseline),
        "comparison": side(&row.comparison),
        "finding": finding(&row.finding),
        "remarks": row.remarks,
    })
}

fn side(runs: &ComparedRuns) -> Value {
    let left_out = runs.left_out.iter();
    let left_out = left_out.map(|(run, reason)| object!({ "run": run, "reason": reason }));
    object!({
        "mean": runs.mean(),
        "values": runs.values,
        "left_out": left_out.collect::<Vec<_>>(),
    })
}

/// Returns the p value; `None` where it is zero: numbers that do not vary give no estimate of the noise.
fn probability(p_value: f64) -> Option<f64> {
    (p_value > 0.0).then_some(p_value)
}

fn finding(finding: &Finding) -> Value {
    match *finding {
        Finding::Nothing => Value::Null,
        Finding::Plain(change) => object!({ "design": "single", "change": change }),
        Finding::Unpaired {
            change,
            t,
            degrees,
            p_value,
            mann_whitney_p,
        } => object!({
            "design": "unpaired",
            "change": change.estimate,
            "interval": [change.lower, change.upper],
            "t": t,
            "degrees_of_freedom": degrees,
            "p_value": probability(p_value),
            "mann_whitney_p": mann_whitney_p,
        }),
        Finding::Paired {
            change,
            pairs,
            p_value,
            wilcoxon_p,
            hodges_lehmann,
        } => object!({
            "design": "paired",
            "change": change.estimate,
            "interval": [change.lower, change.upper],
            "pairs": pairs,
            "p_value": probability(p_value),
            "wilcoxon_p": wilcoxon_p,
            "hodges_lehmann": hodges_lehmann,
        }),
    }
}

#[cfg(test)]
mod tests {
    use stillwell_verdict::Change;

    use super::*;

    /// F11: runs that do not vary had a p of 0.
    #[test]
    fn f11_runs_that_do_not_vary_have_no_p_value() {
        let change = Change {
            estimate: 0.1,
            lower: 0.1,
            upper: 0.1,
        };
        for p_value in [0.0, 0.04] {
            let paired = Finding::Paired {
                change,
                pairs: 4,
                p_value,
                wilcoxon_p: None,
                hodges_lehmann: None,
            };
            let unpaired = Finding::Unpaired {
                change,
                t: f64::INFINITY,
                degrees: 6.0,
                p_value,
                mann_whitney_p: None,
            };
            for shown in [paired, unpaired] {
                let expected = (p_value > 0.0).then_some(p_value);
                assert_eq!(finding(&shown)["p_value"].as_f64(), expected);
            }
        }
    }
}
