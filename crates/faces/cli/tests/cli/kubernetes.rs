//! Objects of a cluster, as a user requests them: the cluster is simulated with the
//! exchanges of its API's documentation.

use std::process::Command;

use stillwell_capture::RunOutcome;
use stillwell_testkit::{Cluster, Process, wait_until};

use crate::suite::{LONG, STOP_MAX, Suite, assert_code, assert_holds, open};

const PODS: &str = "/api/v1/namespaces/suite/pods";

const LADING: &str = "generator:
  - kubernetes:
      manifest:
        pod: |
          apiVersion: v1
          kind: Pod
          metadata: {name: web}
          spec:
            containers: [{name: one, image: 'busybox:1.36', args: [sleep, '60']}]
      max_instance_lifetime_seconds: 1
      concurrent_instances: 2
blackhole: []
";

/// A run whose KUBECONFIG leads to `cluster`.
fn observe(suite: &Suite, cluster: &Cluster, words: &[&str]) -> Command {
    observe_as(suite, cluster, words, "{token: secret-token}")
}

/// The same for the entry `user` of the kubeconfig.
#[expect(
    clippy::disallowed_methods,
    reason = "a peer of the test, which ends with its process"
)]
fn observe_as(suite: &Suite, cluster: &Cluster, words: &[&str], user: &str) -> Command {
    let (url, serve) = cluster.listen();
    std::thread::spawn(serve);
    let text = format!(
        "current-context: suite\nclusters: [{{name: suite, cluster: {{server: '{url}'}}}}]\n\
         users: [{{name: suite, user: {user}}}]\n\
         contexts: [{{name: suite, context: {{cluster: suite, user: suite, namespace: suite}}}}]\n"
    );
    let path = suite.file("kubeconfig", &text);
    let mut command = suite.stillwell(words);
    command.env("KUBECONFIG", path);
    command
}

fn words<'w>(file: &'w str, measure: &'w str) -> [&'w str; 8] {
    [
        "observe",
        file,
        "--results",
        "results",
        "--warmup",
        "100ms",
        "--measure",
        measure,
    ]
}

/// Every request has the token, and readers of the results do not need it.
fn assert_token_is_sent_and_not_kept(suite: &Suite, cluster: &Cluster) {
    let requests = cluster.requests();
    assert!(!requests.is_empty());
    assert!(
        requests
            .iter()
            .all(|request| request.authorization == "Bearer secret-token")
    );
    for file in ["manifest.json", "summary.json", "events.jsonl"] {
        let text = std::fs::read_to_string(suite.results().join(file)).unwrap();
        assert!(!text.contains("secret-token"), "{file}");
    }
}

#[test]
fn a_lading_file_makes_replaces_and_deletes_objects_of_a_cluster() {
    let suite = Suite::new();
    let cluster = Cluster::default();
    suite.file("lading.yaml", LADING);
    let ended =
        Process::start(&mut observe(&suite, &cluster, &words("lading.yaml", "8s"))).finish(LONG);
    let manifest = open(&suite, &suite.results());
    assert_eq!(manifest.outcome, RunOutcome::Completed, "{}", ended.stderr);
    assert_holds(&ended.stderr, &["the network of the host"]);
    assert_eq!(cluster.object_paths(), [""; 0]);
    for index in 0..2 {
        // Once for its lifetime at least, and once at the end.
        assert!(cluster.count(&format!("DELETE {PODS}/web-0000{index}")) >= 2);
    }
    assert_token_is_sent_and_not_kept(&suite, &cluster);
    suite.assert_nothing_left();
}

#[test]
fn a_run_that_is_ended_by_sigterm_deletes_all_objects() {
    let suite = Suite::new();
    let cluster = Cluster::default();
    suite.file("lading.yaml", LADING);
    let running = Process::start(&mut observe(&suite, &cluster, &words("lading.yaml", "60s")));
    let are_present = || cluster.object_paths().len() == 2;
    assert!(wait_until(LONG, are_present), "{}", running.stderr());
    running.signal("TERM");
    let ended = running.finish(STOP_MAX);
    assert_code(&ended, 143);
    assert_eq!(cluster.object_paths(), [""; 0]);
    suite.assert_nothing_left();
}

