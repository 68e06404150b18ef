//! Files that were written for lading, as they are.

use stillwell_capture::RunOutcome;

use crate::suite::{LONG, Suite, assert_code, assert_holds, open};
use stillwell_testkit::Process;

const SEED: &str = "[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4, 3, 3, 8, 3, 2, 7, 9, 5]";

/// The shape of old: maps, bits per second written as `Mb`.
fn map_shape(suite: &Suite) -> String {
    format!(
        "generator:\n  http:\n    seed: {SEED}\n    headers:\n      api-key: \"none\"\n    \
         target_uri: \"http://{}/v1/input\"\n    bytes_per_second: \"8 Mb\"\n    \
         parallel_connections: 2\n    method:\n      post:\n        variant: \"datadog_log\"\n        \
         maximum_prebuild_cache_size_bytes: \"32 Mb\"\n\n\
         blackhole:\n  http:\n    binding_addr: \"{}\"\n",
        localhost(&suite.listen),
        suite.sink
    )
}

/// The shape of today: lists.
fn list_shape(suite: &Suite) -> String {
    format!(
        "generator:\n  - tcp:\n      seed: {SEED}\n      addr: \"{}\"\n      variant: syslog5424\n      \
         bytes_per_second: \"1 MiB\"\n      maximum_prebuild_cache_size_bytes: \"4 MiB\"\n\n\
         blackhole:\n  - tcp:\n      binding_addr: \"{}\"\n",
        suite.listen, suite.sink
    )
}

fn localhost(address: &str) -> String {
    address.replace("127.0.0.1", "localhost")
}

/// One short run with the relay as its target.
fn observe(suite: &Suite, scheme: &str) -> Process {
    let words = [
        "observe",
        "lading.yaml",
        "--results",
        "results",
        "--warmup",
        "200ms",
        "--measure",
        "1s",
    ];
    let (input, output) = (
        format!("{scheme}://{}", suite.listen),
        format!("{scheme}://{}", suite.sink),
    );
    let target = [
        "--",
        crate::suite::STILLWELL,
        "relay",
        "--in",
        &input,
        "--out",
        &output,
    ];
    Process::start(suite.stillwell(&words).args(target))
}

fn assert_carried(suite: &Suite, output: &str) {
    assert_holds(
        output,
        &[
            "sent of",
            "requested",
            "received",
            "target CPU",
            "events lost",
        ],
    );
    let manifest = open(suite, &suite.results());
    assert_eq!(manifest.outcome, RunOutcome::Completed);
    let capture = stillwell_capture::Capture::open(&suite.results()).unwrap();
    let received = capture
        .series
        .named(stillwell_metric::catalogue::BYTES_RECEIVED.name);
    assert!(received.count() > 0);
    suite.assert_nothing_left();
}

#[test]
fn the_map_shape_runs_and_shows_requested_and_achieved_rates() {
    let suite = Suite::new();
    suite.file("lading.yaml", &map_shape(&suite));
    let ended = observe(&suite, "http").finish(LONG);
    assert_carried(&suite, &ended.stdout);
}

#[test]
fn the_list_shape_runs_and_shows_requested_and_achieved_rates() {
    let suite = Suite::new();
    suite.file("lading.yaml", &list_shape(&suite));
    let ended = observe(&suite, "tcp").finish(LONG);
    assert_carried(&suite, &ended.stdout);
}

#[test]
fn a_key_that_is_known_but_not_built_is_named_and_nothing_runs() {
    let suite = Suite::new();
    let text = list_shape(&suite);
    let text = text.replace("generator:\n", "generator:\n  - kafka: {topic: a}\n");
    suite.file("lading.yaml", &text);
    let ended = observe(&suite, "tcp").finish(LONG);
    assert_code(&ended, 2);
    assert_holds(
        &ended.stderr,
        &["`kafka` is not supported", "lading.yaml:2:5", "^^^"],
    );
    assert!(!suite.results().exists());
    let checked = suite.call(&["check", "lading.yaml"]);
    assert_code(&checked, 2);
    assert_holds(&checked.stderr, &["`kafka` is not supported"]);
}

#[test]
fn an_unknown_key_gets_the_nearest_name() {
    let suite = Suite::new();
    suite.file(
        "lading.yaml",
        &list_shape(&suite).replace("binding_addr", "binding_adr"),
    );
    let ended = suite.call(&["check", "lading.yaml"]);
    assert_code(&ended, 2);
    assert_holds(
        &ended.stderr,
        &["`binding_adr`", "binding_addr", "lading.yaml:11:7"],
    );
}

/// Twice the same generator, which lading panics on.
#[test]
fn two_http_generators_in_one_file_both_send() {
    let suite = Suite::new();
    let entry = map_shape(&suite);
    let (generator, rest) = entry.split_once("\n\n").unwrap();
    let body = generator.strip_prefix("generator:\n  http:\n").unwrap();
    let item = format!(
        "  - http:\n{}",
        body.replace("\n    ", "\n      ")
            .replacen("    ", "      ", 1)
    );
    suite.file(
        "lading.yaml",
        &format!("generator:\n{item}\n{item}\n\n{rest}"),
    );
    let ended = observe(&suite, "http").finish(LONG);
    assert_carried(&suite, &ended.stdout);
    let capture = stillwell_capture::Capture::open(&suite.results()).unwrap();
    for id in ["http", "http-2"] {
        let sent = capture.series.named("bytes_written");
        let sent = sent.filter(|(labels, _)| labels.value("id") == Some(id));
        assert!(sent.count() > 0, "{id} sent nothing");
    }
}

/// In lading the run goes on without the sink, and ends well.
#[test]
fn a_sink_that_cannot_bind_ends_the_run() {
    let suite = Suite::new();
    // An address that no machine has: it is for documentation.
    let nowhere = "203.0.113.1:8080";
    suite.file(
        "lading.yaml",
        &list_shape(&suite).replace(&suite.sink, nowhere),
    );
    let ended = observe(&suite, "tcp").finish(LONG);
    assert_code(&ended, 3);
    assert_holds(&ended.stdout, &["bind sink `tcp`", nowhere]);
}
