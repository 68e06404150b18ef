//! The engine `kubernetes`: an Indexed Job, by `kubectl`.

use std::path::PathBuf;

use serde::Deserialize;

use super::manifest::{self, JOB_LABEL};
use super::{Engine, EngineError, JobHandle, Submission, TaskState, command, make_logs, yaml};

/// Annotation of a pod with its index.
const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// Lines of a log that are kept.
const LOG_LINES_MAX: u32 = 10_000;

/// Kubernetes, by `kubectl` with its contexts and logins.
#[derive(Clone, Debug, Default)]
pub struct KubernetesEngine {
    /// Its options.
    pub options: KubernetesOptions,
}

/// Options of the engine.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct KubernetesOptions {
    /// The options as typed.
    words: Vec<String>,
    /// Options that every call of `kubectl` has.
    global: Vec<String>,
    pub(super) image: String,
    pub(super) pull_policy: Option<String>,
    pub(super) pull_secret: Option<String>,
    pub(super) namespace: Option<String>,
    pub(super) cpu: Option<String>,
    pub(super) memory: String,
    pub(super) node_selector: Vec<(String, String)>,
    pub(super) tolerations: Vec<(String, Option<String>)>,
    pub(super) store_secret: Option<String>,
    pub(super) claim: Option<String>,
    pub(super) host_path: bool,
}

/// Names of the options, for messages.
const ACCEPTED: &str = "--image, --namespace, --context, --kubeconfig, --cpu, --memory, \
    --node-selector, --toleration, --store-secret, --claim, --host-path, --pull-policy, \
    --pull-secret";

impl KubernetesOptions {
    /// Reads options such as `--image=NAME`.
    ///
    /// # Errors
    /// [`EngineError::Option`] for one that is none, or if there is no image.
    pub fn parse(words: &[String]) -> Result<Self, EngineError> {
        let mut options = Self {
            words: words.to_vec(),
            memory: "1Gi".to_owned(),
            ..Self::default()
        };
        for word in words {
            let refused = |why: &str| EngineError::Option {
                word: word.clone(),
                why: why.to_owned(),
            };
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            if value.is_empty() && name != "--host-path" {
                return Err(refused("write --NAME=VALUE"));
            }
            let text = value.to_owned();
            match name {
                "--image" => options.image = text,
                "--namespace" => options.namespace = Some(text),
                "--context" | "--kubeconfig" => {}
                "--cpu" => options.cpu = Some(text),
                "--memory" => options.memory = text,
                "--node-selector" => {
                    let (key, value) = value
                        .split_once('=')
                        .ok_or_else(|| refused("write --node-selector=LABEL=VALUE"))?;
                    options
                        .node_selector
                        .push((key.to_owned(), value.to_owned()));
                }
                "--toleration" => {
                    let pair = value.split_once('=');
                    options.tolerations.push(match pair {
                        Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
                        None => (text, None),
                    });
                }
                "--store-secret" => options.store_secret = Some(text),
                "--claim" => options.claim = Some(text),
                "--host-path" if word.contains('=') => {
                    return Err(refused("write --host-path without a value"));
                }
                "--host-path" => options.host_path = true,
                "--pull-policy" => options.pull_policy = Some(text),
                "--pull-secret" => options.pull_secret = Some(text),
                _ => return Err(refused(&format!("the accepted options are {ACCEPTED}"))),
            }
            if matches!(name, "--namespace" | "--context" | "--kubeconfig") {
                options.global.push(word.clone());
            }
        }
        if options.image.is_empty() {
            return Err(EngineError::Option {
                word: "--image=NAME".to_owned(),
                why: "the engine kubernetes needs an image with Stillwell of this version"
                    .to_owned(),
            });
        }
        Ok(options)
    }
}

