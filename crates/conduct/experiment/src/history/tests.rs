//! Results folders made by hand.

use std::num::NonZeroU16;

use stillwell_plan::{GoalMetric, GoalPlan, SinkPlan, SinkProtocol, SuitePlan};
use stillwell_run::CallDescriber;
use stillwell_units::{Secrets, Seed};
use stillwell_verdict::synthetic;

use super::*;
use crate::SuiteOptions;
use crate::files::write_json;

const CPU: GoalMetric = GoalMetric::CpuPerEvent;

/// A suite of two pairs that began at `millis`.
fn write(root: &Path, name: &str, millis: u64, seed: u64, cost: f64) -> PathBuf {
    let mut plan = synthetic::plan("relay", vec![GoalPlan::new(CPU)]);
    plan.run_plan.seed = Seed::from_number(seed);
    write_suite(root, name, millis, plan, [&[(CPU, 100.0)], &[(CPU, cost)]])
}

/// A suite of two pairs with these numbers of each variant.
fn write_suite(
    root: &Path,
    name: &str,
    millis: u64,
    plan: ExperimentPlan,
    numbers: [&[(GoalMetric, f64)]; 2],
) -> PathBuf {
    let results = Results::new(root.join(name));
    let seed = plan.run_plan.seed;
    let binaries = ["baseline", "comparison"].map(|variant| BinaryIdentity {
        experiment: plan.name.clone(),
        variant: variant.to_owned(),
        path: None,
        revision: Some(variant.repeat(4)),
        sha256: Some("00ff".to_owned()),
    });
    for pair in 1..=2 {
        for (variant, numbers) in ["baseline", "comparison"].into_iter().zip(numbers) {
            let place = (RunStage::Search, pair, variant);
            let summary = synthetic::run("relay", place, numbers);
            let folder = results.run("relay", pair, variant);
            write_json(&folder.join("summary.json"), &summary).unwrap();
            let host = json!({ "host": { "cpu_model": "EPYC", "cpus": [1, 2] } });
            write_json(&folder.join("manifest.json"), &host).unwrap();
        }
    }
    let suite = SuitePlan {
        experiments: vec![plan],
        seed,
    };
    let options = SuiteOptions {
        results: root.to_path_buf(),
        resume: false,
        judge_only: false,
        wait_for_quiet: true,
        problems: Vec::new(),
        command: Vec::new(),
        secrets: Secrets::Masked,
        stillwell: PathBuf::new(),
        cache: PathBuf::new(),
        state_root: PathBuf::new(),
        keep_state: false,
        metrics: None,
        describer: CallDescriber::default(),
    };
    results
        .write_record(&suite, &options, millis, &binaries)
        .unwrap();
    results.root().to_path_buf()
}

#[test]
fn suites_become_points_and_other_folders_are_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "b", 2000, 1, 110.0);
    let again = write(root, "a", 3000, 2, 120.0);
    write(root, "late", 9000, 3, 100.0);
    fs::create_dir(root.join("empty")).unwrap();
    fs::create_dir(root.join("broken")).unwrap();
    fs::write(root.join("broken/suite.json"), "{}").unwrap();
    let mut folders = results_in(root).unwrap();
    assert_eq!(folders.len(), 4);
    folders.push(again);

    let history = read_history(&folders, &(0..9000));
    let names: Vec<&str> = history
        .points
        .iter()
        .map(|p| p.origin.run.as_str())
        .collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(history.skipped.len(), 1);
    assert_eq!(history.skipped[0].0, root.join("broken"));
    let [first, second] = &history.points[..] else {
        panic!("{history:?}");
    };
    assert_eq!(first.origin.workload, second.origin.workload);
    assert_eq!(first.origin.anchor, second.origin.anchor);
    assert_eq!(first.origin.machine.as_deref(), Some("EPYC x2"));
    assert_eq!(first.origin.time_millis, 3000);
    assert_eq!(first.origin.commit, Some("comparison".repeat(4)));
    assert!((first.measurements[0].delta - 1.2_f64.ln()).abs() < 1e-12);
    assert!(results_in(&root.join("nowhere")).unwrap().is_empty());
}

