//! The figures and the layout are those of the page that Vector's soak rig is documented with.

use stillwell_stats::soak::{SoakComparison, SoakVariant};

use super::*;
use crate::comparison::{AncestorTables, ComparisonGroup};

const MIB: f64 = 1_048_576.0;
const KIB: f64 = 1024.0;

/// One run: its seconds, then mean, deviation (in KiB), min, median, p90, p95, p99 and max in MiB,
/// and the skewness.
type Figures = (usize, [f64; 8], f64);

const BASELINE: [(&str, Figures); 3] = [
    (
        "68b6f1f3-c58e-4e57-9aba-371e500f3417",
        (
            116,
            [7.85, 32.71, 7.75, 7.85, 7.89, 7.9, 7.92, 7.92],
            -0.221_155,
        ),
    ),
    (
        "8de38a1f-f99d-4cb5-9095-ecf80020ae3c",
        (
            115,
            [7.88, 31.13, 7.79, 7.88, 7.92, 7.93, 7.95, 7.96],
            -0.042_254_5,
        ),
    ),
    (
        "bfe5870b-b43d-418a-83f8-0edc9481af99",
        (
            115,
            [7.861, 31.02, 7.79, 7.86, 7.9, 7.92, 7.93, 7.93],
            0.117_951,
        ),
    ),
];

const COMPARISON: [(&str, Figures); 3] = [
    (
        "b88e74db-4c6d-423b-9743-b247b8d36404",
        (
            115,
            [7.86, 50.02, 7.74, 7.85, 7.9, 7.92, 8.03, 8.14],
            2.225_76,
        ),
    ),
    (
        "5936ea23-355d-4a90-9401-95601ec76607",
        (
            115,
            [7.84, 34.27, 7.75, 7.84, 7.89, 7.89, 7.9, 7.92],
            -0.015_083_5,
        ),
    ),
    (
        "4db00d45-b492-484a-860a-6a23326d99b4",
        (
            115,
            [7.82, 36.4, 7.74, 7.82, 7.86, 7.88, 7.94, 7.95],
            0.598_099,
        ),
    ),
];

fn summary((samples, figures, skewness): Figures) -> SoakSummary {
    let [mean, deviation, min, median, p90, p95, p99, max] = figures;
    SoakSummary {
        samples,
        mean: mean * MIB,
        standard_deviation: deviation * KIB,
        standard_error: 0.0,
        min: min * MIB,
        median: median * MIB,
        p90: p90 * MIB,
        p95: p95 * MIB,
        p99: p99 * MIB,
        max: max * MIB,
        skewness: Some(skewness),
        coefficient_of_variation: 0.0,
        outlier_percent: 0.0,
    }
}

fn variant(runs: &[(&str, Figures)], [mean, deviation, error, variation]: [f64; 4]) -> SoakVariant {
    let pooled = summary((345, [mean, deviation, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], 0.0));
    SoakVariant {
        pooled: SoakSummary {
            standard_error: error * KIB,
            coefficient_of_variation: variation,
            ..pooled
        },
        runs: runs
            .iter()
            .map(|(_, figures)| Some(summary(*figures)))
            .collect(),
    }
}

fn soak(percent: f64, newly_erratic: bool, name: &str) -> SoakTable {
    let names =
        |runs: &[(&str, Figures)]| runs.iter().map(|(name, _)| (*name).to_owned()).collect();
    SoakTable {
        experiment: name.to_owned(),
        soak: SoakComparison {
            baseline: variant(&BASELINE, [7.87, 33.62, 1.81, 0.004_168_05]),
            comparison: variant(&COMPARISON, [7.84, 43.44, 2.34, 0.005_405_07]),
            mean_difference: -27.87 * KIB,
            mean_difference_percent: percent,
            t: 9.0,
            p_value: 1e-12,
            confidence_percent: 100.0,
            erratic: newly_erratic,
            newly_erratic,
            interesting: percent.abs() > 5.0,
            regression: percent < -5.0,
        },
        declared_erratic: false,
        p_value: 0.05,
        drift_percent: 5.0,
        target: Some("Vector".to_owned()),
        cpus: 4.0,
        baseline_runs: names(&BASELINE),
        comparison_runs: names(&COMPARISON),
    }
}

