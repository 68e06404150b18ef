//! Start, signals, stop and end.

use std::sync::mpsc::sync_channel;
use std::time::Duration;

use stillwell_plan::TargetKind;
use stillwell_plan::step::TargetSignal;
use stillwell_scope::{Place, Scope, Token};
use stillwell_target::{
    Cgroup, Limits, ProgramError, StartError, Stopped, TargetLog, TargetProcess,
};
use stillwell_units::{Nanos, RunId};

use crate::leftover::ends;
use crate::support::{Fixture, ended, is_alive, wait_stopped};

#[test]
fn exit_codes_and_signals_are_recorded() {
    let fixture = Fixture::new("exit 7");
    let exit = ended(&fixture.try_start().unwrap());
    assert_eq!((exit.code, exit.signal), (Some(7), None));
    let fixture = Fixture::new("kill -USR1 $$");
    let exit = ended(&fixture.try_start().unwrap());
    assert_eq!((exit.code, exit.signal, exit.core), (None, Some(10), false));
    assert_eq!(exit.to_string(), "ended by signal 10");
}

#[test]
fn a_watcher_receives_the_end() {
    let fixture = Fixture::new("echo ready; exec tail -f /dev/null");
    let target = fixture.try_start().unwrap();
    assert_eq!(target.exited(), None);
    let mut scope = Scope::new(&Token::new());
    let (sender, receiver) = sync_channel(1);
    target
        .watch(&mut scope, move |exit| sender.send(exit).unwrap())
        .unwrap();
    target.signal(TargetSignal::Kill).unwrap();
    let exit = receiver.recv_timeout(Duration::from_secs(20)).unwrap();
    assert_eq!(exit.signal, Some(9));
    assert_eq!(target.exited(), Some(exit));
    assert!(
        scope
            .close(Nanos::from_secs(20))
            .iter()
            .all(|end| end.result.is_ok())
    );
}

#[test]
fn the_environment_holds_only_the_requested_variables() {
    let mut fixture = Fixture::new("env; pwd");
    fixture
        .child()
        .environment
        .variables
        .insert("ONE".to_owned(), "1".to_owned());
    ended(&fixture.try_start().unwrap());
    let stdout = fixture.stdout();
    let names: Vec<&str> = stdout
        .lines()
        .filter_map(|line| Some(line.split_once('=')?.0))
        .collect();
    for name in names {
        // The last three are the shell's own.
        let known = [
            "ONE",
            "PATH",
            "STILLWELL_TARGET",
            "PWD",
            "SHLVL",
            "_",
            "OLDPWD",
        ];
        assert!(known.contains(&name), "{name}");
    }
    assert!(stdout.contains("ONE=1"));
    assert!(stdout.contains(fixture.folder.path().to_str().unwrap()));
}

#[test]
fn a_target_that_handles_its_signal_ends_within_its_grace() {
    let fixture =
        Fixture::new("trap 'kill $!; echo bye; exit 3' TERM; tail -f /dev/null & echo ready; wait");
    let target = fixture.start_ready();
    let stopped = target.stop(fixture.plan.stop);
    assert!(!stopped.killed);
    assert_eq!(stopped.exit.unwrap().code, Some(3));
    assert_eq!(target.last_lines(1), ["bye"]);
}

#[test]
fn a_target_that_ignores_its_signal_is_killed_after_its_grace() {
    let mut fixture = Fixture::new("trap '' TERM; echo ready; exec tail -f /dev/null");
    fixture.plan.stop.grace = Nanos::from_millis(100);
    let stopped = fixture.start_ready().stop(fixture.plan.stop);
    assert!(stopped.killed);
    assert_eq!(stopped.exit.unwrap().signal, Some(9));
}

