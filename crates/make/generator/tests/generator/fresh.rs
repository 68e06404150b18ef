//! Requests whose blocks are built while others are sent.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use stillwell_generator::prepare;
use stillwell_http::h2::{BodyLength, H2ResponseBlock, Limits, Server, ServerEvent};
use stillwell_metric::GeneratorShard;
use stillwell_plan::generator::ExchangePlan;
use stillwell_plan::load::LoadProtocol;
use stillwell_plan::payload::{BlockShape, TraceAgentPlan};
use stillwell_plan::{GeneratorPlan, PayloadFormat, RatePlan, TransportPlan};
use stillwell_scope::{PartError, Token};
use stillwell_units::{ByteRate, ByteSize};

use crate::hec::{response, serve_one};
use crate::{Fixture, LONG, grpc, plan};

/// `plan` with a first set through which it goes several times, that set's blocks,
/// and how many requests are to come.
fn several_rounds(mut plan: GeneratorPlan) -> (GeneratorPlan, Vec<Vec<u8>>, usize) {
    plan.payload.cache = ByteSize::kib(128);
    // A trace is not to be cut.
    plan.payload.blocks = BlockShape::UpTo {
        maximum: ByteSize::kib(8),
    };
    plan.rate = RatePlan::bytes(ByteRate::try_new(1 << 20).unwrap());
    let prepared = prepare(&plan, None).unwrap();
    let set = prepared.sets().next().unwrap();
    let first = (0..set.len()).map(|block| set.block(block).bytes.to_vec());
    let first: Vec<Vec<u8>> = first.collect();
    let requests = 8 * first.len();
    (plan, first, requests)
}

/// Bodies repeat no more often than is counted, and some are not of the first set.
fn check(first: &[Vec<u8>], bodies: &[Vec<u8>], shards: &[Arc<GeneratorShard>]) {
    assert!(bodies.starts_with(first));
    let distinct: BTreeSet<&Vec<u8>> = bodies.iter().collect();
    let again = shards[0].blocks_again.total();
    assert!(
        (bodies.len() - distinct.len()) as u64 <= again,
        "{again} may repeat of {}",
        bodies.len()
    );
    // Something new has come even where the machine had little time to build it.
    assert!(distinct.len() > first.len());
    let bytes: usize = bodies.iter().map(Vec::len).sum();
    assert_eq!(shards[0].bytes.total(), bytes as u64);
}

/// The same over HTTP/1.1 for `transport`, which is given the server's URL.
fn check_http1(transport: impl FnOnce(String) -> TransportPlan, format: PayloadFormat) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let mut plan = plan(transport(url));
    plan.payload.format = format;
    let (plan, first, requests) = several_rounds(plan);
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let taken = Arc::clone(&bodies);
    let mut fixture = Fixture::start_fresh(&plan);
    let server = fixture.beside("server", move |stop| {
        serve_one(&listener, &[], |request| {
            let mut bodies = taken.lock().unwrap();
            bodies.push(request.body);
            if bodies.len() == requests {
                stop.cancel();
            }
            response(200, r#"{"text":"Success","code":0}"#)
        })
    });
    server.recv_timeout(LONG).unwrap();
    let shards = fixture.finish();
    check(&first, &bodies.lock().unwrap(), &shards);
}

#[test]
fn requests_of_http_do_not_walk_the_first_set_over_and_over() {
    let transport = |url| TransportPlan::Http {
        url,
        headers: Vec::new(),
        exchange: Box::default(),
    };
    check_http1(transport, PayloadFormat::Syslog5424);
}

