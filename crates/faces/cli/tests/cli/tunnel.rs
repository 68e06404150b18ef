//! Loads through a CONNECT proxy have the results of loads without one, and each failure of
//! the proxy ends each request once.

#[path = "tunnel/proxy.rs"]
pub(crate) mod proxy;
#[path = "tunnel/streamed.rs"]
mod streamed;

use std::path::Path;
use std::process::Command;

use stillwell_plan::load::TunnelProtocol::{self, Http1, Http2, Http3};
use stillwell_plan::tls::{Alpn, PemSource, ServerIdentity, ServerTlsPlan, TlsIdentity, TlsSuites};
use stillwell_testkit::{Process, free_port, program_or_skip};
use stillwell_wire::tls::ServerTls;

use crate::both_ends::ends::{
    Certificate, LONG, Report, Serving, load, start_load, start_on_free_ports,
};
use crate::faulty_peer::tls;
use proxy::{Manner, Proxy};

/// A proxy over TLS offers what it speaks.
pub(crate) fn over_tls(protocol: TunnelProtocol) -> ServerTls {
    tls::server(&[alpn(protocol)])
}

/// The same with a certificate that can be trusted.
pub(crate) fn known_tls(certificate: &Certificate, protocol: TunnelProtocol) -> ServerTls {
    let read = |name: &str| PemSource::File(certificate.path(name));
    let tls = ServerTls::new(&ServerTlsPlan {
        identity: ServerIdentity::Given(TlsIdentity {
            certificates: read("certificate.pem"),
            key: read("key.pem"),
        }),
        alpn: vec![alpn(protocol)],
        client_roots: Vec::new(),
        resumption: true,
        suites: TlsSuites::default(),
    });
    tls.unwrap()
}

const fn alpn(protocol: TunnelProtocol) -> Alpn {
    match protocol {
        Http1 => Alpn::Http1,
        Http2 => Alpn::Http2,
        Http3 => Alpn::Http3,
    }
}

const fn protocol(protocol: TunnelProtocol) -> &'static str {
    match protocol {
        Http1 => "http1",
        Http2 => "http2",
        Http3 => "http3",
    }
}

/// A proxy, and the words that lead through it; it speaks HTTP/3 over TLS alone.
fn start(manner: Manner, outer: TunnelProtocol, is_secure: bool) -> (Proxy, Vec<String>) {
    let is_secure = is_secure || outer == Http3;
    let proxy = Proxy::start(manner, outer, is_secure.then(|| over_tls(outer)));
    let scheme = if is_secure { "https" } else { "http" };
    let mut words = vec![
        format!("--tunnel-uri={scheme}://{}", proxy.address()),
        format!("--tunnel-protocol={}", protocol(outer)),
    ];
    words.extend(is_secure.then(|| "--tunnel-insecure".to_owned()));
    (proxy, words)
}

const ALL: [TunnelProtocol; 3] = [Http1, Http2, Http3];

#[test]
fn requests_through_a_tunnel_arrive_as_without() {
    let certificate = Certificate::new();
    let shown = [
        format!(
            "--certificate={}",
            certificate.path("certificate.pem").display()
        ),
        format!("--key={}", certificate.path("key.pem").display()),
    ];
    let outer = [
        (Http1, false),
        (Http1, true),
        (Http2, false),
        (Http2, true),
        (Http3, true),
    ];
    for is_secure in [false, true] {
        let mut arguments = Vec::new();
        if is_secure {
            arguments.extend(shown.iter().map(String::as_str));
        }
        for (outer, is_outer_secure) in outer {
            for inner in [Http1, Http2] {
                let served = Serving::start(&arguments);
                let (proxy, through) = start(Manner::Well, outer, is_outer_secure);
                let inner_protocol = format!("--protocol={}", protocol(inner));
                let trusted = certificate.trusted();
                let mut words = vec![served.url.as_str(), "-n40", "-c2", &inner_protocol];
                // A handshake that takes too long would make another tunnel.
                words.push("--connect-timeout=30s");
                words.extend(through.iter().map(String::as_str));
                words.extend(is_secure.then_some(trusted.as_str()));
                let report = load(&words);
                report.assert_all_well(40);
                let requested = proxy.stop();
                assert_eq!(requested.len(), 2, "{words:?}: {requested:?}");
                let head = format!("CONNECT {} ", served.address);
                assert!(
                    requested.iter().all(|entry| entry.starts_with(&head)),
                    "{requested:?}"
                );
                let words = format!("{words:?}");
                assert_eq!(served.stop()["requests"], 40, "{words}");
            }
        }
    }
}