impl Engine for KubernetesEngine {
    fn name(&self) -> &'static str {
        "kubernetes"
    }

    fn submit(&self, submission: &Submission<'_>) -> Result<JobHandle, EngineError> {
        make_logs(submission.logs)?;
        let name = manifest::name(submission);
        let job = yaml::render(&manifest::job(&self.options, submission)?);
        // The name holds store and job, so a Job that is there is this one, of another controller.
        let is_ours = self.create(&job)?;
        if let Some(secrets) = submission.secrets
            && let Err(error) = self.create_secret(&name, secrets)
        {
            // Without a handle no other command can end it. A Job that is left is the worse failure.
            let left = is_ours.then(|| self.delete("job", &name).err()).flatten();
            return Err(left.unwrap_or(error));
        }
        Ok(JobHandle {
            options: self.options.words.clone(),
            is_others: !is_ours,
            ..JobHandle::new(self.name(), &name, submission.tasks, submission.logs)
        })
    }

    fn poll(&self, handle: &JobHandle) -> Result<Vec<TaskState>, EngineError> {
        Ok(states(&self.objects(handle)?, handle.tasks))
    }

    fn cancel(&self, handle: &JobHandle) -> Result<(), EngineError> {
        // They are deleted with the pods. The end matters more.
        drop(self.save_logs(handle));
        self.delete("job", &handle.id)
    }

    fn render(&self, submission: &Submission<'_>) -> Result<String, EngineError> {
        Ok(yaml::render(&manifest::job(&self.options, submission)?))
    }

    fn waiting(&self, handle: &JobHandle) -> Result<Option<String>, EngineError> {
        Ok(self.objects(handle)?.items.iter().find_map(Object::waiting))
    }

    fn save_logs(&self, handle: &JobHandle) -> Result<(), EngineError> {
        let selector = selector(handle);
        let tail = format!("--tail={LOG_LINES_MAX}");
        let most = format!("--max-log-requests={}", handle.tasks);
        let words = [
            "logs",
            &selector,
            "--prefix",
            "--ignore-errors",
            &tail,
            &most,
        ];
        let output = self.kubectl(&words, "")?;
        for (task, log) in logs(&output, handle).into_iter().enumerate() {
            save_log(handle.log(task), &log)?;
        }
        Ok(())
    }

    fn forget_secrets(&self, handle: &JobHandle) -> Result<(), EngineError> {
        self.delete("secret", &handle.id)
    }

    fn withdraw_secrets(&self, handle: &JobHandle) -> Result<(), EngineError> {
        // A Secret has the name of its Job.
        self.forget_secrets(handle)
    }
}

impl KubernetesEngine {
    fn kubectl(&self, words: &[&str], input: &str) -> Result<String, EngineError> {
        let global = self.options.global.iter().cloned();
        let bound = ["--request-timeout=30s".to_owned()];
        let words = words.iter().map(|word| (*word).to_owned());
        let words: Vec<String> = global.chain(bound).chain(words).collect();
        command::run("kubectl", &words, input)
    }

    /// Creates an object, unless it is there. Returns true if it was created.
    fn create(&self, object: &str) -> Result<bool, EngineError> {
        match self.kubectl(&["create", "--filename=-"], object) {
            Err(EngineError::Command { output, .. }) if output.contains("AlreadyExists") => {
                Ok(false)
            }
            created => created.map(|_| true),
        }
    }

    /// Creates the Secret of a Job.
    fn create_secret(&self, job: &str, secrets: &str) -> Result<(), EngineError> {
        let words = ["get", "job", job, "--output=jsonpath={.metadata.uid}"];
        let uid = self.kubectl(&words, "")?;
        let secret = manifest::secret(job, &uid, secrets).to_string();
        self.create(&secret).map(drop)
    }

    /// Deletes an object, if it is there.
    fn delete(&self, kind: &str, name: &str) -> Result<(), EngineError> {
        let words = ["delete", kind, name, "--ignore-not-found", "--wait=false"];
        self.kubectl(&words, "").map(drop)
    }

    /// Returns the Job and its pods.
    fn objects(&self, handle: &JobHandle) -> Result<Objects, EngineError> {
        let words = ["get", "jobs,pods", &selector(handle), "--output=json"];
        parse(&self.kubectl(&words, "")?)
    }
}

fn selector(handle: &JobHandle) -> String {
    format!("--selector={JOB_LABEL}={}", handle.id)
}

