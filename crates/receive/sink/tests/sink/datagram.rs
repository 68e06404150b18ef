use std::net::UdpSocket;
use std::os::unix::net::UnixDatagram;

use proptest::prelude::*;
use stillwell_plan::SinkProtocol;

use crate::support::{Counts, anywhere, exists, plan, run, run_bound};

fn datagrams() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let datagram = prop::collection::vec(prop::sample::select(b"abc\n".to_vec()), 0..300);
    prop::collection::vec(datagram, 0..100)
}

fn expected(datagrams: &[Vec<u8>]) -> Counts {
    let lines = |datagram: &Vec<u8>| datagram.split_inclusive(|byte| *byte == b'\n').count() as u64;
    Counts {
        bytes: datagrams.iter().map(|datagram| datagram.len() as u64).sum(),
        events: datagrams
            .iter()
            .map(|datagram| lines(datagram).max(1))
            .sum(),
        messages: datagrams.len() as u64,
        ..Counts::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn for_all_udp_datagrams_each_counts_though_the_sink_ends_at_once(datagrams in datagrams()) {
        let sink = run(&plan(SinkProtocol::Udp { address: anywhere() }));
        let socket = UdpSocket::bind(anywhere()).unwrap();
        for datagram in &datagrams {
            socket.send_to(datagram, sink.address()).unwrap();
        }
        prop_assert_eq!(sink.end(), expected(&datagrams));
    }

    // compat: lading, blackholes | unix_datagram | works
    #[test]
    fn for_all_unix_datagrams_each_counts_though_the_sink_ends_at_once(datagrams in datagrams()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sink.sock");
        let sink = run(&plan(SinkProtocol::UnixDatagram { path: path.clone() }));
        let socket = UnixDatagram::unbound().unwrap();
        for datagram in &datagrams {
            socket.send_to(datagram, &path).unwrap();
        }
        prop_assert_eq!(sink.end(), expected(&datagrams));
        prop_assert!(!exists(&path));
    }
}

// compat: lading, blackholes | udp | works
#[test]
fn the_largest_datagrams_count_whole() {
    let sink = run(&plan(SinkProtocol::Udp {
        address: anywhere(),
    }));
    let socket = UdpSocket::bind(anywhere()).unwrap();
    socket.send_to(&vec![b'x'; 65_507], sink.address()).unwrap();
    let counts = sink.end();
    assert_eq!(
        (counts.bytes, counts.events, counts.messages),
        (65_507, 1, 1)
    );
}

/// Datagrams dropped by the kernel were not reported: they counted as lost by the target.
#[test]
fn datagrams_that_the_kernel_drops_are_reported() {
    let bound = stillwell_sink::bind(&plan(SinkProtocol::Udp {
        address: anywhere(),
    }));
    let bound = bound.unwrap();
    let (shards, address) = (bound.shards(), bound.address().unwrap());
    let socket = UdpSocket::bind(anywhere()).unwrap();
    let datagram = vec![b'x'; 60_000];
    // Far more than any buffer holds while none are taken.
    let sent = 4_000;
    for _ in 0..sent {
        socket.send_to(&datagram, address).unwrap();
    }
    let sink = run_bound(bound);
    let counts = sink.end();
    let dropped = shards[0].dropped.total();
    assert!(dropped > 0, "{counts:?}");
    assert_eq!(counts.messages + dropped, sent);
}
