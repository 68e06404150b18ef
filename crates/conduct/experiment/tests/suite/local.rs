//! The executor of this host, with a target that does nothing.

use std::fs;

use stillwell_capture::Capture;
use stillwell_experiment::{Executor, Local};
use stillwell_plan::TargetKind;
use stillwell_units::Nanos;
use stillwell_verdict::{RunSummary, summarise, summarise_from};

use crate::mock::{experiment, options, run, suite};

#[test]
fn a_local_run_leaves_its_capture_and_its_summary() {
    let folder = tempfile::tempdir().unwrap();
    let mut experiment_plan = experiment("one", 1);
    experiment_plan.run_plan.generators.clear();
    experiment_plan.run_plan.target.kind = TargetKind::None;
    experiment_plan.run_plan.isolation.network = stillwell_plan::placement::Wanted::No;
    experiment_plan.run_plan.isolation.cgroup = stillwell_plan::placement::Wanted::No;
    experiment_plan.run_plan.phases.warmup = Nanos::from_millis(1);
    experiment_plan.run_plan.phases.measure = Nanos::from_millis(50);
    experiment_plan.run_plan.phases.quiet = Nanos::from_millis(1);
    let outcome = run(
        &suite([experiment_plan]),
        &options(folder.path(), false),
        &mut Local,
    )
    .unwrap();
    assert_eq!(outcome.verdicts.len(), 1);
    for variant in ["baseline", "comparison"] {
        let run = folder.path().join("results/one/pair-001").join(variant);
        let capture = Capture::open(&run).unwrap();
        assert!(
            capture.manifest.outcome.is_completed(),
            "{:?}",
            capture.manifest
        );
        let text = fs::read(run.join("summary.json")).unwrap();
        let summary: RunSummary = serde_json::from_slice(&text).unwrap();
        assert_eq!(summary, summarise(&capture));
        assert_eq!(summary.identity.unwrap().variant, variant);

        // With more of it left out, it is another summary of the same capture.
        let longer = summary.warmup + Nanos::from_millis(10);
        let again = Local.sum_up(&run, longer).unwrap();
        assert_eq!(again, summarise_from(&capture, longer));
        let text = fs::read(run.join("summary.json")).unwrap();
        let kept: RunSummary = serde_json::from_slice(&text).unwrap();
        assert_eq!((kept.warmup, &kept), (longer, &again));
    }
}
