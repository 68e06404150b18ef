//! Both ends report the same counts, with nginx, `HAProxy`, h2load and curl as the other
//! end.

#[path = "both_ends/ends.rs"]
pub(crate) mod ends;
#[path = "both_ends/haproxy.rs"]
mod haproxy;
#[path = "both_ends/http3.rs"]
mod http3;
#[path = "both_ends/nginx.rs"]
mod nginx;
#[path = "both_ends/recording.rs"]
mod recording;

use std::process::Command;

use stillwell_testkit::{Process, program_or_skip};

use ends::{LONG, Serving, load};

#[test]
fn a_body_longer_than_what_is_laid_out_ahead_is_sent_whole() {
    const BYTES: usize = 1 << 20;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("body");
    std::fs::write(&file, vec![b'b'; BYTES]).unwrap();
    let body = format!("--body=@{}", file.display());
    for (protocol, streams) in [("http1", "1"), ("http2", "1"), ("http2", "3")] {
        let server = Serving::start(&[]);
        let arguments = ["-n20", "-c2", "--timeout=60s"];
        let mut arguments = arguments.to_vec();
        arguments.extend([&server.url, &body, "--protocol", protocol]);
        arguments.extend(["--streams", streams]);
        load(&arguments).assert_all_well(20);
        let counts = server.stop();
        assert_eq!(counts["requests"], 20, "{protocol}");
        assert_eq!(counts["body_bytes"], 20 * BYTES, "{protocol}");
    }
}

/// Runs a foreign client and gives what it printed.
fn run(command: &mut Command) -> String {
    let ended = Process::start(command).finish(LONG);
    assert_eq!(ended.code, 0, "{command:?}: {}", ended.stderr);
    ended.stdout
}

#[test]
fn h2load_sees_as_many_answers_as_serve_gives() {
    let test = "h2load_sees_as_many_answers_as_serve_gives";
    let Some(h2load) = program_or_skip(test, "h2load") else {
        return;
    };
    for (tls, words) in [
        (None, "--h1 -n 1000 -c 4"),
        (None, "-n 2000 -c 4 -m 10"),
        (Some("--tls=self-signed"), "-n 2000 -c 4 -m 10"),
        (Some("--tls=self-signed"), "--h1 -n 500 -c 4"),
    ] {
        let server = Serving::start(tls.as_slice());
        let output = run(Command::new(&h2load)
            .args(words.split_whitespace())
            .arg(&server.url));
        let counts = server.stop();
        let requested: u64 = words
            .split_whitespace()
            .skip_while(|word| *word != "-n")
            .nth(1)
            .unwrap()
            .parse()
            .unwrap();
        let line = output.lines().find(|line| line.starts_with("requests:"));
        let expected = format!("{requested} done, {requested} succeeded, 0 failed");
        assert!(line.unwrap().contains(&expected), "{words}: {output}");
        assert_eq!(counts["requests"], requested, "{words}");
        assert_eq!(counts["statuses"]["200"], requested, "{words}");
        assert_eq!(counts["malformed"], 0, "{words}");
    }
}

#[test]
fn curl_uses_every_version_with_serve() {
    let Some(curl) = program_or_skip("curl_uses_every_version_with_serve", "curl") else {
        return;
    };
    for (tls, words, version) in [
        (None, "--http1.1", "1.1"),
        (None, "--http2-prior-knowledge", "2"),
        (Some("--tls=self-signed"), "-k --http1.1", "1.1"),
        (Some("--tls=self-signed"), "-k --http2", "2"),
        // A server that does not upgrade goes on with HTTP/1.1.
        (None, "--http2", "1.1"),
    ] {
        let mut arguments = vec!["--response-size=100KiB"];
        arguments.extend(tls);
        let server = Serving::start(&arguments);
        let body = "x".repeat(50_000);
        for _ in 0..2 {
            let output = run(Command::new(&curl)
                .args(["-sS", "-w", "%{http_version} %{http_code} %{size_download}"])
                .args(words.split_whitespace())
                .args(["-o", "/dev/null", "-d", &body, &server.url]));
            assert_eq!(output, format!("{version} 200 102400"), "{words}");
        }
        let counts = server.stop();
        assert_eq!(counts["requests"], 2, "{words}");
        assert_eq!(counts["body_bytes"], 100_000, "{words}");
        assert_eq!(counts["malformed"], 0, "{words}");
    }
}
