//! `stillwell find-capacity`, against things whose capacity is known: limits far
//! below what any machine can do.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use stillwell_testkit::{Finished, Process, free_port};

use crate::load::{STILLWELL, serve};
use crate::suite::{LONG, Suite};

/// Some twenty probes of a second, on a machine that does other things too.
const SEARCH: Duration = Duration::from_secs(240);

fn find(arguments: &[&str], folder: &std::path::Path) -> Finished {
    let mut command = Command::new(STILLWELL);
    command.args(["find-capacity", "--format=json", "--results"]);
    Process::start(command.arg(folder).args(arguments)).finish(SEARCH)
}

fn output(ended: &Finished) -> Value {
    let output = serde_json::from_str(&ended.stdout);
    assert!(output.is_ok(), "{}{}", ended.stdout, ended.stderr);
    output.unwrap()
}

/// Parts of the reasons of probes that say nothing because something had no CPU, or was late.
const BUSY: [&str; 8] = [
    "generator late: ",
    "the generator itself was late by ",
    "its workers waited for a CPU",
    "CPU starvation: ",
    "CPU steal: ",
    "target delayed: ",
    "worker delayed: ",
    "samples missing for ",
];

/// Returns true where the machine was too busy for a certain answer, and a probe says so: the
/// test then proves nothing, and prints so. Nothing excuses a search that broke off.
fn is_disturbed(test: &str, ended: &Finished) -> bool {
    if ended.code != 4 {
        return false;
    }
    let output = output(ended);
    let is_whole = output["interrupted"] == false && output["found"]["end"] != "stopped";
    let is_busy = |probe: &Value| {
        let why = probe["why"].as_str().unwrap_or_default();
        BUSY.iter().any(|part| why.contains(part))
    };
    let is_disturbed = is_whole && output["probes"].as_array().unwrap().iter().any(is_busy);
    if is_disturbed {
        println!("DISTURBED: {test}: others use this host");
    }
    is_disturbed
}

/// Asserts that the answer is within `share` of `truth`, confirmed or not. A generator does not
/// see that its server had no CPU, after which probes contradict each other.
#[track_caller]
fn assert_near(test: &str, ended: &Finished, truth: f64, share: f64) {
    let output = output(ended);
    let end = output["found"]["end"].as_str().unwrap();
    assert_eq!(ended.code == 0, end == "confirmed", "{end}");
    if is_disturbed(test, ended) {
        return;
    }
    let has_threshold = matches!(end, "confirmed" | "not_confirmed");
    assert!(has_threshold, "{end}: {}", ended.stdout);
    let value = output["found"]["capacity"]["value"].as_f64();
    assert!(value.is_some(), "no answer: {}", ended.stderr);
    let value = value.unwrap();
    assert!(
        (value / truth - 1.0).abs() <= share,
        "{value}: {}",
        ended.stderr
    );
}

#[test]
fn a_rate_limit_is_found_by_the_errors_beyond_it() {
    let (_server, url) = serve(&["--rate-limit=1000/s", "--rate-limit-burst=20"]);
    let folder = tempfile::tempdir().unwrap();
    let words = "--bound errors<0.5% --from 400/s --to 4k/s --probe 1s --quiet";
    let mut words: Vec<&str> = words.split(' ').collect();
    words.push(&url);
    let ended = find(&words, folder.path());
    // Half a percent of errors and the burst in a second and a quarter: 1021. A server without a CPU for some
    // milliseconds refuses the requests that queued meanwhile, so the answer may be lower.
    let test = "a_rate_limit_is_found_by_the_errors_beyond_it";
    assert_near(test, &ended, 1015.0, 0.12);
    // The curve is kept in both forms, and has every probe.
    let kept = std::fs::read_to_string(folder.path().join("capacity.json")).unwrap();
    assert_eq!(kept, ended.stdout);
    let table = std::fs::read_to_string(folder.path().join("capacity.csv")).unwrap();
    let probes = output(&ended)["probes"].as_array().unwrap().len();
    assert_eq!(table.lines().count(), probes + 1);
}

