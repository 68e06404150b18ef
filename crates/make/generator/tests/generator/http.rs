use std::io::Write;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::Receiver;

use stillwell_http::RequestParser;
use stillwell_metric::{Outcome, Shard, Value, catalogue, decode_histogram};
use stillwell_plan::generator::ExchangePlan;
use stillwell_plan::{GeneratorPlan, RatePlan, RateShape, RateUnit, TransportPlan};
use stillwell_scope::{PartError, Token};
use stillwell_units::Nanos;

use crate::hec::receive;
use crate::{Fixture, LONG, blocks, plan, wait_until};

const REQUESTS: usize = 200;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

fn http() -> (TcpListener, GeneratorPlan) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let plan = plan(TransportPlan::Http {
        url: format!("http://{address}/in?a=b"),
        headers: vec![("x-one".to_owned(), "two".to_owned())],
        exchange: Box::default(),
    });
    (listener, plan)
}

/// Answers every request with `answer`, on one connection after the other, and
/// stops the generator after so many; returns the bodies. With `close` every
/// answer is a connection's last.
fn serve(
    listener: &TcpListener,
    answer: &[u8],
    close: bool,
    requests: usize,
    stop: &Token,
) -> Result<Vec<Vec<u8>>, PartError> {
    let mut bodies = Vec::new();
    while !stop.is_cancelled() {
        let (mut peer, _) = listener.accept()?;
        peer.set_read_timeout(Some(LONG))?;
        let mut parser = RequestParser::new();
        while let Some(body) = read_request(&mut peer, &mut parser)? {
            bodies.push(body);
            if bodies.len() == requests {
                stop.cancel();
            }
            peer.write_all(answer)?;
            if close {
                break;
            }
        }
    }
    Ok(bodies)
}

/// One request's body; `None` where the client has left.
fn read_request(
    peer: &mut TcpStream,
    parser: &mut RequestParser,
) -> Result<Option<Vec<u8>>, PartError> {
    let Some(request) = receive(peer, parser, &["x-one"])? else {
        return Ok(None);
    };
    let is_ours = request.line == "POST /in?a=b" && request.headers == ["two"];
    assert!(is_ours, "{} {:?}", request.line, request.headers);
    Ok(Some(request.body))
}

fn served(
    fixture: &mut Fixture,
    listener: TcpListener,
    answer: &'static [u8],
    close: bool,
) -> Vec<Vec<u8>> {
    let bodies: Receiver<Vec<Vec<u8>>> = fixture.beside("server", move |stop| {
        serve(&listener, answer, close, REQUESTS, &stop)
    });
    bodies.recv_timeout(LONG).unwrap()
}

// compat: lading, generators | http | works
#[test]
fn every_body_is_a_block_in_order_and_every_answer_is_counted() {
    let (listener, plan) = http();
    let mut fixture = Fixture::start(&plan);
    let bodies = served(&mut fixture, listener, OK, false);
    let shards = fixture.finish();
    let set = blocks(&plan, 0);
    for (index, body) in bodies.iter().enumerate() {
        assert!(body == set.block(index % set.len()).bytes, "{index}");
    }
    let requests = bodies.len() as u64;
    assert!(requests >= REQUESTS as u64);
    let bytes: usize = bodies.iter().map(Vec::len).sum();
    assert_eq!(shards[0].bytes.total(), bytes as u64);
    assert_eq!(shards[0].blocks.total(), requests);
    assert_eq!(shards[0].requests.total(), requests);
    assert_eq!(shards[0].connections.total(), 1);
    assert_eq!(shards[0].outcomes[Outcome::Ok.index()].total(), requests);
    let mut samples = Vec::new();
    shards[0].sample(&mut samples);
    for metric in [catalogue::RESPONSE_TIME, catalogue::SERVICE_TIME] {
        let sample = samples.iter().find(|sample| sample.name == metric.into());
        let Some(Value::Histogram(bytes)) = sample.map(|sample| &sample.value) else {
            panic!("no {}", metric.name);
        };
        assert_eq!(decode_histogram(bytes).unwrap().len(), requests);
    }
}

#[test]
fn answers_are_distinguished() {
    let cases: [(&'static [u8], bool, Outcome); 8] = [
        (
            b"HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n",
            false,
            Outcome::Status4xx,
        ),
        (
            b"HTTP/1.1 500 No\r\ntransfer-encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n",
            false,
            Outcome::Status5xx,
        ),
        (
            b"HTTP/1.1 302 No\r\ncontent-length: 0\r\n\r\n",
            false,
            Outcome::Status3xx,
        ),
        (
            b"HTTP/1.1 100 Go on\r\n\r\nHTTP/1.1 204 No\r\n\r\n",
            false,
            Outcome::Ok,
        ),
        (
            b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
            true,
            Outcome::Ok,
        ),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", true, Outcome::Ok),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok",
            true,
            Outcome::PeerClosed,
        ),
        (
            b"\x16\x03\x01 this is not it\r\n\r\n",
            true,
            Outcome::Malformed,
        ),
    ];
    for (answer, close, outcome) in cases {
        let (listener, plan) = http();
        let address = listener.local_addr().unwrap();
        let mut fixture = Fixture::start(&plan);
        let many = fixture.beside("server", move |stop| {
            serve(&listener, answer, close, usize::MAX, &stop)
        });
        wait_until(|| fixture.outcomes(outcome) >= 3);
        let all: u64 = Outcome::ALL
            .into_iter()
            .map(|answer| fixture.outcomes(answer))
            .sum();
        // One more of the same may have come between the two looks.
        assert!(all <= fixture.outcomes(outcome), "{outcome:?}");
        fixture.stop.cancel();
        // The server may wait for one more to come.
        drop(TcpStream::connect(address));
        many.recv_timeout(LONG).unwrap();
        fixture.finish();
    }
}

