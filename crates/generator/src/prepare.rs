//! Everything that can be done, and refused, before the run.

use std::io;
use std::sync::Arc;

use stillwell_http::{HeadError, TargetError};
use stillwell_metric::{GeneratorShard, Labels, Recorder};
use stillwell_pacer::{Schedule, Share, TimeAccount, Turns};
use stillwell_payload::{BlockSet, BuildError, Seeds, Sources};
use stillwell_plan::{GeneratorPlan, RatePlan};
use stillwell_scope::{Place, Scope, Token, clock};
use stillwell_units::{ByteSize, Moment};

use crate::transport::{Line, LineError};
use crate::worker::{self, State};

/// A generator whose payload is built and whose workers have not begun.
#[derive(Debug)]
pub struct Prepared {
    id: String,
    rate: RatePlan,
    line: Line,
    workers: Vec<PreparedWorker>,
    turns: Option<Turns>,
}

#[derive(Debug)]
struct PreparedWorker {
    set: BlockSet,
    share: Share,
    connections: u16,
    shard: Arc<GeneratorShard>,
    lateness: Recorder,
    response_time: Recorder,
    service_time: Recorder,
}

/// Why a generator cannot send what its plan says.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// The payload could not be built.
    #[error("build the payload of generator `{id}`")]
    Payload {
        /// The generator.
        id: String,
        /// Why not.
        source: BuildError,
    },
    /// A block is larger than what the transport carries as one message.
    #[error(
        "generator `{id}` has a block of {} bytes, and {transport} carries at most {}: \
         lower the largest block",
        largest.bytes(),
        limit.bytes()
    )]
    BlockTooLarge {
        /// The generator.
        id: String,
        /// The transport's name.
        transport: &'static str,
        /// The largest block.
        largest: ByteSize,
        /// What the transport carries.
        limit: ByteSize,
    },
    /// The URL of the target was not understood.
    #[error("read the target of generator `{id}`")]
    Url {
        /// The generator.
        id: String,
        /// Why not.
        source: TargetError,
    },
    /// The requests' head would not arrive as it was given.
    #[error("write the request head of generator `{id}`")]
    Head {
        /// The generator.
        id: String,
        /// Why not.
        source: HeadError,
    },
}

/// Builds the blocks of every worker of `plan`, each from a seed of its own and
/// of an even share of the plan's cache. `sources` holds the contents of the files
/// for payloads that are the lines of one. Opens nothing.
///
/// # Errors
/// [`PrepareError`] where the plan cannot be carried out.
pub fn prepare<'s>(
    plan: &GeneratorPlan,
    sources: impl Into<Sources<'s>>,
) -> Result<Prepared, PrepareError> {
    let sources = sources.into();
    let id = || plan.id.clone();
    let line = Line::new(&plan.transport).map_err(|error| match error {
        LineError::Url(source) => PrepareError::Url { id: id(), source },
        LineError::Head(source) => PrepareError::Head { id: id(), source },
    })?;
    let workers = Share::all(u32::from(plan.workers.max(1)))
        .map(|share| PreparedWorker::new(plan, share, sources.clone()))
        .collect::<Result<_, _>>()?;
    Ok(Prepared {
        id: id(),
        rate: plan.rate,
        line,
        workers,
        turns: None,
    })
}

impl Prepared {
    /// What each worker counts.
    #[must_use]
    pub fn shards(&self) -> Vec<Arc<GeneratorShard>> {
        let shards = self.workers.iter().map(|worker| &worker.shard);
        shards.map(Arc::clone).collect()
    }

    /// The same, sending in `turns` alone. Schedule, lateness and the account of
    /// time stand still meanwhile, so rates are rates of the time on turn; waiting
    /// for a turn counts as ahead. Blocks that were begun are written to their
    /// end.
    #[must_use]
    pub fn in_turns(self, turns: Turns) -> Self {
        Self {
            turns: Some(turns),
            ..self
        }
    }

    /// Starts the workers, all at `place`, as threads `gen-ID-0` and on. They
    /// connect at once and send from `start` on, the zero of their schedule and
    /// the start of their turns if they take any, until `stop` or the scope's
    /// token is cancelled. With `reserved` each owns its CPU and spins before a
    /// send.
    ///
    /// # Errors
    /// The kernel's answer where it starts no more threads.
    pub fn start(
        self,
        scope: &mut Scope,
        place: &Place,
        reserved: bool,
        start: Moment,
        stop: &Token,
    ) -> io::Result<()> {
        for (index, prepared) in self.workers.into_iter().enumerate() {
            let name = format!("gen-{}-{index}", self.id);
            let (rate, line, stop) = (self.rate, self.line.clone(), stop.clone());
            let turns = self.turns.clone();
            scope.worker(place.clone(), &name, move |token| {
                let connections = prepared.connections;
                let (set, state) = prepared.into_state(rate, start, turns, reserved);
                worker::run(set, state, connections, line, token, stop)
            })?;
        }
        Ok(())
    }
}

impl PreparedWorker {
    fn new(plan: &GeneratorPlan, share: Share, sources: Sources<'_>) -> Result<Self, PrepareError> {
        let cache = ByteSize::new(plan.payload.cache.bytes() / u64::from(share.of()));
        let seed = Seeds {
            own: plan.seed.derive("worker", u64::from(share.index())),
            common: plan.seed,
        };
        let set = BlockSet::build(&plan.payload, cache, seed, sources).map_err(|source| {
            PrepareError::Payload {
                id: plan.id.clone(),
                source,
            }
        })?;
        let largest = ByteSize::new(set.largest_block() as u64);
        if let Some(limit) = plan
            .transport
            .block_limit()
            .filter(|limit| largest > *limit)
        {
            return Err(PrepareError::BlockTooLarge {
                id: plan.id.clone(),
                transport: plan.transport.name(),
                largest,
                limit,
            });
        }
        let (lateness, lateness_intervals) = Recorder::pair();
        let (response_time, response_intervals) = Recorder::pair();
        let (service_time, service_intervals) = Recorder::pair();
        let labels = Labels::none()
            .with("component", "generator")
            .with("component_name", plan.transport.name())
            .with("id", plan.id.as_str())
            .with("worker", share.index().to_string());
        let shard = GeneratorShard::new(
            labels,
            lateness_intervals,
            response_intervals,
            service_intervals,
        );
        Ok(Self {
            set,
            share,
            connections: connections_of(plan, share),
            shard: Arc::new(shard),
            lateness,
            response_time,
            service_time,
        })
    }

    fn into_state(
        self,
        rate: RatePlan,
        start: Moment,
        turns: Option<Turns>,
        reserved: bool,
    ) -> (BlockSet, State) {
        let now = clock::now();
        let own = turns.as_ref().map_or(now, |turns| turns.own_time(now));
        let state = State {
            schedule: Schedule::new(rate.shape, self.share, start),
            turns,
            unit: rate.unit,
            is_max: rate.is_max(),
            reserved,
            start,
            opened: now,
            shard: self.shard,
            lateness: self.lateness,
            response_time: self.response_time,
            service_time: self.service_time,
            account: TimeAccount::new(own),
            asleep_until: None,
            half_written: 0,
            published_at: now,
            stopped: false,
        };
        (self.set, state)
    }
}

/// An even share of the connections, at least one; the first workers have the
/// odd ones.
fn connections_of(plan: &GeneratorPlan, share: Share) -> u16 {
    let workers = plan.workers.max(1);
    let has_odd_one = share.index() < u32::from(plan.connections % workers);
    (plan.connections / workers + u16::from(has_odd_one)).max(1)
}
