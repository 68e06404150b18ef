use std::fs;

use stillwell_metric::Kind;

use super::*;
use crate::fixture::{Recorded, capture, options};

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
