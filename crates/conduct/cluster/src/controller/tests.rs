//! A simulated engine of many generators, with the real store, results and merge.

use std::cell::{Cell, RefCell};
use std::path::Path;

use stillwell_capture::{GeneratorResult, LOAD_SCHEMA, LoadManifest, LoadSecond, LoadWorker};
use stillwell_metric::{
    LoadCounts, LoadTime, Outcome, PackedHistogram, add_histogram, empty_histogram,
};
use stillwell_plan::generator::ExchangePlan;
use stillwell_plan::load::{BodyPlan, EndpointPlan, LoadPlanParts, RequestPlan, Reuse, UntilPlan};
use stillwell_units::{RunId, Secrets, Seed};

use super::*;
use crate::attempt::Attempt;
use crate::clocks::ClockShift;
use crate::generator::{GenerateError, GeneratorEnd, generate, pack};
use crate::job::{Ready, ready_name};
use crate::store::{RetryBounds, Store};

fn plan(workers: u16, requests: u64) -> LoadPlan {
    let endpoint = EndpointPlan {
        address: "127.0.0.1:1".to_owned(),
        tls_host: None,
        weight: 1,
        requests: vec![RequestPlan {
            method: "GET".to_owned(),
            path: "/".to_owned(),
            authority: "a".to_owned(),
            is_authority_stated: false,
            headers: Vec::new(),
            body: BodyPlan::Bytes(Vec::new()),
        }],
    };
    let exchange = ExchangePlan {
        timeout: Nanos::SECOND,
        connect_timeout: Nanos::SECOND,
        reuse: Reuse::Mru,
        ..ExchangePlan::default()
    };
    let mut client = exchange.client();
    client.connecting.connections = workers.into();
    let parts = LoadPlanParts {
        workers,
        until: UntilPlan {
            duration: Some(Nanos::from_secs(10)),
            requests: Some(requests),
            ..UntilPlan::default()
        },
        ..LoadPlanParts::closed(vec![endpoint], client, Seed::from_number(7))
    };
    LoadPlan::try_new(parts).unwrap()
}

/// Latency of request `number` of a generator.
fn latency(task: usize, number: u64) -> u64 {
    1_000 + (task as u64 * 7_919 + number * 104_729) % 50_000_000
}

/// The capture of one generator that has sent the requests of its part.
fn capture(plan: LoadPlan, task: usize) -> LoadCapture {
    let requests = plan.requests_here().unwrap();
    let mut times = empty_histogram();
    for number in 0..requests {
        times.record(latency(task, number)).unwrap();
    }
    let mut counts = LoadCounts {
        begun: requests,
        sent: requests,
        ..LoadCounts::default()
    };
    counts.outcomes[Outcome::Ok.index()] = requests;
    let second = |index: u64| LoadSecond {
        begin: Nanos::from_secs(index),
        length: Nanos::SECOND,
        service: PackedHistogram::new(&times),
        ..LoadSecond::default()
    };
    let is_kept = |time: LoadTime| matches!(time, LoadTime::Service(Outcome::Ok));
    LoadCapture {
        manifest: LoadManifest {
            schema: LOAD_SCHEMA.to_owned(),
            version: String::new(),
            command: Vec::new(),
            targets: Vec::new(),
            labels: Vec::new(),
            plan,
            started: Nanos::from_secs(9),
            ended: Nanos::from_secs(19),
            measured: Nanos::from_secs(10),
            workers: vec![LoadWorker {
                counts,
                cpu: Nanos::SECOND,
                measured: Nanos::from_secs(10),
                routes: Vec::new(),
            }],
            end: LoadEnd::Requests,
            cpu: Nanos::SECOND,
            host: None,
            telemetry: Default::default(),
            fleet: None,
        },
        times: vec![
            LoadTime::all()
                .map(|time| is_kept(time).then(|| times.clone()))
                .collect(),
        ],
        route_times: vec![Vec::new()],
        seconds: (0..2).map(second).collect(),
    }
}

