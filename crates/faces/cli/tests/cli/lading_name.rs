//! Called as `lading`: its flags, its formats, its files.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use stillwell_lading::capture::{SeriesWanted, read_lading, validate};
use stillwell_testkit::{Finished, Process, free_port, wait_until};

use crate::suite::{LONG, STILLWELL, STOP_MAX, Suite, assert_code, assert_holds};

const SEED: &str = "[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4, 3, 3, 8, 3, 2, 7, 9, 5]";
const SHORT: [&str; 4] = [
    "--warmup-duration-seconds",
    "1",
    "--experiment-duration-seconds",
    "2",
];

/// Our binary under another name, in the suite's folder.
pub(crate) fn called(suite: &Suite, name: &str) -> Command {
    let path = suite.path(name);
    if !path.exists() {
        symlink(STILLWELL, &path).unwrap();
    }
    suite.program(path)
}

/// A generator, and a blackhole for what the target sends on.
fn write_config(suite: &Suite, name: &str) {
    let text = format!(
        "generator:\n  - id: in\n    tcp:\n      seed: {SEED}\n      addr: \"{}\"\n      variant: \
         syslog5424\n      bytes_per_second: \"1 MiB\"\n      maximum_prebuild_cache_size_bytes: \
         \"2 MiB\"\nblackhole:\n  - tcp:\n      binding_addr: \"{}\"\n",
        suite.listen, suite.sink
    );
    suite.file(name, &text);
}

/// The target's words: a relay between generator and blackhole.
fn relay(suite: &Suite) -> Vec<String> {
    let words = [
        "relay".to_owned(),
        "--in".to_owned(),
        format!("tcp://{}", suite.listen),
        "--out".to_owned(),
        format!("tcp://{}", suite.sink),
    ];
    words.to_vec()
}

/// `lading` around a relay, for a second of warm-up and two that count.
fn lading(suite: &Suite, words: &[&str]) -> Process {
    let mut command = called(suite, "lading");
    command.args(words).args(SHORT);
    command.args(["--target-path", STILLWELL, "--"]);
    Process::start(command.args(relay(suite)))
}

/// Fails unless the run went to its end.
fn assert_carried_out(ended: &Finished) {
    assert_eq!(ended.code, 0, "{}", ended.stderr);
}

/// The capture is well-formed, and holds what the run was about.
fn assert_capture(path: &Path) {
    let result = validate(path, Some(3)).unwrap();
    assert!(result.is_valid(), "{result:?}");
    let wanted = SeriesWanted::new()
        .with("bytes_written", Some("in"))
        .with("total_bytes_received", None)
        .with("total_rss_bytes", None)
        .with("total_cpu_usage_millicores", None);
    let capture = read_lading(path, &wanted).unwrap();
    let run = &capture.runs[0];
    assert_eq!(run.experiment.as_deref(), Some("tcp_relay"));
    let (from, _) = run.measured.unwrap();
    for (metric, id) in [
        ("bytes_written", Some("in")),
        ("total_bytes_received", None),
    ] {
        assert!(
            run.series(metric, id).unwrap().rate(from).unwrap() > 1e5,
            "{metric}"
        );
    }
    for metric in ["total_rss_bytes", "total_cpu_usage_millicores"] {
        assert!(
            run.series(metric, None).unwrap().mean(from).unwrap() > 0.0,
            "{metric}"
        );
    }
}

// compat: lading, command line | --target-path | works
// compat: lading, command line | --capture-path | works
// compat: lading, command line | --capture-format | works
// compat: lading, command line | --config-path | works
// compat: lading, command line | --experiment-duration-seconds | works
// compat: lading, command line | --warmup-duration-seconds | works
// compat: lading, command line | --json-logs | differs | no effect: logs are text
// compat: lading, command line | --target-stdout-path | works
// compat: lading, command line | --target-stderr-path | works
#[test]
fn it_runs_a_target_and_writes_what_it_measured_in_ladings_formats() {
    for (words, files) in [
        (["run", "jsonl", "cap.jsonl"], vec!["cap.jsonl"]),
        (
            ["--json-logs", "parquet", "cap.parquet"],
            vec!["cap.parquet"],
        ),
        (["run", "multi", "cap"], vec!["cap.jsonl", "cap.parquet"]),
    ] {
        let suite = Suite::new();
        write_config(&suite, "lading.yaml");
        let [first, format, path] = words;
        let flags = [
            first,
            "--config-path",
            "lading.yaml",
            "--capture-format",
            format,
            "--capture-path",
            path,
            "--global-labels",
            "experiment=tcp_relay,variant=baseline",
            "--target-stdout-path",
            "out.log",
            "--target-stderr-path",
            "err.log",
            "--target-rss-bytes-limit",
            "1 GiB",
            "--capture-expiriation-seconds",
            "600",
        ];
        let ended = lading(&suite, &flags).finish(LONG);
        assert_carried_out(&ended);
        assert_eq!(ended.stdout, "");
        for file in files {
            assert_capture(&suite.path(file));
        }
        assert_holds(
            &fs::read_to_string(suite.path("err.log")).unwrap(),
            &["events in"],
        );
        assert!(suite.path("out.log").exists());
        suite.assert_nothing_left();
    }
}

