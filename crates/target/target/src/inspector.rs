//! A program that inspects the target while it runs.

use std::path::Path;

use stillwell_plan::observer::InspectorPlan;
use stillwell_plan::placement::CpuChoice;
use stillwell_plan::step::TargetSignal;
use stillwell_plan::target::{ChildPlan, EnvironmentPlan, LOG_LIMIT_DEFAULT, ReadyProbe, StopPlan};
use stillwell_plan::{TargetKind, TargetPlan};
use stillwell_units::Nanos;

use crate::{StartError, StartOptions, TargetLog, TargetProcess, start};

/// Signal and grace period for the end of an inspector.
pub const INSPECTOR_STOP: StopPlan = StopPlan {
    signal: TargetSignal::Term,
    grace: Nanos::from_secs(5),
};

/// Environment variable with the target's process id.
const TARGET: &str = "TARGET_PID";
/// Its value without a target, as in lading.
const NO_TARGET: &str = "NO_TARGET";

/// Starts the inspector of `plan`, which inspects the process `target`.
///
/// It is watched and stopped like a target, and runs in this process's working directory. Its output goes to
/// `logs`. `cpus` are the permitted CPUs.
///
/// # Errors
/// [`StartError`]; nothing remains running.
pub fn start_inspector(
    plan: &InspectorPlan,
    target: Option<u32>,
    folder: &Path,
    [stdout, stderr]: [TargetLog; 2],
    cpus: Option<Vec<u16>>,
) -> Result<TargetProcess, StartError> {
    let mut variables = plan.environment.clone();
    let (name, value) = match target {
        Some(pid) => (TARGET, pid.to_string()),
        None => (NO_TARGET, "1".to_owned()),
    };
    variables.insert(name.to_owned(), value);
    let options = StartOptions {
        state: folder.to_owned(),
        stdout,
        stderr,
        cpus,
        cgroup: None,
        network: None,
    };
    let child = ChildPlan {
        program: plan.program.clone(),
        arguments: plan.arguments.clone(),
        environment: EnvironmentPlan {
            inherit: false,
            variables,
        },
        // Other files of the inspector are relative to the caller's directory.
        directory: std::env::current_dir().ok(),
        mounts: Vec::new(),
        log_limit: LOG_LIMIT_DEFAULT,
    };
    let as_target = TargetPlan {
        name: "inspector".to_owned(),
        kind: TargetKind::Child(child),
        ready: ReadyProbe::Immediately,
        cpus: CpuChoice::Any,
        memory: None,
        stop: INSPECTOR_STOP,
    };
    start(&as_target, &options)
}