/// The first process went on alone, and waited for a child that was still stopped.
#[test]
fn all_processes_of_a_paused_target_continue_when_it_is_ended() {
    // The child says that it is ready: a copy of the shell that is not a new program yet still has its trap.
    let fixture = Fixture::new(
        "trap 'kill $!; wait; exit 3' TERM
         sh -c 'echo ready; exec tail -f /dev/null' & wait; exit 4",
    );
    let target = fixture.start_ready();
    target.signal_all(TargetSignal::Stop).unwrap();
    let processes = target.processes();
    assert_eq!(processes.len(), 2, "{processes:?}");
    wait_stopped(&processes);
    let stopped = target.stop(fixture.plan.stop);
    assert!(!stopped.killed, "{stopped:?}");
    assert_eq!(stopped.exit.unwrap().code, Some(3));
}

pub(crate) const LEAVES_A_DAEMON: &str = "(setsid sh -c 'trap \"\" TERM HUP; echo $$ > daemon; echo ready; \
                               while :; do sleep 0.05; done' &) ; while :; do sleep 0.05; done";

fn assert_daemon_is_killed(fixture: &Fixture) {
    let target = fixture.start_ready();
    let daemon = std::fs::read_to_string(fixture.path("daemon")).unwrap();
    assert!(is_alive(&daemon));
    let stopped = target.stop(fixture.plan.stop);
    assert!(stopped.left_behind >= 1, "{stopped:?}");
    assert!(!is_alive(&daemon));
    assert!(!is_alive(&target.pid().unwrap().to_string()));
}

#[test]
fn a_grandchild_that_left_the_session_is_killed_too() {
    assert_daemon_is_killed(&Fixture::new(LEAVES_A_DAEMON));
}

#[test]
fn a_daemon_of_a_target_that_has_ended_is_killed_too() {
    let fixture = Fixture::new(
        "setsid sh -c 'trap \"\" TERM; echo $$ > daemon; echo ready; while :; do sleep 0.05; done' &
         while [ ! -s daemon ]; do sleep 0.01; done; exit 0",
    );
    let target = fixture.try_start().unwrap();
    assert_eq!(ended(&target).code, Some(0));
    let daemon = std::fs::read_to_string(fixture.path("daemon")).unwrap();
    assert!(is_alive(&daemon));
    drop(target);
    assert!(!is_alive(&daemon));
}

#[test]
fn a_cgroup_counts_and_kills() {
    let limits = Limits {
        memory: Some(stillwell_units::ByteSize::mib(512)),
        cpus: None,
    };
    let run = RunId::from_bytes([0xa5; 16]);
    let (cgroup, notes) = Cgroup::create(run, &limits);
    let Some(cgroup) = cgroup else {
        println!("SKIPPED: no cgroup can be had here: {notes:?}");
        return;
    };
    let cgroup = std::sync::Arc::new(cgroup);
    let fixture = Fixture::new(LEAVES_A_DAEMON).in_cgroup(cgroup.clone());
    assert_daemon_is_killed(&fixture);
    let folders = cgroup.folders().clone();
    let folders = [folders.unified, folders.cpuacct, folders.memory];
    assert!(cgroup.cpu_nanos().unwrap() > 0 && cgroup.pids().is_empty());
    // A target may move its processes into groups that it makes below its own.
    let nested = Fixture::new(LEAVES_A_DAEMON).in_cgroup(cgroup.clone());
    let target = nested.start_ready();
    let daemon = std::fs::read_to_string(nested.path("daemon")).unwrap();
    for folder in folders.iter().flatten() {
        let deepest = folder.join("inner/deepest");
        std::fs::create_dir_all(&deepest).unwrap();
        std::fs::write(deepest.join("cgroup.procs"), daemon.trim()).unwrap();
    }
    assert!(cgroup.pids().contains(&daemon.trim().parse().unwrap()));
    assert!(cgroup.kill_all(Nanos::from_secs(20)));
    assert!(ends(&daemon));
    drop((target, nested, fixture, cgroup));
    for folder in folders.iter().flatten() {
        assert!(!folder.exists(), "{}", folder.display());
    }
}

