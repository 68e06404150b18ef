//! No flag of `stillwell serve` without effect: each changes what is answered, or is
//! refused with what to do instead.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use super::{CONFIGURATION, LONG, Process, address, assert_refused, serve};
use crate::both_ends::ends::load;
use crate::load::flags::flags_of;

/// The answers of a server, and its counts.
struct Seen {
    answers: Vec<String>,
    counts: String,
    messages: String,
}

/// Two requests on one connection each; the second connection comes while the
/// first is open.
fn run(words: &[&str]) -> Seen {
    let process = serve(&[&["--address=127.0.0.1:0"], words].concat());
    let address = address(&process);
    let request = b"GET / HTTP/1.1\r\nhost: a\r\nx-own: b\r\nconnection: close\r\n\r\n";
    let answers = (0..2).map(|_| {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(request).unwrap();
        let mut bytes = Vec::new();
        // A reset is an end, too.
        drop(stream.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let answers = answers.collect();
    process.signal("INT");
    let ended = process.finish(LONG);
    assert_eq!(ended.code, 0, "{words:?}: {}", ended.stderr);
    Seen {
        answers,
        counts: ended.stdout,
        messages: ended.stderr,
    }
}

/// A flag, its words, and what only a server with them answers or counts.
type Effect = (&'static str, &'static [&'static str], fn(&Seen) -> bool);

const EFFECTS: &[Effect] = &[
    ("--status", &["--status=404"], |seen| {
        seen.answers[0].starts_with("HTTP/1.1 404 ")
    }),
    ("--response-size", &["--response-size=3B"], |seen| {
        seen.answers[0].ends_with("\r\n\r\naaa")
    }),
    ("--response-header", &["--response-header=x-a:b"], |seen| {
        seen.answers[0].contains("\r\nx-a: b\r\n")
    }),
    ("--echo", &["--echo"], |seen| {
        seen.answers[0].contains("x-own")
    }),
    ("--delta-header", &["--delta-header=x-delta"], |seen| {
        seen.answers[1].contains("\r\nx-delta: ")
    }),
    ("--error", &["--error=503"], |seen| {
        seen.answers[0].starts_with("HTTP/1.1 503 ")
    }),
    ("--error-rate", &["--error-rate=100%"], |seen| {
        seen.answers[0].starts_with("HTTP/1.1 500 ")
    }),
    ("--rate-limit", &["--rate-limit=1/m"], |seen| {
        seen.answers[1].starts_with("HTTP/1.1 429 ")
    }),
    (
        "--rate-limit-answer",
        &["--rate-limit=1/m", "--rate-limit-answer=418"],
        |seen| seen.answers[1].starts_with("HTTP/1.1 418 "),
    ),
    ("--log-requests", &["--log-requests"], |seen| {
        seen.messages.matches(" GET / HTTP/1 200\n").count() == 2
    }),
    ("--protocol", &["--protocol=http2"], |seen| {
        !seen.answers[0].starts_with("HTTP/1.1 200")
    }),
    ("--format", &["--format=json"], |seen| {
        seen.counts.contains("\"requests\":2")
    }),
];

/// Flags whose effect is shown where its surroundings are.
const ELSEWHERE: &[(&str, &str)] = &[
    ("--address", "every test"),
    (
        "--config",
        "serve/flags: beside_a_configuration_only_flags_that_it_does_not_replace_are_accepted",
    ),
    ("--workers", "sink/tests/sink/serve.rs"),
    (
        "--connections-max",
        "serve/flags: no_more_connections_are_served_than_may_be",
    ),
    (
        "--admin",
        "serve/flags: the_admin_interface_answers_head_without_a_body",
    ),
    (
        "--delay",
        "load/idle: as_many_requests_are_under_way_on_a_connection_as_may_be",
    ),
    (
        "--rate-limit-burst",
        "serve/flags: as_many_are_taken_at_once_as_may_be",
    ),
    ("--seed", "serve/flags: what_is_random_is_so_by_its_seed"),
    ("--tls", "nighthawk/tls"),
    (
        "--tls-name",
        "serve/flags: a_certificate_carries_the_names_that_are_given",
    ),
    ("--tls-certificate-out", "the same"),
    ("--certificate", "load/certificates"),
    ("--key", "load/certificates"),
    (
        "--client-ca",
        "load/certificates: both_sides_may_show_a_certificate",
    ),
    (
        "--no-session-resumption",
        "serve/flags: sessions_and_suites_are_those_that_are_let",
    ),
    ("--cipher-suite", "the same"),
    ("--color", "of all commands"),
    ("--help", "of all commands"),
    ("--help-all", "of all commands"),
    ("--keep-secrets", "of all commands"),
];

#[test]
fn every_flag_changes_what_is_answered() {
    let without = run(&[]);
    for (flag, words, shows) in EFFECTS {
        let with = run(words);
        assert!(
            !shows(&without),
            "{flag}, without it: {:?}",
            without.answers
        );
        let output = format!("{:?} {}", with.answers, with.counts);
        assert!(shows(&with), "{flag}, with it: {output}");
    }
}

#[test]
fn no_flag_is_without_a_test_of_its_effect() {
    let tested = EFFECTS.iter().map(|(flag, ..)| *flag);
    let tested = tested.chain(ELSEWHERE.iter().map(|(flag, _)| *flag));
    let tested: BTreeSet<String> = tested.map(str::to_owned).collect();
    assert_eq!(flags_of("serve"), tested);
}

const REFUSED: &[(&str, &str)] = &[
    ("--client-ca=x", "--tls <CERTIFICATE>|--certificate <FILE>"),
    (
        "--no-session-resumption",
        "--tls <CERTIFICATE>|--certificate <FILE>",
    ),
    (
        "--cipher-suite=x",
        "--tls <CERTIFICATE>|--certificate <FILE>",
    ),
    ("--tls-name=a", "--tls <CERTIFICATE>"),
    ("--tls-certificate-out=x", "--tls <CERTIFICATE>"),
    ("--certificate=x", "--key <FILE>"),
    ("--key=x", "--certificate <FILE>"),
    (
        "--certificate=x --key=y --tls=self-signed",
        "cannot be used with",
    ),
    (
        "--certificate=x --key=y --tls-name=a",
        "cannot be used with",
    ),
    ("--error=true --error-rate=1", "cannot be used with"),
    ("--rate-limit-burst=2", "--rate-limit <RATE>"),
    ("--rate-limit-answer=close", "--rate-limit <RATE>"),
    (
        "--status=204 --response-size=1B",
        "--response-size has no effect with --status 204",
    ),
    (
        "--status=304 --echo",
        "--echo has no effect with --status 304",
    ),
    ("--status=99", "99 is not in 200..600"),
    ("--error-rate=2", "a number from 0 to 1"),
    ("--error-rate=101%", "a percentage such as `1%`"),
    ("--response-size=5MiB", "at most 4 MiB"),
    ("--response-header=a", "write NAME:VALUE"),
    ("--address=localhost:1", "write IP:PORT"),
    ("--address=127.0.0.1:99999", "write IP:PORT"),
    ("--workers=0", "a whole number from 1"),
    ("--connections-max=0", "a whole number from 1"),
];

#[test]
fn what_would_have_no_effect_is_refused_with_what_to_do() {
    for (words, expected) in REFUSED {
        let ended = serve(&words.split_whitespace().collect::<Vec<_>>()).finish(LONG);
        assert_refused(&ended, 2, &[expected]);
    }
}

#[test]
fn beside_a_configuration_only_flags_that_it_does_not_replace_are_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("server.yaml");
    std::fs::write(&file, CONFIGURATION).unwrap();
    let config = format!("--config={}", file.display());
    let beside = [
        "--workers=2",
        "--connections-max=5",
        "--seed=2",
        "--format=json",
    ];
    let process = serve(&[[config.as_str()].as_slice(), &beside].concat());
    let answer = super::exchange(&address(&process));
    assert!(answer.contains("x-nh: 1"), "{answer}");
    process.signal("INT");
    assert_eq!(process.finish(LONG).code, 0);
    let known = [
        "--config",
        "--workers",
        "--connections-max",
        "--seed",
        "--log-requests",
        "--format",
    ];
    let common = ["--color", "--help", "--help-all", "--keep-secrets"];
    for flag in flags_of("serve") {
        if known.contains(&flag.as_str()) || common.contains(&flag.as_str()) {
            continue;
        }
        let value = match flag.as_str() {
            "--echo" | "--no-session-resumption" => flag.clone(),
            "--address" | "--admin" => format!("{flag}=127.0.0.1:0"),
            "--tls" => format!("{flag}=self-signed"),
            "--protocol" => format!("{flag}=http1"),
            "--response-header" => format!("{flag}=a:b"),
            "--response-size" => format!("{flag}=1B"),
            "--rate-limit" => format!("{flag}=1/s"),
            "--status" => format!("{flag}=200"),
            "--error-rate" => format!("{flag}=1"),
            _ => format!("{flag}=5"),
        };
        let ended = serve(&[&config, &value]).finish(LONG);
        assert_eq!(ended.code, 2, "{flag}: {}", ended.stderr);
    }
}

#[test]
fn no_more_connections_are_served_than_may_be() {
    let process = serve(&["--address=127.0.0.1:0", "--connections-max=1"]);
    let address = address(&process);
    let first = TcpStream::connect(&address).unwrap();
    let mut second = TcpStream::connect(&address).unwrap();
    let request = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    second.write_all(request).unwrap();
    let long_enough = std::time::Duration::from_millis(300);
    second.set_read_timeout(Some(long_enough)).unwrap();
    // The first one says nothing and is served: the second one waits for its end.
    let early = second.read(&mut [0; 1]).map_err(|error| error.kind());
    assert_eq!(early, Err(std::io::ErrorKind::WouldBlock));
    drop(first);
    second.set_read_timeout(None).unwrap();
    let mut text = String::new();
    second.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
}

#[test]
fn as_many_are_taken_at_once_as_may_be() {
    let cases: [(&[&str], u64); 3] = [
        (&["--rate-limit=1/m", "--rate-limit-burst=1"], 1),
        (&["--rate-limit=1/m", "--rate-limit-burst=4"], 4),
        // The default is the number of requests of one second.
        (&["--rate-limit=1/m"], 1),
    ];
    for (limit, ok) in cases {
        let process = serve(&[&["--address=127.0.0.1:0"], limit].concat());
        let url = format!("http://{}/", address(&process));
        let report = load(&[&url, "-n6", "-c1"]);
        assert_eq!(
            report.outcome("ok"),
            ok,
            "{limit:?}: {:?}",
            report.outcomes()
        );
    }
}

/// True for each of forty requests that fails.
fn failed(seed: &str) -> Vec<bool> {
    let random = ["--address=127.0.0.1:0", "--error-rate=0.5", "--seed", seed];
    let process = serve(&random);
    let address = address(&process);
    let exchange = |_| super::exchange(&address).starts_with("HTTP/1.1 500");
    (0..40).map(exchange).collect()
}

#[test]
fn what_is_random_is_so_by_its_seed() {
    assert_eq!(failed("7"), failed("7"));
    assert_ne!(failed("7"), failed("8"));
}

/// The TLS address that `process` prints.
fn secure_url(process: &Process) -> String {
    let mut result = None;
    stillwell_testkit::wait_until(LONG, || {
        let output = process.stdout() + &process.stderr();
        result = output
            .split_once("https://")
            .and_then(|(_, rest)| rest.split_once('/'))
            .map(|(address, _)| format!("https://{address}/"));
        result.is_some()
    });
    result.unwrap()
}

#[test]
fn a_certificate_carries_the_names_that_are_given() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made.pem").display().to_string();
    let process = serve(&[
        "--address=127.0.0.1:0",
        "--tls=self-signed",
        "--tls-name=the.name",
        "--tls-certificate-out",
        &file,
    ]);
    let url = secure_url(&process);
    let trusted = format!("--ca={file}");
    load(&[&url, &trusted, "--sni=the.name", "-n4", "-c2"]).assert_all_well(4);
    let second = load(&[&url, &trusted, "-n4", "-c2"]);
    assert_eq!(
        second.outcome("handshake_failed"),
        4,
        "{:?}",
        second.outcomes()
    );
    assert!(
        second.findings().contains("is for other names"),
        "{}",
        second.findings()
    );
}

#[test]
fn sessions_and_suites_are_those_that_are_let() {
    let suite = "TLS_CHACHA20_POLY1305_SHA256";
    let narrow = ["--no-session-resumption", "--cipher-suite", suite];
    for (words, is_resumed) in [([].as_slice(), true), (&narrow, false)] {
        let tls = [
            "--address=127.0.0.1:0",
            "--tls=self-signed",
            "--format=json",
        ];
        let process = serve(&[tls.as_slice(), words].concat());
        let url = secure_url(&process);
        let report = load(&[&url, "-k", "-n6", "-c1", "--max-requests-per-connection=1"]);
        report.assert_all_well(6);
        let counters = &report.value["global"]["counters"];
        let resumed = counters["ssl.session_reused"].as_u64().unwrap_or(0);
        assert_eq!(resumed > 0, is_resumed, "{words:?}");
        let of_suite = &counters[format!("ssl.ciphers.{suite}")];
        assert_eq!(of_suite.as_u64().is_some(), !is_resumed, "{counters}");
    }
}

#[test]
fn the_admin_interface_answers_head_without_a_body() {
    let words = [
        "--address=127.0.0.1:0",
        "--admin=127.0.0.1:0",
        "--format=json",
    ];
    let process = serve(&words);
    let mut admin = None;
    stillwell_testkit::wait_until(LONG, || {
        let output = process.stdout();
        let line: Option<serde_json::Value> = output
            .lines()
            .next()
            .and_then(|line| serde_json::from_str(line).ok());
        admin = line.and_then(|line| line["admin"].as_str().map(str::to_owned));
        admin.is_some()
    });
    let exchange = |words: &str| {
        let mut stream = TcpStream::connect(admin.as_ref().unwrap()).unwrap();
        let request = format!("{words} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    for path in ["/ready", "/help", "/nowhere"] {
        let (head, page) = (
            exchange(&format!("HEAD {path}")),
            exchange(&format!("GET {path}")),
        );
        assert!(head.ends_with("\r\n\r\n"), "{head}");
        assert!(page.starts_with(&head) && page.len() > head.len(), "{page}");
    }
    process.signal("INT");
    assert_eq!(process.finish(LONG).code, 0);
}

/// Failures of the host: files that cannot be written, and unavailable addresses.
#[test]
fn what_cannot_be_had_is_reported_before_anything_is_served() {
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = format!("--admin={}", holder.local_addr().unwrap());
    let here = "--address=127.0.0.1:0";
    for (words, expected) in [
        (vec![here, &taken], "it is already in use"),
        (vec!["--address=192.0.2.1:80"], "192.0.2.1:80"),
        (
            vec![here, "--tls=self-signed", "--tls-certificate-out=/dev/full"],
            "write /dev/full: No space left on device",
        ),
        (
            vec![
                here,
                "--tls=self-signed",
                "--tls-certificate-out=/nowhere/a",
            ],
            "write /nowhere/a",
        ),
    ] {
        assert_refused(&serve(&words).finish(LONG), 3, &[expected]);
    }
}
