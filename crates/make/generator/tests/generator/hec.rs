use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use stillwell_http::{H1RequestEvent, RequestParser};
use stillwell_metric::Outcome;
use stillwell_plan::generator::HecAcknowledgements;
use stillwell_plan::payload::HecEncoding;
use stillwell_plan::{GeneratorPlan, PayloadFormat, RatePlan, RateShape, RateUnit, TransportPlan};
use stillwell_scope::PartError;
use stillwell_units::Nanos;

use crate::{Fixture, LONG, blocks, plan, wait_until};

/// A request as it came: method and target, headers of interest, body.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    pub(crate) line: String,
    pub(crate) headers: Vec<String>,
    pub(crate) body: Vec<u8>,
}

/// Takes the next connection and answers its requests by `answer` until the
/// client leaves.
pub(crate) fn serve_one(
    listener: &TcpListener,
    names: &[&str],
    mut answer: impl FnMut(Request) -> String,
) -> Result<(), PartError> {
    let (mut peer, _) = listener.accept()?;
    peer.set_read_timeout(Some(LONG))?;
    let mut parser = RequestParser::new();
    while let Some(request) = receive(&mut peer, &mut parser, names)? {
        let answer = answer(request);
        peer.write_all(answer.as_bytes())?;
    }
    Ok(())
}

