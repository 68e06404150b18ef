use std::path::Path;

use serde_json::{Value, json};
use stillwell_units::Nanos;

use super::*;

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn render(
    options: &[&str],
    folder: Option<&str>,
    secrets: Option<&str>,
) -> Result<Value, EngineError> {
    let options = KubernetesOptions::parse(&words(options))?;
    let arguments = words(&["cluster", "generate", "--store=s3://b/p", "--job=Load-1.a"]);
    let submission = Submission {
        folder: folder.map(Path::new),
        secrets,
        ..submission(&arguments)
    };
    manifest::job(&options, &submission)
}

/// Three generators of a load.
fn submission(arguments: &[String]) -> Submission<'_> {
    Submission {
        job: "Load-1.a",
        tasks: 3,
        cpus: 2,
        connects_tasks: false,
        program: Path::new("/bin/stillwell"),
        arguments,
        folder: None,
        logs: Path::new("/logs"),
        secrets: None,
        end_max: Nanos::from_secs(30),
    }
}

/// The policy blocks connections to generators; the target and the sinks of a run were selected too.
#[test]
fn the_network_policy_does_not_select_the_parts_of_a_run() {
    let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../packaging/kubernetes");
    let policy = std::fs::read_to_string(packaging.join("network-policy.yaml")).unwrap();
    assert!(policy.contains("app.kubernetes.io/component: generator\n"));
    let options = KubernetesOptions::parse(&words(&["--image=i"])).unwrap();
    for (connects_tasks, component) in [(false, "generator"), (true, "part")] {
        let submission = Submission {
            connects_tasks,
            ..submission(&[])
        };
        let job = manifest::job(&options, &submission).unwrap();
        let labels = &job["spec"]["template"]["metadata"]["labels"];
        assert_eq!(labels["app.kubernetes.io/component"], component);
    }
}

#[test]
fn a_generator_has_a_node_of_its_own_and_cpus_of_its_own() {
    let job = render(&["--image=i:1"], None, None).unwrap();
    let name = job["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("stillwell-load-1-a-"), "{name}");
    let spec = &job["spec"];
    assert_eq!(spec["completions"], 3);
    assert_eq!(spec["podReplacementPolicy"], "Failed");
    assert_eq!(spec["backoffLimitPerIndex"], 0);
    let pod = &spec["template"]["spec"];
    let rule =
        &pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0];
    assert_eq!(rule["topologyKey"], "kubernetes.io/hostname");
    let container = &pod["containers"][0];
    let resources = &container["resources"];
    assert_eq!(resources["requests"], resources["limits"]);
    assert_eq!(resources["limits"]["cpu"], "3");
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["automountServiceAccountToken"], false);
    assert_eq!(pod["tolerations"][1]["tolerationSeconds"], 15);
}

