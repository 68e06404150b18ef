use std::net::UdpSocket;
use std::os::unix::net::UnixDatagram;

use stillwell_metric::Outcome;
use stillwell_plan::{RatePlan, RateShape, RateUnit, TransportPlan};

use crate::{Fixture, LONG, blocks, plan, wait_until};

const DATAGRAMS: usize = 500;

/// Slow enough that a default receive buffer overflows only where the reader gets no CPU for
/// more than a tenth of a second.
fn udp(address: String) -> stillwell_plan::GeneratorPlan {
    let bind = "127.0.0.1:0".to_owned();
    let mut plan = plan(TransportPlan::Udp { address, bind });
    plan.rate = RatePlan {
        unit: RateUnit::Blocks,
        shape: RateShape::Constant { per_second: 500.0 },
    };
    plan
}

// compat: lading, generators | udp | works
#[test]
fn udp_delivers_a_block_a_datagram() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(LONG)).unwrap();
    let plan = udp(socket.local_addr().unwrap().to_string());
    let mut fixture = Fixture::start(&plan);
    let received = fixture.beside("peer", move |stop| {
        let mut received = Vec::new();
        let mut room = vec![0; 65_536];
        for _ in 0..DATAGRAMS {
            let length = socket.recv(&mut room)?;
            received.push(room[..length].to_vec());
        }
        stop.cancel();
        Ok((received, socket))
    });
    let (received, _socket) = received.recv_timeout(LONG).unwrap();
    let shards = fixture.finish();
    let set = blocks(&plan, 0);
    // The kernel drops what a reader without CPU has no room for: each is one of the next blocks.
    let mut passed = 0_usize;
    for (index, datagram) in received.iter().enumerate() {
        let is_next = |skipped: &usize| set.block((passed + skipped) % set.len()).bytes == datagram;
        let skipped = (0..set.len()).find(is_next);
        passed += skipped.unwrap_or_else(|| panic!("{index} is no block")) + 1;
    }
    let sent = shards[0].blocks.total();
    // A block that came twice or out of order counts as a round of all blocks.
    assert!(passed as u64 <= sent, "{passed} of {sent}");
    assert_eq!(shards[0].sent_units.total(), sent);
    assert!(sent <= shards[0].requested_units.total());
    assert_eq!(shards[0].outcomes[Outcome::Ok.index()].total(), sent);
    assert_eq!(shards[0].requests.total(), sent);
}

// compat: lading, generators | unix_datagram | works
#[test]
fn unix_datagrams_deliver_a_block_each_and_none_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("datagrams");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(LONG)).unwrap();
    let plan = plan(TransportPlan::UnixDatagram { path });
    let mut fixture = Fixture::start(&plan);
    let received = fixture.beside("peer", move |stop| {
        let mut received = Vec::new();
        let mut room = vec![0; 65_536];
        for _ in 0..DATAGRAMS {
            let length = socket.recv(&mut room)?;
            received.push(room[..length].to_vec());
        }
        stop.cancel();
        Ok((received, socket))
    });
    let (mut received, socket) = received.recv_timeout(LONG).unwrap();
    let shards = fixture.finish();
    socket.set_nonblocking(true).unwrap();
    let mut room = vec![0; 65_536];
    while let Ok(length) = socket.recv(&mut room) {
        received.push(room[..length].to_vec());
    }
    let set = blocks(&plan, 0);
    for (index, datagram) in received.iter().enumerate() {
        assert!(datagram == set.block(index % set.len()).bytes, "{index}");
    }
    assert_eq!(shards[0].blocks.total(), received.len() as u64);
    let bytes: usize = received.iter().map(Vec::len).sum();
    assert_eq!(shards[0].bytes.total(), bytes as u64);
}

#[test]
fn udp_without_a_receiver_is_counted_and_goes_on() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let plan = udp(socket.local_addr().unwrap().to_string());
    drop(socket);
    let fixture = Fixture::start(&plan);
    wait_until(|| {
        fixture.outcomes(Outcome::ConnectRefused) >= 3 && fixture.outcomes(Outcome::Ok) >= 10
    });
    let shards = fixture.finish();
    assert_eq!(shards[0].connections.total(), 1);
}

#[test]
fn a_datagram_socket_that_is_bound_again_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("datagrams");
    let first = UnixDatagram::bind(&path).unwrap();
    let mut plan = plan(TransportPlan::UnixDatagram { path: path.clone() });
    plan.rate = RatePlan {
        unit: RateUnit::Blocks,
        shape: RateShape::Constant {
            per_second: 1_000.0,
        },
    };
    let fixture = Fixture::start(&plan);
    first.set_read_timeout(Some(LONG)).unwrap();
    first.recv(&mut [0; 65_536]).unwrap();
    drop(first);
    std::fs::remove_file(&path).unwrap();
    wait_until(|| fixture.outcomes(Outcome::PeerClosed) >= 1);
    let second = UnixDatagram::bind(&path).unwrap();
    second.set_read_timeout(Some(LONG)).unwrap();
    second.recv(&mut [0; 65_536]).unwrap();
    let shards = fixture.finish();
    assert_eq!(shards[0].connections.total(), 2);
}