/// A response with a body of JSON.
pub(crate) fn response(status: u16, body: &str) -> String {
    format!(
        "HTTP/1.1 {status} x\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// The next request; `None` where the client has left.
pub(crate) fn receive(
    peer: &mut TcpStream,
    parser: &mut RequestParser,
    names: &[&str],
) -> Result<Option<Request>, PartError> {
    let (mut request, mut room) = (Request::default(), vec![0; 65_536]);
    loop {
        let length = match peer.read(&mut room) {
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => 0,
            Err(error) => return Err(error.into()),
        };
        if length == 0 {
            return Ok(None);
        }
        let mut input = &room[..length];
        loop {
            let (consumed, event) = parser.advance(input)?;
            input = &input[consumed..];
            match event {
                Some(H1RequestEvent::Head(head)) => {
                    request.line = format!("{} {}", head.method, head.target);
                    let text = |name: &&str| {
                        let value = head.header(name).unwrap_or_default();
                        String::from_utf8_lossy(value).into_owned()
                    };
                    request.headers = names.iter().map(text).collect();
                }
                Some(H1RequestEvent::Body(part)) => request.body.extend_from_slice(part),
                Some(H1RequestEvent::End) => return Ok(Some(request)),
                None => break,
            }
        }
    }
}

fn hec(acknowledgements: Option<HecAcknowledgements>) -> (TcpListener, GeneratorPlan) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut plan = plan(TransportPlan::SplunkHec {
        url: format!("http://{address}/"),
        token: "abcd1234".to_owned(),
        acknowledgements,
    });
    plan.rate = RatePlan {
        unit: RateUnit::Blocks,
        shape: RateShape::Constant { per_second: 500.0 },
    };
    (listener, plan)
}

const NAMES: [&str; 2] = ["authorization", "x-splunk-request-channel"];

// compat: lading, generators | splunk_hec | works
// compat: lading, series | ack_ids_acked, ack_ids_dropped, ack_status_request_ok, ack_status_request_failure | works
// compat: lading, series | ack_request_timeout | differs | after 30 s; after 1 s there
#[test]
fn every_request_is_acknowledged_or_lost() {
    let (listener, mut plan) = hec(Some(HecAcknowledgements {
        every: Nanos::from_millis(20),
        timeout: Nanos::from_secs(4),
    }));
    plan.payload.format = PayloadFormat::SplunkHec {
        encoding: HecEncoding::Json,
    };
    let channels = Arc::new(Mutex::new(BTreeSet::new()));
    let sent = Arc::new(Mutex::new(0_u64));
    let mut fixture = Fixture::start(&plan);
    let server = |name: &str, fixture: &mut Fixture| {
        let (listener, channels) = (listener.try_clone().unwrap(), Arc::clone(&channels));
        let sent = Arc::clone(&sent);
        fixture.beside(name, move |_| {
            serve_one(&listener, &NAMES, |request| {
                assert_eq!(request.headers[0], "Splunk abcd1234");
                channels.lock().unwrap().insert(request.headers[1].clone());
                let mut sent = sent.lock().unwrap();
                let channel = &request.headers[1];
                if request.line == "POST /services/collector/event" {
                    *sent += 1;
                    let ack = *sent - 1;
                    return response(
                        200,
                        &format!(r#"{{"text":"Success","code":0,"ackId":{ack}}}"#),
                    );
                }
                let path = format!("POST /services/collector/ack?channel={channel}");
                assert_eq!(request.line, path);
                response(200, &acknowledge(&request.body))
            })
        })
    };
    let first = server("first", &mut fixture);
    let second = server("second", &mut fixture);
    let lost = |fixture: &Fixture| fixture.total(|shard| &shard.acks_lost);
    wait_until(|| fixture.total(|shard| &shard.acks_received) >= 50 && lost(&fixture) >= 3);
    fixture.stop.cancel();
    first.recv_timeout(LONG).unwrap();
    second.recv_timeout(LONG).unwrap();
    let shards = fixture.finish();
    let sent = *sent.lock().unwrap();
    let kept = (0..sent).filter(|id| id % 10 != 9).count() as u64;
    assert_eq!(shards[0].outcomes[Outcome::Ok.index()].total(), sent);
    assert_eq!(shards[0].acks_received.total(), kept);
    let unkept = shards[0].acks_lost.total() + shards[0].acks_pending.total();
    assert_eq!(unkept, sent - kept);
    assert!(shards[0].ack_questions_ok.total() > 1);
    assert_eq!(shards[0].ack_questions_failed.total(), 0);
    assert_eq!(shards[0].ack_questions_late.total(), 0);
    assert_eq!(shards[0].requests_max.total(), 1);
    assert_eq!(channels.lock().unwrap().len(), 1);
}

/// The requests that a collector received on any channel.
#[derive(Default)]
struct Collector {
    events: u64,
    questions: u64,
}

impl Collector {
    fn answer(&mut self, request: &Request, acknowledge: fn(&[u8]) -> String) -> String {
        if request.line.starts_with("POST /services/collector/ack?") {
            self.questions += 1;
            return response(200, &acknowledge(&request.body));
        }
        self.events += 1;
        let ack = self.events - 1;
        response(
            200,
            &format!(r#"{{"text":"Success","code":0,"ackId":{ack}}}"#),
        )
    }
}

/// Sends at full speed to a collector until it has this number of events; the generator
/// queries for the first time once all are sent. Returns the collector and the counts of
/// acknowledged, lost and pending ones.
fn poll_at_the_end(events: u64, acknowledge: fn(&[u8]) -> String) -> (Collector, [u64; 3]) {
    let (listener, mut plan) = hec(Some(HecAcknowledgements {
        every: Nanos::from_secs(60),
        timeout: Nanos::from_secs(60),
    }));
    plan.rate = RatePlan::MAX;
    plan.payload.blocks = stillwell_plan::payload::BlockShape::UpTo {
        maximum: stillwell_units::ByteSize::new(256),
    };
    let collector = Arc::new(Mutex::new(Collector::default()));
    let mut fixture = Fixture::start(&plan);
    let answers = ["first", "second"].map(|name| {
        let (listener, collector) = (listener.try_clone().unwrap(), Arc::clone(&collector));
        fixture.beside(name, move |stop| {
            serve_one(&listener, &NAMES, |request| {
                let mut collector = collector.lock().unwrap();
                let answer = collector.answer(&request, acknowledge);
                if collector.events >= events {
                    stop.cancel();
                }
                answer
            })
        })
    });
    for answer in answers {
        answer.recv_timeout(LONG).unwrap();
    }
    let shards = fixture.finish();
    let shard = &shards[0];
    let counts = [&shard.acks_received, &shard.acks_lost, &shard.acks_pending];
    let collector = std::mem::take(&mut *collector.lock().unwrap());
    (collector, counts.map(stillwell_metric::Cell::total))
}

#[test]
fn above_400_requests_a_second_every_acknowledgement_is_requested() {
    let all = |question: &[u8]| acknowledge(question).replace("false", "true");
    let (collector, counts) = poll_at_the_end(9000, all);
    assert!(collector.events > 2 * 4096);
    assert!(collector.questions >= 3, "one question holds 4096");
    assert_eq!(counts, [collector.events, 0, 0]);
}

#[test]
fn what_is_pending_at_the_end_is_counted() {
    let (collector, counts) = poll_at_the_end(100, acknowledge);
    let kept = (0..collector.events).filter(|id| id % 10 != 9).count() as u64;
    assert!(
        collector.questions > 1,
        "asked again until there is no time"
    );
    assert_eq!(counts, [kept, 0, collector.events - kept]);
}

/// Every tenth is never acknowledged.
fn acknowledge(question: &[u8]) -> String {
    let text = std::str::from_utf8(question).unwrap();
    let ids = text.strip_prefix(r#"{"acks":["#).unwrap();
    let ids = ids.strip_suffix("]}").unwrap().split(',');
    let answers = ids.map(|id| format!("\"{id}\":{}", !id.ends_with('9')));
    let answers: Vec<String> = answers.collect();
    format!("{{\"acks\":{{{}}}}}", answers.join(","))
}

#[test]
fn without_acknowledgements_lines_go_to_the_raw_path_without_questions() {
    let (listener, plan) = hec(None);
    let mut fixture = Fixture::start(&plan);
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let taken = Arc::clone(&bodies);
    let server = fixture.beside("server", move |stop| {
        serve_one(&listener, &NAMES, |request| {
            assert_eq!(request.line, "POST /services/collector/raw");
            let mut bodies = taken.lock().unwrap();
            bodies.push(request.body);
            if bodies.len() == 30 {
                stop.cancel();
            }
            response(200, r#"{"text":"Success","code":0}"#)
        })
    });
    server.recv_timeout(LONG).unwrap();
    let shards = fixture.finish();
    let (set, bodies) = (blocks(&plan, 0), bodies.lock().unwrap());
    for (index, body) in bodies.iter().enumerate() {
        assert!(body == set.block(index % set.len()).bytes, "{index}");
    }
    assert!(bodies.len() >= 30);
    assert_eq!(shards[0].requests.total(), bodies.len() as u64);
    assert_eq!(shards[0].acks_lost.total(), 0);
}
