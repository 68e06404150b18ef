//! Names of series in lading's terms, for captures in its formats.
//!
//! Most names of [`stillwell_metric::catalogue`] are lading's already. This module has the differences: names
//! that depend on a part's protocol, and labels.

use stillwell_metric::catalogue as metric;
use stillwell_metric::{Kind, Labels, Metric, Outcome, Sample, SeriesName, Value};
use stillwell_plan::check::SeriesSelector;
use stillwell_plan::{GeneratorPlan, RunPlan, SinkPlan};
use stillwell_units::{float_from_u64, floor_to_u64};

/// Label with the part of a series.
const COMPONENT: &str = "component";
/// Label with the protocol of a part.
const COMPONENT_NAME: &str = "component_name";

/// A gauge that is 1 while a phase lasts, which its label of the same name names:
/// the marker of phases in captures that have no column for them.
pub const PHASE_MARKER: &str = "phase";
/// Number of open connections of a blackhole.
const CONNECTIONS_CURRENT: &str = "connection.current";
/// Most connections of a blackhole at once.
const CONNECTION_LIMIT: &str = "connection.limit";
/// Number of packets of a generator that gets no responses.
const PACKETS_SENT: &str = "packets_sent";
/// Metrics of sinks that have another name in lading.
const RENAMED_OF_SINKS: [Metric; 8] = [
    metric::CONNECTIONS_OPEN,
    metric::CONNECTIONS_MAX,
    metric::CONNECTIONS_ACCEPTED,
    metric::MESSAGES_RECEIVED,
    metric::EVENTS_RECEIVED,
    metric::BODIES_PARSED,
    metric::BODIES_MALFORMED,
    metric::CALLS_RECEIVED,
];
/// A gauge that is 1 in every tick.
pub(crate) const LADING_RUNNING: &str = "lading.running";
/// A gauge that is 1 in every tick in which the target has a process.
pub(crate) const TARGET_RUNNING: &str = "target.running";
/// Counters of the target's CPU time, with lading's gauges of the same in millicores.
pub const CPU_MILLICORES: [(&str, &str); 3] = [
    (metric::TARGET_CPU.name, "total_cpu_usage_millicores"),
    (metric::TARGET_CPU_USER.name, "user_cpu_usage_millicores"),
    (
        metric::TARGET_CPU_SYSTEM.name,
        "kernel_cpu_usage_millicores",
    ),
];

/// Returns lading's name and labels for `sample`; the sample's own if lading has none.
#[must_use]
pub fn lading_series(sample: &Sample) -> (SeriesName, Labels) {
    let labels = &sample.labels;
    let component_name = labels.value(COMPONENT_NAME).unwrap_or_default();
    match labels.value(COMPONENT) {
        Some("generator") => generator_series(sample, component_name),
        Some("sink") => {
            let name = sink_name(sample.name.as_str(), component_name);
            (
                named(sample, name),
                labels.clone().with(COMPONENT, "blackhole"),
            )
        }
        _ if is_of_target(sample) => (sample.name.clone(), labels.clone().with("focus", "target")),
        _ => (sample.name.clone(), labels.clone()),
    }
}

/// Renames a series that a check of SMP bounds to its recorded name, if a part of `run_plan` records it under lading's
/// name. If parts that record it too have another name for it, it is that of the only such part; of several it has no
/// name here.
pub(crate) fn rename_recorded(series: &mut SeriesSelector, run_plan: &RunPlan) {
    let name = series.metric.as_str();
    let of_generator = |plan: &GeneratorPlan| {
        let is_meant = name == PACKETS_SENT && is_stream(plan.transport.name());
        is_meant.then_some(metric::REQUESTS_SENT)
    };
    let of_sink = |plan: &SinkPlan| {
        let mut metrics = RENAMED_OF_SINKS.into_iter();
        metrics.find(|metric| sink_name(metric.name, plan.protocol.name()) == Some(name))
    };
    let generators = run_plan.generators.iter();
    let generators = generators.map(|plan| (&plan.id, of_generator(plan)));
    let sinks = run_plan.sinks.iter();
    let sinks = sinks.map(|plan| (&plan.id, of_sink(plan)));
    let records = |metric: Metric, part: &str| {
        let of_part = SeriesSelector {
            metric: metric.name.to_owned(),
            id: Some(part.to_owned()),
            ..series.clone()
        };
        run_plan.missing_for(&of_part).is_none()
    };
    let renamed = renamed(generators.collect(), series.id.as_deref(), records)
        .or_else(|| renamed(sinks.collect(), series.id.as_deref(), records));
    if let Some((metric, id)) = renamed {
        metric.name.clone_into(&mut series.metric);
        series.id = id;
    }
}

