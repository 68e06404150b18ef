use stillwell_report::load::{BriefRoute, BriefWarning};

use super::*;

fn times(p50: f64) -> BriefTimes {
    BriefTimes {
        count: 1_000,
        min: 0.000_1,
        mean: 0.001_5,
        p50,
        p75: 0.002,
        p90: 0.003,
        p95: 0.004,
        p99: 0.005,
        p999: 0.006,
        max: 0.01,
    }
}

fn summary() -> BriefLoad {
    let route = |index: u32| BriefRoute {
        name: format!("GET /{index}, \"quoted\""),
        requests: 100,
        error_share: 0.0,
        status_codes: [(200, 100)].into(),
        latency: Some(times(0.001)),
        service_time: None,
        first_byte: None,
    };
    BriefLoad {
        version: "0.1.0".to_owned(),
        command: "stillwell load http://127.0.0.1:1/ -d 1s".to_owned(),
        // Digits alone: a seed is a text all the same.
        seed: "1234567890".to_owned(),
        targets: vec![
            "http://127.0.0.1:1/".to_owned(),
            "http://127.0.0.1:2/".to_owned(),
        ],
        protocol: "HTTP/1.1".to_owned(),
        started_wall_millis: Some(1_795_709_133_296),
        duration: 1.0,
        requests: 1_000,
        requests_per_second: 1_000.0,
        outcomes: [("ok".to_owned(), 990), ("status_5xx".to_owned(), 10)].into(),
        status_codes: [(200, 990), (503, 10)].into(),
        error_share: 0.01,
        routes: (0..12).map(route).collect(),
        latency: Some(times(0.001)),
        service_time: Some(times(0.000_9)),
        warnings: vec![BriefWarning {
            code: "cpu_starvation".to_owned(),
            text: "CPU starvation: 14.0 %, so latency may be too high".to_owned(),
            unreliable: true,
        }],
        ended_because: "its duration was over".to_owned(),
        ..blank("")
    }
}

#[test]
fn a_summary_is_read_back_from_each_of_its_forms() {
    let summary = summary();
    assert_eq!(of_text(&summary.to_json()).unwrap(), summary);
    assert_eq!(of_text(&summary.to_csv()).unwrap(), summary);
    let plain = BriefLoad {
        routes: Vec::new(),
        warnings: Vec::new(),
        latency: None,
        outcomes: BTreeMap::new(),
        status_codes: BTreeMap::new(),
        ..summary
    };
    assert_eq!(of_text(&plain.to_csv()).unwrap(), plain);
}

const NIGHTHAWK: &str = r#"{"options": {"uri": "http://h/", "requests_per_second": 300, "connections": 5, "open_loop": true},
"results": [{"name": "global", "execution_duration": "2s", "execution_start": "2026-11-26T16:05:33Z",
"counters": [{"name": "benchmark.http_2xx", "value": "590"}, {"name": "benchmark.http_5xx", "value": "10"},
  {"name": "upstream_cx_rx_bytes_total", "value": "22500"}],
"statistics": [{"id": "benchmark_http_client.request_to_response", "count": "590", "mean": "0.002s", "pstdev": "0s",
  "min": "0.001s", "max": "0.009s", "percentiles": [{"percentile": 0.5, "count": "300", "duration": "0.002s"},
  {"percentile": 1, "count": "590", "duration": "0.009s"}]}]}]}"#;

#[test]
fn results_of_nighthawk_have_its_counts_and_times() {
    let yaml = stillwell_nighthawk::write_yaml(&stillwell_nighthawk::read_json(NIGHTHAWK).unwrap());
    for text in [
        NIGHTHAWK.to_owned(),
        format!("[12:00][I] Starting\n{NIGHTHAWK}"),
        yaml,
    ] {
        let load = of_text(&text).unwrap();
        assert_eq!(load.targets, ["http://h/"]);
        assert_eq!(load.started_wall_millis, Some(1_795_709_133_000));
        assert_eq!((load.requests, load.bytes_received), (600, 22_500));
        assert!((load.requests_per_second - 300.0).abs() < 1e-9);
        assert!((load.error_share - 10.0 / 600.0).abs() < 1e-9);
        let latency = load.latency.unwrap();
        assert_eq!(
            (latency.p50, latency.p99, latency.max),
            (0.002, 0.009, 0.009)
        );
    }
}

