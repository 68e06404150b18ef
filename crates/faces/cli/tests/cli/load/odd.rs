//! Mistakes of users, and failures of the host: each has a message that says what to do,
//! and the exit code of the help.

use std::net::TcpListener;
use std::process::Command;

use stillwell_testkit::{Finished, free_port, wait_until};

use super::{LONG, Process, STILLWELL, load};
use crate::both_ends::ends::{Report, Serving};

/// Words, the exit code, and what is said on either output.
const ODD: &[(&str, i32, &str)] = &[
    (
        "http://no-such-host.invalid/ -n1",
        3,
        "unknown host in no-such-host.invalid:80",
    ),
    ("http://a:0/ -n1", 2, "is not a number from 1 to 65535"),
    ("http://a:65536/ -n1", 2, "is not a number from 1 to 65535"),
    ("htp://a/ -n1", 2, "does not start with `http://`"),
    ("http:/a/ -n1", 2, "lacks `//` after its scheme"),
    ("http:// -n1", 2, "has no host"),
    ("http://[::1/ -n1", 2, "has no host"),
    ("http://::1/ -n1", 2, "http://[::1]:8080/"),
    ("http://[::1]:NOBODY/ -n1 -c1", 3, "connect to [::1]:"),
    (
        "http://127.0.0.1:NOBODY/ -n1 -c1",
        3,
        "connect to 127.0.0.1:",
    ),
    ("127.0.0.1:NOBODY -n1 -c1", 3, "connect to 127.0.0.1:"),
    ("http://a/x\u{a0}y -n1", 2, "write them as `%20`"),
    ("http://u:p@a/ -n1", 2, "give credentials as a header"),
    (
        "http://127.0.0.1:NOBODY/ -n1 -H a",
        2,
        "write `name: value`",
    ),
    (
        "http://127.0.0.1:NOBODY/ -n1 -H a(b):c",
        2,
        "`a(b)` is not a header name",
    ),
    (
        "http://127.0.0.1:NOBODY/ -n1 -X G(",
        2,
        "`G(` is not a method",
    ),
    (
        "http://127.0.0.1:NOBODY/ -n1 -H content-length:5",
        2,
        "content-length",
    ),
    (
        "http://127.0.0.1:NOBODY/ -n1 -H transfer-encoding:chunked",
        2,
        "transfer-encoding",
    ),
    (
        "http://127.0.0.1:NOBODY/ -n1 -b @/nowhere",
        2,
        "read /nowhere",
    ),
    (
        "http://127.0.0.1:NOBODY/ -n1 -b payload:jsn",
        2,
        "ascii, json",
    ),
    (
        "https://127.0.0.1:NOBODY/ -n1 --ca=/nowhere",
        2,
        "read /nowhere",
    ),
    (
        "https://127.0.0.1:NOBODY/ -n1 --ca=/etc/passwd",
        2,
        "holds no certificate",
    ),
    (
        "https://127.0.0.1:NOBODY/ -n1 --cipher-suite=AES128-SHA",
        2,
        "unknown cipher suite `AES128-SHA`",
    ),
    ("--requests-file=/nowhere -n1", 2, "read /nowhere"),
    (
        "--har=/etc/passwd -n1",
        2,
        "/etc/passwd: read the recording",
    ),
    (
        "http://127.0.0.1:NOBODY/ --stats-listen=80000",
        2,
        "write a port",
    ),
    (
        "http://127.0.0.1:NOBODY/ --stats-listen=TAKEN -n1",
        3,
        "already in use",
    ),
];