/// Returns the metric of a series and the part that it is of, among the parts of one kind with the metrics that they
/// record under its name.
fn renamed(
    parts: Vec<(&String, Option<Metric>)>,
    id: Option<&str>,
    records: impl Fn(Metric, &str) -> bool,
) -> Option<(Metric, Option<String>)> {
    let of_series = |part: &&(&String, Option<Metric>)| id.is_none_or(|id| id == part.0);
    let named = parts.iter().filter(of_series);
    let named = named.filter_map(|(part, metric)| Some((*part, (*metric)?)));
    let named: Vec<(&String, Metric)> = named.collect();
    let (_, metric) = *named.first()?;
    let records = |part: &str| records(metric, part);
    let mut recording = named.clone();
    recording.retain(|(part, _)| records(part));
    // If none records it, the check is about the part that does not.
    let named = if recording.is_empty() {
        named
    } else {
        recording
    };
    let all = parts.iter().filter(|(part, _)| records(part)).count();
    match named.len() {
        count if count == all => Some((metric, id.map(str::to_owned))),
        1 => Some((metric, Some(named[0].0.clone()))),
        _ => None,
    }
}

/// The value that lading would record: its gauges are never whole numbers, its counters always are.
#[must_use]
pub fn lading_value(sample: &Sample) -> Value {
    // Sums of histograms and summaries, which lading does not record, keep their fractions.
    let is_sum = sample.name.as_str().ends_with("_sum");
    let in_range = 0.0..=float_from_u64(u64::MAX);
    match (&sample.value, sample.kind) {
        (Value::Int(value), Kind::Gauge) => Value::Float(float_from_u64(*value)),
        (Value::Float(value), Kind::Counter) if !is_sum && in_range.contains(value) => {
            Value::Int(floor_to_u64(*value))
        }
        (value, _) => value.clone(),
    }
}

fn named(sample: &Sample, name: Option<&'static str>) -> SeriesName {
    match name {
        Some(name) => SeriesName::recorded(name.to_owned()),
        None => sample.name.clone(),
    }
}

/// lading counts requests if there are responses, otherwise packets.
fn generator_series(sample: &Sample, component_name: &str) -> (SeriesName, Labels) {
    let labels = sample.labels.clone();
    let is_stream = is_stream(component_name);
    if sample.name.as_str() == metric::REQUESTS_SENT.name && is_stream {
        return (named(sample, Some(PACKETS_SENT)), labels);
    }
    let outcome = labels
        .value("outcome")
        .filter(|_| !is_stream || is_failure(&labels));
    let Some(outcome) = outcome.map(str::to_owned) else {
        return (sample.name.clone(), labels);
    };
    let labels: Labels = labels
        .iter()
        .filter(|(key, _)| *key != "outcome")
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    if component_name == "tcp_rr" && outcome == Outcome::Ok.name() {
        return (named(sample, Some("responses_received")), labels);
    }
    if let Some(status) = status_of(&outcome) {
        let labels = labels.with("status_code", status);
        return (named(sample, Some("request_ok")), labels);
    }
    let is_of_start = outcome.starts_with("connect") || outcome.starts_with("handshake");
    let name = match (component_name, is_of_start) {
        ("file_gen" | "passthru_file", true) => "file_open_failure",
        ("file_gen" | "passthru_file", false) => "file_write_failure",
        ("tcp_rr", true) => "connections_failed",
        ("splunk_hec", false) if outcome == Outcome::TimedOut.name() => "request_timeout",
        (_, true) => "connection_failure",
        (_, false) => "request_failure",
    };
    (named(sample, Some(name)), labels.with("error", outcome))
}

/// Returns true if a generator of this protocol gets no responses.
fn is_stream(component_name: &str) -> bool {
    matches!(
        component_name,
        "tcp" | "udp" | "unix_stream" | "unix_datagram"
    )
}

fn is_failure(labels: &Labels) -> bool {
    labels.value("outcome") != Some(Outcome::Ok.name())
}

/// The class of a status; the exact status was not counted.
fn status_of(outcome: &str) -> Option<&'static str> {
    Some(match outcome {
        "ok" => "2xx",
        "status_3xx" => "3xx",
        "status_4xx" => "4xx",
        "status_5xx" => "5xx",
        "status_other" => "other",
        _ => return None,
    })
}