#[test]
fn results_of_fortio_have_its_codes_and_times_between_its_percentiles() {
    let text = r#"{"StartTime": "2026-11-26T16:05:33Z", "RequestedQPS": "max", "ActualDuration": 2000000000, "NumThreads": 4,
"URL": "http://h/", "RetCodes": {"200": 590, "503": 6, "-1": 4},
"DurationHistogram": {"Count": 600, "Min": 0.001, "Max": 0.01, "Avg": 0.002,
"Percentiles": [{"Percentile": 50, "Value": 0.002}, {"Percentile": 90, "Value": 0.004}, {"Percentile": 99, "Value": 0.0085}]}}"#;
    let load = of_text(text).unwrap();
    assert_eq!((load.requests, load.connections), (600, 4));
    assert_eq!(load.status_codes, [(200, 590), (503, 6)].into());
    assert_eq!(load.requested_per_second, None);
    assert!((load.error_share - 10.0 / 600.0).abs() < 1e-9);
    let latency = load.latency.unwrap();
    assert!((latency.p75 - 0.003_25).abs() < 1e-9, "{latency:?}");
    assert!((latency.p95 - 0.006_5).abs() < 1e-9, "{latency:?}");
    assert!(latency.p99 < latency.p999 && latency.p999 < latency.max);
}

const FORTIO_2020: &str = r#"{"ActualDuration": 2000000000, "NumThreads": 4, "RetCodes": {"200": 600},
"DurationHistogram": {"Count": 600, "Min": 0.001, "Max": 0.5, "Avg": 0.002,
"Percentiles": [{"Percentile": 0.5, "Value": 0.002}, {"Percentile": 0.9, "Value": 0.004},
  {"Percentile": 0.99, "Value": 0.008}, {"Percentile": 0.999, "Value": 0.009}]}}"#;

/// Failed and dropped requests were part of the rate.
#[test]
fn the_rate_of_a_result_is_that_of_its_sent_requests() {
    let nighthawk = |name: &str, count: u32| {
        let last = "{\"name\": \"upstream_cx_rx_bytes_total\"";
        let counter = format!("{{\"name\": \"{name}\", \"value\": \"{count}\"}}, {last}");
        NIGHTHAWK.replace(last, &counter)
    };
    let fortio = |rate: &str| {
        let rate = format!("\"ActualQPS\": {rate}, \"NumThreads\"");
        FORTIO_2020.replace("\"NumThreads\"", &rate)
    };
    for (text, expected) in [
        (nighthawk("upstream_rq_total", 500), 250.0),
        (nighthawk("benchmark.pool_overflow", 200), 300.0),
        (nighthawk("benchmark.pool_connection_failure", 200), 300.0),
        (FORTIO_2020.to_owned(), 300.0),
        (fortio("250.5"), 250.5),
        (fortio("\"250.5\""), 250.5),
        (fortio("\"NaN\""), 300.0),
    ] {
        let rate = of_text(&text).unwrap().requests_per_second;
        assert!((rate - expected).abs() < 1e-9, "{rate}: {text}");
    }
}

#[test]
fn a_fortio_load_over_grpc_has_its_destination_as_target() {
    for key in ["URL", "Destination"] {
        let key = format!("\"{key}\": \"h:1\", \"NumThreads\"");
        let text = FORTIO_2020.replace("\"NumThreads\"", &key);
        assert_eq!(of_text(&text).unwrap().targets, ["h:1"]);
    }
}

/// A result with several targets had no target, and all of these were one series of a history.
#[test]
fn each_of_several_targets_is_in_the_summary() {
    let several = r#""multi_target": {"path": "/x",
        "endpoints": [{"address": "a", "port": 1}, {"address": "::1", "port": 2}]}"#;
    let nighthawk = NIGHTHAWK.replace("\"uri\": \"http://h/\"", several);
    let several = "\"URL\": \"http://a:1/x http://[::1]:2/x\", \"NumThreads\"";
    let fortio = FORTIO_2020.replace("\"NumThreads\"", several);
    for text in [nighthawk, fortio] {
        let targets = of_text(&text).unwrap().targets;
        assert_eq!(targets, ["http://a:1/x", "http://[::1]:2/x"], "{text}");
    }
}

