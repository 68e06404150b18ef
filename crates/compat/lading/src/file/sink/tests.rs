use stillwell_plan::generator::MessageLength;
use stillwell_plan::sink::{IntakeService, SeriesRecord, SinkBody};
use stillwell_plan::{SinkPlan, SinkProtocol};

use crate::file::{LadingFile, read};
use stillwell_text::{Diagnostics, NamedFiles, Source};

fn run_plan(kind: &str, body: &str) -> (LadingFile, Diagnostics) {
    let text = format!("blackhole: [{{{kind}: {{{body}}}}}]\n");
    let source = Source::new("lading.yaml", &text);
    let (run_plan, result) = read(&source, true, NamedFiles::default());
    (run_plan.expect("a root that is a map"), result)
}

/// The plan of a blackhole of `kind` with `body`, which must be right.
fn sinks(kind: &str, body: &str) -> Vec<SinkPlan> {
    let (run_plan, result) = run_plan(kind, body);
    assert!(!result.has_errors(), "{kind}: {result}");
    run_plan.sinks
}

fn service(sink: &SinkPlan) -> &IntakeService {
    match &sink.protocol {
        SinkProtocol::Intake { service, .. } => service,
        other => panic!("{other:?}"),
    }
}

#[test]
fn services_have_sinks() {
    let hec = sinks("splunk_hec", "binding_addr: '0.0.0.0:8088'");
    assert_eq!(*service(&hec[0]), IntakeService::SplunkHec);
    assert_eq!(
        *service(&sinks("sqs", "binding_addr: '127.0.0.1:1'")[0]),
        IntakeService::Sqs
    );
    let logs = sinks(
        "datadog_stateful_logs",
        "grpc_addr: '127.0.0.1:1', response_delay_millis: 7",
    );
    assert_eq!(*service(&logs[0]), IntakeService::DatadogStatefulLogs);
    for (record, expected) in [
        ("", SeriesRecord::None),
        (", record: disabled", SeriesRecord::None),
        (", record: all", SeriesRecord::All),
        (
            ", record: {series_to_keep: [a, b]}",
            SeriesRecord::Named(vec!["a".into(), "b".into()]),
        ),
    ] {
        let body = format!("v2: {{binding_addr: '127.0.0.1:1'}}{record}");
        let record = expected;
        assert_eq!(
            *service(&sinks("datadog", &body)[0]),
            IntakeService::Datadog { record }
        );
    }
}

#[test]
fn otlp_becomes_a_sink_for_each_address() {
    let both = sinks(
        "otlp",
        "grpc_addr: '127.0.0.1:4317', http_addr: '127.0.0.1:4318'",
    );
    let ids: Vec<&str> = both.iter().map(|sink| sink.id.as_str()).collect();
    assert_eq!(ids, ["otlp", "otlp-2"]);
    assert_eq!(sinks("otlp", "http_addr: '127.0.0.1:4318'").len(), 1);
    let (_, result) = run_plan("otlp", "response_delay_millis: 1");
    assert!(
        result
            .to_string()
            .contains("`grpc_addr` or `http_addr` is missing")
    );
}

#[test]
fn a_warning_names_the_id_of_a_second_address() {
    let text =
        "blackhole: [{id: intake, otlp: {grpc_addr: '127.0.0.1:1', http_addr: '127.0.0.1:2'}}]";
    let source = Source::new("lading.yaml", text);
    let (both, result) = read(&source, true, NamedFiles::default());
    let sinks = both.expect("a root that is a map").sinks;
    let ids: Vec<&str> = sinks.iter().map(|sink| sink.id.as_str()).collect();
    assert_eq!(ids, ["intake", "intake-2"]);
    assert!(result.to_string().contains("the id `intake-2`"), "{result}");
    // Series of a blackhole without an id are not selected by it.
    let addresses = "grpc_addr: '127.0.0.1:1', http_addr: '127.0.0.1:2'";
    let (_, result) = run_plan("otlp", addresses);
    assert!(result.is_empty(), "{result}");
}

