//! Generators against real sockets on loopback.
#![expect(
    clippy::unwrap_used,
    reason = "a helper that cannot go on fails its test"
)]

#[path = "generator/broker.rs"]
mod broker;
#[path = "generator/datagram.rs"]
mod datagram;
#[path = "generator/files.rs"]
mod files;
#[path = "generator/fixture.rs"]
mod fixture;
#[path = "generator/fresh.rs"]
mod fresh;
#[path = "generator/grpc.rs"]
mod grpc;
#[path = "generator/hec.rs"]
mod hec;
#[path = "generator/http.rs"]
mod http;
#[path = "generator/prepare.rs"]
mod prepare;
#[path = "generator/replay.rs"]
mod replay;
#[path = "generator/stream.rs"]
mod stream;
#[path = "generator/tls.rs"]
mod tls;
#[path = "generator/trace_agent.rs"]
mod trace_agent;

use stillwell_generator::prepare;
use stillwell_payload::BlockSet;
use stillwell_plan::GeneratorPlan;
use stillwell_units::ByteSize;

use fixture::{Fixture, LONG, lines, plan, wait_until};

/// The blocks of worker `index`.
fn blocks(plan: &GeneratorPlan, index: u64) -> BlockSet {
    let cache = ByteSize::new(plan.payload.cache.bytes() / u64::from(plan.concurrency.workers()));
    let seed = plan.seed.derive("worker", index);
    BlockSet::build(&plan.payload, cache, seed, None).unwrap()
}

/// Returns true where `received` is `set` from block `first` on, over and over.
fn is_walk(set: &BlockSet, first: usize, received: &[u8]) -> bool {
    let from = set.run(0, first).bytes.len();
    let (head, tail) = received.split_at(received.len().min(set.bytes().len() - from));
    let mut rounds = tail.chunks(set.bytes().len());
    set.bytes()[from..].starts_with(head) && rounds.all(|round| set.bytes().starts_with(round))
}

/// As [`is_walk`], and ends at the end of a block.
fn is_whole_walk(set: &BlockSet, first: usize, received: &[u8]) -> bool {
    let into = (set.run(0, first).bytes.len() + received.len()) % set.bytes().len();
    let is_block_end = (0..set.len()).any(|block| set.run(0, block).bytes.len() == into);
    is_block_end && is_walk(set, first, received)
}

impl Fixture {
    /// With blocks that are built while others are sent.
    fn start_fresh(plan: &GeneratorPlan) -> Self {
        Self::start_prepared(prepare(plan, None).unwrap().fresh(), false)
    }

    fn start_with(plan: &GeneratorPlan, reserved: bool) -> Self {
        Self::start_prepared(prepare(plan, None).unwrap(), reserved)
    }
}