/// Generators that exist in the store only.
struct Simulated<'a> {
    store: &'a JobStore,
    plan: &'a LoadPlan,
    /// Generators that never have a result.
    lost: Vec<usize>,
    /// Generators that an engine ran twice.
    twice: Vec<usize>,
    is_done: Cell<bool>,
    /// True if the engine starts tasks and does not answer.
    submit_fails: bool,
    /// True if the engine cannot end tasks.
    cancel_fails: bool,
    cancelled: RefCell<u32>,
    /// Times at which all secrets of the job were deleted.
    forgotten: Cell<u32>,
    /// Calls about tasks: `cancel` or `withdraw`, and the engine's name of their job.
    calls: RefCell<Vec<String>>,
    /// Secrets of the tasks that were started.
    secrets: RefCell<Option<String>>,
}

impl<'a> Simulated<'a> {
    fn new(store: &'a JobStore, plan: &'a LoadPlan) -> Self {
        Self {
            store,
            plan,
            lost: Vec::new(),
            twice: Vec::new(),
            is_done: Cell::new(false),
            submit_fails: false,
            cancel_fails: false,
            cancelled: RefCell::new(0),
            forgotten: Cell::new(0),
            calls: RefCell::new(Vec::new()),
            secrets: RefCell::new(None),
        }
    }

    fn commit(&self, task: usize, plan: LoadPlan, attempt: &str) -> Created {
        let capture = capture(plan, task);
        let result = GeneratorResult {
            attempt: attempt.to_owned(),
            node: format!("n{task}"),
            boot: format!("b{task}"),
            began: Nanos::ZERO,
            ended: Nanos::from_secs(60),
            start_delay: Nanos::new(task as u64),
            workers: 1,
            evidence: capture.evidence(),
        };
        let bytes = pack(&capture, &result, Secrets::Masked, "simulated").unwrap();
        let name = result_name(task);
        self.store.create(&Interrupt::new(), &name, &bytes).unwrap()
    }
}

impl Engine for Simulated<'_> {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn submit(&self, submission: &Submission<'_>) -> Result<JobHandle, EngineError> {
        *self.secrets.borrow_mut() = submission.secrets.map(str::to_owned);
        for task in 0..usize::from(submission.tasks) {
            for number in 0..1 + u32::from(self.twice.contains(&task)) {
                let ready = Ready {
                    attempt: format!("simulated-1-{task}-{number}"),
                    node: format!("n{task}"),
                    began: Nanos::ZERO,
                };
                let name = ready_name(task, number);
                let made = self.store.create_json(&Interrupt::new(), &name, &ready);
                assert_eq!(made.unwrap(), Created::Now);
            }
        }
        if self.submit_fails {
            return Err(EngineError::Command {
                command: "sbatch".to_owned(),
                output: "timed out".to_owned(),
            });
        }
        Ok(JobHandle::new(
            self.name(),
            "1",
            submission.tasks,
            submission.logs,
        ))
    }

    fn poll(&self, handle: &JobHandle) -> Result<Vec<TaskState>, EngineError> {
        let quiet = Interrupt::new();
        let start: Option<Start> = self.store.get_json(&quiet, START).unwrap();
        if let Some(start) = start.filter(|_| !self.is_done.replace(true)) {
            let plans = self.plan.split(handle.tasks).unwrap();
            for (task, plan) in plans.into_iter().enumerate() {
                if self.lost.contains(&task) {
                    continue;
                }
                let attempt = &start.attempts[task];
                assert_eq!(self.commit(task, plan.clone(), attempt), Created::Now);
                if self.twice.contains(&task) {
                    assert_eq!(self.commit(task, plan, "late"), Created::Before);
                }
            }
            println!(
                "{:>9.3} s  all have sent",
                clock::now().as_u64() as f64 / 1e9
            );
        }
        Ok(vec![TaskState::Ended; handle.tasks.into()])
    }

    fn render(&self, _submission: &Submission<'_>) -> Result<String, EngineError> {
        Ok(String::new())
    }

    fn cancel(&self, handle: &JobHandle) -> Result<(), EngineError> {
        *self.cancelled.borrow_mut() += 1;
        let call = format!("cancel {}", handle.id);
        self.calls.borrow_mut().push(call);
        if self.cancel_fails {
            return Err(EngineError::Command {
                command: "scancel 1".to_owned(),
                output: "no answer".to_owned(),
            });
        }
        Ok(())
    }

    fn forget_secrets(&self, _handle: &JobHandle) -> Result<(), EngineError> {
        self.forgotten.update(|forgotten| forgotten + 1);
        Ok(())
    }

    fn withdraw_secrets(&self, handle: &JobHandle) -> Result<(), EngineError> {
        let call = format!("withdraw {}", handle.id);
        self.calls.borrow_mut().push(call);
        Ok(())
    }
}

