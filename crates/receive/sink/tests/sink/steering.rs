//! Sinks that change while they run.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use stillwell_http::Scheme;
use stillwell_http::h2::{BodyLength, Client, ClientEvent, H2RequestBlock, Limits, Stream};
use stillwell_plan::step::{Refusal, RefusePlan, SinkChange};
use stillwell_plan::{SinkPlan, SinkProtocol};
use stillwell_sink::{SinkControl, bind};
use stillwell_testkit::LONG;
use stillwell_units::{ByteRate, Nanos, Seed};

use crate::support::{RunningSink, anywhere, exists, http, plan, run_bound};

fn steered(plan: &SinkPlan) -> (RunningSink, SinkControl) {
    let (sink, control) = bind(plan).unwrap().steered(&Seed::from_number(1));
    (run_bound(sink), control)
}

/// Looks again and again until it is so.
fn wait_until(what: &str, is_so: impl FnMut() -> bool) {
    let is_so = stillwell_testkit::wait_until(LONG, is_so);
    assert!(is_so, "{what}: not within {LONG:?}");
}

/// Sends a request on another thread.
#[expect(clippy::disallowed_methods, reason = "a test's own client")]
fn pending_exchange(address: SocketAddr) -> std::thread::JoinHandle<Option<String>> {
    std::thread::spawn(move || request(address))
}

/// Returns true once the peer has closed or reset `stream`.
fn is_closed(stream: &mut impl Read) -> bool {
    matches!(stream.read(&mut [0]), Ok(0) | Err(_))
}

#[test]
fn a_sink_that_is_down_refuses_and_cuts_and_comes_back_on_its_address() {
    for workers in [1, 3] {
        let plan = SinkPlan {
            workers: std::num::NonZeroU16::new(workers).unwrap(),
            ..plan(SinkProtocol::Tcp {
                address: anywhere(),
            })
        };
        let (sink, control) = steered(&plan);
        let address = sink.address();
        for _ in 0..3 {
            let mut before = TcpStream::connect(address).unwrap();
            before.write_all(b"one\n").unwrap();
            control.change(&SinkChange::Down);
            assert!(is_closed(&mut before));
            wait_until("refused", || TcpStream::connect(address).is_err());
            control.change(&SinkChange::Up);
            wait_until("accepted", || TcpStream::connect(address).is_ok());
        }
        // Down and up without a pause cuts all the same.
        let mut before = TcpStream::connect(address).unwrap();
        control.change(&SinkChange::Down);
        control.change(&SinkChange::Up);
        assert!(is_closed(&mut before));
        wait_until("accepted", || TcpStream::connect(address).is_ok());
        sink.end();
    }
}

/// A worker that was slow to come back shared the socket of before the second cut, and
/// the others waited for it for ever.
#[test]
fn cuts_that_follow_each_other_faster_than_workers_leave_no_old_socket() {
    let plan = SinkPlan {
        workers: 4.try_into().unwrap(),
        ..plan(SinkProtocol::Tcp {
            address: anywhere(),
        })
    };
    let (sink, control) = steered(&plan);
    for _ in 0..300 {
        let before = TcpStream::connect(sink.address());
        control.change(&SinkChange::Down);
        control.change(&SinkChange::Up);
        if let Ok(mut before) = before {
            before
                .set_read_timeout(Some(Duration::from_secs(20)))
                .unwrap();
            // Of a handshake that ends while the listener is closed the kernel may forget
            // its own side, and says so only to who sends something.
            drop(before.write(b"x"));
            let read = before.read(&mut [0]);
            let is_late = |error: &std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
            assert!(!read.is_err_and(|error| is_late(&error)), "not cut");
        }
    }
    wait_until("accepted", || TcpStream::connect(sink.address()).is_ok());
    sink.end();
}

#[test]
fn a_sink_that_is_down_when_it_is_to_end_ends() {
    let (sink, control) = steered(&plan(SinkProtocol::Tcp {
        address: anywhere(),
    }));
    let address = sink.address();
    control.change(&SinkChange::Down);
    wait_until("refused", || TcpStream::connect(address).is_err());
    sink.end();
}

#[test]
fn unix_sockets_and_datagrams_go_down_and_come_back_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sink.sock");
    let (sink, control) = steered(&plan(SinkProtocol::UnixStream { path: path.clone() }));
    control.change(&SinkChange::Down);
    wait_until("gone", || !exists(&path));
    control.change(&SinkChange::Up);
    wait_until("back", || UnixStream::connect(&path).is_ok());
    sink.end();
    assert!(!exists(&path));

    let (sink, control) = steered(&plan(SinkProtocol::Udp {
        address: anywhere(),
    }));
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(sink.address()).unwrap();
    control.change(&SinkChange::Down);
    wait_until("refused", || client.send(b"lost").is_err());
    control.change(&SinkChange::Up);
    wait_until("received", || {
        client.send(b"here").unwrap_or_default();
        sink.shards()[0].messages.total() > 0
    });
    sink.end();
}

