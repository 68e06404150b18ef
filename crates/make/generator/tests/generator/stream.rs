use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Barrier};

use stillwell_generator::prepare;
use stillwell_metric::Outcome;
use stillwell_plan::generator::Concurrency;
use stillwell_plan::payload::BlockShape;
use stillwell_plan::{RatePlan, RateShape, RateUnit, StampPlan, TransportPlan};
use stillwell_scope::{PartError, Token};
use stillwell_units::{ByteRate, ByteSize};

use crate::{Fixture, LONG, blocks, is_walk, is_whole_walk, lines, plan, wait_until};

fn tcp() -> (TcpListener, TransportPlan) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, TransportPlan::Tcp { address })
}

/// Reads `length` bytes, stops the generator, and reads to the end.
fn take_all(peer: impl Read, length: usize, stop: &Token) -> Result<Vec<u8>, PartError> {
    take_all_together(peer, length, &Barrier::new(1), stop)
}

/// As [`take_all`], but stops it only when all peers have read so much.
fn take_all_together(
    mut peer: impl Read,
    length: usize,
    all: &Barrier,
    stop: &Token,
) -> Result<Vec<u8>, PartError> {
    let mut bytes = vec![0; length];
    peer.read_exact(&mut bytes)?;
    all.wait();
    stop.cancel();
    peer.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn accept(listener: &TcpListener) -> io::Result<TcpStream> {
    let (peer, _) = listener.accept()?;
    peer.set_read_timeout(Some(LONG))?;
    Ok(peer)
}

fn accept_unix(listener: &UnixListener) -> io::Result<UnixStream> {
    let (peer, _) = listener.accept()?;
    peer.set_read_timeout(Some(LONG))?;
    Ok(peer)
}

// compat: lading, generators | tcp | works
#[test]
fn tcp_delivers_its_blocks_in_order_and_ends_after_a_whole_one() {
    let (listener, transport) = tcp();
    let plan = plan(transport);
    let mut fixture = Fixture::start(&plan);
    let received = fixture.beside("peer", move |stop| {
        take_all(accept(&listener)?, 3_000_000, &stop)
    });
    let received = received.recv_timeout(LONG).unwrap();
    let shards = fixture.finish();
    let set = blocks(&plan, 0);
    assert!(is_whole_walk(&set, 0, &received));
    assert_eq!(shards[0].bytes.total(), received.len() as u64);
    assert_eq!(shards[0].events.total(), lines(&received));
    assert_eq!(shards[0].sent_units.total(), received.len() as u64);
    assert_eq!(shards[0].requested_units.total(), 0);
    assert_eq!(shards[0].connections.total(), 1);
    assert_eq!(shards[0].outcomes[Outcome::Ok.index()].total(), 1);
}

// compat: lading, generators | unix_stream | works
#[test]
fn unix_streams_deliver_their_blocks_in_order_and_end_after_a_whole_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stream");
    let listener = UnixListener::bind(&path).unwrap();
    let plan = plan(TransportPlan::UnixStream { path });
    let mut fixture = Fixture::start(&plan);
    let received = fixture.beside("peer", move |stop| {
        take_all(accept_unix(&listener)?, 3_000_000, &stop)
    });
    let received = received.recv_timeout(LONG).unwrap();
    let shards = fixture.finish();
    let set = blocks(&plan, 0);
    assert!(is_whole_walk(&set, 0, &received));
    assert_eq!(shards[0].bytes.total(), received.len() as u64);
    assert_eq!(shards[0].events.total(), lines(&received));
}

#[test]
fn every_connection_walks_all_of_its_workers_blocks() {
    let (listener, transport) = tcp();
    let mut plan = plan(transport);
    plan.concurrency = Concurrency::try_new(5, 2).unwrap();
    let mut fixture = Fixture::start(&plan);
    let mut peers: Vec<Receiver<Vec<u8>>> = Vec::new();
    let all = Arc::new(Barrier::new(5));
    for index in 0..5 {
        let all = Arc::clone(&all);
        let listener = listener.try_clone().unwrap();
        peers.push(fixture.beside(&format!("peer-{index}"), move |stop| {
            take_all_together(accept(&listener)?, 200_000, &all, &stop)
        }));
    }
    let received: Vec<Vec<u8>> = peers
        .iter()
        .map(|peer| peer.recv_timeout(LONG).unwrap())
        .collect();
    let shards = fixture.finish();
    let mut connections = [0; 2];
    let mut bytes = [0; 2];
    for received in &received {
        let is_from = |worker: &usize| is_whole_walk(&blocks(&plan, *worker as u64), 0, received);
        let worker = (0..2).find(is_from).unwrap();
        connections[worker] += 1;
        bytes[worker] += received.len() as u64;
    }
    assert_eq!(connections, [3, 2]);
    for (shard, bytes) in shards.iter().zip(bytes) {
        assert_eq!(shard.bytes.total(), bytes);
    }
}

