//! `stillwell load --scenario`, against the web application of the example.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use stillwell_testkit::{Finished, Process, program_or_skip, wait_until};
use tempfile::TempDir;

use super::{LONG, STILLWELL, serve};

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/scenario")
}

/// Starts the shop of the example. Returns its URL.
fn shop(test: &str) -> Option<(Process, String)> {
    let python = program_or_skip(test, "python3")?;
    let mut command = Command::new(python);
    let process = Process::start(command.arg(example().join("shop.py")).arg("0"));
    assert!(wait_until(LONG, || process.stdout().ends_with('\n')));
    let url = process.stdout().trim().to_owned();
    Some((process, url))
}

fn start(file: &Path, words: &[&str]) -> Process {
    let mut command = Command::new(STILLWELL);
    command
        .args(["load", "--format=json", "--scenario"])
        .arg(file);
    Process::start(command.args(words))
}

fn run(file: &Path, words: &[&str]) -> (Finished, Value) {
    finish(start(file, words))
}

fn finish(process: Process) -> (Finished, Value) {
    let ended = process.finish(LONG);
    let value = serde_json::from_str(&ended.stdout).unwrap_or_default();
    (ended, value)
}

/// A folder with the example, in which `from` is `to`.
fn changed(from: &str, to: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(example().join("scenario.yaml")).unwrap();
    assert!(text.contains(from));
    let file = folder.path().join("scenario.yaml");
    fs::write(&file, text.replace(from, to)).unwrap();
    fs::copy(example().join("users.csv"), folder.path().join("users.csv")).unwrap();
    (folder, file)
}

fn names(value: &Value) -> Vec<&str> {
    let steps = value["steps"].as_array().unwrap();
    steps
        .iter()
        .map(|step| step["name"].as_str().unwrap())
        .collect()
}

#[test]
fn users_log_in_and_read_with_values_of_responses() {
    let Some((_shop, url)) = shop("scenario") else {
        return;
    };
    let (ended, value) = run(&example().join("scenario.yaml"), &[&url, "-d5s", "-t2"]);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    assert_eq!(names(&value), ["log in", "list items", "read item"]);
    assert_eq!(value["users"]["failed"], 0, "{}", ended.stdout);
    assert_eq!(value["error_share"], 0.0);
    for step in value["steps"].as_array().unwrap() {
        assert!(step["requests"].as_u64().unwrap() > 0, "{step}");
        assert_eq!(step["status_codes"]["200"], step["requests"], "{step}");
        assert!(step["latency"]["p99"].as_f64().unwrap() > 0.0, "{step}");
    }
}

#[test]
fn users_arrive_at_a_rate() {
    let Some((_shop, url)) = shop("scenario_arrivals") else {
        return;
    };
    let (_folder, file) = changed("users: 4", "arrivals: 40/s");
    let (ended, value) = run(&file, &[&url, "-d5s"]);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    let users = &value["users"];
    let begun = users["started"].as_u64().unwrap() + users["not_started"].as_u64().unwrap();
    // A machine that stalls at the end leaves the last of them out.
    assert!((1..=200).contains(&begun), "{users}");
}

#[test]
fn a_step_that_fails_ends_its_user_and_reports_why() {
    let Some((_shop, url)) = shop("scenario_failed") else {
        return;
    };
    let loads = [
        (
            "status: 200 }",
            "status: 201 }",
            "status",
            "status 200 instead of 201",
        ),
        (
            "/token",
            "/tokens",
            "take",
            "the body has no value at /tokens",
        ),
    ]
    .map(|(from, to, reason, first)| {
        let (folder, file) = changed(from, to);
        (start(&file, &[&url, "-d6s"]), reason, first, folder)
    });
    let (_folder, file) = changed("/login", "/other");
    let refused = start(&file, &[&url, "-d6s"]);
    for (load, reason, first, _folder) in loads {
        let (ended, value) = finish(load);
        assert_eq!(ended.code, 1, "{}{}", ended.stdout, ended.stderr);
        let step = &value["steps"][0];
        assert_eq!(step["errors"], step["requests"], "{step}");
        assert_eq!(step["failures"][reason], step["errors"], "{step}");
        assert_eq!(step["first_failure"], first);
        assert_eq!(value["steps"][1]["requests"], 0);
        assert_eq!(value["users"]["completed"], 0);
    }
    let (ended, value) = finish(refused);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    let statuses = &value["steps"][0]["status_codes"];
    assert!(statuses["401"].as_u64().unwrap() > 0, "{statuses}");
}

