//! Metrics and spans that a load exports; in the end they have the totals of the report.

#[path = "telemetry/receiver.rs"]
mod receiver;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::process::Command;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use prost::Message as _;
use serde_json::Value;
use stillwell_testkit::{Process, free_port, wait_until};

use crate::both_ends::ends::{LONG, Report, STILLWELL, Serving, load, start_load};
use receiver::{DatagramReceiver, HttpReceiver};

/// Runs a load of four seconds that exports every second. It ends by count, so a machine that
/// stalls only makes it longer.
fn load_with_exports(server: &Serving, words: &[&str]) -> Report {
    let mut arguments = vec![server.url.as_str(), "--rate=100/s", "--requests=400"];
    arguments.extend(["--connections=2", "--stats-flush-interval=500ms"]);
    arguments.extend(words);
    load(&arguments)
}

/// Returns true without a warning about a failed export.
fn has_exported_all(report: &Report) -> bool {
    let findings = report.value["health"]["warnings"].as_array().unwrap();
    findings
        .iter()
        .all(|finding| finding["code"] != "export_failed")
}

/// The published messages of remote write, as far as version 1 has them.
#[derive(Clone, PartialEq, prost::Message)]
struct WriteRequest {
    #[prost(message, repeated, tag = "1")]
    timeseries: Vec<TimeSeries>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Sample>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Sample {
    #[prost(double, tag = "1")]
    value: f64,
    #[prost(int64, tag = "2")]
    timestamp: i64,
}

#[test]
fn a_statsd_server_adds_up_to_the_report() {
    let (statsd, address) = DatagramReceiver::start();
    let server = Serving::start(&[]);
    let report = load_with_exports(&server, &[&format!("--stats-sink=statsd://{address}")]);
    server.stop();
    let mut counters: BTreeMap<String, u64> = BTreeMap::new();
    let mut exports = 0;
    for line in statsd.lines() {
        let (name, value) = line.split_once(':').unwrap();
        if let Some(grown) = value.strip_suffix("|c") {
            *counters.entry(name.to_owned()).or_default() += grown.parse::<u64>().unwrap();
        }
        exports += u64::from(name == "stillwell.requests_sent");
    }
    assert!(exports >= 2, "told {exports} times");
    let ok = report.outcome("ok");
    assert!(ok > 100, "{}", report.findings());
    assert_eq!(counters["stillwell.outcomes.ok"], ok);
    assert_eq!(counters["stillwell.requests_sent"], report.begun());
    assert_eq!(counters["stillwell.response_time.ok.count"], ok);
    assert!(has_exported_all(&report), "{}", report.findings());
}

#[test]
fn a_receiver_of_opentelemetry_has_the_totals_of_the_report() {
    let receiver = HttpReceiver::start(200);
    let server = Serving::start(&[]);
    let sink = format!("--stats-sink=otlp+http://{}", receiver.address);
    let report = load_with_exports(&server, &[&sink, "--stats-label=team=a"]);
    server.stop();
    let output = receiver.stop();
    assert!(output.len() >= 2);
    assert!(
        output
            .iter()
            .all(|attribute| attribute.target == "/v1/metrics")
    );
    assert_eq!(output[0].headers["content-type"], "application/x-protobuf");
    let last = output.last().unwrap();
    let request = ExportMetricsServiceRequest::decode(last.body.as_slice()).unwrap();
    let attributes = &request.resource_metrics[0]
        .resource
        .as_ref()
        .unwrap()
        .attributes;
    assert!(attributes.iter().any(|attribute| attribute.key == "team"));
    let metrics = &request.resource_metrics[0].scope_metrics[0].metrics;
    let find = |name: &str| {
        metrics
            .iter()
            .find(|attribute| attribute.name == name)
            .unwrap()
    };
    let Some(Data::Sum(outcomes)) = &find("stillwell.outcomes").data else {
        panic!("no sum");
    };
    let ok = &outcomes.data_points[0];
    let total = i64::try_from(report.outcome("ok")).unwrap();
    assert_eq!(ok.value, Some(Number::AsInt(total)));
    let Some(Data::Histogram(times)) = &find("stillwell.service_time").data else {
        panic!("no histogram");
    };
    assert_eq!(times.data_points[0].count, report.outcome("ok"));
}

#[test]
fn remote_write_reports_the_totals_of_the_report() {
    let receiver = HttpReceiver::start(204);
    let server = Serving::start(&[]);
    let sink = format!("--stats-sink=remote-write+http://{}", receiver.address);
    let report = load_with_exports(&server, &[&sink]);
    server.stop();
    let output = receiver.stop();
    let last = output.last().unwrap();
    assert_eq!(last.target, "/api/v1/write");
    assert_eq!(last.headers["content-encoding"], "snappy");
    assert_eq!(last.headers["x-prometheus-remote-write-version"], "0.1.0");
    let plain = snap::raw::Decoder::new()
        .decompress_vec(&last.body)
        .unwrap();
    let request = WriteRequest::decode(plain.as_slice()).unwrap();
    let value = |name: &str| {
        let is_it = |series: &&TimeSeries| {
            let has = |key: &str, value: &str| {
                let mut labels = series.labels.iter();
                labels.any(|label| label.name == key && label.value == value)
            };
            has("__name__", name) && has("outcome", "ok")
        };
        let series = request.timeseries.iter().find(is_it).unwrap();
        stillwell_units::floor_to_u64(series.samples[0].value)
    };
    let ok = report.outcome("ok");
    assert!(ok > 100, "{}", report.findings());
    assert_eq!(value("stillwell_outcomes_total"), ok);
    assert_eq!(value("stillwell_service_time_seconds_count"), ok);
    // On a busy machine an earlier export may take too long.
    let findings = report.findings();
    assert!(!findings.contains("it lacks the totals"), "{findings}");
}

#[test]
fn a_run_exports_the_metrics_of_its_target_and_of_its_generators() {
    let receiver = HttpReceiver::start(200);
    let suite = crate::suite::Suite::new();
    let text = format!(
        "target:\n  command: [\"{{self}}\", relay, --in, \"tcp://{0}\", --out, \"tcp://{1}\"]\n\
         isolation: {{network: no}}\nphases: {{ready: 60s, warmup: 200ms, measure: 2s, drain: 2s, quiet: 50ms}}\n\
         workload:\n  generators: [{{tcp: \"{0}\", payload: ascii, rate: 500/s, cache: 1 MiB}}]\n  \
         sinks: [{{tcp: \"{1}\"}}]\n",
        suite.listen, suite.sink
    );
    suite.file("run.yaml", &text);
    let sink = format!("--stats-sink=otlp+http://{}", receiver.address);
    let words = [
        "observe",
        "run.yaml",
        "--results=results",
        "--stats-flush-interval=500ms",
    ];
    let ended = suite.call(&[&words[..], &[&sink, "--stats-label=team=a"]].concat());
    // On a busy machine an export may take too long; the last one is looked at below.
    let expected = [
        "exports, the final totals included",
        "exports failed: it takes longer than",
    ];
    let mut expected = expected.iter();
    assert!(
        expected.any(|expected| ended.stderr.contains(expected)),
        "{}",
        ended.stderr
    );
    let requests = receiver.stop();
    let decode = |body: &[u8]| {
        let mut request = ExportMetricsServiceRequest::decode(body).unwrap();
        request.resource_metrics.remove(0).scope_metrics.remove(0)
    };
    // The target has ended when the final totals are exported.
    let memory_is_there = requests.iter().any(|request| {
        let metrics = decode(&request.body).metrics;
        let memory = metrics
            .iter()
            .find(|metric| metric.name == "stillwell.total_rss_bytes");
        let Some(Data::Gauge(memory)) = memory.and_then(|memory| memory.data.as_ref()) else {
            return false;
        };
        matches!(memory.data_points[0].value, Some(Number::AsDouble(bytes)) if bytes > 1e5)
    });
    assert!(memory_is_there, "{} requests", requests.len());
    let metrics = decode(&requests.last().unwrap().body).metrics;
    let find = |name: &str| metrics.iter().find(|metric| metric.name == name);
    let Some(Data::Sum(written)) = &find("stillwell.events_written").unwrap().data else {
        panic!("no sum");
    };
    let keys = written.data_points[0]
        .attributes
        .iter()
        .map(|attribute| attribute.key.as_str());
    assert!(keys.into_iter().any(|key| key == "id"));
}

/// Returns the values of a metrics page, by series.
fn scrape(port: u16) -> Option<BTreeMap<String, f64>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let request = b"GET /metrics HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    stream.write_all(request).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, page) = answer.split_once("\r\n\r\n")?;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    let series = lines.map(|line| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_owned(), value.parse().unwrap())
    });
    Some(series.collect())
}