#[test]
fn a_rate_is_kept_to_within_a_block_in_every_unit() {
    for (unit, per_second, reserved) in [
        (RateUnit::Bytes, 20_000_000.0, false),
        (RateUnit::Events, 100_000.0, false),
        (RateUnit::Blocks, 5_000.0, false),
        (RateUnit::Blocks, 5_000.0, true),
    ] {
        let (listener, transport) = tcp();
        let mut plan = plan(transport);
        plan.concurrency = Concurrency::try_new(2, 1).unwrap();
        let shape = RateShape::Constant { per_second };
        plan.rate = RatePlan { unit, shape };
        let mut fixture = Fixture::start_with(&plan, reserved);
        let second = listener.try_clone().unwrap();
        let all = Arc::new(Barrier::new(2));
        let peers = [listener, second].map(|listener| {
            let name = format!("peer-{listener:?}");
            let all = Arc::clone(&all);
            fixture.beside(&name, move |stop| {
                take_all_together(accept(&listener)?, 300_000, &all, &stop)
            })
        });
        let received = peers.map(|peer| peer.recv_timeout(LONG).unwrap());
        let shards = fixture.finish();
        let set = blocks(&plan, 0);
        let (sent, requested) = (
            shards[0].sent_units.total(),
            shards[0].requested_units.total(),
        );
        let block_max = match unit {
            RateUnit::Bytes => set.largest_block() as u64,
            RateUnit::Events => (0..set.len())
                .map(|block| set.block(block).counts().events)
                .max()
                .unwrap(),
            RateUnit::Blocks => 1,
        };
        // The last requested events may have come after the last look.
        assert!(
            sent < requested + block_max,
            "{unit:?}: {sent} of {requested}"
        );
        let bytes: usize = received.iter().map(Vec::len).sum();
        let events: u64 = received.iter().map(|received| lines(received)).sum();
        let expected = match unit {
            RateUnit::Bytes => bytes as u64,
            RateUnit::Events => events,
            RateUnit::Blocks => shards[0].blocks.total(),
        };
        assert_eq!(sent, expected);
    }
}

#[test]
fn a_stop_while_the_peer_takes_nothing_ends_after_the_block_under_way() {
    let (listener, transport) = tcp();
    let plan = plan(transport);
    let mut fixture = Fixture::start(&plan);
    let peer = accept(&listener).unwrap();
    wait_until(|| fixture.total(|shard| &shard.account.blocked) > 0);
    let received = fixture.beside("peer", move |stop| take_all(peer, 1, &stop));
    let received = received.recv_timeout(LONG).unwrap();
    let shards = fixture.finish();
    let set = blocks(&plan, 0);
    assert!(is_whole_walk(&set, 0, &received));
    assert_eq!(shards[0].bytes.total(), received.len() as u64);
}

#[test]
fn what_a_deaf_peer_cuts_is_counted_to_the_last_whole_event() {
    let (listener, transport) = tcp();
    let plan = plan(transport);
    let fixture = Fixture::start(&plan);
    let mut peer = accept(&listener).unwrap();
    wait_until(|| fixture.total(|shard| &shard.account.blocked) > 0);
    let shards = fixture.finish();
    let mut received = Vec::new();
    peer.read_to_end(&mut received).unwrap();
    let set = blocks(&plan, 0);
    assert!(is_walk(&set, 0, &received));
    assert_eq!(shards[0].bytes.total(), received.len() as u64);
    assert_eq!(shards[0].events.total(), lines(&received));
}

#[test]
fn an_event_that_is_half_sent_when_the_load_ends_behind_a_deaf_peer_was_not_sent() {
    let (listener, transport) = tcp();
    let mut plan = plan(transport);
    plan.stamps = Some(StampPlan::ALL);
    let prepared = prepare(&plan, None).unwrap();
    let counts = prepared.streams().unwrap();
    let fixture = Fixture::start_prepared(prepared, false);
    let mut peer = accept(&listener).unwrap();
    wait_until(|| fixture.total(|shard| &shard.account.blocked) > 0);
    let shards = fixture.finish();
    let mut received = Vec::new();
    peer.read_to_end(&mut received).unwrap();
    assert_eq!(counts[0].total(), lines(&received));
    assert_eq!(shards[0].events.total(), lines(&received));
}

#[test]
fn without_a_listener_refusals_are_counted_and_a_stop_still_ends_it() {
    let (listener, transport) = tcp();
    drop(listener);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nobody");
    for transport in [
        transport,
        TransportPlan::UnixStream { path: path.clone() },
        TransportPlan::UnixDatagram { path },
    ] {
        let fixture = Fixture::start(&plan(transport));
        wait_until(|| fixture.outcomes(Outcome::ConnectRefused) >= 3);
        let shards = fixture.finish();
        assert_eq!(shards[0].bytes.total(), 0);
        assert_eq!(shards[0].connections.total(), 0);
    }
}

