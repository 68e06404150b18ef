//! Stamped events, by any transport.

use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;

use stillwell_http::Scheme;
use stillwell_http::h2::{BodyLength, Client, H2RequestBlock, Limits};
use stillwell_metric::{Cell, Shard, catalogue};
use stillwell_plan::sink::IntakeService;
use stillwell_plan::stamp::StampForm;
use stillwell_plan::{SinkProtocol, StampPlan};
use stillwell_sink::{BoundSink, SharedLedger, StampedGenerator, StreamAccount, bind};
use stillwell_stamp::{HEADER, RunMark, STAMP_WIDTH, Span, Stamper, StreamId, Times};
use stillwell_units::{ByteSize, Moment, Nanos, RunId};

use crate::intake::{Caller, LOGS, exchange, message};
use crate::support::{RunningSink, anywhere, http, plan, read_all, run_bound};

const TEXT: &str = " some text of a message that is long enough";

/// One line with a stamp.
fn event(sequence: u64) -> Vec<u8> {
    let slot = token(sequence, TEXT.as_bytes());
    [b"<1>", &slot[..], TEXT.as_bytes(), b"\n"].concat()
}

/// A stamp that `behind` follows.
fn token(sequence: u64, behind: &[u8]) -> [u8; STAMP_WIDTH] {
    let mut slot = [0; STAMP_WIDTH];
    let stamper = Stamper::new(mark(), StreamId::new(0).unwrap());
    let times = Times::new(Moment::new(1_000), Moment::new(3_000));
    stamper.write(&mut slot, sequence, times, Span::of(behind));
    slot
}

fn events(sequences: &[u64]) -> Vec<u8> {
    sequences.iter().copied().flat_map(event).collect()
}

fn mark() -> RunMark {
    RunMark::of(&RunId::from_bytes([3; 16]))
}

/// A ledger of one stream of which `sent` events were sent.
fn ledger(sent: u64) -> Arc<SharedLedger> {
    ledger_of(StampForm::Text, sent)
}

fn ledger_of(form: StampForm, sent: u64) -> Arc<SharedLedger> {
    let plan = StampPlan {
        late_after: Some(Nanos::SECOND),
        form,
        ..StampPlan::ALL
    };
    ledger_with(plan, sent)
}

fn ledger_with(plan: StampPlan, sent: u64) -> Arc<SharedLedger> {
    let cells: Arc<[Cell]> = [Cell::default()].into();
    cells[0].set(sent);
    let generator = StampedGenerator {
        id: "g".to_owned(),
        plan,
        sent: cells,
    };
    Arc::new(SharedLedger::new(mark(), vec![generator], ByteSize::mib(1)).unwrap())
}

fn bound(protocol: SinkProtocol, ledger: &Arc<SharedLedger>) -> BoundSink {
    bind(&plan(protocol))
        .unwrap()
        .with_ledger(Arc::clone(ledger))
}

/// Lost, duplicated, reordered, damaged and intact.
fn totals(ledger: &SharedLedger) -> [u64; 5] {
    let accounts = ledger.accounts();
    let StreamAccount { figures, .. } = &accounts[0][0];
    [
        figures.lost.exactly().unwrap(),
        figures.duplicated.exactly().unwrap(),
        figures.reordered,
        figures.damaged,
        figures.intact,
    ]
}

#[test]
fn streams_are_searched_across_reads_and_connections() {
    let ledger = ledger(7);
    let sink = run_bound(bound(
        SinkProtocol::Tcp {
            address: anywhere(),
        },
        &ledger,
    ));
    for sequences in [[0, 1, 2], [4, 3, 4]] {
        let mut stream = TcpStream::connect(sink.address()).unwrap();
        stream.set_nodelay(true).unwrap();
        for piece in events(&sequences).chunks(37) {
            stream.write_all(piece).unwrap();
        }
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        read_all(&mut stream);
    }
    assert_eq!(sink.end().events, 6);
    // The order of arrival of two connections that are closed one after the other.
    assert_eq!(totals(&ledger), [2, 1, 1, 0, 6]);
    assert_eq!((ledger.missing(), ledger.outstanding()), (2, 2));
    let losses = &ledger.accounts()[0][0].losses;
    assert_eq!((losses.ranges[0].first, losses.ranges[0].last), (5, 6));
}

#[test]
fn an_event_is_outstanding_until_all_its_copies_have_arrived() {
    let plan = StampPlan {
        copies: 2,
        ..StampPlan::ALL
    };
    let ledger = ledger_with(plan, 3);
    let counts = [[0, 1], [0, 2], [1, 2]].map(|sequences| {
        let protocol = SinkProtocol::Tcp {
            address: anywhere(),
        };
        let sink = run_bound(bound(protocol, &ledger));
        let mut stream = TcpStream::connect(sink.address()).unwrap();
        stream.write_all(&events(&sequences)).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        read_all(&mut stream);
        sink.end();
        (ledger.missing(), ledger.outstanding())
    });
    assert_eq!(counts, [(1, 3), (0, 2), (0, 0)]);
}