#[test]
fn secrets_are_in_no_spec() {
    let job = render(&["--image=i", "--store-secret=keys"], None, Some("hunter2")).unwrap();
    let text = job.to_string();
    assert!(!text.contains("hunter2"), "{text}");
    assert!(
        text.contains("--secrets=/run/stillwell/secrets.json"),
        "{text}"
    );
    let container = &job["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["envFrom"][0]["secretRef"]["name"], "keys");
    let secret = manifest::secret("a", "u", "hunter2");
    assert_eq!(secret["metadata"]["ownerReferences"][0]["uid"], "u");
}

#[test]
fn a_store_that_is_a_folder_needs_a_volume() {
    let refused = render(&["--image=i"], Some("/store"), None).unwrap_err();
    assert!(refused.to_string().contains("--host-path"), "{refused}");
    let job = render(&["--image=i", "--claim=c"], Some("/store"), None).unwrap();
    let volume = &job["spec"]["template"]["spec"]["volumes"][1];
    assert_eq!(volume["persistentVolumeClaim"]["claimName"], "c");
}

#[test]
fn options_that_are_none_are_refused() {
    for options in [
        &["--image=i", "--token=x"][..],
        &["--image"],
        &["--cpu=1"],
        // They turned the option on.
        &["--image=i", "--host-path=no"],
        &["--image=i", "--host-path=/other"],
        &["--image=i", "--host-path="],
        &[],
    ] {
        assert!(
            KubernetesOptions::parse(&words(options)).is_err(),
            "{options:?}"
        );
    }
    let options = [
        "--image=i",
        "--node-selector=pool=bench",
        "--toleration=bench",
        "--context=lab",
        "--host-path",
    ];
    let options = KubernetesOptions::parse(&words(&options)).unwrap();
    assert_eq!(
        options.node_selector,
        [("pool".to_owned(), "bench".to_owned())]
    );
    assert_eq!(options.tolerations, [("bench".to_owned(), None)]);
    assert_eq!(options.global, ["--context=lab"]);
    assert!(options.host_path);
}

fn pod(index: &str, status: &Value) -> Value {
    json!({"kind": "Pod", "metadata": {"annotations": {INDEX: index}}, "status": status})
}

fn states_of(items: &[Value], tasks: u16) -> Vec<TaskState> {
    states(&parse(&json!({"items": items}).to_string()).unwrap(), tasks)
}

#[test]
fn a_task_without_a_pod_waits_while_its_job_goes_on() {
    let running = pod("0", &json!({"phase": "Running"}));
    let job = json!({"kind": "Job", "status": {}});
    let expected = [TaskState::Running, TaskState::Waiting];
    assert_eq!(states_of(&[running.clone(), job], 2), expected);
    let over = json!({"kind": "Job", "status": {"conditions": [{"type": "FailureTarget", "status": "True"}]}});
    let expected = [TaskState::Running, TaskState::Ended];
    assert_eq!(states_of(&[running, over], 2), expected);
    assert_eq!(states_of(&[], 1), [TaskState::Ended], "the Job was deleted");
}

/// Such a pod stays `Running` until its node is back, which may be never.
#[test]
fn a_pod_of_a_node_that_is_away_may_go_on() {
    let status = json!({"phase": "Running", "conditions": [
        {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}]});
    let mut lost = pod("0", &status);
    lost["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    assert_eq!(
        states_of(std::slice::from_ref(&lost), 1),
        [TaskState::NodeLost]
    );
    let again = pod("0", &json!({"phase": "Running"}));
    assert_eq!(states_of(&[again, lost], 1), [TaskState::Running]);
}

#[test]
fn the_reason_why_a_pod_waits_is_read() {
    let image = json!({"phase": "Pending", "containerStatuses": [
        {"state": {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}}]});
    let node = json!({"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes"}]});
    let reason = |status: &Value| {
        let objects = parse(&json!({"items": [pod("0", status)]}).to_string()).unwrap();
        objects.items[0].waiting()
    };
    assert_eq!(
        reason(&image).as_deref(),
        Some("ErrImagePull: no such image")
    );
    assert_eq!(reason(&node).as_deref(), Some("Unschedulable: 0/2 nodes"));
    assert_eq!(reason(&json!({"phase": "Running"})), None);
}

#[test]
fn logs_are_those_of_each_task() {
    let handle = JobHandle::new("kubernetes", "stillwell-a", 2, Path::new("/logs"));
    let output = "[pod/stillwell-a-1-x7k2p/generator] one\n[pod/stillwell-a-0-aaaaa/generator] zero\n\
                  [pod/stillwell-a-1-x7k2p/generator] two\n[pod/other-1-x/generator] no\n";
    assert_eq!(logs(output, &handle), ["zero\n", "one\ntwo\n"]);
}

#[test]
fn an_empty_log_does_not_replace_one_that_was_saved() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("task-0.log");
    for (log, saved) in [("", ""), ("a\n", "a\n"), ("", "a\n"), ("b\n", "b\n")] {
        save_log(file.clone(), log).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), saved);
    }
}
