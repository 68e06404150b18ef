//! Who is told what while a load goes on.

use std::io::Read;
use std::net::{TcpListener, UdpSocket};

use super::*;

const FEW: &str = "--rps 100 --connections 1 --duration 1.2s";

fn sink(of: &str, config: &str) -> String {
    format!(
        "--stats-sinks '{{name:\"envoy.stat_sinks.{of}\",typed_config:{{\"@type\":\
         \"type.googleapis.com/envoy.config.metrics.v3.StatsdSink\",{config}}}}}'"
    )
}

/// All that was sent to `socket`, once nobody sends any more.
fn datagrams(socket: &UdpSocket) -> String {
    socket.set_nonblocking(true).unwrap();
    let (mut all, mut buffer) = (String::new(), vec![0; 1 << 16]);
    while let Ok(length) = socket.recv(&mut buffer) {
        all.push_str(&String::from_utf8_lossy(&buffer[..length]));
        all.push('\n');
    }
    all
}

#[test]
fn statsd_is_told_counts_in_datagrams_at_every_flush() {
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
        let found = measure(&format!("{FEW} {every} {sink} {}", origin.url()));
        let told = datagrams(&socket);
        let is_counter = |line: &&str| line.starts_with("nh.") && line.ends_with("|c");
        assert!(
            told.lines().any(|line| is_counter(&line)),
            "{every}: {told}"
        );
        let sinks = found.output["options"]["stats_sinks"].as_array().unwrap();
        assert_eq!(sinks[0]["name"], "envoy.stat_sinks.statsd");
    }
}

#[test]
fn statsd_is_told_counts_over_tcp_where_its_cluster_is() {
    let origin = Origin::start();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let sink = sink("statsd", "tcp_cluster_name:\"statsd\"");
    let at = format!("--stats-sink-address {address} --stats-flush-interval 1");
    measure(&format!("{FEW} {at} {sink} {}", origin.url()));
    let (mut stream, _) = listener.accept().unwrap();
    let mut told = String::new();
    stream.read_to_string(&mut told).unwrap();
    assert!(
        told.lines().all(|line| line.starts_with("envoy.")),
        "{told}"
    );
    assert!(told.lines().any(|line| line.ends_with("|c")), "{told}");
}

#[test]
fn every_request_leaves_a_span_at_the_tracer() {
    let (origin, tracer) = (Origin::start(), Origin::start());
    // Documentation of 2020 names version 1 of the interface.
    for version in ["v1", "v2"] {
        let trace = format!(
            "--trace zipkin://{}/api/{version}/spans",
            address(tracer.url())
        );
        let line = "--rps 100 --connections 1 --termination-predicate benchmark.http_2xx:49";
        let found = measure(&format!("{line} {trace} {}", origin.url()));
        assert_eq!(found.counter("benchmark.http_2xx"), 50);
        let sent = found.counter("tracing.zipkin.spans_sent");
        assert!((45..=50).contains(&sent), "{sent}");
        assert_eq!(
            found.log.contains("[W] --trace: version 2"),
            version == "v1"
        );
    }
    assert!(tracer.stop() >= 2);
}
