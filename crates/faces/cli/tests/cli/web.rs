//! Requests of any kind in runs and experiments, to real servers.

use serde_json::Value;
use stillwell_scope::clock;
use stillwell_testkit::{Finished, Process};
use stillwell_units::float_from_u64;

use crate::suite::{LONG, STILLWELL, Suite};

/// A run around `stillwell serve` with one generator.
fn observe(suite: &Suite, generator: &str) -> (Finished, Value) {
    observe_server(suite, "serve, --address", generator)
}

/// A run around `stillwell` with `words` and an address.
fn observe_server(suite: &Suite, words: &str, generator: &str) -> (Finished, Value) {
    let listen = &suite.listen;
    let text = format!(
        "target:\n  name: server\n  command: [\"{STILLWELL}\", {words}, \"{listen}\"]\n  \
         ready: {{tcp: \"{listen}\"}}\n\
         phases: {{ready: 60s, warmup: 200ms, measure: 3s}}\n\
         workload:\n  generators:\n    - id: web\n      requests: {generator}\n      \
         rate: 200/s\n      connections: 4\n"
    );
    suite.file("run.yaml", &text);
    let words = ["observe", "run.yaml", "--results", "results"];
    let ended = Process::start(&mut suite.stillwell(&words)).finish(LONG);
    let summary = std::fs::read_to_string(suite.results().join("summary.json"));
    assert!(summary.is_ok(), "{}{}", ended.stdout, ended.stderr);
    (ended, serde_json::from_str(&summary.unwrap()).unwrap())
}

/// Returns true for a run with a warning about lateness or missing samples.
fn is_busy(summary: &Value) -> bool {
    let codes = [
        "cpu_steal",
        "generator_late",
        "samples_missing",
        "target_delayed",
        "worker_delayed",
    ];
    let warnings = summary["warnings"].to_string();
    codes.iter().any(|code| warnings.contains(code))
}

#[test]
fn requests_of_a_mix_are_sent_at_the_rate_and_answered() {
    for protocol in ["http1", "http2"] {
        let suite = Suite::new();
        let listen = suite.listen.clone();
        let mix = format!(
            "{{url: \"http://{listen}/\", protocol: {protocol}, \
             mix: [{{path: /a, weight: 3}}, {{path: /b, method: POST, body: hello}}]}}"
        );
        let begun = clock::now();
        let (ended, summary) = observe(&suite, &mix);
        // Phases take longer on a busy machine.
        let most = 200.0 * float_from_u64(clock::now().since(begun).as_u64()) / 1e9;
        let figures = &summary["figures"];
        let sent = figures["whole"]["events_sent"].as_f64().unwrap_or_default();
        assert!((100.0..most).contains(&sent), "{protocol}: {figures}");
        let text = format!("{}{}", ended.stdout, ended.stderr);
        assert!(text.contains(" ok\n"), "{text}");
        assert!(!figures["response_time"].is_null(), "{protocol}: {figures}");
        assert!(!figures["first_byte"].is_null(), "{protocol}: {figures}");
        let routes = figures["routes"].as_array().unwrap();
        let names: Vec<&Value> = routes.iter().map(|route| &route["name"]).collect();
        assert_eq!(names, ["GET /a", "POST /b"], "{protocol}: {figures}");
        let of_routes: u64 = routes
            .iter()
            .map(|route| route["statuses"]["200"].as_u64().unwrap())
            .sum();
        // Both are read while requests end, one after the other; on a busy machine many end between.
        let in_all = figures["statuses"]["200"].as_u64().unwrap();
        let both = [in_all, of_routes].map(float_from_u64);
        assert!(
            both.iter().all(|count| (1.0..most).contains(count)),
            "{protocol}: {figures}"
        );
        // A pause between both reads moves one by 200 each second of it. A quarter is 750 ms.
        assert!(
            is_busy(&summary) || in_all.abs_diff(of_routes) <= in_all / 4,
            "{protocol}: {summary}"
        );
        assert!(text.contains("GET /a "), "{text}");
    }
}

#[test]
fn a_mistake_in_requests_names_its_remedy() {
    let suite = Suite::new();
    for (requests, message) in [
        (
            "{url: \"http://127.0.0.1:1/\", mix: [{path: a}]}",
            "write `/a`",
        ),
        ("{url: \"http://127.0.0.1:1/\", protocol: http3}", "HTTP/3"),
        (
            "{url: \"http://127.0.0.1:1/\", mix: [{}], har: x.har}",
            "there is no file",
        ),
    ] {
        let text = format!("workload:\n  generators:\n    - requests: {requests}\n");
        suite.file("run.yaml", &text);
        let words = ["check", "run.yaml"];
        let ended = Process::start(&mut suite.stillwell(&words)).finish(LONG);
        assert!(ended.stderr.contains(message), "{}", ended.stderr);
        assert!(!ended.stderr.contains("payload"), "{}", ended.stderr);
    }
}

#[test]
fn a_target_describes_the_calls_of_a_run_by_reflection() {
    let session = "grpc.reflection.v1alpha.ServerReflection.ServerReflectionInfo";
    let list = r#"'{"listServices": ""} {"fileByFilename": "none"}'"#;
    for call in [
        "grpc.health.v1.Health/Check".to_owned(),
        format!("{session}, json: {list}, messages: 3"),
    ] {
        let suite = Suite::new();
        let generator = format!(
            "{{url: \"http://{}/\", grpc: {{method: {call}}}}}",
            suite.listen
        );
        let (ended, summary) = observe_server(&suite, "service, --listen", &generator);
        assert_eq!(summary["outcome"], "completed", "{}", ended.stderr);
        let outcomes = summary["figures"]["outcomes"].as_array().unwrap();
        assert_eq!(outcomes.len(), 1, "{outcomes:?}");
        assert_eq!(outcomes[0]["outcome"], "ok");
        assert!(outcomes[0]["count"].as_u64().unwrap() > 100, "{outcomes:?}");
    }
}

#[test]
fn a_call_that_the_target_does_not_describe_ends_the_run_before_its_load() {
    for (server, keys, message) in [
        (
            "service, --listen",
            "grpc: {method: grpc.health.v1.Healht/Check}",
            "has no `grpc.health.v1.Healht`; it offers ",
        ),
        (
            "service, --listen",
            "grpc: {method: grpc.health.v1.Health/Chek}",
            "did you mean `Check`?",
        ),
        (
            "service, --listen",
            "grpc: {method: grpc.health.v1.Health/Check, json: '{\"servise\": \"\"}'}",
            "field `servise`",
        ),
        (
            "service, --listen",
            "grpc: {method: grpc.health.v1.Health/Check, messages: 2}",
            "`messages` needs a method with client streaming",
        ),
        // It waits for the end of a request that has none, as web servers do.
        (
            "serve, --address",
            "connect_timeout: 1s, grpc: {method: grpc.health.v1.Health/Check}",
            "the server's reflection did not respond within 1s",
        ),
    ] {
        let suite = Suite::new();
        let generator = format!("{{url: \"http://{}/\", {keys}}}", suite.listen);
        let (ended, summary) = observe_server(&suite, server, &generator);
        assert_eq!(ended.code, 3, "{}{}", ended.stdout, ended.stderr);
        assert!(
            ended.stderr.contains(message) || ended.stdout.contains(message),
            "{ended:?}"
        );
        assert!(summary["outcome"]["never_ready"].is_object(), "{summary}");
    }
}
