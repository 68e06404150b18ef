//! The figures and the layout are those that the Regression Detector posted in October 2023.

use stillwell_stats::Estimate;

use super::*;
use crate::comparison::{AncestorTables, ComparisonGroup};

fn compared(percent: [f64; 3], confidence: f64, flags: (bool, bool)) -> SmpComparison {
    let [value, lower, upper] = percent;
    let percent = Estimate {
        value,
        lower,
        upper,
    };
    SmpComparison {
        baseline_mean: 100.0,
        comparison_mean: 100.0 + value,
        baseline_samples: 600,
        comparison_samples: 600,
        mean_difference: percent,
        mean_difference_percent: percent,
        p_value: 1.0 - confidence / 100.0,
        confidence_percent: confidence,
        erratic: flags.1,
        newly_erratic: flags.1,
        flagged: flags.0,
    }
}

fn report(all: Vec<(&str, &str, SmpComparison)>) -> String {
    let groups = all
        .into_iter()
        .map(|(name, goal, compared)| ComparisonGroup {
            name: Some(name.to_owned()),
            rows: Vec::new(),
            ancestors: Some(AncestorTables::Smp2023(SmpTable {
                experiment: name.to_owned(),
                target: Some("datadog-agent".to_owned()),
                run_id: Some("277ece38-0649-4a73-93cc-47bdf7a276c4".to_owned()),
                cpus: 7.0,
                goals: vec![(goal.to_owned(), compared)],
            })),
            remarks: Vec::new(),
            curves: Vec::new(),
        });
    let report = ComparisonReport {
        baseline: "9610a26".to_owned(),
        comparison: "eeb5415".to_owned(),
        groups: groups.collect(),
        remarks: Vec::new(),
        command: String::new(),
        version: String::new(),
    };
    super::super::text(&report).unwrap()
}

const QUIET: (bool, bool) = (false, false);

// compat: SMP and soaks | report of 2023 (compare --method smp-2023): figures, columns, order | works
// compat: SMP and soaks | report of 2023: head and explanation | differs | worded differently
#[test]
fn head_sentence_and_table_are_those_of_2023_the_largest_gain_first() {
    let (ingress, egress) = ("ingress throughput", "egress throughput");
    let text = report(vec![
        (
            "tcp_syslog_to_blackhole",
            ingress,
            compared([-0.53, -0.66, -0.40], 100.0, QUIET),
        ),
        (
            "file_tree",
            egress,
            compared([0.77, -1.09, 2.63], 50.49, QUIET),
        ),
        (
            "otel_to_otel_logs",
            ingress,
            compared([1.30, -0.29, 2.88], 82.15, QUIET),
        ),
        ("idle", egress, compared([-0.01, -2.44, 2.42], 0.44, QUIET)),
    ]);
    let unpadded = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = text.lines().map(unpadded).collect();
    for line in [
        "# Regression Detector Results",
        "Run ID: 277ece38-0649-4a73-93cc-47bdf7a276c4",
        "Baseline: 9610a26",
        "Comparison: eeb5415",
        "Total datadog-agent CPUs: 7",
        "No interesting changes in experiment optimization goals with confidence ≥ 90.00% and \
         |Δ mean %| ≥ 5.00%.",
        "| experiment | goal | Δ mean % | Δ mean % CI | confidence |",
    ] {
        assert!(lines.iter().any(|shown| shown == line), "{line}\n{text}");
    }
    let rows = lines.iter().filter(|line| line.ends_with("% |"));
    assert_eq!(
        rows.collect::<Vec<_>>(),
        [
            "| otel_to_otel_logs | ingress throughput | +1.30 | [-0.29, +2.88] | 82.15% |",
            "| file_tree | egress throughput | +0.77 | [-1.09, +2.63] | 50.49% |",
            "| idle | egress throughput | -0.01 | [-2.44, +2.42] | 0.44% |",
            "| tcp_syslog_to_blackhole | ingress throughput | -0.53 | [-0.66, -0.40] | 100.00% |",
        ]
    );
}

#[test]
fn what_changed_and_what_is_newly_erratic_is_in_a_table_of_its_own() {
    let text = report(vec![
        ("equal", "g", compared([0.0, -1.0, 1.0], 1.0, QUIET)),
        (
            "slower",
            "g",
            compared([-9.0, -10.0, -8.0], 99.0, (true, false)),
        ),
        (
            "unsteady",
            "g",
            compared([1.0, -9.0, 11.0], 10.0, (false, true)),
        ),
    ]);
    let (first, _) = text.split_once("<summary>Fine details").unwrap();
    assert!(first.contains("\nChanges in experiment"), "{text}");
    let names = ["equal", "slower", "unsteady"].map(|name| first.contains(&format!("| {name} ")));
    assert_eq!(names, [false, true, true]);
}