fn job_store() -> (tempfile::TempDir, JobStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), true).unwrap();
    let store = JobStore::new(store, "job", RetryBounds::default()).unwrap();
    (folder, store)
}

/// The controller of simulated generators with one worker each.
fn fleet<'a>(engine: &'a Simulated<'_>, interrupt: &'a Interrupt) -> FleetLoad<'a> {
    FleetLoad {
        plan: engine.plan,
        generators: engine.plan.workers,
        family: AddressFamily::Any,
        version: "0",
        store: engine.store,
        engine,
        program: PathBuf::from("none"),
        arguments: &[],
        logs: PathBuf::new(),
        secrets: Secrets::Masked,
        interrupt,
        print_message: &|text| println!("{:>9.3} s  {text}", clock::now().as_u64() as f64 / 1e9),
    }
}

fn conduct(
    generators: u16,
    requests: u64,
    lost: Vec<usize>,
    twice: Vec<usize>,
) -> (LoadCapture, u32) {
    let (_folder, store) = job_store();
    let plan = plan(generators, requests);
    let engine = Simulated {
        lost,
        twice,
        ..Simulated::new(&store, &plan)
    };
    let capture = fleet(&engine, &Interrupt::new()).conduct().unwrap();
    let cancelled = *engine.cancelled.borrow();
    (capture, cancelled)
}

/// Memory of a process was that of all histograms of all generators: gigabytes.
#[test]
fn a_thousand_generators_are_merged_exactly_in_little_memory() {
    const GENERATORS: u16 = 1000;
    const REQUESTS: u64 = 100_003;
    const MEMORY_MAX: u64 = 500 << 10;
    let (capture, _) = conduct(GENERATORS, REQUESTS, Vec::new(), vec![3, 500]);
    let mut whole = empty_histogram();
    let plans = plan(GENERATORS, REQUESTS).split(GENERATORS).unwrap();
    for (task, plan) in plans.iter().enumerate() {
        for number in 0..plan.requests_here().unwrap() {
            whole.record(latency(task, number)).unwrap();
        }
    }
    let mut merged = empty_histogram();
    for worker in capture.workers() {
        add_histogram(&mut merged, worker.times(LoadTime::Service(Outcome::Ok)));
    }
    assert_eq!(whole.len(), REQUESTS);
    assert_eq!(merged, whole);
    assert_eq!(
        capture.sum(|counts| counts.ended(Outcome::Ok)),
        REQUESTS,
        "the split has an error"
    );
    assert!(capture.manifest.missing_generators().next().is_none());
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak: u64 = peak
        .and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap();
    println!("{peak} kB at most");
    assert!(peak < MEMORY_MAX, "{peak} kB");
}

#[test]
fn a_lost_generator_ends_all_and_is_named() {
    let (capture, cancelled) = conduct(5, 100, vec![2], vec![0]);
    let missing: Vec<_> = capture.manifest.missing_generators().collect();
    assert_eq!(missing, [(2, "its process ended without a result")]);
    assert_eq!(capture.sum(|counts| counts.ended(Outcome::Ok)), 80);
    assert!(matches!(capture.manifest.end, LoadEnd::PartFailed(_)));
    assert_eq!(cancelled, 0, "no other one was left");
}

fn handle(id: &str) -> JobHandle {
    JobHandle::new("simulated", id, 1, Path::new(""))
}

