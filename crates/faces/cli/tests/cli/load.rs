//! `stillwell load` and `nighthawk_client`, against `stillwell serve`.

#[path = "load/capture.rs"]
mod capture;
#[path = "load/certificates.rs"]
mod certificates;
#[path = "load/flags.rs"]
pub(crate) mod flags;
#[path = "load/grpc.rs"]
mod grpc;
#[path = "load/idle.rs"]
mod idle;
#[path = "load/odd.rs"]
mod odd;
#[path = "load/requests.rs"]
mod requests;

use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use stillwell_testkit::{Finished, Process, free_port, wait_until};

pub(super) const STILLWELL: &str = env!("CARGO_BIN_EXE_stillwell");
pub(super) const LONG: Duration = Duration::from_secs(60);

/// A server, and the URL of it.
pub(super) fn serve(arguments: &[&str]) -> (Process, String) {
    let mut command = Command::new(STILLWELL);
    command.args(["serve", "--address=127.0.0.1:0", "--format=json"]);
    let process = Process::start(command.args(arguments));
    let mut found = None;
    wait_until(LONG, || {
        let told = process.stdout() + &process.stderr();
        // The list of URLs that it prints first.
        found = told
            .split('"')
            .find(|word| word.starts_with("http"))
            .map(str::to_owned);
        found.is_some()
    });
    (process, found.unwrap())
}

fn stop(server: Process) -> Value {
    server.signal("INT");
    let ended = server.finish(LONG);
    serde_json::from_str(ended.stdout.lines().last().unwrap()).unwrap()
}

fn load(arguments: &[&str]) -> Finished {
    let mut command = Command::new(STILLWELL);
    Process::start(command.args(["load", "--quiet"]).args(arguments)).finish(LONG)
}

/// What the `global` result counts.
fn counter(json: &str, name: &str) -> u64 {
    let output: Value = serde_json::from_str(json).unwrap();
    let results = output["results"].as_array().unwrap();
    let global = results.iter().find(|it| it["name"] == "global").unwrap();
    let counters = global["counters"].as_array().unwrap();
    let found = counters.iter().find(|it| it["name"] == name);
    found.map_or(0, |it| it["value"].as_str().unwrap().parse().unwrap())
}

#[test]
fn what_is_sent_is_what_arrives_over_every_protocol() {
    for (tls, words) in [
        (None, "--rate 2k/s"),
        (None, "--rate max --body payload:json:200B --concurrency 2"),
        (None, "--rate 2k/s --poisson --protocol http2 --streams 10"),
        (Some("--tls=self-signed"), "--insecure --requests 300"),
        (
            Some("--tls=self-signed"),
            "-k -p http2 --streams 4 --body hello -X PUT",
        ),
    ] {
        let (server, url) = serve(tls.as_slice());
        let mut arguments = vec![url.as_str(), "--connections=4", "--requests=300"];
        arguments.extend(
            words
                .split_whitespace()
                .filter(|word| !word.contains("requests") && *word != "300"),
        );
        arguments.push("--output-format=json");
        let ended = load(&arguments);
        let counts = stop(server);
        assert_eq!(counts["requests"], 300, "{words}: {}", ended.stderr);
        assert_eq!(counter(&ended.stdout, "benchmark.http_2xx"), 300, "{words}");
        assert!(matches!(ended.code, 0 | 4), "{words}: {}", ended.stderr);
    }
}

#[test]
fn a_certificate_is_checked_unless_one_says_otherwise() {
    let (server, url) = serve(&["--tls=self-signed"]);
    let ended = load(&[&url, "--requests=1", "--connections=1"]);
    assert!(
        ended.stdout.contains("no request was answered"),
        "{}",
        ended.stdout
    );
    assert!(
        ended.stdout.contains("--ca,") && ended.stdout.contains("--insecure"),
        "{}",
        ended.stdout
    );
    assert_eq!(stop(server)["requests"], 0);
}

