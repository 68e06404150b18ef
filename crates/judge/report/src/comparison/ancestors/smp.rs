//! The report of the Regression Detector of 2023.

use stillwell_stats::smp::SmpComparison;

use super::table::{TextColumn, escaped, github_table, words};
use super::{SmpTable, folded, head};
use crate::comparison::ComparisonReport;

const CHANGES: [TextColumn; 5] = [
    words("experiment"),
    words("goal"),
    words("Δ mean %"),
    words("Δ mean % CI"),
    words("confidence"),
];

const TITLE: &str = "# Regression Detector Results";

const EXPLANATION: &str = "\
Each experiment runs both versions several times, with the same load, and has a goal. The change of
the goal's mean, in percent of the baseline, is \"Δ mean %\", and \"Δ mean % CI\" is its 90.00%
confidence interval.

A change is a regression if |Δ mean %| ≥ 5.00% and the interval does not contain zero. The first
table, if there is one, lists these changes and the experiments that are newly erratic. Negative
values mean that the baseline is faster. An experiment is erratic if its coefficient of variation is
above 0.1.
";

/// Returns the report on all experiments; at least one. The largest gain comes first.
pub(super) fn text(report: &ComparisonReport, smps: &[&SmpTable]) -> String {
    let goals = smps.iter().flat_map(|smp| {
        let goals = smp.goals.iter();
        goals.map(|(goal, compared)| (smp.experiment.as_str(), goal.as_str(), compared))
    });
    let mut goals: Vec<_> = goals.collect();
    let percent = |compared: &SmpComparison| compared.mean_difference_percent.value;
    goals.sort_by(|(_, _, left), (_, _, right)| percent(right).total_cmp(&percent(left)));
    let target = smps
        .first()
        .map_or((None, 1.0), |smp| (smp.target.as_deref(), smp.cpus));
    let run_id = smps.first().and_then(|smp| smp.run_id.as_deref());
    let title = match run_id {
        None => TITLE.to_owned(),
        Some(id) => format!("{TITLE}\nRun ID: {}", escaped(id)),
    };
    let mut text = head(&title, report, target, EXPLANATION);
    let condition =
        "in experiment optimization goals with confidence ≥ 90.00% and |Δ mean %| ≥ 5.00%";
    let shown = goals
        .iter()
        .filter(|(_, _, compared)| compared.flagged || compared.newly_erratic);
    let shown: Vec<_> = shown.copied().map(row).collect();
    if shown.is_empty() {
        text.push_str(&format!("\nNo interesting changes {condition}.\n\n"));
    } else {
        let table = github_table(&CHANGES, &shown);
        text.push_str(&format!("\nChanges {condition}:\n\n{table}\n"));
    }
    let rows: Vec<_> = goals.into_iter().map(row).collect();
    text.push_str(&folded(
        "Fine details of change detection per experiment.",
        &github_table(&CHANGES, &rows),
    ));
    text
}

fn row((experiment, goal, compared): (&str, &str, &SmpComparison)) -> Vec<String> {
    let percent = compared.mean_difference_percent;
    vec![
        escaped(experiment),
        escaped(goal),
        format!("{:+.2}", percent.value),
        format!("[{:+.2}, {:+.2}]", percent.lower, percent.upper),
        format!("{:.2}%", compared.confidence_percent),
    ]
}

#[cfg(test)]
mod tests;
