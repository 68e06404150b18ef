//! Exact counts.

use super::*;

const BODY: &str = "benchmark_http_client.response_body_size";
const HEAD: &str = "benchmark_http_client.response_header_size";
const BLOCKING: &str = "sequencer.blocking";
const CALLBACK: &str = "sequencer.callback";

/// Sixty requests in three seconds, of which each of three targets gets 20. A target that connects or responds late catches up, and
/// lacks only what was due meanwhile. One that is late for three seconds still gets five.
pub(super) const TURNS: &str =
    "--rps 20 --duration 100 --termination-predicate benchmark.http_2xx:59";

/// The command of Nighthawk's documentation, with a shorter duration.
#[test]
fn the_documented_command_loses_no_request_and_reports_every_worker() {
    let origin = Origin::start();
    let line = "--rps 1000 --connections 4 --concurrency auto --prefetch-connections -v info \
                --duration 2";
    let actual = measure(&format!("{line} {}", origin.url()));
    let workers = actual.results().len() as u64;
    let workers = if workers == 1 { 1 } else { workers - 1 };
    let answered = actual.counter("benchmark.http_2xx");
    let requested = 2000 * workers;
    // What is due in the last tenth of a second may come too late where there is no CPU for it. A warning reports more.
    let least_of_worker = if actual.log.contains("[W]") { 0 } else { 1900 };
    assert!(
        answered >= least_of_worker * workers,
        "{answered} of {requested}: {}",
        actual.log
    );
    assert!(answered <= requested, "{answered} of {requested}");
    assert_eq!(actual.counter("upstream_cx_http1_total"), 4 * workers);
    for id in [
        "benchmark_http_client.queue_to_connect",
        "benchmark_http_client.request_to_response",
        CALLBACK,
    ] {
        assert_eq!(actual.samples(id), answered, "{id}");
    }
    let entry = (0..workers).filter(|_| workers > 1).map(|number| {
        let result = actual.result(&format!("worker_{number}"));
        let entry = counter_of(result, "benchmark.http_2xx");
        assert!(entry >= least_of_worker, "worker {number}: {entry}");
        entry
    });
    let entry: Vec<u64> = entry.collect();
    assert!(entry.is_empty() || entry.iter().sum::<u64>() == answered);
    assert!(actual.log.contains("[I] Starting "), "{}", actual.log);
    assert_eq!(origin.stop(), answered);
}

/// The same for people.
#[test]
fn the_layout_for_people_is_todays() {
    let origin = Origin::start();
    let line = "--rps 200 --connections 1 --duration 100 \
                --termination-predicate benchmark.http_2xx:9";
    let ended = client(&format!("{line} {}", origin.url()));
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    for part in [
        "Nighthawk - A layer 7 protocol benchmarking tool.\n\n",
        "Queueing and connection setup latency (10 samples)\n  min: ",
        "Request start to response end (10 samples)\n  min: ",
        "Initiation to completion (10 samples)\n  min: ",
        "Response body size in bytes (10 samples)\n  min: 10 | mean: 10 | max: 10 | pstdev: 0\n",
        "  Percentile  Count       Value          \n",
        "Counter                                 Value       Per second\n",
        "benchmark.http_2xx                      10          ",
    ] {
        assert!(ended.stdout.contains(part), "{part}\n{}", ended.stdout);
    }
}

