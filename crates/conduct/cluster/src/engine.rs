//! Engines, which start tasks on nodes.
//!
//! An engine decides what is started and not what is complete: it may start a task twice,
//! or call one complete that wrote nothing.

mod command;
mod kubernetes;
mod local;
mod manifest;
mod slurm;
mod yaml;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stillwell_units::Nanos;

pub use kubernetes::{KubernetesEngine, KubernetesOptions};
pub use local::{LocalEngine, LocalTask};
pub use slurm::SlurmEngine;

/// Starts tasks on nodes.
pub trait Engine {
    /// Returns its name in options and results.
    fn name(&self) -> &'static str;

    /// Starts all tasks of `submission`.
    ///
    /// # Errors
    /// [`EngineError`] if it refuses; tasks that it has started end, and secrets are deleted.
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

    /// Returns the text with which it would start the tasks.
    ///
    /// # Errors
    /// [`EngineError`] if it would refuse.
    fn render(&self, submission: &Submission<'_>) -> Result<String, EngineError>;

    /// Returns the reason why a task does not begin, if there is one.
    ///
    /// # Errors
    /// [`EngineError`] if it does not answer.
    fn waiting(&self, _handle: &JobHandle) -> Result<Option<String>, EngineError> {
        Ok(None)
    }

    /// Brings the logs of the tasks to the folder of the logs, if they are not there.
    ///
    /// # Errors
    /// [`EngineError`] if it does not answer.
    fn save_logs(&self, _handle: &JobHandle) -> Result<(), EngineError> {
        Ok(())
    }

    /// Deletes the secrets that the tasks were given; every task has read them.
    ///
    /// # Errors
    /// [`EngineError`] if it cannot.
    fn forget_secrets(&self, handle: &JobHandle) -> Result<(), EngineError> {
        remove_secrets(&handle.logs)
    }
}

/// Name of the file of secrets.
const SECRETS: &str = "secrets.json";

/// Returns the engine that started the tasks of `handle`.
///
/// # Errors
/// [`EngineError`] for options that it does not have.
pub fn engine_of(handle: &JobHandle) -> Result<Box<dyn Engine>, EngineError> {
    Ok(match handle.engine.as_str() {
        "slurm" => Box::new(SlurmEngine {
            options: handle.options.clone(),
        }),
        "kubernetes" => Box::new(KubernetesEngine {
            options: KubernetesOptions::parse(&handle.options)?,
        }),
        _ => Box::new(LocalEngine),
    })
}

/// Tasks to start.
#[derive(Clone, Copy, Debug)]
pub struct Submission<'a> {
    /// Name of the job.
    pub job: &'a str,
    /// Number of tasks.
    pub tasks: u16,
    /// CPUs that each task uses.
    pub cpus: u16,
    /// True if tasks connect to each other, as the parts of a run do.
    pub connects_tasks: bool,
    /// The program, at this path on every node.
    pub program: &'a Path,
    /// Its arguments.
    pub arguments: &'a [String],
    /// The folder of the store, if it is one.
    pub folder: Option<&'a Path>,
    /// Folder of the logs.
    pub logs: &'a Path,
    /// Secrets for the tasks, which get them as a file.
    pub secrets: Option<&'a str>,
    /// Longest time from the request to end a task to the end of its run; its result is stored after that.
    pub end_max: Nanos,
}

impl Submission<'_> {
    /// Returns the arguments of a task whose secrets are in this file.
    fn words(&self, secrets: Option<PathBuf>) -> Vec<String> {
        let secrets = secrets.map(|file| format!("--secrets={}", file.display()));
        self.arguments.iter().cloned().chain(secrets).collect()
    }
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
    /// Options of the engine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

impl JobHandle {
    /// Returns the file of the log of a task.
    #[must_use]
    pub fn log(&self, task: usize) -> PathBuf {
        self.logs.join(format!("task-{task}.log"))
    }
}

/// State of a task, by its engine.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TaskState {
    /// It has not begun.
    Waiting,
    /// It runs.
    Running,
    /// It has ended, however.
    Ended,
    /// Its node does not answer. The task may go on there.
    NodeLost,
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
    /// A program that is not there.
    #[error("{0} is not on the PATH; this engine needs it")]
    NoProgram(String),
    /// An option that is none.
    #[error("--engine-option={word}: {why}")]
    Option {
        /// The option.
        word: String,
        /// The reason.
        why: String,
    },
    /// An answer that is none.
    #[error("read the output of {command}")]
    Answer {
        /// The command.
        command: &'static str,
        /// The cause.
        source: serde_json::Error,
    },
    /// A file beside the logs.
    #[error("write or remove {file}")]
    File {
        /// The file.
        file: PathBuf,
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

/// Writes the secrets of tasks to a file that their user alone can read, and returns it.
fn write_secrets(submission: &Submission<'_>) -> Result<Option<PathBuf>, EngineError> {
    let Some(secrets) = submission.secrets else {
        return Ok(None);
    };
    let file = submission.logs.join(SECRETS);
    match stillwell_capture::write_private(&file, secrets.as_bytes()) {
        Ok(()) => Ok(Some(file)),
        Err(source) => Err(EngineError::File { file, source }),
    }
}

/// Removes the file of secrets, if there is one.
fn remove_secrets(logs: &Path) -> Result<(), EngineError> {
    let file = logs.join(SECRETS);
    match std::fs::remove_file(&file) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(EngineError::File { file, source })
        }
        _ => Ok(()),
    }
}

/// Removes the secrets of a submission that failed, and returns the error to report: secrets that are left are the
/// worse failure.
fn not_submitted(submission: &Submission<'_>, error: EngineError) -> EngineError {
    remove_secrets(submission.logs).err().unwrap_or(error)
}