#[test]
fn a_queue_is_found_by_its_latency() {
    // By Little's law W = 40 + 4·λ·W: 100 ms at 150 requests a second.
    let (_server, url) = serve(&["--delay", "40 + 4 * active_requests"]);
    let folder = tempfile::tempdir().unwrap();
    let words = "--bound p50<100ms --from 80/s --to 400/s --probe 1s --warmup 1s -c 200 --quiet";
    let mut words: Vec<&str> = words.split(' ').collect();
    words.push(&url);
    let ended = find(&words, folder.path());
    // Each millisecond that the machine adds lowers the answer by 0.8 %.
    assert_near("a_queue_is_found_by_its_latency", &ended, 150.0, 0.12);
}

#[test]
fn the_knee_of_a_known_law_is_found() {
    // R(n) = 20 + 1·(n − 1) + 0.2·n·(n − 1) ms is the law with λ = 50/s,
    // σ = 0.05 and κ = 0.01.
    let delay = "20 + (active_requests - 1) + 0.2 * active_requests * (active_requests - 1)";
    let (_server, url) = serve(&["--delay", delay]);
    let folder = tempfile::tempdir().unwrap();
    let words = "--objective knee -c 16 --probe 1s --repeats 2 --quiet";
    let mut words: Vec<&str> = words.split(' ').collect();
    words.push(&url);
    let ended = find(&words, folder.path());
    if is_disturbed("the_knee_of_a_known_law_is_found", &ended) {
        return;
    }
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    let output = output(&ended);
    let value = |point: &str| {
        output["knee"][point]["connections"]["value"]
            .as_f64()
            .unwrap()
    };
    // The root of 0.03·N² + 0.04·N − 0.95, and the root of 95.
    assert!((value("knee") / 5.0 - 1.0).abs() < 0.15, "{}", ended.stdout);
    assert!(
        (value("peak") / 9.75 - 1.0).abs() < 0.15,
        "{}",
        ended.stdout
    );
}

#[test]
fn the_knee_of_a_run_is_found() {
    // λ = 50/s, σ = 0.05 and κ = 0.01, as above.
    let delay = "20 + (active_requests - 1) + 0.2 * active_requests * (active_requests - 1)";
    let suite = Suite::alone();
    let text = format!(
        "isolation: {{network: no}}\nphases: {{ready: 10s, drain: 2s, quiet: 50ms}}\ntarget:\n  \
         command: [{STILLWELL}, serve, --address, \"{listen}\", --delay, \"{delay}\"]\n  \
         ready: {{tcp: \"{listen}\"}}\nworkload:\n  generators:\n    - http: \"http://{listen}\"\n      \
         payload: ascii\n      block: 1 KiB\n      rate: 10/s\n      cache: 1 MiB\n",
        listen = suite.listen,
    );
    suite.file("run.yaml", &text);
    let file = suite.path("run.yaml");
    let words = "--objective knee --bound mean<1s -c 16 --probe 1s --repeats 2 --quiet";
    let mut words: Vec<&str> = words.split(' ').collect();
    words.push(file.to_str().unwrap());
    let ended = find(&words, &suite.path("found"));
    if !is_disturbed("the_knee_of_a_run_is_found", &ended) {
        assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
        let knee = &output(&ended)["knee"]["knee"]["connections"]["value"];
        let knee = knee.as_f64().unwrap();
        assert!((knee / 5.0 - 1.0).abs() < 0.15, "{}", ended.stdout);
    }
    // Over datagrams there is nothing that could be varied.
    suite.file("run.yaml", &text.replace("- http: \"http://", "- udp: \""));
    let ended = find(&words, &suite.path("refused"));
    assert_eq!(ended.code, 2);
    let hint = "leave out --objective to search for the highest rate";
    assert!(ended.stderr.contains(hint), "{}", ended.stderr);
    suite.assert_nothing_left();
}

