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