#[test]
fn a_result_without_a_number_of_its_primary_goal_is_named() {
    use GoalMetric::{EgressThroughput, InstructionsPerEvent, Loss};
    let folder = tempfile::tempdir().unwrap();
    let absent = "`relay` has no valid pair for `egress_throughput`";
    let zero = format!("{absent}: numbers of 0 have no ratio");
    let zero = zero.as_str();
    for (name, primary, number, erratic, note) in [
        ("measured", EgressThroughput, Some(5.0), false, None),
        ("lost", EgressThroughput, Some(0.0), false, Some(zero)),
        ("absent", EgressThroughput, None, false, Some(absent)),
        ("erratic", EgressThroughput, Some(0.0), true, None),
        ("difference", Loss, Some(0.0), false, None),
        // The machine cannot count them, so the next goal decides.
        ("uncounted", InstructionsPerEvent, None, false, None),
    ] {
        let goals = [primary.clone(), CPU].map(GoalPlan::new);
        let mut plan = synthetic::plan("relay", goals.into());
        plan.erratic = erratic;
        let mut compared = vec![(CPU, 100.0)];
        compared.extend(number.map(|number| (primary.clone(), number)));
        let baseline = [(CPU, 100.0), (primary, 5.0)];
        let suite = write_suite(folder.path(), name, 2000, plan, [&baseline, &compared]);
        let history = read_history(&[suite], &(0..9000));
        assert_eq!(history.points.len(), 1, "{name}");
        let notes = history.skipped.iter().map(|(_, note)| note.as_str());
        assert_eq!(notes.collect::<Vec<_>>(), Vec::from_iter(note), "{name}");
    }
}

#[test]
fn a_copy_of_a_results_folder_is_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let first = write(root, "a", 2000, 1, 110.0);
    let copy = write(&root.join("copies"), "a", 2000, 1, 110.0);
    // A copy that is not complete does not replace the result.
    let incomplete = root.join("incomplete/a");
    fs::create_dir_all(&incomplete).unwrap();
    fs::copy(first.join("suite.json"), incomplete.join("suite.json")).unwrap();
    let folders = [
        incomplete.clone(),
        first.clone(),
        copy.clone(),
        // Another name, another time, another plan.
        write(root, "b", 2000, 1, 110.0),
        write(&root.join("later"), "a", 3000, 1, 110.0),
        write(&root.join("planned"), "a", 2000, 2, 110.0),
    ];
    let history = read_history(&folders, &(0..9000));
    assert_eq!(history.points.len(), 4);
    let [(left, _), (right, reason)] = &history.skipped[..] else {
        panic!("{:?}", history.skipped);
    };
    assert_eq!((left, right), (&incomplete, &copy));
    assert_eq!(*reason, format!("it is a copy of {}", first.display()));
}

#[test]
fn a_version_is_what_was_typed_unless_it_is_the_commit() {
    let git = |revision: &str| GitSource {
        repository: "r".into(),
        revision: revision.to_owned(),
        build: "make".to_owned(),
        output: "out".into(),
    };
    let named = |typed: &str| version(Some(&git(typed)), Some("abc123"));
    assert_eq!(named("v1.2"), Some("v1.2".to_owned()));
    assert_eq!(named("abc1"), None);
    assert_eq!(version(Some(&git("v1")), None), None);
}

#[test]
fn an_experiment_in_another_folder_has_the_same_workload_and_baseline() {
    let identity = BinaryIdentity {
        experiment: "relay".to_owned(),
        variant: "baseline".to_owned(),
        path: None,
        revision: Some("abc123".to_owned()),
        sha256: None,
    };
    let hashes = |folder: &str, file: &str| {
        let mut plan = synthetic::plan("relay", Vec::new());
        plan.folder = folder.into();
        plan.run_plan.sinks = vec![SinkPlan {
            id: "out".to_owned(),
            protocol: SinkProtocol::File { path: file.into() },
            workers: NonZeroU16::MIN,
            limit: None,
            lines: None,
            prefix: None,
        }];
        let variant = &mut plan.variants[0];
        variant.command = Some(vec![file.to_owned()]);
        variant.files = Some(folder.into());
        let anchor = anchor(variant, &identity, &plan.folder);
        (workload(&plan), anchor)
    };
    let first = hashes("/one/relay", "/one/relay/file");
    assert_eq!(hashes("/two/relay", "/two/relay/file"), first);
    for file in [
        "/one/relay/other",
        "/one/relay-2/file",
        "/two/relay/file",
        "file",
    ] {
        let (workload, anchor) = hashes("/one/relay", file);
        assert_ne!(workload, first.0, "{file}");
        assert_ne!(anchor, first.1, "{file}");
    }
}
