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
#[path = "load/scenario.rs"]
mod scenario;

use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::Value;
pub(super) use stillwell_testkit::LONG;
use stillwell_testkit::{Finished, Process, free_port, wait_until};

pub(super) const STILLWELL: &str = env!("CARGO_BIN_EXE_stillwell");

/// A server, and the URL of it.
pub(super) fn serve(arguments: &[&str]) -> (Process, String) {
    let mut command = Command::new(STILLWELL);
    command.args(["serve", "--address=127.0.0.1:0", "--format=json"]);
    let process = Process::start(command.args(arguments));
    let mut result = None;
    wait_until(LONG, || {
        let output = process.stdout() + &process.stderr();
        // The list of URLs that it prints first.
        result = output
            .split('"')
            .find(|word| word.starts_with("http"))
            .map(str::to_owned);
        result.is_some()
    });
    (process, result.unwrap())
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

/// The count in the `global` result.
fn counter(json: &str, name: &str) -> u64 {
    let output: Value = serde_json::from_str(json).unwrap();
    let results = output["results"].as_array().unwrap();
    let global = results
        .iter()
        .find(|result| result["name"] == "global")
        .unwrap();
    let counters = global["counters"].as_array().unwrap();
    let result = counters.iter().find(|result| result["name"] == name);
    result.map_or(0, |result| {
        result["value"].as_str().unwrap().parse().unwrap()
    })
}

#[test]
fn what_is_sent_is_what_arrives_over_every_protocol() {
    for (tls, words) in [
        (None, "--rate 2k/s"),
        (None, "--rate max --body payload:json:200B --threads 2"),
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
        arguments.push("--output-format=nighthawk-json");
        let ended = load(&arguments);
        let counts = stop(server);
        assert_eq!(counts["requests"], 300, "{words}: {}", ended.stderr);
        assert_eq!(counter(&ended.stdout, "benchmark.http_2xx"), 300, "{words}");
        assert!(matches!(ended.code, 0 | 4), "{words}: {}", ended.stderr);
    }
}

#[test]
fn a_certificate_is_checked_unless_that_is_turned_off() {
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
    for (words, expected) in [
        (
            "http://a/ --failure-predicate=status_6xx:0",
            "unknown counter `status_6xx`",
        ),
        ("http://a/ --rate 1000/m/m", "1000/m/m"),
        ("http://a/ -d @body.json", "a body is -b @body.json"),
        ("http://a/ --concurrency 4", "-c 4 for connections"),
        ("http://a/ -o result.xlsx", "name it .json"),
        ("http://a/ --threshold p99", "p99"),
        ("http://a/ --poisson", "--rate"),
        ("ftp://a/", "ftp://a/"),
    ] {
        let ended = load(&words.split_whitespace().collect::<Vec<_>>());
        assert_eq!(ended.code, 2, "{words}: {}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{words}: {}", ended.stderr);
    }
    let ended = load(&["http://127.0.0.1:1/", "--address-family=v6"]);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
}

#[test]
fn a_load_without_a_successful_answer_fails_and_names_each_status() {
    let (server, url) = serve(&["--error-rate=1"]);
    let ended = load(&[&url, "-n", "5", "-c", "1"]);
    stop(server);
    assert_eq!(ended.code, 1, "{}{}", ended.stdout, ended.stderr);
    let summary = ended.stdout.rsplit("\n\n").next().unwrap();
    assert!(summary.contains("100 % of them not ok"), "{summary}");
    assert!(summary.contains("status codes            50"), "{summary}");
}

#[test]
fn a_threshold_decides_the_exit_code_and_is_named() {
    let (server, url) = serve(&[]);
    for (bound, code, expected) in [
        ("p99<10s", 0, "threshold p99<10s held: "),
        ("errors<1%", 0, "threshold errors<1% held: "),
        ("p50<1ns", 1, " broken: "),
    ] {
        let ended = load(&[&url, "-n", "100", "-c", "2", "--threshold", bound]);
        assert_eq!(ended.code, code, "{}{}", ended.stdout, ended.stderr);
        assert!(ended.stdout.contains(expected), "{}", ended.stdout);
    }
    stop(server);
}

#[test]
fn a_load_that_nothing_answers_ends_early_and_reports_what_to_do() {
    let (plain, url) = serve(&["--protocol=http1"]);
    let (tls, secure) = serve(&["--tls=self-signed"]);
    let swapped = |url: &str, from: &str, to: &str| url.replacen(from, to, 1);
    let of_tls = swapped(&secure, "https:", "http:");
    let of_plain = swapped(&url, "http:", "https:");
    for (words, expected) in [
        (vec!["http://127.0.0.1:1/"], "refused"),
        (vec![&*url, "-p", "http2"], "answered in HTTP/1.1"),
        (vec![&*of_tls], "write https:// instead of http://"),
        (vec![&*of_plain], "it does not speak TLS"),
        (vec!["http://host.invalid/"], "host.invalid"),
    ] {
        let ended = load(&words);
        assert_eq!(ended.code, 3, "{words:?}: {}{}", ended.stdout, ended.stderr);
        assert_eq!(ended.stdout, "", "{words:?}");
        assert!(
            ended.stderr.contains(expected),
            "{words:?}: {}",
            ended.stderr
        );
    }
    stop(plain);
    stop(tls);
}

#[test]
fn a_load_that_nothing_answers_writes_every_file_that_it_can_and_its_error_is_the_target() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let [full, table, json] = ["full.csv", "a.hgrm", "b.json"].map(path);
    symlink("/dev/full", &full).unwrap();
    for format in ["human", "hgrm"] {
        let words = ["http://127.0.0.1:1/", "--format", format, "-o", &full];
        let ended = load(&[&words[..], &["-o", &table, "-o", &json]].concat());
        assert_eq!(ended.code, 3, "{}{}", ended.stdout, ended.stderr);
        for expected in ["No space left on device", "refused"] {
            assert!(ended.stderr.contains(expected), "{}", ended.stderr);
        }
        let text = std::fs::read_to_string(&table).unwrap();
        assert!(text.contains("Total count    =            0]"), "{text}");
        let printed = if format == "hgrm" { &*text } else { "" };
        assert_eq!(ended.stdout, printed);
        let result: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
        assert_eq!(result["schema"], "stillwell/load-summary/v1", "{result}");
        assert!(result["latency"].is_null(), "{result}");
        std::fs::remove_file(&table).unwrap();
        std::fs::remove_file(&json).unwrap();
    }
}

