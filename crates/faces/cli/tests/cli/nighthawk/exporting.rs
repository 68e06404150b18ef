//! Exports while a load goes on.

use std::io::Read;
use std::net::{TcpListener, UdpSocket};

use stillwell_units::float_from_u64;

use super::*;

/// They take longer than a second, the shortest time between two flushes by whole seconds.
const FEW: &str =
    "--rps 100 --connections 1 --duration 100 --termination-predicate benchmark.http_2xx:119";

fn sink(of: &str, config: &str) -> String {
    format!(
        "--stats-sinks '{{name:\"envoy.stat_sinks.{of}\",typed_config:{{\"@type\":\
         \"type.googleapis.com/envoy.config.metrics.v3.StatsdSink\",{config}}}}}'"
    )
}

/// All that was sent to `socket`, once no more is sent.
fn datagrams(socket: &UdpSocket) -> String {
    socket.set_nonblocking(true).unwrap();
    let (mut all, mut buffer) = (String::new(), vec![0; 1 << 16]);
    while let Ok(length) = socket.recv(&mut buffer) {
        all.push_str(&String::from_utf8_lossy(&buffer[..length]));
        all.push('\n');
    }
    all
}

// compat: nighthawk_client | --stats-sinks | differs | statsd and dog_statsd; a sink with tcp_cluster_name needs an address
// compat: nighthawk_client | --stats-flush-interval | works
// compat: nighthawk_client | --stats-flush-interval-duration | works
#[test]
fn statsd_is_reported_counts_in_datagrams_at_every_flush() {
    let origin = Origin::start();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    let to = format!(
        "address:{{socket_address:{{protocol:UDP,address:\"127.0.0.1\",port_value:{port}}}}},\
         prefix:\"nh\""
    );
    let sink = sink("statsd", &to);
    for every in [
        "--stats-flush-interval 1",
        "--stats-flush-interval-duration 0.5s",
    ] {
        let result = measure(&format!("{FEW} {every} {sink} {}", origin.url()));
        let printed = datagrams(&socket);
        let values = |name: &str, kind: &str| -> Vec<f64> {
            let lines = printed.lines().filter_map(|line| line.strip_prefix(name));
            lines
                .filter_map(|line| line.strip_suffix(kind)?.parse().ok())
                .collect()
        };
        let answered = values("nh.cluster.0.benchmark.http_2xx:", "|c");
        let total = float_from_u64(result.counter("benchmark.http_2xx"));
        assert!(
            (answered.iter().sum::<f64>() - total).abs() < 0.1,
            "{every}: {printed}"
        );
        // A line for each request, in milliseconds.
        let times = values("nh.cluster.0.benchmark_http_client.latency_2xx:", "|ms");
        assert!(
            (float_from_u64(times.len() as u64) - total).abs() < 0.1,
            "{every}: {printed}"
        );
        assert!(
            times.iter().all(|time| (0.0..60_000.0).contains(time)),
            "{times:?}"
        );
        let sinks = result.output["options"]["stats_sinks"].as_array().unwrap();
        assert_eq!(sinks[0]["name"], "envoy.stat_sinks.statsd");
    }
}

#[test]
fn receivers_of_tags_get_the_worker_as_a_tag() {
    let origin = Origin::start();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    let to = format!(
        "address:{{socket_address:{{address:\"127.0.0.1\",port_value:{port}}}}},prefix:\"nh\""
    );
    let line = format!(
        "{FEW} --concurrency 2 {} {}",
        sink("dog_statsd", &to),
        origin.url()
    );
    measure(&line);
    let printed = datagrams(&socket);
    for worker in ["0", "1"] {
        let answered: u64 = printed
            .lines()
            .filter_map(|line| line.strip_prefix("nh.cluster.benchmark.http_2xx:"))
            .filter_map(|line| line.strip_suffix(&format!("|c|#envoy.cluster_name:{worker}")))
            .map(|count| count.parse::<u64>().unwrap())
            .sum();
        assert!(answered > 0, "{worker}: {printed}");
        let kind = format!("|ms|#envoy.cluster_name:{worker}");
        let is_time = |line: &&str| {
            line.starts_with("nh.cluster.benchmark_http_client.latency_2xx:")
                && line.ends_with(&kind)
        };
        // The times of a worker are its own.
        let times = printed.lines().filter(is_time).count() as u64;
        assert_eq!(times, answered, "{worker}: {printed}");
    }
}

