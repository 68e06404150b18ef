//! A run that is wrong gives no verdict.

use crate::suite::{LONG, Suite, assert_code, assert_holds, is_disturbed_by_others};

const SHORT: &str = "{ready: 10s, warmup: 200ms, measure: 500ms, drain: 2s, quiet: 50ms}";

/// Asserts that `suite` is invalid because of `reason`.
#[track_caller]
fn assert_invalid(suite: &Suite, reason: &str) {
    let ended = suite.run(&[]).finish(LONG);
    assert_code(&ended, 4);
    assert_holds(&ended.stdout, &["1 invalid"]);
    // A disturbed host is the first reason.
    if ended.stdout.contains(reason) || !is_disturbed_by_others(reason, &ended) {
        assert_holds(&ended.stdout, &[reason]);
    }
    suite.assert_nothing_left();
}

#[test]
fn a_generator_that_cannot_keep_up_gives_no_verdict() {
    // A sender of datagrams has no backpressure, so only it can be the limit.
    let suite = Suite::datagrams().with("phases", SHORT);
    let suite = suite.with("rate", "50 GiB/s").with("goals", "[memory]");
    assert_invalid(&suite, "its workers were busy");
}

#[test]
fn a_throttled_generator_gives_no_verdict() {
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    if all < 2 {
        println!("SKIPPED: a_throttled_generator_gives_no_verdict: needs two CPUs");
        return;
    }
    let suite = Suite::alone()
        .with("phases", SHORT)
        .with("placement", "{ours: [0]}")
        // With its higher priority the others do not throttle it.
        .with("isolation", "{priority: no}")
        .with("rate", "max")
        .with("pairs", "1")
        .with("goals", "[ingress_throughput]");
    let burners: Vec<_> = (0..4).map(|_| Burner::on_cpu_0(&suite)).collect();
    // They take from the generator's CPU, and more of the host than is allowed. One pair shows
    // that; more would only disturb other tests for longer.
    assert_invalid(&suite, "discarded");
    drop(burners);
}

#[test]
fn a_saturated_sink_gives_no_verdict() {
    // Requests without end in one connection: to send a packed body again is far
    // less work than to unpack it.
    let flood = r#"
import gzip, os, socket, sys
body = gzip.compress(b"a" * 262143 + b"\n")
head = f"POST / HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n"
request = head.encode() + body
host, port = sys.argv[1].split(":")
peer = socket.create_connection((host, int(port)))
if os.fork():
    while True:
        peer.sendall(request * 64)
while peer.recv(1 << 20):
    pass
"#;
    let suite = Suite::into_http();
    let file = suite.file("flood.py", flood);
    let script = format!("python3 {} {} & exec \"$@\"", file.display(), suite.sink);
    let suite = suite.script(&script).with("phases", SHORT);
    let suite = suite.with("goals", "[egress_throughput]");
    assert_invalid(&suite, "sink saturated: ");
}

#[test]
fn a_goal_that_was_never_measured_gives_no_verdict() {
    let unreachable = "{prometheus: [{url: \"http://127.0.0.1:9/metrics\"}]}";
    let suite = Suite::new()
        .with("phases", SHORT)
        .with("observe", unreachable)
        .with(
            "goals",
            "[{series: target/queue_length, reduce: mean, better: lower}]",
        );
    assert_invalid(&suite, "it was not recorded");
}

/// A process that does nothing but use CPU 0.
struct Burner(std::process::Child);

impl Burner {
    fn on_cpu_0(suite: &Suite) -> Self {
        let mut command = suite.program("taskset");
        command.args(["-c", "0", "sh", "-c", "while :; do :; done"]);
        Self(command.spawn().unwrap())
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}
