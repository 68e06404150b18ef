//! Several targets under one load.

use std::path::{Path, PathBuf};

use stillwell_capture::{RunIdentity, RunOutcome};
use stillwell_experiment::{SuiteError, SuiteProgress, not_installed, run_targets};
use stillwell_plan::targets::ComparedTargetPlan;
use stillwell_plan::{Phase, TargetKind, TargetsPlan};
use stillwell_run::Interrupt;
use stillwell_units::Seed;

use crate::mock::{Mock, experiment, options};

fn plan(runs: u32) -> TargetsPlan {
    let run_plan = experiment("one", 1).run_plan;
    let target = |name: &str| ComparedTargetPlan {
        name: name.to_owned(),
        target: run_plan.target.clone(),
        program: None,
        version: None,
        files: Vec::new(),
        durability: None,
        delivery: None,
    };
    TargetsPlan {
        name: "one".to_owned(),
        summary: None,
        folder: "/suite".into(),
        targets: ["a", "b"].map(target).to_vec(),
        run_plan: run_plan.clone(),
        runs,
        seed: Seed::from_number(7),
    }
}

/// The number of runs `a` has, of 5, where it fails in the blocks `failing`; whether it was given
/// up.
fn runs_of(failing: &'static [u32]) -> (usize, bool) {
    let folder = tempfile::tempdir().unwrap();
    let mut mock = Mock::new(move |item: &RunIdentity, _: &Interrupt| {
        let fails = item.variant == "a" && failing.contains(&item.pair);
        let died = RunOutcome::TargetDied {
            phase: Phase::Measure,
        };
        (if fails { died } else { RunOutcome::Completed }, 1.0)
    });
    let mut ignore = |_: SuiteProgress<'_>| {};
    let options = options(folder.path(), false);
    let plans = [plan(5)];
    let ran = run_targets(&plans, &options, &mut mock, &Interrupt::new(), &mut ignore);
    let of_a = |item: &&(String, u32, String)| item.2 == "a";
    (
        mock.ran().iter().filter(of_a).count(),
        !ran.unwrap().problems.is_empty(),
    )
}

/// One that failed, worked and failed again was given up.
#[test]
fn a_target_that_worked_once_is_not_given_up() {
    assert_eq!(runs_of(&[1, 2]), (2, true));
    assert_eq!(runs_of(&[1, 3, 4, 5]), (5, false));
    assert_eq!(runs_of(&[2, 3, 4, 5]), (5, false));
}

/// If another program starts it, that program is looked for, and is always there.
#[test]
fn a_program_that_is_started_by_another_one_is_looked_for_too() {
    let mut plan = plan(1);
    for target in &mut plan.targets {
        let TargetKind::Child(child) = &mut target.target.kind else {
            panic!("{target:?}")
        };
        child.program = "sh".into();
    }
    plan.targets[0].program = Some(PathBuf::from("no-such-program-here"));
    plan.targets[1].program = Some(PathBuf::from("{self}"));
    let missing = not_installed(&plan, Path::new("/bin/sh"));
    let missing: Vec<&str> = missing
        .iter()
        .map(|program| program.name.as_str())
        .collect();
    assert_eq!(missing, ["a"]);
}

#[test]
fn a_second_suite_of_targets_took_the_runs_of_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let plans = [plan(2)];
    let mut refused = Vec::new();
    let mut mock = Mock::new(|_: &RunIdentity, _: &Interrupt| {
        let mut ignore = |_: SuiteProgress<'_>| {};
        let mut second_executor =
            Mock::new(|_: &RunIdentity, _: &Interrupt| (RunOutcome::Completed, 1.0));
        let options = options(folder.path(), true);
        let second_executor = run_targets(
            &plans,
            &options,
            &mut second_executor,
            &Interrupt::new(),
            &mut ignore,
        );
        refused.push(second_executor.unwrap_err());
        (RunOutcome::Completed, 1.0)
    });
    let mut ignore = |_: SuiteProgress<'_>| {};
    let options = options(folder.path(), false);
    run_targets(&plans, &options, &mut mock, &Interrupt::new(), &mut ignore).unwrap();
    assert_eq!(refused.len(), 4);
    assert!(
        refused
            .iter()
            .all(|item| matches!(item, SuiteError::InUse { .. })),
        "{refused:?}"
    );
}

