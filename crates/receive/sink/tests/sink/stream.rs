use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;

use proptest::prelude::*;
use stillwell_plan::SinkProtocol;

use crate::support::{Counts, Script, anywhere, exists, plan, read_all, run, scripts};

fn expected(scripts: &[Script]) -> Counts {
    Counts {
        bytes: scripts.iter().map(|script| script.bytes.len() as u64).sum(),
        events: scripts.iter().map(Script::lines).sum(),
        connections: scripts.len() as u64,
        ..Counts::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn for_all_writes_over_tcp_every_byte_and_line_counts(scripts in scripts()) {
        let sink = run(&plan(SinkProtocol::Tcp { address: anywhere() }));
        for script in &scripts {
            let mut stream = TcpStream::connect(sink.address()).unwrap();
            stream.set_nodelay(true).unwrap();
            script.send(&mut stream);
            stream.shutdown(Shutdown::Write).unwrap();
            prop_assert!(read_all(&mut stream).is_empty());
        }
        prop_assert_eq!(sink.end(), expected(&scripts));
    }

    // compat: lading, blackholes | unix_stream | works
    #[test]
    fn for_all_writes_over_unix_streams_every_byte_and_line_counts(scripts in scripts()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sink.sock");
        let sink = run(&plan(SinkProtocol::UnixStream { path: path.clone() }));
        for script in &scripts {
            let mut stream = UnixStream::connect(&path).unwrap();
            script.send(&mut stream);
            stream.shutdown(Shutdown::Write).unwrap();
            prop_assert!(read_all(&mut stream).is_empty());
        }
        prop_assert_eq!(sink.end(), expected(&scripts));
        prop_assert!(!exists(&path));
    }
}

#[test]
fn what_waits_in_the_sockets_when_a_sink_ends_still_counts() {
    let sink = run(&plan(SinkProtocol::Tcp {
        address: anywhere(),
    }));
    let streams: Vec<TcpStream> = (0..50)
        .map(|_| {
            let mut stream = TcpStream::connect(sink.address()).unwrap();
            stream.write_all(b"one\ntwo\n").unwrap();
            stream
        })
        .collect();
    // Nothing was closed, and the worker may have seen none of it.
    let counts = sink.end();
    assert_eq!(
        (counts.bytes, counts.events, counts.connections),
        (400, 100, 50)
    );
    drop(streams);
}

// compat: lading, blackholes | tcp | works
#[test]
fn several_workers_share_one_address() {
    let mut plan = plan(SinkProtocol::Tcp {
        address: anywhere(),
    });
    plan.workers = 3.try_into().unwrap();
    let sink = run(&plan);
    assert_eq!(sink.shards().len(), 3);
    for _ in 0..30 {
        let mut stream = TcpStream::connect(sink.address()).unwrap();
        stream.write_all(b"line\n").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        assert!(read_all(&mut stream).is_empty());
    }
    let counts = sink.end();
    assert_eq!(
        (counts.events, counts.connections, counts.errors),
        (30, 30, 0)
    );
}
