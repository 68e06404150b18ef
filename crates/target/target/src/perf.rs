//! A CPU profile of the target by the program `perf`.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use stillwell_plan::observer::{CallGraph, InspectorPlan, PerfPlan};
use stillwell_scope::clock;
use stillwell_units::Nanos;

use crate::pause::readable_before;

/// Time limit for the conversion of the samples to text.
pub const PERF_SCRIPT_LIMIT: Nanos = Nanos::from_secs(60);

/// Returns the inspector that samples `processes`, and those that they start, into the file `data`. Samples have the
/// monotonic clock.
#[must_use]
pub fn perf_inspector(plan: &PerfPlan, processes: &[u32], data: &Path) -> InspectorPlan {
    let call_graph = match plan.call_graph {
        CallGraph::FramePointers => "fp",
        CallGraph::Dwarf => "dwarf",
    };
    let frequency = plan.frequency.to_string();
    let pids: Vec<String> = processes.iter().map(u32::to_string).collect();
    let pids = pids.join(",");
    let words = [
        "record",
        "--quiet",
        "--event=cpu-clock",
        "--clockid=CLOCK_MONOTONIC",
        "--freq",
        &frequency,
        "--call-graph",
        call_graph,
        "--pid",
        &pids,
        "--output",
    ];
    let mut arguments: Vec<String> = words.map(str::to_owned).to_vec();
    arguments.push(data.to_string_lossy().into_owned());
    InspectorPlan {
        program: "perf".into(),
        arguments,
        environment: std::collections::BTreeMap::new(),
        stdout: None,
        stderr: None,
    }
}

/// Writes the samples of `data` to `text`, as `perf script -F comm,time,ip,sym` prints them, and the numbers of lost ones.
///
/// # Errors
/// `perf` cannot be started, fails, or does not end in time.
pub fn perf_script(data: &Path, text: File) -> io::Result<()> {
    let options = [
        "script",
        "--ns",
        "--show-lost-events",
        "-F",
        "comm,time,ip,sym",
        "-i",
    ];
    let arguments = options.map(OsString::from).into_iter();
    let arguments: Vec<_> = arguments.chain([data.as_os_str().to_owned()]).collect();
    run_within("perf", &arguments, text, PERF_SCRIPT_LIMIT)
}

fn run_within(program: &str, arguments: &[OsString], output: File, limit: Nanos) -> io::Result<()> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(Stdio::null())
        .spawn()?;
    let descriptor = pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
    let until = clock::now() + limit;
    let has_ended = descriptor.is_ok_and(|descriptor| readable_before(descriptor.as_fd(), until));
    if !has_ended {
        child.kill()?;
    }
    let status = child.wait()?;
    if !has_ended {
        let reason = format!("`{program}` did not end within {limit}");
        return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
    }
    if !status.success() {
        return Err(io::Error::other(format!("`{program}` ended: {status}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    fn run(script: &str, limit: Nanos) -> io::Result<()> {
        let arguments = ["-c", script].map(OsString::from);
        run_within("/bin/sh", &arguments, tempfile::tempfile().unwrap(), limit)
    }

    #[test]
    fn all_processes_of_the_target_are_sampled() {
        let plan = PerfPlan {
            frequency: NonZeroU32::MIN,
            call_graph: CallGraph::FramePointers,
        };
        let inspector = perf_inspector(&plan, &[7, 12], Path::new("perf.data"));
        let mut arguments = inspector.arguments.iter();
        arguments.find(|word| *word == "--pid").unwrap();
        assert_eq!(arguments.next().unwrap(), "7,12");
    }

    #[test]
    fn a_program_that_fails_or_does_not_end_is_an_error() {
        run("true", Nanos::from_secs(60)).unwrap();
        let error = run("exit 3", Nanos::from_secs(60)).unwrap_err();
        assert!(error.to_string().contains("exit status: 3"), "{error}");
        let error = run("sleep 60", Nanos::from_millis(50)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
