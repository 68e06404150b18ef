//! The engine `local`: processes on this machine, for tests and for trying things out.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use serde::{Deserialize, Serialize};
use stillwell_capture::create_private_log;
use stillwell_scope::clock;

use super::{
    Engine, EngineError, JobHandle, Submission, TaskState, make_logs, not_submitted, write_secrets,
};

/// Processes on this machine. They outlive the controller.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalEngine;

/// A process that the engine started.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct LocalTask {
    /// Its process id.
    pub process: i32,
    /// Its start in ticks since the boot: another process may get the same id later.
    pub started: u64,
}

impl Engine for LocalEngine {
    fn name(&self) -> &'static str {
        "local"
    }

    fn submit(&self, submission: &Submission<'_>) -> Result<JobHandle, EngineError> {
        make_logs(submission.logs)?;
        let id = format!("{}-{}", std::process::id(), clock::wall().as_u64());
        let mut handle = JobHandle::new(self.name(), &id, submission.tasks, submission.logs);
        if let Err(error) = start(submission, &mut handle) {
            // Without a handle no other command can end them.
            self.cancel(&handle)?;
            return Err(not_submitted(handle.secrets.as_deref(), error));
        }
        Ok(handle)
    }

    fn poll(&self, handle: &JobHandle) -> Result<Vec<TaskState>, EngineError> {
        let states = handle.processes.iter().map(|task| match task.is_running() {
            true => TaskState::Running,
            false => TaskState::Ended,
        });
        Ok(states.collect())
    }

    fn render(&self, submission: &Submission<'_>) -> Result<String, EngineError> {
        let secrets = submission
            .secrets
            .map(|_| submission.logs.join(super::SECRETS));
        let program = submission.program.display();
        let words = submission.words(secrets).join(" ");
        let tasks = 0..submission.tasks;
        Ok(tasks
            .map(|task| format!("STILLWELL_TASK={task} {program} {words}\n"))
            .collect())
    }

    fn cancel(&self, handle: &JobHandle) -> Result<(), EngineError> {
        for task in handle.processes.iter().filter(|task| task.is_running()) {
            if let Some(pid) = Pid::from_raw(task.process) {
                // It may have ended meanwhile.
                kill_process(pid, Signal::TERM).unwrap_or_default();
            }
        }
        Ok(())
    }
}

/// Starts the tasks, and adds the process of each to `handle`.
fn start(submission: &Submission<'_>, handle: &mut JobHandle) -> Result<(), EngineError> {
    handle.secrets = write_secrets(submission)?;
    let words = submission.words(handle.secrets.clone());
    for task in 0..submission.tasks {
        let failure = |source| EngineError::Start {
            program: submission.program.display().to_string(),
            source,
        };
        let log = create_private_log(&handle.log(task.into())).map_err(failure)?;
        let child = Command::new(submission.program)
            .args(&words)
            .env("STILLWELL_TASK", task.to_string())
            .env("STILLWELL_ATTEMPT", &handle.id)
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(failure)?)
            .stderr(log)
            // A signal for the controller is none for its tasks.
            .process_group(0)
            .spawn()
            .map_err(failure)?;
        let process = child.id().cast_signed();
        let started = read_stat(process).map_or(0, |(_, started)| started);
        handle.processes.push(LocalTask { process, started });
    }
    Ok(())
}

impl LocalTask {
    /// Returns true while the process runs. A child that has ended is reaped.
    fn is_running(self) -> bool {
        if let Some(pid) = Pid::from_raw(self.process) {
            // It is no child of a controller that was started again.
            waitpid(Some(pid), WaitOptions::NOHANG).unwrap_or_default();
        }
        let stat = read_stat(self.process);
        stat.is_some_and(|(state, started)| started == self.started && !matches!(state, 'Z' | 'X'))
    }
}

/// Returns state and start of a process, if there is one.
fn read_stat(process: i32) -> Option<(char, u64)> {
    parse_stat(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

/// Returns the fields 3 and 22; the name before them may hold anything.
fn parse_stat(text: &str) -> Option<(char, u64)> {
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use stillwell_run::Interrupt;
    use stillwell_units::Nanos;

    use super::*;
    use crate::pause::pause;

    /// Returns true while a process has `word` in its command line.
    fn is_running(word: &str) -> bool {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let mut lines = processes.flat_map(|process| fs::read(process.path().join("cmdline")));
        lines.any(|line| String::from_utf8_lossy(&line).contains(word))
    }

    #[test]
    fn a_submission_that_fails_leaves_no_task_and_no_secret() {
        let folder = tempfile::tempdir().unwrap();
        let logs = folder.path().join("logs");
        // The log of the second task cannot be made.
        fs::create_dir_all(logs.join("task-1.log/x")).unwrap();
        let file = folder.path().join("followed").display().to_string();
        fs::write(&file, "").unwrap();
        let words = ["-c", "exec tail -f \"$0\"", &file].map(str::to_owned);
        let submission = Submission {
            job: "a",
            tasks: 2,
            cpus: 1,
            connects_tasks: false,
            program: Path::new("sh"),
            arguments: &words,
            folder: None,
            logs: &logs,
            secrets: Some("hunter2"),
            end_max: Nanos::ZERO,
        };
        LocalEngine.submit(&submission).unwrap_err();
        assert!(logs.join("task-0.log").exists(), "the first task began");
        let mut left = fs::read_dir(&logs).unwrap().flatten();
        assert!(!left.any(|entry| entry.file_name().to_string_lossy().starts_with("secrets")));
        let until = clock::now() + Nanos::from_secs(20);
        while is_running(&file) && clock::now() < until {
            pause(&Interrupt::new(), Nanos::from_millis(20));
        }
        assert!(!is_running(&file), "the first task still runs");
    }

    #[test]
    fn a_process_with_an_odd_name_is_read() {
        let rest: Vec<String> = (4..30).map(|field: u32| field.to_string()).collect();
        let text = format!("12 (a) R (b) S {}", rest.join(" "));
        assert_eq!(parse_stat(&text), Some(('S', 22)));
        assert_eq!(parse_stat("12 (a"), None);
    }
}
