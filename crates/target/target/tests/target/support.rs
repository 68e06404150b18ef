//! Shell scripts as targets.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stillwell_plan::placement::CpuChoice;
use stillwell_plan::step::TargetSignal;
use stillwell_plan::target::{
    ChildPlan, EnvironmentPlan, LOG_LIMIT_DEFAULT, MountPlan, ReadyProbe, StopPlan,
};
use stillwell_plan::{TargetKind, TargetPlan};
use stillwell_scope::{Token, clock};
use stillwell_target::{
    Cgroup, NotReady, StartError, StartOptions, TargetLog, TargetProcess, start, wait_ready,
};
use stillwell_units::{Moment, Nanos};

pub(crate) struct Fixture {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) options: StartOptions,
    pub(crate) plan: TargetPlan,
}

impl Fixture {
    /// A target that is `sh -c script`, not started yet.
    pub(crate) fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = StartOptions {
            network: None,
            state: folder.path().into(),
            stdout: TargetLog::create(folder.path().join("stdout.log")).unwrap(),
            stderr: TargetLog::create(folder.path().join("stderr.log")).unwrap(),
            cpus: None,
            cgroup: None,
        };
        let child = ChildPlan {
            program: "sh".into(),
            arguments: vec!["-c".to_owned(), script.to_owned()],
            environment: EnvironmentPlan::default(),
            directory: None,
            mounts: Vec::new(),
            log_limit: LOG_LIMIT_DEFAULT,
        };
        let plan = TargetPlan {
            name: "script".to_owned(),
            kind: TargetKind::Child(child),
            ready: ReadyProbe::Immediately,
            cpus: CpuChoice::Any,
            memory: None,
            stop: StopPlan {
                signal: TargetSignal::Term,
                grace: Nanos::from_secs(10),
            },
        };
        Self {
            folder,
            options,
            plan,
        }
    }

    pub(crate) fn child(&mut self) -> &mut ChildPlan {
        match &mut self.plan.kind {
            TargetKind::Child(child) => child,
            _ => unreachable!(),
        }
    }

    pub(crate) fn mount(&mut self, source: &Path, at: &str) {
        self.child().mounts.push(MountPlan {
            writable: false,
            source: source.into(),
            at: at.into(),
        });
    }

    pub(crate) fn in_cgroup(mut self, cgroup: Arc<Cgroup>) -> Self {
        self.options.cgroup = Some(cgroup);
        self
    }

    pub(crate) fn try_start(&self) -> Result<TargetProcess, StartError> {
        start(&self.plan, &self.options)
    }

    /// Started, and it has written `ready`.
    pub(crate) fn start_ready(&self) -> TargetProcess {
        let target = self.try_start().unwrap();
        let probe = ReadyProbe::LogLine {
            contains: "ready".to_owned(),
        };
        let deadline = clock::now() + Nanos::from_secs(20);
        wait_ready_blocking(&probe, &target, deadline, &Token::new()).unwrap();
        target
    }

    pub(crate) fn stdout(&self) -> String {
        std::fs::read_to_string(self.options.stdout.path()).unwrap()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Returns true if the process runs and is no zombie.
pub(crate) fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

/// Waits until the processes are stopped: the kernel does that a moment after the signal.
pub(crate) fn wait_stopped(pids: &[u32]) {
    let deadline = clock::now() + Nanos::from_secs(20);
    let is_stopped = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        stat.is_ok_and(|stat| stat.contains(") T "))
    };
    while !pids.iter().all(is_stopped) {
        assert!(clock::now() < deadline, "not all are stopped: {pids:?}");
        std::thread::yield_now();
    }
}

/// Waits until the target is ready.
pub(crate) fn wait_ready_blocking(
    probe: &ReadyProbe,
    target: &TargetProcess,
    deadline: Moment,
    token: &Token,
) -> Result<Nanos, NotReady> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(wait_ready(probe, target, deadline, token))
}

/// Waits until the target has ended by itself.
pub(crate) fn ended(target: &TargetProcess) -> stillwell_target::Exit {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(target.ended())
        .unwrap()
}