fn sink_name(name: &str, component_name: &str) -> Option<&'static str> {
    // Each service has its own terms for received data.
    let terms = [
        ("otlp", metric::EVENTS_RECEIVED, "data_points_received"),
        (
            "datadog",
            metric::BODIES_MALFORMED,
            "datadog_intake_parse_failures",
        ),
        (
            "datadog",
            metric::BODIES_PARSED,
            "datadog_intake_payloads_parsed",
        ),
        (
            "datadog_stateful_logs",
            metric::CALLS_RECEIVED,
            "streams_received",
        ),
        (
            "datadog_stateful_logs",
            metric::EVENTS_RECEIVED,
            "data_items_received",
        ),
        (
            "datadog_stateful_logs",
            metric::MESSAGES_RECEIVED,
            "batches_received",
        ),
        (
            "datadog_stateful_logs",
            metric::BODIES_MALFORMED,
            "stream_errors",
        ),
        (
            "tcp_rr",
            metric::CONNECTIONS_ACCEPTED,
            "connections_accepted",
        ),
        ("udp", metric::MESSAGES_RECEIVED, "packet_received"),
        (
            "unix_datagram",
            metric::MESSAGES_RECEIVED,
            "packet_received",
        ),
        ("tcp", metric::MESSAGES_RECEIVED, "message_received"),
        ("unix_stream", metric::MESSAGES_RECEIVED, "message_received"),
    ];
    let mut names = terms
        .into_iter()
        .filter(|(speaker, metric, _)| *speaker == component_name && metric.name == name);
    names.next().map(|(_, _, name)| name).or_else(|| {
        if name == metric::CONNECTIONS_ACCEPTED.name {
            Some("connection_accepted")
        } else if name == metric::CONNECTIONS_OPEN.name {
            Some(CONNECTIONS_CURRENT)
        } else if name == metric::CONNECTIONS_MAX.name {
            Some(CONNECTION_LIMIT)
        } else if name == metric::MESSAGES_RECEIVED.name {
            Some("requests_received")
        } else {
            None
        }
    })
}

/// Totals over the target's process tree, which lading labels with their focus.
fn is_of_target(sample: &Sample) -> bool {
    [
        metric::TARGET_RSS.name,
        metric::TARGET_PSS.name,
        metric::TARGET_PROCESSES.name,
    ]
    .contains(&sample.name.as_str())
        || sample.name.as_str().starts_with("target_")
}

#[cfg(test)]
mod tests {
    use stillwell_plan::TargetPlan;
    use stillwell_text::NamedFiles;

    use super::*;

    fn series(metric: Metric, labels: &[(&str, &str)]) -> (String, Vec<(String, String)>) {
        let pairs = labels
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        let labels: Labels = pairs.collect();
        let (name, labels) = lading_series(&Sample::int(metric, &labels, 1));
        let owned = |(k, v): (&str, &str)| (k.to_owned(), v.to_owned());
        (name.as_str().to_owned(), labels.iter().map(owned).collect())
    }

    /// Fails unless each metric of a part has this name.
    fn assert_names(component: &str, names: &[(Metric, &str, &str)]) {
        for (metric, component_name, name) in names {
            let labels = [("component", component), ("component_name", component_name)];
            let (actual, labels) = series(*metric, &labels);
            assert_eq!(actual, *name);
            let component = labels.iter().find(|(key, _)| key == "component");
            assert_ne!(component.unwrap().1, "sink");
        }
    }

    // compat: lading, series | bytes_written, packets_sent, requests_sent, data_points_transmitted | works
    // compat: lading, series | maximum_requests, response_bytes | works
    #[test]
    fn generators_are_called_as_lading_calls_them() {
        let names = [
            (metric::BYTES_WRITTEN, "tcp", "bytes_written"),
            (metric::REQUESTS_SENT, "udp", "packets_sent"),
            (metric::REQUESTS_SENT, "http", "requests_sent"),
            (metric::UNITS_WRITTEN, "grpc", "data_points_transmitted"),
            (metric::RESPONSE_BYTES, "grpc", "response_bytes"),
            (metric::REQUESTS_MAX, "splunk_hec", "maximum_requests"),
        ];
        assert_names("generator", &names);
    }

