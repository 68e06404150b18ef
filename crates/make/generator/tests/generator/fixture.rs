//! A generator or an environment under way, for tests.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use stillwell_metric::{GeneratorShard, Outcome};
use stillwell_plan::generator::Concurrency;
use stillwell_plan::payload::BlockShape;
use stillwell_plan::{GeneratorPlan, PayloadFormat, PayloadPlan, RatePlan, TransportPlan};
use stillwell_scope::{PartError, Place, Scope, Token, clock};
use stillwell_units::{ByteSize, Nanos, Seed};
use stillwell_worker::Prepared;

use crate::prepare;

/// Longer than anything here takes; only a defect waits for it.
pub(crate) use stillwell_testkit::LONG;

/// One connection at full speed.
pub(crate) fn plan(transport: TransportPlan) -> GeneratorPlan {
    GeneratorPlan {
        id: "one".to_owned(),
        transport,
        payload: PayloadPlan {
            format: PayloadFormat::Syslog5424,
            blocks: BlockShape::UpTo {
                maximum: ByteSize::kib(4),
            },
            cache: ByteSize::kib(512),
            repeats: false,
        },
        rate: RatePlan::MAX,
        concurrency: Concurrency::ONE,
        seed: Seed::from_number(7),
        stamps: None,
    }
}

/// A generator under way, and threads of the test beside it.
pub(crate) struct Fixture {
    pub(crate) scope: Scope,
    pub(crate) stop: Token,
    pub(crate) shards: Vec<Arc<GeneratorShard>>,
}

impl Fixture {
    pub(crate) fn start(plan: &GeneratorPlan) -> Self {
        Self::start_prepared(prepare(plan, None).unwrap(), false)
    }

    pub(crate) fn start_prepared(prepared: Prepared, reserved: bool) -> Self {
        let mut fixture = Self {
            scope: Scope::new(&Token::new()),
            stop: Token::new(),
            shards: Vec::new(),
        };
        fixture.shards = prepared.shards();
        let place = Place::default();
        prepared
            .start(
                &mut fixture.scope,
                &place,
                reserved,
                clock::now(),
                &fixture.stop,
            )
            .unwrap();
        fixture
    }

    /// Runs `body` on a thread of its own and hands over what it returns.
    pub(crate) fn beside<T: Send + 'static>(
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
    pub(crate) fn finish(self) -> Vec<Arc<GeneratorShard>> {
        self.stop.cancel();
        for end in self.scope.close(Nanos::from(LONG)) {
            assert!(end.result.is_ok(), "{}: {:?}", end.name, end.result);
        }
        self.shards
    }

    pub(crate) fn total(&self, cell: impl Fn(&GeneratorShard) -> &stillwell_metric::Cell) -> u64 {
        self.shards.iter().map(|shard| cell(shard).total()).sum()
    }

    pub(crate) fn outcomes(&self, outcome: Outcome) -> u64 {
        self.total(|shard| &shard.outcomes[outcome.index()])
    }
}

/// Waits for something that is bound to happen.
pub(crate) fn wait_until(condition: impl Fn() -> bool) {
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

pub(crate) fn lines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}
