//! A relay that is killed in the middle, and the one that takes up what it left.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;

use stillwell_testkit::{LONG, Process, free_port, wait_until};

fn relay(port: u16, out: &str, folder: &Path, more: &[&str]) -> Process {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stillwell"));
    let input = format!("http://127.0.0.1:{port}/");
    command.args(["relay", "--in", &input, "--out", out, "--buffer-dir"]);
    command.arg(folder).args(more);
    let relay = Process::start(&mut command);
    let is_there = || TcpStream::connect(("127.0.0.1", port)).is_ok();
    assert!(wait_until(LONG, is_there), "{}", relay.stderr());
    relay
}

/// Posts lines with the numbers from `next` on; gives the answer's status, if one came.
fn post(stream: &mut TcpStream, next: u64) -> Option<u16> {
    let body: String = (next..next + 10)
        .map(|number| format!("{number}\n"))
        .collect();
    send(stream, "", &body)
}

/// Posts `body` with `headers`; gives the answer's status, if one came.
fn send(stream: &mut TcpStream, headers: &str, body: &str) -> Option<u16> {
    let head = format!(
        "POST / HTTP/1.1\r\nhost: x\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + body).as_bytes()).ok()?;
    let mut answer = Vec::new();
    let mut byte = [0];
    while !answer.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        answer.push(byte[0]);
    }
    String::from_utf8(answer)
        .ok()?
        .split(' ')
        .nth(1)?
        .parse()
        .ok()
}

/// Head and body of the next request.
fn next_request(stream: &mut BufReader<TcpStream>) -> (String, String) {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(stream.read_line(&mut head).unwrap() > 0, "{head}");
    }
    let mut lines = head.lines();
    let length = lines.find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.unwrap().parse().unwrap()];
    stream.read_exact(&mut body).unwrap();
    (head, String::from_utf8(body).unwrap())
}

/// The numbers in all lines that came whole.
fn whole_lines(mut stream: impl Read) -> Vec<u64> {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let lines = text.split_inclusive('\n');
    let whole = lines.filter_map(|line| line.strip_suffix('\n'));
    whole.map(|line| line.parse().unwrap()).collect()
}

#[test]
fn what_was_acknowledged_arrives_although_the_relay_is_killed_twice() {
    for fsync in ["never", "1", "64", "5ms"] {
        let folder = tempfile::tempdir().unwrap();
        let buffer = folder.path().join("buffer");
        // No program reads here yet: all stays in the buffer and in the kernel.
        let sink = TcpListener::bind("127.0.0.1:0").unwrap();
        let out = format!("tcp://{}", sink.local_addr().unwrap());
        let mut acknowledged = Vec::new();
        let mut next = 0;
        let mut arrived = BTreeSet::new();
        for _ in 0..2 {
            let port = free_port();
            let relay = relay(port, &out, &buffer, &["--fsync", fsync]);
            let (stream, _) = sink.accept().unwrap();
            let mut stream_in = TcpStream::connect(("127.0.0.1", port)).unwrap();
            for _ in 0..100 {
                assert_eq!(post(&mut stream_in, next), Some(200), "{}", relay.stderr());
                acknowledged.extend(next..next + 10);
                next += 10;
            }
            // What the relay has handed over by then it may forget.
            relay.signal("KILL");
            assert_ne!(relay.finish(LONG).code, 0);
            arrived.extend(whole_lines(stream));
        }
        let port = free_port();
        let relay = relay(port, &out, &buffer, &["--fsync", fsync]);
        let (stream, _) = sink.accept().unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        let mut stream = BufReader::new(stream);
        let mut missing: BTreeSet<u64> = acknowledged.iter().copied().collect();
        missing.retain(|number| !arrived.contains(number));
        let mut line = String::new();
        // A relay that is to end sends for a few seconds only.
        while !missing.is_empty() && stream.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
            let number: u64 = line.trim_end().parse().unwrap();
            missing.remove(&number);
            arrived.insert(number);
            line.clear();
        }
        relay.signal("TERM");
        arrived.extend(whole_lines(stream));
        let ended = relay.finish(LONG);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        assert!(ended.stderr.contains(" 0 events kept"), "{}", ended.stderr);
        assert!(arrived.len() as u64 <= next);
        let lost: Vec<&u64> = acknowledged
            .iter()
            .filter(|item| !arrived.contains(item))
            .collect();
        assert!(
            lost.is_empty(),
            "--fsync {fsync}: {} lost, {:?}",
            lost.len(),
            lost.first()
        );
    }
}