#[test]
fn nothing_that_listens_is_exit_code_3() {
    let url = format!("http://127.0.0.1:{}", stillwell_testkit::free_port());
    let (ended, value) = run(&example().join("scenario.yaml"), &[&url, "-d6s"]);
    assert_eq!(ended.code, 3, "{}{}", ended.stdout, ended.stderr);
    let failures = &value["steps"][0]["failures"]["connect_failed"];
    assert!(failures.as_u64().unwrap() > 0, "{}", ended.stdout);
}

/// A server that answers one request on each of the first `answered` connections, and none on
/// those after them. Returns its URL.
fn silent_after(answered: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    #[expect(clippy::disallowed_methods, reason = "a peer of a test has no scope")]
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for mut stream in listener.incoming().flatten() {
            if open.len() < answered {
                let lines = BufReader::new(&stream).lines().map_while(Result::ok);
                lines.take_while(|line| !line.is_empty()).for_each(drop);
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                stream.write_all(answer).ok();
            }
            open.push(stream);
        }
    });
    url
}

/// All timeouts come after the end: requests in flight did not count, and the threshold held.
#[test]
fn a_threshold_counts_requests_in_flight_at_the_end_as_answered_or_timed_out() {
    let url = silent_after(3);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scenario.yaml");
    let text = "scenario: {arrivals: 5/s, duration: 5s, steps: [{name: begin, path: '/'}]}\n";
    fs::write(&file, text).unwrap();
    let (ended, value) = run(&file, &[&url, "--timeout=5s", "--threshold=errors<1%"]);
    assert_eq!(ended.code, 1, "{}{}", ended.stdout, ended.stderr);
    let threshold = &value["thresholds"][0];
    assert_eq!(threshold["held"], Value::Bool(false), "{threshold}");
    let step = &value["steps"][0];
    assert_eq!(step["status_codes"]["200"], 3, "{step}");
    assert!(
        step["failures"]["timed_out"].as_u64().unwrap() > 0,
        "{step}"
    );
    assert_eq!(value["users"]["unfinished"], 0, "{}", ended.stdout);
    // Only those that were answered ended in the measured time.
    assert!(value["requests_per_second"].as_f64().unwrap() < 1.0);
}

#[test]
fn a_result_that_cannot_be_written_is_exit_code_3_unless_a_threshold_is_broken() {
    let (_server, url) = serve(&[]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scenario.yaml");
    let text = "scenario: {users: 1, steps: [{name: begin, path: '/'}]}\n";
    fs::write(&file, text).unwrap();
    let [full, result] = ["full.json", "result.json"].map(|name| folder.path().join(name));
    symlink("/dev/full", &full).unwrap();
    let loads = [
        (&full, "", "--threshold=p99<1us", 1),
        (&full, "", "--threshold=p99<10s", 3),
        (&result, ">/dev/full", "--threshold=p99<1us", 1),
    ]
    .map(|(output, redirection, bound, code)| {
        let line = format!("exec \"$0\" \"$@\" {redirection}");
        let mut command = Command::new("sh");
        command.args(["-c", &line, STILLWELL, "load", "-d2s", bound, &url]);
        command.arg("--scenario").arg(&file);
        (Process::start(command.arg("--output").arg(output)), code)
    });
    for (load, code) in loads {
        let ended = load.finish(LONG);
        assert_eq!(ended.code, code, "{}{}", ended.stdout, ended.stderr);
        let expected = "No space left on device";
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    }
    let text = fs::read_to_string(&result).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["thresholds"][0]["held"], false, "{text}");
}

