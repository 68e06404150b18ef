//! The tables of the ancestors' methods, in their layout, for people who must
//! compare with old reports; and what is wrong with them.

mod smp;
mod soak;
mod table;

use serde_json::{Value, json as object};
use stillwell_stats::smp::SmpComparison;
use stillwell_stats::soak::{SoakComparison, SoakSummary, SoakVariant};

use super::ComparisonReport;
use table::{escaped, general};

/// Verdict of a predecessor's method.
#[derive(Clone, Debug, PartialEq)]
pub enum AncestorTables {
    /// Vector's soak rig of 2022.
    Soak2022(Box<SoakTable>),
    /// The Regression Detector of 2023.
    Smp2023(SmpTable),
}

/// One soak.
#[derive(Clone, Debug, PartialEq)]
pub struct SoakTable {
    /// The experiment's name in its tables.
    pub experiment: String,
    /// The figures.
    pub soak: SoakComparison,
    /// True if it was declared erratic.
    pub declared_erratic: bool,
    /// Below which p value a change was shown.
    pub p_value: f64,
    /// Beyond which change in percent.
    pub drift_percent: f64,
    /// The target's name in the head.
    pub target: Option<String>,
    /// CPUs that the figures are divided by.
    pub cpus: f64,
    /// The names of the baseline's runs, in the order of the figures.
    pub baseline_runs: Vec<String>,
    /// The names of the comparison's runs likewise.
    pub comparison_runs: Vec<String>,
}

/// One experiment, by its goals.
#[derive(Clone, Debug, PartialEq)]
pub struct SmpTable {
    /// The experiment's name in its table.
    pub experiment: String,
    /// The target's name in the head.
    pub target: Option<String>,
    /// ID of the job in the head.
    pub run_id: Option<String>,
    /// CPUs of the target.
    pub cpus: f64,
    /// The goal's words and its figures.
    pub goals: Vec<(String, SmpComparison)>,
}

/// Weaknesses of both methods, and of each.
const SECONDS_ARE_NOT_RUNS: &str = "It treats every second of every run as an independent \
    experiment. Seconds of one run are correlated, so the figures are far too certain: of \
    comparisons of a program with itself, 70 to 90 of 100 come out significant at 5 %.";
const THRESHOLD: &str = "Only the threshold of 5 % limits those false alarms, so nothing \
    smaller is ever detected: half of all true changes of exactly 5 % pass, and nearly all of 3 %.";
const CONFIDENCE: &str =
    "\"Confidence\" is 1 − p, which is not the probability that there is a change.";
const WRONG_WITH_SOAK: [&str; 3] = [
    "Central differences make neighbouring seconds overlap, which alone takes 5 % of false alarms \
     to 16 %; seconds in which nothing came through are dropped, so a stall costs nothing.",
    "Outliers are searched in the counter, not in its rate, so none are found.",
    "\"Erratic\" depends on the spread of seconds, which says little about how well runs repeat.",
];
const WRONG_WITH_SMP: [&str; 2] = [
    "Its source is closed: this is Welch's interval over all seconds, which agrees with its published \
     reports, but may not be its exact method.",
    "If the rate is fixed by the load, a slow second is followed by a fast one, and the interval is too wide.",
];

/// Returns the report of a predecessor's method on all experiments as Markdown, which reads well
/// as plain text; `None` if none was requested.
pub(super) fn text(report: &ComparisonReport) -> Option<String> {
    let tables = report.groups.iter();
    let tables: Vec<_> = tables
        .filter_map(|group| group.ancestors.as_ref())
        .collect();
    let soaks = tables.iter().filter_map(|tables| match tables {
        AncestorTables::Soak2022(soak) => Some(&**soak),
        AncestorTables::Smp2023(_) => None,
    });
    let smps = tables.iter().filter_map(|tables| match tables {
        AncestorTables::Smp2023(smp) => Some(smp),
        AncestorTables::Soak2022(_) => None,
    });
    let (soaks, smps): (Vec<_>, Vec<_>) = (soaks.collect(), smps.collect());
    let (mut text, wrong) = match (soaks.as_slice(), smps.as_slice()) {
        ([], []) => return None,
        ([], smps) => (smp::text(report, smps), WRONG_WITH_SMP.as_slice()),
        (soaks, _) => (soak::text(report, soaks), WRONG_WITH_SOAK.as_slice()),
    };
    text.push_str("\nWhat is wrong with this method:\n\n");
    let all = [SECONDS_ARE_NOT_RUNS, THRESHOLD, CONFIDENCE];
    for sentence in all.iter().chain(wrong) {
        text.push_str(&format!("- {sentence}\n"));
    }
    Some(text)
}