#[test]
fn a_pipeline_is_found_by_what_it_passes_on() {
    let suite = Suite::alone();
    let text = format!(
        "isolation: {{network: no}}\nphases: {{ready: 10s, drain: 2s, quiet: 50ms}}\ntarget:\n  \
         command: [{STILLWELL}, relay, --in, \"tcp://{listen}\", --out, \"tcp://{sink}\", --limit, 2 MiB/s]\n  \
         ready: {{tcp: \"{listen}\"}}\nworkload:\n  generators:\n    - tcp: \"{listen}\"\n      payload: ascii\n      \
         rate: 1 MiB/s\n      cache: 1 MiB\n  sinks:\n    - tcp: \"{sink}\"\n",
        listen = suite.listen,
        sink = suite.sink,
    );
    suite.file("run.yaml", &text);
    let file = suite.path("run.yaml");
    let words = "--bound throughput>98% --from 1MiB/s --to 8MiB/s --probe 1s --quiet";
    let mut words: Vec<&str> = words.split(' ').collect();
    words.push(file.to_str().unwrap());
    let folder = suite.path("found");
    let ended = find(&words, &folder);
    // Two percent more is requested than passes.
    let test = "a_pipeline_is_found_by_what_it_passes_on";
    assert_near(test, &ended, 2.0 * 1_048_576.0 / 0.98, 0.05);
    assert!(folder.join("probe-001/manifest.json").exists());
    suite.assert_nothing_left();
}

#[test]
fn ends_that_are_no_capacity_are_reported_with_their_exit_code() {
    let (_server, url) = serve(&["--error-rate=1"]);
    let folder = tempfile::tempdir().unwrap();
    let ended = find(&[&url, "--probe=200ms", "--to=1k/s"], folder.path());
    assert_eq!(output(&ended)["found"]["end"], "below_minimum");
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    let (_server, url) = serve(&[]);
    let words = [
        "--bound=errors<1%",
        "--probe=1s",
        "--from=50/s",
        "--to=80/s",
        &url,
    ];
    let again = find(&words, folder.path());
    assert_eq!(again.code, 2, "{}", again.stderr);
    assert!(again.stderr.contains("already contains results"));
    let ended = find(&words, &folder.path().join("second"));
    assert_eq!(
        output(&ended)["found"]["end"],
        "above_maximum",
        "{}",
        ended.stderr
    );
    assert_eq!(ended.code, 0);
}

#[test]
fn mistakes_are_reported_before_anything_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let refused_url = format!("http://127.0.0.1:{}/", free_port());
    for (words, code, expected) in [
        (vec![refused_url.as_str(), "--probe=100ms"], 3, "refused"),
        (
            vec![refused_url.as_str(), "--bound=p99"],
            2,
            "write p99<20ms",
        ),
        (
            vec![refused_url.as_str(), "--from=1k/s", "--to=10/s"],
            2,
            "must be above zero and below",
        ),
        (
            vec![refused_url.as_str(), "--from=1MiB/s"],
            2,
            "counts requests",
        ),
        (vec![refused_url.as_str(), "--within=0%"], 2, "such as 3%"),
        (vec![refused_url.as_str(), "--generator=a"], 2, "not a URL"),
        // The server is to describe the method.
        (
            vec![refused_url.as_str(), "--grpc-method=a.B/C"],
            3,
            "Connection refused",
        ),
        (
            vec![refused_url.as_str(), "--insecure"],
            2,
            "--insecure has no effect",
        ),
        (
            vec![refused_url.as_str(), "--objective=knee", "-c=2"],
            2,
            "needs 4",
        ),
        (vec!["nowhere.yaml"], 2, "nowhere.yaml"),
        (vec![], 2, "URL|FILE"),
    ] {
        let ended = find(&words, folder.path());
        assert_eq!(ended.code, code, "{words:?}: {}", ended.stderr);
        assert!(
            ended.stderr.contains(expected),
            "{words:?}: {}",
            ended.stderr
        );
    }
}

