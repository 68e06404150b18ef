//! Objects of a cluster, against exchanges as the API's documentation has them: no cluster
//! runs here.

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use stillwell_metric::Outcome;
use stillwell_plan::generator::{KubernetesKind, KubernetesPlan};
use stillwell_plan::tls::{ServerIdentity, ServerTlsPlan, TlsSuites};
use stillwell_plan::{GeneratorPlan, PayloadPlan, TransportPlan};
use stillwell_scope::PartError;
use stillwell_testkit::{Cluster, free_port};
use stillwell_units::Nanos;
use stillwell_wire::tls::ServerTls;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{Fixture, LONG, plan, prepare, wait_until};

const PODS: &str = "/api/v1/namespaces/lab/pods";

/// A folder with a kubeconfig, by which `server` is found; `cluster` and `user` are more
/// of it.
fn kubeconfig(server: &str, cluster: &str, user: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: lab\n\
         clusters: [{{name: lab, cluster: {{server: '{server}'{cluster}}}}}]\n\
         users: [{{name: lab, user: {{{user}}}}}]\n\
         contexts: [{{name: lab, context: {{cluster: lab, user: lab, namespace: lab}}}}]\n"
    );
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

/// Address of `cluster`.
#[expect(
    clippy::disallowed_methods,
    reason = "a peer of the test, which ends with its process"
)]
fn serve(cluster: &Cluster) -> String {
    let (url, serve) = cluster.listen();
    std::thread::spawn(serve);
    url
}

/// Pods called `web`.
fn pods(kubeconfig: &Path, count: u32, lifetime: Option<Nanos>) -> GeneratorPlan {
    let objects = KubernetesPlan {
        kind: KubernetesKind::Pod,
        name: "web".to_owned(),
        namespace: None,
        manifest: json!({"spec": {"containers": [{"name": "one", "image": "busybox"}]}}),
        lifetime,
        count,
        kubeconfig: Some(kubeconfig.to_owned()),
        context: None,
    };
    GeneratorPlan {
        payload: PayloadPlan::PACE,
        ..plan(TransportPlan::Kubernetes(Box::new(objects)))
    }
}

/// The generator's own end, in words.
fn failure(fixture: Fixture) -> Option<String> {
    fixture.stop.cancel();
    let ends = fixture.scope.close(Nanos::from(LONG));
    let failed = ends.into_iter().find_map(|end| end.result.err());
    failed.map(|failure| stillwell_scope::explain(&failure))
}

/// Ends by itself: what it says.
fn failed(plan: &GeneratorPlan) -> String {
    let prepared = prepare(plan, None).unwrap();
    let over = prepared.over().to_vec();
    let fixture = Fixture::start_prepared(prepared, false);
    wait_until(|| over.iter().all(stillwell_scope::Token::is_cancelled));
    failure(fixture).unwrap()
}

// compat: lading, generators | kubernetes | differs | each object is replaced at the end of its own lifetime
#[test]
fn objects_are_made_replaced_and_all_deleted() {
    let cluster = Cluster::default();
    let (_folder, path) = kubeconfig(&serve(&cluster), "", "token: secret");
    let fixture = Fixture::start(&pods(&path, 3, Some(Nanos::from_millis(5))));
    wait_until(|| fixture.total(|shard| &shard.events) >= 7);
    let shards = fixture.finish();
    assert_eq!(cluster.object_paths(), [""; 0]);
    let requests = cluster.requests();
    assert!(
        requests
            .iter()
            .all(|request| request.authorization == "Bearer secret")
    );
    let made = requests
        .iter()
        .find(|request| request.method_and_path == format!("POST {PODS}"))
        .unwrap();
    let body: Value = serde_json::from_str(&made.body).unwrap();
    assert_eq!(body["metadata"]["labels"]["stillwell.generator"], "one");
    assert_eq!(body["metadata"]["namespace"], "lab");
    for index in 0..3 {
        assert!(cluster.count(&format!("DELETE {PODS}/web-0000{index}")) >= 2);
    }
    let deleted = requests
        .iter()
        .find(|request| request.method_and_path.starts_with("DELETE"))
        .unwrap();
    let options: Value = serde_json::from_str(&deleted.body).unwrap();
    assert_eq!(options["kind"], "DeleteOptions");
    assert!(
        options["preconditions"]["uid"]
            .as_str()
            .unwrap()
            .starts_with("uid-")
    );
    // As many as were made, and nothing else: that an earlier one goes is no failure.
    let shard = &shards[0];
    let deletions = cluster.count("DELETE") as u64;
    assert_eq!(shard.events.total(), deletions);
    assert_eq!(shard.outcomes[Outcome::Ok.index()].total(), deletions);
    assert_eq!(shard.outcomes[Outcome::Status4xx.index()].total(), 0);
    assert!(cluster.count("POST") as u64 > deletions);
}

