//! The objects of the engine `kubernetes`: an Indexed Job, and a Secret.

use serde_json::{Map, Value, json};
use stillwell_units::Nanos;

use super::kubernetes::KubernetesOptions;
use super::{EngineError, Submission};

/// Label of the Job and its pods, with the name of the Job.
pub(super) const JOB_LABEL: &str = "stillwell/job";
/// Folder of the secrets in a pod.
const SECRETS_FOLDER: &str = "/run/stillwell";
/// User of generators whose store is a bucket.
const USER: u32 = 65_532;
/// Seconds for which a node may be away before its pods are given up; Kubernetes waits 300.
const AWAY_SECONDS: u32 = 15;
/// Seconds from the end of the run of a pod that is to end to the kill of the pod: its result is stored within them.
const END_SECONDS: u64 = 60;
/// Seconds after which a complete Job is deleted.
const KEPT_SECONDS: u32 = 3_600;

/// Returns the name of the Job: the same one for the same store and job, so a Job is not
/// made twice.
pub(super) fn name(submission: &Submission<'_>) -> String {
    let job: String = submission.job.to_ascii_lowercase().replace('.', "-");
    let job: String = job.chars().take(34).collect();
    let words = submission.arguments.iter().flat_map(|word| word.bytes());
    let hash = words.fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    format!("stillwell-{}-{hash:08x}", job.trim_matches('-'))
}

/// Label of generators of a load, to which the network policy blocks connections.
const GENERATOR: &str = "generator";
/// Label of parts of a run, which connect to each other.
const PART: &str = "part";

/// Returns the labels of an object of the Job `name`.
fn labels(component: &str, name: &str) -> Value {
    json!({
        "app.kubernetes.io/name": "stillwell",
        "app.kubernetes.io/component": component,
        JOB_LABEL: name,
    })
}

/// Returns the Job.
pub(super) fn job(
    options: &KubernetesOptions,
    submission: &Submission<'_>,
) -> Result<Value, EngineError> {
    let name = name(submission);
    let component = if submission.connects_tasks {
        PART
    } else {
        GENERATOR
    };
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), name.clone().into());
    if let Some(namespace) = &options.namespace {
        metadata.insert("namespace".to_owned(), namespace.clone().into());
    }
    metadata.insert("labels".to_owned(), labels(component, &name));
    Ok(json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            "completionMode": "Indexed",
            "completions": submission.tasks,
            "parallelism": submission.tasks,
            // A load that was cut short cannot go on, and another generator need not end for it.
            "backoffLimitPerIndex": 0,
            "podReplacementPolicy": "Failed",
            "ttlSecondsAfterFinished": KEPT_SECONDS,
            "template": {
                "metadata": {
                    "labels": labels(component, &name),
                    "annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"},
                },
                "spec": pod(options, submission, &name)?,
            },
        },
    }))
}

/// Returns the pod of a generator: one for each node, with CPUs of its own.
fn pod(
    options: &KubernetesOptions,
    submission: &Submission<'_>,
    name: &str,
) -> Result<Value, EngineError> {
    let user = user(submission);
    let away = |key: &str| {
        json!({
            "key": format!("node.kubernetes.io/{key}"), "operator": "Exists",
            "effect": "NoExecute", "tolerationSeconds": AWAY_SECONDS,
        })
    };
    let mut tolerations = vec![away("not-ready"), away("unreachable")];
    tolerations.extend(options.tolerations.iter().map(|(key, value)| match value {
        Some(value) => json!({"key": key, "operator": "Equal", "value": value}),
        None => json!({"key": key, "operator": "Exists"}),
    }));
    let (volumes, mounts) = volumes(options, submission, name)?;
    let end_seconds =
        END_SECONDS.saturating_add(submission.end_max.as_u64().div_ceil(Nanos::SECOND.as_u64()));
    let mut pod = json!({
        "restartPolicy": "Never",
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "terminationGracePeriodSeconds": end_seconds,
        "securityContext": {
            "runAsUser": user,
            "runAsGroup": user,
            "runAsNonRoot": user != 0,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "tolerations": tolerations,
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "stillwell"}},
        }]}},
        "containers": [container(options, submission, mounts)],
        "volumes": volumes,
    });
    if !options.node_selector.is_empty() {
        let selector = options.node_selector.iter();
        let selector = selector.map(|(key, value)| (key.clone(), value.clone().into()));
        pod["nodeSelector"] = Value::Object(selector.collect());
    }
    if let Some(secret) = &options.pull_secret {
        pod["imagePullSecrets"] = json!([{"name": secret}]);
    }
    Ok(pod)
}