/// Reports of two commands in one folder overwrite each other.
#[test]
fn targets_do_not_run_in_a_folder_with_results_of_any_command() {
    for file in ["suite.json", "targets.json", "capacity.json", "bisect.json"] {
        let folder = tempfile::tempdir().unwrap();
        let results = folder.path().join("results");
        std::fs::create_dir(&results).unwrap();
        std::fs::write(results.join(file), "{}").unwrap();
        let mut mock = Mock::new(|_: &RunIdentity, _: &Interrupt| (RunOutcome::Completed, 1.0));
        let mut ignore = |_: SuiteProgress<'_>| {};
        let options = options(folder.path(), false);
        let plans = [plan(1)];
        let ran = run_targets(&plans, &options, &mut mock, &Interrupt::new(), &mut ignore);
        assert!(
            matches!(ran, Err(SuiteError::AlreadyThere { .. })),
            "{file}: {ran:?}"
        );
        assert!(mock.requests.is_empty());
    }
}

/// A target whose version was not read was recorded, and a resume refused it as changed.
#[test]
fn targets_are_not_recorded_if_reading_their_versions_is_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let mut plan = plan(1);
    for target in &mut plan.targets {
        target.version = Some(["sh", "-c", "echo 1"].map(str::to_owned).to_vec());
    }
    let plans = [plan];
    let run = |interrupt: &Interrupt, resume: bool| {
        let mut mock = Mock::new(|_: &RunIdentity, _: &Interrupt| (RunOutcome::Completed, 1.0));
        let mut ignore = |_: SuiteProgress<'_>| {};
        let options = options(folder.path(), resume);
        let ran = run_targets(&plans, &options, &mut mock, interrupt, &mut ignore).unwrap();
        (ran.interrupted, ran.runs.iter().flatten().count())
    };
    let raised = Interrupt::new();
    raised.raise(2);
    assert_eq!(run(&raised, false), (Some(2), 0));
    assert!(!folder.path().join("results/targets.json").exists());
    assert_eq!(run(&Interrupt::new(), false), (None, 2));
    assert_eq!(run(&raised, true), (Some(2), 0));
    assert_eq!(run(&Interrupt::new(), true), (None, 2));
}

/// A process that was started to say its version, and has started another.
#[test]
fn a_program_without_a_version_left_its_children_behind() {
    let folder = tempfile::tempdir().unwrap();
    let number = folder.path().join("number");
    let mut plan = plan(1);
    let script = format!("tail -f /dev/null & echo $! > {}; wait", number.display());
    plan.targets[0].version = Some(["sh", "-c", &script].map(str::to_owned).to_vec());
    let mut mock = Mock::new(|_: &RunIdentity, _: &Interrupt| (RunOutcome::Completed, 1.0));
    let mut ignore = |_: SuiteProgress<'_>| {};
    let options = options(folder.path(), false);
    run_targets(&[plan], &options, &mut mock, &Interrupt::new(), &mut ignore).unwrap();
    let child = std::fs::read_to_string(&number).unwrap();
    let status = PathBuf::from(format!("/proc/{}/stat", child.trim()));
    // Killed is what it is at once; gone once its new parent has looked.
    let is_alive = |status: &Path| {
        let stat = std::fs::read_to_string(status).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ") && !stat.contains(") X ")
    };
    let at_most = std::time::Duration::from_secs(30);
    assert!(stillwell_testkit::wait_until(at_most, || !is_alive(
        &status
    )));
}
