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
use stillwell_scope::clock;
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

    /// Deletes the secrets that any controller gave to the tasks of a job; no task needs them any more.
    ///
    /// # Errors
    /// [`EngineError`] if it cannot.
    fn forget_secrets(&self, handle: &JobHandle) -> Result<(), EngineError> {
        remove_all_secrets(&handle.logs)
    }

    /// Deletes the secrets that the tasks of `handle` alone were given by this controller; the job may have others.
    ///
    /// # Errors
    /// [`EngineError`] if it cannot.
    fn withdraw_secrets(&self, handle: &JobHandle) -> Result<(), EngineError> {
        handle.secrets.as_deref().map_or(Ok(()), remove_secrets)
    }
}

/// Name of the file of secrets, where it is rendered or alone in its folder.
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
    /// Name of the cluster that has the job, of the engine `slurm` with several clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// File of secrets that this process wrote for the tasks, if it did.
    #[serde(skip)]
    pub secrets: Option<PathBuf>,
    /// True if `submit` found the tasks: another controller of the same job had started them.
    #[serde(skip)]
    pub is_others: bool,
}

impl JobHandle {
    /// Returns the handle of a job that this process submitted, without what only some engines keep.
    pub(crate) fn new(engine: &str, id: &str, tasks: u16, logs: &Path) -> Self {
        Self {
            engine: engine.to_owned(),
            id: id.to_owned(),
            tasks,
            logs: logs.to_owned(),
            processes: Vec::new(),
            options: Vec::new(),
            cluster: None,
            secrets: None,
            is_others: false,
        }
    }

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

impl EngineError {
    /// Returns false if a submission that failed with this error never reached the engine.
    pub(crate) const fn may_leave_tasks(&self) -> bool {
        !matches!(
            self,
            Self::NoProgram(_) | Self::Option { .. } | Self::Logs { .. }
        )
    }
}

/// Makes the folder of the logs.
fn make_logs(folder: &Path) -> Result<(), EngineError> {
    stillwell_capture::make_private(folder).map_err(|source| EngineError::Logs {
        folder: folder.to_owned(),
        source,
    })
}

/// Writes the secrets of tasks to a file that their user alone can read, and returns it. No other submission has its
/// name: another controller of the same job deletes its own file and not this one.
fn write_secrets(submission: &Submission<'_>) -> Result<Option<PathBuf>, EngineError> {
    let Some(secrets) = submission.secrets else {
        return Ok(None);
    };
    let (process, now) = (std::process::id(), clock::wall().as_u64());
    let file = submission
        .logs
        .join(format!("secrets-{process}-{now}.json"));
    if let Err(source) = stillwell_capture::write_private(&file, secrets.as_bytes()) {
        let error = EngineError::File {
            file: file.clone(),
            source,
        };
        return Err(not_submitted(Some(&file), error));
    }
    Ok(Some(file))
}

/// Removes a file of secrets, if it is there.
fn remove_secrets(file: &Path) -> Result<(), EngineError> {
    match std::fs::remove_file(file) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => Err(EngineError::File {
            file: file.to_owned(),
            source,
        }),
        _ => Ok(()),
    }
}

/// Removes all files of secrets beside logs, also those of controllers that were killed.
fn remove_all_secrets(logs: &Path) -> Result<(), EngineError> {
    let failure = |source| EngineError::File {
        file: logs.to_owned(),
        source,
    };
    let entries = match std::fs::read_dir(logs) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(failure)?,
    };
    for entry in entries {
        let entry = entry.map_err(failure)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("secrets") && name.ends_with(".json") {
            remove_secrets(&entry.path())?;
        }
    }
    Ok(())
}

/// Removes the secrets of a submission that failed, and returns the error to report: secrets that are left are the
/// worse failure.
fn not_submitted(secrets: Option<&Path>, error: EngineError) -> EngineError {
    secrets
        .and_then(|file| remove_secrets(file).err())
        .unwrap_or(error)
}
