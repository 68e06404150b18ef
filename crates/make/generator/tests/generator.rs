//! Generators against real sockets on loopback.
#![expect(
    clippy::unwrap_used,
    reason = "a helper that cannot go on fails its test"
)]

#[path = "generator/broker.rs"]
mod broker;
#[path = "generator/container.rs"]
mod container;
#[path = "generator/datagram.rs"]
mod datagram;
#[path = "generator/files.rs"]
mod files;
#[path = "generator/fresh.rs"]
mod fresh;
#[path = "generator/grpc.rs"]
mod grpc;
#[path = "generator/hec.rs"]
mod hec;
#[path = "generator/http.rs"]
mod http;
#[path = "generator/kubernetes.rs"]
mod kubernetes;
#[path = "generator/log_fs.rs"]
mod log_fs;
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

use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use stillwell_generator::{Prepared, prepare};
use stillwell_metric::{GeneratorShard, Outcome};
use stillwell_payload::BlockSet;
use stillwell_plan::{
    BlockShape, GeneratorPlan, PayloadFormat, PayloadPlan, RatePlan, TransportPlan,
};
use stillwell_scope::{PartError, Place, Scope, Token, clock};
use stillwell_units::{ByteSize, Nanos, Seed};

/// Longer than anything here takes; only a defect waits for it.
const LONG: Duration = Duration::from_secs(30);

/// One connection at full speed.
fn plan(transport: TransportPlan) -> GeneratorPlan {
    GeneratorPlan {
        id: "one".to_owned(),
        transport,
        payload: PayloadPlan {
            format: PayloadFormat::Syslog5424,
            blocks: BlockShape::UpTo {
                maximum: ByteSize::kib(4),
            },
            cache: ByteSize::kib(512),
        },
        rate: RatePlan::MAX,
        connections: 1,
        workers: 1,
        seed: Seed::from_number(7),
        stamps: None,
    }
}

/// The blocks of worker `index`.
fn blocks(plan: &GeneratorPlan, index: u64) -> BlockSet {
    let cache = ByteSize::new(plan.payload.cache.bytes() / u64::from(plan.workers));
    let seed = plan.seed.derive("worker", index);
    BlockSet::build(&plan.payload, cache, seed, None).unwrap()
}

/// A generator under way, and threads of the test beside it.
struct Rig {
    scope: Scope,
    stop: Token,
    shards: Vec<Arc<GeneratorShard>>,
}

impl Rig {
    fn start(plan: &GeneratorPlan) -> Self {
        Self::start_with(plan, false)
    }

    /// With blocks that are built while others are sent.
    fn start_fresh(plan: &GeneratorPlan) -> Self {
        Self::start_prepared(prepare(plan, None).unwrap().fresh(), false)
    }

    fn start_with(plan: &GeneratorPlan, reserved: bool) -> Self {
        Self::start_prepared(prepare(plan, None).unwrap(), reserved)
    }

    fn start_prepared(prepared: Prepared, reserved: bool) -> Self {
        let mut rig = Self {
            scope: Scope::new(&Token::new()),
            stop: Token::new(),
            shards: Vec::new(),
        };
        rig.shards = prepared.shards();
        let place = Place::default();
        prepared
            .start(&mut rig.scope, &place, reserved, clock::now(), &rig.stop)
            .unwrap();
        rig
    }

    /// Runs `body` on a thread of its own and hands over what it returns.
    fn beside<T: Send + 'static>(
        &mut self,
        name: &str,
        body: impl FnOnce(Token) -> Result<T, PartError> + Send + 'static,
    ) -> Receiver<T> {
        let (sender, receiver) = sync_channel(1);
        let stop = self.stop.clone();
        self.scope
            .thread(Place::default(), name, move |_| {
                let value = body(stop.clone()).inspect_err(|_| stop.cancel())?;
                sender.send(value).map_err(|_| "nobody waits for it")?;
                Ok(())
            })
            .unwrap();
        receiver
    }

    /// Stops the generator, unless that has been done, and waits for all threads.
    fn finish(self) -> Vec<Arc<GeneratorShard>> {
        self.stop.cancel();
        for end in self.scope.close(Nanos::from(LONG)) {
            assert!(end.result.is_ok(), "{}: {:?}", end.name, end.result);
        }
        self.shards
    }

    fn total(&self, cell: impl Fn(&GeneratorShard) -> &stillwell_metric::Cell) -> u64 {
        self.shards.iter().map(|shard| cell(shard).total()).sum()
    }

    fn outcomes(&self, outcome: Outcome) -> u64 {
        self.total(|shard| &shard.outcomes[outcome.index()])
    }
}

/// Waits for something that is bound to happen.
fn wait_until(condition: impl Fn() -> bool) {
    let (_sender, never) = sync_channel::<()>(0);
    let deadline = clock::now() + Nanos::from(LONG);
    while !condition() {
        assert!(
            clock::now() < deadline,
            "what was waited for did not happen"
        );
        never.recv_timeout(Duration::from_millis(1)).unwrap_err();
    }
}

/// Whether `received` is `set` from block `first` on, over and over.
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

fn lines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}