/// More than any window or buffer, both ways.
#[test]
fn long_bodies_go_both_ways_through_a_tunnel() {
    let served = Serving::start(&["--response-size=1MiB"]);
    for (outer, inner) in [
        (Http1, Http1),
        (Http2, Http1),
        (Http2, Http2),
        (Http3, Http1),
        (Http3, Http2),
    ] {
        let (proxy, through) = start(Manner::Well, outer, false);
        let inner = format!("--protocol={}", protocol(inner));
        let body = "--body=payload:ascii:512KiB";
        let mut words = vec![&*served.url, "-n6", "-c2", body, &inner];
        words.extend(through.iter().map(String::as_str));
        load(&words).assert_all_well(6);
        proxy.stop();
    }
    served.stop();
}

#[test]
fn an_answer_over_http3_that_opens_a_tunnel_ends_its_request() {
    for (manner, outcome) in [
        (Manner::SwallowOpened, "ok"),
        (Manner::Status(502), "status_5xx"),
    ] {
        let proxy = Proxy::start(manner, Http3, Some(over_tls(Http3)));
        let url = format!("https://{}", proxy.address());
        // The proxy takes one stream of a connection.
        let words = "--method=CONNECT --protocol=http3 -k -n3 -c1 --max-requests-per-connection=1";
        let mut all = vec![&*url, "-H", "host: target:1"];
        all.extend(words.split(' '));
        let report = load(&all);
        assert_eq!(report.outcome(outcome), 3, "{:?}", report.outcomes());
        let requested = proxy.stop();
        assert_eq!(requested.len(), 3, "{requested:?}");
        let is_connect = |entry: &String| entry.starts_with("CONNECT target:1 ");
        assert!(requested.iter().all(is_connect), "{requested:?}");
    }
}

/// QUIC gives connections up on which nothing comes for 30 s.
#[test]
fn a_way_over_http3_that_was_silent_for_half_a_minute_was_lost() {
    let served = Serving::start(&["--delay=31s"]);
    let (proxy, through) = start(Manner::Well, Http3, false);
    let mut words = vec![&*served.url, "-n1", "-c1", "--timeout=300s"];
    words.extend(through.iter().map(String::as_str));
    load(&words).assert_all_well(1);
    assert_eq!(proxy.stop().len(), 1);
    served.stop();
}

/// `serve` over HTTP/3, and how its certificate is trusted.
fn serving_http3(folder: &Path, size: &str) -> (Serving, String) {
    let file = folder.join("ca.pem").display().to_string();
    let out = format!("--tls-certificate-out={file}");
    let words = ["--protocol=http3", "--tls=self-signed", &out, size];
    (Serving::start(&words), format!("--ca={file}"))
}

/// Datagrams in capsules, short ones and as many as windows allow.
#[test]
fn http3_goes_through_a_proxy_with_datagrams() {
    let folder = tempfile::tempdir().unwrap();
    for (is_secure, size, words, requests) in [
        (false, "", "-n40 -c2 --streams=4", 40),
        (true, "", "-n40 -c2 --body=abc", 40),
        (false, "1MiB", "-n6 -c2 --body=payload:ascii:512KiB", 6),
        (true, "", "-n20 -c1 --rate=200/s --connect-late", 20),
    ] {
        let size = match size {
            "" => "--response-size=10B".to_owned(),
            size => format!("--response-size={size}"),
        };
        let (served, ca) = serving_http3(folder.path(), &size);
        let (proxy, through) = start(Manner::Well, Http2, is_secure);
        let mut all = vec![&*served.url, "--protocol=http3", &ca, "--timeout=30s"];
        all.extend(through.iter().map(String::as_str));
        all.extend(words.split_whitespace());
        let report = load(&all);
        report.assert_all_well(requests);
        let opened = report.value["global"]["counters"]["upstream_cx_http3_total"].as_u64();
        let requested = proxy.stop();
        assert_eq!(
            requested.len() as u64,
            opened.unwrap(),
            "{words}: {requested:?}"
        );
        let port = served.address.rsplit(':').next().unwrap();
        let head = format!("CONNECT connect-udp /.well-known/masque/udp/127.0.0.1/{port}/ ");
        for entry in requested {
            assert!(entry.starts_with(&head), "{entry}");
            assert!(entry.contains("capsule-protocol: ?1"), "{entry}");
        }
        let counts = served.stop();
        assert_eq!(counts["requests"], requests, "{words}");
        assert_eq!(counts["handshakes"].as_u64(), opened, "{words}");
    }
}