/// Users of a server that echoes headers.
const ECHO: &str = "\
scenario:
  users: 3
  duration: 6s
  headers: {X-Common: all}
  steps:
  - name: begin
    path: /begin?a=b c
    take: {token: {header: X-Token}}
    check: {contains: \"'x-common', 'all'\"}
    think: 10ms
  - name: go on
    path: /{{token}}
    headers: {Authorization: 'Bearer {{token}}'}
    body: 'BODY{{token}}'
    check: {status: 200, contains: [\"'cookie', 'a=1'\", \"'authorization', 'Bearer abc'\"]}
";

/// Returns the flag that accepts the certificate of the server at `url`, if it has one.
fn insecure(url: &str) -> &'static [&'static str] {
    match url.starts_with("https") {
        true => &["--insecure"],
        false => &[],
    }
}

/// A server that echoes headers, and a file with its users. `BODY` is the start of a body.
fn echo(words: &[&str], body: &str) -> (Process, String, TempDir, PathBuf) {
    let headers = [
        "--response-header=set-cookie: a=1",
        "--response-header=x-token: abc",
        "--echo",
    ];
    let (server, url) = serve(&[&headers, words].concat());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scenario.yaml");
    fs::write(&file, ECHO.replace("BODY", body)).unwrap();
    (server, url, folder, file)
}

#[test]
fn users_take_the_same_steps_over_http2_with_and_without_tls() {
    // More than the first window.
    let long = "x".repeat(200_000);
    let loads = [
        (&[][..], "http1", "short"),
        (&[], "http2", "short"),
        (&[], "http2", &long),
        (&["--tls=self-signed"], "http1", "short"),
        (&["--tls=self-signed"], "http2", &long),
    ]
    .map(|(server, protocol, body)| {
        let (server, url, folder, file) = echo(server, body);
        let protocol = format!("--protocol={protocol}");
        let words = [&[url.as_str(), &protocol, "-t2", "-d5s"], insecure(&url)].concat();
        let load = start(&file, &words);
        (load, protocol, server, folder)
    });
    for (load, protocol, _server, _folder) in loads {
        let (ended, value) = finish(load);
        assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
        assert_eq!(value["error_share"], 0.0, "{protocol} {}", ended.stdout);
        for step in value["steps"].as_array().unwrap() {
            assert!(step["requests"].as_u64().unwrap() > 0, "{step}");
            assert_eq!(step["status_codes"]["200"], step["requests"], "{step}");
        }
    }
    let (_server, url, _folder, file) = echo(&["--protocol=http2"], "short");
    for generator in [
        "scenario: {file: FILE, protocol: http2}",
        "{scenario: {file: FILE, protocol: http2}, rate: 50/s, connections: 4, workers: 2}",
    ] {
        let summary = observe(&url, &file, generator);
        let outcomes = summary["figures"]["outcomes"].as_array().unwrap();
        assert_eq!(outcomes.len(), 1, "{outcomes:?}");
        assert_eq!(outcomes[0]["outcome"], "ok");
        let routes = summary["figures"]["routes"].as_array().unwrap();
        assert_eq!(routes.len(), 2, "{routes:?}");
    }
}

#[test]
fn a_server_without_http2_is_named() {
    let loads = [
        (
            &["--protocol=http1"][..],
            "malformed",
            "the peer answered in HTTP/1.1, not in HTTP/2",
        ),
        (
            &["--protocol=http1", "--tls=self-signed"],
            "connect_failed",
            "",
        ),
    ]
    .map(|(server, step, reason)| {
        let (server, url, folder, file) = echo(server, "short");
        let words = [&[url.as_str(), "--protocol=http2"], insecure(&url)].concat();
        let load = start(&file, &words);
        (load, step, reason, server, folder)
    });
    for (load, step, reason, _server, _folder) in loads {
        let (ended, value) = finish(load);
        assert_eq!(ended.code, 3, "{}{}", ended.stdout, ended.stderr);
        let first = &value["steps"][0];
        assert!(first["failures"][step].as_u64().unwrap() > 0, "{first}");
        let first_failure = first["first_failure"].as_str().unwrap();
        assert!(first_failure.contains(reason), "{first}");
    }
    let (_server, url, _folder, file) = echo(&[], "short");
    let (ended, _) = run(&file, &[&url, "--protocol=http3"]);
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains("HTTP/3"), "{}", ended.stderr);
}

/// Observes the shop at `url` under the users of `generator`. Returns the summary.
fn observe(url: &str, file: &Path, generator: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "target: {{url: \"{url}\"}}\n\
         phases: {{warmup: 100ms, measure: 3s}}\n\
         workload:\n  generators:\n    - {generator}\n"
    );
    let text = text.replace("FILE", &file.display().to_string());
    fs::write(folder.path().join("run.yaml"), text).unwrap();
    let mut command = Command::new(STILLWELL);
    command.args(["observe", "run.yaml", "--results", "results"]);
    let ended = Process::start(command.current_dir(folder.path())).finish(LONG);
    let summary = fs::read_to_string(folder.path().join("results/summary.json"));
    assert!(summary.is_ok(), "{}{}", ended.stdout, ended.stderr);
    serde_json::from_str(&summary.unwrap()).unwrap()
}

