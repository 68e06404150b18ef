use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use stillwell_metric::Kind;
use stillwell_report::REPORT_SCHEMA;

use super::*;
use crate::fixture::{Recorded, capture, options};

/// Writes a report of seven pairs of `old` and `new` with these warnings, and returns its path.
/// A report of `relay` with two variants. If its run was stopped, there is an experiment with a run of one variant, too.
fn report(folder: &Path, warnings: &Value, was_stopped: bool) -> String {
    let pairs = [100.0, 100.1, 99.9, 100.2, 99.8, 100.0, 100.1];
    let rows = (1..).zip(pairs).flat_map(|(pair, number)| {
        ["old", "new"].map(|variant| json!(["search", pair, variant, [number]]))
    });
    let experiment = |name: &str, rows: Vec<Value>| {
        json!({
            "name": name,
            "variants": ["old", "new"],
            "goals": [{ "metric": "memory", "better": "lower", "tolerance_share": 0.05 }],
            "warnings": warnings,
            "runs": { "metrics": ["memory"], "rows": rows },
        })
    };
    let mut experiments = vec![experiment("relay", rows.collect())];
    if was_stopped {
        experiments.push(experiment(
            "last",
            vec![json!(["search", 1, "old", [100.0]])],
        ));
    }
    let text = json!({ "schema": REPORT_SCHEMA, "experiments": experiments });
    let path = folder.join("report.json");
    fs::write(&path, text.to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Runs were compared with themselves, and `equivalent` was their verdict.
#[test]
fn one_argument_needs_two_variants() {
    let folder = tempfile::tempdir().unwrap();
    let both = report(folder.path(), &json!([]), false);
    let (old, new) = (format!("{both}@old"), format!("{both}@new"));
    let load = folder.path().join("load.json");
    let times = r#"{"ActualQPS": 99.5, "DurationHistogram": {"Avg": 0.002}}"#;
    fs::write(&load, times).unwrap();
    let numbers = "100,101,99";
    for (baseline, comparison, is_compared) in [
        (both.as_str(), None, true),
        (old.as_str(), None, false),
        (load.to_str().unwrap(), None, false),
        (numbers, None, false),
        (old.as_str(), Some(new.as_str()), true),
        (numbers, Some(numbers), true),
    ] {
        let compared = compare_sides(baseline, comparison, &options(&[]));
        match compared.map_err(|error| error.to_string()) {
            Ok(_) => assert!(is_compared, "{baseline}"),
            Err(text) => {
                assert!(!is_compared, "{text}");
                let end =
                    format!("{baseline} has no two variants to compare: give a second argument");
                assert!(text.ends_with(&end), "{text}");
            }
        }
    }
}

#[test]
fn of_one_side_an_experiment_with_one_variant_is_left_out_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = report(folder.path(), &json!([]), true);
    let compared = compare_sides(&path, None, &options(&[])).unwrap();
    assert_eq!(compared.groups.len(), 1);
    let remark = "`last` has no two variants, so it is not compared";
    assert!(
        compared.remarks.iter().any(|text| text == remark),
        "{:?}",
        compared.remarks
    );
}

#[test]
fn a_pair_that_a_report_discards_for_its_environments_is_left_out_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let differs = json!({
        "environment_differs": {
            "fact": "governors",
            "baseline": "performance",
            "here": "powersave",
        },
    });
    let warnings = json!([
        { "stage": "search", "pair": 3, "variant": "new", "warnings": [differs] },
        { "stage": "confirm", "pair": 4, "variant": "new", "warnings": [differs] },
    ]);
    let path = report(folder.path(), &warnings, false);
    let compared = compare_sides(&path, None, &options(&[])).unwrap();
    let row = &compared.groups[0].rows[0];
    assert_eq!(row.comparison.values.len(), 6, "{row:?}");
    let [(_, reason)] = row.comparison.left_out.as_slice() else {
        panic!("{row:?}");
    };
    let fact = "governors was performance for the baseline and powersave for this run";
    assert!(reason.contains(fact), "{reason}");
}

#[test]
fn memory_by_pss_beside_memory_by_rss_has_a_remark() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, metric: &'static str| {
        let series = [(metric, Kind::Gauge, 1e6)];
        capture(folder.path(), name, &series, None)
    };
    let pss = write("pss.jsonl", "total_pss_bytes");
    let rss = write("rss.jsonl", "total_rss_bytes");
    let second_rss = write("second-rss.jsonl", "total_rss_bytes");
    let options = options(&["memory"]);
    for (baseline, comparison, has_remark) in [
        (&pss, &rss, true),
        (&rss, &pss, true),
        (&rss, &second_rss, false),
    ] {
        let report = compare_sides(baseline, Some(comparison.as_str()), &options).unwrap();
        let remarks = &report.groups[0].remarks;
        let is_memory = |remark: &String| remark.contains("(PSS)") && remark.contains("(RSS)");
        assert_eq!(remarks.iter().any(is_memory), has_remark, "{remarks:?}");
    }
}

/// Percent of the granted CPUs were read as percent of one.
#[test]
fn cpu_in_percent_is_compared_with_cores_by_its_limit_alone() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, series: &[Recorded]| capture(folder.path(), name, series, None);
    let millicores = ("total_cpu_usage_millicores", Kind::Gauge, 1000.0);
    let percent = ("total_cpu_percentage", Kind::Gauge, 50.0);
    let limit = ("cpu_limit_millicores", Kind::Gauge, 2000.0);
    let cores = write("cores.jsonl", &[millicores]);
    let limited = write("limited.jsonl", &[percent, limit]);
    let unlimited = write("unlimited.jsonl", &[percent]);
    let options = options(&["cpu"]);
    for (comparison, value, has_remark) in [(&limited, 1.0, false), (&unlimited, 0.5, true)] {
        let report = compare_sides(&cores, Some(comparison.as_str()), &options).unwrap();
        let row = &report.groups[0].rows[0];
        assert!((row.comparison.values[0] - value).abs() < 1e-12, "{row:?}");
        let differ = |remark: &String| remark.contains("different units");
        assert_eq!(row.remarks.iter().any(differ), has_remark, "{row:?}");
    }
}

/// Errors of one side vanished from the comparison.
#[test]
fn errors_of_one_side_alone_have_a_remark() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, codes: &str| {
        let path = folder.path().join(name);
        let times = r#""ActualQPS": 99.5, "DurationHistogram": {"Avg": 0.002}"#;
        fs::write(&path, format!("{{{times}, \"RetCodes\": {{{codes}}}}}")).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let clean = write("clean.json", r#""200": 10"#);
    let failing = write("failing.json", r#""200": 5, "503": 5"#);
    let as_clean = write("as-clean.json", r#""200": 10"#);
    let as_failing = write("as-failing.json", r#""200": 5, "503": 5"#);
    let options = options(&[]);
    for (baseline, comparison, side) in [
        (&clean, &failing, Some("comparison")),
        (&failing, &clean, Some("baseline")),
        (&failing, &as_failing, None),
        (&clean, &as_clean, None),
    ] {
        let report = compare_sides(baseline, Some(comparison.as_str()), &options).unwrap();
        let remarks = &report.groups[0].remarks;
        for name in ["baseline", "comparison"] {
            let start = format!("only the {name} has `errors`");
            let has_remark = remarks.iter().any(|text| text.starts_with(&start));
            assert_eq!(has_remark, side == Some(name), "{remarks:?}");
        }
    }
}