    // compat: lading, series | requests_received, message_received, packet_received, connection_accepted | works
    // compat: lading, series | connection.current | works
    // compat: lading, series | connection.limit | differs | connections above it wait; they are closed there
    // compat: lading, series | bytes_received | differs | without the label path
    #[test]
    fn blackholes_are_called_as_lading_calls_them() {
        let names = [
            (metric::BYTES_RECEIVED, "http", "bytes_received"),
            (metric::CONNECTIONS_OPEN, "http", "connection.current"),
            (metric::CONNECTIONS_MAX, "http", "connection.limit"),
            (metric::MESSAGES_RECEIVED, "http", "requests_received"),
            (metric::MESSAGES_RECEIVED, "udp", "packet_received"),
            (metric::MESSAGES_RECEIVED, "tcp", "message_received"),
            (metric::CONNECTIONS_ACCEPTED, "tcp", "connection_accepted"),
        ];
        assert_names("sink", &names);
    }

    // compat: lading, series | total_rss_bytes, total_pss_bytes, processes_found | works
    #[test]
    fn totals_of_the_target_have_their_focus() {
        for (metric, name) in [
            (metric::TARGET_RSS, "total_rss_bytes"),
            (metric::TARGET_PSS, "total_pss_bytes"),
            (metric::TARGET_PROCESSES, "processes_found"),
        ] {
            let (actual, labels) = series(metric, &[]);
            assert_eq!(actual, name);
            assert_eq!(labels, [("focus".to_owned(), "target".to_owned())]);
        }
    }

    // compat: lading, series | request_ok | differs | status_code is a class, such as 2xx
    // compat: lading, series | request_failure, connection_failure | differs | error is an outcome, such as peer_closed
    #[test]
    fn every_outcome_is_a_success_or_a_failure_of_a_request() {
        for outcome in Outcome::ALL {
            let labels = [
                ("component", "generator"),
                ("component_name", "http"),
                ("outcome", outcome.name()),
            ];
            let (name, labels) = series(metric::OUTCOMES, &labels);
            let has = |key: &str| labels.iter().any(|(name, _)| name == key);
            assert!(!has("outcome"));
            match name.as_str() {
                "request_ok" => assert!(Outcome::ANSWERS.contains(&outcome) && has("status_code")),
                "request_failure" | "connection_failure" => {
                    assert!(!Outcome::ANSWERS.contains(&outcome) && has("error"));
                }
                other => panic!("{other}"),
            }
        }
    }

    // compat: lading, series | datadog_intake_payloads_parsed | differs | bodies in JSON too
    // compat: lading, series | datadog_intake_parse_failures | works
    // compat: lading, series | streams_received, batches_received, data_items_received, stream_errors | works
    // compat: lading, series | data_points_received | works
    #[test]
    fn services_have_words_of_their_own_for_what_they_take() {
        for (metric, component_name, name) in [
            (
                metric::CONNECTIONS_ACCEPTED,
                "tcp_rr",
                "connections_accepted",
            ),
            (
                metric::BODIES_PARSED,
                "datadog",
                "datadog_intake_payloads_parsed",
            ),
            (
                metric::CALLS_RECEIVED,
                "datadog_stateful_logs",
                "streams_received",
            ),
            (metric::CALLS_RECEIVED, "otlp", "calls_received"),
            (
                metric::EVENTS_RECEIVED,
                "datadog_stateful_logs",
                "data_items_received",
            ),
            (
                metric::BODIES_MALFORMED,
                "datadog_stateful_logs",
                "stream_errors",
            ),
            (metric::EVENTS_RECEIVED, "otlp", "data_points_received"),
            (metric::EVENTS_RECEIVED, "http", "events_received"),
            (
                metric::BODIES_MALFORMED,
                "datadog",
                "datadog_intake_parse_failures",
            ),
            (
                metric::MESSAGES_RECEIVED,
                "datadog_stateful_logs",
                "batches_received",
            ),
        ] {
            let labels = [("component", "sink"), ("component_name", component_name)];
            assert_eq!(series(metric, &labels).0, name, "{component_name}");
        }
    }

    // compat: lading, series | request_timeout | differs | after 30 s; after 1 s there
    // compat: lading, series | file_open_failure, file_write_failure | works
    // compat: lading, series | responses_received, connections_failed, connections_accepted | works
    #[test]
    fn what_goes_wrong_with_files_and_round_trips_has_names_of_its_own() {
        for (component_name, outcome, name) in [
            ("file_gen", Outcome::ConnectFailed, "file_open_failure"),
            ("passthru_file", Outcome::SendFailed, "file_write_failure"),
            ("tcp_rr", Outcome::ConnectFailed, "connections_failed"),
            ("tcp_rr", Outcome::Ok, "responses_received"),
            ("tcp", Outcome::ConnectFailed, "connection_failure"),
            ("http", Outcome::TimedOut, "request_failure"),
            ("splunk_hec", Outcome::TimedOut, "request_timeout"),
            ("splunk_hec", Outcome::ConnectTimedOut, "connection_failure"),
        ] {
            let labels = [
                ("component", "generator"),
                ("component_name", component_name),
                ("outcome", outcome.name()),
            ];
            assert_eq!(
                series(metric::OUTCOMES, &labels).0,
                name,
                "{component_name}"
            );
        }
    }

