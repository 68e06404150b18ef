use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use stillwell_units::ByteSize;

use crate::support::{
    TIMEOUT, collect, endpoint_of, finish, lines, listener, options, run, send_in_pieces,
};

const LOCAL: &str = "tcp://127.0.0.1:0";

#[test]
fn every_line_arrives_unchanged_and_in_order() {
    let collector = collect();
    let relay = run(options(LOCAL, &collector.endpoint));
    let sent = lines(100_000);
    let mut stream = relay.connect();
    send_in_pieces(&sent, 9000, &mut stream);
    finish(stream);
    let report = relay.end();
    assert_eq!(report.events_out, 100_000);
    assert_eq!(report.bytes_in, sent.len() as u64);
    assert_eq!(report.bytes_out, sent.len() as u64);
    assert!(report.buffer_events_max <= 4096);
    assert!(collector.all() == sent);
}

#[test]
fn a_last_line_without_an_end_gets_one_when_its_peer_closes() {
    let collector = collect();
    let relay = run(options(LOCAL, &collector.endpoint));
    let mut stream = relay.connect();
    stream.write_all(b"one\r\ntwo").unwrap();
    finish(stream);
    relay.end();
    assert_eq!(collector.all(), b"one\r\ntwo\n");
}

#[test]
fn what_has_arrived_when_a_relay_ends_is_sent_on() {
    let collector = collect();
    let relay = run(options(LOCAL, &collector.endpoint));
    let mut stream = relay.connect();
    let sent = lines(100);
    stream.write_all(&sent).unwrap();
    // Its connection may not even have been accepted.
    assert_eq!(relay.end().events_out, 100);
    assert!(collector.all() == sent);
}

#[test]
fn unix_streams_work_as_tcp_does() {
    let folder = tempfile::tempdir().unwrap();
    let (into, out) = (folder.path().join("in"), folder.path().join("out"));
    let listener = UnixListener::bind(&out).unwrap();
    let relay = run(options(
        &endpoint_of("unix", &into),
        &endpoint_of("unix", &out),
    ));
    let sent = lines(1000);
    let mut stream = UnixStream::connect(&into).unwrap();
    send_in_pieces(&sent, 300, &mut stream);
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    relay.stop();
    let mut received = Vec::new();
    listener
        .accept()
        .unwrap()
        .0
        .read_to_end(&mut received)
        .unwrap();
    assert_eq!(relay.end().events_out, 1000);
    assert!(received == sent);
    assert!(!into.exists());
}

#[test]
fn several_connections_share_the_buffer_and_keep_their_lines_whole() {
    let collector = collect();
    let mut options = options(LOCAL, &collector.endpoint);
    options.buffer_events = 3;
    let relay = run(options);
    let sent = lines(500);
    let mut streams: Vec<_> = (0..4).map(|_| relay.connect()).collect();
    for stream in &mut streams {
        send_in_pieces(&sent, 100, stream);
    }
    streams.into_iter().for_each(finish);
    let report = relay.end();
    assert_eq!(report.events_out, 2000);
    assert!(report.buffer_events_max <= 3);
    let received = collector.all();
    let mut received: Vec<&[u8]> = received.split(|byte| *byte == b'\n').collect();
    let all = sent.repeat(4);
    let mut expected: Vec<&[u8]> = all.split(|byte| *byte == b'\n').collect();
    received.sort_unstable();
    expected.sort_unstable();
    assert!(received == expected);
}

#[test]
fn a_slow_output_holds_its_senders_back() {
    let (listener, endpoint) = listener();
    let mut options = options(LOCAL, &endpoint);
    options.buffer_events = 100;
    let relay = run(options);
    let mut stream = relay.connect();
    stream
        .set_write_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    let (mut output, _) = listener.accept().unwrap();
    let line = [&[b'x'; 1023], b"\n".as_slice()].concat();
    let mut sent = 0_u64;
    let held_back = loop {
        match stream.write(&line[usize::try_from(sent % 1024).unwrap()..]) {
            Ok(length) => sent += length as u64,
            Err(error) => break error.kind(),
        }
        assert!(
            sent < 256 << 20,
            "nobody reads, and the relay takes everything"
        );
    };
    assert_eq!(held_back, ErrorKind::WouldBlock);
    drop(stream);
    relay.stop();
    let mut received = Vec::new();
    output.read_to_end(&mut received).unwrap();
    drop(output);
    let report = relay.end();
    assert!(report.buffer_events_max <= 100);
    assert_eq!(report.events_dropped, 0);
    assert!(received.len() as u64 >= report.bytes_out);
    assert!(
        received
            .chunks(1024)
            .all(|received| received == line || received.len() < 1024)
    );
}