#[test]
fn a_target_that_comes_late_is_found() {
    let (listener, transport) = tcp();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut fixture = Fixture::start(&plan(transport));
    wait_until(|| fixture.outcomes(Outcome::ConnectRefused) >= 1);
    let listener = TcpListener::bind(address).unwrap();
    let received = fixture.beside("peer", move |stop| {
        take_all(accept(&listener)?, 100_000, &stop)
    });
    assert!(received.recv_timeout(LONG).unwrap().len() >= 100_000);
    fixture.finish();
}

#[test]
fn after_a_peer_has_closed_the_walk_goes_on_with_a_whole_block() {
    let (listener, transport) = tcp();
    let plan = plan(transport);
    let mut fixture = Fixture::start(&plan);
    let received = fixture.beside("peer", move |stop| {
        for _ in 0..3 {
            accept(&listener)?.read_exact(&mut [0; 100_000])?;
        }
        take_all(accept(&listener)?, 100_000, &stop)
    });
    let received = received.recv_timeout(LONG).unwrap();
    assert_eq!(fixture.outcomes(Outcome::PeerClosed), 3);
    let shards = fixture.finish();
    assert_eq!(shards[0].connections.total(), 4);
    let set = blocks(&plan, 0);
    let resumed = (0..set.len()).find(|first| is_whole_walk(&set, *first, &received));
    assert!(resumed.is_some());
}

/// A connection that is closed with bytes unread is reset.
#[test]
fn all_arrives_at_a_peer_that_has_written_something() {
    let (listener, transport) = tcp();
    let mut plan = plan(transport);
    // Slow, because the end is not to wait for room.
    plan.rate = RatePlan::bytes(ByteRate::try_new(1 << 20).unwrap());
    let mut fixture = Fixture::start(&plan);
    let received = fixture.beside("peer", move |stop| {
        let mut peer = accept(&listener)?;
        peer.write_all(b"welcome\n")?;
        take_all(peer, 50_000, &stop)
    });
    let received = received.recv_timeout(LONG).unwrap();
    let shards = fixture.finish();
    assert!(is_whole_walk(&blocks(&plan, 0), 0, &received));
    assert_eq!(shards[0].bytes.total(), received.len() as u64);
    assert_eq!(shards[0].events.total(), lines(&received));
}

/// lading leaves such a block out.
#[test]
fn a_block_larger_than_a_second_of_the_rate_is_sent() {
    let (listener, transport) = tcp();
    let mut plan = plan(transport);
    plan.payload.blocks = BlockShape::Events {
        count: 20,
        maximum: ByteSize::kib(64),
    };
    let largest = blocks(&plan, 0).largest_block();
    // The first block is due at once, and each later one some seconds after.
    plan.rate = RatePlan::bytes(ByteRate::try_new(largest as u64 / 3).unwrap());
    let mut fixture = Fixture::start(&plan);
    let received = fixture.beside("reader", move |stop| {
        let (mut peer, _) = listener.accept()?;
        let mut block = vec![0; 1];
        peer.read_exact(&mut block)?;
        stop.cancel();
        peer.read_to_end(&mut block)?;
        Ok(block)
    });
    let received = received.recv_timeout(LONG).unwrap();
    let shards = fixture.finish();
    assert!(received == blocks(&plan, 0).block(0).bytes);
    assert_eq!(shards[0].blocks.total(), 1);
}

#[test]
fn a_long_run_sends_nothing_twice_except_what_it_counts_as_sent_again() {
    let (listener, transport) = tcp();
    let mut plan = plan(transport);
    plan.payload.cache = ByteSize::kib(256);
    plan.rate = RatePlan::bytes(ByteRate::try_new(4 << 20).unwrap());
    let first = blocks(&plan, 0);
    let length = 8 * first.bytes().len();
    let mut fixture = Fixture::start_fresh(&plan);
    let received = fixture.beside("reader", move |stop| {
        take_all(accept(&listener)?, length, &stop)
    });
    let received = received.recv_timeout(LONG).unwrap();
    let shards = fixture.finish();
    assert!(received.starts_with(first.bytes()));
    let all: Vec<&[u8]> = received.split_inclusive(|byte| *byte == b'\n').collect();
    let distinct: BTreeSet<&[u8]> = all.iter().copied().collect();
    let most = (0..first.len())
        .map(|block| first.block(block).counts().events)
        .max();
    let again = shards[0].blocks_again.total() * most.unwrap();
    assert!(
        (all.len() - distinct.len()) as u64 <= again,
        "{again} may repeat"
    );
    // Something new has come even where the machine had little time to build it.
    assert!(distinct.len() as u64 > lines(first.bytes()));
}
