//! A sink that runs, and what it counted.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use stillwell_metric::SinkShard;
use stillwell_plan::sink::SinkBody;
use stillwell_plan::{SinkPlan, SinkProtocol};
use stillwell_scope::{Place, Scope, Token};
use stillwell_sink::{BoundSink, bind};
use stillwell_testkit::LONG;
use stillwell_units::Nanos;

pub(crate) struct RunningSink {
    scope: Scope,
    shards: Vec<Arc<SinkShard>>,
    address: Option<SocketAddr>,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Counts {
    pub(crate) bytes: u64,
    pub(crate) events: u64,
    pub(crate) messages: u64,
    pub(crate) connections: u64,
    pub(crate) errors: u64,
}

pub(crate) fn plan(protocol: SinkProtocol) -> SinkPlan {
    SinkPlan {
        id: "under-test".to_owned(),
        protocol,
        workers: std::num::NonZeroU16::MIN,
        limit: None,
        lines: None,
        prefix: None,
    }
}

pub(crate) fn anywhere() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

pub(crate) fn http(delay: Nanos, connections_max: u32) -> SinkProtocol {
    SinkProtocol::Http {
        address: anywhere(),
        status: 200,
        headers: vec![("x-sink".to_owned(), "yes".to_owned())],
        body: SinkBody::Static(b"taken".to_vec()),
        delay,
        connections_max,
    }
}

pub(crate) fn run(plan: &SinkPlan) -> RunningSink {
    run_bound(bind(plan).unwrap())
}

pub(crate) fn run_bound(bound: BoundSink) -> RunningSink {
    let (shards, address) = (bound.shards(), bound.address());
    let mut scope = Scope::new(&Token::new());
    bound.start(&mut scope, &Place::default()).unwrap();
    RunningSink {
        scope,
        shards,
        address,
    }
}

impl RunningSink {
    pub(crate) fn address(&self) -> SocketAddr {
        self.address.unwrap()
    }

    pub(crate) fn shards(&self) -> &[Arc<SinkShard>] {
        &self.shards
    }

    /// Ends it; fails the test where a worker failed or did not end.
    pub(crate) fn end(self) -> Counts {
        for end in self.scope.close(Nanos::from(LONG)) {
            end.result.unwrap();
        }
        let sum = |cell: fn(&SinkShard) -> u64| self.shards.iter().map(|shard| cell(shard)).sum();
        Counts {
            bytes: sum(|shard| shard.bytes.total()),
            events: sum(|shard| shard.events.total()),
            messages: sum(|shard| shard.messages.total()),
            connections: sum(|shard| shard.connections.total()),
            errors: sum(|shard| shard.errors.total()),
        }
    }
}

/// Output of one client: bytes, and the number of them in each write.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) bytes: Vec<u8>,
    pub(crate) writes: Vec<usize>,
}

impl Script {
    /// Writes it all, piece by piece.
    pub(crate) fn send(&self, stream: &mut impl Write) {
        let mut rest = self.bytes.as_slice();
        for length in &self.writes {
            let (piece, after) = rest.split_at((*length).min(rest.len()));
            stream.write_all(piece).unwrap();
            rest = after;
        }
        stream.write_all(rest).unwrap();
    }

    pub(crate) fn lines(&self) -> u64 {
        self.bytes.split_inclusive(|byte| *byte == b'\n').count() as u64
    }
}

pub(crate) fn scripts() -> impl Strategy<Value = Vec<Script>> {
    let bytes = prop::collection::vec(prop::sample::select(b"ab\n".to_vec()), 0..5000);
    let script = (bytes, prop::collection::vec(1..700_usize, 0..20))
        .prop_map(|(bytes, writes)| Script { bytes, writes });
    prop::collection::vec(script, 1..5)
}

/// Reads until the sink has closed: then it has counted everything.
pub(crate) fn read_all(stream: &mut impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    bytes
}

/// Returns true if the file of a socket exists.
pub(crate) fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