#[test]
fn one_object_without_an_end_is_made_once_under_its_own_name() {
    let cluster = Cluster::default();
    let (_folder, path) = kubeconfig(&serve(&cluster), "", "");
    let fixture = Fixture::start(&pods(&path, 1, None));
    wait_until(|| fixture.total(|shard| &shard.events) == 1);
    assert_eq!(cluster.object_paths(), [format!("{PODS}/web")]);
    fixture.finish();
    let requests: Vec<String> = cluster
        .requests()
        .into_iter()
        .map(|request| request.method_and_path)
        .collect();
    assert_eq!(
        requests,
        [format!("POST {PODS}"), format!("DELETE {PODS}/web")]
    );
}

#[test]
fn errors_that_need_an_administrator_end_it_with_the_message_of_the_api() {
    let forbidden = "pods is forbidden: User \"a\" cannot create resource \"pods\"";
    for (status, message, advice) in [
        (
            401,
            "Unauthorized",
            "renew the credentials in the kubeconfig",
        ),
        (403, forbidden, "obtain the permission"),
        (
            404,
            "namespaces \"lab\" not found",
            "the namespace must exist",
        ),
        (409, "pods \"web-00001\" already exists", "another name"),
        (
            422,
            "Pod \"web\" is invalid: spec.containers: Required value",
            "correct the manifest",
        ),
    ] {
        let cluster = Cluster::default();
        let (_folder, path) = kubeconfig(&serve(&cluster), "", "");
        cluster.script(&format!("POST {PODS}"), status, message, 1);
        let reported = failed(&pods(&path, 1, None));
        assert!(
            reported.contains(&format!("answers {status}, {message}")),
            "{reported}"
        );
        assert!(reported.contains(advice), "{reported}");
        assert!(
            reported.contains("create pod `web` in namespace `lab`"),
            "{reported}"
        );
        assert_eq!(cluster.object_paths(), [""; 0]);
    }
}

#[test]
fn where_one_of_several_is_refused_the_others_are_deleted() {
    let cluster = Cluster::default();
    let (_folder, path) = kubeconfig(&serve(&cluster), "", "");
    cluster.put(
        &format!("{PODS}/web-00002"),
        "{\"metadata\":{\"name\":\"x\"}}",
    );
    let reported = failed(&pods(&path, 4, None));
    assert!(
        reported.contains("pod `web-00002`") && reported.contains("already exists"),
        "{reported}"
    );
    // What was there before us stays.
    assert_eq!(cluster.object_paths(), [format!("{PODS}/web-00002")]);
    assert_eq!(cluster.count(&format!("DELETE {PODS}/web-00002")), 0);
}

#[test]
fn what_passes_is_counted_and_tried_again() {
    let cluster = Cluster::default();
    let (_folder, path) = kubeconfig(&serve(&cluster), "", "");
    cluster.script("POST", 429, "too many requests", 1);
    cluster.script("POST", 503, "the server is currently unable", 1);
    cluster.script("DELETE", 500, "etcdserver: leader changed", 2);
    let fixture = Fixture::start(&pods(&path, 1, None));
    wait_until(|| fixture.total(|shard| &shard.events) == 1);
    let shards = fixture.finish();
    let count = |outcome: Outcome| shards[0].outcomes[outcome.index()].total();
    assert_eq!(
        (count(Outcome::Status4xx), count(Outcome::Status5xx)),
        (1, 1)
    );
    assert_eq!(cluster.object_paths(), [""; 0]);
    assert_eq!(cluster.count("DELETE"), 3);
}

/// A response that is lost leaves an object behind, which is deleted.
#[test]
fn what_was_made_without_an_answer_is_found_and_deleted() {
    let cluster = Cluster::default();
    let (_folder, path) = kubeconfig(&serve(&cluster), "", "");
    cluster.script("POST", 504, "the request did not complete in time", 1);
    let body = "{\"metadata\":{\"labels\":{\"stillwell.generator\":\"one\"},\"name\":\"web\"}}";
    cluster.put(&format!("{PODS}/web"), body);
    let fixture = Fixture::start(&pods(&path, 1, None));
    wait_until(|| fixture.total(|shard| &shard.events) == 1);
    fixture.finish();
    assert_eq!(cluster.count(&format!("GET {PODS}/web")), 1);
    assert_eq!(cluster.object_paths(), [""; 0]);
}

#[test]
fn what_may_not_be_deleted_is_named_with_how_to_do_it() {
    let cluster = Cluster::default();
    let (_folder, path) = kubeconfig(&serve(&cluster), "", "");
    cluster.script("DELETE", 403, "pods \"web\" is forbidden", u32::MAX);
    let fixture = Fixture::start(&pods(&path, 1, None));
    wait_until(|| fixture.total(|shard| &shard.events) == 1);
    let reported = failure(fixture).unwrap();
    for part in [
        "left behind: pod `web` in namespace `lab`",
        "the cluster answers 403, pods \"web\" is forbidden",
        "`kubectl delete pod web --namespace lab`",
    ] {
        assert!(reported.contains(part), "{reported}");
    }
}

#[test]
fn a_cluster_that_was_never_reached_is_named() {
    let server = format!("http://127.0.0.1:{}", free_port());
    let (_folder, path) = kubeconfig(&server, "", "");
    let reported = failed(&pods(&path, 2, None));
    assert!(
        reported.contains(&format!("the cluster at {server}/ does not respond")),
        "{reported}"
    );
    assert!(reported.contains("kubectl cluster-info"), "{reported}");
    assert!(!reported.contains("left behind"), "{reported}");
}

