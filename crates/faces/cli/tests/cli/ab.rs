//! Services that run already: `target.url`, and `stillwell ab`.

use std::net::TcpListener;

use serde_json::Value;
use stillwell_testkit::{Finished, Process, free_port, wait_until};

use crate::suite::{LONG, STILLWELL, Suite};

/// A server with `options`, and its URL. It ends when it is dropped.
pub(crate) fn server(suite: &Suite, options: &[&str]) -> (Process, String) {
    let address = format!("127.0.0.1:{}", free_port());
    let mut words = vec!["serve", "--address", &address];
    words.extend(options);
    let process = Process::start(&mut suite.stillwell(&words));
    let is_up = || std::net::TcpStream::connect(&address).is_ok();
    assert!(wait_until(LONG, is_up), "{}", process.stderr());
    (process, format!("http://{address}/"))
}

fn finish(suite: &Suite, words: &[&str]) -> Finished {
    Process::start(&mut suite.stillwell(words)).finish(LONG)
}

/// Verdict of a goal in a report as JSON.
fn verdict<'v>(report: &'v Value, goal: &str) -> &'v str {
    let goals = report["experiments"][0]["goals"].as_array().unwrap();
    let mut named = goals.iter().filter(|entry| entry["metric"] == goal);
    named.next().unwrap()["verdict"].as_str().unwrap()
}

/// Limits that stalls exceed. Without limits they are notes, and the runs count.
const DISTURBANCES: [&str; 5] = [
    "cpu_steal",
    "generator_late",
    "samples_missing",
    "target_delayed",
    "worker_delayed",
];

/// Returns true where the report has no verdict on `goal` because others use this host: the
/// test then proves nothing, and prints so.
fn is_disturbed(test: &str, report: &Value, goal: &str) -> bool {
    let notes = report["experiments"][0]["notes"].to_string();
    let is_disturbed = verdict(report, goal) == "inconclusive"
        && DISTURBANCES.iter().any(|code| notes.contains(code));
    if is_disturbed {
        println!("DISTURBED: {test}: others use this host");
    }
    is_disturbed
}

#[test]
fn a_slower_url_is_a_confirmed_regression() {
    let suite = Suite::alone();
    let (_fast, fast) = server(&suite, &[]);
    // So much slower that a stall in one or two runs of the other changes nothing.
    let (_slow, slow) = server(&suite, &["--delay=50ms"]);
    let mut words = vec!["ab", &fast, &slow, "-r", "200/s", "-c32", "-d", "400ms"];
    words.extend(["--validity", "off", "--format", "json", "--quiet"]);
    words.extend(["-o", "report.html"]);
    let ended = finish(&suite, &words);
    let report: Value = serde_json::from_str(&ended.stdout).expect(&ended.stderr);
    let name = "a_slower_url_is_a_confirmed_regression";
    if is_disturbed(name, &report, "latency_p50") {
        return;
    }
    assert_eq!(ended.code, 1, "{}{}", ended.stdout, ended.stderr);
    assert_eq!(verdict(&report, "latency_p50"), "regressed", "{report}");
    // Equivalent needs six pairs; the search may end after four.
    let errors = verdict(&report, "error_share");
    assert!(["equivalent", "inconclusive"].contains(&errors), "{report}");
    assert!(suite.path("report.html").is_file());
}

#[test]
fn a_change_below_a_tolerance_that_is_a_time_is_equivalent() {
    let suite = Suite::alone();
    let (_first, first) = server(&suite, &["--delay=40ms"]);
    let (_second, second) = server(&suite, &["--delay=44ms"]);
    let mut words = vec![
        "ab", &first, &second, "-r", "100/s", "-c", "8", "-d", "400ms",
    ];
    // From the sent time a stall is in the times of few requests.
    words.extend([
        "--goal",
        "service_time_p50",
        "--tolerance",
        "30ms",
        "--validity",
        "off",
        "--quiet",
        "--format=json",
    ]);
    let ended = finish(&suite, &words);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let name = "a_change_below_a_tolerance_that_is_a_time_is_equivalent";
    if is_disturbed(name, &report, "service_time_p50") {
        return;
    }
    let reached = verdict(&report, "service_time_p50");
    assert_eq!(reached, "equivalent", "{report}");
}