// compat: lading, blackholes | http: body_variant | works
#[test]
fn every_body_of_http_is_read() {
    let http =
        |body: &str| sinks("http", &format!("binding_addr: '127.0.0.1:1', {body}")).remove(0);
    let bytes = |body: &str| match http(body).protocol {
        SinkProtocol::Http { body, .. } => body,
        other => panic!("{other:?}"),
    };
    assert_eq!(bytes("body_variant: nothing"), SinkBody::Empty);
    assert_eq!(
        bytes("body_variant: {static: ok}"),
        SinkBody::Static(b"ok".to_vec())
    );
    let raw = bytes("body_variant: raw_bytes, raw_bytes: [0x01, 0o2, 0b10000]");
    assert_eq!(raw, SinkBody::Static(vec![1, 2, 16]));
    let SinkBody::Static(kinesis) = bytes("body_variant: aws_kinesis") else {
        panic!("an empty body");
    };
    assert!(kinesis.starts_with(b"{\"encrypted\":null"));
    let page = http(
        "body_variant: {openmetrics: {metric_name_prefix: x, include_help: false, counters: {count: 3}, \
         histograms: {count: 1, buckets: [1, 2.5]}, labels: {services: [a], route_count: 2}}}",
    );
    let IntakeService::Openmetrics(page) = service(&page) else {
        panic!("no page");
    };
    assert_eq!(
        (page.prefix.as_str(), page.counters, page.gauges),
        ("x", 3, 180)
    );
    assert_eq!(
        (page.buckets.as_slice(), page.routes),
        (["1".to_owned(), "2.5".to_owned()].as_slice(), 2)
    );
    assert_eq!(page.labels[0], ("service".to_owned(), vec!["a".to_owned()]));
}

#[test]
fn a_page_of_openmetrics_has_the_status_and_headers_of_the_file_and_its_own_content_type() {
    let warned = "a page of `openmetrics` has a content type of its own";
    for (keys, status, headers, is_warned) in [
        ("", 200, vec![], false),
        (", status: 503", 503, vec![], false),
        (", headers: {x-a: b}", 200, vec![("x-a", "b")], false),
        (
            ", headers: {Content-Type: text/plain, x-a: b}",
            200,
            vec![("x-a", "b")],
            true,
        ),
        (", content_type: text/plain", 200, vec![], true),
    ] {
        let body = format!("binding_addr: '127.0.0.1:1', body_variant: openmetrics{keys}");
        let (run_plan, result) = run_plan("http", &body);
        let IntakeService::Openmetrics(page) = service(&run_plan.sinks[0]) else {
            panic!("no page: {keys}");
        };
        let read = page.headers.iter();
        let read: Vec<_> = read.map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!((page.status, read), (status, headers), "{keys}");
        assert_eq!(result.to_string().contains(warned), is_warned, "{result}");
    }
}

#[test]
fn tcp_rr_listens_at_its_data_port() {
    let sink = sinks("tcp_rr", "addr: 0.0.0.0, request_size: 4, response_size: 9").remove(0);
    let expected = SinkProtocol::TcpRr {
        address: "127.0.0.1:12867".parse().unwrap(),
        request_bytes: MessageLength::try_new(4).unwrap(),
        response_bytes: MessageLength::try_new(9).unwrap(),
    };
    assert_eq!(sink.protocol, expected);
}

#[test]
fn mistakes_are_named() {
    for (kind, body, expected) in [
        (
            "datadog",
            "v2: {binding_addr: '127.0.0.1:1'}, record: some",
            "unknown record `some`",
        ),
        ("datadog", "record: all", "needs `v2`"),
        ("tcp_rr", "addr: '127.0.0.1:1'", "is not an IP address"),
        (
            "http",
            "binding_addr: '127.0.0.1:1', body_variant: static",
            "a static body needs its text",
        ),
        (
            "http",
            "binding_addr: '127.0.0.1:1', body_variant: other",
            "unknown body `other`",
        ),
        (
            "sqs",
            "binding_addr: here",
            "is not an address to listen on",
        ),
        (
            "tcp",
            "binding_addr: '[fe80::1%1]:9'",
            "is not an address to listen on",
        ),
    ] {
        let (_, result) = run_plan(kind, body);
        assert!(result.has_errors());
        assert!(result.to_string().contains(expected), "{result}");
    }
}
