use std::io::{Read, Write};
use std::net::TcpStream;

use data_encoding::HEXLOWER;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use md5::{Digest as _, Md5};
use stillwell_http::Scheme;
use stillwell_http::grpc::{status, write_message};
use stillwell_http::h2::{BodyLength, Client, ClientEvent, H2RequestBlock, Limits, Stream};
use stillwell_metric::Value;
use stillwell_plan::SinkProtocol;
use stillwell_plan::generator::MessageLength;
use stillwell_plan::sink::{IntakeService, SeriesRecord};
use stillwell_scope::clock;
use stillwell_units::Nanos;

use crate::support::{Counts, RunningSink, anywhere, plan, read_all, run, run_bound};

pub(crate) fn intake(service: IntakeService) -> RunningSink {
    run(&plan(SinkProtocol::Intake {
        service,
        address: anywhere(),
        delay: Nanos::ZERO,
        connections_max: 8,
    }))
}

/// Sends `head` lines and `body` on a connection of its own; gives the status and
/// the body of the answer.
pub(crate) fn exchange(sink: &RunningSink, head: &str, body: &[u8]) -> (u16, String) {
    let answer = whole_answer(sink, head, body);
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    (status, body.to_owned())
}

/// The same; gives the head of the answer, too.
fn whole_answer(sink: &RunningSink, head: &str, body: &[u8]) -> String {
    let mut stream = TcpStream::connect(sink.address()).unwrap();
    let length = body.len();
    let head =
        format!("{head}\r\nhost: s\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    String::from_utf8(read_all(&mut stream)).unwrap()
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

// compat: lading, blackholes | splunk_hec | differs | acknowledges only what it has received
#[test]
fn splunk_events_are_counted_decoded_and_acknowledged() {
    let sink = intake(IntakeService::SplunkHec);
    let event = "POST /services/collector/event HTTP/1.1";
    let body = br#"{"event":"one"}{"event":"two"}"#;
    let taken = (200, r#"{"text":"Success","code":0,"ackId":0}"#.to_owned());
    assert_eq!(exchange(&sink, event, body), taken);
    let packed = gzip(body);
    let head = format!("{event}\r\ncontent-encoding: gzip");
    assert_eq!(exchange(&sink, &head, &packed).0, 200);
    assert_eq!(exchange(&sink, event, b"no event").0, 400);
    let question = br#"{"acks":[0,1,2]}"#;
    let acks = exchange(
        &sink,
        "POST /services/collector/ack?channel=a HTTP/1.1",
        question,
    );
    assert_eq!(
        acks,
        (200, r#"{"acks":{"0":true,"1":true,"2":false}}"#.to_owned())
    );
    let shards = sink.shards().to_vec();
    let bytes = (body.len() + packed.len() + 8 + question.len()) as u64;
    let expected = Counts {
        bytes,
        events: 4,
        messages: 4,
        connections: 4,
        errors: 0,
    };
    assert_eq!(sink.end(), expected);
    assert_eq!(shards[0].malformed.total(), 1);
    let decoded = (2 * body.len() + 8 + question.len()) as u64;
    assert_eq!(shards[0].decoded_bytes.total(), decoded);
}

#[test]
fn bodies_in_unknown_or_broken_codings_are_refused() {
    let sink = intake(IntakeService::SplunkHec);
    let raw = "POST /services/collector/raw HTTP/1.1\r\ncontent-encoding:";
    assert_eq!(exchange(&sink, &format!("{raw} br"), b"x").0, 415);
    assert_eq!(
        exchange(&sink, &format!("{raw} gzip"), b"not packed").0,
        400
    );
    let shards = sink.shards().to_vec();
    assert_eq!(sink.end().events, 0);
    assert_eq!(shards[0].malformed.total(), 2);
}

#[test]
fn pipelined_requests_are_answered_in_order_and_garbage_ends_the_connection() {
    let sink = intake(IntakeService::SplunkHec);
    let mut stream = TcpStream::connect(sink.address()).unwrap();
    let request =
        "POST /services/collector/raw HTTP/1.1\r\nhost: s\r\ncontent-length: 2\r\n\r\na\n";
    stream.write_all(request.repeat(3).as_bytes()).unwrap();
    stream.write_all(b"garbage\r\n\r\n").unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).unwrap();
    let acks: Vec<_> = answers
        .match_indices("ackId")
        .map(|(at, _)| &answers[at + 7..=at + 7])
        .collect();
    assert_eq!(acks, ["0", "1", "2"]);
    assert!(
        answers.ends_with(
            "HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
        ),
        "{answers}"
    );
    let counts = sink.end();
    assert_eq!((counts.messages, counts.events, counts.errors), (3, 3, 1));
}

/// A client of gRPC written by hand.
pub(crate) struct Caller {
    stream: TcpStream,
    client: Client,
}

impl Caller {
    pub(crate) fn of(sink: &RunningSink) -> Self {
        Self {
            stream: TcpStream::connect(sink.address()).unwrap(),
            client: Client::new(Limits::default()),
        }
    }

    fn begin(&mut self, method: &str, encoding: &str) -> Stream {
        self.begin_with(method, ("grpc-encoding", encoding))
    }

    /// Begins a call with this header besides its content type.
    pub(crate) fn begin_with(&mut self, method: &str, header: (&str, &str)) -> Stream {
        let headers = [("content-type", "application/grpc"), header];
        let head = H2RequestBlock::new("POST", Scheme::Http, "sink", method, &headers).unwrap();
        self.client.request(&head, BodyLength::Unknown).unwrap()
    }

    pub(crate) fn send(
        &mut self,
        stream: Stream,
        message: &[u8],
        is_compressed: bool,
        is_last: bool,
    ) {
        let mut framed = Vec::new();
        write_message(message, is_compressed, &mut framed).unwrap();
        let taken = self.client.send_body(stream, &framed, is_last).unwrap();
        assert_eq!(taken, framed.len());
    }

    /// Reads until `enough` bytes of answers have come or the call has ended; gives
    /// the bytes and the call's status.
    pub(crate) fn receive(&mut self, enough: usize) -> (Vec<u8>, Option<u32>) {
        let (mut body, mut room) = (Vec::new(), vec![0; 16 << 10]);
        loop {
            self.stream.write_all(self.client.output()).unwrap();
            self.client.sent(self.client.output().len());
            let length = self.stream.read(&mut room).unwrap();
            assert!(length > 0, "the sink has closed");
            let mut input = &room[..length];
            loop {
                let (taken, event) = self.client.advance(input).unwrap();
                input = &input[taken..];
                match event {
                    None => break,
                    Some(ClientEvent::Head { head, .. }) => assert_eq!(head.status, 200),
                    Some(ClientEvent::Body { bytes, .. }) => body.extend_from_slice(bytes),
                    Some(ClientEvent::End { trailers, .. }) => {
                        return (body, trailers.and_then(status));
                    }
                    Some(unexpected) => unreachable!("{unexpected:?}"),
                }
            }
            if body.len() >= enough {
                return (body, None);
            }
        }
    }
}

/// `fields` as a message of protobuf.
pub(crate) fn message(fields: &[(u8, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for (number, bytes) in fields {
        out.extend_from_slice(&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()]);
        out.extend_from_slice(bytes);
    }
    out
}

pub(crate) const LOGS: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";

/// An export of three log records.
fn export() -> Vec<u8> {
    let scope = message(&[(2, b""), (2, b"\x12\x00"), (2, b"")]);
    message(&[(1, &message(&[(2, &scope)]))])
}

// compat: lading, blackholes | otlp | works
#[test]
fn opentelemetry_is_taken_over_grpc_and_http_at_one_address() {
    let sink = intake(IntakeService::Otlp);
    let mut caller = Caller::of(&sink);
    for (encoding, bytes, is_compressed) in [
        ("identity", export(), false),
        ("gzip", gzip(&export()), true),
    ] {
        let stream = caller.begin(LOGS, encoding);
        caller.send(stream, &bytes, is_compressed, true);
        assert_eq!(caller.receive(usize::MAX), (vec![0; 5], Some(0)));
    }
    let stream = caller.begin("/none/Export", "identity");
    caller.send(stream, b"", false, true);
    assert_eq!(caller.receive(usize::MAX), (Vec::new(), Some(12)));
    let stream = caller.begin(LOGS, "identity");
    caller.send(stream, b"\xff", false, true);
    assert_eq!(caller.receive(usize::MAX).1, Some(3));
    let head = "POST /v1/logs HTTP/1.1\r\ncontent-type: application/x-protobuf";
    assert_eq!(exchange(&sink, head, &export()).0, 200);
    let packed = format!("{head}\r\ncontent-encoding: gzip");
    assert_eq!(exchange(&sink, &packed, &gzip(&export())).0, 200);
    drop(caller);
    let shards = sink.shards().to_vec();
    let counts = sink.end();
    assert_eq!((counts.events, counts.messages, counts.errors), (12, 6, 0));
    assert_eq!(shards[0].malformed.total(), 2);
}

fn snappy_block(bytes: &[u8]) -> Vec<u8> {
    snap::raw::Encoder::new().compress_vec(bytes).unwrap()
}

fn snappy_frames(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = snap::write::FrameEncoder::new(Vec::new());
    encoder.write_all(bytes).unwrap();
    encoder.into_inner().unwrap()
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn opentelemetry_is_taken_in_snappy_and_zlib() {
    let sink = intake(IntakeService::Otlp);
    let export = export();
    let (block, frames) = (snappy_block(&export), snappy_frames(&export));
    let mut caller = Caller::of(&sink);
    for bytes in [&block, &frames] {
        let stream = caller.begin(LOGS, "snappy");
        caller.send(stream, bytes, true, true);
        assert_eq!(caller.receive(usize::MAX), (vec![0; 5], Some(0)));
    }
    let stream = caller.begin(LOGS, "snappy");
    caller.send(stream, &export, true, true);
    assert_eq!(caller.receive(usize::MAX).1, Some(3));
    drop(caller);
    let head = "POST /v1/logs HTTP/1.1\r\ncontent-type: application/x-protobuf";
    for (coding, bytes) in [
        ("snappy", &block),
        ("snappy", &frames),
        ("x-snappy-framed", &frames),
        ("zlib", &zlib(&export)),
    ] {
        let head = format!("{head}\r\ncontent-encoding: {coding}");
        assert_eq!(exchange(&sink, &head, bytes).0, 200, "{coding}");
    }
    let shards = sink.shards().to_vec();
    assert_eq!(sink.end().events, 18);
    assert_eq!(shards[0].malformed.total(), 1);
}

#[test]
fn an_object_in_signed_chunks_is_read_without_them_and_its_tag_is_its_digest() {
    let sink = intake(IntakeService::S3);
    let put = "PUT /bucket/key HTTP/1.1";
    let signed = format!("{put}\r\nx-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD");
    let lines = &b"one\ntwo\nthree"[..];
    for (coding, stored) in [
        ("aws-chunked", lines.to_vec()),
        ("aws-chunked,gzip", gzip(lines)),
    ] {
        let head = format!("{signed}\r\ncontent-encoding: {coding}");
        let line = format!("{:x};chunk-signature=0a\r\n", stored.len());
        let end = &b"\r\n0;chunk-signature=0b\r\n\r\n"[..];
        let body = [line.as_bytes(), stored.as_slice(), end].concat();
        let answer = whole_answer(&sink, &head, &body);
        let digest = HEXLOWER.encode(&Md5::digest(&stored));
        let etag = format!("etag: \"{digest}\"\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert!(answer.contains(&etag), "{answer}");
    }
    // Without the framing that its head announces; plain.
    assert_eq!(exchange(&sink, &signed, lines).0, 400);
    assert_eq!(exchange(&sink, put, lines).0, 200);
    let shards = sink.shards().to_vec();
    assert_eq!(sink.end().events, 9);
    assert_eq!(shards[0].malformed.total(), 1);
}

// compat: lading, blackholes | datadog_stateful_logs | works
#[test]
fn each_batch_of_a_stream_has_its_status_before_the_stream_ends() {
    let sink = intake(IntakeService::DatadogStatefulLogs);
    let mut caller = Caller::of(&sink);
    let method = "/datadog.intake.stateful.StatefulLogsService/LogsStream";
    let stream = caller.begin(method, "identity");
    let datum = message(&[(5, b"\x08\x01")]);
    for batch in 1..=3 {
        let mut bytes = vec![0x08, batch];
        bytes.extend(message(&[(2, &message(&[(1, &datum), (1, &datum)]))]));
        caller.send(stream, &bytes, false, batch == 3);
        let expected = [0, 0, 0, 0, 4, 0x08, batch, 0x10, 1];
        let (body, status) = caller.receive(if batch < 3 {
            expected.len()
        } else {
            usize::MAX
        });
        assert_eq!(body, expected);
        assert_eq!(status, (batch == 3).then_some(0));
    }
    drop(caller);
    let counts = sink.end();
    assert_eq!((counts.messages, counts.events, counts.errors), (3, 6, 0));
}

#[test]
fn http2_is_answered_like_http1() {
    let sink = intake(IntakeService::Elasticsearch);
    let mut caller = Caller::of(&sink);
    let headers = [("content-type", "application/x-ndjson")];
    let head = H2RequestBlock::new("POST", Scheme::Http, "sink", "/_bulk", &headers).unwrap();
    let body = b"{\"index\":{}}\n{\"m\":1}\n";
    let length = BodyLength::Bytes(body.len() as u64);
    let stream = caller.client.request(&head, length).unwrap();
    caller.client.send_body(stream, body, true).unwrap();
    let (answer, _) = caller.receive(usize::MAX);
    let text = r#"{"took":0,"errors":false,"items":[{"index":{"status":201}}]}"#;
    assert_eq!(answer, text.as_bytes());
    drop(caller);
    assert_eq!(sink.end().events, 1);
}

#[test]
fn a_push_to_loki_in_snappy_is_read() {
    let sink = intake(IntakeService::Loki);
    let entry = message(&[(1, b"\x08\x05"), (2, b"a line")]);
    let stream = message(&[(1, b"{app=\"x\"}"), (2, &entry), (2, &entry)]);
    let push = message(&[(1, &stream), (1, &stream)]);
    let packed = snap::raw::Encoder::new().compress_vec(&push).unwrap();
    let head = "POST /loki/api/v1/push HTTP/1.1\r\ncontent-type: application/x-protobuf";
    assert_eq!(exchange(&sink, head, &packed).0, 204);
    // Some clients say how it is packed, too.
    let head_with_coding = format!("{head}\r\ncontent-encoding: snappy");
    assert_eq!(exchange(&sink, &head_with_coding, &packed).0, 204);
    // Neither is packed or is a push.
    assert_eq!(exchange(&sink, head, &push).0, 400);
    let no_push = snap::raw::Encoder::new().compress_vec(b"\xff").unwrap();
    assert_eq!(exchange(&sink, head, &no_push).0, 400);
    assert_eq!(exchange(&sink, "GET /ready HTTP/1.1", b"").0, 200);
    let shards = sink.shards().to_vec();
    assert_eq!(sink.end().events, 8);
    assert_eq!(shards[0].malformed.total(), 2);
    let decoded = 2 * push.len() + 1;
    assert_eq!(shards[0].decoded_bytes.total(), decoded as u64);
}

#[test]
fn answers_come_after_their_delay() {
    let delay = Nanos::from_millis(30);
    let sink = run(&plan(SinkProtocol::Intake {
        service: IntakeService::Loki,
        address: anywhere(),
        delay,
        connections_max: 8,
    }));
    let body = br#"{"streams":[{"stream":{},"values":[["1","a"]]}]}"#;
    let head = "POST /loki/api/v1/push HTTP/1.1\r\ncontent-type: application/json";
    let begin = clock::now();
    assert_eq!(exchange(&sink, head, body).0, 204);
    assert!(clock::now().since(begin) >= delay);
    assert_eq!(sink.end().events, 1);
}

// compat: lading, blackholes | tcp_rr | works
#[test]
fn requests_of_fixed_length_are_answered() {
    let sink = run(&plan(SinkProtocol::TcpRr {
        address: anywhere(),
        request_bytes: MessageLength::try_new(3).unwrap(),
        response_bytes: MessageLength::try_new(5).unwrap(),
    }));
    let mut stream = TcpStream::connect(sink.address()).unwrap();
    stream.write_all(b"onetwo").unwrap();
    stream.read_exact(&mut [0; 10]).unwrap();
    stream.write_all(b"th").unwrap();
    stream.write_all(b"r").unwrap();
    stream.read_exact(&mut [0; 5]).unwrap();
    drop(stream);
    let counts = sink.end();
    assert_eq!((counts.bytes, counts.messages, counts.errors), (9, 3, 0));
}

// compat: lading, blackholes | datadog | works
#[test]
fn series_that_come_in_are_recorded() {
    let record = SeriesRecord::Named(vec!["kept".to_owned()]);
    let bound = stillwell_sink::bind(&plan(SinkProtocol::Intake {
        service: IntakeService::Datadog { record },
        address: anywhere(),
        delay: Nanos::ZERO,
        connections_max: 8,
    }));
    let bound = bound.unwrap();
    let recorded = bound.recorded().unwrap();
    let sink = run_bound(bound);
    let point = [&[0x09][..], &2.0_f64.to_le_bytes(), &[0x10, 9]].concat();
    let series = |name: &[u8]| {
        let mut point_message = message(&[(2, name), (3, b"env:x"), (4, &point)]);
        point_message.extend_from_slice(&[0x28, 3]);
        point_message
    };
    let body = message(&[(1, &series(b"kept")), (1, &series(b"other"))]);
    let head = "POST /api/v2/series HTTP/1.1\r\ncontent-type: application/x-protobuf";
    assert_eq!(exchange(&sink, head, &body).0, 202);
    let mut samples = Vec::new();
    recorded.sample(&mut samples);
    let names: Vec<&str> = samples
        .iter()
        .map(|point_message| point_message.name.as_str())
        .collect();
    assert_eq!(names, ["target/kept"]);
    assert_eq!(samples[0].value, Value::Float(2.0));
    assert_eq!(sink.end().events, 2);
}