#[test]
fn mistakes_of_users_are_reported_with_their_exit_code() {
    let refused_url = free_port().to_string();
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap().port().to_string();
    for (words, code, expected) in ODD {
        let words = words
            .replace("NOBODY", &refused_url)
            .replace("TAKEN", &taken);
        let words = words.split(' ').map(|word| word.replace('\u{a0}', " "));
        let words: Vec<String> = words.collect();
        let ended = load(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let output = ended.stdout.clone() + &ended.stderr;
        assert_eq!(ended.code, *code, "{words:?}: {output}");
        assert!(output.contains(expected), "{words:?}: {output}");
    }
}

/// A header of 60 KB is sent unchanged; the server decides about it.
#[test]
fn a_huge_header_is_sent() {
    let huge = format!("x-huge: {}", "a".repeat(60_000));
    for protocol in ["http1", "http2"] {
        let server = Serving::start(&[]);
        let protocol = format!("--protocol={protocol}");
        let words = [server.url.as_str(), &protocol, "-n4", "-c2", "-H", &huge];
        let report = crate::both_ends::ends::load(&words);
        server.stop();
        assert_eq!(report.ended(), 4, "{protocol}: {:?}", report.outcomes());
        let bytes = report.value["global"]["counters"]["upstream_cx_tx_bytes_total"].as_u64();
        assert!(
            bytes.unwrap() > 60_000,
            "{protocol}: {:?}",
            report.outcomes()
        );
    }
}

/// Runs a load in a shell, where `$0` is our binary and `$@` are its words.
fn in_shell(line: &str, arguments: &[&str]) -> Finished {
    let mut command = Command::new("sh");
    command.args(["-c", line, STILLWELL, "load", "--quiet"]);
    Process::start(command.args(arguments)).finish(LONG)
}

/// A full disk behind standard output is reported, and is no success.
#[test]
fn a_full_disk_is_reported() {
    let server = Serving::start(&[]);
    for format in ["human", "stillwell", "csv"] {
        let format = format!("--output-format={format}");
        let words = [server.url.as_str(), "-n4", "-c2", &format];
        let ended = in_shell("exec \"$0\" \"$@\" >/dev/full", &words);
        assert_eq!(ended.code, 3, "{format}: {}", ended.stderr);
        assert!(
            ended.stderr.contains("No space left on device"),
            "{}",
            ended.stderr
        );
    }
    server.stop();
}

/// The reader has gone: nothing panics, and no message is printed.
#[test]
fn a_reader_that_has_gone_is_no_panic() {
    let server = Serving::start(&[]);
    for format in ["human", "stillwell"] {
        let format = format!("--output-format={format}");
        let words = [server.url.as_str(), "-n4", "-c2", &format];
        let line = "{ \"$0\" \"$@\"; echo \"exit $?\" >&2; } | true";
        let ended = in_shell(line, &words);
        assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
        assert!(ended.stderr.contains("exit "), "{}", ended.stderr);
    }
    server.stop();
}

/// A signal in the middle leaves a whole report and the exit of the signal.
#[test]
fn a_signal_in_the_middle_leaves_a_whole_report() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        for pace in ["--rate=50/s", "--rate=max"] {
            let server = Serving::start(&["--delay=5ms"]);
            let mut command = Command::new(STILLWELL);
            command.args(["load", &server.url, "-d60s", "-c2", pace]);
            let process = Process::start(command.arg("--output-format=stillwell"));
            // A line has latencies once something was answered.
            assert!(wait_until(LONG, || process.stderr().contains("p50")));
            process.signal(signal);
            let report = Report::of(process.finish(LONG));
            let seen = server.stop()["requests"].as_u64().unwrap();
            assert_eq!(report.ended.code, code, "{}", report.ended.stderr);
            assert!(
                seen > 0 && report.outcome("ok") == seen,
                "{:?}",
                report.outcomes()
            );
        }
    }
}

#[test]
fn responses_of_the_wrong_resource_have_a_hint() {
    for (status, hint) in [
        ("301", "redirects are not followed"),
        ("400", "if the server expects TLS"),
    ] {
        let (_server, url) = super::serve(&["--status", status]);
        let mut command = Command::new(STILLWELL);
        let ended = Process::start(command.args(["load", "-n4", "-c1", &url])).finish(LONG);
        assert!(ended.stderr.contains(hint), "{status}: {}", ended.stderr);
    }
    for status in ["200", "304"] {
        let (_server, url) = super::serve(&["--status", status]);
        let mut command = Command::new(STILLWELL);
        let ended = Process::start(command.args(["load", "-n4", "-c1", &url])).finish(LONG);
        assert!(!ended.stderr.contains("hint:"), "{}", ended.stderr);
    }
}