#[test]
fn a_capture_is_read_after_a_kill() {
    let suite = Suite::new();
    write_config(&suite, "lading.yaml");
    for (format, path) in [("jsonl", "cap.jsonl"), ("parquet", "cap.parquet")] {
        let mut command = called(&suite, "lading");
        let flags = [
            "--config-path",
            "lading.yaml",
            "--capture-format",
            format,
            "--capture-path",
            path,
            "--warmup-duration-seconds",
            "1",
            "--experiment-duration-infinite",
            "--target-path",
            STILLWELL,
            "--",
        ];
        let running = Process::start(command.args(flags).args(relay(&suite)));
        let path = suite.path(path);
        let has_measured = || validate(&path, Some(3)).is_ok_and(|result| result.is_valid());
        assert!(wait_until(LONG, has_measured), "{}", running.stderr());
        running.signal("KILL");
        let _ended = running.finish(STOP_MAX);
        let output =
            Process::start(called(&suite, "captool").arg("validate").arg(&path)).finish(LONG);
        assert_code(&output, 0);
        assert_holds(&output.stdout, &["is valid"]);
        suite.assert_no_process(STOP_MAX);
    }
}

// compat: lading, command line | --experiment-duration-infinite | works
#[test]
fn signals_end_it_in_order_and_the_capture_is_whole() {
    let suite = Suite::new();
    write_config(&suite, "lading.yaml");
    let mut command = called(&suite, "lading");
    let flags = [
        "--config-path",
        "lading.yaml",
        "--capture-format=parquet",
        "--capture-path=cap.parquet",
        "--warmup-duration-seconds=0",
        "--experiment-duration-infinite",
        "--target-path",
        STILLWELL,
        "--",
    ];
    let running = Process::start(command.args(flags).args(relay(&suite)));
    let path = suite.path("cap.parquet");
    let runs = || validate(&path, Some(2)).is_ok_and(|result| result.is_valid());
    assert!(wait_until(LONG, runs), "{}", running.stderr());
    running.signal("TERM");
    assert_code(&running.finish(LONG), 143);
    assert!(!suite.path("cap.parquet.journal").exists());
    assert!(validate(&path, Some(2)).unwrap().cut.is_none());
    suite.assert_nothing_left();
}

// compat: lading, command line | --prometheus-addr | works
#[test]
fn a_page_shows_the_newest_values_while_it_runs() {
    let suite = Suite::new();
    write_config(&suite, "lading.yaml");
    let address = format!("127.0.0.1:{}", free_port());
    let mut command = called(&suite, "lading");
    let flags = [
        "--config-path=lading.yaml",
        "--prometheus-addr",
        &address,
        "--warmup-duration-seconds=0",
        "--experiment-duration-infinite",
        "--target-path",
        STILLWELL,
        "--",
    ];
    let running = Process::start(command.args(flags).args(relay(&suite)));
    let shows = || {
        let page = scrape(&address).unwrap_or_default();
        page.contains("bytes_written{component=\"generator\",component_name=\"tcp\",id=\"in\"")
            && page.contains("# TYPE total_rss_bytes gauge")
    };
    assert!(wait_until(LONG, shows), "{}", running.stderr());
    running.signal("TERM");
    assert_code(&running.finish(LONG), 143);
    suite.assert_nothing_left();
}

fn scrape(address: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")?;
    let mut page = String::new();
    stream.read_to_string(&mut page)?;
    Ok(page)
}