// compat: nighthawk_client | --stats-sink-address | differs | only here: the address of a sink with tcp_cluster_name
#[test]
fn statsd_is_reported_counts_over_tcp_where_its_cluster_is() {
    let origin = Origin::start();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let sink = sink("statsd", "tcp_cluster_name:\"statsd\"");
    let few = "--rps 100 --duration 100 --termination-predicate benchmark.http_2xx:2";
    let result = measure(&format!("{few} {sink} {}", origin.url()));
    let warning = "[W] --stats-sinks: nothing is sent to the cluster";
    assert!(result.log.contains(warning), "{}", result.log);
    let at = format!("--stats-sink-address {address} --stats-flush-interval 1");
    measure(&format!("{FEW} {at} {sink} {}", origin.url()));
    let (mut stream, _) = listener.accept().unwrap();
    let mut output = String::new();
    stream.read_to_string(&mut output).unwrap();
    assert!(
        output.lines().all(|line| line.starts_with("envoy.")),
        "{output}"
    );
    assert!(output.lines().any(|line| line.ends_with("|c")), "{output}");
}

// compat: nighthawk_client | --trace | differs | version 2 of Zipkin's interface; batches are larger than five spans
// compat: counters of nighthawk_client | tracing.zipkin.spans_sent | works
#[test]
fn every_request_leaves_a_span_at_the_tracer() {
    let (origin, tracer) = (Origin::start(), Origin::start());
    // Documentation of 2020 names version 1 of the interface.
    for version in ["v1", "v2"] {
        let trace = format!(
            "--trace zipkin://{}/api/{version}/spans",
            address(tracer.url())
        );
        let line = "--rps 100 --connections 1 --duration 100 \
                    --termination-predicate benchmark.http_2xx:49";
        let result = measure(&format!("{line} {trace} {}", origin.url()));
        assert_eq!(result.counter("benchmark.http_2xx"), 50);
        let sent = result.counter("tracing.zipkin.spans_sent");
        let has_failed = result.log.contains("export failed");
        let least = if has_failed { 0 } else { 45 };
        assert!((least..=50).contains(&sent), "{sent}");
        assert_eq!(
            result.log.contains("[W] --trace: version 2"),
            version == "v1"
        );
    }
    assert!(tracer.stop() >= 2);
}

// compat: nighthawk_client | --user-defined-plugin-config | differs | the two plugins of Nighthawk; others are refused
#[test]
fn headers_of_answers_are_logged_and_results_report_it() {
    let origin = Origin::start();
    let plugin = |mode: &str, names: &str| {
        format!(
            "--user-defined-plugin-config '{{name:\"nighthawk.log_response_headers_plugin\",\
             typed_config:{{\"@type\":\"type.googleapis.com/nighthawk.LogResponseHeadersConfig\",\
             logging_mode:{mode},log_headers_with_name:[{names}]}}}}'"
        )
    };
    let (all, skip) = ("LM_LOG_ALL_RESPONSES", "LM_SKIP_200_LEVEL_RESPONSES");
    let times = |actual: &Found, line: &str| actual.log.matches(line).count() as u64;
    let logged = "Received Header with name x-nh and value 1";
    for (protocol, workers) in [("http1", 1), ("http2", 2)] {
        let few = format!("{FEW} --protocol {protocol} --concurrency {workers}");
        let by_name = plugin(all, "X-Nh");
        let actual = measure(&format!("{few} {by_name} {}", origin.url()));
        let answers = actual.counter("benchmark.http_2xx");
        assert!(answers > 0, "{answers}");
        assert_eq!(times(&actual, logged), answers, "{protocol}");
        assert_eq!(times(&actual, "Received Header"), answers, "{protocol}");
        for result in actual.results() {
            let output = &result["user_defined_outputs"][0];
            let name = "nighthawk.log_response_headers_plugin";
            assert_eq!(output["plugin_name"], name);
            let of = "type.googleapis.com/nighthawk.LogResponseHeadersOutput";
            assert_eq!(output["typed_output"]["@type"], of);
        }
        // Two plugins, of which one passes over what is well.
        let both = [plugin(all, ""), plugin(skip, "")].join(" ");
        let actual = measure(&format!("{few} {both} {}", origin.url()));
        let answers = actual.counter("benchmark.http_2xx");
        for line in [logged, "Received Header with name :status and value 200"] {
            assert_eq!(times(&actual, line), answers, "{protocol}: {line}");
        }
        let outputs = actual.results()[0]["user_defined_outputs"].as_array();
        assert_eq!(outputs.unwrap().len(), 2);
        // News are for those who want them.
        let actual = measure(&format!("{few} -v warn {by_name} {}", origin.url()));
        assert_eq!(times(&actual, "Received Header"), 0);
    }
    let bad = "--no-default-failure-predicates --request-method POST --request-header ':path: /'";
    let failing = format!("{bad} --request-header 'x-nighthawk-test-server-config: {{broken'");
    let skip = plugin(skip, "\":status\"");
    let few = "--rps 100 --connections 1 --duration 100 \
               --termination-predicate benchmark.http_5xx:19";
    let actual = measure(&format!("{few} {failing} {skip} {}", origin.url()));
    let answers = actual.counter("benchmark.http_5xx");
    assert!(answers > 0, "{}", actual.log);
    let line = "Received Header with name :status and value 500";
    assert_eq!(times(&actual, line), answers);
}