#[test]
fn a_target_that_never_opens_a_connection_cannot_be_probed() {
    // The kernel accepts connections, and no handshake is answered.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", silent.local_addr().unwrap());
    let folder = tempfile::tempdir().unwrap();
    for objective in ["--objective=bounds", "--objective=knee"] {
        let words = [&*url, objective, "--probe=200ms", "--timeout=1s"];
        let ended = find(&words, folder.path());
        assert_eq!(ended.code, 3, "{objective}: {}", ended.stderr);
        let expected = "no request was answered: ";
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    }
}

#[test]
fn an_interrupt_leaves_the_curve_so_far() {
    let (_server, url) = serve(&[]);
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(STILLWELL);
    command.args([
        "find-capacity",
        &url,
        "--probe=300ms",
        "--from=50/s",
        "--results",
    ]);
    let process = Process::start(command.arg(folder.path()));
    let is_on = || process.stderr().contains("100 requests/s");
    assert!(stillwell_testkit::wait_until(SEARCH, is_on));
    process.signal("TERM");
    let ended = process.finish(LONG);
    assert_eq!(ended.code, 143, "{}", ended.stderr);
    assert!(
        ended.stdout.contains("interrupted before"),
        "{}",
        ended.stdout
    );
    let table = std::fs::read_to_string(folder.path().join("capacity.csv")).unwrap();
    assert!(table.lines().count() >= 2, "{table}");
}

#[test]
fn an_interrupted_first_probe_was_a_target_that_does_not_answer() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(STILLWELL);
    // A request may take longer than the test, the end after an interrupt may not.
    command.args(["find-capacity", &url, "--probe=10s", "--timeout=1h"]);
    command.arg("--results");
    let process = Process::start(command.arg(folder.path()));
    // The first probe is on once it connects.
    let _connection = silent.accept().unwrap();
    process.signal("TERM");
    let ended = process.finish(LONG);
    assert_eq!(ended.code, 143, "{}", ended.stderr);
}

#[test]
fn an_error_threw_the_curve_so_far_away() {
    let suite = Suite::new();
    let text = format!(
        "isolation: {{network: no}}\nphases: {{ready: 10s, drain: 2s, quiet: 50ms}}\ntarget:\n  \
         command: [{STILLWELL}, relay, --in, \"tcp://{listen}\", --out, \"tcp://{sink}\"]\n  \
         ready: {{tcp: \"{listen}\"}}\nworkload:\n  generators:\n    - tcp: \"{listen}\"\n      payload: ascii\n      \
         rate: 1 MiB/s\n      cache: 1 MiB\n  sinks:\n    - tcp: \"{sink}\"\n",
        listen = suite.listen,
        sink = suite.sink,
    );
    suite.file("run.yaml", &text);
    let folder = suite.path("found");
    // Where the second probe is to be kept there is something else.
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("probe-002"), "").unwrap();
    let file = suite.path("run.yaml");
    let words = [file.to_str().unwrap(), "--probe=300ms", "--quiet"];
    let ended = find(&words, &folder);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    assert_eq!(output(&ended)["probes"].as_array().unwrap().len(), 1);
    let table = std::fs::read_to_string(folder.join("capacity.csv")).unwrap();
    assert_eq!(table.lines().count(), 2);
}

/// A session for `nighthawk_adaptive_load_client`: the success rate must be at
/// least 0.95.
fn session(url: &str, initial: u32) -> String {
    format!(
        "nighthawk_traffic_template {{ uri {{ value: \"{url}\" }} connections {{ value: 4 }} }}\n\
         metric_thresholds {{\n  metric_spec {{ metric_name: \"success-rate\" }}\n  threshold_spec {{ scoring_function {{\n    \
         name: \"nighthawk.binary_scoring\"\n    typed_config {{ \
         [type.googleapis.com/nighthawk.adaptive_load.BinaryScoringFunctionConfig] {{ lower_threshold {{ value: 0.95 }} }} }}\n  \
         }} }}\n}}\ninformational_metric_specs {{ metric_name: \"achieved-rps\" }}\n\
         step_controller_config {{\n  name: \"nighthawk.exponential_search\"\n  typed_config {{ \
         [type.googleapis.com/nighthawk.adaptive_load.ExponentialSearchStepControllerConfig] {{ initial_value: {initial} }} }}\n}}\n\
         measuring_period {{ seconds: 1 }}\ntesting_stage_duration {{ seconds: 1 }}\n"
    )
}

