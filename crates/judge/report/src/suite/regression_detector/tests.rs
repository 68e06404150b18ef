use proptest::prelude::*;

use super::*;
use crate::fixture::{
    equivalent, erratic, experiment, failed_check, invalid, of_kinds, of_three, regressed, report,
};

fn options() -> CommentOptions {
    CommentOptions {
        suite: String::new(),
        links: vec![("job".to_owned(), "https://example.com/1|2".to_owned())],
    }
}

fn text(experiments: Vec<ExperimentVerdict>) -> String {
    regression_detector(&report(experiments), &options(), GatePolicy::Normal)
}

#[test]
fn a_comment_with_findings() {
    let experiments = vec![
        equivalent(),
        regressed(),
        invalid(),
        failed_check(),
        erratic(),
    ];
    insta::assert_snapshot!(text(experiments));
}

#[test]
fn a_comment_without_a_finding() {
    insta::assert_snapshot!(text(vec![equivalent()]));
}

/// Headings, folds and columns as comments of 2024 to 2026 have them.
#[test]
fn parts_have_the_names_and_the_order_of_the_regression_detector() {
    let mut kept = failed_check();
    kept.gate = Gate::Held;
    kept.checks.retain(|check| !check.is_broken());
    let text = text(vec![kept, erratic()]);
    let parts = [
        "## Regression Detector\n",
        "# Regression Detector Results\n",
        "Run ID: ",
        "Baseline: ",
        "Comparison: ",
        "## Optimization Goals: ✅ No significant changes detected\n",
        "<summary>Experiments ignored for regressions</summary>",
        "<summary>Fine details of change detection per experiment</summary>",
        "| perf | experiment | goal | Δ mean % | Δ mean % CI | trials | links |\n",
        "## Bounds Checks: ✅ Passed\n",
        "| perf | experiment | bounds_check_name | replicates_passed | observed_value | links |\n",
        "| ✅ | http-json | no_errors | 16/16 | (0 ≤ 0) | ",
        "<summary>Explanation</summary>",
        "## CI Pass/Fail Decision\n\n✅ **Passed.**",
        "- http-json, bounds check no_errors: 16/16 replicas passed. Gate passed.\n",
    ];
    let mut rest = text.as_str();
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else {
            panic!("no {part:?} in its place in\n{text}");
        };
        rest = after;
    }
}

#[test]
fn changes_are_signed_percents_with_two_decimals() {
    let entry = experiment("a", Verdict::Equivalent, [0.0012, -0.0004, 0.0029]);
    let text = text(vec![entry]);
    assert!(text.contains("| +0.12 | [-0.04, +0.29] | 8 |"), "{text}");
}

#[test]
fn a_row_names_its_variant_where_several_are_compared() {
    for (metric, words) in [
        (GoalMetric::CpuPerEvent, "CPU per event, second"),
        (GoalMetric::Cpu, "% cpu utilization, second"),
        (GoalMetric::Memory, "memory utilization, second"),
    ] {
        let mut entry = of_three();
        for goal in &mut entry.goals {
            goal.metric = metric.clone();
        }
        let text = text(vec![entry]);
        let row = format!("| ❌ | quickstart | {words} | +4.90 |");
        assert!(text.contains(&row), "{text}");
        assert!(text.contains("\nComparison: first, second\n"), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn for_all_suites_the_layout_is_short_and_has_the_decision(
        kinds in proptest::collection::vec(0_u8..6, 0..600),
        name in "[ -~]{0,100}",
    ) {
        let experiments = of_kinds(&kinds, &name);
        let text = text(experiments);
        prop_assert!(text.len() <= LENGTH_MAX, "{}", text.len());
        prop_assert!(text.contains("\n## CI Pass/Fail Decision\n"));
        let count = |tag: &str| text.lines().filter(|line| line.starts_with(tag)).count();
        prop_assert_eq!(count("<details>"), count("</details>"));
        for row in text.lines().filter(|line| line.starts_with("| ")) {
            let bars = row.replace("\\|", "").matches('|').count();
            prop_assert!(bars == 8 || bars == 7, "{}", row);
        }
    }
}