/// The parts of Kubernetes' answer that are read.
#[derive(Debug, Default, Deserialize)]
struct Objects {
    items: Vec<Object>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Object {
    kind: String,
    metadata: Metadata,
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    annotations: std::collections::BTreeMap<String, String>,
    deletion_timestamp: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    phase: String,
    conditions: Vec<Condition>,
    container_statuses: Vec<ContainerStatus>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    reason: String,
    message: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerStatus {
    state: ContainerState,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerState {
    waiting: Option<Condition>,
}

fn parse(answer: &str) -> Result<Objects, EngineError> {
    serde_json::from_str(answer).map_err(|source| EngineError::Answer {
        command: "kubectl get",
        source,
    })
}

impl Object {
    fn has(&self, kind: &str) -> bool {
        let mut conditions = self.status.conditions.iter();
        conditions.any(|condition| condition.kind == kind && condition.status == "True")
    }

    /// Returns the index and the state of a pod.
    fn task(&self) -> Option<(usize, TaskState)> {
        let index = self.metadata.annotations.get(INDEX)?.parse().ok()?;
        let is_evicted = self.metadata.deletion_timestamp.is_some()
            && self.status.conditions.iter().any(|condition| {
                condition.kind == "DisruptionTarget" && condition.reason == "DeletionByTaintManager"
            });
        let state = match self.status.phase.as_str() {
            "Succeeded" | "Failed" => TaskState::Ended,
            _ if is_evicted => TaskState::NodeLost,
            "Running" => TaskState::Running,
            _ => TaskState::Waiting,
        };
        Some((index, state))
    }

    /// Returns the reason why a pod does not run.
    fn waiting(&self) -> Option<String> {
        if self.status.phase != "Pending" {
            return None;
        }
        let mut states = self.status.container_statuses.iter();
        let container = states.find_map(|status| status.state.waiting.as_ref());
        let is_unscheduled = |condition: &&Condition| {
            condition.kind == "PodScheduled" && condition.status == "False"
        };
        let pod = self.status.conditions.iter().find(is_unscheduled);
        let why = container.or(pod)?;
        let separator = if why.message.is_empty() { "" } else { ": " };
        Some(format!("{}{separator}{}", why.reason, why.message))
    }
}

/// Returns the state of each task. One without a pod waits for it until its Job has ended.
fn states(objects: &Objects, tasks: u16) -> Vec<TaskState> {
    let mut jobs = objects.items.iter().filter(|object| object.kind == "Job");
    let is_over = |job: &Object| {
        let ends = ["Complete", "Failed", "SuccessCriteriaMet", "FailureTarget"];
        ends.iter().any(|end| job.has(end))
    };
    let without = match jobs.next() {
        Some(job) if !is_over(job) => TaskState::Waiting,
        _ => TaskState::Ended,
    };
    let mut states: Vec<Option<TaskState>> = vec![None; tasks.into()];
    for (index, state) in objects.items.iter().filter_map(Object::task) {
        if let Some(place) = states.get_mut(index) {
            let rank = |state: &TaskState| match state {
                TaskState::Ended | TaskState::NodeLost => 0,
                TaskState::Waiting => 1,
                TaskState::Running => 2,
            };
            // Of several pods the one that does most counts.
            if place
                .as_ref()
                .is_none_or(|before| rank(before) < rank(&state))
            {
                *place = Some(state);
            }
        }
    }
    let states = states.into_iter();
    states.map(|state| state.unwrap_or(without)).collect()
}

/// Returns the log of each task from lines such as `[pod/NAME-3-x7k2p/generator] TEXT`.
fn logs(output: &str, handle: &JobHandle) -> Vec<String> {
    let mut logs = vec![String::new(); handle.tasks.into()];
    let begin = format!("[pod/{}-", handle.id);
    for line in output.lines() {
        let Some((pod, text)) = line
            .strip_prefix(&begin)
            .and_then(|rest| rest.split_once("] "))
        else {
            continue;
        };
        let index = pod
            .split_once('-')
            .and_then(|(index, _)| index.parse::<usize>().ok());
        if let Some(log) = index.and_then(|index| logs.get_mut(index)) {
            log.push_str(text);
            log.push('\n');
        }
    }
    logs
}

/// Writes the log of a task. An empty one does not replace a log that was saved while its pod was there.
fn save_log(file: PathBuf, log: &str) -> Result<(), EngineError> {
    if log.is_empty() && file.exists() {
        return Ok(());
    }
    let written = stillwell_capture::replace_private(&file, |to| {
        std::io::Write::write_all(to, log.as_bytes())
    });
    written.map_err(|source| EngineError::File { file, source })
}

#[cfg(test)]
mod tests;
