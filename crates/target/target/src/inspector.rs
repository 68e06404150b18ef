//! A program that looks at the subject while it runs.

use std::path::{Path, PathBuf};

use stillwell_plan::{
    ChildPlan, CpuChoice, EnvironmentPlan, InspectorPlan, ReadyProbe, StopPlan, SubjectKind,
    SubjectPlan, SubjectSignal,
};
use stillwell_units::Nanos;

use crate::{StartError, StartOptions, Subject, start};

/// How an inspector is asked to end, and how long it may take to write what it found.
pub const INSPECTOR_STOP: StopPlan = StopPlan {
    signal: SubjectSignal::Term,
    grace: Nanos::from_secs(5),
};

/// What tells an inspector whom to look at, in its environment.
const TARGET: &str = "TARGET_PID";
/// What tells it that there is nobody, as lading has it.
const NOBODY: &str = "NO_TARGET";

/// Starts the inspector of `plan`, which is to look at the process `target`.
///
/// It is a program like a subject, which is watched and stopped in the same way, in
/// our own working directory. What it writes goes to `inspector.stdout.log` and
/// `inspector.stderr.log` in `folder` where its plan names no other files. `cpus` are
/// those that it may use.
///
/// # Errors
/// [`StartError`]; nothing is left running then.
pub fn start_inspector(
    plan: &InspectorPlan,
    target: Option<u32>,
    folder: &Path,
    cpus: Option<Vec<u16>>,
) -> Result<Subject, StartError> {
    let mut variables = plan.environment.clone();
    let (name, value) = match target {
        Some(pid) => (TARGET, pid.to_string()),
        None => (NOBODY, "1".to_owned()),
    };
    variables.insert(name.to_owned(), value);
    let log = |wanted: &Option<PathBuf>, name| wanted.clone().unwrap_or_else(|| folder.join(name));
    let options = StartOptions {
        state: folder.to_owned(),
        stdout: log(&plan.stdout, "inspector.stdout.log"),
        stderr: log(&plan.stderr, "inspector.stderr.log"),
        cpus,
        cgroup: None,
        network: None,
        is_again: false,
    };
    let child = ChildPlan {
        program: plan.program.clone(),
        arguments: plan.arguments.clone(),
        environment: EnvironmentPlan {
            inherit: false,
            variables,
        },
        // What it writes beside its output lies where whoever started us expects it.
        directory: std::env::current_dir().ok(),
        mounts: Vec::new(),
    };
    let as_subject = SubjectPlan {
        name: "inspector".to_owned(),
        kind: SubjectKind::Child(child),
        ready: ReadyProbe::Immediately,
        cpus: CpuChoice::Any,
        memory: None,
        stop: INSPECTOR_STOP,
    };
    start(&as_subject, &options)
}