#[test]
fn a_page_lingers_until_its_last_state_was_seen() {
    let port = free_port();
    let server = Serving::start(&[]);
    let listen = format!("--stats-listen={port}");
    let url = server.url.as_str();
    let arguments = [url, "--rate=300/s", "--requests=360", "-c2", &listen];
    let process = start_load(&[&arguments[..], &["--stats-linger=30s"]].concat());
    let mut pages = Vec::new();
    wait_until(LONG, || {
        pages.extend(scrape(port).filter(|page| !page.is_empty()));
        // Once the last state was seen it is gone.
        !pages.is_empty() && TcpStream::connect(("127.0.0.1", port)).is_err()
    });
    let report = Report::of(process.finish(LONG));
    server.stop();
    let ok = r#"stillwell_outcomes_total{outcome="ok"}"#;
    let counts: Vec<f64> = pages.iter().map(|page| page[ok]).collect();
    assert!(counts.is_sorted(), "totals never fall: {counts:?}");
    let last = pages.last().unwrap();
    let count = |name: &str| stillwell_units::floor_to_u64(last[name]);
    assert!(report.outcome("ok") > 100, "{}", report.findings());
    assert_eq!(count(ok), report.outcome("ok"));
    let sum = r#"stillwell_service_time_seconds_count{outcome="ok"}"#;
    assert_eq!(count(sum), report.outcome("ok"));
}

