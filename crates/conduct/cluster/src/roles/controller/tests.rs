//! Tests of the controller of a run on several machines.

use stillwell_units::{RunId, Seed};

use super::*;
use crate::engine::{LocalEngine, LocalTask};
use crate::job::ready_name;
use crate::store::{RetryBounds, Store};

fn plan() -> RunPlan {
    RunPlan::idle(Seed::from_number(0))
}

fn job() -> RunJob {
    let roles = RunRoles {
        generators: 1,
        sinks: 0,
    };
    let line = (PathBuf::from("/"), Vec::new());
    let id = RunId::from_bytes([1; 16]);
    RunJob::new("1", line, "s".to_owned(), id, roles)
}

fn member(attempt: &str) -> Member {
    Member {
        attempt: attempt.to_owned(),
        node: "n".to_owned(),
        boot: "b".to_owned(),
        address: RunHosts::default().target,
        began: Nanos::ZERO,
    }
}

fn run_of<'a>(plan: &'a RunPlan, store: &'a JobStore, interrupt: &'a Interrupt) -> FleetRun<'a> {
    FleetRun {
        plan,
        store,
        engine: &LocalEngine,
        program: PathBuf::from("none"),
        arguments: &[],
        logs: PathBuf::new(),
        interrupt,
        print_message: &|_| {},
        show: &|_| {},
    }
}

/// A job whose tasks have ended: no process has this id.
fn ended(tasks: u16) -> JobHandle {
    let ended = LocalTask {
        process: i32::MAX,
        started: 0,
    };
    JobHandle {
        processes: vec![ended; tasks.into()],
        ..JobHandle::new("local", "7-1", tasks, Path::new(""))
    }
}

/// The error of the store replaced the reason.
#[test]
fn a_run_that_does_not_start_keeps_its_reason_if_the_store_fails_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("store");
    let bounds = RetryBounds {
        every: Nanos::from_millis(1),
        at_most: Nanos::from_millis(20),
    };
    let store = JobStore::new(Store::open(&root, true).unwrap(), "a", bounds).unwrap();
    let (plan, interrupt, job) = (plan(), Interrupt::new(), job());
    let handle = ended(job.roles.tasks());
    store.create_json(&interrupt, ENGINE, &handle).unwrap();
    interrupt.raise(2);
    let run = FleetRun {
        print_message: &|text: &str| {
            if text.starts_with("ending all tasks") {
                std::fs::remove_dir_all(&root).unwrap();
            }
        },
        ..run_of(&plan, &store, &interrupt)
    };
    match run.conduct(&job, folder.path()) {
        Err(FleetError::NoRun { part, why }) => {
            assert_eq!((part, &*why), (None, "interrupted by signal 2"));
        }
        end => panic!("{end:?}"),
    }
    assert!(!root.exists());
}

/// The part whose clock had no offset was named as one that did not answer.
#[test]
fn a_run_that_is_interrupted_while_clocks_are_compared_blames_no_part() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), true).unwrap();
    let store = JobStore::new(store, "a", RetryBounds::default()).unwrap();
    let (plan, interrupt) = (plan(), Interrupt::new());
    interrupt.raise(2);
    let run = run_of(&plan, &store, &interrupt);
    let job = job();
    let members = Members {
        tasks: vec![member("a"); job.roles.tasks().into()],
        hosts: RunHosts::default(),
    };
    let agreed = run.agree(&job, &members).unwrap();
    assert_eq!(agreed, Err("interrupted by signal 2".to_owned()));
    assert_eq!(store.get(&Interrupt::new(), START).unwrap(), None);
}

/// The run waited for them, and their failures ended it.
#[test]
fn attempts_of_another_controller_are_no_part_of_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), true).unwrap();
    let store = JobStore::new(store, "a", RetryBounds::default()).unwrap();
    let (plan, interrupt, job) = (plan(), Interrupt::new(), job());
    let tasks = job.roles.tasks();
    for task in 0..usize::from(tasks) {
        let foreign = member(&format!("local-7-2-{task}"));
        let written = store.create_json(&interrupt, &ready_name(task, 0), &foreign);
        assert_eq!(written.unwrap(), Created::Now);
    }
    let failed = Failed {
        attempt: "local-7-2-0".to_owned(),
        why: "no".to_owned(),
    };
    let written = store.create_json(&interrupt, &failed_name(0), &failed);
    assert_eq!(written.unwrap(), Created::Now);
    let begun = run_of(&plan, &store, &interrupt).begin(&job, &ended(tasks));
    let (_, why) = begun.unwrap().unwrap_err();
    assert!(why.contains("its process ended early"), "{why}");
    assert_eq!(store.get(&interrupt, MEMBERS).unwrap(), None);
}

/// The reason was replaced by one of the controller, and with it the place of a capture that the store did not take.
#[test]
fn a_part_without_a_result_has_the_reason_that_it_wrote() {
    let reason = "pack the results: no space; its capture is in /tmp/x on n";
    for (attempt, expected) in [
        ("local-7-1-0", reason),
        // A process of another controller.
        ("local-7-2-0", "it delivered no result in time"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), true).unwrap();
        let store = JobStore::new(store, "a", RetryBounds::default()).unwrap();
        let (plan, interrupt, job) = (plan(), Interrupt::new(), job());
        let tasks = job.roles.tasks();
        let members = Members {
            tasks: (0..tasks)
                .map(|task| member(&format!("local-7-1-{task}")))
                .collect(),
            hosts: RunHosts::default(),
        };
        // Results of such a start are overdue.
        let start = Start {
            at: Nanos::ZERO,
            attempts: members.attempts(),
            clocks: vec![None; tasks.into()],
            measured: Nanos::ZERO,
            boot: boot_id(),
        };
        let failed = Failed {
            attempt: attempt.to_owned(),
            why: reason.to_owned(),
        };
        let written = store.create_json(&interrupt, &failed_name(0), &failed);
        assert_eq!(written.unwrap(), Created::Now);
        let run = run_of(&plan, &store, &interrupt);
        let collected = run.collect(&job, &ended(tasks), &members, &start, folder.path());
        let collected = collected.unwrap();
        let whys = collected
            .ends
            .into_iter()
            .map(|end| end.unwrap().unwrap_err());
        let whys: Vec<String> = whys.collect();
        assert_eq!(whys, [expected, "it delivered no result in time"]);
        assert_eq!(collected.failure, Some((0, expected.to_owned())));
    }
}