#[test]
fn a_native_file_makes_objects_of_an_inline_manifest() {
    let suite = Suite::new();
    let cluster = Cluster::default();
    let text = "phases: {warmup: 100ms, measure: 5s, drain: 2s, quiet: 50ms}
workload:
  generators:
    - kubernetes:
        manifest: {kind: Service, metadata: {name: web, namespace: other}, spec: {ports: [{port: 80}]}}
        kubeconfig: kubeconfig
        context: suite
      rate: max
";
    suite.file("run.yaml", text);
    let mut command = observe(
        &suite,
        &cluster,
        &["observe", "run.yaml", "--results", "results"],
    );
    let ended = Process::start(command.env("KUBECONFIG", "/no/such")).finish(LONG);
    let manifest = open(&suite, &suite.results());
    assert_eq!(manifest.outcome, RunOutcome::Completed, "{}", ended.stderr);
    let services = "/api/v1/namespaces/other/services";
    let requests: Vec<String> = cluster
        .requests()
        .into_iter()
        .map(|request| request.method_and_path)
        .collect();
    assert_eq!(
        requests,
        [format!("POST {services}"), format!("DELETE {services}/web")]
    );
    assert!(cluster.requests()[0].body.contains("\"port\":80"));
}

/// As the kubeconfigs of EKS, GKE and AKS do it.
#[test]
fn a_program_of_the_kubeconfig_logs_in() {
    let suite = Suite::new();
    let cluster = Cluster::default();
    suite.file("lading.yaml", LADING);
    suite.file(
        "login",
        "echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\",\
         \"status\":{\"token\":\"'$PREFIX-token'\"}}'\n",
    );
    let user = "{exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, args: [login], \
                env: [{name: PREFIX, value: secret}], interactiveMode: Never}}";
    let mut command = observe_as(&suite, &cluster, &words("lading.yaml", "5s"), user);
    let ended = Process::start(&mut command).finish(LONG);
    let manifest = open(&suite, &suite.results());
    assert_eq!(manifest.outcome, RunOutcome::Completed, "{}", ended.stderr);
    assert_token_is_sent_and_not_kept(&suite, &cluster);
    suite.assert_nothing_left();
}

#[test]
fn a_login_that_fails_is_reported_before_the_run_in_the_words_of_its_program() {
    let suite = Suite::new();
    let cluster = Cluster::default();
    suite.file("lading.yaml", LADING);
    let user = "{exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, \
                args: [-c, 'echo no session >&2; exit 3'], interactiveMode: Never}}";
    let mut command = observe_as(&suite, &cluster, &words("lading.yaml", "1s"), user);
    let ended = Process::start(&mut command).finish(LONG);
    assert_code(&ended, 3);
    let message = "log in to the cluster: `sh` ended with exit status: 3: no session";
    assert_holds(&ended.stdout, &[message]);
    assert!(cluster.requests().is_empty());
}

#[test]
fn a_refusal_of_a_cluster_is_reported_in_its_words() {
    let suite = Suite::new();
    let cluster = Cluster::default();
    suite.file("lading.yaml", LADING);
    cluster.script(
        "POST",
        403,
        "pods is forbidden: User \"a\" cannot create pods",
        u32::MAX,
    );
    let ended =
        Process::start(&mut observe(&suite, &cluster, &words("lading.yaml", "60s"))).finish(LONG);
    assert_code(&ended, 4);
    let output = format!("{}{}", ended.stdout, ended.stderr);
    assert_holds(
        &output,
        &[
            "pods is forbidden: User \"a\" cannot create pods",
            "obtain the permission",
        ],
    );
}

#[test]
fn without_a_cluster_nothing_runs_and_the_remedy_is_reported() {
    let suite = Suite::new();
    suite.file("lading.yaml", LADING);
    let run = |kubeconfig: Option<&str>| {
        let mut command = suite.stillwell(&words("lading.yaml", "60s"));
        command
            .env_remove("KUBERNETES_SERVICE_HOST")
            .env("HOME", "/no/home");
        match kubeconfig {
            Some(path) => command.env("KUBECONFIG", path),
            None => command.env_remove("KUBECONFIG"),
        };
        let ended = Process::start(&mut command).finish(LONG);
        assert_code(&ended, 3);
        format!("{}{}", ended.stdout, ended.stderr)
    };
    assert_holds(&run(None), &["no cluster is configured", "KUBECONFIG"]);
    assert_holds(&run(Some("/no/kubeconfig")), &["read /no/kubeconfig"]);
    let file = suite.file("broken", "current-context: a\ncontexts: [{name: b}]\n");
    let output = run(Some(&file.to_string_lossy()));
    assert_holds(&output, &["there is no context `a`", "which has `b`"]);
    suite.file(
        "lading.yaml",
        "generator: [kubernetes: {manifest: {pod: 'kind: Job'}}]\n",
    );
    let checked = suite.call(&["check", "lading.yaml"]);
    assert_code(&checked, 2);
    assert_holds(
        &checked.stderr,
        &["this manifest is a `Job` and not a `Pod`"],
    );
}
