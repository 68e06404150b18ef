//! `stillwell serve`, and `nighthawk_test_server`.

#[path = "serve/flags.rs"]
mod flags;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::process::Command;

use stillwell_testkit::{Finished, LONG, Process, wait_until};

const STILLWELL: &str = env!("CARGO_BIN_EXE_stillwell");

/// Sends one request over plain HTTP and returns the whole answer.
fn exchange(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    stream.write_all(request).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// The address that `process` prints.
fn address(process: &Process) -> String {
    let mut result = None;
    wait_until(LONG, || {
        let output = process.stdout() + &process.stderr();
        result = output
            .split_once("http://")
            .and_then(|(_, rest)| rest.split_once('/'))
            .map(|(address, _)| address.to_owned());
        result.is_some()
    });
    result.unwrap()
}

fn serve(arguments: &[&str]) -> Process {
    Process::start(Command::new(STILLWELL).arg("serve").args(arguments))
}

fn assert_refused(ended: &Finished, code: i32, expected: &[&str]) {
    assert_eq!(ended.code, code, "{}", ended.stderr);
    for words in expected {
        assert!(ended.stderr.contains(words), "{words}:\n{}", ended.stderr);
    }
}

#[test]
fn requests_are_answered_and_counted_until_a_signal_comes() {
    for signal in ["INT", "TERM"] {
        let process = serve(&[
            "--address=127.0.0.1:0",
            "--response-size=4B",
            "--response-header=x-a: b",
            "--error=rand() < 0 ? 'close' : false",
            "--format=json",
        ]);
        let address = address(&process);
        for _ in 0..3 {
            let answer = exchange(&address);
            assert!(answer.contains("\r\nx-a: b\r\n"), "{answer}");
            assert!(answer.ends_with("\r\n\r\naaaa"), "{answer}");
        }
        process.signal(signal);
        let ended = process.finish(LONG);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let counts = ended.stdout.lines().nth(1).unwrap();
        let counts: serde_json::Value = serde_json::from_str(counts).unwrap();
        assert_eq!(counts["requests"], 3);
        assert_eq!(counts["statuses"]["200"], 3);
        assert_eq!(counts["abandoned"], 0);
    }
}

#[test]
fn counts_are_printed_for_people() {
    let process = serve(&["--address=127.0.0.1:0", "--error-rate=1"]);
    let answer = exchange(&address(&process));
    assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}");
    process.signal("INT");
    let ended = process.finish(LONG);
    let line = |name: &str| {
        let mut lines = ended.stdout.lines();
        let line = lines
            .find(|line| line.trim_start().starts_with(name))
            .unwrap();
        line.split_whitespace().last().unwrap().to_owned()
    };
    assert_eq!(
        (line("requests"), line("500")),
        ("1".to_owned(), "1".to_owned())
    );
}

#[test]
fn what_cannot_be_is_refused_with_what_to_do() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap().to_string();
    let ended = serve(&["--address", &taken]).finish(LONG);
    assert_refused(&ended, 3, &[&taken, "it is already in use"]);

    let ended = serve(&["--delay", "5 + activ"]).finish(LONG);
    assert_refused(
        &ended,
        2,
        &["--delay", "unknown name `activ`", "5 + activ\n      ^^^^^"],
    );
    let ended = serve(&["--error", "'closed'"]).finish(LONG);
    assert_refused(
        &ended,
        2,
        &["`closed` is not a fault", "close, reset, garbage"],
    );
    let ended = serve(&["--rate-limit=5/s", "--rate-limit-answer=nothing"]).finish(LONG);
    assert_refused(&ended, 2, &["queue or close"]);
    let ended = serve(&["--tls=self-signed", "--cipher-suite=AES128-SHA"]).finish(LONG);
    assert_refused(
        &ended,
        2,
        &[
            "unknown cipher suite `AES128-SHA`",
            "ECDHE-RSA-AES128-GCM-SHA256",
        ],
    );
}

const CONFIGURATION: &str = "
static_resources:
  listeners:
  - address: { socket_address: { address: 127.0.0.1, port_value: 0 } }
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          http_filters:
          - name: test-server
            typed_config:
              response_body_size: 10
              response_headers: [ { header: { key: x-nh, value: \"1\" } } ]
          - name: envoy.filters.http.router
";

#[test]
fn by_the_name_of_nighthawks_server_it_reads_its_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let (program, file) = (
        folder.path().join("nighthawk_test_server"),
        folder.path().join("server.yaml"),
    );
    symlink(STILLWELL, &program).unwrap();
    std::fs::write(&file, CONFIGURATION).unwrap();
    let process = Process::start(Command::new(&program).arg("-c").arg(&file));
    let address = address(&process);
    let answer = exchange(&address);
    // One with `connection: close` is longer by that line.
    assert_eq!(
        answer.len(),
        136 + "connection: close\r\n".len(),
        "{answer}"
    );
    process.signal("TERM");
    assert_eq!(process.finish(LONG).code, 0);

    std::fs::write(
        &file,
        CONFIGURATION.replace("http_filters", "retracing: {}\n          http_filters"),
    )
    .unwrap();
    let refused = Process::start(Command::new(&program).arg("--config-path").arg(&file));
    let ended = refused.finish(LONG);
    assert_refused(
        &ended,
        1,
        &[
            "unknown connection manager key `retracing`",
            "server.yaml:9:11",
        ],
    );
}