#[test]
fn percentiles_of_fortio_may_be_shares() {
    let latency = of_text(FORTIO_2020).unwrap().latency.unwrap();
    for (actual, expected) in [
        (latency.p50, 0.002),
        (latency.p90, 0.004),
        (latency.p99, 0.008),
        (latency.p999, 0.009),
    ] {
        assert!((actual - expected).abs() < 1e-9, "{actual}, {expected}");
    }
}

#[test]
fn names_of_success_in_fortio_are_successes() {
    for code in ["SERVING", "OK"] {
        let text = FORTIO_2020.replace("\"200\": 600", &format!("\"{code}\": 590, \"-1\": 10"));
        let load = of_text(&text).unwrap();
        assert_eq!(load.outcomes[Outcome::Ok.name()], 590, "{code}");
        assert_eq!(load.outcomes[Outcome::PeerClosed.name()], 10, "{code}");
    }
}

#[test]
fn quantities_for_each_worker_of_nighthawk_are_summed() {
    let several = NIGHTHAWK.replace(
        "\"results\": [",
        r#""results": [{"name": "worker_0"}, {"name": "worker_1"}, "#,
    );
    let named = NIGHTHAWK.replace("\"uri\"", "\"concurrency\": \"2\", \"uri\"");
    for (text, workers) in [(NIGHTHAWK, 1), (several.as_str(), 2), (named.as_str(), 2)] {
        let load = of_text(text).unwrap();
        assert_eq!((load.workers, load.connections), (workers, 5 * workers));
        let rate = load.requested_per_second.unwrap();
        assert!((rate - 300.0 * f64::from(workers)).abs() < 1e-9, "{rate}");
    }
}

#[test]
fn a_number_of_connections_above_the_largest_is_refused_by_its_name() {
    let nighthawk = |each: u32, workers: u16| {
        let options = format!("\"connections\": {each}, \"concurrency\": \"{workers}\"");
        NIGHTHAWK.replace("\"connections\": 5", &options)
    };
    let fortio = |threads: &str| {
        FORTIO_2020.replace("\"NumThreads\": 4", &format!("\"NumThreads\": {threads}"))
    };
    for (text, expected) in [
        (nighthawk(65_537, 65_535), Ok(u32::MAX)),
        (
            nighthawk(1_000_000, 4_295),
            Err("`connections` is 1000000 "),
        ),
        (fortio("null"), Ok(0)),
        (fortio("\"7\""), Ok(7)),
        (fortio("4294967295"), Ok(u32::MAX)),
        (fortio("4294967296"), Err("`NumThreads` is 4294967296:")),
        (fortio("1e30"), Err("`NumThreads` is 1e")),
        (fortio("-1"), Err("`NumThreads` is -1:")),
    ] {
        match (of_text(&text), expected) {
            (Ok(load), Ok(connections)) => assert_eq!(load.connections, connections),
            (Err(error), Err(message)) => {
                let error = format!("{error:#}");
                assert!(error.contains(message), "{error}");
                assert!(error.contains("at most 4294967295"), "{error}");
            }
            (read, _) => panic!("{text}: {read:?}"),
        }
    }
}

#[test]
fn results_of_nighthawk_name_their_protocol() {
    for (option, protocol) in [
        ("", "HTTP/1.1"),
        (r#""h2": true, "#, "HTTP/2"),
        (r#""protocol": {"value": "HTTP3"}, "#, "HTTP/3"),
    ] {
        let text = NIGHTHAWK.replace("\"uri\"", &format!("{option}\"uri\""));
        assert_eq!(of_text(&text).unwrap().protocol, protocol);
    }
}

#[test]
fn what_is_no_saved_load_is_refused_with_what_to_do() {
    for (text, expected) in [
        ("#[x]\n0.0,1.0,2.0,HISTFAAAx\n", "stillwell transform"),
        (
            "Nighthawk - A layer 7 protocol benchmarking tool.\n",
            "-o FILE.json",
        ),
        ("{\"a\": ", "not complete JSON"),
        ("{\"results\": []}", "no result named `global`"),
    ] {
        let error = of_text(text).unwrap_err();
        assert!(format!("{error:#}").contains(expected), "{text}: {error:#}");
    }
}