#[test]
fn requests_of_a_payload_that_repeats_walk_the_first_set_over_and_over() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (mut plan, first, requests) = several_rounds(plan(TransportPlan::Http {
        url,
        headers: Vec::new(),
        exchange: Box::default(),
    }));
    plan.payload.repeats = true;
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let taken = Arc::clone(&bodies);
    let mut fixture = Fixture::start_fresh(&plan);
    let server = fixture.beside("server", move |stop| {
        serve_one(&listener, &[], |request| {
            let mut bodies = taken.lock().unwrap();
            bodies.push(request.body);
            if bodies.len() == requests {
                stop.cancel();
            }
            response(200, "")
        })
    });
    server.recv_timeout(LONG).unwrap();
    let shards = fixture.finish();
    let bodies = bodies.lock().unwrap();
    for (index, body) in bodies.iter().enumerate() {
        assert!(body == &first[index % first.len()], "body {index}");
    }
    assert_eq!(shards[0].blocks_again.total(), 0);
}

#[test]
fn requests_of_splunk_hec_do_not_walk_the_first_set_over_and_over() {
    let transport = |url| TransportPlan::SplunkHec {
        url,
        token: "abcd".to_owned(),
        acknowledgements: None,
    };
    check_http1(transport, PayloadFormat::Syslog5424);
}

#[test]
fn requests_of_trace_agent_do_not_walk_the_first_set_over_and_over() {
    let transport = |url| TransportPlan::TraceAgent { url, retries: 0 };
    let format = PayloadFormat::TraceAgent(TraceAgentPlan::default());
    check_http1(transport, format);
}

#[test]
fn calls_of_grpc_do_not_walk_the_first_set_over_and_over() {
    let (listener, plan) = grpc::grpc();
    let (plan, first, requests) = several_rounds(plan);
    let mut fixture = Fixture::start_fresh(&plan);
    let server = fixture.beside("server", move |stop| {
        grpc::serve(&listener, "0", requests, &stop)
    });
    let messages = server.recv_timeout(LONG).unwrap();
    let shards = fixture.finish();
    check(&first, &messages, &shards);
}

/// Answers what comes on one connection over HTTP/2, and stops the generator after
/// so many requests; gives their bodies.
fn serve_http2(
    listener: &TcpListener,
    requests: usize,
    stop: &Token,
) -> Result<Vec<Vec<u8>>, PartError> {
    let (mut peer, _) = listener.accept()?;
    peer.set_read_timeout(Some(LONG))?;
    let mut server = Server::new(Limits::default());
    let ok = H2ResponseBlock::new(200, &[])?;
    let (mut open, mut bodies) = (BTreeMap::<usize, Vec<u8>>::new(), Vec::new());
    let mut room = vec![0; 65_536];
    loop {
        peer.write_all(server.output())?;
        server.sent(server.output().len());
        let length = peer.read(&mut room).unwrap_or(0);
        if length == 0 {
            return Ok(bodies);
        }
        let mut input = &room[..length];
        while let (taken, Some(event)) = server.advance(input)? {
            input = &input[taken..];
            let ended = match event {
                ServerEvent::Body { stream, bytes } => {
                    open.entry(stream.slot()).or_default().extend(bytes);
                    None
                }
                ServerEvent::End { stream, .. } => Some(stream),
                _ => None,
            };
            if let Some(stream) = ended {
                bodies.extend(open.remove(&stream.slot()));
                server.respond(stream, &ok, BodyLength::None)?;
                if bodies.len() == requests {
                    stop.cancel();
                }
            }
        }
    }
}

#[test]
fn of_several_requests_at_once_each_has_the_block_that_was_taken_for_it() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let exchange = ExchangePlan {
        protocol: LoadProtocol::Http2,
        streams: 8,
        ..ExchangePlan::default()
    };
    let (plan, first, requests) = several_rounds(plan(TransportPlan::Http {
        url,
        headers: Vec::new(),
        exchange: Box::new(exchange),
    }));
    let mut fixture = Fixture::start_fresh(&plan);
    let server = fixture.beside("server", move |stop| {
        serve_http2(&listener, requests, &stop)
    });
    let bodies = server.recv_timeout(LONG).unwrap();
    let shards = fixture.finish();
    assert_eq!(shards[0].requests.total(), bodies.len() as u64);
    check(&first, &bodies, &shards);
}