#[test]
fn an_experiment_of_urls_starts_no_process_and_reports_what_it_cannot_measure() {
    let suite = Suite::new();
    let (_old, old) = server(&suite, &[]);
    let (_new, new) = server(&suite, &["--error-rate=0.5"]);
    let text = format!(
        "target: {{url: \"{old}\"}}\nvariants: {{old: {{}}, new: {{url: \"{new}\"}}}}\n\
         workload: {{generators: [{{requests: {{}}, rate: 200/s, connections: 4}}]}}\n\
         goals: [error_share, service_time_p50]\nconfirm: false\nvalidity: off\npairs: 6\n\
         phases: {{warmup: 100ms, measure: 500ms, quiet: 50ms}}\n"
    );
    suite.file("urls.yaml", &text);
    let ended = finish(&suite, &["run", "urls.yaml", "--format", "json", "--quiet"]);
    assert_eq!(ended.code, 1, "{}{}", ended.stdout, ended.stderr);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(verdict(&report, "error_share"), "regressed", "{report}");
    let elsewhere = text.replace(&old, "http://example.org/");
    suite.file("cpu.yaml", &elsewhere.replace("error_share", "cpu"));
    let ended = finish(&suite, &["check", "cpu.yaml"]);
    assert_eq!(ended.code, 2);
    assert!(
        ended.stderr.contains("no process is watched"),
        "{}",
        ended.stderr
    );
}

/// A server on this host counted among the other programs of the host.
#[test]
fn the_process_behind_a_local_url_is_watched() {
    let suite = Suite::new();
    let (_old, old) = server(&suite, &[]);
    let (_new, new) = server(&suite, &[]);
    let mut words = vec!["ab", &old, &new, "--goal", "cpu_per_event", "-r", "500/s"];
    words.extend(["-d", "300ms", "--max-pairs", "4", "--no-confirm", "--quiet"]);
    words.extend(["--validity", "off", "--format", "json", "--exit-zero"]);
    let ended = finish(&suite, &words);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let goal = &report["experiments"][0]["goals"][0];
    assert_eq!(goal["metric"], "cpu_per_event", "{report}");
    for side in ["baseline", "comparison"] {
        let mean = goal[format!("{side}_mean_cpu_ns_per_event")].as_f64();
        assert!(mean.is_some_and(|mean| mean > 0.0), "{side}: {goal}");
    }
}

#[test]
fn a_url_that_nothing_listens_at_is_named() {
    let suite = Suite::new();
    let nowhere = format!("http://127.0.0.1:{}/", free_port());
    let ended = finish(&suite, &["ab", &nowhere, &nowhere, "--quiet"]);
    assert_eq!(ended.code, 3, "{}{}", ended.stdout, ended.stderr);
    for words in [
        ["ab", "http://a/", "http://b/", "--max-pairs", "3"],
        ["ab", "ftp://a/", "b", "-r", "1/s"],
    ] {
        let ended = finish(&suite, &words);
        assert_eq!(ended.code, 2, "{STILLWELL} {words:?}: {}", ended.stderr);
    }
}

#[test]
fn a_side_with_errors_alone_is_refused_unless_errors_are_the_goal() {
    let suite = Suite::new();
    let (_good, good) = server(&suite, &[]);
    let (_bad, bad) = server(&suite, &["--error-rate=1"]);
    let ended = finish(&suite, &["ab", &good, &bad, "--quiet"]);
    assert_eq!(ended.code, 3, "{}{}", ended.stdout, ended.stderr);
    let expected = format!("B, {bad}: every response is an error (status 500)");
    assert!(ended.stderr.contains(&expected), "{}", ended.stderr);
    let mut words = vec!["ab", &good, &bad, "--goal", "error_share", "-r", "100/s"];
    words.extend(["-d", "200ms", "--max-pairs", "4", "--no-confirm", "--quiet"]);
    words.extend(["--validity", "off", "--format", "json"]);
    let ended = finish(&suite, &words);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(verdict(&report, "error_share"), "regressed", "{report}");
}