// compat: counters of nighthawk_client | benchmark.http_2xx | works
// compat: counters of nighthawk_client | default.total_match_count | works
// compat: counters of nighthawk_client | membership_change | works
// compat: counters of nighthawk_client | upstream_cx_http1_total | works
// compat: counters of nighthawk_client | upstream_cx_rx_bytes_total | works
// compat: counters of nighthawk_client | upstream_cx_total | works
// compat: counters of nighthawk_client | upstream_rq_pending_total | works
// compat: counters of nighthawk_client | upstream_rq_total | works
// compat: counters of nighthawk_client | cluster_manager.cluster_added | works
// compat: counters of nighthawk_client | runtime.load_success | works
// compat: counters of nighthawk_client | runtime.override_dir_not_exists | works
// compat: counters of nighthawk_client | upstream_cx_tx_bytes_total | works
#[test]
fn twenty_five_requests_over_http1_are_counted_to_the_byte() {
    let origin = Origin::start();
    let line = "--rps 500 --connections 1 --duration 100 \
                --termination-predicate benchmark.http_2xx:24";
    let result = measure(&format!("{line} {}", origin.url()));
    for (name, value) in [
        ("benchmark.http_2xx", 25),
        ("default.total_match_count", 1),
        ("membership_change", 1),
        ("upstream_cx_http1_total", 1),
        ("upstream_cx_rx_bytes_total", 25 * 136),
        ("upstream_cx_total", 1),
        ("upstream_rq_pending_total", 1),
        ("upstream_rq_total", 25),
    ] {
        assert_eq!(result.counter(name), value, "{name}");
    }
    // As many as Nighthawk prints.
    assert_eq!(result.counters("").len(), 12, "{:?}", result.counters(""));
    let host = address(origin.url());
    let request = format!("GET / HTTP/1.1\r\nhost: {host}\r\ncontent-length: 0\r\n\r\n");
    let sent = result.counter("upstream_cx_tx_bytes_total");
    assert_eq!(sent, 25 * request.len() as u64, "{request}");
    for (id, bytes) in [(BODY, 10.0), (HEAD, 97.0)] {
        let statistic = result.statistic(id);
        assert_eq!(whole(&statistic["count"]), 25, "{id}");
        assert_eq!(statistic["raw_mean"].as_f64(), Some(bytes), "{id}");
        assert_eq!(statistic["raw_pstdev"].as_f64(), Some(0.0), "{id}");
        for end in ["raw_min", "raw_max"] {
            assert_eq!(statistic[end], format!("{bytes}"), "{id} {end}");
        }
    }
    assert_eq!(origin.stop(), 25);
}

// compat: nighthawk_client | --h2 | works
// compat: counters of nighthawk_client | upstream_cx_http2_total | works
#[test]
fn twenty_five_requests_over_http2_need_one_connection() {
    let origin = Origin::start();
    for flag in ["--h2", "--protocol http2"] {
        let line = "--rps 500 --max-active-requests 1 --duration 100 \
                    --termination-predicate benchmark.http_2xx:24";
        let result = measure(&format!("{flag} {line} {}", origin.url()));
        for (name, value) in [
            ("benchmark.http_2xx", 25),
            ("upstream_cx_http2_total", 1),
            ("upstream_cx_total", 1),
            ("upstream_rq_pending_total", 1),
            ("upstream_rq_total", 25),
        ] {
            assert_eq!(result.counter(name), value, "{flag} {name}");
        }
        assert!(result.counter("upstream_cx_rx_bytes_total") >= 900);
        assert!(result.counter("upstream_cx_tx_bytes_total") >= 403);
        assert_eq!(result.statistic(HEAD)["raw_max"], "97");
    }
}

// compat: nighthawk_client | --max-pending-requests | works
// compat: counters of nighthawk_client | upstream_cx_overflow | works
/// More is requested than one connection carries: as many as permitted wait, and the
/// schedule pauses for the others.
#[test]
fn a_stress_over_http1_queues_as_much_as_it_may() {
    let origin = Origin::start();
    let line = "--rps 999999 --connections 1 --duration 100 --simple-warmup \
                --termination-predicate benchmark.http_2xx:99";
    let result = measure(&format!(
        "--max-pending-requests 10 {line} {}",
        origin.url()
    ));
    // The request of the warm-up is one of them.
    assert_eq!(result.counter("benchmark.http_2xx"), 100);
    assert!(result.counter("upstream_rq_pending_total") >= 11);
    assert!(result.counter("upstream_cx_overflow") >= 10);
    assert!(result.samples(BLOCKING) >= 1);
    let result = measure(&format!("{line} {}", origin.url()));
    assert_eq!(result.counter("benchmark.http_2xx"), 100);
    assert_eq!(result.counter("upstream_rq_pending_total"), 1);
    assert_eq!(result.counter("upstream_cx_overflow"), 0);
    assert!(result.samples(BLOCKING) >= 1);
}

