//! Suites in a store that is a folder.

use super::*;
use crate::clocks::ClockShift;
use crate::engine::LocalEngine;
use crate::job::JOB;
use crate::store::{RetryBounds, Store};

fn job_store() -> (tempfile::TempDir, JobStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), true).unwrap();
    let store = JobStore::new(store, "job", RetryBounds::default()).unwrap();
    (folder, store)
}

/// The tasks with this name.
fn handle(id: &str) -> JobHandle {
    JobHandle::new("local", id, 1, Path::new(""))
}

/// Makes the tasks with this name those of the job.
fn keep(store: &JobStore, id: &str) {
    let written = store.create_json(&Interrupt::new(), ENGINE, &handle(id));
    assert_eq!(written.unwrap(), Created::Now);
}

/// The attempt of task 0 of the tasks with this name.
fn attempt_of(id: &str) -> Attempt {
    Attempt {
        task: 0,
        name: format!("local-{id}-0"),
        node: "n".to_owned(),
        boot: "b".to_owned(),
        shift: ClockShift::default(),
    }
}

fn suite<'a>(store: &'a JobStore, interrupt: &'a Interrupt) -> FleetSuite<'a> {
    FleetSuite {
        store,
        engine: &LocalEngine,
        program: PathBuf::from("none"),
        arguments: &[],
        logs: PathBuf::new(),
        interrupt,
        end_max: Nanos::ZERO,
        print_message: &|_| {},
    }
}

/// They ended the suite of the first controller, with incomplete results.
#[test]
fn a_suite_takes_results_and_failures_of_its_own_tasks() {
    let quiet = Interrupt::new();
    for (id, result, failure) in [
        ("1", None, Some("no")),
        (
            "2",
            Some("its result is of another attempt, local-2-0"),
            None,
        ),
    ] {
        let (folder, store) = job_store();
        let suite = suite(&store, &quiet);
        let end = || {
            let end = suite.end(&quiet, &handle("1"), 0, &folder.path().join("0"));
            end.unwrap().map(Result::err)
        };
        assert_eq!(end(), None);
        let attempt = attempt_of(id).name;
        let failed = Failed {
            attempt: attempt.clone(),
            why: "no".to_owned(),
        };
        let written = store.create_json(&quiet, &failed_name(0), &failed);
        assert_eq!(written.unwrap(), Created::Now);
        assert_eq!(end().flatten().as_deref(), failure, "{id}");
        let node = ExperimentNode {
            attempt,
            node: "n".to_owned(),
            boot: "b".to_owned(),
            began: Nanos::ZERO,
            ended: Nanos::ZERO,
        };
        let results = tempfile::tempdir().unwrap();
        let bytes = bundle::pack(results.path(), &node).unwrap();
        let written = store.create(&quiet, &result_name(0), &bytes);
        assert_eq!(written.unwrap(), Created::Now);
        assert_eq!(end(), Some(result.map(str::to_owned)), "{id}");
    }
}

#[test]
fn a_task_of_another_controller_does_not_begin() {
    let quiet = Interrupt::new();
    for (id, begins) in [("1", true), ("2", false)] {
        let (_folder, store) = job_store();
        keep(&store, "1");
        let attempt = attempt_of(id);
        let task = SuiteTask::begin(&store, &attempt, &quiet).unwrap();
        assert_eq!(task.is_some(), begins, "{id}");
        let ready = store.get(&quiet, &ready_name(0, 0)).unwrap();
        assert_eq!(ready.is_some(), begins, "{id}");
        if let Some(task) = task {
            task.beats.close(CLOSE_MAX);
        }
    }
}

/// It began before the job had tasks, and was cancelled afterwards: its finished pairs were the result.
#[test]
fn a_task_that_another_controller_cancels_writes_no_end() {
    let quiet = Interrupt::new();
    for (id, expected) in [("1", Created::Now), ("2", Created::Before)] {
        let (_folder, store) = job_store();
        let attempt = attempt_of(id);
        let task = SuiteTask::begin(&store, &attempt, &quiet).unwrap();
        let task = task.expect("the job has no tasks so far");
        keep(&store, "1");
        task.fail("no".to_owned());
        let results = tempfile::tempdir().unwrap();
        assert_eq!(task.commit(results.path()).unwrap(), expected, "{id}");
        for name in [failed_name(0), result_name(0)] {
            let written = store.get(&quiet, &name).unwrap();
            assert_eq!(written.is_some(), expected == Created::Now, "{id} {name}");
        }
    }
}

/// The suite ran to its end, and the results were refused afterwards.
#[test]
fn a_job_is_continued_with_the_same_plan_only() {
    let (_folder, store) = job_store();
    let quiet = Interrupt::new();
    let suite = suite(&store, &quiet);
    let job = |words: &str, fingerprint: &str| {
        let words = vec![words.to_owned()];
        let names = vec!["a".to_owned()];
        let seed = "s".to_owned();
        let fingerprint = fingerprint.to_owned();
        SuiteJob::new("1", PathBuf::from("/"), words, seed, names, fingerprint)
    };
    let first = job("--results=a", "1");
    assert_eq!(suite.job(first.clone()).unwrap(), first);
    assert_eq!(suite.job(job("--results=b", "1")).unwrap(), first);
    let refused = suite.job(job("--results=a", "2"));
    assert!(
        matches!(refused, Err(FleetError::Store(StoreError::Taken(_)))),
        "{refused:?}"
    );
}

/// Jobs of earlier versions have no fingerprint: the name is taken, and the store is not damaged.
#[test]
fn a_job_without_a_fingerprint_is_not_continued() {
    let (_folder, store) = job_store();
    let quiet = Interrupt::new();
    let folder = PathBuf::from("/");
    let names = vec!["a".to_owned()];
    let (seed, fingerprint) = ("s".to_owned(), "1".to_owned());
    let job = SuiteJob::new("1", folder, Vec::new(), seed, names, fingerprint);
    let mut before = serde_json::to_value(&job).unwrap();
    before.as_object_mut().unwrap().remove("fingerprint");
    let written = store.create_json(&quiet, JOB, &before);
    assert_eq!(written.unwrap(), Created::Now);
    let refused = suite(&store, &quiet).job(job);
    assert!(
        matches!(refused, Err(FleetError::Store(StoreError::Taken(_)))),
        "{refused:?}"
    );
}

#[test]
fn a_suite_with_more_experiments_than_tasks_makes_no_job() {
    let (_folder, store) = job_store();
    let quiet = Interrupt::new();
    let suite = suite(&store, &quiet);
    assert!(matches!(tasks_of(65_535), Ok(u16::MAX)));
    let names = vec!["a".to_owned(); 65_536];
    let (seed, fingerprint) = ("s".to_owned(), "1".to_owned());
    let folder = PathBuf::from("/");
    let job = SuiteJob::new("1", folder, Vec::new(), seed, names, fingerprint);
    for refused in [suite.job(job).err(), suite.render(65_536).err()] {
        let message = refused.unwrap().to_string();
        assert!(message.contains("65536 experiments"), "{message}");
        assert!(message.contains("at most 65535"), "{message}");
    }
    assert_eq!(store.get(&quiet, JOB).unwrap(), None);
}