/// The first attempt of task 0 of the tasks with this name.
fn attempt_of(id: &str) -> Attempt {
    Attempt {
        task: 0,
        name: format!("simulated-{id}-0-0"),
        node: "n".to_owned(),
        boot: "b".to_owned(),
        shift: ClockShift::default(),
    }
}

/// The end of such an attempt whose secrets were deleted.
fn generated(
    store: &JobStore,
    id: &str,
    interrupt: &Interrupt,
) -> Result<GeneratorEnd, GenerateError> {
    let missing = Some(Path::new("/nonexistent/secrets.json"));
    let attempt = attempt_of(id);
    generate(store, &attempt, "0", missing, Secrets::Masked, interrupt)
}

/// Two controllers with one job: the tasks of the first are those of the job, and the others are cancelled.
#[test]
fn tasks_of_a_second_controller_are_cancelled() {
    let (_folder, store) = job_store();
    let plan = plan(1, 1);
    let engine = Simulated::new(&store, &plan);
    let keep = |id| keep_handle(&engine, &store, &Interrupt::new(), handle(id));
    assert_eq!(keep("1").unwrap().id, "1");
    let second = keep("2");
    assert!(
        matches!(second, Err(FleetError::Store(StoreError::Taken(_)))),
        "{second:?}"
    );
    assert_eq!(*engine.cancelled.borrow(), 1);
    let kept: Option<JobHandle> = store.get_json(&Interrupt::new(), ENGINE).unwrap();
    assert_eq!(kept.unwrap().id, "1");
    // Those of the first still need their secrets.
    assert_eq!(engine.forgotten.get(), 0);
    assert_eq!(*engine.calls.borrow(), ["cancel 2", "withdraw 2"]);
    // With Kubernetes both have the same Job, which goes on.
    keep("1").unwrap_err();
    assert_eq!(*engine.calls.borrow(), ["cancel 2", "withdraw 2"]);
}

/// They ran without a controller.
#[test]
fn tasks_of_a_submission_that_failed_end_unless_the_job_has_those_of_another_controller() {
    for has_tasks in [false, true] {
        let (_folder, store) = job_store();
        let interrupt = Interrupt::new();
        let plan = plan(1, 1);
        let engine = Simulated {
            submit_fails: true,
            ..Simulated::new(&store, &plan)
        };
        if has_tasks {
            let written = store.create_json(&interrupt, ENGINE, &handle("2"));
            assert_eq!(written.unwrap(), Created::Now);
        }
        let load = fleet(&engine, &interrupt);
        let submitted = submit_tasks(&engine, &store, &interrupt, &load.submission(None));
        assert!(
            matches!(
                submitted,
                Err(FleetError::Engine(EngineError::Command { .. }))
            ),
            "{submitted:?}"
        );
        let abort: Option<Abort> = store.get_json(&interrupt, ABORT).unwrap();
        let why = abort.map(|abort| abort.why);
        let expected = "the submission failed: sbatch failed: timed out".to_owned();
        assert_eq!(why, (!has_tasks).then_some(expected));
    }
}

#[test]
fn a_submission_that_never_reached_the_engine_can_be_repeated() {
    let missing = EngineError::NoProgram("sbatch".to_owned());
    let refused = EngineError::Command {
        command: "sbatch".to_owned(),
        output: "timed out".to_owned(),
    };
    assert!(!missing.may_leave_tasks());
    assert!(refused.may_leave_tasks());
}

/// They went on, and the second command reported the read error alone.
#[test]
fn tasks_of_a_second_controller_that_cannot_read_those_of_the_first_are_cancelled() {
    let (_folder, store) = job_store();
    let plan = plan(1, 1);
    let engine = Simulated::new(&store, &plan);
    let written = store.create(&Interrupt::new(), ENGINE, b"{");
    assert_eq!(written.unwrap(), Created::Now);
    let kept = keep_handle(&engine, &store, &Interrupt::new(), handle("2"));
    assert!(
        matches!(kept, Err(FleetError::Store(StoreError::Content { .. }))),
        "{kept:?}"
    );
    assert_eq!(*engine.calls.borrow(), ["cancel 2", "withdraw 2"]);
}