fn report(soaks: Vec<SoakTable>) -> String {
    let groups = soaks.into_iter().map(|soak| ComparisonGroup {
        name: Some(soak.experiment.clone()),
        rows: Vec::new(),
        ancestors: Some(AncestorTables::Soak2022(Box::new(soak))),
        remarks: Vec::new(),
        curves: Vec::new(),
    });
    let report = ComparisonReport {
        baseline: "27381ec978e00553746372679c1692682328d4ec".to_owned(),
        comparison: "2c9212e45758611f59e0057c93cb7e1bbca47361".to_owned(),
        groups: groups.collect(),
        remarks: Vec::new(),
        command: String::new(),
        version: String::new(),
    };
    super::super::text(&report).unwrap()
}

/// Without the padding of cells, which that page has lost.
fn unpadded(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

// compat: SMP and soaks | report of 2022 (compare --method soak-2022): figures, columns, order | works
// compat: SMP and soaks | report of 2022: head and explanation | differs | worded differently
#[test]
fn head_sentence_and_tables_are_those_of_2022() {
    let name = "datadog_agent_remap_datadog_logs";
    let text = report(vec![soak(-0.35, false, name)]);
    let lines: Vec<String> = text.lines().map(unpadded).collect();
    let run = |variant: &str, id: &str, rest: &str| {
        format!("| ('{name}', '{variant}', '{id}') | {rest} |")
    };
    for line in [
        "# Soak Test Results",
        "Baseline: 27381ec978e00553746372679c1692682328d4ec",
        "Comparison: 2c9212e45758611f59e0057c93cb7e1bbca47361",
        "Total Vector CPUs: 4",
        "<summary>Explanation</summary>",
        "No interesting changes in throughput with confidence ≥ 95.00% and absolute Δ mean >= ±5%:",
        "<summary>Fine details of change detection per experiment.</summary>",
        "| experiment | Δ mean | Δ mean % | confidence | baseline mean | baseline stdev | baseline stderr | \
         baseline outlier % | baseline CoV | comparison mean | comparison stdev | comparison stderr | \
         comparison outlier % | comparison CoV | erratic | declared erratic |",
        "|----------------------------------|-----------|------------|--------------|-----------------|\
         ------------------|-------------------|----------------------|----------------|-------------------|\
         --------------------|---------------------|------------------------|------------------|-----------|\
         --------------------|",
        "| datadog_agent_remap_datadog_logs | -27.87KiB | -0.35 | 100.00% | 7.87MiB | 33.62KiB | 1.81KiB | 0 | \
         0.00416805 | 7.84MiB | 43.44KiB | 2.34KiB | 0 | 0.00540507 | False | False |",
        "<summary>Fine details of each soak run.</summary>",
        "| (experiment, variant, run_id) | total samples | mean | std | min | median | p90 | p95 | p99 | max | \
         skewness |",
        &format!(
            "|{}|-----------------|---------|----------|---------|----------|---------|---------|---------|\
             ---------|------------|",
            "-".repeat(92)
        ),
    ] {
        assert!(lines.iter().any(|shown| shown == line), "{line}\n{text}");
    }
    let first = run(
        "baseline",
        BASELINE[1].0,
        "115 | 7.88MiB | 31.13KiB | 7.79MiB | 7.88MiB | 7.92MiB | 7.93MiB | 7.95MiB | 7.96MiB | -0.0422545",
    );
    let last = run(
        "comparison",
        COMPARISON[2].0,
        "115 | 7.82MiB | 36.4KiB | 7.74MiB | 7.82MiB | 7.86MiB | 7.88MiB | 7.94MiB | 7.95MiB | 0.598099",
    );
    let runs: Vec<&String> = lines
        .iter()
        .filter(|line| line.starts_with("| ('"))
        .collect();
    assert_eq!(runs.len(), 6);
    assert_eq!((runs[0], runs[5]), (&first, &last));
}

#[test]
fn one_table_holds_all_experiments_and_the_first_those_that_changed_or_are_newly_erratic() {
    let text = report(vec![
        soak(-9.5, false, "slower"),
        soak(0.5, true, "unsteady"),
        soak(0.25, false, "equal"),
        soak(7.0, false, "faster"),
    ]);
    let rows = |part: &str| -> Vec<String> {
        let lines = part.lines().filter(|line| line.starts_with("| "));
        let names = lines.filter_map(|line| line.split('|').nth(1));
        names.skip(1).map(|name| name.trim().to_owned()).collect()
    };
    let (first, rest) = text.split_once("<summary>Fine details of change").unwrap();
    assert!(
        first.contains("\nChanges in throughput with confidence"),
        "{text}"
    );
    assert_eq!(rows(first), ["faster", "unsteady", "slower"]);
    let (all, _) = rest.split_once("<summary>Fine details of each").unwrap();
    assert_eq!(rows(all), ["faster", "unsteady", "equal", "slower"]);
}
