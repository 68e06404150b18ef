//! Going on after an interruption.

use std::fs;
use std::path::Path;

use stillwell_capture::{RunIdentity, RunOutcome};
use stillwell_experiment::{
    ProblemKind, Results, SuiteError, SuiteOptions, SuiteProgress, run_suite,
};
use stillwell_plan::experiment::{BinarySource, OperatingPoint};
use stillwell_plan::{Phase, RatePlan, SuitePlan};
use stillwell_run::Interrupt;
use stillwell_units::Nanos;
use stillwell_verdict::Verdict;

use crate::mock::{Mock, costlier_comparison, experiment, options, run, suite};

fn six_pairs() -> SuitePlan {
    let mut item = experiment("one", 6);
    item.run_plan.generators[0].rate = RatePlan::MAX;
    item.operating_point = OperatingPoint::Probe {
        share: 0.5,
        length: Nanos::SECOND,
    };
    suite([item])
}

/// Runs until the second run of pair 4 is interrupted.
fn begin(plan: &SuitePlan, folder: &Path) {
    let interrupt = Interrupt::new();
    let mut mock = Mock::new(|item: &RunIdentity, interrupt: &Interrupt| {
        if item.pair == 4 && item.position == 1 {
            interrupt.raise(2);
            return (RunOutcome::Interrupted { signal: 2 }, 1.0);
        }
        costlier_comparison(item, interrupt)
    });
    let mut ignore = |_: SuiteProgress<'_>| {};
    let options = options(folder, false);
    run_suite(plan, &options, &mut mock, &interrupt, &mut ignore).unwrap();
}

#[test]
fn only_unfinished_pairs_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let plan = six_pairs();
    begin(&plan, folder.path());
    let mut mock = Mock::new(costlier_comparison);
    let mut taken_over = Vec::new();
    let mut listen = |summaries: SuiteProgress<'_>| {
        if let SuiteProgress::TakenOver { pairs, .. } = summaries {
            taken_over.extend_from_slice(pairs);
        }
    };
    let options = options(folder.path(), true);
    let outcome = run_suite(&plan, &options, &mut mock, &Interrupt::new(), &mut listen).unwrap();
    assert_eq!(taken_over, [1, 2, 3]);
    let ran: Vec<u32> = mock.ran().iter().map(|run| run.1).collect();
    assert_eq!(ran, [4, 4, 5, 5, 6, 6]);
    assert_eq!(outcome.verdicts[0].pairs_used, 6);
    assert_eq!(outcome.verdicts[0].verdict, Verdict::Regressed);
    // The half pair is kept apart.
    let discarded = folder.path().join("results/one/discarded/pair-004-1");
    assert_eq!(fs::read_dir(discarded).unwrap().count(), 2);
}

#[test]
fn a_resumed_suite_runs_as_an_uninterrupted_one() {
    let (whole, halves) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let plan = six_pairs();
    let mut first = Mock::new(costlier_comparison);
    run(&plan, &options(whole.path(), false), &mut first).unwrap();
    begin(&plan, halves.path());
    let mut second = Mock::new(costlier_comparison);
    run(&plan, &options(halves.path(), true), &mut second).unwrap();
    let skipped = first.requests.len() - second.requests.len();
    assert_eq!(first.ran()[skipped..], second.ran());
    for (left, right) in first.requests[skipped..].iter().zip(&second.requests) {
        assert_eq!(left.plan, right.plan);
    }
}

#[test]
fn what_cannot_be_read_is_not_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let plan = six_pairs();
    begin(&plan, folder.path());
    let summary = folder
        .path()
        .join("results/one/pair-002/baseline/summary.json");
    let text = fs::read(&summary).unwrap();
    fs::write(&summary, &text[..text.len() / 2]).unwrap();
    let mut mock = Mock::new(costlier_comparison);
    run(&plan, &options(folder.path(), true), &mut mock).unwrap();
    let ran: Vec<u32> = mock.ran().iter().map(|run| run.1).collect();
    assert_eq!(ran, [2, 2, 4, 4, 5, 5, 6, 6]);
}

/// Carries `plan` out in a folder of its own there, to its end.
fn finish(plan: &SuitePlan, folder: &Path) {
    let outcome = run(
        plan,
        &options(folder, false),
        &mut Mock::new(costlier_comparison),
    );
    outcome.unwrap();
}

#[test]
fn nothing_runs_again_where_all_is_finished() {
    let folder = tempfile::tempdir().unwrap();
    let plan = six_pairs();
    finish(&plan, folder.path());
    let mut mock = Mock::new(costlier_comparison);
    let outcome = run(&plan, &options(folder.path(), true), &mut mock).unwrap();
    assert!(mock.requests.is_empty());
    assert_eq!(outcome.verdicts[0].pairs_used, 6);
}

