//! Loads through a proxy that is asked by CONNECT: what is found is what is found
//! without, and each failure of the proxy ends each request once.

#[path = "tunnel/proxy.rs"]
pub(crate) mod proxy;

use std::process::Command;

use stillwell_plan::{Alpn, PemSource, ServerIdentity, ServerTlsPlan, TlsIdentity, TlsSuites};
use stillwell_testkit::{Process, free_port, program_or_skip};
use stillwell_wire::tls::ServerTls;

use crate::both_ends::ends::{
    Certificate, LONG, Report, Serving, load, start_load, start_on_free_ports,
};
use crate::faulty_peer::tls;
use proxy::{Manner, Proxy};

/// A proxy over TLS offers what it speaks.
fn over_tls(is_http2: bool) -> ServerTls {
    tls::server(&[if is_http2 { Alpn::Http2 } else { Alpn::Http1 }])
}

const fn protocol(is_http2: bool) -> &'static str {
    if is_http2 { "http2" } else { "http1" }
}

const BOTH: [bool; 2] = [false, true];

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
    for is_secure in BOTH {
        let mut arguments = Vec::new();
        if is_secure {
            arguments.extend(shown.iter().map(String::as_str));
        }
        for (outer, is_outer_secure) in [(false, false), (false, true), (true, false), (true, true)]
        {
            for inner in BOTH {
                let served = Serving::start(&arguments);
                let tls = is_outer_secure.then(|| over_tls(outer));
                let proxy = Proxy::start(Manner::Well, outer, tls);
                let scheme = if is_outer_secure { "https" } else { "http" };
                let uri = format!("--tunnel-uri={scheme}://{}", proxy.address());
                let outer_protocol = format!("--tunnel-protocol={}", protocol(outer));
                let inner_protocol = format!("--protocol={}", protocol(inner));
                let trusted = certificate.trusted();
                let mut words = vec![
                    served.url.as_str(),
                    "-n40",
                    "-c2",
                    &uri,
                    &outer_protocol,
                    &inner_protocol,
                ];
                words.extend(is_secure.then_some(trusted.as_str()));
                words.extend(is_outer_secure.then_some("--tunnel-insecure"));
                let report = load(&words);
                report.assert_all_well(40);
                let asked = proxy.stop();
                assert_eq!(asked.len(), 2, "{words:?}: {asked:?}");
                let head = format!("CONNECT {} ", served.address);
                assert!(asked.iter().all(|own| own.starts_with(&head)), "{asked:?}");
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
    for (outer, inner) in [(false, false), (true, false), (true, true)] {
        let proxy = Proxy::start(Manner::Well, outer, None);
        let uri = format!("--tunnel-uri=http://{}", proxy.address());
        let report = load(&[
            &served.url,
            "-n6",
            "-c2",
            "--body=payload:ascii:512KiB",
            &uri,
            &format!("--tunnel-protocol={}", protocol(outer)),
            &format!("--protocol={}", protocol(inner)),
        ]);
        report.assert_all_well(6);
        proxy.stop();
    }
    served.stop();
}

const CLOSED: &str = "-n12";
const OPEN: &str = "--rate=10/s --duration=1200ms";

/// What a proxy does, how requests end then, and what is said of it.
fn cases(is_http2: bool) -> Vec<(Manner, &'static [&'static str], &'static str)> {
    let failed: &[&str] = &["connect_failed"];
    let none = "not one";
    let garbage = if is_http2 { "no HTTP/2" } else { "no HTTP/1.1" };
    vec![
        (
            Manner::Status(407),
            failed,
            "with status 407: it wants credentials",
        ),
        (
            Manner::Status(403),
            failed,
            "with status 403: it does not let us there",
        ),
        (
            Manner::Status(502),
            failed,
            "with status 502: it does not get there",
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

fn failures(loop_words: &str, is_http2: bool) {
    let begun = cases(is_http2).into_iter().map(|case| {
        let proxy = Proxy::start(case.0, is_http2, None);
        // Nobody is ever asked there.
        let uri = format!("--tunnel-uri=http://{}", proxy.address());
        let to = format!("http://127.0.0.1:{}/", free_port());
        let peer = Serving::start(&[]);
        let to = match case.0 {
            Manner::CloseOpened | Manner::SwallowOpened => peer.url.clone(),
            _ => to,
        };
        let outer = format!("--tunnel-protocol={}", protocol(is_http2));
        let mut words = vec![to.as_str(), &uri, &outer, "-c3"];
        // Nobody waits in vain but for those two, however slow this host is.
        words.extend(match case.0 {
            Manner::Silent => ["--timeout=30s", "--connect-timeout=300ms"],
            Manner::SwallowOpened => ["--timeout=1s", "--connect-timeout=30s"],
            _ => ["--timeout=30s", "--connect-timeout=30s"],
        });
        words.extend(loop_words.split_whitespace());
        let process = start_load(&words);
        (case, proxy, peer, process)
    });
    let begun: Vec<_> = begun.collect();
    for ((manner, ends, says), proxy, peer, process) in begun {
        let report = Report::of(process.finish(LONG));
        proxy.stop();
        peer.stop();
        let outcomes = report.outcomes();
        let context = format!(
            "{manner:?} {loop_words}: {outcomes:?}\n{}",
            report.findings()
        );
        // What is on its way when time is up has its own end, too.
        let is_named = |name: &String| {
            ends.contains(&name.as_str()) || loop_words == OPEN && name == "unfinished"
        };
        assert!(outcomes.keys().all(is_named), "{context}");
        assert!(report.outcome(ends[0]) > 0, "{context}");
        assert!(report.findings().contains(says), "{context}");
        assert!(report.begun() <= report.ended(), "{context}");
        if loop_words == CLOSED {
            assert_eq!(report.ended(), 12, "{context}");
        } else {
            assert!((1..=13).contains(&report.ended()), "{context}");
        }
        assert!(matches!(report.ended.code, 3 | 4), "{context}");
    }
}

#[test]
fn every_failure_of_a_proxy_is_counted_once_in_a_closed_loop() {
    BOTH.into_iter().for_each(|it| failures(CLOSED, it));
}

#[test]
fn every_failure_of_a_proxy_is_counted_once_in_an_open_loop() {
    BOTH.into_iter().for_each(|it| failures(OPEN, it));
}

#[test]
fn a_proxy_that_is_not_there_is_refused_and_one_without_tls_no_handshake() {
    let uri = format!("--tunnel-uri=http://127.0.0.1:{}", free_port());
    let report = load(&["http://nowhere.invalid/", "-n6", "-c2", &uri]);
    // Names of targets are the proxy's to look up.
    assert_eq!(
        report.outcome("connect_refused"),
        6,
        "{}",
        report.findings()
    );
    assert!(
        report.findings().contains("reach the proxy"),
        "{}",
        report.findings()
    );

    let proxy = Proxy::start(Manner::Well, false, None);
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

/// Its worker asked for room over and over, and could not even be stopped.
#[test]
fn a_body_that_waited_for_room_when_a_proxy_ended_hung_the_load() {
    let served = Serving::start(&[]);
    let proxy = Proxy::start(Manner::EndOpened, true, None);
    let uri = format!("--tunnel-uri=http://{}", proxy.address());
    let report = load(&[
        &served.url,
        "-n3",
        "-c1",
        "--timeout=30s",
        "--body=payload:json:1MiB",
        &uri,
        "--tunnel-protocol=http2",
    ]);
    assert_eq!(report.outcome("peer_closed"), 3, "{:?}", report.outcomes());
    assert!(proxy.stop().len() >= 3);
    served.stop();
}

#[test]
fn a_certificate_of_a_proxy_is_checked_unless_that_is_not_wanted() {
    let served = Serving::start(&[]);
    let proxy = Proxy::start(Manner::Well, false, Some(over_tls(false)));
    let uri = format!("--tunnel-uri=https://{}", proxy.address());
    let report = load(&[&served.url, "-n4", "-c1", &uri]);
    assert_eq!(report.outcome("handshake_failed"), 4);
    assert!(
        report.findings().contains("TLS with the proxy"),
        "{}",
        report.findings()
    );
    // Advice named the flags for targets.
    let advice = "name the authority's file with --tunnel-ca, or go on unchecked with \
                  --tunnel-insecure";
    assert!(report.findings().contains(advice), "{}", report.findings());
    load(&[&served.url, "-n4", "-c1", &uri, "--tunnel-insecure"]).assert_all_well(4);
    assert_eq!(proxy.stop().len(), 1);

    let certificate = Certificate::new();
    let read = |name: &str| PemSource::File(certificate.path(name));
    let tls = ServerTls::new(&ServerTlsPlan {
        identity: ServerIdentity::Given(TlsIdentity {
            certificates: read("certificate.pem"),
            key: read("key.pem"),
        }),
        alpn: vec![Alpn::Http1],
        client_roots: Vec::new(),
        resumption: true,
        suites: TlsSuites::default(),
    });
    let proxy = Proxy::start(Manner::Well, false, Some(tls.unwrap()));
    let uri = format!("--tunnel-uri=https://{}", proxy.address());
    let known = certificate.trusted().replace("--ca", "--tunnel-ca");
    load(&[&served.url, "-n4", "-c1", &uri, &known]).assert_all_well(4);
    assert_eq!(proxy.stop().len(), 1);
    served.stop();
}

#[test]
fn proxies_lead_on_whom_they_know() {
    let served = Serving::start(&[]);
    for is_http2 in BOTH {
        let proxy = Proxy::start(Manner::Well, is_http2, None);
        let uri = format!("--tunnel-uri=http://{}", proxy.address());
        let outer = format!("--tunnel-protocol={}", protocol(is_http2));
        let header = "--tunnel-header=Proxy-Authorization: Basic b25l";
        load(&[&served.url, "-n4", "-c1", &uri, &outer, header]).assert_all_well(4);
        let asked = proxy.stop().concat().to_lowercase();
        assert!(
            asked.contains("proxy-authorization") && asked.contains("basic b25l"),
            "{asked}"
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
        // No ConnectPort: any port may be asked for.
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
