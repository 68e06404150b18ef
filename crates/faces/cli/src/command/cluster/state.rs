//! The state of a job, for readers and programs.

use std::fmt::Write as _;

use serde::Serialize;
use stillwell_cluster::{GeneratorProgress, JobStatus};

/// Names the shape of [`JobState`]; keys are added within a version and never removed.
const SCHEMA: &str = "stillwell/cluster-status/v1";

/// State of a job.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct JobState {
    schema: &'static str,
    pub(crate) job: String,
    /// Name of the engine; `None` if nothing was submitted.
    pub(crate) engine: Option<String>,
    /// The engine's name of the job.
    pub(crate) engine_job: Option<String>,
    /// Generators, tasks of a run, or experiments.
    pub(crate) tasks: Vec<TaskStateRow>,
    /// Reason of an early end.
    pub(crate) ended_early: Option<String>,
}

/// State of a task.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct TaskStateRow {
    pub(crate) name: String,
    /// `waiting`, `ready`, `sending`, `running`, `complete` or `failed`.
    pub(crate) state: &'static str,
    pub(crate) node: Option<String>,
    /// Reason of a failure.
    pub(crate) reason: Option<String>,
}

impl JobState {
    pub(super) fn of(job: &str, status: &JobStatus) -> Self {
        let tasks = status.generators.iter().enumerate();
        let handle = status.handle.as_ref();
        Self {
            schema: SCHEMA,
            job: job.to_owned(),
            engine: handle.map(|handle| handle.engine.clone()),
            engine_job: handle.map(|handle| handle.id.clone()),
            tasks: tasks
                .map(|(index, progress)| task(index, progress, status))
                .collect(),
            ended_early: status.abort.clone(),
        }
    }

    /// Returns a line for each task.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        if let (Some(engine), Some(id)) = (&self.engine, &self.engine_job) {
            // A text takes every byte.
            writeln!(text, "{}: {engine} {id}", self.job).unwrap_or_default();
        }
        for task in &self.tasks {
            writeln!(text, "{}: {}", task.name, task.line()).unwrap_or_default();
        }
        if let Some(why) = &self.ended_early {
            writeln!(text, "ended early: {why}").unwrap_or_default();
        }
        text
    }
}

impl TaskStateRow {
    /// Returns the state with its node or its reason.
    pub(crate) fn line(&self) -> String {
        let node = self.node.iter().map(|node| format!(" on {node}"));
        let reason = self.reason.iter().map(|reason| format!(": {reason}"));
        let more: String = node.chain(reason).collect();
        format!("{}{more}", self.state)
    }
}

fn task(index: usize, progress: &GeneratorProgress, status: &JobStatus) -> TaskStateRow {
    let role = u16::try_from(index).ok();
    let role = role.and_then(|task| status.roles?.role(task));
    let experiment = status
        .experiments
        .as_ref()
        .and_then(|names| names.get(index));
    let is_load = status.roles.is_none() && status.experiments.is_none();
    let state = match progress {
        GeneratorProgress::Waiting => "waiting",
        GeneratorProgress::Ready(_) if status.is_started && !is_load => "running",
        GeneratorProgress::Ready(_) if status.is_started => "sending",
        GeneratorProgress::Ready(_) => "ready",
        GeneratorProgress::Complete => "complete",
        GeneratorProgress::Failed(_) => "failed",
    };
    TaskStateRow {
        name: match (role, experiment) {
            (Some(role), _) => role.name(),
            (_, Some(experiment)) => format!("experiment {experiment}"),
            _ => format!("generator {index}"),
        },
        state,
        node: match progress {
            GeneratorProgress::Ready(node) => Some(node.clone()),
            _ => None,
        },
        reason: match progress {
            GeneratorProgress::Failed(why) => Some(why.clone()),
            _ => None,
        },
    }
}
