use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use stillwell_metric::Outcome;
use stillwell_plan::payload::{BlockShape, TraceAgentPlan};
use stillwell_plan::stamp::StampForm;
use stillwell_plan::{GeneratorPlan, PayloadFormat, StampPlan, TransportPlan};
use stillwell_stamp::{HEADER, SpanCheck, StampMatch, match_header};
use stillwell_units::ByteSize;

use crate::hec::{response, serve_one};
use crate::{Fixture, LONG, plan};

const NAMES: [&str; 2] = ["content-type", "datadog-send-real-http-status"];

fn agent(retries: u32) -> (TcpListener, GeneratorPlan) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut plan = plan(TransportPlan::TraceAgent { url, retries });
    plan.payload.format = PayloadFormat::TraceAgent(TraceAgentPlan::default());
    plan.payload.blocks = BlockShape::UpTo {
        maximum: ByteSize::kib(64),
    };
    (listener, plan)
}

/// Answers 429 to the first two requests, 503 to the third and 200 to all later
/// ones; gives the bodies of the first `requests`.
fn run(retries: u32, requests: usize) -> (Vec<Vec<u8>>, [u64; 3], u64) {
    let (listener, plan) = agent(retries);
    let mut fixture = Fixture::start(&plan);
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let taken = Arc::clone(&bodies);
    let server = fixture.beside("server", move |stop| {
        serve_one(&listener, &NAMES, |request| {
            assert_eq!(request.line, "POST /v0.4/traces");
            assert_eq!(request.headers, ["application/msgpack", "true"]);
            let mut bodies = taken.lock().unwrap();
            bodies.push(request.body);
            if bodies.len() == requests {
                stop.cancel();
            }
            let status = [429, 429, 503].get(bodies.len() - 1);
            response(*status.unwrap_or(&200), "{}")
        })
    });
    server.recv_timeout(LONG).unwrap();
    let shards = fixture.finish();
    let count = |outcome: Outcome| shards[0].outcomes[outcome.index()].total();
    let outcomes = [Outcome::Ok, Outcome::Status4xx, Outcome::Status5xx].map(count);
    let bytes = shards[0].bytes.total();
    let bodies = std::mem::take(&mut *bodies.lock().unwrap());
    assert_eq!(
        bytes,
        bodies.iter().map(|body| body.len() as u64).sum::<u64>()
    );
    assert_eq!(shards[0].requests.total(), bodies.len() as u64);
    (bodies, outcomes, shards[0].sent_units.total())
}

// compat: lading, generators | trace_agent | works
#[test]
fn what_the_agent_has_no_time_for_is_sent_again() {
    let (bodies, outcomes, sent_units) = run(2, 5);
    // Twice again, and then given up.
    assert!(bodies[0] == bodies[1] && bodies[1] == bodies[2]);
    assert!(bodies[3] != bodies[2] && bodies[4] != bodies[3]);
    assert_eq!(outcomes[1..], [2, 1]);
    let scheduled = bodies[2..]
        .iter()
        .map(|body| body.len() as u64)
        .sum::<u64>();
    assert_eq!(sent_units, scheduled);
}

#[test]
fn without_retries_the_next_block_follows() {
    let (bodies, outcomes, _) = run(0, 4);
    assert!(bodies[0] != bodies[1]);
    assert_eq!(outcomes[1..], [2, 1]);
}

#[test]
fn what_is_sent_again_has_the_stamp_in_its_header_that_it_had() {
    let (listener, mut plan) = agent(2);
    plan.stamps = Some(StampPlan {
        form: StampForm::Header,
        ..StampPlan::ALL
    });
    let mut fixture = Fixture::start(&plan);
    let statuses = [429, 503, 200, 503, 200];
    let requests = Arc::new(Mutex::new(Vec::new()));
    let taken = Arc::clone(&requests);
    let server = fixture.beside("server", move |stop| {
        serve_one(&listener, &[HEADER], |request| {
            let mut requests = taken.lock().unwrap();
            requests.push((request.headers[0].clone(), request.body));
            if requests.len() == statuses.len() {
                stop.cancel();
            }
            response(*statuses.get(requests.len() - 1).unwrap_or(&200), "{}")
        })
    });
    server.recv_timeout(LONG).unwrap();
    fixture.finish();
    let mut sequences = Vec::new();
    for (header, body) in requests.lock().unwrap().iter().take(statuses.len()) {
        let matched = match_header(header.as_bytes(), body);
        let StampMatch::Stamp { stamp, span } = matched else {
            panic!("{matched:?}");
        };
        assert_eq!(span, SpanCheck::Intact);
        sequences.push(stamp.sequence);
    }
    assert_eq!(sequences, [0, 0, 0, 1, 1]);
}