#[test]
fn users_of_a_generator_take_the_same_steps_and_each_step_is_a_route() {
    let Some((_shop, url)) = shop("scenario_generator") else {
        return;
    };
    let file = example().join("scenario.yaml");
    for generator in [
        "scenario: FILE",
        "{scenario: {file: FILE}, rate: 30/s, connections: 8, workers: 2}",
    ] {
        let summary = observe(&url, &file, generator);
        let routes = summary["figures"]["routes"].as_array().unwrap();
        let named: Vec<&str> = routes
            .iter()
            .map(|route| route["name"].as_str().unwrap())
            .collect();
        assert_eq!(named, ["list items", "log in", "read item"], "{summary}");
        let count = |outcome: &Value| outcome["count"].as_u64().unwrap();
        for route in routes {
            let outcomes = route["outcomes"].as_array().unwrap();
            assert_eq!(outcomes.len(), 1, "{route}");
            assert_eq!(outcomes[0]["outcome"], "ok", "{route}");
            assert!(count(&outcomes[0]) > 0, "{route}");
            assert!(
                route["response_time"]["p99_ns"].as_u64().unwrap() > 0,
                "{route}"
            );
        }
    }
}

#[test]
fn an_answer_that_fails_a_check_is_an_error_of_its_step() {
    let Some((_shop, url)) = shop("scenario_generator_check") else {
        return;
    };
    let (_folder, file) = changed("/items/2/id", "/items/9/id");
    let summary = observe(&url, &file, "scenario: FILE");
    let outcomes = summary["figures"]["outcomes"].as_array().unwrap();
    let names: Vec<&str> = outcomes
        .iter()
        .map(|outcome| outcome["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["ok", "unexpected_answer"], "{summary}");
}

#[test]
fn saved_scenarios_are_compared_and_each_step_is_a_route() {
    let (_server, url, folder, file) = echo(&[], "short");
    let loads = ["a.json", "b.html", "c.json"].map(|saved| {
        let output = format!("--output={}", folder.path().join(saved).display());
        start(&file, &[&url, &output, "--validity=off"])
    });
    for load in loads {
        let (ended, _) = finish(load);
        assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    }
    let call = |words: &[&str]| {
        let mut command = Command::new(STILLWELL);
        let ended = Process::start(command.args(words).current_dir(folder.path())).finish(LONG);
        assert!(matches!(ended.code, 0 | 1), "{words:?}: {}", ended.stderr);
        ended.stdout
    };
    for words in [
        &["compare", "a.json", "b.html"][..],
        &["history", "a.json", "b.html", "c.json"],
        &["report", "a.json"],
    ] {
        let text = call(words);
        for expected in ["begin", "go on"] {
            let is_shown = text.contains(expected) || words[0] == "history";
            assert!(is_shown, "{words:?}: {text}");
        }
        assert!(
            text.contains("p50") || text.contains("users at a time"),
            "{words:?}: {text}"
        );
    }
    let text = call(&["compare", "a.json", "c.json"]);
    assert!(
        text.contains("latency_p99['go on']") || text.contains("of go on"),
        "{text}"
    );
}