#[test]
fn a_connection_that_breaks_is_made_again_and_begins_with_a_whole_line() {
    let (listener, endpoint) = listener();
    let relay = run(options(LOCAL, &endpoint));
    let mut stream = relay.connect();
    let sent = lines(50_000);
    let (mut first, _) = listener.accept().unwrap();
    send_in_pieces(&sent[..1000], 100, &mut stream);
    first.read_exact(&mut [0; 100]).unwrap();
    // Unread data is left: the relay's next write fails.
    drop(first);
    let mut scope = stillwell_scope::Scope::new(&stillwell_scope::Token::new());
    let rest = sent[1000..].to_vec();
    let send = move |_: &stillwell_scope::Token| {
        send_in_pieces(&rest, 5000, &mut stream);
        Ok(())
    };
    scope
        .thread(stillwell_scope::Place::default(), "sender", send)
        .unwrap();
    let (mut second, _) = listener.accept().unwrap();
    second.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut received = Vec::new();
    while !received.ends_with(&sent[sent.len() - 100..]) {
        let mut part = vec![0; 65_536];
        let length = second.read(&mut part).unwrap();
        received.extend_from_slice(&part[..length]);
    }
    assert!(sent.ends_with(&received));
    let before = &sent[..sent.len() - received.len()];
    assert!(before.is_empty() || before.ends_with(b"\n"));
    drop(second);
    assert_eq!(relay.end().events_in, 50_000);
}

/// The next events were written to the closed connection, and counted as sent.
#[test]
fn a_peer_that_closes_while_nothing_is_sent_loses_no_later_event() {
    let (listener, endpoint) = listener();
    let relay = run(options(LOCAL, &endpoint));
    let mut stream = relay.connect();
    for event in [b"1\n", b"2\n", b"3\n"] {
        stream.write_all(event).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        let mut received = [0; 2];
        peer.read_exact(&mut received).unwrap();
        assert_eq!(&received, event);
    }
    assert_eq!(relay.end().events_out, 3);
}

/// Both waited for ever once the kernel's buffers were full. At the end, the connection was reset, and the last events
/// were lost.
#[test]
fn a_peer_that_sends_events_back_gets_all_of_them() {
    let (listener, endpoint) = listener();
    let mut scope = stillwell_scope::Scope::new(&stillwell_scope::Token::new());
    let (sender, collected) = sync_channel(1);
    let echo = move |_: &stillwell_scope::Token| {
        let (mut peer, _) = listener.accept()?;
        let (mut all, mut part) = (Vec::new(), vec![0; 65_536]);
        loop {
            let length = peer.read(&mut part)?;
            if length == 0 {
                break;
            }
            peer.write_all(&part[..length])?;
            all.extend_from_slice(&part[..length]);
        }
        sender.send(all)?;
        Ok(())
    };
    scope
        .thread(stillwell_scope::Place::default(), "echo", echo)
        .unwrap();
    let relay = run(options(LOCAL, &endpoint));
    // More than the kernel holds in both directions.
    let sent = [&[b'x'; 1023], b"\n".as_slice()].concat().repeat(16 << 10);
    let mut stream = relay.connect();
    stream.write_all(&sent).unwrap();
    finish(stream);
    assert_eq!(relay.end().events_out, 16 << 10);
    assert!(collected.recv_timeout(TIMEOUT).unwrap() == sent);
}

#[test]
fn a_hoard_grows_with_the_events() {
    let mut options = options(LOCAL, "discard:");
    options.hoard_per_event = ByteSize::new(100);
    let relay = run(options);
    let mut stream = relay.connect();
    stream.write_all(&lines(5000)).unwrap();
    finish(stream);
    let report = relay.end();
    assert_eq!((report.events_out, report.hoard_bytes), (5000, 500_000));
}

#[test]
fn a_stall_delays_and_loses_nothing() {
    let collector = collect();
    let mut options = options(LOCAL, &collector.endpoint);
    options.stall = Some("5ms@10ms".parse().unwrap());
    options.work_per_event = "1000 rounds".parse().unwrap();
    let relay = run(options);
    let sent = lines(20_000);
    let mut stream = relay.connect();
    stream.write_all(&sent).unwrap();
    finish(stream);
    assert_eq!(relay.end().events_out, 20_000);
    assert!(collector.all() == sent);
}

#[test]
fn lines_are_written_at_the_end_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.log");
    std::fs::write(&path, "before\n").unwrap();
    let relay = run(options(LOCAL, &endpoint_of("file", &path)));
    let sent = lines(20_000);
    let mut stream = relay.connect();
    send_in_pieces(&sent, 9000, &mut stream);
    finish(stream);
    assert_eq!(relay.end().events_out, 20_000);
    let written = std::fs::read(&path).unwrap();
    assert!(written == [b"before\n".as_slice(), &sent].concat());
}
