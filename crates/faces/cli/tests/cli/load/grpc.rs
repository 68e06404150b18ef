//! Calls by gRPC of a program that offers reflection: `stillwell service`. `.ci/grpc`
//! calls a server of another language.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;
use stillwell_nighthawk::wire::Schema;
use stillwell_testkit::{Finished, Process, wait_until};

use super::{LONG, STILLWELL, load, serve};

const CHECK: &str = "grpc.health.v1.Health/Check";

/// A service of ours and its URL.
fn service() -> (Process, String) {
    let mut command = Command::new(STILLWELL);
    let process = Process::start(command.args(["service", "--listen=127.0.0.1:0"]));
    let mut url = None;
    wait_until(LONG, || {
        let stderr = process.stderr();
        let result = stderr.split_once("listening on grpc://");
        let result = result.and_then(|(_, rest)| rest.split_once('\n'));
        url = result.map(|(address, _)| format!("http://{address}"));
        url.is_some()
    });
    (process, url.unwrap())
}

fn call(url: &str, method: &str, words: &[&str]) -> Finished {
    let entry = ["--grpc-method", method, url, "--output-format=stillwell"];
    load(&[&entry, words].concat())
}

/// Counters that begin with `grpc_`, without that.
fn counted(ended: &Finished) -> BTreeMap<String, u64> {
    let result: Value = serde_json::from_str(&ended.stdout).expect(&ended.stderr);
    let counters = result["global"]["counters"].as_object().unwrap();
    let entry = counters.iter().filter_map(|(name, value)| {
        let name = name.strip_prefix("grpc_")?;
        Some((name.to_owned(), value.as_u64()?))
    });
    entry.collect()
}

fn counts<const N: usize>(all: [(&str, u64); N]) -> BTreeMap<String, u64> {
    all.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()
}

#[test]
fn unary_calls_and_streams_are_described_by_reflection_or_a_file() {
    let (service, url) = service();
    let folder = tempfile::tempdir().unwrap();
    let set = folder.path().join("health");
    let files = Schema::shared().describe_symbol("grpc.health.v1.Health");
    // A set is its files, each as field 1.
    let mut bytes = Vec::new();
    for file in files.unwrap() {
        bytes.push(0x0a);
        stillwell_http::protobuf::write_varint(file.len() as u64, &mut bytes);
        bytes.extend_from_slice(&file);
    }
    std::fs::write(&set, bytes).unwrap();
    let by_file = format!("--grpc-descriptors={}", set.display());
    let few = ["--requests=40", "--connections=2", "--streams=3"];
    let unary = counts([("ok", 40), ("messages_sent", 40), ("messages_received", 40)]);
    for words in [
        vec![],
        vec!["--grpc-json={}", "--rate=2k/s"],
        vec!["--grpc-text=service: \"\"", by_file.as_str()],
        vec!["--grpc-streaming=none"],
        vec!["--grpc-deadline=50s"],
    ] {
        let ended = call(&url, CHECK, &[words.as_slice(), &few].concat());
        assert_eq!(counted(&ended), unary, "{words:?}: {}", ended.stderr);
    }
    let session = "grpc.reflection.v1alpha.ServerReflection.ServerReflectionInfo";
    let list = r#"--grpc-json={"listServices": ""} {"fileByFilename": "none"}"#;
    let ended = call(
        &url,
        session,
        &[&[list, "--grpc-messages=3"], &few[..]].concat(),
    );
    let both = counts([
        ("ok", 40),
        ("messages_sent", 120),
        ("messages_received", 120),
    ]);
    assert_eq!(counted(&ended), both);
    drop(service);
}

#[test]
fn statuses_count_by_name_and_predicates_accept_them() {
    let (service, url) = service();
    let unknown = r#"--grpc-json={"service": "nobody"}"#;
    let ended = call(&url, CHECK, &[unknown, "--requests=20", "--connections=2"]);
    assert_eq!(
        counted(&ended),
        counts([("messages_sent", 20), ("not_found", 20)])
    );
    let words = [
        unknown,
        "--failure-predicate=grpc_not_found:4",
        "--connections=1",
    ];
    let ended = call(&url, CHECK, &words);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    let words = ["--grpc-streaming=none", "--requests=20", "--connections=2"];
    let ended = call(&url, "a.B/C", &words);
    assert_eq!(counted(&ended)["unimplemented"], 20);
    drop(service);
}

#[test]
fn methods_that_cannot_be_called_are_reported_with_what_to_do() {
    let (service, url) = service();
    let (server, plain) = serve(&[]);
    let file = format!("--grpc-descriptors={STILLWELL}");
    for (url, method, words, code, expected) in [
        (&url, "Check", vec![], 2, "write package.Service/Method"),
        (
            &url,
            "grpc.health.v1.Health/Chek",
            vec![],
            2,
            "did you mean `Check`?; known: Check, Watch",
        ),
        (
            &url,
            "grpc.health.v1.Healht/Check",
            vec![],
            2,
            "has no `grpc.health.v1.Healht`; it offers ",
        ),
        (
            &url,
            CHECK,
            vec![r#"--grpc-json={"servise": ""}"#],
            2,
            "field `servise`",
        ),
        (
            &url,
            CHECK,
            vec!["--grpc-messages=2"],
            2,
            "this method takes one message",
        ),
        (
            &url,
            CHECK,
            vec![file.as_str()],
            2,
            "it is not a descriptor set",
        ),
        // It waits for the end of a request that has none, as web servers do.
        (
            &plain,
            CHECK,
            vec!["--timeout=1s"],
            2,
            "the server's reflection did not respond within 1s",
        ),
        (
            &"http://127.0.0.1:1".to_owned(),
            CHECK,
            vec![],
            3,
            "Connection refused",
        ),
    ] {
        let ended = call(url, method, &words);
        assert_eq!(ended.code, code, "{method} {words:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    }
    drop((service, server));
}

#[test]
fn calls_of_a_warm_up_are_not_counted() {
    let (service, url) = service();
    // Each ends by a count. Predicates do not count what the warm-up sends.
    let until = ["--termination-predicate=ok:20", "--duration=60s"];
    for (pace, end) in [
        ("--rate=100/s", &["--requests=100"][..]),
        ("--rate=max", &until[..]),
    ] {
        let words = [pace, "--warmup=500ms", "--connections=2"];
        let ended = call(&url, CHECK, &[&words, end].concat());
        // A busy machine may make it invalid; counts are counts all the same.
        assert!(matches!(ended.code, 0 | 4), "{}", ended.stderr);
        let result: Value = serde_json::from_str(&ended.stdout).unwrap();
        let outcomes = result["global"]["outcomes"].as_array().unwrap();
        assert_eq!(outcomes.len(), 1, "{outcomes:?}");
        let answers = outcomes[0]["count"].as_u64().unwrap();
        assert_eq!(outcomes[0]["outcome"], "ok");
        // Half of the hundred are due in the warm-up.
        let is_paced = pace != "--rate=max";
        assert!(answers > 0 && (!is_paced || answers <= 51), "{answers}");
        let counted = counted(&ended);
        for name in ["ok", "messages_sent", "messages_received"] {
            assert_eq!(counted.get(name), Some(&answers), "{pace}: {name}");
        }
    }
    drop(service);
}