fn adaptive(folder: &std::path::Path, spec: &str, printed: &str) -> (Finished, String) {
    let (name, input, output) = (
        folder.join("nighthawk_adaptive_load_client"),
        folder.join("spec.textproto"),
        folder.join(printed),
    );
    if !name.exists() {
        std::os::unix::fs::symlink(STILLWELL, &name).unwrap();
    }
    std::fs::write(&input, spec).unwrap();
    let mut command = Command::new(name);
    command
        .arg("--spec-file")
        .arg(&input)
        .arg("--output-file")
        .arg(&output);
    let ended = Process::start(&mut command).finish(SEARCH);
    let text = std::fs::read_to_string(output).unwrap_or_default();
    (ended, text)
}

// compat: nighthawk_adaptive_load_client | --spec-file | works
// compat: nighthawk_adaptive_load_client | --output-file | works
#[test]
fn a_session_of_nighthawks_finds_a_rate_that_held() {
    // A server without a CPU refuses what queued meanwhile, beyond the burst. With the burst,
    // 463 requests a second hold for a second.
    let (_server, url) = serve(&["--rate-limit=400/s", "--rate-limit-burst=40"]);
    let folder = tempfile::tempdir().unwrap();
    let (ended, text) = adaptive(folder.path(), &session(&url, 100), "output.json");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let output: Value = serde_json::from_str(&text).unwrap();
    let results = output["adjusting_stage_results"].as_array().unwrap();
    // 100, 200, 400 and 800 at least, then between the last two.
    assert!(results.len() >= 4, "{}", ended.stderr);
    let score = |result: &Value| result["metric_evaluations"][0]["threshold_score"].as_f64();
    assert_eq!(score(&results[0]), Some(1.0), "{}", ended.stderr);
    let testing = &output["testing_stage_result"];
    let rate = testing["nighthawk_service_output"]["options"]["requests_per_second"].as_u64();
    assert!(
        rate.is_some_and(|rate| (200..=490).contains(&rate)),
        "{rate:?} {}",
        ended.stderr
    );
    assert_eq!(
        testing["metric_evaluations"][1]["metric_id"],
        "nighthawk.builtin/achieved-rps"
    );
    assert_eq!(
        output["metric_thresholds"][0]["metric_spec"]["metric_name"],
        "success-rate"
    );
}

// compat: nighthawk_adaptive_load_client | --nighthawk-service-address | refused | this process makes the loads
#[test]
fn a_session_that_cannot_be_is_reported_why() {
    let (_server, url) = serve(&["--error-rate=1"]);
    let folder = tempfile::tempdir().unwrap();
    let (ended, text) = adaptive(folder.path(), &session(&url, 50), "output.textproto");
    assert_eq!(ended.code, 1);
    assert!(
        ended.stderr.contains("do not hold at the first rate"),
        "{}",
        ended.stderr
    );
    // The load that was made is there all the same.
    assert!(text.starts_with("adjusting_stage_results {\n"), "{text}");
    assert!(
        text.contains("\n    metric_id: \"nighthawk.builtin/success-rate\"\n"),
        "{text}"
    );
    let spec = session(&url, 50).replace("success-rate", "p99");
    let (ended, _) = adaptive(folder.path(), &spec, "output.json");
    assert_eq!(ended.code, 1);
    assert!(
        ended.stderr.contains("metric_spec.metric_name"),
        "{}",
        ended.stderr
    );
    let (ended, _) = adaptive(folder.path(), "nonsense", "output.json");
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.contains("line 1: "), "{}", ended.stderr);
}
