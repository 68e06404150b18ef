//! Stamps in the headers of requests and in the metadata of calls: whole requests are
//! what is followed.

use serde_json::Value;
use stillwell_testkit::{Process, program_or_skip};

use super::{Load, MANY, Pace, Run, TEXTS, faults_are_found_with};
use crate::suite::{LONG, Suite};

/// A few events in each request, none longer than the span of a stamp.
const HEADERS: Load<'static> = Load {
    generator: "stamps: {form: header}\n      block: {events: 3, maximum: 4 KiB}",
    ..TEXTS
};

const PACE: Pace = Pace {
    rate: 900,
    measure: "4s",
};

/// For many runs in one test.
const SHORT: Pace = Pace {
    measure: "2s",
    ..PACE
};

const REQUESTS: [&str; 2] = ["--events", "requests"];

#[test]
fn what_a_relay_does_to_requests_is_reported_exactly() {
    faults_are_found_with("http", "http", HEADERS, PACE, MANY, &REQUESTS);
}

#[test]
fn what_a_relay_does_to_calls_is_reported_exactly() {
    faults_are_found_with("grpc", "http", HEADERS, PACE, MANY, &REQUESTS);
}

/// A relay that takes requests apart has nowhere to put their headers.
#[test]
fn a_relay_that_leaves_headers_out_loses_every_request() {
    let run = Run::with("http", "http", HEADERS, PACE, &[]);
    let sent = run.count("sent");
    assert!(sent > 100, "{}", run.shown);
    assert_eq!((run.count("lost"), run.count("received")), (sent, 0));
    assert!(
        run.shown.contains("requests over the whole run"),
        "{}",
        run.shown
    );
}

#[test]
fn one_request_in_so_many_is_stamped() {
    let load = Load {
        generator: "stamps: {form: header, every: 7}\n      block: {events: 3, maximum: 4 KiB}",
        ..HEADERS
    };
    let run = Run::with("http", "http", load, PACE, &REQUESTS);
    let (sent, requests) = (run.count("sent"), run.count_of("whole", "events_sent") / 3);
    assert!(
        sent > 20 && sent.abs_diff(requests / 7) <= 1,
        "{sent} of {requests}"
    );
    assert_eq!((run.count("lost"), run.count("intact")), (0, sent));
}

/// Stamps in the text of events, over what sends its own kind of requests.
#[test]
fn events_of_the_collector_and_of_calls_are_stamped_in_their_text() {
    for (input, payload) in [("hec", "splunk_hec"), ("grpc", "opentelemetry_logs")] {
        let load = Load {
            payload,
            generator: "stamps: all",
            ..TEXTS
        };
        let run = Run::with(input, "tcp", load, PACE, &[]);
        let sent = run.count("sent");
        assert!(sent > 100, "{input}: {}", run.shown);
        for name in ["lost", "duplicated", "damaged", "reordered"] {
            assert_eq!(run.count(name), 0, "{input} {name}: {}", run.shown);
        }
        assert_eq!(run.count("received"), sent, "{input}");
    }
}

/// Sinks that simulate services read headers over both versions, and the metadata of
/// calls.
#[test]
fn sinks_of_services_find_the_stamps_of_requests_and_calls() {
    let logs = "opentelemetry.proto.collector.logs.v1.LogsService/Export";
    let push = "loki/api/v1/push, headers: {content-type: application/json}";
    for (target, path, payload, kind) in [
        (
            "grpc: {url: \"http://",
            format!("{logs}\"}}"),
            "opentelemetry_logs",
            "otlp",
        ),
        (
            "http: {url: http://",
            "a, protocol: http2, streams: 3}".to_owned(),
            "syslog5424",
            "http",
        ),
        (
            "grpc: {url: \"http://",
            "any.Service/Method\"}".to_owned(),
            "netflow",
            "http",
        ),
        ("http: {url: http://", format!("{push}}}"), "loki", "loki"),
        (
            "http: {url: http://",
            format!("{push}, protocol: http2}}"),
            "loki",
            "loki",
        ),
        (
            "splunk_hec: {token: t, url: \"http://",
            "\"}".to_owned(),
            "splunk_hec",
            "splunk_hec",
        ),
        (
            "trace_agent: \"http://",
            "\"".to_owned(),
            "trace_agent",
            "http",
        ),
    ] {
        let load = Load {
            payload,
            generator: "stamps: {form: header}\n      block: 8 KiB",
            ..TEXTS
        };
        let target = |sink: &str| format!("{target}{sink}/{path}");
        let run = Run::direct(target, kind, load, SHORT);
        let sent = run.count("sent");
        assert!(sent > 5, "{kind}: {}", run.shown);
        assert_eq!(run.count("intact"), sent, "{kind}: {}", run.shown);
        assert_eq!((run.check("lossless"), run.check("once")), ("pass", "pass"));
    }
}

/// Requests over HTTP/2 through a real proxy that sends its clients away with others
/// under way, to a sink of HTTP/1.1.
#[test]
fn a_proxy_carries_headers_on_from_http2() {
    let Some(nginx) = program_or_skip("stamps::headers", "nginx") else {
        return;
    };
    let suite = Suite::new();
    let conf = suite.file("nginx.conf", &super::http2::configuration(&suite));
    let (listen, sink) = (&suite.listen, &suite.sink);
    let text = format!(
        "target:\n  name: nginx\n  command: [\"{}\", -e, stderr, -c, \"{}\"]\n  \
         ready: {{tcp: \"{listen}\"}}\n\
         phases: {{ready: 10s, warmup: 200ms, measure: 2s, drain: 10s, quiet: 500ms}}\n\
         workload:\n  generators:\n    - http: {{url: \"http://{listen}/\", protocol: http2, streams: 4}}\n      \
         payload: opentelemetry_traces\n      cache: 1 MiB\n      block: 4 KiB\n      connections: 2\n      \
         rate: 2000/s\n      stamps: {{form: header}}\n  sinks:\n    - http: \"{sink}\"\n",
        nginx.display(),
        conf.display(),
    );
    suite.file("run.yaml", &text);
    let words = ["observe", "run.yaml", "--results", "results"];
    let ended = Process::start(&mut suite.stillwell(&words)).finish(LONG);
    let summary = std::fs::read_to_string(suite.results().join("summary.json"));
    assert!(summary.is_ok(), "{}{}", ended.stdout, ended.stderr);
    let summary: Value = serde_json::from_str(&summary.unwrap()).unwrap();
    let account = &summary["figures"]["ledger"]["generators"][0];
    assert_eq!(account["streams"], 8, "{account}");
    assert!(account["sent"].as_u64().unwrap() > 20, "{account}");
    for name in ["lost", "duplicated", "unsent"] {
        let none = serde_json::json!({"least": 0, "most": 0});
        assert_eq!(account[name], none, "{name}: {}", ended.stdout);
    }
    assert_eq!(account["intact"], account["sent"], "{}", ended.stdout);
}