// compat: nighthawk_client | --max-active-requests | works
// compat: counters of nighthawk_client | upstream_rq_active_overflow | works
// compat: counters of nighthawk_client | upstream_rq_pending_overflow | works
#[test]
fn a_stress_over_http2_overflows_streams_and_not_connections() {
    let origin = Origin::start();
    let line = "--h2 --rps 999999 --max-active-requests 1 --duration 100 \
                --termination-predicate benchmark.http_2xx:99";
    let result = measure(&format!(
        "--max-pending-requests 10 {line} {}",
        origin.url()
    ));
    assert!(result.counter("benchmark.http_2xx") >= 100);
    assert_eq!(result.counter("upstream_rq_pending_total"), 1);
    assert!(result.counter("upstream_rq_active_overflow") >= 10);
    assert!(result.counter("upstream_rq_pending_overflow") >= 10);
    let result = measure(&format!("{line} {}", origin.url()));
    assert!(result.counter("benchmark.http_2xx") >= 100);
    assert_eq!(result.counter("upstream_rq_pending_total"), 1);
    for name in [
        "upstream_rq_pending_overflow",
        "upstream_rq_active_overflow",
    ] {
        assert_eq!(result.counter(name), 0, "{name}");
    }
}

// compat: nighthawk_client | --open-loop | works
// compat: counters of nighthawk_client | benchmark.pool_overflow | works
#[test]
fn an_open_loop_drops_requests_without_a_connection_and_never_waits() {
    let origin = Origin::start();
    let delay = config_header("{static_delay: \"0.005s\"}");
    for (protocol, overflow) in [
        ("--connections 1", "upstream_rq_pending_overflow"),
        (
            "--h2 --max-active-requests 1",
            "upstream_rq_active_overflow",
        ),
    ] {
        let line = "--open-loop --rps 7000 --max-pending-requests 1 --duration 100 \
                    --termination-predicate benchmark.http_2xx:24";
        let result = measure(&format!("{protocol} {delay} {line} {}", origin.url()));
        let dropped = result.counter("benchmark.pool_overflow");
        assert!(dropped > 10, "{protocol}: {dropped}");
        assert_eq!(result.counter(overflow), dropped);
        assert_eq!(result.samples(BLOCKING), 0);
        let ended = dropped + result.counter("benchmark.http_2xx");
        assert_eq!(result.samples(CALLBACK), ended, "{protocol}");
    }
}

// compat: nighthawk_client | --concurrency | works
#[test]
fn every_worker_counts_for_itself() {
    let origin = Origin::start();
    let line = "--concurrency 4 --rps 100 --connections 1 --duration 100 \
                --termination-predicate benchmark.http_2xx:24";
    let actual = measure(&format!("{line} {}", origin.url()));
    assert_eq!(actual.counter("benchmark.http_2xx"), 4 * 25);
    assert_eq!(actual.counter("upstream_cx_http1_total"), 4);
    assert_eq!(actual.results().len(), 4 + 1);
    for number in 0..4 {
        let result = actual.result(&format!("worker_{number}"));
        assert_eq!(counter_of(result, "benchmark.http_2xx"), 25, "{number}");
    }
}

