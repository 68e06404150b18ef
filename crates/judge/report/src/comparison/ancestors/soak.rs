//! The report of Vector's soak rig of 2022.

use stillwell_stats::soak::SoakSummary;

use super::table::{TextColumn, escaped, general, github_table, human_bytes, numbers, words};
use super::{SoakTable, folded, head};
use crate::comparison::ComparisonReport;

const CHANGES: [TextColumn; 16] = [
    words("experiment"),
    words("Δ mean"),
    numbers("Δ mean %"),
    words("confidence"),
    words("baseline mean"),
    words("baseline stdev"),
    words("baseline stderr"),
    numbers("baseline outlier %"),
    numbers("baseline CoV"),
    words("comparison mean"),
    words("comparison stdev"),
    words("comparison stderr"),
    numbers("comparison outlier %"),
    numbers("comparison CoV"),
    words("erratic"),
    words("declared erratic"),
];

/// Columns of the table that shows only changes.
const CHANGES_SHOWN: usize = 4;

const RUNS: [TextColumn; 11] = [
    words("(experiment, variant, run_id)"),
    numbers("total samples"),
    words("mean"),
    words("std"),
    words("min"),
    words("median"),
    words("p90"),
    words("p95"),
    words("p99"),
    words("max"),
    numbers("skewness"),
];

/// Returns the report on all experiments; at least one. The largest gain comes first.
pub(super) fn text(report: &ComparisonReport, soaks: &[&SoakTable]) -> String {
    let mut soaks = soaks.to_vec();
    let percent = |soak: &SoakTable| soak.soak.mean_difference_percent;
    soaks.sort_by(|left, right| percent(right).total_cmp(&percent(left)));
    let Some(first) = soaks.first() else {
        return String::new();
    };
    let confidence = format!("{:.2}%", (1.0 - first.p_value) * 100.0);
    let drift = general(first.drift_percent);
    let explanation = format!(
        "Each experiment runs both versions several times, with the same load. A run records the\n\
         bytes that are written in each second, divided by the CPUs of the target.\n\n\
         The first table, if there is one, lists the experiments whose mean changed by more than\n\
         ±{drift}% with a confidence of at least {confidence}, and those that are newly erratic.\n\
         Negative values mean that the baseline is faster. An experiment is erratic if its\n\
         coefficient of variation is above 0.1.\n"
    );
    let target = (first.target.as_deref(), first.cpus);
    let mut text = head("# Soak Test Results", report, target, &explanation);
    let condition = format!("with confidence ≥ {confidence} and absolute Δ mean >= ±{drift}%:");
    let shown = soaks
        .iter()
        .filter(|soak| soak.soak.interesting || soak.soak.newly_erratic);
    let shown: Vec<Vec<String>> = shown.map(|soak| soak.change().to_vec()).collect();
    if shown.is_empty() {
        text.push_str(&format!(
            "\nNo interesting changes in throughput {condition}\n\n"
        ));
    } else {
        let table = github_table(&CHANGES[..CHANGES_SHOWN], &shown);
        text.push_str(&format!("\nChanges in throughput {condition}\n\n{table}\n"));
    }
    let changes: Vec<_> = soaks.iter().map(|soak| soak.change_row()).collect();
    text.push_str(&folded(
        "Fine details of change detection per experiment.",
        &github_table(&CHANGES, &changes),
    ));
    let mut runs: Vec<_> = soaks.iter().flat_map(|soak| soak.runs()).collect();
    runs.sort_by(|(left, _), (right, _)| right.total_cmp(left));
    let runs: Vec<_> = runs.into_iter().map(|(_, row)| row).collect();
    text.push_str(&folded(
        "Fine details of each soak run.",
        &github_table(&RUNS, &runs),
    ));
    text
}

impl SoakTable {
    fn change(&self) -> [String; CHANGES_SHOWN] {
        let soak = &self.soak;
        [
            escaped(&self.experiment),
            human_bytes(soak.mean_difference),
            general(soak.mean_difference_percent),
            format!("{:.2}%", soak.confidence_percent),
        ]
    }

    fn change_row(&self) -> Vec<String> {
        let side = |summary: &SoakSummary| {
            [
                human_bytes(summary.mean),
                human_bytes(summary.standard_deviation),
                human_bytes(summary.standard_error),
                general(summary.outlier_percent),
                general(summary.coefficient_of_variation),
            ]
        };
        let mut row = self.change().to_vec();
        row.extend(side(&self.soak.baseline.pooled));
        row.extend(side(&self.soak.comparison.pooled));
        let flag = |flag: bool| if flag { "True" } else { "False" }.to_owned();
        row.extend([flag(self.soak.erratic), flag(self.declared_erratic)]);
        row
    }

    /// Returns the mean and the row of each run.
    fn runs(&self) -> Vec<(f64, Vec<String>)> {
        let sides = [
            ("baseline", &self.soak.baseline, &self.baseline_runs),
            ("comparison", &self.soak.comparison, &self.comparison_runs),
        ];
        let runs = sides.into_iter().flat_map(|(variant, side, names)| {
            let runs = side.runs.iter().zip(names);
            runs.filter_map(move |(run, name)| Some((variant, name, run.as_ref()?)))
        });
        let row = |(variant, name, run): (&str, &String, &SoakSummary)| {
            let (experiment, name) = (escaped(&self.experiment), escaped(name));
            let mut row = vec![
                format!("('{experiment}', '{variant}', '{name}')"),
                run.samples.to_string(),
            ];
            let figures = [
                run.mean,
                run.standard_deviation,
                run.min,
                run.median,
                run.p90,
                run.p95,
                run.p99,
                run.max,
            ];
            row.extend(figures.map(human_bytes));
            row.push(run.skewness.map_or_else(|| "nan".to_owned(), general));
            (run.mean, row)
        };
        runs.map(row).collect()
    }
}

#[cfg(test)]
mod tests;
