use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener};

use stillwell_http::grpc::GrpcMessageReader;
use stillwell_http::h2::{
    BodyLength, H2ResponseBlock, Limits, Server, ServerEvent, Stream, TrailerBlock,
};
use stillwell_metric::Outcome;
use stillwell_plan::{GeneratorPlan, RatePlan, RateShape, RateUnit, StampPlan, TransportPlan};
use stillwell_scope::{PartError, Token};
use stillwell_units::ByteSize;

use crate::{Fixture, LONG, blocks, lines, plan, prepare};

const METHOD: &str = "/package.Service/Method";

pub(crate) fn grpc() -> (TcpListener, GeneratorPlan) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}{METHOD}", listener.local_addr().unwrap());
    (listener, plan(TransportPlan::Grpc { url }))
}

/// Answers the calls of one connection with `status`, and stops the generator
/// after so many; gives the messages.
pub(crate) fn serve(
    listener: &TcpListener,
    status: &str,
    calls: usize,
    stop: &Token,
) -> Result<Vec<Vec<u8>>, PartError> {
    let (mut peer, _) = listener.accept()?;
    peer.set_read_timeout(Some(LONG))?;
    let mut server = Server::new(Limits::default());
    let (mut reader, mut messages) = (GrpcMessageReader::new(u32::MAX), Vec::new());
    let mut room = vec![0; 65_536];
    loop {
        peer.write_all(server.output())?;
        server.sent(server.output().len());
        let length = match peer.read(&mut room) {
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => 0,
            Err(error) => return Err(error.into()),
        };
        if length == 0 {
            return Ok(messages);
        }
        let mut input = &room[..length];
        loop {
            let (taken, event) = server.advance(input)?;
            input = &input[taken..];
            let ended = match event {
                None => break,
                Some(ServerEvent::Head { head, .. }) => {
                    assert_eq!((head.method, head.path), ("POST", METHOD));
                    let kind = head.fields.value("content-type");
                    assert_eq!(kind, Some(&b"application/grpc"[..]));
                    None
                }
                Some(ServerEvent::Body { bytes, .. }) => {
                    read(&mut reader, bytes, &mut messages)?;
                    None
                }
                Some(ServerEvent::End { stream, .. }) => Some(stream),
                Some(_) => None,
            };
            if let Some(stream) = ended {
                answer(&mut server, stream, status)?;
                if messages.len() == calls {
                    stop.cancel();
                }
            }
        }
    }
}

fn read(
    reader: &mut GrpcMessageReader,
    mut bytes: &[u8],
    messages: &mut Vec<Vec<u8>>,
) -> Result<(), PartError> {
    while let (taken, Some(message)) = reader.advance(bytes)? {
        messages.push(message.bytes.to_vec());
        bytes = &bytes[taken..];
    }
    Ok(())
}

fn answer(server: &mut Server, stream: Stream, status: &str) -> Result<(), PartError> {
    let block = H2ResponseBlock::new(200, &[("content-type", "application/grpc")])?;
    server.respond(stream, &block, BodyLength::Unknown)?;
    if status == "0" {
        // A message of two bytes.
        server.send_body(stream, &[0, 0, 0, 0, 2, 8, 1], false)?;
    }
    server.send_trailers(stream, &TrailerBlock::new(&[("grpc-status", status)])?)?;
    Ok(())
}

fn run(mut plan: GeneratorPlan, listener: TcpListener, status: &'static str) -> [u64; 2] {
    plan.payload.cache = ByteSize::mib(4);
    let mut fixture = Fixture::start(&plan);
    let calls = 40;
    let messages = fixture.beside("server", move |stop| serve(&listener, status, calls, &stop));
    let messages = messages.recv_timeout(LONG).unwrap();
    let shards = fixture.finish();
    let set = blocks(&plan, 0);
    for (index, message) in messages.iter().enumerate() {
        assert!(message == set.block(index % set.len()).bytes, "{index}");
    }
    assert!(messages.len() >= calls);
    let bytes: usize = messages.iter().map(Vec::len).sum();
    assert_eq!(shards[0].bytes.total(), bytes as u64);
    assert_eq!(shards[0].requests.total(), messages.len() as u64);
    assert_eq!(shards[0].connections.total(), 1);
    let answered = if status == "0" {
        messages.len() as u64
    } else {
        0
    };
    assert_eq!(shards[0].response_bytes.total(), 2 * answered);
    let count = |outcome: Outcome| shards[0].outcomes[outcome.index()].total();
    [count(Outcome::Ok), count(Outcome::Status5xx)].map(|count| count / messages.len() as u64)
}

/// Answers one call of a new connection, and closes it.
fn serve_one(listener: &TcpListener) -> Result<(), PartError> {
    let (mut peer, _) = listener.accept()?;
    peer.set_read_timeout(Some(LONG))?;
    let mut server = Server::new(Limits::default());
    let mut room = vec![0; 65_536];
    loop {
        let length = peer.read(&mut room)?;
        let mut input = &room[..length];
        let mut is_answered = false;
        while let (taken, Some(event)) = server.advance(input)? {
            let ended = match event {
                ServerEvent::End { stream, .. } => Some(stream),
                _ => None,
            };
            input = &input[taken..];
            if let Some(stream) = ended {
                answer(&mut server, stream, "0")?;
                is_answered = true;
            }
        }
        if is_answered {
            // The answer leaves together with the end: no call can come in between.
            socket2::SockRef::from(&peer).set_tcp_cork(true)?;
        }
        peer.write_all(server.output())?;
        server.sent(server.output().len());
        if is_answered {
            // A close alone would discard the answer if anything is unread.
            return Ok(peer.shutdown(Shutdown::Write)?);
        }
        if length == 0 {
            return Ok(());
        }
    }
}