// compat: nighthawk_client | --termination-predicate | differs | an unknown counter is an error
// compat: nighthawk_client | --failure-predicate | differs | an unknown counter is an error
// compat: nighthawk_client | --no-default-failure-predicates | works
#[test]
fn predicates_end_a_load_well_or_badly() {
    let origin = Origin::start();
    let line = "--rps 500 --connections 1 --duration 100";
    let well = format!("{line} --termination-predicate benchmark.http_2xx:9");
    let result = measure(&format!("{well} {}", origin.url()));
    assert_eq!(result.counter("benchmark.http_2xx"), 10);
    assert_eq!(result.counter("sequencer.failed_terminations"), 0);
    let badly = format!("--output-format json {line} --failure-predicate benchmark.http_2xx:0");
    let ended = client(&format!("{badly} {}", origin.url()));
    assert_eq!(ended.code, 1);
    let result = Found::read(&ended);
    assert_eq!(result.counter("benchmark.http_2xx"), 1);
    assert_eq!(result.counter("sequencer.failed_terminations"), 1);
    assert!(
        result
            .log
            .contains("Exiting due to failing termination predicate")
    );
    let failing =
        config_header("{v3_response_headers: [{header: {key: \":status\", value: \"404\"}}]}");
    let ended = client(&format!("{line} {failing} {}", origin.url()));
    assert_eq!(ended.code, 1, "by default a bad status fails a load");
    let none = format!("{line} {failing} --no-default-failure-predicates");
    let line = "--termination-predicate benchmark.http_4xx:4";
    let result = measure(&format!("{none} {line} {}", origin.url()));
    assert_eq!(result.counter("benchmark.http_4xx"), 5);
    let unknown = client(&format!(
        "--failure-predicate benchmark.http_2x:0 {}",
        origin.url()
    ));
    assert_eq!(unknown.code, 1);
    assert!(
        unknown.stderr.contains("unknown counter"),
        "{}",
        unknown.stderr
    );
}

// compat: counters of nighthawk_client | benchmark.pool_connection_failure | differs | every request counts; one for each connection there
/// Nighthawk loses a slot with each connection that fails, and so counts one
/// failure here. Every request fails and is counted.
#[test]
fn every_request_to_a_dead_port_is_counted_and_no_slot_leaks() {
    let port = stillwell_testkit::free_port();
    let line = "--rps 500 --connections 1 --duration 100 --no-default-failure-predicates \
                --termination-predicate benchmark.pool_connection_failure:499";
    let result = measure(&format!("{line} http://127.0.0.1:{port}/"));
    let failed = result.counter("benchmark.pool_connection_failure");
    // One more may be connecting when the last one fails.
    assert!((500..=501).contains(&failed), "{failed}");
    assert_eq!(result.counter("upstream_rq_pending_failure_eject"), failed);
    assert_eq!(result.samples(CALLBACK), failed);
    assert_eq!(result.counter("upstream_rq_total"), 0);
    assert!(result.counter("upstream_cx_connect_fail") >= 1);
    let ended = client(&format!("--duration 100 http://127.0.0.1:{port}/"));
    assert_eq!(ended.code, 1, "by default that fails a load");
}

// compat: nighthawk_client | --rps | works
// compat: nighthawk_client | --duration | differs | 0 is an error
#[test]
fn a_schedule_is_kept_for_any_rate_length_and_workers() {
    let origin = Origin::start();
    for (rps, seconds, workers) in [(2, 1, 2), (25, 1, 1), (25, 2, 2)] {
        let line = format!("--rps {rps} --duration {seconds} --concurrency {workers}");
        let result = measure(&format!("{line} {}", origin.url()));
        let least = match result.is_short() {
            true => 0,
            false => (rps * seconds - rps / 4 - 1) * workers,
        };
        assert!(result.counter("benchmark.http_2xx") >= least, "{line}");
        for id in ["request_to_response", "queue_to_connect", "latency_2xx"] {
            let id = format!("benchmark_http_client.{id}");
            assert!(result.samples(&id) >= least, "{line} {id}");
        }
    }
}

// compat: nighthawk_client | --multi-target-endpoint | works
// compat: nighthawk_client | --multi-target-path | works
#[test]
fn several_targets_take_turns() {
    for (listeners, socket) in [(1, None), (5, None)] {
        let setup = Setup {
            listeners,
            socket,
            ..Setup::default()
        };
        let origins: Vec<Origin> = (0..if listeners == 1 { 3 } else { 1 })
            .map(|_| setup.start())
            .collect();
        let urls = origins.iter().flat_map(|origin| &origin.urls);
        let targets: Vec<String> = urls
            .map(|url| format!("--multi-target-endpoint {}", address(url)))
            .collect();
        let line = "--multi-target-path / --connections 5";
        let result = measure(&format!("{line} {TURNS} {}", targets.join(" ")));
        let answered = result.counter("benchmark.http_2xx");
        // Others may be under way when the last one comes.
        assert!((60..65).contains(&answered), "{answered}");
        let count = result.counter("default.total_match_count");
        assert_eq!(count, targets.len() as u64);
        let seen: Vec<u64> = origins.into_iter().map(Origin::stop).collect();
        assert_eq!(seen.iter().sum::<u64>(), answered);
        assert!(seen.iter().all(|requests| *requests >= 5), "{seen:?}");
    }
}