/// With Kubernetes the second command deleted the Job and the Secret of the first.
#[test]
fn tasks_that_another_controller_started_go_on_when_the_store_fails() {
    let folder = tempfile::tempdir().unwrap();
    let (missing, made) = (
        hasty_store(folder.path(), "missing", false),
        hasty_store(folder.path(), "made", true),
    );
    let written = made.create(&Interrupt::new(), ENGINE, b"{");
    assert_eq!(written.unwrap(), Created::Now);
    let plan = plan(1, 1);
    let engine = Simulated::new(&made, &plan);
    for store in [&missing, &made] {
        let existing = JobHandle {
            is_others: true,
            ..handle("1")
        };
        keep_handle(&engine, store, &Interrupt::new(), existing).unwrap_err();
        assert!(engine.calls.borrow().is_empty(), "{store:?}");
    }
}

/// The newest attempt and any failure counted: a load started with an attempt that was cancelled.
#[test]
fn a_load_starts_with_attempts_of_its_own_tasks() {
    let started = |failed: &str| {
        let (_folder, store) = job_store();
        let plan = plan(1, 1);
        let engine = Simulated::new(&store, &plan);
        let interrupt = Interrupt::new();
        for (number, id) in [(0, "1"), (1, "2")] {
            let ready = Ready {
                attempt: attempt_of(id).name,
                node: "n".to_owned(),
                began: Nanos::ZERO,
            };
            let written = store.create_json(&interrupt, &ready_name(0, number), &ready);
            assert_eq!(written.unwrap(), Created::Now);
        }
        let failed = Failed {
            attempt: attempt_of(failed).name,
            why: "no".to_owned(),
        };
        let written = store.create_json(&interrupt, &failed_name(0), &failed);
        assert_eq!(written.unwrap(), Created::Now);
        let start = fleet(&engine, &interrupt).start(&handle("1")).unwrap();
        start.map(|start| start.attempts)
    };
    assert_eq!(started("2"), Ok(vec![attempt_of("1").name]));
    assert_eq!(started("1"), Err("generator 0: no".to_owned()));
}

/// Only one without its secrets looked whose tasks the job has.
#[test]
fn a_task_of_a_second_controller_is_never_ready_and_never_fails() {
    let (quiet, ended) = (Interrupt::new(), Interrupt::new());
    // A task that is ready would wait for the start.
    ended.raise(15);
    for (version, id, expected) in [
        ("0", "1", [true, false]),
        ("0", "2", [false, false]),
        ("another", "1", [false, true]),
        ("another", "2", [false, false]),
    ] {
        let (_folder, store) = job_store();
        let plan = plan(1, 1);
        let engine = Simulated::new(&store, &plan);
        let load = FleetLoad {
            version,
            ..fleet(&engine, &quiet)
        };
        assert!(!load.job().unwrap().is_masked);
        let written = store.create_json(&quiet, ENGINE, &handle("1"));
        assert_eq!(written.unwrap(), Created::Now);
        let end = generated(&store, id, &ended);
        let has = |name: &str| store.get(&quiet, name).unwrap().is_some();
        let seen = [has(&ready_name(0, 0)), has(&failed_name(0))];
        assert_eq!(seen, expected, "{version} {id}: {end:?}");
    }
}

/// They failed, and with them the load of the first controller.
#[test]
fn a_task_of_a_second_controller_whose_secrets_are_deleted_is_not_needed() {
    let (_folder, store) = job_store();
    let interrupt = Interrupt::new();
    let plan = plan_with_secret(1);
    let made = fleet(&Simulated::new(&store, &plan), &interrupt).job();
    assert!(made.unwrap().is_masked);
    let written = store.create_json(&interrupt, ENGINE, &handle("1"));
    assert_eq!(written.unwrap(), Created::Now);
    let of = |id: &str| generated(&store, id, &interrupt);
    assert_eq!(of("2").unwrap(), GeneratorEnd::NotNeeded);
    assert_eq!(store.get(&interrupt, &failed_name(0)).unwrap(), None);
    of("1").unwrap_err();
    assert!(store.get(&interrupt, &failed_name(0)).unwrap().is_some());
}

