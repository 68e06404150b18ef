//! What a process of a tree does.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use rustix::thread::{NanosleepRelativeResult, nanosleep};

use super::grow::{Growth, Program};

/// The argument by which this program is asked to be a process of a tree.
pub const PROCESS_TREE_WORD: &str = "process-tree";

/// More than any tree is long.
const INPUT_MAX: u64 = 64 << 20;

/// Why a process of a tree could not be what it should.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// It was not told what it is.
    #[error("read what to be from standard input")]
    Input(#[source] io::Error),
    /// It could not become its program.
    #[error("run {}", path.display())]
    Become {
        /// The program.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// It could not start or hear a child.
    #[error("start a child")]
    Child(#[source] io::Error),
    /// Who started it has gone, or it was started by somebody else.
    #[error("its parent is not the one that it was told")]
    Orphaned,
    /// One below it failed.
    #[error("a process below failed")]
    Below,
}

/// Is the process that `input` tells of, with all that is below it; `parent` is the
/// argument that says who started it, as a number. Returns once its children have
/// ended; not at all where it becomes another program.
///
/// # Errors
/// [`ProcessError`]; children that were started are killed with this process.
pub fn be_process(parent: Option<&OsStr>, input: impl Read) -> Result<(), ProcessError> {
    let bound = set_parent_process_death_signal(Some(Signal::KILL));
    bound.map_err(|errno| ProcessError::Child(errno.into()))?;
    // Who started it may have gone before the kernel was asked to watch it: then
    // somebody else is its parent by now.
    let parent = parent.and_then(|own| own.to_str()?.parse().ok());
    if parent.is_none() || parent != getppid().map(|own| own.as_raw_nonzero().get()) {
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
        let ended = child.wait().map_err(ProcessError::Child)?;
        // What a program makes of itself is its own affair, save that it was none.
        is_whole &= match growth.becomes {
            Some(_) => ended.code() != Some(NOT_RUN),
            None => ended.success(),
        };
    }
    if is_whole {
        Ok(())
    } else {
        Err(ProcessError::Below)
    }
}

/// The exit code of a process that could not become its program, as shells have it.
const NOT_RUN: i32 = 127;

impl ProcessError {
    /// What its process ends with.
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

/// No part of a run sleeps here: this process is nothing but one of a tree.
fn sleep(nanos: u64) {
    let mut left = rustix::time::Timespec {
        tv_sec: i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(nanos % 1_000_000_000).unwrap_or(0),
    };
    while let NanosleepRelativeResult::Interrupted(rest) = nanosleep(&left) {
        left = rest;
    }
}
