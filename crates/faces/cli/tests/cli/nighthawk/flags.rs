//! Output formats, verbosity, and flags that are refused.

use super::*;

// compat: nighthawk_client | --help | works
// compat: nighthawk_client | --version | works
#[test]
fn help_version_and_mistakes_have_nighthawks_words_and_exits() {
    for (line, code, part) in [
        ("--help", 0, "USAGE"),
        ("-h", 0, "--rps"),
        ("--version", 0, "nighthawk_client "),
        ("--foo", 1, "PARSE ERROR: Argument: --foo"),
        (
            "",
            1,
            "Bad argument: A URI or --multi-target-* options must be specified.",
        ),
        ("a://b", 1, "Invalid target URI"),
        (
            "--termination-predicate a:a http://foo",
            1,
            "Bad argument: Termination predicate 'a:a' has an out of range threshold.",
        ),
        (
            "--rps 0 http://foo",
            1,
            "value must be inside range [1, 1000000]",
        ),
        ("--nighthawk-service a:-1 http://foo", 1, "Bad service uri"),
        (
            "--protocol http3 http://127.0.0.1:1",
            1,
            "HTTP/3 requires TLS",
        ),
        (
            "--user-defined-plugin-config {} http://foo",
            1,
            "--user-defined-plugin-config",
        ),
        (
            "--user-defined-plugin-config '{name: mine, typed_config: {}}' http://foo",
            1,
            "unknown user-defined output plugin `mine`",
        ),
        (
            "--grpc-mode unary --protocol http1 http://foo",
            1,
            "--grpc-mode can only be used with --protocol http2",
        ),
        (
            "--stats-sinks '{name: statsd}' http://foo",
            1,
            "unknown stats sink `statsd`",
        ),
        (
            "--trace jaeger://a:1/ http://foo",
            1,
            "--trace: `jaeger://a:1/` is not zipkin://",
        ),
    ] {
        let ended = client(line);
        assert_eq!(ended.code, code, "{line}: {}", ended.stderr);
        let output = if code == 0 {
            &ended.stdout
        } else {
            &ended.stderr
        };
        assert!(output.contains(part), "{line}: {output}");
    }
}

// compat: nighthawk_client | --output-format | works
#[test]
fn every_output_format_is_reported_on_standard_output_alone() {
    let origin = Origin::start();
    let few = "--rps 200 --connections 1 --duration 100 \
               --termination-predicate benchmark.http_2xx:4 --label a --label b";
    for (format, part) in [
        ("human", "Initiation to completion (5 samples)"),
        ("json", "\"name\": \"global\""),
        ("yaml", "- name: global"),
        (
            "dotted",
            "global.benchmark_http_client.request_to_response.permilles-500.microseconds: ",
        ),
        ("csv", "benchmark.http_2xx,5,"),
        (
            "prometheus",
            "nighthawk_benchmark_http_2xx{scope=\"global\"} 5\n",
        ),
        ("fortio", "\"Labels\": \"a b\""),
        ("experimental_fortio_pedantic", "\"200\": 5"),
        ("fortio-2020", "\"Labels\": \"a b Nighthawk\""),
        ("human-2020", "Initiation to completion\n  samples: 5\n"),
    ] {
        let ended = client(&format!("{few} --output-format {format} {}", origin.url()));
        assert_eq!(ended.code, 0, "{format}: {}", ended.stderr);
        assert!(ended.stdout.contains(part), "{format}: {}", ended.stdout);
        assert!(!ended.stdout.contains("[I]"), "{format}");
    }
    let ended = client(&format!("--output-format xml {}", origin.url()));
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.contains("Bad argument: "), "{}", ended.stderr);
}

// compat: nighthawk_client | --verbosity | differs | trace adds the answers of each connection, not all of Envoy's lines
#[test]
fn each_level_of_verbosity_prints_the_lines_of_those_above_it() {
    let origin = Origin::start();
    let few = "--h2 --experimental-h2-use-multiple-connections --max-active-requests 1 --rps 200 \
               --duration 100 --termination-predicate benchmark.http_2xx:4";
    for (level, is_informed, is_warned) in [
        ("trace", true, true),
        ("debug", true, true),
        ("info", true, true),
        ("warn", false, true),
        ("error", false, false),
        ("critical", false, false),
    ] {
        let ended = client(&format!("{few} --verbosity {level} {}", origin.url()));
        assert_eq!(ended.code, 0, "{level}: {}", ended.stderr);
        assert_eq!(
            ended.stderr.contains("[I] Done."),
            is_informed,
            "{level}: {}",
            ended.stderr
        );
        assert_eq!(
            ended.stderr.contains("][W] "),
            is_warned,
            "{level}: {}",
            ended.stderr
        );
        assert_eq!(
            ended.stderr.contains("nighthawk_service_zone"),
            level == "trace",
            "{level}: {}",
            ended.stderr
        );
    }
}

// compat: nighthawk_client | --label | works
#[test]
fn results_carry_the_requested_options() {
    let origin = Origin::start();
    let line = "--rps 200 --connections 2 --label one --timeout 7 \
                --termination-predicate benchmark.http_2xx:4 --request-header a:b";
    let result = measure(&format!("{line} {}", origin.url()));
    let options = &result.output["options"];
    let expected = serde_json::json!({
        "requests_per_second": 200,
        "connections": 2,
        "duration": "5s",
        "timeout": "7s",
        "concurrency": "1",
        "verbosity": { "value": "INFO" },
        "output_format": { "value": "JSON" },
        "prefetch_connections": false,
        "burst_size": 0,
        "address_family": { "value": "AUTO" },
        "max_pending_requests": 0,
        "max_active_requests": 100,
        "max_requests_per_connection": 4_294_937_295_u32,
        "sequencer_idle_strategy": { "value": "SPIN" },
        "uri": origin.url(),
        "experimental_h1_connection_reuse_strategy": { "value": "MRU" },
        "termination_predicates": { "benchmark.http_2xx": "4" },
        "no_default_failure_predicates": false,
        "open_loop": false,
        "labels": ["one"],
        "simple_warmup": false,
        "max_concurrent_streams": 2_147_483_647,
        "protocol": { "value": "HTTP1" },
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&options[name], value, "{name}");
    }
    assert_eq!(options["failure_predicates"].as_object().unwrap().len(), 5);
    let request = &options["request_options"];
    assert_eq!(request["request_method"], "GET");
    assert_eq!(request["request_headers"][0]["header"]["key"], "a");
}

// compat: nighthawk_client | URI | works
// compat: nighthawk_client | -- | works
// compat: nighthawk_client | --ignore_rest | works
#[test]
fn what_follows_the_end_of_flags_is_the_target() {
    let origin = Origin::start();
    let few = "--rps 200 --connections 1 --duration 100 \
               --termination-predicate benchmark.http_2xx:4";
    for end in ["--", "--ignore_rest"] {
        let result = measure(&format!("{few} {end} {}", origin.url()));
        assert_eq!(result.counter("benchmark.http_2xx"), 5, "{end}");
    }
    // Without a scheme it is http.
    let result = measure(&format!("{few} {}", address(origin.url())));
    assert_eq!(result.counter("benchmark.http_2xx"), 5);
}