#[test]
fn datagrams_and_bodies_are_searched_whole() {
    let ledger_udp = ledger(3);
    let sink = run_bound(bound(
        SinkProtocol::Udp {
            address: anywhere(),
        },
        &ledger_udp,
    ));
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for sequence in [0, 2] {
        let mut datagram = event(sequence);
        if sequence == 2 {
            datagram[3 + STAMP_WIDTH + 5] ^= 1;
        }
        socket.send_to(&datagram, sink.address()).unwrap();
    }
    let shards = sink.shards().to_vec();
    while shards[0].messages.total() < 2 {
        std::thread::yield_now();
    }
    sink.end();
    assert_eq!(totals(&ledger_udp), [1, 0, 0, 1, 1]);

    let ledger_http = ledger(4);
    let sink = run_bound(bound(http(Nanos::ZERO, 8), &ledger_http));
    let mut stream = TcpStream::connect(sink.address()).unwrap();
    for (sequences, connection) in [([0, 1], "keep-alive"), ([2, 1], "close")] {
        let body = events(&sequences);
        let head = format!(
            "POST / HTTP/1.1\r\nhost: a\r\nconnection: {connection}\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&body).unwrap();
    }
    read_all(&mut stream);
    sink.end();
    assert_eq!(totals(&ledger_http), [1, 1, 0, 0, 4]);
}

/// A request with `stamp` in its header, the last one of its connection or not.
fn request(stamp: &str, connection: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST / HTTP/1.1\r\nhost: a\r\nStillwell-Stamp: {stamp}\r\nconnection: {connection}\r\n\
         content-length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// Sends `request` without its last byte on a connection that ends there.
fn break_off(address: SocketAddr, request: &[u8]) {
    let mut cut = TcpStream::connect(address).unwrap();
    cut.write_all(&request[..request.len() - 1]).unwrap();
    cut.shutdown(std::net::Shutdown::Write).unwrap();
    read_all(&mut cut);
}

/// Whole requests count, each with the result of its body; those that break off do not,
/// nor does a header that is no stamp.
#[test]
fn the_stamps_of_whole_requests_are_entered() {
    let body = "a body of some length\n".repeat(400).into_bytes();
    let text = |sequence| String::from_utf8(token(sequence, &body).to_vec()).unwrap();
    let mut changed = body.clone();
    changed[4000] ^= 1;
    let ledger = ledger_of(StampForm::Header, 6);
    let sink = run_bound(bound(http(Nanos::ZERO, 8), &ledger));
    let mut stream = TcpStream::connect(sink.address()).unwrap();
    let all = [
        request(&text(0), "keep-alive", &body),
        request(&text(2), "keep-alive", &changed),
        request("no stamp at all", "keep-alive", &body),
        request(&text(1), "keep-alive", &body),
        request(&text(1), "close", &body),
    ];
    for piece in all.concat().chunks(777) {
        stream.write_all(piece).unwrap();
    }
    read_all(&mut stream);
    break_off(sink.address(), &request(&text(3), "close", &body));
    let counts = sink.end();
    assert_eq!((counts.messages, counts.errors), (5, 1));
    assert_eq!(totals(&ledger), [3, 1, 1, 1, 3]);
    assert_eq!(ledger.unattributed().0, 1);
}

/// A client whose request broke off sends it again, and each event counts once.
#[test]
fn stamps_in_the_text_of_a_request_count_once_it_is_whole() {
    let ledger = ledger(2);
    let sink = run_bound(bound(http(Nanos::ZERO, 8), &ledger));
    let body = [events(&[0, 1]), b"the end\n".to_vec()].concat();
    let request = request("none", "close", &body);
    break_off(sink.address(), &request);
    assert_eq!(totals(&ledger), [2, 0, 0, 0, 0]);
    let mut stream = TcpStream::connect(sink.address()).unwrap();
    stream.write_all(&request).unwrap();
    read_all(&mut stream);
    let counts = sink.end();
    assert_eq!((counts.messages, counts.errors), (1, 1));
    assert_eq!(totals(&ledger), [0, 0, 0, 0, 2]);
}

/// A body without an end must not fill the memory.
#[test]
fn beyond_65536_stamps_a_request_is_entered_before_its_end() {
    let sequences: Vec<u64> = (0..65_600).collect();
    let ledger = ledger(65_600);
    let sink = run_bound(bound(http(Nanos::ZERO, 8), &ledger));
    let body = [events(&sequences), b"the end\n".to_vec()].concat();
    break_off(sink.address(), &request("none", "close", &body));
    assert_eq!(sink.end().errors, 1);
    assert_eq!(totals(&ledger), [0, 0, 0, 0, 65_600]);
}

/// With stamps in the text, a header is none of the ledger's, in both versions of HTTP.
#[test]
fn headers_are_not_searched_where_stamps_are_in_the_text() {
    let stamp = String::from_utf8(token(1, b"").to_vec()).unwrap();
    let body = event(0);
    for is_http2 in [false, true] {
        let ledger = ledger(2);
        let sink = run_bound(bound(http(Nanos::ZERO, 8), &ledger));
        if is_http2 {
            post_http2(&sink, &[(HEADER, stamp.as_str())], &body);
        } else {
            let mut stream = TcpStream::connect(sink.address()).unwrap();
            stream.write_all(&request(&stamp, "close", &body)).unwrap();
            read_all(&mut stream);
        }
        sink.end();
        assert_eq!(totals(&ledger), [1, 0, 0, 0, 1], "HTTP/2: {is_http2}");
    }
}

/// A body that `wrap` makes of a text, and a header; one of them has the stamp. With stamps in the text, the one in the
/// header does not count.
fn stamped(
    form: StampForm,
    sequence: u64,
    wrap: impl Fn(&str) -> Vec<u8>,
) -> (Vec<u8>, (&'static str, String)) {
    let stamp = |behind: &[u8]| String::from_utf8(token(sequence, behind).to_vec()).unwrap();
    if form == StampForm::Header {
        let body = wrap(TEXT);
        let header = (HEADER, stamp(&body));
        return (body, header);
    }
    let text = stamp(TEXT.as_bytes()) + TEXT;
    let ignored = String::from_utf8(token(0, b"").to_vec()).unwrap();
    (wrap(&text), (HEADER, ignored))
}

fn run_intake(service: IntakeService, ledger: &Arc<SharedLedger>) -> RunningSink {
    let protocol = SinkProtocol::Intake {
        service,
        address: anywhere(),
        delay: Nanos::ZERO,
        connections_max: 8,
    };
    run_bound(bound(protocol, ledger))
}

/// A service keeps nothing of such a request.
#[test]
fn a_request_that_an_intake_refuses_has_not_arrived() {
    let push = |line: &str| {
        let push = format!(r#"{{"streams":[{{"stream":{{}},"values":[["1","{line}"]]}}]}}"#);
        push.into_bytes()
    };
    for form in [StampForm::Text, StampForm::Header] {
        let ledger = ledger_of(form, 2);
        let sink = run_intake(IntakeService::Loki, &ledger);
        for (sequence, path, status) in [(0, "/push", 404), (1, "/loki/api/v1/push", 204)] {
            let (body, (name, value)) = stamped(form, sequence, push);
            let head = format!("POST {path} HTTP/1.1\r\ncontent-type: application/json");
            let head = format!("{head}\r\n{name}: {value}");
            assert_eq!(exchange(&sink, &head, &body).0, status);
        }
        sink.end();
        assert_eq!(totals(&ledger), [1, 0, 0, 0, 1], "{form:?}");
    }
}

#[test]
fn a_call_that_an_intake_refuses_has_not_arrived() {
    let export = |text: &str| {
        let record = message(&[(3, text.as_bytes())]);
        message(&[(1, &message(&[(2, &message(&[(2, &record)]))]))])
    };
    for form in [StampForm::Text, StampForm::Header] {
        let ledger = ledger_of(form, 2);
        let sink = run_intake(IntakeService::Otlp, &ledger);
        let mut caller = Caller::of(&sink);
        for (sequence, method, status) in [(0, "/none/Export", 12), (1, LOGS, 0)] {
            let (body, (name, value)) = stamped(form, sequence, export);
            let stream = caller.begin_with(method, (name, value.as_str()));
            caller.send(stream, &body, false, true);
            assert_eq!(caller.receive(usize::MAX).1, Some(status));
        }
        drop(caller);
        sink.end();
        assert_eq!(totals(&ledger), [1, 0, 0, 0, 1], "{form:?}");
    }
}

/// Sends a request over HTTP/2 and waits until it is whole.
fn post_http2(sink: &RunningSink, headers: &[(&str, &str)], body: &[u8]) {
    let messages = &sink.shards()[0].messages;
    let before = messages.total();
    let mut client = Client::new(Limits::default());
    let head = H2RequestBlock::new("POST", Scheme::Http, "sink", "/", headers).unwrap();
    let length = BodyLength::Bytes(body.len() as u64);
    let request = client.request(&head, length).unwrap();
    client.send_body(request, body, true).unwrap();
    let mut stream = TcpStream::connect(sink.address()).unwrap();
    stream.write_all(client.output()).unwrap();
    while messages.total() == before {
        std::thread::yield_now();
    }
}

/// It is the same for all requests, in both versions of HTTP.
#[test]
fn a_configured_status_refuses_no_request() {
    let mut protocol = http(Nanos::ZERO, 8);
    if let SinkProtocol::Http { status, .. } = &mut protocol {
        *status = 503;
    }
    let ledger = ledger(2);
    let sink = run_bound(bound(protocol, &ledger));
    assert_eq!(exchange(&sink, "POST / HTTP/1.1", &event(0)).0, 503);
    post_http2(&sink, &[], &event(1));
    sink.end();
    assert_eq!(totals(&ledger), [0, 0, 0, 0, 2]);
}

/// The first value of its header counts.
#[test]
fn a_request_whose_body_cannot_be_decoded_has_arrived_in_both_versions_of_http() {
    let body = TEXT.as_bytes();
    for is_http2 in [false, true] {
        let ledger = ledger_of(StampForm::Header, 2);
        let sink = run_bound(bound(http(Nanos::ZERO, 8), &ledger));
        // The second one is no gzip.
        for (sequence, coding) in [(0, "br"), (1, "gzip")] {
            let stamp = String::from_utf8(token(sequence, body).to_vec()).unwrap();
            if is_http2 {
                let coding = ("content-encoding", coding);
                let headers = [coding, (HEADER, stamp.as_str()), (HEADER, "no stamp")];
                post_http2(&sink, &headers, body);
            } else {
                let head = format!("POST / HTTP/1.1\r\ncontent-encoding: {coding}");
                let head = format!("{head}\r\n{HEADER}: {stamp}\r\n{HEADER}: no stamp");
                assert_eq!(exchange(&sink, &head, body).0, 200);
            }
        }
        sink.end();
        assert_eq!(totals(&ledger), [0, 0, 0, 0, 1], "HTTP/2: {is_http2}");
        assert_eq!(ledger.unattributed().0, 0, "HTTP/2: {is_http2}");
    }
}

#[test]
fn a_file_is_followed_through_rotation_and_truncation() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.log");
    fs::write(&path, events(&[0])).unwrap();
    let ledger = ledger(7);
    let sink = run_bound(bound(SinkProtocol::File { path: path.clone() }, &ledger));
    let shards = sink.shards().to_vec();
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    let wait = |events: u64| {
        while shards[0].events.total() < events {
            std::thread::yield_now();
        }
    };
    // What was there before is not of this run.
    file.write_all(&events(&[1, 2])).unwrap();
    wait(2);
    fs::rename(&path, folder.path().join("out.log.1")).unwrap();
    file.write_all(&events(&[3])).unwrap();
    wait(3);
    fs::write(&path, events(&[4])).unwrap();
    wait(4);
    fs::File::create(&path).unwrap().write_all(b"x\n").unwrap();
    wait(5);
    fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .unwrap()
        .write_all(&events(&[5]))
        .unwrap();
    assert_eq!(sink.end().events, 6);
    // Number 0 was there before, and number 6 never came.
    assert_eq!(totals(&ledger), [2, 0, 0, 0, 5]);
}

#[test]
fn each_beat_shows_what_arrived_until_then() {
    let ledger = ledger(3);
    let sink = run_bound(bound(
        SinkProtocol::Tcp {
            address: anywhere(),
        },
        &ledger,
    ));
    let mut stream = TcpStream::connect(sink.address()).unwrap();
    stream.write_all(&events(&[0, 1, 1])).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    read_all(&mut stream);
    sink.end();
    let mut samples = Vec::new();
    ledger.sample(&mut samples);
    let whole = |metric: stillwell_metric::Metric| {
        let mut matching = samples.iter().filter(|sample| sample.name == metric.into());
        matching.next().and_then(|sample| sample.value.number())
    };
    assert_eq!(whole(catalogue::STAMPED_SENT), Some(3.0));
    assert_eq!(whole(catalogue::STAMPED_RECEIVED), Some(2.0));
    assert_eq!(whole(catalogue::EVENTS_MISSING), Some(1.0));
    assert_eq!(whole(catalogue::EVENTS_DUPLICATED), Some(1.0));
    assert_eq!(whole(catalogue::EVENTS_LATE), Some(2.0));
    let times = samples
        .iter()
        .filter(|sample| sample.name == catalogue::EVENT_LATENCY.into());
    assert_eq!(times.count(), 1);
    // A beat later there is nothing new.
    let (before, mut later) = (samples.len(), Vec::new());
    ledger.sample(&mut later);
    assert_eq!(later.len(), before - 2);
}
