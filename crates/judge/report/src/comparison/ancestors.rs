//! The tables of the ancestors' methods, in their layout, for people who must
//! compare with old reports; and what is wrong with them.

use serde_json::{Value, json as object};
use stillwell_stats::smp::SmpComparison;
use stillwell_stats::soak::{SoakComparison, SoakSummary, SoakVariant};

use crate::document::escape;

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
    /// The goal's words and its figures.
    pub goals: Vec<(String, SmpComparison)>,
}

/// Weaknesses of both methods, and of each.
const SECONDS_ARE_NOT_RUNS: &str = "It treats every second of every run as an independent \
    experiment. Seconds of one run are correlated, so the figures are far too certain: of \
    comparisons of a program with itself, 70 to 90 of 100 come out significant at 5 %.";
const THRESHOLD: &str = "Only the threshold of 5 % limits those false alarms, so nothing \
    smaller is ever detected: half of all true changes of exactly 5 % pass, and nearly all of 3 %.";
const CONFIDENCE: &str = "\"Confidence\" is 1 − p, and not how sure the change is.";
const WRONG_WITH_SOAK: [&str; 3] = [
    "Central differences make neighbouring seconds overlap, which alone takes 5 % of false alarms \
     to 16 %; seconds in which nothing came through are dropped, so a stall costs nothing.",
    "Outliers are looked for in the counter, not in its rate, so there are none.",
    "Erratic goes by the spread of seconds, which says little about how well runs repeat.",
];
const WRONG_WITH_SMP: [&str; 2] = [
    "Its source is closed: this is Welch's interval over all seconds, which fits what its reports \
     print, and is not proven to be what it does.",
    "Where a rate is pinned, its seconds cancel each other out and the interval is too wide instead.",
];

impl AncestorTables {
    /// The tables as Markdown, which reads well as plain text.
    pub(super) fn text(&self) -> String {
        let (tables, wrong) = match self {
            Self::Soak2022(soak) => (soak.text(), WRONG_WITH_SOAK.as_slice()),
            Self::Smp2023(smp) => (smp.text(), WRONG_WITH_SMP.as_slice()),
        };
        let mut text = tables;
        text.push_str("\nWhat is wrong with this method:\n\n");
        let all = [SECONDS_ARE_NOT_RUNS, THRESHOLD, CONFIDENCE];
        for sentence in all.iter().chain(wrong) {
            text.push_str(&format!("- {sentence}\n"));
        }
        text
    }

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

impl SoakTable {
    fn text(&self) -> String {
        let soak = &self.soak;
        let confidence = (1.0 - self.p_value) * 100.0;
        let condition = format!(
            "with confidence ≥ {confidence:.2}% and absolute Δ mean >= ±{}%:",
            general(self.drift_percent)
        );
        let mut text = format!(
            "Soak method of 2022, per CPU of {}.\n\n",
            general(self.cpus)
        );
        let change = [
            escaped(&self.experiment),
            human_bytes(soak.mean_difference),
            general(soak.mean_difference_percent),
            format!("{:.2}%", soak.confidence_percent),
        ];
        if soak.interesting {
            text.push_str(&format!("Changes in throughput {condition}\n\n"));
            let heads = ["experiment", "Δ mean", "Δ mean %", "confidence"];
            text.push_str(&github_table(&heads, &[change.to_vec()]));
        } else {
            text.push_str(&format!("No changes in throughput {condition}\n"));
        }
        text.push_str("\nChange detection per experiment:\n\n");
        text.push_str(&self.change_table(change));
        text.push_str("\nEach run:\n\n");
        text.push_str(&self.run_table());
        text
    }

    fn change_table(&self, change: [String; 4]) -> String {
        let heads = [
            "experiment",
            "Δ mean",
            "Δ mean %",
            "confidence",
            "baseline mean",
            "baseline stdev",
            "baseline stderr",
            "baseline outlier %",
            "baseline CoV",
            "comparison mean",
            "comparison stdev",
            "comparison stderr",
            "comparison outlier %",
            "comparison CoV",
            "erratic",
            "declared erratic",
        ];
        let side = |summary: &SoakSummary| {
            [
                human_bytes(summary.mean),
                human_bytes(summary.standard_deviation),
                human_bytes(summary.standard_error),
                general(summary.outlier_percent),
                general(summary.coefficient_of_variation),
            ]
        };
        let mut row = change.to_vec();
        row.extend(side(&self.soak.baseline.pooled));
        row.extend(side(&self.soak.comparison.pooled));
        let flag = |flag: bool| if flag { "True" } else { "False" }.to_owned();
        row.extend([flag(self.soak.erratic), flag(self.declared_erratic)]);
        github_table(&heads, &[row])
    }