#[test]
fn requests_come_from_files() {
    let (server, url) = serve(&[]);
    let folder = tempfile::tempdir().unwrap();
    let lines = folder.path().join("requests.txt");
    std::fs::write(&lines, format!("# two\n{url}a\nPOST {url}b hello\n")).unwrap();
    let har = folder.path().join("a.har");
    let entry = format!(r#"{{"request": {{"method": "GET", "url": "{url}c", "headers": []}}}}"#);
    std::fs::write(&har, format!(r#"{{"log": {{"entries": [{entry}]}}}}"#)).unwrap();
    for (flag, path) in [("--requests-file", lines), ("--har", har)] {
        let path = path.to_str().unwrap();
        let ended = load(&[flag, path, "-n", "10", "-c", "2"]);
        assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    }
    let counts = stop(server);
    assert_eq!(
        (&counts["requests"], &counts["body_bytes"]),
        (&20.into(), &25.into())
    );
}

#[test]
fn failures_and_mistakes_have_their_exits() {
    let (server, url) = serve(&["--error-rate=1"]);
    let ended = load(&[&url, "-n", "5", "--failure-predicate=status_5xx:0"]);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    stop(server);
    for (words, says) in [
        (
            "http://a/ --failure-predicate=status_6xx:0",
            "there is no counter `status_6xx`",
        ),
        ("http://a/ --rate 1000", "1000/s"),
        ("http://a/ --poisson", "--rate"),
        ("ftp://a/", "ftp://a/"),
    ] {
        let ended = load(&words.split_whitespace().collect::<Vec<_>>());
        assert_eq!(ended.code, 2, "{words}: {}", ended.stderr);
        assert!(ended.stderr.contains(says), "{words}: {}", ended.stderr);
    }
    let ended = load(&["http://127.0.0.1:1/", "--address-family=v6"]);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
}

#[test]
fn a_signal_ends_it_with_all_that_was_found() {
    let (server, url) = serve(&[]);
    let mut command = Command::new(STILLWELL);
    command.args([
        "load",
        &url,
        "--rate=500/s",
        "--duration=60s",
        "--output-format=json",
    ]);
    let process = Process::start(&mut command);
    wait_until(LONG, || process.stderr().contains("failed"));
    process.signal("INT");
    let ended = process.finish(LONG);
    assert_eq!(ended.code, 130, "{}", ended.stderr);
    let sent = counter(&ended.stdout, "benchmark.http_2xx");
    assert!(sent >= 400, "{sent}");
    assert_eq!(stop(server)["requests"], sent);
}

/// Our binary under another name.
fn named(name: &str, arguments: &[&str]) -> Finished {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    symlink(STILLWELL, &path).unwrap();
    Process::start(Command::new(path).args(arguments)).finish(LONG)
}

#[test]
fn it_answers_to_nighthawks_name_and_in_its_layout() {
    let (server, url) = serve(&[]);
    let words =
        "--rps 1000 --connections 4 --concurrency auto --prefetch-connections -v info --duration 2";
    let mut arguments: Vec<&str> = words.split_whitespace().collect();
    arguments.push(&url);
    let ended = named("nighthawk_client", &arguments);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(
        ended
            .stdout
            .starts_with("Nighthawk - A layer 7 protocol benchmarking tool.")
    );
    assert!(
        ended.stdout.contains("benchmark.http_2xx"),
        "{}",
        ended.stdout
    );
    assert!(stop(server)["requests"].as_u64().unwrap() >= 1998);
}

#[test]
fn nighthawks_predicates_and_exits_are_kept() {
    let (server, url) = serve(&[]);
    let words = "--rps 500 --connections 1 --no-duration --output-format json \
                 --termination-predicate benchmark.http_2xx:24";
    let mut arguments: Vec<&str> = words.split_whitespace().collect();
    arguments.push(&url);
    let ended = named("nighthawk_client", &arguments);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(counter(&ended.stdout, "benchmark.http_2xx"), 25);
    stop(server);
    let dead = format!("http://127.0.0.1:{}/", free_port());
    let ended = named("nighthawk_client", &["--duration", "1", &dead]);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    // Every request fails, not only as many as there are connections.
    let words = [
        "--rps=100",
        "--connections=1",
        "--duration=1",
        "--no-default-failure-predicates",
    ];
    let mut arguments = words.to_vec();
    arguments.extend(["--output-format=json", &dead]);
    let ended = named("nighthawk_client", &arguments);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(counter(&ended.stdout, "benchmark.pool_connection_failure") >= 99);
    for (words, says) in [
        ("--foo", "PARSE ERROR: Argument: --foo"),
        ("", "A URI or --multi-target-* options must be specified."),
        ("a://b", "Invalid target URI"),
    ] {
        let ended = named(
            "nighthawk_client",
            &words.split_whitespace().collect::<Vec<_>>(),
        );
        assert_eq!(ended.code, 1, "{words}");
        assert!(ended.stderr.contains(says), "{words}: {}", ended.stderr);
    }
}
