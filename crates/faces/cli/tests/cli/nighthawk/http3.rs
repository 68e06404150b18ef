//! Loads over HTTP/3 against `stillwell serve`, which checks nothing that Nighthawk's
//! client would not.

use super::*;

/// `stillwell serve` over HTTP/3, its URL, and a transport socket that accepts its certificate.
fn serving(folder: &TempDir) -> (Process, String, String) {
    let ca = folder.path().join("ca.pem").display().to_string();
    let mut command = Command::new(STILLWELL);
    command.args(["serve", "--address=127.0.0.1:0", "--protocol=http3"]);
    command.arg("--admin=127.0.0.1:0");
    command.args(["--tls=self-signed", &format!("--tls-certificate-out={ca}")]);
    let process = Process::start(&mut command);
    let mut url = None;
    let is_up = wait_until(LONG, || {
        let stderr = process.stderr();
        let rest = stderr
            .split_once("https://")
            .map(|(_, rest)| rest.to_owned());
        let line = rest.filter(|rest| rest.contains('\n'));
        url = line.and_then(|rest| rest.lines().next().map(|at| format!("https://{at}")));
        url.is_some()
    });
    assert!(is_up, "{}", process.stderr());
    let socket = format!(
        "--transport-socket '{{name:\"envoy.transport_sockets.quic\",typed_config:{{\"@type\":\
         \"type.googleapis.com/envoy.extensions.transport_sockets.quic.v3.QuicUpstreamTransport\",\
         upstream_tls_context:{{common_tls_context:{{validation_context:{{trusted_ca:\
         {{filename:\"{ca}\"}}}}}}}}}}}}'"
    );
    (process, url.unwrap(), socket)
}

const FEW: &str = "--protocol http3 --rps 100 --duration 100 --max-active-requests 1 \
                   --termination-predicate benchmark.http_2xx:24";

// compat: nighthawk_client | --protocol | works
// compat: nighthawk_client | --http3-protocol-options | differs | of the options of a client, the number of streams has an effect
// compat: counters of nighthawk_client | upstream_cx_http3_total | works
/// Telling test 10 of Nighthawk's.
#[test]
fn a_load_over_http3_counts_as_over_any_other() {
    for (words, workers) in [
        ("", 1),
        ("--request-header Host:localhost", 1),
        (
            "--upstream-bind-config {source_address:{address:\"127.0.0.1\",port_value:0}}",
            1,
        ),
        (
            "--http3-protocol-options {quic_protocol_options:{max_concurrent_streams:2}}",
            1,
        ),
        ("--concurrency 2 --open-loop --request-body-size 100000", 2),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (server, url, socket) = serving(&folder);
        let result = measure(&format!("{FEW} {words} {socket} {url}"));
        for (name, value) in [
            ("benchmark.http_2xx", 25 * workers),
            ("upstream_cx_http3_total", workers),
            ("upstream_cx_total", workers),
            ("ssl.handshake", workers),
            ("ssl.versions.TLSv1.3", workers),
        ] {
            assert_eq!(result.counter(name), value, "{words}: {name}");
        }
        let id = "benchmark_http_client.request_to_response";
        assert_eq!(result.samples(id), 25 * workers, "{words}");
        assert_eq!(result.output["options"]["protocol"]["value"], "HTTP3");
        server.signal("TERM");
        let ended = server.finish(LONG);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        assert!(count(&ended.stdout, "requests") >= 25 * workers);
    }
}

#[test]
fn a_tunnel_that_is_refused_over_http3_is_an_answer_like_another() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, url, socket) = serving(&folder);
    let line = "--protocol http3 --request-method CONNECT --rps 100 --max-active-requests 1 \
                --no-default-failure-predicates --duration 100 --termination-predicate requests:4";
    let result = measure(&format!("{line} {socket} {url}"));
    let answered = result.counter("benchmark.http_4xx");
    assert!(answered >= 4, "{:?}", result.counters(""));
    assert_eq!(result.counter("benchmark.http_2xx"), 0);
}

/// The counter stayed 0 over QUIC.
#[test]
fn bytes_that_come_over_http3_are_counted_by_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let (server, url, socket) = serving(&folder);
    let stderr = server.stderr();
    let admin = stderr.split_once("admin on ").unwrap().1.lines().next();
    let received = || {
        let stats = exchange(admin.unwrap(), "GET", "/stats");
        let name = "downstream_cx_rx_bytes_total: ";
        let line = stats.lines().find(|line| line.contains(name)).unwrap();
        line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(received(), 0);
    let result = measure(&format!("{FEW} --request-body-size 10000 {socket} {url}"));
    assert_eq!(result.counter("benchmark.http_2xx"), 25);
    let bodies = 25 * 10_000;
    // With heads, and streams of the connection itself.
    assert!(
        (bodies..bodies + 25 * 1000).contains(&received()),
        "{}",
        received()
    );
    server.signal("TERM");
    assert_eq!(server.finish(LONG).code, 0);
}

// compat: nighthawk_client | --protocol | works
/// Without an authority, as Envoy does it.
#[test]
fn over_http3_a_certificate_must_carry_the_requested_name() {
    let folder = tempfile::tempdir().unwrap();
    let (server, url, _) = serving(&folder);
    let named = measure(&format!("{FEW} --request-header Host:localhost {url}"));
    assert_eq!(named.counter("benchmark.http_2xx"), 25);
    let ended = client(&format!(
        "{FEW} --request-header Host:sni.com --output-format json {url}"
    ));
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    let result = Found::read(&ended);
    assert_eq!(result.counter("benchmark.http_2xx"), 0);
    assert!(result.counter("benchmark.pool_connection_failure") > 0);
    drop(server);
}

/// Nighthawk's test of `CONNECT-UDP`.
#[test]
fn http3_in_a_tunnel_changes_no_count() {
    use stillwell_plan::load::TunnelProtocol::Http2;

    use crate::tunnel::over_tls;
    use crate::tunnel::proxy::{Manner, Proxy};

    let folder = tempfile::tempdir().unwrap();
    for is_secure in [false, true] {
        let (server, url, socket) = serving(&folder);
        let proxy = Proxy::start(Manner::Well, Http2, is_secure.then(|| over_tls(Http2)));
        let context = "--tunnel-tls-context {common_tls_context:{}}";
        let result = measure(&format!(
            "{FEW} --connections 1 --tunnel-protocol http2 --tunnel-uri http://{} {} {socket} {url}",
            proxy.address(),
            if is_secure { context } else { "" },
        ));
        for (name, value) in [
            ("benchmark.http_2xx", 25),
            ("upstream_cx_http3_total", 1),
            ("upstream_cx_total", 1),
        ] {
            assert_eq!(result.counter(name), value, "{is_secure}: {name}");
        }
        assert_eq!(proxy.stop().len(), 1);
        server.signal("TERM");
        assert_eq!(server.finish(LONG).code, 0);
    }
}