    /// A bound of a series that no part of the case has is not that of another series, which would be 0.
    // compat: lading, series | bounds of series that no part records | works
    #[test]
    fn checks_bound_the_parts_that_record_their_series() {
        let text = "\
generator:
  - tcp:
      seed: [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8]
      addr: 127.0.0.1:1
      variant: ascii
      bytes_per_second: 1 MiB
      maximum_prebuild_cache_size_bytes: 8 MiB
blackhole:
  - {id: t, tcp: {binding_addr: '127.0.0.1:2'}}
  - {id: u, udp: {binding_addr: '127.0.0.1:3'}}
  - {id: h, http: {binding_addr: '127.0.0.1:4'}}
";
        let source = stillwell_text::Source::new("lading.yaml", text);
        let (load, _) = crate::file::read(&source, false, NamedFiles::default());
        let mut run_plan = crate::case::run_of(load.unwrap(), TargetPlan::none());
        for (named, recorded, id) in [
            ("packets_sent", "requests_sent", None),
            ("packet_received", "messages_received", Some("u")),
            ("requests_received", "messages_received", Some("h")),
            ("packet_received['u']", "messages_received", Some("u")),
            ("packet_received['h']", "packet_received", Some("h")),
            ("message_received", "messages_received", Some("t")),
            ("connection.current", "connections_open", None),
            ("batches_received", "batches_received", None),
            ("data_points_received", "data_points_received", None),
            ("streams_received", "streams_received", None),
            ("bytes_received", "bytes_received", None),
        ] {
            let mut series = stillwell_config::shared::parse_series(named).unwrap();
            rename_recorded(&mut series, &run_plan);
            assert_eq!(series.metric, recorded, "{named}");
            assert_eq!(series.id.as_deref(), id, "{named}");
        }
        // Streams record no messages, so the sum is that of the two others.
        let http = run_plan.sinks[2].protocol.clone();
        run_plan.sinks[2].protocol = run_plan.sinks[1].protocol.clone();
        let packets = stillwell_config::shared::parse_series("packet_received").unwrap();
        let mut of_streams = packets.clone();
        rename_recorded(&mut of_streams, &run_plan);
        assert_eq!(of_streams.metric, "messages_received");
        assert_eq!(of_streams.id, None);
        // Of several parts, not all of which have the name, there is no sum.
        run_plan.sinks[0].protocol = http;
        let mut of_requests = packets;
        rename_recorded(&mut of_requests, &run_plan);
        assert_eq!(of_requests.metric, "packet_received");
    }

    #[test]
    fn gauges_are_no_whole_numbers() {
        let sample = Sample::int(metric::TARGET_RSS, &Labels::none(), 7);
        assert_eq!(sample.kind, Kind::Gauge);
        assert_eq!(lading_value(&sample), Value::Float(7.0));
        let sample = Sample::int(metric::BYTES_WRITTEN, &Labels::none(), 7);
        assert_eq!(lading_value(&sample), Value::Int(7));
    }

    #[test]
    fn scraped_counters_are_whole_numbers() {
        let recorded = |name: &str, kind, value| {
            lading_value(&Sample {
                name: SeriesName::scraped(name),
                kind,
                labels: Labels::none(),
                value: Value::Float(value),
            })
        };
        let above = 2.0 * float_from_u64(u64::MAX);
        for (value, expected) in [
            (0.0, Value::Int(0)),
            (7.9, Value::Int(7)),
            (1027.0, Value::Int(1027)),
            (-1.0, Value::Float(-1.0)),
            (above, Value::Float(above)),
            (f64::INFINITY, Value::Float(f64::INFINITY)),
        ] {
            assert_eq!(recorded("seen", Kind::Counter, value), expected);
        }
        let value = recorded("seen", Kind::Counter, f64::NAN);
        assert!(value.number().is_some_and(f64::is_nan));
        // Not a counter, and a part of a histogram.
        for (name, kind) in [("heat", Kind::Gauge), ("wait_sum", Kind::Counter)] {
            assert_eq!(recorded(name, kind, 17.5), Value::Float(17.5));
        }
    }
}
