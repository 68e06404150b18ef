//! Engines, which start tasks on nodes.
//!
//! An engine decides what is started and not what is complete: it may start a task twice,
//! or call one complete that wrote nothing.

mod local;
mod slurm;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use local::{LocalEngine, LocalTask};
pub use slurm::SlurmEngine;

/// Starts tasks on nodes.
pub trait Engine {
    /// Returns its name in options and results.
    fn name(&self) -> &'static str;

    /// Starts all tasks of `submission`.
    ///
    /// # Errors
    /// [`EngineError`] if it refuses.
    fn submit(&self, submission: &Submission<'_>) -> Result<JobHandle, EngineError>;

    /// Returns the state of each task.
    ///
    /// # Errors
    /// [`EngineError`] if it does not answer.
    fn poll(&self, handle: &JobHandle) -> Result<Vec<TaskState>, EngineError>;

    /// Requests the end of all tasks, which may take a while.
    ///
    /// # Errors
    /// [`EngineError`] if it does not answer.
    fn cancel(&self, handle: &JobHandle) -> Result<(), EngineError>;
}

/// Tasks to start.
#[derive(Clone, Copy, Debug)]
pub struct Submission<'a> {
    /// Name of the job.
    pub job: &'a str,
    /// Number of tasks.
    pub tasks: u16,
    /// The program, at this path on every node.
    pub program: &'a Path,
    /// Its arguments.
    pub arguments: &'a [String],
    /// Folder of the logs.
    pub logs: &'a Path,
}

/// The tasks of a job, as their engine knows them.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct JobHandle {
    /// Name of the engine.
    pub engine: String,
    /// The engine's name of the job.
    pub id: String,
    /// Number of tasks.
    pub tasks: u16,
    /// Folder of the logs.
    pub logs: PathBuf,
    /// The processes, of the engine `local`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<LocalTask>,
}

impl JobHandle {
    /// Returns the file of the log of a task.
    #[must_use]
    pub fn log(&self, task: usize) -> PathBuf {
        self.logs.join(format!("task-{task}.log"))
    }
}

/// State of a task, by its engine.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum TaskState {
    /// It has not begun.
    Waiting,
    /// It runs.
    Running,
    /// It has ended, however.
    Ended,
}

/// An engine that does not work.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A program that cannot be started.
    #[error("start {program}")]
    Start {
        /// The program.
        program: String,
        /// The cause.
        source: std::io::Error,
    },
    /// A command that failed.
    #[error("{command} failed: {output}")]
    Command {
        /// The command.
        command: String,
        /// Its output.
        output: String,
    },
    /// A folder for logs that cannot be made.
    #[error("make {folder}")]
    Logs {
        /// The folder.
        folder: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

/// Makes the folder of the logs.
fn make_logs(folder: &Path) -> Result<(), EngineError> {
    stillwell_capture::make_private(folder).map_err(|source| EngineError::Logs {
        folder: folder.to_owned(),
        source,
    })
}
