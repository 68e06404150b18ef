//! One process of a tree.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use stillwell_units::Nanos;

use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use rustix::thread::{NanosleepRelativeResult, nanosleep};

use super::grow::{Growth, Program};

/// The argument that makes this program a process of a tree.
pub const PROCESS_TREE_WORD: &str = "process-tree";

/// More than any tree is long.
const INPUT_MAX: u64 = 64 << 20;

/// An error in a process of a tree.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// Its description is missing or malformed.
    #[error("read the process description from standard input")]
    Input(#[source] io::Error),
    /// It could not become its program.
    #[error("run {}", path.display())]
    Become {
        /// The program.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// A child could not be started or waited for.
    #[error("start a child")]
    Child(#[source] io::Error),
    /// The parent has ended, or is not the expected process.
    #[error("the parent is not the expected process")]
    Orphaned,
    /// One below it failed.
    #[error("a child process failed")]
    Below,
}

/// Runs the process that `input` describes, with all processes below it; `parent` is the expected parent's
/// process id. Returns after its children have ended, and not at all if it becomes another program.
///
/// # Errors
/// [`ProcessError`]; its children are killed with this process.
pub fn be_process(parent: Option<&OsStr>, input: impl Read) -> Result<(), ProcessError> {
    let bound = set_parent_process_death_signal(Some(Signal::KILL));
    bound.map_err(|errno| ProcessError::Child(errno.into()))?;
    // The parent may have ended before the kernel was set to watch it. Then this process has another parent.
    let parent = parent.and_then(|id| id.to_str()?.parse().ok());
    if parent.is_none() || parent != getppid().map(|id| id.as_raw_nonzero().get()) {
        return Err(ProcessError::Orphaned);
    }
    let mut bytes = Vec::new();
    let read = input.take(INPUT_MAX).read_to_end(&mut bytes);
    read.map_err(ProcessError::Input)?;
    let growth: Growth =
        serde_json::from_slice(&bytes).map_err(|error| ProcessError::Input(error.into()))?;
    if let Some(program) = growth.becomes {
        let path = program.path.clone();
        let source = becomes(program);
        return Err(ProcessError::Become { path, source });
    }
    let children: Vec<Child> = growth
        .children
        .iter()
        .map(start)
        .collect::<io::Result<_>>()
        .map_err(ProcessError::Child)?;
    sleep(growth.sleep_nanos);
    let mut is_whole = true;
    for (mut child, growth) in children.into_iter().zip(&growth.children) {
        let status = child.wait().map_err(ProcessError::Child)?;
        is_whole &= is_complete(growth, status);
    }
    if is_whole {
        Ok(())
    } else {
        Err(ProcessError::Below)
    }
}

/// Returns true if all of `growth` ran, given the exit status of its first process. The exit status of a
/// program is ignored; a failed start is not.
pub(super) fn is_complete(growth: &Growth, status: ExitStatus) -> bool {
    match growth.becomes {
        Some(_) => status.code() != Some(NOT_RUN),
        None => status.success(),
    }
}

/// The exit code of a process that could not become its program, as shells have it.
const NOT_RUN: i32 = 127;

impl ProcessError {
    /// Exit code of the process.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Become { .. } => 127,
            Self::Input(_) | Self::Child(_) | Self::Orphaned | Self::Below => 1,
        }
    }
}

/// Returns only where it cannot.
fn becomes(program: Program) -> io::Error {
    Command::new(program.path)
        .args(program.arguments)
        .env_clear()
        .envs(program.environment)
        .stdin(Stdio::null())
        .exec()
}

fn start(growth: &Growth) -> io::Result<Child> {
    let mut child = Command::new("/proc/self/exe")
        .arg0("stillwell")
        .arg(PROCESS_TREE_WORD)
        .arg(std::process::id().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(&growth.bytes()?)?;
    }
    Ok(child)
}

/// Sleeping is allowed here: this process is only a member of a tree.
fn sleep(nanos: u64) {
    let (tv_sec, nanos) = Nanos::new(nanos).split_seconds();
    let mut remaining = rustix::time::Timespec {
        tv_sec,
        tv_nsec: nanos.into(),
    };
    while let NanosleepRelativeResult::Interrupted(unslept) = nanosleep(&remaining) {
        remaining = unslept;
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn a_program_that_has_started_may_end_with_any_status() {
        let with_program = Growth {
            becomes: Some(Program::default()),
            ..Growth::default()
        };
        let with_children = Growth {
            children: vec![with_program.clone()],
            ..Growth::default()
        };
        let exited = |code: i32| ExitStatus::from_raw(code << 8);
        let killed = ExitStatus::from_raw(9);
        for (status, of_program, of_parent) in [
            (exited(0), true, true),
            (exited(1), true, false),
            (exited(NOT_RUN), false, false),
            (killed, true, false),
        ] {
            assert_eq!(is_complete(&with_program, status), of_program, "{status}");
            assert_eq!(is_complete(&with_children, status), of_parent, "{status}");
        }
    }
}