#[test]
fn untaken_events_are_kept_for_the_next_relay_and_a_torn_end_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let buffer = folder.path().join("buffer");
    // No program listens there until the second relay has begun.
    let out_port = free_port();
    let out = format!("tcp://127.0.0.1:{out_port}");
    let port = free_port();
    let first = relay(port, &out, &buffer, &["--fsync", "1"]);
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    for next in (0..100).step_by(10) {
        assert_eq!(post(&mut stream, next), Some(200));
    }
    first.signal("KILL");
    drop(first.finish(LONG));
    let mut segments: Vec<_> = fs::read_dir(&buffer)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    segments.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "segment")
    });
    segments.sort();
    let last = segments.pop().unwrap();
    let length = fs::metadata(&last).unwrap().len();
    fs::OpenOptions::new()
        .write(true)
        .open(&last)
        .unwrap()
        .set_len(length - 1)
        .unwrap();
    let sink = TcpListener::bind(("127.0.0.1", out_port)).unwrap();
    let second = relay(free_port(), &out, &buffer, &[]);
    let (stream, _) = sink.accept().unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    let mut rest = BufReader::new(stream).lines().map(Result::unwrap);
    // A relay that is to end sends for a few seconds only.
    let mut lines: Vec<String> = rest.by_ref().take(99).collect();
    second.signal("TERM");
    lines.extend(rest);
    let ended = second.finish(LONG);
    assert!(
        ended
            .stderr
            .contains("disk buffer: 99 events recovered, 9 bytes of incomplete events discarded, 0 events kept"),
        "{}",
        ended.stderr
    );
    assert_eq!(
        lines,
        (0..99).map(|number| number.to_string()).collect::<Vec<_>>()
    );
}

#[test]
fn bodies_that_a_killed_relay_left_keep_their_content_type_and_stay_apart() {
    for fsync in ["never", "1"] {
        let folder = tempfile::tempdir().unwrap();
        let buffer = folder.path().join("buffer");
        // No program listens there until the second relay begins.
        let out_port = free_port();
        let out = format!("http://127.0.0.1:{out_port}/");
        let port = free_port();
        let first = relay(port, &out, &buffer, &["--fsync", fsync]);
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let json = "content-type: application/json\r\n";
        let bodies = [r#"[{"a":1}]"#, r#"[{"a":2}]"#];
        for body in bodies {
            let status = send(&mut stream, json, body);
            assert_eq!(status, Some(200), "{}", first.stderr());
        }
        first.signal("KILL");
        drop(first.finish(LONG));
        let sink = TcpListener::bind(("127.0.0.1", out_port)).unwrap();
        let second = relay(free_port(), &out, &buffer, &[]);
        let (stream, _) = sink.accept().unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        let mut stream = BufReader::new(stream);
        for body in bodies {
            let (head, sent) = next_request(&mut stream);
            assert!(head.contains(json), "{head}");
            assert_eq!(sent, body);
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
            stream.get_mut().write_all(answer).unwrap();
        }
        second.signal("TERM");
        let ended = second.finish(LONG);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        assert!(ended.stderr.contains(" 0 events kept"), "{}", ended.stderr);
    }
}

#[test]
fn a_buffer_that_cannot_be_used_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let buffer = folder.path().join("buffer");
    let port = free_port();
    let _first = relay(port, "discard:", &buffer, &[]);
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    for (folder, more, code, expected) in [
        (&buffer, &[][..], 3, "is used by another relay"),
        (&file, &[], 3, "use the buffer in"),
        (&buffer, &["--buffer-bytes", "1 MiB"], 2, "at least 16 MiB"),
        (
            &buffer,
            &["--fsync", "sometimes"],
            2,
            "`never`, a number of events",
        ),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stillwell"));
        command.args(["relay", "--in", "tcp://127.0.0.1:0", "--buffer-dir"]);
        let ended = Process::start(command.arg(folder).args(more)).finish(LONG);
        assert_eq!(ended.code, code, "{}", ended.stderr);
        assert!(
            ended.stderr.contains(expected),
            "{expected}: {}",
            ended.stderr
        );
    }
}