#[test]
fn a_target_above_its_memory_limit_is_killed() {
    let limits = Limits {
        memory: Some(stillwell_units::ByteSize::mib(32)),
        cpus: None,
    };
    let (cgroup, notes) = Cgroup::create(RunId::from_bytes([0x5a; 16]), &limits);
    let Some(cgroup) = cgroup.filter(|_| notes.is_empty()) else {
        println!("SKIPPED: no memory limit can be had here: {notes:?}");
        return;
    };
    let cgroup = std::sync::Arc::new(cgroup);
    // Keeps its last line, which never ends, in memory. It is the only process: of several, the kernel selects.
    let fixture = Fixture::new("exec tail -n 1 /dev/zero > /dev/null").in_cgroup(cgroup);
    let target = fixture.try_start().unwrap();
    assert_eq!(ended(&target).signal, Some(9));
}

#[test]
fn programs_that_cannot_be_started_are_reported_with_their_reason() {
    let mut fixture = Fixture::new("");
    fixture.child().program = "/no/such/program".into();
    let error = fixture.try_start().unwrap_err();
    assert!(
        matches!(error, StartError::Program(ProgramError::Missing { .. })),
        "{error}"
    );
    let script = fixture.path("script");
    std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    rustix::fs::chmod(&script, rustix::fs::Mode::RWXU).unwrap();
    fixture.child().program = script;
    let error = fixture.try_start().unwrap_err();
    assert!(matches!(error, StartError::Execute { .. }), "{error}");
    let mut fixture = Fixture::new("");
    fixture.child().directory = Some("/no/such/folder".into());
    let error = fixture.try_start().unwrap_err();
    assert!(matches!(error, StartError::Directory { .. }), "{error}");
    assert!(TargetLog::create("/no/such/folder/log".into()).is_err());
}

#[test]
fn a_target_does_not_outlive_the_thread_that_started_it() {
    let fixture = Fixture::new("trap '' TERM HUP; while :; do sleep 0.05; done");
    let Fixture {
        folder: _folder,
        options,
        plan,
    } = fixture;
    let mut scope = Scope::new(&Token::new());
    let (sender, receiver) = sync_channel(1);
    let body = move |_: &Token| Ok(sender.send(stillwell_target::start(&plan, &options))?);
    scope.thread(Place::default(), "starter", body).unwrap();
    let target = receiver.recv().unwrap().unwrap();
    assert_eq!(ended(&target).signal, Some(9));
}

#[test]
fn the_processes_of_a_target_are_its_first_one_and_its_descendants() {
    let fixture = Fixture::new("sleep 60 & echo ready; wait");
    let started = fixture.start_ready();
    let first = started.pid().unwrap();
    let mut attached_run = Fixture::new("");
    attached_run.plan.kind = TargetKind::Pid(first);
    let attached = attached_run.try_start().unwrap();
    for target in [&started, &attached] {
        let processes = target.processes();
        assert_eq!(processes.len(), 2, "{processes:?}");
        assert!(processes.contains(&first), "{processes:?}");
    }
    assert!(TargetProcess::none().processes().is_empty());
}

#[test]
fn an_attached_process_is_never_signalled() {
    let fixture = Fixture::new("echo ready; while :; do sleep 0.05; done");
    let unexpected = fixture.start_ready();
    let mut attached_run = Fixture::new("");
    attached_run.plan.kind = TargetKind::Pid(unexpected.pid().unwrap());
    let attached = attached_run.try_start().unwrap();
    assert_eq!(attached.pid(), unexpected.pid());
    assert!(attached.signal(TargetSignal::Term).is_err());
    let untouched = Stopped {
        exit: None,
        killed: false,
        left_behind: 0,
    };
    assert_eq!(attached.stop(fixture.plan.stop), untouched);
    assert_eq!(unexpected.exited(), None);
    drop(unexpected);
    assert_eq!(ended(&attached).code, None);
    assert_eq!(TargetProcess::none().pid(), None);
}