#[test]
fn another_plan_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    begin(&six_pairs(), folder.path());
    let mut changed = six_pairs();
    changed.experiments[0].run_plan.phases.measure = Nanos::from_secs(21);
    let error = run(
        &changed,
        &options(folder.path(), true),
        &mut Mock::new(costlier_comparison),
    )
    .unwrap_err();
    match error {
        SuiteError::PlanChanged { pointer, .. } => {
            assert_eq!(pointer, "/plan/experiments/0/run_plan/phases/measure");
        }
        right => panic!("{right}"),
    }
}

#[test]
fn another_executable_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let program = crate::builds::script(folder.path(), "program", "exit 0");
    let mut plan = six_pairs();
    plan.experiments[0].variants[1].binary = BinarySource::Path(program);
    begin(&plan, folder.path());
    crate::builds::script(folder.path(), "program", "exit 1");
    let error = run(
        &plan,
        &options(folder.path(), true),
        &mut Mock::new(costlier_comparison),
    )
    .unwrap_err();
    match error {
        SuiteError::PlanChanged { pointer, .. } => assert_eq!(pointer, "/binaries/1/sha256"),
        right => panic!("{right}"),
    }
}

#[test]
fn results_are_never_overwritten_or_invented() {
    let folder = tempfile::tempdir().unwrap();
    let plan = six_pairs();
    let nothing = run(
        &plan,
        &options(folder.path(), true),
        &mut Mock::new(costlier_comparison),
    );
    assert!(matches!(nothing, Err(SuiteError::NothingToResume { .. })));
    let results = folder.path().join("results");
    for file in ["targets.json", "capacity.json", "bisect.json"] {
        fs::create_dir_all(&results).unwrap();
        fs::write(results.join(file), "{}").unwrap();
        let there = run(
            &plan,
            &options(folder.path(), false),
            &mut Mock::new(costlier_comparison),
        );
        assert!(
            matches!(there, Err(SuiteError::AlreadyThere { .. })),
            "{file}"
        );
        fs::remove_file(results.join(file)).unwrap();
    }
    begin(&plan, folder.path());
    let there = run(
        &plan,
        &options(folder.path(), false),
        &mut Mock::new(costlier_comparison),
    );
    assert!(matches!(there, Err(SuiteError::AlreadyThere { .. })));
    let held = fs::File::open(folder.path().join("results")).unwrap();
    held.lock().unwrap();
    let in_use = run(
        &plan,
        &options(folder.path(), true),
        &mut Mock::new(costlier_comparison),
    );
    assert!(matches!(in_use, Err(SuiteError::InUse { .. })));
}

#[test]
fn two_suites_that_began_at_once_shared_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let plan = six_pairs();
    let item = || options(folder.path(), false);
    // While the first one runs, another one begins in the same folder.
    let mut refusals = Vec::new();
    let mut mock = Mock::new(|run: &RunIdentity, interrupt: &Interrupt| {
        if run.pair == 1 {
            refusals
                .push(self::run(&plan, &item(), &mut Mock::new(costlier_comparison)).unwrap_err());
        }
        costlier_comparison(run, interrupt)
    });
    run(&plan, &item(), &mut mock).unwrap();
    drop(mock);
    assert_eq!(refusals.len(), 2);
    for right in refusals {
        assert!(matches!(right, SuiteError::InUse { .. }), "{right}");
    }
}

#[test]
fn a_suite_that_could_not_begin_leaves_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    let refused = run(
        &six_pairs(),
        &options(folder.path(), true),
        &mut Mock::new(costlier_comparison),
    );
    assert!(matches!(refused, Err(SuiteError::NothingToResume { .. })));
    assert!(!folder.path().join("results").exists());
}

/// Results from before there were stages, looks and confirmation.
#[test]
fn results_of_an_older_version_are_read_and_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let plan = suite([experiment("one", 6)]);
    let options = |resume| options(folder.path(), resume);
    let mut listen = |_: SuiteProgress<'_>| {};
    let interrupt = Interrupt::new();
    let mut mock = Mock::new(|item: &RunIdentity, interrupt: &Interrupt| {
        if item.pair == 6 {
            interrupt.raise(2);
        }
        costlier_comparison(item, interrupt)
    });
    run_suite(&plan, &options(false), &mut mock, &interrupt, &mut listen).unwrap();
    let results = Results::new(folder.path().join("results"));
    rewrite(&results.suite(), |record| {
        let experiment = record["plan"]["experiments"][0].as_object_mut().unwrap();
        for key in ["stopping", "design", "warmup", "confirm", "family"] {
            assert!(experiment.remove(key).is_some(), "{key}");
        }
        experiment.insert("pairs".to_owned(), 6.into());
        let goal = experiment["goals"][0].as_object_mut().unwrap();
        assert!(goal.remove("direction").is_some());
        record.as_object_mut().unwrap().remove("health");
    });
    for pair in 1..=5 {
        for variant in ["baseline", "comparison"] {
            let path = results.run("one", pair, variant).join("summary.json");
            rewrite(&path, |summary| {
                let summary = summary.as_object_mut().unwrap();
                for key in ["series", "environment", "warmup_ns", "length_ns"] {
                    summary.remove(key);
                }
                let identity = summary["identity"].as_object_mut().unwrap();
                assert!(identity.remove("stage").is_some());
            });
        }
    }
    let record = results.record().unwrap();
    assert_eq!(record.plan, plan);
    let summaries = results.summaries(&record.plan.experiments[0]).unwrap();
    assert_eq!(summaries.len(), 11);
    let mut mock = Mock::new(costlier_comparison);
    let outcome = run(&plan, &options(true), &mut mock).unwrap();
    assert_eq!(outcome.verdicts[0].verdict, Verdict::Regressed);
}