#[test]
fn http3_that_is_not_led_on_fails_once_for_each_request() {
    let folder = tempfile::tempdir().unwrap();
    let (served, ca) = serving_http3(folder.path(), "--response-size=10B");
    for (manner, outcome, finding) in [
        (
            Manner::NoDatagrams,
            "connect_failed",
            "does not allow CONNECT with a protocol",
        ),
        (
            Manner::Status(502),
            "connect_failed",
            "with status 502: it cannot reach that address",
        ),
        (
            Manner::CloseOpened,
            "connect_failed",
            "the other end cannot be reached",
        ),
        (
            Manner::SwallowOpened,
            "connect_timed_out",
            "no request was answered",
        ),
    ] {
        let (proxy, through) = start(manner, Http2, false);
        let mut words = vec![&*served.url, "--protocol=http3", &ca, "-n4", "-c2"];
        words.extend(match outcome {
            "connect_timed_out" => ["--timeout=30s", "--connect-timeout=300ms"],
            _ => ["--timeout=30s", "--connect-timeout=30s"],
        });
        words.extend(through.iter().map(String::as_str));
        let report = load(&words);
        proxy.stop();
        let context = format!("{manner:?}: {:?}\n{}", report.outcomes(), report.findings());
        assert_eq!(report.outcome(outcome), 4, "{context}");
        assert!(report.findings().contains(finding), "{context}");
    }
    assert_eq!(served.stop()["requests"], 0);
}

const CLOSED: &str = "-n12";
const OPEN: &str = "-n12 --rate=10/s";

/// Manners of a proxy, each with the outcomes of its requests and the report's text.
fn cases(outer: TunnelProtocol) -> Vec<(Manner, &'static [&'static str], &'static str)> {
    let failed: &[&str] = &["connect_failed"];
    let none = "no request was answered";
    let garbage = match outer {
        Http1 => "something other than HTTP/1.1",
        Http2 => "something other than HTTP/2",
        Http3 => "something other than HTTP/3",
    };
    vec![
        (
            Manner::Status(407),
            failed,
            "with status 407: it requires credentials",
        ),
        (
            Manner::Status(403),
            failed,
            "with status 403: it refuses that address",
        ),
        (
            Manner::Status(502),
            failed,
            "with status 502: it cannot reach that address",
        ),
        (Manner::Status(302), failed, "with status 302"),
        (Manner::CloseAtAccept, failed, none),
        (Manner::ResetAtAccept, failed, none),
        (Manner::CloseUnanswered, failed, "before it answers CONNECT"),
        (Manner::ResetUnanswered, failed, none),
        (Manner::HalfAnswer, failed, "before it answers CONNECT"),
        (Manner::Garbage, &["handshake_failed"], garbage),
        (Manner::Silent, &["connect_timed_out"], none),
        (Manner::CloseOpened, &["peer_closed"], none),
        (Manner::SwallowOpened, &["timed_out", "unfinished"], none),
    ]
}