#[test]
fn a_side_with_redirects_alone_is_refused_unless_both_only_redirect() {
    let suite = Suite::new();
    let (_good, good) = server(&suite, &[]);
    let (_moved, moved) = server(&suite, &["--status=301"]);
    for (urls, side) in [([&good, &moved], "B"), ([&moved, &good], "A")] {
        let ended = finish(&suite, &["ab", urls[0], urls[1], "--quiet"]);
        assert_eq!(ended.code, 3, "{}{}", ended.stdout, ended.stderr);
        let expected = format!("{side}, {moved}: every response is a redirect");
        assert!(ended.stderr.contains(&expected), "{}", ended.stderr);
        assert!(ended.stderr.contains("`location`"), "{}", ended.stderr);
    }
    let mut words = vec!["ab", &moved, &moved, "-r", "100/s", "-d", "200ms"];
    words.extend(["--max-pairs", "4", "--no-confirm", "--quiet"]);
    words.extend(["--validity", "off", "--format", "json"]);
    let ended = finish(&suite, &words);
    for side in ["A", "B"] {
        let expected = format!("warning: {side}, {moved}: every response is a redirect");
        assert!(ended.stderr.contains(&expected), "{}", ended.stderr);
    }
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let goals = &report["experiments"][0]["goals"];
    assert!(goals.is_array(), "{report}");
}

/// Starts `ab` with a URL that answers no request, and sends it SIGTERM as soon as it checks responses.
fn end_check(suite: &Suite) -> Finished {
    // Each attempt has a listener of its own: no connection of an earlier one waits there.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let process = Process::start(&mut suite.stillwell(&["ab", &url, &url, "--quiet"]));
    let mut connection = None;
    let is_checking = wait_until(LONG, || {
        connection = listener.accept().ok();
        connection.is_some()
    });
    assert!(is_checking, "{}", process.stderr());
    process.signal("TERM");
    let ended = process.finish(LONG);
    drop(connection);
    ended
}

#[test]
fn a_signal_ends_the_check_of_responses_in_order() {
    let suite = Suite::new();
    let mut ended = end_check(&suite);
    // The check ends by itself after a few seconds. If a stall of the host is longer, the signal comes after it:
    // such an attempt has no result about signals, and is made again, up to three attempts in all.
    for _ in 1..3 {
        if ended.stderr.contains("no request was answered") {
            ended = end_check(&suite);
        }
    }
    assert_eq!(ended.code, 143, "{}{}", ended.stdout, ended.stderr);
    let message = "interrupted before the first run; to continue: stillwell ab ";
    assert!(ended.stderr.contains(message), "{}", ended.stderr);
}

#[test]
fn each_of_several_routes_has_a_goal() {
    let suite = Suite::new();
    let (_server, url) = server(&suite, &[]);
    suite.file("requests", &format!("{url}a\n{url}b\n"));
    let mut words = vec![
        "ab",
        &url,
        &url,
        "--requests-file",
        "requests",
        "-r",
        "100/s",
    ];
    words.extend(["-d", "200ms", "--max-pairs", "4", "--no-confirm", "--quiet"]);
    words.extend(["--validity", "off", "--format", "json"]);
    let ended = finish(&suite, &words);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let goals = report["experiments"][0]["goals"].as_array().unwrap();
    let names: Vec<_> = goals
        .iter()
        .map(|goal| goal["metric"].as_str().unwrap())
        .collect();
    for route in ["latency_p50['GET /a']", "latency_p50['GET /b']"] {
        assert!(names.contains(&route), "{names:?}");
    }
}