// compat: lading, command line | exit codes | works
#[test]
fn a_run_that_worked_exits_with_0_and_one_whose_target_dies_with_1() {
    let suite = Suite::new();
    // Nothing listens: the load is unreliable.
    let text = format!(
        "generator:\n  - id: in\n    tcp:\n      seed: {SEED}\n      addr: \"{}\"\n      variant: \
         ascii\n      bytes_per_second: \"1 MiB\"\n      maximum_prebuild_cache_size_bytes: \"2 \
         MiB\"\n",
        suite.listen
    );
    suite.file("lading.yaml", &text);
    let flags = ["--config-path=lading.yaml", "--capture-path=cap.jsonl"];
    let words = [flags.as_slice(), &["--no-target"], &SHORT].concat();
    let ended = call(&suite, &words);
    assert_code(&ended, 0);
    assert_holds(&ended.stderr, &["sends failed"]);
    let words = [flags.as_slice(), &["--target-path", "/bin/false"], &SHORT].concat();
    assert_code(&call(&suite, &words), 1);
}

// compat: lading, command line | --target-rss-bytes-limit | works
#[test]
fn more_memory_than_allowed_fails_the_run() {
    let suite = Suite::new();
    write_config(&suite, "lading.yaml");
    let flags = [
        "--config-path",
        "lading.yaml",
        "--capture-path",
        "cap.jsonl",
        "--target-rss-bytes-limit",
        "64 KiB",
    ];
    let ended = lading(&suite, &flags).finish(LONG);
    assert_code(&ended, 1);
    assert_holds(&ended.stderr, &["target_rss_bytes_limit"]);
}

/// `lading` with these words, which ends soon.
fn call(suite: &Suite, words: &[&str]) -> Finished {
    Process::start(called(suite, "lading").args(words)).finish(LONG)
}

#[test]
fn configurations_are_checked_wherever_they_are() {
    let suite = Suite::new();
    write_config(&suite, "conf/one.yaml");
    suite.file("conf/two.yaml", "telemetry: {path: cap.jsonl}\n");
    suite.file("bad/one.yaml", "generator:\n  - tpc: {}\n");
    for (words, code, output) in [
        (["config-check", "--config-path", "conf"], 0, "is valid"),
        (
            ["config-check", "--config-path", "bad"],
            1,
            "did you mean `tcp`",
        ),
        (["config-check", "--config-path", "none"], 1, "none"),
        (
            ["run", "--no-target", "--config-path=bad"],
            1,
            "bad/one.yaml:2:5",
        ),
        (
            [
                "--target-container=x y",
                "--config-path=conf",
                "--json-logs",
            ],
            2,
            "is not a container name",
        ),
    ] {
        let ended = call(&suite, &words);
        assert_code(&ended, code);
        assert_holds(&ended.stderr, &[output]);
    }
    suite.file("quiet/one.yaml", "generator: []\nblackhole: []\n");
    let ended = call(&suite, &["--no-target", "--config-path", "quiet"]);
    assert_code(&ended, 2);
    assert_holds(
        &ended.stderr,
        &["destination of telemetry", "--capture-path"],
    );
    // The variable holds a text, which goes before any file.
    let mut command = called(&suite, "lading");
    command.args(["config-check", "--config-path", "bad"]);
    let ended = Process::start(command.env("LADING_CONFIG", "generator: []\n")).finish(LONG);
    assert_code(&ended, 0);
}

// compat: lading, command line | --global-labels | works
#[test]
fn telemetry_of_the_configuration_is_used_without_an_overriding_flag() {
    let suite = Suite::new();
    let text = "generator: []\nblackhole: []\ntelemetry: {path: mine.parquet, global_labels: {suite: \
                x}, format: {parquet: {flush_seconds: 1}}}\n";
    suite.file("lading.yaml", text);
    let words = [
        "--config-path",
        "lading.yaml",
        "--no-target",
        "--global-labels",
        "more=y",
    ];
    let words = [words.as_slice(), &SHORT].concat();
    assert_carried_out(&call(&suite, &words));
    let mut labels = Vec::new();
    let mut look = |row: stillwell_lading::capture::LadingRow| labels.push(row.labels);
    stillwell_lading::capture::visit_lading(&suite.path("mine.parquet"), &mut look).unwrap();
    let has = |key: &str, value| labels.iter().all(|labels| labels.value(key) == Some(value));
    assert!(!labels.is_empty() && has("suite", "x") && has("more", "y"));
}