#[test]
fn what_is_no_cluster_is_named() {
    let cluster = Cluster::default();
    let (_folder, path) = kubeconfig(&serve(&cluster), "", "");
    cluster.script("POST", 200, "welcome", 1);
    let reported = failed(&pods(&path, 1, None));
    assert!(
        reported.contains("answers 200, which is not a Kubernetes response"),
        "{reported}"
    );
    let (_folder, path) = kubeconfig("http://127.0.0.1:1", "", "auth-provider: {name: gcp}");
    let error = prepare(&pods(&path, 1, None), None).unwrap_err();
    let reported = stillwell_scope::explain(&error);
    assert!(
        reported.contains("find the cluster of generator `one`"),
        "{reported}"
    );
    assert!(
        reported.contains("`auth-provider`") && reported.contains("kubectl create token"),
        "{reported}"
    );
}

/// Base 64, as kubeconfigs hold certificates.
fn base64(text: &str) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let groups = text.as_bytes().chunks(3).map(|group| {
        let bits = (0..3).fold(0, |bits, index| {
            bits << 8 | u32::from(group.get(index).copied().unwrap_or(0))
        });
        let letters = (0..4).map(|index| {
            let letter = LETTERS[(bits >> (18 - 6 * index) & 63) as usize];
            if index <= group.len() {
                char::from(letter)
            } else {
                '='
            }
        });
        letters.collect::<String>()
    });
    groups.collect()
}

/// Answers over TLS until `stop`, and until nothing is left.
fn serve_tls(
    listener: &TcpListener,
    tls: &ServerTls,
    cluster: &Cluster,
    stop: &stillwell_scope::Token,
) -> Result<(), PartError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener.try_clone()?)?;
        while !stop.is_cancelled() || !cluster.object_paths().is_empty() {
            let (peer, _) = listener.accept().await?;
            let mut stream = tls.accept(peer.into()).await?;
            let (mut read, mut room) = (Vec::new(), [0; 4096]);
            let response = loop {
                let length = stream.read(&mut room).await?;
                read.extend_from_slice(&room[..length]);
                if let Some(response) = cluster.respond(&read) {
                    break response;
                }
            };
            stream.write_all(response.as_bytes()).await?;
            stream.shutdown().await?;
        }
        Ok(())
    })
}

#[test]
fn a_cluster_is_reached_over_tls_with_the_authority_of_its_kubeconfig() {
    let tls = ServerTls::new(&ServerTlsPlan {
        identity: ServerIdentity::SelfSigned {
            names: vec!["127.0.0.1".to_owned()],
        },
        alpn: Vec::new(),
        client_roots: Vec::new(),
        resumption: true,
        suites: TlsSuites::default(),
    })
    .unwrap();
    let authority = base64(tls.made_certificate().unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("https://{}", listener.local_addr().unwrap());
    let data = format!(", certificate-authority-data: {authority}");
    let (folder, path) = kubeconfig(&server, &data, "tokenFile: token");
    std::fs::write(folder.path().join("token"), "first\n").unwrap();
    let cluster = Cluster::default();
    let mut fixture = Fixture::start(&pods(&path, 1, None));
    let served = cluster.clone();
    let _ended = fixture.beside("api", move |stop| {
        serve_tls(&listener, &tls, &served, &stop)
    });
    wait_until(|| fixture.total(|shard| &shard.events) == 1);
    // Others renew the token while the run goes on.
    std::fs::write(folder.path().join("token"), "second\n").unwrap();
    fixture.finish();
    assert_eq!(cluster.object_paths(), [""; 0]);
    let tokens: Vec<String> = cluster
        .requests()
        .into_iter()
        .map(|request| request.authorization)
        .collect();
    assert_eq!(tokens, ["Bearer first", "Bearer second"]);
}

#[test]
fn a_cluster_whose_certificate_is_not_known_is_refused() {
    let tls = ServerTls::new(&ServerTlsPlan {
        identity: ServerIdentity::SelfSigned {
            names: vec!["127.0.0.1".to_owned()],
        },
        alpn: Vec::new(),
        client_roots: Vec::new(),
        resumption: true,
        suites: TlsSuites::default(),
    })
    .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("https://{}", listener.local_addr().unwrap());
    let (_folder, path) = kubeconfig(&server, "", "");
    let prepared = prepare(&pods(&path, 1, None), None).unwrap();
    let over = prepared.over().to_vec();
    let mut fixture = Fixture::start_prepared(prepared, false);
    let cluster = Cluster::default();
    let _ended = fixture.beside("api", move |stop| {
        // Its client turns away.
        assert!(serve_tls(&listener, &tls, &cluster, &stop).is_err());
        Ok(())
    });
    wait_until(|| over.iter().all(stillwell_scope::Token::is_cancelled));
    let reported = failure(fixture).unwrap();
    assert!(
        reported.contains("does not respond") && reported.contains("complete the TLS handshake"),
        "{reported}"
    );
}