#[test]
fn a_load_that_keeps_going_ends_at_its_own_end() {
    let words = [
        "http://127.0.0.1:1/",
        "--keep-going",
        "--duration=2s",
        "-c1",
    ];
    let ended = load(&words);
    assert_eq!(ended.code, 3, "{}{}", ended.stdout, ended.stderr);
    let printed = format!("{}{}", ended.stdout, ended.stderr);
    assert!(!printed.contains("ended early"), "{printed}");
    assert!(!printed.contains("no valid response arrived"), "{printed}");
}

#[test]
fn results_go_to_files_by_their_extensions() {
    let (server, url) = serve(&[]);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let files = ["a.json", "a.csv", "a.html", "a.txt"].map(path);
    let mut words = vec![url.as_str(), "-n", "50", "-c", "2"];
    words.extend(files.iter().flat_map(|file| ["-o", file]));
    let ended = load(&words);
    stop(server);
    assert!(matches!(ended.code, 0 | 4), "{}", ended.stderr);
    let read = |file: &String| std::fs::read_to_string(file).unwrap();
    let json: Value = serde_json::from_str(&read(&files[0])).unwrap();
    assert_eq!(json["requests"], 50);
    assert_eq!(json["status_codes"]["200"], 50);
    assert!(json["latency"]["p99"].as_f64().unwrap() > 0.0, "{json}");
    assert!(read(&files[1]).contains("\nstatus_codes.200,50\n"));
    assert!(read(&files[2]).starts_with("<!DOCTYPE html>"));
    assert!(read(&files[3]).contains("status codes  200: 50"));
}

#[test]
fn each_signal_that_ends_a_load_leaves_the_result_so_far() {
    for (signal, code) in [("HUP", 129), ("INT", 130), ("QUIT", 131), ("TERM", 143)] {
        let (server, url) = serve(&[]);
        let mut command = Command::new(STILLWELL);
        command.args([
            "load",
            &url,
            "--rate=500/s",
            "--duration=60s",
            "--output-format=nighthawk-json",
        ]);
        let process = Process::start(&mut command);
        // A line has latencies once something was answered.
        wait_until(LONG, || process.stderr().contains("p50"));
        process.signal(signal);
        let ended = process.finish(LONG);
        assert_eq!(ended.code, code, "{}", ended.stderr);
        let sent = counter(&ended.stdout, "benchmark.http_2xx");
        assert!(sent > 0, "{}", ended.stdout);
        assert_eq!(stop(server)["requests"], sent);
    }
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
    let mut lines = ended.stdout.lines();
    let line = lines.find(|line| line.starts_with("benchmark.http_2xx "));
    assert!(line.is_some(), "{}", ended.stdout);
    let answered = line.unwrap().split_whitespace().nth(1).unwrap();
    assert_eq!(stop(server)["requests"].to_string(), answered);
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
    let ended = named("nighthawk_client", &["--duration", "60", &dead]);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    // Every request fails, not only as many as there are connections.
    let words = [
        "--rps=100",
        "--connections=1",
        "--duration=60",
        "--termination-predicate=benchmark.pool_connection_failure:1",
        "--no-default-failure-predicates",
    ];
    let mut arguments = words.to_vec();
    arguments.extend(["--output-format=json", &dead]);
    let ended = named("nighthawk_client", &arguments);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(counter(&ended.stdout, "benchmark.pool_connection_failure") >= 2);
    for (words, expected) in [
        ("--foo", "PARSE ERROR: Argument: --foo"),
        ("", "A URI or --multi-target-* options must be specified."),
        ("a://b", "Invalid target URI"),
    ] {
        let ended = named(
            "nighthawk_client",
            &words.split_whitespace().collect::<Vec<_>>(),
        );
        assert_eq!(ended.code, 1, "{words}");
        assert!(ended.stderr.contains(expected), "{words}: {}", ended.stderr);
    }
}