fn failures(loop_words: &str, outer: TunnelProtocol) {
    let begun = cases(outer).into_iter().map(|case| {
        let (proxy, through) = start(case.0, outer, false);
        // No request reaches this address.
        let to = format!("http://127.0.0.1:{}/", free_port());
        let peer = Serving::start(&[]);
        let to = match case.0 {
            Manner::CloseOpened | Manner::SwallowOpened => peer.url.clone(),
            _ => to,
        };
        let mut words = vec![to.as_str(), "-c3"];
        words.extend(through.iter().map(String::as_str));
        // Only these two cases run into a timeout, even on a slow host.
        words.extend(match case.0 {
            Manner::Silent => ["--timeout=30s", "--connect-timeout=300ms"],
            Manner::SwallowOpened => ["--timeout=300ms", "--connect-timeout=30s"],
            _ => ["--timeout=30s", "--connect-timeout=30s"],
        });
        words.extend(loop_words.split_whitespace());
        let process = start_load(&words);
        (case, proxy, peer, process)
    });
    let begun: Vec<_> = begun.collect();
    for ((manner, ends, finding), proxy, peer, process) in begun {
        let report = Report::of(process.finish(LONG));
        proxy.stop();
        peer.stop();
        let outcomes = report.outcomes();
        let context = format!(
            "{manner:?} {loop_words}: {outcomes:?}\n{}",
            report.findings()
        );
        let is_named = |name: &String| ends.contains(&name.as_str());
        assert!(outcomes.keys().all(is_named), "{context}");
        assert!(report.outcome(ends[0]) > 0, "{context}");
        assert!(report.findings().contains(finding), "{context}");
        assert!(report.begun() <= report.ended(), "{context}");
        assert_eq!(report.ended(), 12, "{context}");
        // 1 where connections were opened and nothing was answered.
        assert!(matches!(report.ended.code, 1 | 3 | 4), "{context}");
    }
}

#[test]
fn every_failure_of_a_proxy_is_counted_once_in_a_closed_loop() {
    ALL.into_iter().for_each(|value| failures(CLOSED, value));
}

#[test]
fn every_failure_of_a_proxy_is_counted_once_in_an_open_loop() {
    ALL.into_iter().for_each(|value| failures(OPEN, value));
}

#[test]
fn a_proxy_that_is_not_there_is_refused_and_one_without_tls_no_handshake() {
    for (outer, scheme) in [(Http1, "http"), (Http2, "http"), (Http3, "https")] {
        let uri = format!("--tunnel-uri={scheme}://127.0.0.1:{}", free_port());
        let outer = format!("--tunnel-protocol={}", protocol(outer));
        let to = "http://nowhere.invalid/";
        let report = load(&[to, "-n6", "-c2", &uri, &outer]);
        // Names of targets are the proxy's to look up.
        let findings = report.findings();
        assert_eq!(report.outcome("connect_refused"), 6, "{findings}");
        assert!(findings.contains("reach the proxy"), "{findings}");
    }

    let proxy = Proxy::start(Manner::Well, Http1, None);
    let uri = format!("--tunnel-uri=https://{}", proxy.address());
    let words = [
        "http://127.0.0.1:9/",
        "-n6",
        "-c2",
        "--tunnel-insecure",
        "--connect-timeout=1s",
        &uri,
    ];
    let report = load(&words);
    let failed = report.outcome("handshake_failed") + report.outcome("connect_timed_out");
    assert_eq!(failed, 6, "{:?}", report.outcomes());
    proxy.stop();
}

/// Its worker polled for space without pause and ignored stops.
#[test]
fn a_body_that_waited_for_room_when_a_proxy_ended_hung_the_load() {
    let served = Serving::start(&[]);
    for outer in [Http2, Http3] {
        let (proxy, through) = start(Manner::EndOpened, outer, false);
        // More than any window.
        let body = "--body=payload:json:4MiB";
        let mut words = vec![&*served.url, "-n3", "-c1", "--timeout=30s", body];
        words.extend(through.iter().map(String::as_str));
        let report = load(&words);
        assert_eq!(report.outcome("peer_closed"), 3, "{:?}", report.outcomes());
        assert!(proxy.stop().len() >= 3);
    }
    served.stop();
}