#[test]
fn an_unreachable_receiver_disturbs_no_other_and_is_named() {
    let refusing = HttpReceiver::start(503);
    let (statsd, address) = DatagramReceiver::start();
    let server = Serving::start(&[]);
    let closed = free_port();
    let report = load_with_exports(
        &server,
        &[
            &format!("--stats-sink=statsd+tcp://127.0.0.1:{closed}"),
            &format!("--stats-sink=otlp+grpc://127.0.0.1:{closed}"),
            &format!("--stats-sink=otlp+http://{}", refusing.address),
            &format!("--stats-sink=statsd://{address}"),
            &format!("--trace=zipkin://127.0.0.1:{closed}"),
        ],
    );
    server.stop();
    drop(refusing.stop());
    let findings = report.findings();
    for expected in [
        "statsd+tcp://127.0.0.1",
        "otlp+grpc://127.0.0.1",
        "it answers 503",
        "it lacks the totals",
        "did not get",
    ] {
        assert!(findings.contains(expected), "{expected}: {findings}");
    }
    assert!(!findings.contains("statsd://127"), "{findings}");
    assert!(!statsd.lines().is_empty());
    assert!(report.outcome("ok") > 100, "{findings}");
    assert!(
        matches!(report.ended.code, 0 | 4),
        "{}",
        report.ended.stderr
    );
}

#[test]
fn every_request_has_its_trace_and_sampled_ones_have_a_span() {
    for (words, entry) in [
        ("--trace-headers=w3c", "traceparent"),
        ("--trace-headers=b3", "b3"),
        ("--trace-headers=b3multi", "x-b3-traceid"),
    ] {
        let target = HttpReceiver::start(200);
        let spans = HttpReceiver::start(200);
        let report = load(&[
            &format!("http://{}/a?b=c", target.address),
            &format!("--trace=otlp+http://{}", spans.address),
            words,
            "--trace-sample=40%",
            "--requests=500",
            "--connections=4",
            "--body=hello",
        ]);
        let seen = target.stop();
        report.assert_all_well(500);
        assert_eq!(seen.len(), 500);
        assert!(seen.iter().all(|value| value.body == b"hello"));
        let traces: BTreeSet<String> = seen
            .iter()
            .map(|value| trace_of(&value.headers, entry))
            .collect();
        assert_eq!(traces.len(), 500, "no two are the same");
        let sampled: BTreeSet<String> = seen
            .iter()
            .filter(|value| is_sampled(&value.headers, entry))
            .map(|value| trace_of(&value.headers, entry))
            .collect();
        // Five standard deviations around 200.
        assert!((145..255).contains(&sampled.len()), "{}", sampled.len());
        let mut exported = BTreeSet::new();
        for output in spans.stop() {
            assert_eq!(output.target, "/v1/traces");
            let request = ExportTraceServiceRequest::decode(output.body.as_slice()).unwrap();
            for span in &request.resource_spans[0].scope_spans[0].spans {
                assert!(span.end_time_unix_nano > span.start_time_unix_nano);
                assert_eq!(span.name, "POST");
                exported.insert(hex(&span.trace_id));
            }
        }
        assert!(exported.is_subset(&sampled) && !exported.is_empty());
        assert!(exported == sampled || !has_exported_all(&report));
    }
}