/// Its secrets are deleted after that request, and it reported that they were missing.
#[test]
fn a_task_that_is_requested_to_end_does_not_fail_without_its_secrets() {
    let (_folder, store) = job_store();
    let interrupt = Interrupt::new();
    let plan = plan_with_secret(1);
    let made = fleet(&Simulated::new(&store, &plan), &interrupt).job();
    assert!(made.unwrap().is_masked);
    interrupt.raise(15);
    let end = generated(&store, "1", &interrupt);
    assert_eq!(end.unwrap(), GeneratorEnd::GivenUp);
    let failed = store.get(&Interrupt::new(), &failed_name(0));
    assert_eq!(failed.unwrap(), None);
}

/// A store that is not waited for.
fn hasty_store(folder: &Path, place: &str, is_made: bool) -> JobStore {
    let store = Store::open(&folder.join(place), is_made).unwrap();
    let bounds = RetryBounds {
        every: Nanos::from_millis(1),
        at_most: Nanos::from_millis(1),
    };
    JobStore::new(store, "job", bounds).unwrap()
}

#[test]
fn tasks_that_are_not_kept_or_are_cancelled_leave_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let (missing, made) = (
        hasty_store(folder.path(), "missing", false),
        hasty_store(folder.path(), "made", true),
    );
    let plan = plan(1, 1);
    let engine = Simulated::new(&made, &plan);
    keep_handle(&engine, &missing, &Interrupt::new(), handle("1")).unwrap_err();
    // A task without its secrets fails, if it goes on.
    assert_eq!(*engine.calls.borrow(), ["cancel 1", "withdraw 1"]);
    cancel_job(&made, &engine, Some(&handle("2")), "cancelled").unwrap();
    assert_eq!((*engine.cancelled.borrow(), engine.forgotten.get()), (2, 1));
}

/// A load of one generator with a secret, as one command plans it: its seed and name are random.
fn plan_with_secret(command: u8) -> LoadPlan {
    let mut parts = LoadPlanParts::from(plan(1, 1));
    let header = ("authorization".to_owned(), "Bearer hunter2".to_owned());
    parts.endpoints[0].requests[0].headers.push(header);
    parts.seed = Seed::from_number(command.into());
    parts.telemetry.run = RunId::from_bytes([command; 16]);
    LoadPlan::try_new(parts).unwrap()
}

/// They got the plan of the command that started them, which has another seed, and each generator refused it.
#[test]
fn tasks_of_a_job_that_another_controller_made_get_its_plan_with_secrets() {
    let (_folder, store) = job_store();
    let interrupt = Interrupt::new();
    let (first, second) = (plan_with_secret(1), plan_with_secret(2));
    // The first command is killed before it starts tasks.
    let made = fleet(&Simulated::new(&store, &first), &interrupt).job();
    let engine = Simulated::new(&store, &second);
    let load = fleet(&engine, &interrupt);
    let job = load.job().unwrap();
    assert!(job.is_masked);
    assert_eq!(job, made.unwrap());
    load.handle(&job).unwrap();
    let typed = engine.secrets.take().unwrap();
    let typed: LoadPlan = serde_json::from_str(&typed).unwrap();
    assert_eq!(typed, first);
    // Generators compare them.
    assert_eq!(shared_plan(&typed, Secrets::Masked).unwrap(), job.plan);
}

