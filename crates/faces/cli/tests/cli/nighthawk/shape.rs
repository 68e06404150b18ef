//! When requests are sent, and how long for.

use super::*;

const GAP: &str = "benchmark_http_client.origin_latency_statistic";
const TRACKING: &str = "{ name: time-tracking, typed_config: \
                        { emit_previous_request_delta_in_response_header: \
                        x-origin-request-receipt-delta } }";

/// A server that says how long it was since the request before.
fn tracking() -> Origin {
    let setup = Setup {
        filters: &[TRACKING],
        ..Setup::default()
    };
    setup.start()
}

// compat: nighthawk_client | --latency-response-header-name | works
#[test]
fn a_number_in_a_header_of_answers_is_recorded() {
    let line = "--rps 500 --connections 1 --duration 100 \
                --termination-predicate benchmark.http_2xx:99 \
                --latency-response-header-name x-origin-request-receipt-delta";
    for protocol in ["", "--h2"] {
        // The first request has none before it.
        for (origin, samples) in [(tracking(), 99), (Origin::start(), 0)] {
            let result = measure(&format!("{protocol} {line} {}", origin.url()));
            let answered = result.samples("benchmark_http_client.latency_2xx");
            if protocol.is_empty() {
                assert_eq!(answered, 100);
                assert_eq!(result.samples(GAP), samples);
            } else {
                // Other streams may end with the last one.
                assert!(answered >= 100);
                assert_eq!(
                    result.samples(GAP),
                    if samples == 0 { 0 } else { answered - 1 }
                );
            }
        }
    }
}

/// The median and the mean of the gaps between requests, as the server saw them.
fn gaps(flags: &str) -> (f64, f64) {
    let origin = tracking();
    let line = "--rps 200 --connections 20 --prefetch-connections --duration 100 \
                --termination-predicate benchmark.http_2xx:199 \
                --latency-response-header-name x-origin-request-receipt-delta";
    let result = measure(&format!("{flags} {line} {}", origin.url()));
    let seconds = |value: &Value| {
        let text = value.as_str().unwrap().trim_end_matches('s');
        text.parse::<f64>().unwrap()
    };
    let statistic = result.statistic(GAP);
    let percentiles = statistic["percentiles"].as_array().unwrap();
    let median = percentiles
        .iter()
        .find(|item| item["percentile"] == 0.5)
        .unwrap();
    (seconds(&median["duration"]), seconds(&statistic["mean"]))
}

// compat: nighthawk_client | --burst-size | differs | not together with --jitter-uniform
#[test]
fn bursts_come_together_at_the_same_mean_rate() {
    let (together, mean) = gaps("--burst-size 10");
    // Nine of ten gaps are next to nothing, and the tenth makes up for them. The mean is 5 ms, and
    // less if the client was late: then more come together.
    assert!(together < mean.max(0.005) / 2.0, "{together} {mean}");
}

// compat: nighthawk_client | --jitter-uniform | works
#[test]
fn jitter_moves_requests_and_loses_none() {
    let origin = Origin::start();
    let line = "--rps 200 --jitter-uniform 0.01s --duration 1 --connections 20";
    let result = measure(&format!("{line} {}", origin.url()));
    let answered = result.counter("benchmark.http_2xx");
    // The last ones may be due beyond the end.
    let least = if result.is_short() { 0 } else { 190 };
    assert!((least..=200).contains(&answered), "{answered}");
    assert_eq!(result.output["options"]["jitter_uniform"], "0.010s");
}

// compat: nighthawk_client | --rate-limiter-plugin-config | works
#[test]
fn a_linear_ramp_sends_half_as_much_while_it_lasts() {
    let origin = Origin::start();
    let limiter = "{name:\"nighthawk.linear-ramping-rate-limiter-plugin\",typed_config:{\"@type\":\
                   \"type.googleapis.com/nighthawk.rate_limiter.LinearRampingRateLimiterConfig\",\
                   ramp_time:\"0.54s\"}}";
    let line = format!("--rps 100 --duration 1 --rate-limiter-plugin-config '{limiter}'");
    let result = measure(&format!("{line} {}", origin.url()));
    let answered = result.counter("benchmark.http_2xx");
    let least = if result.is_short() { 0 } else { 60 };
    assert!((least..=76).contains(&answered), "{answered}");
    let name = &result.output["options"]["rate_limiter_plugin_config"]["name"];
    assert_eq!(name, "nighthawk.linear-ramping-rate-limiter-plugin");
}

// compat: nighthawk_client | --no-duration | works
// compat: counters of nighthawk_client | graceful_stop_requested | works
#[test]
fn a_signal_ends_a_load_without_end_in_good_order() {
    let origin = Origin::start();
    let line = "--no-duration --concurrency 2 --rps 100 --output-format json -v debug";
    for signal in ["TERM", "INT"] {
        let (_named, process) = start_client(&format!("{line} {}", origin.url()));
        // With `debug` it reports its work every second.
        let is_under_way = wait_until(LONG, || process.stderr().lines().count() > 4);
        assert!(is_under_way, "{}", process.stderr());
        process.signal(signal);
        let ended = process.finish(LONG);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let result = Found::read(&ended);
        assert_eq!(result.counter("graceful_stop_requested"), 2);
        assert!(result.counter("benchmark.http_2xx") >= 1);
        assert_eq!(result.output["options"]["no_duration"], true);
    }
}

#[test]
fn processes_that_do_not_end_in_time_are_killed_and_reported() {
    let origin = Origin::start();
    let delay = config_header("{static_delay: \"100s\"}");
    let line = "--rps 100 --duration 3 --timeout 0.3s";
    let result = measure(&format!("{line} {delay} {}", origin.url()));
    assert_eq!(result.counter("benchmark.http_2xx"), 0);
    let text = "Wait for the connection pool drain timed out, proceeding to hard shutdown";
    assert!(result.log.contains(text), "{}", result.log);
    assert_eq!(
        result.samples("benchmark_http_client.request_to_response"),
        0
    );
}

// compat: nighthawk_client | --simple-warmup | works
#[test]
fn a_warm_up_is_counted_and_not_timed() {
    let origin = Origin::start();
    let line = "--simple-warmup --rps 100 --concurrency 2 --duration 0.5s";
    let result = measure(&format!("{line} {}", origin.url()));
    let answered = result.counter("benchmark.http_2xx");
    let timed = result.samples("benchmark_http_client.request_to_response");
    assert_eq!(answered, timed + 2, "one request of each worker");
    assert_eq!(
        result.samples("benchmark_http_client.response_body_size"),
        answered
    );
    assert_eq!(origin.stop(), answered);
}

// compat: nighthawk_client | --sequencer-idle-strategy | differs | poll is sleep; spin spins for the last 50 µs
#[test]
fn every_way_to_wait_sends_all_that_is_due() {
    let origin = Origin::start();
    for strategy in ["spin", "poll", "sleep"] {
        let line = format!("--sequencer-idle-strategy {strategy} --rps 100 --duration 0.5s");
        let result = measure(&format!("{line} {}", origin.url()));
        let answered = result.counter("benchmark.http_2xx");
        let least = if result.is_short() { 0 } else { 50 };
        assert!((least..=50).contains(&answered), "{strategy}: {answered}");
        let printed = &result.output["options"]["sequencer_idle_strategy"]["value"];
        assert_eq!(printed, &strategy.to_uppercase());
    }
}