#[test]
fn a_paused_sink_reads_nothing_until_it_is_resumed() {
    let (sink, control) = steered(&plan(SinkProtocol::Tcp {
        address: anywhere(),
    }));
    let mut stream = TcpStream::connect(sink.address()).unwrap();
    stream.write_all(b"one\n").unwrap();
    let bytes = || sink.shards()[0].bytes.total();
    wait_until("read", || bytes() == 4);
    control.change(&SinkChange::Pause);
    stream.write_all(b"two\n").unwrap();
    // A connection that comes later is read as little, and it shows that the worker
    // has looked at the pause.
    let mut later = TcpStream::connect(sink.address()).unwrap();
    later.write_all(b"three\n").unwrap();
    wait_until("accepted", || sink.shards()[0].connections.total() == 2);
    assert_eq!(bytes(), 4);
    control.change(&SinkChange::Resume);
    wait_until("read on", || bytes() == 14);
    sink.end();
}

#[test]
fn a_sink_that_ends_while_it_is_paused_does_not_count_what_it_never_read() {
    let (sink, control) = steered(&plan(SinkProtocol::Tcp {
        address: anywhere(),
    }));
    let mut stream = TcpStream::connect(sink.address()).unwrap();
    wait_until("accepted", || sink.shards()[0].connections.total() == 1);
    control.change(&SinkChange::Pause);
    stream.write_all(b"unread\n").unwrap();
    assert_eq!(sink.end().bytes, 0);
}

#[test]
fn a_limit_that_changes_lets_go_of_a_read_that_waits_for_the_old_one() {
    let (sink, control) = steered(&plan(SinkProtocol::Tcp {
        address: anywhere(),
    }));
    // At this rate half a kilobyte takes minutes.
    control.change(&SinkChange::Slow(ByteRate::try_new(1).unwrap()));
    let mut stream = TcpStream::connect(sink.address()).unwrap();
    stream.write_all(&[b'a'; 4096]).unwrap();
    let bytes = || sink.shards()[0].bytes.total();
    wait_until("the first read", || bytes() >= 512);
    control.change(&SinkChange::Restore);
    wait_until("the rest", || bytes() == 4096);
    sink.end();
}

/// One request on a connection of its own: the status, if there was an answer.
fn request(address: SocketAddr) -> Option<String> {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = "POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 4\r\n\r\none\n";
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.get(9..12).map(str::to_owned)
}

fn refuse(with: Refusal, per_million: u32) -> SinkChange {
    SinkChange::Refuse(RefusePlan { with, per_million })
}

#[test]
fn a_share_of_requests_is_refused_exactly_and_nothing_in_them_counts() {
    let (sink, control) = steered(&plan(http(Nanos::ZERO, 8)));
    let status = Refusal::Status {
        status: 429,
        retry_after: Some(7),
    };
    control.change(&refuse(status, 250_000));
    let got: Vec<Option<String>> = (0..20).map(|_| request(sink.address())).collect();
    let is = |text: &str| {
        got.iter()
            .flatten()
            .filter(|status| *status == text)
            .count()
    };
    assert_eq!((is("429"), is("200")), (5, 15), "{got:?}");
    control.change(&refuse(Refusal::Close, 1_000_000));
    assert_eq!(request(sink.address()), None);
    control.change(&SinkChange::Restore);
    assert_eq!(request(sink.address()).as_deref(), Some("200"));
    assert_eq!(sink.shards()[0].refused.total(), 6);
    let counts = sink.end();
    assert_eq!((counts.messages, counts.events), (22, 16));
}

#[test]
fn a_queueing_sink_answers_once_it_is_restored() {
    let (sink, control) = steered(&plan(http(Nanos::ZERO, 8)));
    control.change(&SinkChange::Queue);
    let address = sink.address();
    let pending_exchange = pending_exchange(address);
    wait_until("taken", || sink.shards()[0].messages.total() == 1);
    assert!(!pending_exchange.is_finished());
    control.change(&SinkChange::Restore);
    assert_eq!(pending_exchange.join().unwrap().as_deref(), Some("200"));
    assert_eq!(sink.end().events, 1);
}

#[test]
fn a_formula_delays_answers() {
    let (sink, control) = steered(&plan(http(Nanos::ZERO, 8)));
    control.change(&SinkChange::Delay("40 * active_requests".parse().unwrap()));
    let begun = stillwell_scope::clock::now();
    assert_eq!(request(sink.address()).as_deref(), Some("200"));
    assert!(stillwell_scope::clock::now().since(begun) >= Nanos::from_millis(40));
    sink.end();
}

fn intake() -> SinkProtocol {
    SinkProtocol::Intake {
        service: stillwell_plan::sink::IntakeService::S3,
        address: anywhere(),
        delay: Nanos::ZERO,
        connections_max: 8,
    }
}