/// A report counted it as a pair that had to be discarded.
#[test]
fn a_run_that_was_interrupted_counted_as_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let plan = six_pairs();
    finish(&plan, folder.path());
    let results = Results::new(folder.path().join("results"));
    let summaries = || results.summaries(&plan.experiments[0]).unwrap().len();
    let all = summaries();
    let interrupted = RunOutcome::Interrupted { signal: 2 };
    let path = results.run("one", 2, "comparison").join("summary.json");
    rewrite(&path, |summary| {
        summary["outcome"] = serde_json::to_value(&interrupted).unwrap()
    });
    assert_eq!(summaries(), all - 1);
}

/// Replaces a file of JSON by what `change` makes of it.
fn rewrite(path: &Path, change: impl Fn(&mut serde_json::Value)) {
    let mut value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    change(&mut value);
    fs::write(path, value.to_string()).unwrap();
}

/// A suite over nodes could not be judged on a machine with another build of the target.
#[test]
fn nothing_runs_where_results_are_only_judged() {
    let folder = tempfile::tempdir().unwrap();
    let plan = six_pairs();
    begin(&plan, folder.path());
    let file = folder.path().join("results/suite.json");
    let mut record: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    record["binaries"][0]["sha256"] = "of another build".into();
    fs::write(&file, record.to_string()).unwrap();
    let resumed = options(folder.path(), true);
    let refused = run(&plan, &resumed, &mut Mock::new(costlier_comparison));
    assert!(matches!(refused, Err(SuiteError::PlanChanged { .. })));
    let judged = SuiteOptions {
        judge_only: true,
        ..resumed
    };
    let mut mock = Mock::new(costlier_comparison);
    let outcome = run(&plan, &judged, &mut mock).unwrap();
    assert!(mock.requests.is_empty());
    assert_eq!(outcome.verdicts.len(), 1);
    // Three pairs of six are not all.
    assert_eq!(outcome.problems[0].kind, ProblemKind::GivenUp);
}

/// It had no verdict, and the reason was replaced by a hint to the log of its node.
#[test]
fn an_experiment_whose_pairs_were_all_lost_is_judged_as_where_it_was_measured() {
    let folder = tempfile::tempdir().unwrap();
    let plan = suite([experiment("one", 12)]);
    let mut mock = Mock::new(|_: &RunIdentity, _: &Interrupt| {
        let died = RunOutcome::TargetDied {
            phase: Phase::Measure,
        };
        (died, 1.0)
    });
    let measured = run(&plan, &options(folder.path(), false), &mut mock).unwrap();
    assert_eq!(mock.requests.len(), 2, "two pairs are lost");
    let judged = SuiteOptions {
        judge_only: true,
        problems: measured.problems.clone(),
        ..options(folder.path(), true)
    };
    let judge = |options: &SuiteOptions| {
        let mut mock = Mock::new(costlier_comparison);
        let outcome = run(&plan, options, &mut mock).unwrap();
        assert!(mock.requests.is_empty());
        assert_eq!(outcome.verdicts.len(), 1);
        assert_eq!(outcome.verdicts[0].verdict, Verdict::Invalid);
        outcome
    };
    let outcome = judge(&judged);
    assert_eq!(outcome.verdicts, measured.verdicts);
    assert_eq!(outcome.problems, measured.problems);
    let unknown = judge(&SuiteOptions {
        problems: Vec::new(),
        ..judged
    });
    let [problem] = &unknown.problems[..] else {
        panic!("{:?}", unknown.problems);
    };
    assert_eq!(problem.kind, ProblemKind::GivenUp);
}

/// Holm's correction was for the experiments whose nodes had delivered results.
#[test]
fn an_experiment_without_a_folder_is_not_judged_and_counts_as_planned() {
    let folder = tempfile::tempdir().unwrap();
    let plan = suite(["one", "two"].map(|name| experiment(name, 6)));
    finish(&plan, folder.path());
    fs::remove_dir_all(folder.path().join("results/two")).unwrap();
    let judged = SuiteOptions {
        judge_only: true,
        ..options(folder.path(), true)
    };
    let mut mock = Mock::new(costlier_comparison);
    let outcome = run(&plan, &judged, &mut mock).unwrap();
    assert!(mock.requests.is_empty());
    let names = outcome.verdicts.iter().map(|verdict| verdict.name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["one"]);
    // The caller has the reason.
    assert!(outcome.problems.is_empty(), "{:?}", outcome.problems);
    assert_eq!(outcome.budget.comparisons, 2);
    assert_eq!(outcome.budget.false_alarm_bound, None);
}