/// Returns the user of generators. Objects of a folder belong to the user of the controller.
fn user(submission: &Submission<'_>) -> u32 {
    match submission.folder {
        Some(_) => rustix::process::geteuid().as_raw(),
        None => USER,
    }
}

fn container(
    options: &KubernetesOptions,
    submission: &Submission<'_>,
    mounts: Vec<Value>,
) -> Value {
    let cpu = options.cpu.clone();
    // One more than its threads: a limit that the load reaches stops it for milliseconds.
    let cpu = cpu.unwrap_or_else(|| (u32::from(submission.cpus) + 1).to_string());
    let resources = json!({"cpu": cpu, "memory": options.memory});
    let field = |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
    let secrets = submission
        .secrets
        .map(|_| format!("{SECRETS_FOLDER}/{}", super::SECRETS).into());
    let mut container = json!({
        "name": "generator",
        "image": options.image,
        "args": submission.words(secrets),
        "env": [
            field("STILLWELL_POD", "metadata.uid"),
            field("STILLWELL_NODE", "spec.nodeName"),
            field("STILLWELL_ADDRESS", "status.podIP"),
        ],
        // Equal requests and limits: the pod is `Guaranteed`.
        "resources": {"requests": resources, "limits": resources},
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": mounts,
    });
    if let Some(secret) = &options.store_secret {
        container["envFrom"] = json!([{"secretRef": {"name": secret}}]);
    }
    if let Some(policy) = &options.pull_policy {
        container["imagePullPolicy"] = policy.clone().into();
    }
    container
}

type Volumes = (Vec<Value>, Vec<Value>);

fn volumes(
    options: &KubernetesOptions,
    submission: &Submission<'_>,
    name: &str,
) -> Result<Volumes, EngineError> {
    let mut volumes = vec![json!({"name": "tmp", "emptyDir": {}})];
    let mut mounts = vec![json!({"name": "tmp", "mountPath": "/tmp"})];
    if let Some(folder) = submission.folder {
        let folder = folder.display().to_string();
        volumes.push(match &options.claim {
            Some(claim) => {
                json!({"name": "store", "persistentVolumeClaim": {"claimName": claim}})
            }
            None if options.host_path => {
                json!({"name": "store", "hostPath": {"path": folder, "type": "Directory"}})
            }
            None => {
                return Err(EngineError::Option {
                    word: "--claim=NAME".to_owned(),
                    why: "a store that is a folder needs the claim of a volume that holds it, or \
                          --host-path if every node has the folder; s3:// needs neither"
                        .to_owned(),
                });
            }
        });
        mounts.push(json!({"name": "store", "mountPath": folder}));
    }
    if submission.secrets.is_some() {
        let mode = if user(submission) == 0 { 0o400 } else { 0o444 };
        volumes.push(json!({
            "name": "secrets", "secret": {"secretName": name, "defaultMode": mode},
        }));
        mounts.push(json!({"name": "secrets", "mountPath": SECRETS_FOLDER, "readOnly": true}));
    }
    Ok((volumes, mounts))
}

/// Returns the Secret of a Job, which Kubernetes deletes with it.
pub(super) fn secret(name: &str, uid: &str, secrets: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "labels": labels(GENERATOR, name),
            "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid}
            ],
        },
        "stringData": {super::SECRETS: secrets},
    })
}