// compat: nighthawk_client | --tunnel-protocol | works
// compat: nighthawk_client | --tunnel-uri | works
// compat: nighthawk_client | --tunnel-tls-context | works
/// Nighthawk's test of tunnels: what is counted is what is counted without.
#[test]
fn a_tunnel_changes_no_count() {
    use stillwell_plan::load::TunnelProtocol::{Http1, Http2, Http3};

    use crate::both_ends::ends::Certificate;
    use crate::tunnel::proxy::{Manner, Proxy};
    use crate::tunnel::{known_tls, over_tls};

    let certificate = Certificate::new();

    for (inner, outer, is_secure) in [
        ("http1", "http1", false),
        ("http2", "http1", true),
        ("http1", "http2", true),
        ("http2", "http2", false),
        ("http1", "http3", true),
        ("http2", "http3", true),
    ] {
        let origin = Origin::start();
        let protocol = match outer {
            "http1" => Http1,
            "http2" => Http2,
            _ => Http3,
        };
        let proxy = Proxy::start(
            Manner::Well,
            protocol,
            is_secure.then(|| match protocol {
                Http3 => known_tls(&certificate, protocol),
                Http1 | Http2 => over_tls(protocol),
            }),
        );
        // Over QUIC certificates are always checked.
        let context = match protocol {
            Http3 => format!(
                "--tunnel-tls-context '{{common_tls_context:{{validation_context:{{trusted_ca:\
                 {{filename:\"{}\"}}}}}}}}'",
                certificate.path("certificate.pem").display()
            ),
            Http1 | Http2 => "--tunnel-tls-context {common_tls_context:{}}".to_owned(),
        };
        let result = measure(&format!(
            "--rps 500 --connections 1 --duration 100 --protocol {inner} --max-active-requests 1 \
             --termination-predicate benchmark.http_2xx:24 --tunnel-protocol {outer} \
             --tunnel-uri http://{} {} {}",
            proxy.address(),
            if is_secure { &context } else { "" },
            origin.url()
        ));
        let case = format!("{inner} in {outer}");
        assert_eq!(result.counter("benchmark.http_2xx"), 25, "{case}");
        assert_eq!(result.counter("upstream_cx_total"), 1, "{case}");
        if inner == "http1" {
            let received = result.counter("upstream_cx_rx_bytes_total");
            assert_eq!(received, 25 * 136, "{case}");
        }
        let has_warning = result
            .log
            .contains("The certificate of the proxy is not checked");
        assert_eq!(
            has_warning,
            is_secure && protocol != Http3,
            "{}",
            result.log
        );
        let tunnel = &result.output["options"]["tunnel_options"];
        assert_eq!(
            tunnel["tunnel_protocol"]["value"],
            outer.to_uppercase(),
            "{tunnel}"
        );
        assert_eq!(proxy.stop().len(), 1);
        assert_eq!(origin.stop(), 25);
    }
}

#[test]
fn a_proxy_that_refuses_is_a_connection_that_fails() {
    use stillwell_plan::load::TunnelProtocol::Http1;

    use crate::tunnel::proxy::{Manner, Proxy};

    let proxy = Proxy::start(Manner::Status(502), Http1, None);
    let uri = proxy.address();
    let line = format!("--duration 100 --tunnel-protocol http1 --tunnel-uri {uri} 127.0.0.1:9");
    let ended = client(&format!("--output-format json {line}"));
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    let result = Found::read(&ended);
    assert!(result.counter("benchmark.pool_connection_failure") > 0);
    assert!(result.log.contains("with status 502"), "{}", result.log);
    proxy.stop();
}