/// The first one was killed after it had written the start, and the secrets were never deleted.
#[test]
fn a_controller_that_continues_after_the_start_deletes_the_secrets() {
    let (_folder, store) = job_store();
    let interrupt = Interrupt::new();
    let plan = plan_with_secret(1);
    let engine = Simulated::new(&store, &plan);
    let load = fleet(&engine, &interrupt);
    let job = load.job().unwrap();
    load.handle(&job).unwrap();
    let start = Start {
        at: clock::wall(),
        attempts: vec!["0-0".to_owned()],
        clocks: vec![None],
        measured: Nanos::ZERO,
        boot: boot_id(),
    };
    let written = store.create_json(&interrupt, START, &start);
    assert_eq!(written.unwrap(), Created::Now);
    let part = plan.split(1).unwrap().remove(0);
    assert_eq!(engine.commit(0, part, "0-0"), Created::Now);
    engine.is_done.set(true);
    assert_eq!(engine.forgotten.get(), 0);
    let capture = load.conduct().unwrap();
    assert_eq!(capture.sum(|counts| counts.ended(Outcome::Ok)), 1);
    assert_eq!(engine.forgotten.get(), 1);
}

/// Writes that an attempt of task 0 failed because of `no`.
fn fail(store: &JobStore, attempt: &str) {
    let failed = Failed {
        attempt: attempt.to_owned(),
        why: "no".to_owned(),
    };
    let written = store.create_json(&Interrupt::new(), &failed_name(0), &failed);
    assert_eq!(written.unwrap(), Created::Now);
}

/// Readers got the error of the engine in place of the reason.
#[test]
fn a_load_that_does_not_start_has_its_reason_also_if_tasks_cannot_be_ended() {
    let (_folder, store) = job_store();
    let plan = plan(1, 1);
    let engine = Simulated {
        cancel_fails: true,
        ..Simulated::new(&store, &plan)
    };
    fail(&store, &attempt_of("1").name);
    let ended = fleet(&engine, &Interrupt::new()).conduct().unwrap_err();
    assert!(
        matches!(&ended, FleetError::NoStart(why) if why == "generator 0: no"),
        "{ended:?}"
    );
    assert_eq!(*engine.calls.borrow(), ["cancel 1"]);
}

/// The results of all generators were lost.
#[test]
fn results_count_also_if_tasks_cannot_be_ended() {
    let (_folder, store) = job_store();
    let interrupt = Interrupt::new();
    let plan = plan(2, 100);
    let engine = Simulated {
        lost: vec![0],
        cancel_fails: true,
        ..Simulated::new(&store, &plan)
    };
    let messages = RefCell::new(Vec::new());
    let print_message = |text: &str| messages.borrow_mut().push(text.to_owned());
    let load = FleetLoad {
        print_message: &print_message,
        ..fleet(&engine, &interrupt)
    };
    let start = Start {
        at: clock::wall(),
        attempts: vec!["0-0".to_owned(), "1-0".to_owned()],
        clocks: vec![None; 2],
        measured: Nanos::ZERO,
        boot: boot_id(),
    };
    let written = store.create_json(&interrupt, START, &start);
    assert_eq!(written.unwrap(), Created::Now);
    fail(&store, "0-0");
    let capture = load.conduct().unwrap();
    let missing: Vec<_> = capture.manifest.missing_generators().collect();
    assert_eq!(missing, [(0, "no")]);
    assert_eq!(capture.sum(|counts| counts.ended(Outcome::Ok)), 50);
    assert_eq!(*engine.calls.borrow(), ["cancel 1"]);
    let messages = messages.borrow();
    let warned = messages.iter().find(|text| text.contains("may still run"));
    let warned = warned.expect("a message");
    assert!(warned.contains("`stillwell cluster cancel`"), "{warned}");
    assert!(warned.contains("no answer"), "{warned}");
}

/// The load started without offsets of clocks.
#[test]
fn a_load_that_is_interrupted_while_clocks_are_compared_does_not_start() {
    let (_folder, store) = job_store();
    let plan = plan(1, 1);
    let engine = Simulated::new(&store, &plan);
    let interrupt = Interrupt::new();
    interrupt.raise(2);
    let load = fleet(&engine, &interrupt);
    let agreed = load.agree(vec!["0-0".to_owned()]).unwrap();
    assert_eq!(agreed, Err("interrupted by signal 2".to_owned()));
    assert_eq!(store.get(&Interrupt::new(), START).unwrap(), None);
}