/// Returns the first lines of both reports.
fn head(
    title: &str,
    report: &ComparisonReport,
    (target, cpus): (Option<&str>, f64),
    explanation: &str,
) -> String {
    let (baseline, comparison) = (&report.baseline, &report.comparison);
    let lines = [
        title.to_owned(),
        format!("Baseline: {}", escaped(baseline)),
        format!("Comparison: {}", escaped(comparison)),
        target.map_or_else(
            || format!("Total CPUs: {}", general(cpus)),
            |target| format!("Total {} CPUs: {}", escaped(target), general(cpus)),
        ),
    ];
    format!(
        "{}\n\n{}",
        lines.join("\n"),
        folded("Explanation", explanation)
    )
}

/// Returns `content` under a line that opens it.
fn folded(summary: &str, content: &str) -> String {
    format!("<details>\n<summary>{summary}</summary>\n\n{content}\n</details>\n")
}

impl AncestorTables {
    pub(super) fn json(&self) -> Value {
        match self {
            Self::Soak2022(entry) => {
                let soak = &entry.soak;
                object!({
                    "name": "soak-2022",
                    "cpus": entry.cpus,
                    "mean_difference": soak.mean_difference,
                    "mean_difference_percent": soak.mean_difference_percent,
                    "t": soak.t,
                    "p_value": soak.p_value,
                    "confidence_percent": soak.confidence_percent,
                    "erratic": soak.erratic,
                    "newly_erratic": soak.newly_erratic,
                    "interesting": soak.interesting,
                    "regression": soak.regression,
                    "baseline": soak_side(&soak.baseline, &entry.baseline_runs),
                    "comparison": soak_side(&soak.comparison, &entry.comparison_runs),
                })
            }
            Self::Smp2023(entry) => {
                let goals = entry.goals.iter().map(|(goal, smp)| {
                    let percent = smp.mean_difference_percent;
                    object!({
                        "goal": goal,
                        "mean_difference_percent": percent.value,
                        "interval_percent": [percent.lower, percent.upper],
                        "confidence_percent": smp.confidence_percent,
                        "p_value": smp.p_value,
                        "erratic": smp.erratic,
                        "newly_erratic": smp.newly_erratic,
                        "flagged": smp.flagged,
                        "baseline_samples": smp.baseline_samples,
                        "comparison_samples": smp.comparison_samples,
                    })
                });
                object!({ "name": "smp-2023", "goals": goals.collect::<Vec<_>>() })
            }
        }
    }
}

fn soak_side(side: &SoakVariant, names: &[String]) -> Value {
    let runs = side.runs.iter().zip(names);
    let runs =
        runs.map(|(run, name)| object!({ "run_id": name, "seconds": run.as_ref().map(summary) }));
    object!({ "pooled": summary(&side.pooled), "runs": runs.collect::<Vec<_>>() })
}

fn summary(entry: &SoakSummary) -> Value {
    object!({
        "samples": entry.samples,
        "mean": entry.mean,
        "standard_deviation": entry.standard_deviation,
        "standard_error": entry.standard_error,
        "min": entry.min,
        "median": entry.median,
        "p90": entry.p90,
        "p95": entry.p95,
        "p99": entry.p99,
        "max": entry.max,
        "skewness": entry.skewness,
        "coefficient_of_variation": entry.coefficient_of_variation,
        "outlier_percent": entry.outlier_percent,
    })
}