#[test]
fn a_certificate_of_a_proxy_is_checked_unless_that_is_not_wanted() {
    let served = Serving::start(&[]);
    let proxy = Proxy::start(Manner::Well, Http1, Some(over_tls(Http1)));
    let uri = format!("--tunnel-uri=https://{}", proxy.address());
    let report = load(&[&served.url, "-n4", "-c1", &uri]);
    assert_eq!(report.outcome("handshake_failed"), 4);
    assert!(
        report.findings().contains("connect to the proxy at"),
        "{}",
        report.findings()
    );
    // Advice named the flags for targets.
    let advice = "give the authority's file with --tunnel-ca, or skip verification with \
                  --tunnel-insecure";
    assert!(report.findings().contains(advice), "{}", report.findings());
    load(&[&served.url, "-n4", "-c1", &uri, "--tunnel-insecure"]).assert_all_well(4);
    assert_eq!(proxy.stop().len(), 1);

    let certificate = Certificate::new();
    let tls = known_tls(&certificate, Http1);
    let proxy = Proxy::start(Manner::Well, Http1, Some(tls));
    let uri = format!("--tunnel-uri=https://{}", proxy.address());
    let known = certificate.trusted().replace("--ca", "--tunnel-ca");
    load(&[&served.url, "-n4", "-c1", &uri, &known]).assert_all_well(4);
    assert_eq!(proxy.stop().len(), 1);
    served.stop();
}

#[test]
fn proxies_forward_only_known_users() {
    let served = Serving::start(&[]);
    for outer in ALL {
        let (proxy, through) = start(Manner::Well, outer, false);
        let header = "--tunnel-header=Proxy-Authorization: Basic b25l";
        let mut words = vec![&*served.url, "-n4", "-c1", header];
        words.extend(through.iter().map(String::as_str));
        load(&words).assert_all_well(4);
        let requested = proxy.stop().concat().to_lowercase();
        assert!(
            requested.contains("proxy-authorization") && requested.contains("basic b25l"),
            "{requested}"
        );
    }
    served.stop();
}

/// Programs of others; each connection is one CONNECT.
#[test]
fn proxies_of_others_lead_to_the_target() {
    let test = "proxies_of_others_lead_to_the_target";
    let (Some(tinyproxy), Some(nghttpx)) = (
        program_or_skip(test, "tinyproxy"),
        program_or_skip(test, "nghttpx"),
    ) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tinyproxy.conf");
    let (first, [port]) = start_on_free_ports(|[port]: [u16; 1]| {
        // Without ConnectPort, tinyproxy connects to any port.
        let text = format!(
            "Port {port}\nListen 127.0.0.1\nTimeout 60\nMaxClients 50\nAllow 127.0.0.1\n\
             LogLevel Connect\nBasicAuth one secret\n"
        );
        std::fs::write(&file, text).unwrap();
        Process::start(Command::new(&tinyproxy).arg("-d").arg("-c").arg(&file))
    });
    let (second, [before]) = start_on_free_ports(|[before]: [u16; 1]| {
        let mut command = Command::new(&nghttpx);
        command.args(["--http2-proxy", "--workers=1", "--conf=/dev/null"]);
        command.arg(format!("--frontend=127.0.0.1,{before};no-tls"));
        command.arg(format!("--backend=127.0.0.1,{port}"));
        Process::start(&mut command)
    });
    let certificate = Certificate::new();
    let (chain, key) = (
        format!(
            "--certificate={}",
            certificate.path("certificate.pem").display()
        ),
        format!("--key={}", certificate.path("key.pem").display()),
    );
    for arguments in [vec![], vec![chain.as_str(), &key]] {
        for (outer, port) in [("http1", port), ("http2", before)] {
            let served = Serving::start(&arguments);
            let uri = format!("--tunnel-uri=http://127.0.0.1:{port}");
            let outer = format!("--tunnel-protocol={outer}");
            let trusted = certificate.trusted();
            let mut words = vec![served.url.as_str(), "-n50", "-c2", &uri, &outer];
            words.extend((!arguments.is_empty()).then_some(trusted.as_str()));
            let report = load(&words);
            assert_eq!(
                report.outcome("connect_failed"),
                50,
                "{:?}",
                report.outcomes()
            );
            assert!(report.findings().contains("407"), "{}", report.findings());
            // What `one:secret` is in base 64.
            words.push("--tunnel-header=proxy-authorization:Basic b25lOnNlY3JldA==");
            load(&words).assert_all_well(50);
            assert_eq!(served.stop()["requests"], 50);
        }
    }
    for process in [second, first] {
        process.signal("TERM");
        let ended = process.finish(LONG);
        assert!(!ended.stderr.contains("panic"), "{}", ended.stderr);
    }
}
