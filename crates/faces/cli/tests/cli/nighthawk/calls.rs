//! Loads of gRPC calls, by `--grpc-mode`.

use super::*;

const OK: &str = "benchmark_http_client.latency_grpc_ok";

/// The result of ten calls that end as `counter` says. The message holds bytes that are no text.
fn call(origin: &Origin, words: &str, counter: &str) -> Found {
    let folder = tempfile::tempdir().unwrap();
    let body = folder.path().join("message");
    std::fs::write(&body, b"\x0a\x05world\x00\xff").unwrap();
    measure(&format!(
        "--grpc-mode unary --request-body-file {} --rps 100 --duration 100 \
         --max-active-requests 1 --termination-predicate {counter}:9 {words} {}a.b.C/Call",
        body.display(),
        origin.url()
    ))
}

fn with_status(status: &str) -> String {
    config_header(&format!(
        "{{v3_response_headers:[{{header:{{key:\"grpc-status\",value:\"{status}\"}}}}]}}"
    ))
}

// compat: nighthawk_client | --grpc-mode | works
// compat: counters of nighthawk_client | benchmark.grpc_status.N | works
#[test]
fn a_call_that_ends_with_status_0_is_a_success() {
    let origin = Origin::start();
    let result = call(&origin, &with_status("0"), "benchmark.http_2xx");
    for (name, value) in [
        ("benchmark.http_2xx", 10),
        ("benchmark.grpc_status.0", 10),
        ("benchmark.grpc_error", 0),
        ("upstream_cx_http2_total", 1),
    ] {
        assert_eq!(result.counter(name), value, "{name}");
    }
    for id in [OK, "benchmark_http_client.latency_2xx"] {
        assert_eq!(result.samples(id), 10, "{id}");
    }
}

// compat: nighthawk_client | --grpc-mode | works
// compat: nighthawk_test_server | grpc-status of local replies | works
// compat: counters of nighthawk_client | benchmark.grpc_error | works
/// Envoy answers a call that no filter answers with status 2.
#[test]
fn calls_that_end_otherwise_are_errors_and_no_successes() {
    let origin = Origin::start();
    let plain = "--request-header 'content-type: application/octet-stream'";
    for (words, status) in [
        (with_status("13").as_str(), "13"),
        ("", "2"),
        (plain, "missing"),
    ] {
        let words = format!("--no-default-failure-predicates {words}");
        let result = call(&origin, &words, "benchmark.grpc_error");
        assert_eq!(result.counter("benchmark.grpc_error"), 10, "{status}");
        let counter = format!("benchmark.grpc_status.{status}");
        assert_eq!(result.counter(&counter), 10, "{status}");
        assert_eq!(result.counter("benchmark.http_2xx"), 0, "{status}");
        assert_eq!(result.samples(OK), 0, "{status}");
    }
}
