use stillwell_metric::Kind;

use super::*;
use crate::fixture::{capture, options};

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