/// The first request is to be answered in an hour, and the second at once.
#[test]
fn an_answer_over_http2_waited_for_a_slower_one_before_it() {
    let (sink, control) = steered(&plan(intake()));
    let formula = "3600000 * (2 - active_requests)";
    control.change(&SinkChange::Delay(formula.parse().unwrap()));
    let mut client = Client::new(Limits::default());
    let head = H2RequestBlock::new("PUT", Scheme::Http, "sink", "/bucket/key", &[]).unwrap();
    let mut exchange = || client.request(&head, BodyLength::None).unwrap();
    let (_slow, fast) = (exchange(), exchange());
    let mut stream = TcpStream::connect(sink.address()).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let mut input = [0; 4096];
    let ended = loop {
        stream.write_all(client.output()).unwrap();
        client.sent(client.output().len());
        let length = stream.read(&mut input).unwrap();
        assert!(length > 0, "the sink has closed");
        if let Some(ended) = first_end(&mut client, &input[..length]) {
            break ended;
        }
    };
    assert_eq!(ended, fast);
    drop(stream);
    sink.end();
}

/// The stream whose answer ends first in `input`.
fn first_end(client: &mut Client, mut input: &[u8]) -> Option<Stream> {
    loop {
        let (taken, event) = client.advance(input).unwrap();
        input = &input[taken..];
        match event {
            None => return None,
            Some(ClientEvent::End { stream, .. }) => return Some(stream),
            Some(_) => {}
        }
    }
}

#[test]
fn an_intake_refuses_queues_and_closes_as_a_plain_sink_does() {
    let (sink, control) = steered(&plan(intake()));
    let usual = request(sink.address());
    let status = Refusal::Status {
        status: 503,
        retry_after: None,
    };
    control.change(&refuse(status, 1_000_000));
    assert_eq!(request(sink.address()).as_deref(), Some("503"));
    control.change(&refuse(Refusal::Close, 1_000_000));
    assert_eq!(request(sink.address()), None);
    control.change(&SinkChange::Restore);
    control.change(&SinkChange::Queue);
    let address = sink.address();
    let pending_exchange = pending_exchange(address);
    wait_until("taken", || sink.shards()[0].messages.total() == 4);
    assert!(!pending_exchange.is_finished());
    control.change(&SinkChange::Restore);
    assert_eq!(pending_exchange.join().unwrap(), usual);
    assert_eq!(sink.shards()[0].refused.total(), 2);
    sink.end();
}

/// Connections of the tests below, with 1 MiB at most on each: at its end a sink has a
/// second for all of it.
const STREAMS: usize = 2;

/// Writes until both sides of the connection are full, or 1 MiB is written.
fn fill(stream: &mut TcpStream) -> u64 {
    stream.set_nonblocking(true).unwrap();
    let mut written = 0;
    while written < 1 << 20 {
        match stream.write(&[b'x'; 64 << 10]) {
            Ok(length) => written += length as u64,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                break;
            }
        }
    }
    written
}

/// Waits until it reads. Pauses between two looks would let it read all before its end.
fn wait_reading(sink: &RunningSink) {
    let until = stillwell_scope::clock::now() + Nanos::from(LONG);
    while sink.shards()[0].bytes.total() == 0 {
        assert!(stillwell_scope::clock::now() < until, "it does not read");
        std::thread::yield_now();
    }
}

#[test]
fn bytes_of_the_last_moment_of_a_target_count_though_it_has_ended() {
    let (sink, control) = steered(&plan(SinkProtocol::Tcp {
        address: anywhere(),
    }));
    control.change(&SinkChange::Pause);
    let streams = (0..STREAMS).map(|_| TcpStream::connect(sink.address()).unwrap());
    let mut streams: Vec<TcpStream> = streams.collect();
    let written: u64 = streams.iter_mut().map(fill).sum();
    // The written bytes are now at both ends, and no writer is left.
    drop(streams);
    control.change(&SinkChange::Resume);
    wait_reading(&sink);
    assert_eq!(sink.end().bytes, written);
}

#[test]
fn a_sink_that_is_steered_answers_what_came_before_its_end() {
    const REQUESTS: usize = 10;
    let (sink, control) = steered(&plan(http(Nanos::ZERO, 8)));
    control.change(&SinkChange::Pause);
    let body = [b'x'; 64 << 10];
    let head = format!("POST / HTTP/1.1\r\ncontent-length: {}\r\n\r\n", body.len());
    let request = [head.as_bytes(), &body].concat();
    let streams: Vec<TcpStream> = (0..STREAMS)
        .map(|_| {
            let mut stream = TcpStream::connect(sink.address()).unwrap();
            stream.write_all(&request.repeat(REQUESTS)).unwrap();
            stream
        })
        .collect();
    control.change(&SinkChange::Resume);
    wait_reading(&sink);
    let counts = sink.end();
    assert_eq!(counts.messages, (STREAMS * REQUESTS) as u64);
    drop(streams);
}