#[test]
fn a_server_that_closes_after_each_answer_gets_a_new_connection_each_time() {
    let (listener, plan) = http();
    let mut fixture = Fixture::start(&plan);
    let answer = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    let bodies = served(&mut fixture, listener, answer, true);
    let shards = fixture.finish();
    let set = blocks(&plan, 0);
    for (index, body) in bodies.iter().enumerate() {
        assert!(body == set.block(index % set.len()).bytes, "{index}");
    }
    let ok = shards[0].outcomes[Outcome::Ok.index()].total();
    assert_eq!(ok, bodies.len() as u64);
    assert!(shards[0].connections.total() >= ok);
}

#[test]
fn a_connection_that_was_closed_while_idle_costs_no_request() {
    let (listener, mut plan) = http();
    plan.rate = RatePlan {
        unit: RateUnit::Blocks,
        shape: RateShape::Constant { per_second: 100.0 },
    };
    let mut fixture = Fixture::start(&plan);
    let served = fixture.beside("server", move |stop| {
        for _ in 0..10 {
            let (mut peer, _) = listener.accept()?;
            peer.set_read_timeout(Some(LONG))?;
            read_request(&mut peer, &mut RequestParser::new())?.ok_or("no request")?;
            // Says that more may follow, and closes. Both leave together.
            socket2::SockRef::from(&peer).set_tcp_cork(true)?;
            peer.write_all(OK)?;
            peer.shutdown(Shutdown::Both)?;
        }
        stop.cancel();
        Ok(())
    });
    served.recv_timeout(LONG).unwrap();
    let shards = fixture.finish();
    let count = |outcome: Outcome| shards[0].outcomes[outcome.index()].total();
    assert!(count(Outcome::Ok) >= 9);
    // On a busy machine the close may come after the next request now and then.
    assert!(count(Outcome::PeerClosed) <= 5);
}

#[test]
fn a_server_that_never_answers_does_not_hold_up_the_end() {
    let (listener, plan) = http();
    let mut fixture = Fixture::start(&plan);
    let got = fixture.beside("server", move |stop| {
        let (mut peer, _) = listener.accept()?;
        let body = read_request(&mut peer, &mut RequestParser::new())?;
        stop.cancel();
        Ok((body, peer))
    });
    let (body, _peer) = got.recv_timeout(LONG).unwrap();
    let shards = fixture.finish();
    assert_eq!(shards[0].bytes.total(), body.unwrap().len() as u64);
    assert_eq!(shards[0].requests.total(), 1);
    assert!(
        shards[0]
            .outcomes
            .iter()
            .all(|outcome| outcome.total() == 0)
    );
}

/// The same, exchanged as `change` says.
fn exchanged(change: impl FnOnce(&mut ExchangePlan)) -> (TcpListener, GeneratorPlan) {
    let (listener, mut plan) = http();
    if let TransportPlan::Http { exchange, .. } = &mut plan.transport {
        change(exchange);
    }
    (listener, plan)
}

#[test]
fn an_answer_that_takes_too_long_is_given_up() {
    let (listener, plan) = exchanged(|exchange| exchange.timeout = Nanos::from_millis(20));
    let mut fixture = Fixture::start(&plan);
    let held = fixture.beside("server", move |stop| {
        let mut peers = Vec::new();
        while !stop.is_cancelled() {
            peers.push(listener.accept()?);
        }
        Ok(peers.len())
    });
    let address = match &plan.transport {
        TransportPlan::Http { url, .. } => url["http://".len()..].split('/').next().unwrap(),
        other => panic!("{other:?}"),
    };
    wait_until(|| fixture.outcomes(Outcome::TimedOut) >= 3);
    assert_eq!(fixture.outcomes(Outcome::PeerClosed), 0);
    fixture.stop.cancel();
    // The server waits for one more to come.
    drop(TcpStream::connect(address));
    assert!(held.recv_timeout(LONG).unwrap() >= 3);
    fixture.finish();
}

#[test]
fn a_connection_carries_no_more_than_it_may() {
    let (listener, plan) = exchanged(|exchange| exchange.requests_max = Some(50));
    let mut fixture = Fixture::start(&plan);
    let bodies = served(&mut fixture, listener, OK, false);
    let shards = fixture.finish();
    let connections = shards[0].connections.total();
    assert!((4..=6).contains(&connections), "{connections}");
    let set = blocks(&plan, 0);
    for (index, body) in bodies.iter().enumerate() {
        assert!(body == set.block(index % set.len()).bytes, "{index}");
    }
}

#[test]
fn blocks_wait_for_a_server_that_is_down() {
    let (listener, plan) = http();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut fixture = Fixture::start(&plan);
    wait_until(|| fixture.outcomes(Outcome::ConnectRefused) >= 3);
    let listener = TcpListener::bind(address).unwrap();
    let bodies = served(&mut fixture, listener, OK, false);
    let shards = fixture.finish();
    let set = blocks(&plan, 0);
    for (index, body) in bodies.iter().enumerate() {
        assert!(body == set.block(index % set.len()).bytes, "{index}");
    }
    let ok = shards[0].outcomes[Outcome::Ok.index()].total();
    assert_eq!(shards[0].requests.total(), ok);
}