    fn run_table(&self) -> String {
        let heads = [
            "(experiment, variant, run_id)",
            "total samples",
            "mean",
            "std",
            "min",
            "median",
            "p90",
            "p95",
            "p99",
            "max",
            "skewness",
        ];
        let sides = [
            ("baseline", &self.soak.baseline, &self.baseline_runs),
            ("comparison", &self.soak.comparison, &self.comparison_runs),
        ];
        let runs = sides.into_iter().flat_map(|(variant, side, names)| {
            let runs = side.runs.iter().zip(names);
            runs.filter_map(move |(run, name)| Some((variant, name, run.as_ref()?)))
        });
        let mut runs: Vec<(&str, &String, &SoakSummary)> = runs.collect();
        runs.sort_by(|(_, _, left), (_, _, right)| right.mean.total_cmp(&left.mean));
        let rows = runs.into_iter().map(|(variant, name, run)| {
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
            row
        });
        github_table(&heads, &rows.collect::<Vec<_>>())
    }
}

impl SmpTable {
    fn text(&self) -> String {
        let interesting = self.goals.iter().filter(|(_, smp)| smp.flagged);
        let word = if interesting.count() == 0 {
            "No changes"
        } else {
            "Changes"
        };
        let mut text = format!(
            "Regression Detector method of 2023.\n\n{word} in experiment optimization \
             goals with confidence ≥ 90.00% and |Δ mean %| ≥ 5.00%.\n\n"
        );
        let mut goals: Vec<&(String, SmpComparison)> = self.goals.iter().collect();
        let percent = |comparison: &SmpComparison| comparison.mean_difference_percent.value;
        goals.sort_by(|(_, left), (_, right)| percent(right).total_cmp(&percent(left)));
        let rows = goals.into_iter().map(|(goal, smp)| {
            let percent = smp.mean_difference_percent;
            vec![
                escaped(&self.experiment),
                escaped(goal),
                format!("{:+.2}", percent.value),
                format!("[{:+.2}, {:+.2}]", percent.lower, percent.upper),
                format!("{:.2}%", smp.confidence_percent),
            ]
        });
        let heads = [
            "experiment",
            "goal",
            "Δ mean %",
            "Δ mean % CI",
            "confidence",
        ];
        text.push_str(&github_table(&heads, &rows.collect::<Vec<_>>()));
        text
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

/// Bytes as the soak rig wrote them: by 1024, rounded to two decimals, without
/// zeros at the end.
fn human_bytes(value: f64) -> String {
    let mut scaled = value;
    let mut unit = "B";
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        if scaled.abs() < 1024.0 {
            break;
        }
        scaled /= 1024.0;
        unit = next;
    }
    format!("{}{unit}", (scaled * 100.0).round_ties_even() / 100.0)
}

/// Six digits that matter, as C's `%g` has them.
fn general(value: f64) -> String {
    const DIGITS: i32 = 6;
    if !value.is_finite() || value.abs() < f64::MIN_POSITIVE {
        return format!("{value}");
    }
    let scientific = format!("{value:.5e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..DIGITS).contains(&exponent) {
        let decimals = usize::try_from(DIGITS - 1 - exponent).unwrap_or(0);
        trim(&format!("{value:.decimals$}"))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", trim(mantissa), exponent.abs())
    }
}

/// Escapes a name for a cell of a Markdown table that people also read as plain text: underscores, which
/// are common in names and cannot change the table, stay as they are.
fn escaped(name: &str) -> String {
    escape::markdown(name, None, false).replace("\\_", "_")
}

/// A table as both ancestors posted it: padded cells, so it also reads as
/// plain text.
fn github_table(heads: &[&str], rows: &[Vec<String>]) -> String {
    let width = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at));
        let cells = cells.map(|cell| cell.chars().count());
        cells.chain([heads[at].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let line = |cells: &[String]| {
        let cells = cells.iter().zip(&widths);
        let cells = cells.map(|(cell, width)| format!(" {cell:<width$} |"));
        format!("|{}\n", cells.collect::<String>())
    };
    let heads: Vec<String> = heads.iter().map(|head| (*head).to_owned()).collect();
    let rule: String = widths
        .iter()
        .map(|width| format!("{}|", "-".repeat(width + 2)))
        .collect();
    let mut text = line(&heads);
    text.push_str(&format!("|{rule}\n"));
    for row in rows {
        text.push_str(&line(row));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_numbers_are_written_as_the_ancestors_did() {
        for (value, text) in [
            (0.0, "0B"),
            (1023.0, "1023B"),
            (-28_538.88, "-27.87KiB"),
            (8_283_750.4, "7.9MiB"),
            (3.5e12, "3.18TiB"),
        ] {
            assert_eq!(human_bytes(value), text);
        }
        for (value, text) in [
            (0.0, "0"),
            (-0.35, "-0.35"),
            (0.004_168_049, "0.00416805"),
            (2.225_764, "2.22576"),
            (-0.042_254_5, "-0.0422545"),
            (1_234_567.0, "1.23457e+06"),
            (0.000_012_3, "1.23e-05"),
            (100.0, "100"),
        ] {
            assert_eq!(general(value), text);
        }
    }

    #[test]
    fn names_cannot_add_cells_links_or_markup() {
        let name = "a|b\n<img src=x> [c](d) *e*";
        let table = github_table(&["experiment"], &[vec![escaped(name)]]);
        let row = table.lines().last().unwrap_or_default();
        assert_eq!(table.lines().count(), 3, "{table}");
        for markup in ["a|b", "<img", "[c](d)", " *e*"] {
            assert!(!row.contains(markup), "{row}");
        }
    }

    #[test]
    fn tables_are_padded() {
        let table = github_table(
            &["a", "Δ mean"],
            &[vec![escaped("long|er"), "1".to_owned()]],
        );
        let lines = "| a        | Δ mean |\n|----------|--------|\n| long\\|er | 1      |\n";
        assert_eq!(table, lines);
    }
}
