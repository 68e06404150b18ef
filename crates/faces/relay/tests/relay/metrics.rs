use std::collections::BTreeMap;
use std::io::Write;
use std::net::SocketAddr;

use stillwell_relay::{Format, RelayReport};
use stillwell_units::ByteSize;

use crate::support::{Connection, collect, options, run};

/// Reads Prometheus' text format and refuses anything else: each metric has HELP, TYPE and
/// one sample, in this order and once.
fn parse(text: &str) -> BTreeMap<String, u64> {
    assert!(text.ends_with('\n'));
    let mut values = BTreeMap::new();
    let lines: Vec<&str> = text.lines().collect();
    for metric in lines.chunks(3) {
        let [help, kind, sample] = metric else {
            unreachable!("{metric:?}");
        };
        let (name, value) = sample.split_once(' ').unwrap();
        assert!(
            name.bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'_'),
            "{name}"
        );
        let meaning = help.strip_prefix(&format!("# HELP {name} ")).unwrap();
        assert!(meaning.ends_with('.') && !meaning.contains('\\'));
        let expected = if name.ends_with("_total") {
            "counter"
        } else {
            "gauge"
        };
        assert_eq!(*kind, format!("# TYPE {name} {expected}"));
        assert!(
            values
                .insert(name.to_owned(), value.parse().unwrap())
                .is_none()
        );
    }
    values
}

fn scrape(address: SocketAddr) -> BTreeMap<String, u64> {
    let mut connection = Connection::to(address);
    connection.send("GET /metrics HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    let (head, body) = connection.message().unwrap();
    assert!(
        head.contains("content-type: text/plain; version=0.0.4\r\n"),
        "{head}"
    );
    assert!(connection.message().is_none());
    parse(&body)
}

fn expected(report: &RelayReport) -> BTreeMap<String, u64> {
    [
        ("relay_events_in_total", report.events_in),
        ("relay_events_out_total", report.events_out),
        ("relay_events_dropped_total", report.events_dropped),
        ("relay_faults_dropped_total", report.faults_dropped),
        ("relay_faults_flipped_total", report.faults_flipped),
        ("relay_faults_swapped_total", report.faults_swapped),
        ("relay_faults_duplicated_total", report.faults_duplicated),
        ("relay_faults_refused_total", report.faults_refused),
        ("relay_compressed_refused_total", report.compressed_refused),
        ("relay_parse_errors_total", report.parse_errors),
        ("relay_bytes_in_total", report.bytes_in),
        ("relay_bytes_out_total", report.bytes_out),
        ("relay_events_recovered_total", report.events_recovered),
        ("relay_torn_bytes_total", report.torn_bytes),
        ("relay_disk_syncs_total", report.disk_syncs),
        ("relay_disk_errors_total", report.disk_errors),
        ("relay_events_kept", report.events_kept),
        ("relay_disk_bytes", report.disk_bytes),
        ("relay_buffer_events", report.buffer_events),
        ("relay_hoard_bytes", report.hoard_bytes),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

#[test]
fn the_page_has_the_content_of_the_report() {
    let collector = collect();
    let mut options = options("tcp://127.0.0.1:0", &collector.endpoint);
    options.metrics = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    options.format = Format::Json;
    options.parse = true;
    options.rewrite = vec!["env=prod".parse().unwrap()];
    options.hoard_per_event = ByteSize::new(10);
    let relay = run(options);
    let mut stream = relay.connect();
    stream
        .write_all(b"{\"x\":1}\nnot json\n{\"env\":null}\n")
        .unwrap();
    let page = loop {
        let page = scrape(relay.metrics());
        if page["relay_events_out_total"] == 3 {
            break page;
        }
    };
    let metrics = relay.metrics();
    for (request, status) in [
        ("GET /", 404),
        ("POST /metrics", 405),
        ("GET /metrics?a=b", 200),
    ] {
        let mut connection = Connection::to(metrics);
        connection.send(&format!("{request} HTTP/1.1\r\nhost: a\r\n\r\n"));
        assert_eq!(connection.status(), status, "{request}");
    }
    let report = relay.end();
    assert_eq!((report.parse_errors, report.hoard_bytes), (1, 30));
    assert_eq!(page, expected(&report));
    let received = String::from_utf8(collector.all()).unwrap();
    assert_eq!(
        received,
        "{\"env\":\"prod\",\"x\":1}\nnot json\n{\"env\":\"prod\"}\n"
    );
}