/// Servers end connections that are idle: the next call goes to a new one, and none is lost.
#[test]
fn a_connection_that_ends_between_two_calls_costs_no_call() {
    let (listener, mut plan) = grpc();
    plan.rate = RatePlan {
        unit: RateUnit::Blocks,
        shape: RateShape::Constant { per_second: 3.0 },
    };
    let mut fixture = Fixture::start(&plan);
    let served = fixture.beside("server", move |stop| {
        for _ in 0..3 {
            serve_one(&listener)?;
        }
        stop.cancel();
        Ok(())
    });
    served.recv_timeout(LONG).unwrap();
    let shards = fixture.finish();
    let count = |outcome: Outcome| shards[0].outcomes[outcome.index()].total();
    assert_eq!(count(Outcome::PeerClosed), 0);
    assert!(count(Outcome::Ok) >= 2, "{}", count(Outcome::Ok));
}

/// GOAWAY of a server that began no call after its first, on stream 1.
const GO_AWAY: [u8; 17] = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0];

/// Answers the first call of a new connection and refuses the second; returns the messages of
/// both.
fn refuse_second(listener: &TcpListener) -> Result<Vec<Vec<u8>>, PartError> {
    let (mut peer, _) = listener.accept()?;
    peer.set_read_timeout(Some(LONG))?;
    let mut server = Server::new(Limits::default());
    let (mut reader, mut messages) = (GrpcMessageReader::new(u32::MAX), Vec::new());
    let mut room = vec![0; 65_536];
    while messages.len() < 2 {
        peer.write_all(server.output())?;
        server.sent(server.output().len());
        let length = peer.read(&mut room)?;
        assert!(length > 0, "the generator has closed");
        let mut input = &room[..length];
        while let (taken, Some(event)) = server.advance(input)? {
            input = &input[taken..];
            let ended = match event {
                ServerEvent::Body { bytes, .. } => {
                    read(&mut reader, bytes, &mut messages)?;
                    None
                }
                ServerEvent::End { stream, .. } => Some(stream),
                _ => None,
            };
            if let Some(stream) = ended
                && messages.len() == 1
            {
                answer(&mut server, stream, "0")?;
            }
        }
    }
    peer.write_all(&GO_AWAY)?;
    peer.shutdown(Shutdown::Write)?;
    // A close alone would discard it if anything is unread.
    while peer.read(&mut room).is_ok_and(|length| length > 0) {}
    Ok(messages)
}

/// The second connection gets its block and the following ones.
#[test]
fn a_call_that_its_server_did_not_begin_is_made_again_and_counts_once() {
    let (listener, mut plan) = grpc();
    plan.stamps = Some(StampPlan::ALL);
    let prepared = prepare(&plan, None).unwrap();
    let sent = prepared.streams().unwrap();
    let mut fixture = Fixture::start_prepared(prepared, false);
    let served = fixture.beside("server", move |stop| {
        let mut messages = refuse_second(&listener)?;
        let refused = messages.pop();
        messages.append(&mut serve(&listener, "0", 3, &stop)?);
        Ok((refused.map(|message| message.len()), messages))
    });
    let (refused, messages) = served.recv_timeout(LONG).unwrap();
    let shards = fixture.finish();
    let shard = &shards[0];
    assert_eq!(refused, messages.get(1).map(Vec::len));
    let bytes: usize = messages.iter().map(Vec::len).sum();
    let events: u64 = messages.iter().map(|message| lines(message)).sum();
    let calls = messages.len() as u64;
    assert_eq!(shard.bytes.total(), bytes as u64);
    assert_eq!((shard.events.total(), sent[0].total()), (events, events));
    assert_eq!(shard.requests.total(), calls);
    assert_eq!(shard.blocks.total(), calls);
    let count = |outcome: Outcome| shard.outcomes[outcome.index()].total();
    assert_eq!(count(Outcome::Ok), calls);
    assert_eq!(count(Outcome::PeerClosed), 0);
    assert_eq!(shard.connections.total(), 2);
}

// compat: lading, generators | grpc | differs | a call in flight on each of parallel_connections; one in all there
#[test]
fn every_message_is_a_block_in_order() {
    let (listener, plan) = grpc();
    assert_eq!(run(plan, listener, "0"), [1, 0]);
}

#[test]
fn a_block_above_the_window_goes_in_parts() {
    let (listener, mut plan) = grpc();
    let maximum = ByteSize::mib(1);
    plan.payload.blocks = stillwell_plan::payload::BlockShape::UpTo { maximum };
    assert_eq!(run(plan, listener, "0"), [1, 0]);
}

#[test]
fn a_call_that_fails_counts_by_its_status() {
    let (listener, plan) = grpc();
    assert_eq!(run(plan, listener, "14"), [0, 1]);
}