fn trace_of(headers: &BTreeMap<String, String>, entry: &str) -> String {
    let value = &headers[entry];
    let from = if entry == "traceparent" { 3 } else { 0 };
    value[from..from + 32].to_owned()
}

fn is_sampled(headers: &BTreeMap<String, String>, entry: &str) -> bool {
    match entry {
        "traceparent" => headers[entry].ends_with("-01"),
        "b3" => headers[entry].ends_with("-1"),
        _ => headers["x-b3-sampled"] == "1",
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn requests_of_http2_carry_their_trace_too() {
    let target = HttpReceiver::start_http2();
    let spans = HttpReceiver::start(202);
    let report = load(&[
        &format!("http://{}/", target.address),
        &format!("--trace=zipkin://{}", spans.address),
        "--protocol=http2",
        "--streams=4",
        "--requests=100",
        "--connections=2",
    ]);
    report.assert_all_well(100);
    let seen = target.stop();
    let seen = seen
        .iter()
        .map(|value| value.headers["x-b3-traceid"].clone());
    let mut exported = BTreeSet::new();
    for output in spans.stop() {
        assert_eq!(output.target, "/api/v2/spans");
        let batch: Value = serde_json::from_slice(&output.body).unwrap();
        for span in batch.as_array().unwrap() {
            assert_eq!(span["tags"]["http.status_code"], "200");
            assert!(exported.insert(span["traceId"].as_str().unwrap().to_owned()));
        }
    }
    let seen: BTreeSet<_> = seen.collect();
    assert_eq!(seen.len(), 100);
    assert!(exported.is_subset(&seen) && !exported.is_empty());
    assert!(exported == seen || !has_exported_all(&report));
}

#[test]
fn nighthawk_traces_to_zipkin_and_reports_statsd() {
    let spans = HttpReceiver::start(202);
    let (statsd, address) = DatagramReceiver::start();
    let server = Serving::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let client = folder.path().join("nighthawk_client");
    symlink(STILLWELL, &client).unwrap();
    let socket = format!(r#"{{address:"127.0.0.1",port_value:{}}}"#, address.port());
    let of = "type.googleapis.com/envoy.config.metrics.v3.StatsdSink";
    let config = format!(r#"{{"@type":"{of}",address:{{socket_address:{socket}}}}}"#);
    let sink = format!(r#"{{name:"envoy.stat_sinks.statsd",typed_config:{config}}}"#);
    let mut command = Command::new(&client);
    command.args(["--rps", "50", "--duration", "100", "--connections", "1"]);
    command.args(["--termination-predicate", "benchmark.http_2xx:49"]);
    command.args([
        "--trace",
        &format!("zipkin://{}/api/v2/spans", spans.address),
    ]);
    command.args(["--stats-sinks", &sink, "--output-format", "json"]);
    let ended = Process::start(command.arg(&server.url)).finish(LONG);
    server.stop();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let output: Value = serde_json::from_str(&ended.stdout).unwrap();
    let results = output["results"].as_array().unwrap();
    let global = results
        .iter()
        .find(|result| result["name"] == "global")
        .unwrap();
    let counters = global["counters"].as_array().unwrap();
    let sent = counters
        .iter()
        .find(|result| result["name"] == "tracing.zipkin.spans_sent");
    let sent: usize = sent.unwrap()["value"].as_str().unwrap().parse().unwrap();
    let has_failed = ended.stderr.contains("export failed");
    assert!(sent >= 45 || has_failed, "{sent} spans");
    let printed = spans.stop();
    let batches = printed
        .iter()
        .map(|result| serde_json::from_slice::<Value>(&result.body).unwrap());
    let spans: usize = batches.map(|batch| batch.as_array().unwrap().len()).sum();
    assert!(spans == sent || has_failed, "{spans} of {sent}");
    let lines = statsd.lines();
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("envoy.cluster.0.benchmark.http_2xx:")),
        "{lines:?}"
    );
}
