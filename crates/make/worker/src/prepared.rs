//! A generator whose payload is built: everything that can be refused before the run.

use std::error::Error;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use stillwell_fuse::{Mount, MountNote, MountOwner};
use stillwell_metric::{Cell, GeneratorShard, Labels, LogFsShard, Recorder};
use stillwell_pacer::{Schedule, Share, TimeAccount, Turns};
use stillwell_payload::{BlockSet, BuildError, Part, Seeds, SlotUse, Sources};
use stillwell_plan::load::Spacing;
use stillwell_plan::stamp::StampForm;
use stillwell_plan::{GeneratorPlan, RatePlan, RateUnit, StampPlan};
use stillwell_scope::clock::FixedWall;
use stillwell_scope::{Place, Scope, Tasks, Token, clock};
use stillwell_stamp::{RunMark, StreamId};
use stillwell_units::{ByteSize, Moment, Seed, as_usize};

use crate::error::TransportError;
use crate::file_control::FileControl;
use crate::fresh::{self, Recipe, Sets};
use crate::mounted::{Mounted, ShowError};
use crate::stamps::{Stamping, Stream};
use crate::worker::{self, Opener, State, Worker};

/// A generator whose payload is built and whose workers have not begun.
#[derive(Debug)]
pub struct Prepared {
    id: String,
    rate: RatePlan,
    opener: Arc<dyn Opener>,
    workers: Vec<PreparedWorker>,
    /// The file system in place of workers, where blocks are served as files.
    mounted: Option<Box<dyn Mounted>>,
    turns: Option<Turns>,
    is_fresh: bool,
    stamps: Option<PreparedStamps>,
    /// One for each worker whose payload has an end: cancelled once it has sent it.
    ends: Vec<Token>,
    /// One for each worker: cancelled once it has ended, its grace included.
    over: Vec<Token>,
}

/// The stamps of events.
#[derive(Clone, Debug)]
struct PreparedStamps {
    plan: StampPlan,
    run: RunMark,
    /// The number of its first stream.
    first: u32,
    /// Streams of each connection.
    orders: u32,
    /// Streams of the processes before this one, and of all.
    fleet_streams: (u32, u32),
    /// One for each stream.
    counts: Arc<[Cell]>,
    /// Clock of the times before events.
    wall: FixedWall,
}

#[derive(Debug)]
struct PreparedWorker {
    set: BlockSet,
    /// The input of later sets, if there are any.
    recipe: Option<Recipe>,
    share: Share,
    connections: u16,
    shard: Arc<GeneratorShard>,
    lateness: Recorder,
    response_time: Recorder,
    service_time: Recorder,
    spacing: Spacing,
    spacing_seed: Seed,
}

/// Reasons for which a generator cannot send its plan.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// The payload could not be built.
    #[error("build the payload of generator `{id}`")]
    Payload {
        /// The generator.
        id: String,
        /// The cause.
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
        /// Largest block of the transport.
        limit: ByteSize,
    },
    /// Its requests cannot carry stamps.
    #[error("generator `{id}` cannot stamp what it sends over {transport}")]
    Unstampable {
        /// The generator.
        id: String,
        /// The transport's name.
        transport: &'static str,
    },
    /// Its logs would grow without an end in no time.
    #[error(
        "generator `{id}` writes to a mounted file system, where nothing limits its speed: give it a rate"
    )]
    Unpaced {
        /// The generator.
        id: String,
    },
    /// More streams than stamps can name.
    #[error(
        "generator `{id}` would have stream {number}, and stamps support at most 65536 streams"
    )]
    Streams {
        /// The generator.
        id: String,
        /// The stream's number.
        number: u64,
    },
    /// Its transport cannot be prepared.
    #[error("{doing} of generator `{id}`")]
    Transport {
        /// The generator.
        id: String,
        /// The step that failed.
        doing: &'static str,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl PrepareError {
    /// The transport of `plan` cannot be prepared.
    #[must_use]
    pub fn transport(plan: &GeneratorPlan, error: TransportError) -> Self {
        Self::Transport {
            id: plan.id.clone(),
            doing: error.doing,
            source: error.source,
        }
    }
}

/// An opener where nothing is opened.
#[derive(Debug)]
struct Unopened;

impl Opener for Unopened {
    fn open(&self, _worker: &Rc<Worker>, _connections: u16, _tasks: &mut Tasks) {}
}

fn check_stamps(
    plan: &GeneratorPlan,
    carries: impl Fn(StampForm) -> bool,
) -> Result<(), PrepareError> {
    match plan.stamps {
        Some(stamps) if !carries(stamps.form) => Err(PrepareError::Unstampable {
            id: plan.id.clone(),
            transport: plan.transport.name(),
        }),
        _ => Ok(()),
    }
}

impl Prepared {
    /// Builds the blocks of every worker of `plan`, which will send through `opener`:
    /// each from a seed of its own and of an even share of the plan's cache.
    ///
    /// # Errors
    /// [`PrepareError`] where the plan cannot be carried out.
    pub fn new(
        plan: &GeneratorPlan,
        sources: Sources<'_>,
        opener: Arc<dyn Opener>,
    ) -> Result<Self, PrepareError> {
        let stamps = plan.transport.properties().stamps;
        check_stamps(plan, |form| stamps.carries(form))?;
        let workers = shares_of(plan)
            .map(|share| PreparedWorker::new(plan, share, sources.clone()))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self::with(plan, workers, opener))
    }

    /// Builds the blocks of `plan`, and what serves them in place of workers.
    ///
    /// # Errors
    /// [`PrepareError`] where the plan cannot be carried out.
    pub fn mounted<M: Mounted + 'static>(
        plan: &GeneratorPlan,
        sources: Sources<'_>,
        serve: impl FnOnce(BlockSet, Arc<GeneratorShard>) -> M,
    ) -> Result<Self, PrepareError> {
        if plan.rate.is_max() {
            let id = plan.id.clone();
            return Err(PrepareError::Unpaced { id });
        }
        check_stamps(plan, |_| false)?;
        let worker = PreparedWorker::new(plan, Share::WHOLE, sources)?;
        let mounted = serve(worker.set, worker.shard);
        Ok(Self {
            mounted: Some(Box::new(mounted)),
            ..Self::with(plan, Vec::new(), Arc::new(Unopened))
        })
    }

    fn with(plan: &GeneratorPlan, workers: Vec<PreparedWorker>, opener: Arc<dyn Opener>) -> Self {
        let has_end = |worker: &PreparedWorker| worker.set.blocks_max().is_some();
        let ends = if workers.iter().all(has_end) {
            workers.iter().map(|_| Token::new()).collect()
        } else {
            Vec::new()
        };
        let over = workers.iter().map(|_| Token::new()).collect();
        let orders = plan.transport.properties().streams;
        let streams = workers
            .iter()
            .map(|worker| orders.saturating_mul(worker.connections.into()));
        let streams = streams.sum::<u32>() as usize;
        Self {
            id: plan.id.clone(),
            rate: plan.rate.clone(),
            opener,
            workers,
            mounted: None,
            turns: None,
            is_fresh: false,
            ends,
            over,
            stamps: plan.stamps.map(|stamps| PreparedStamps {
                plan: stamps,
                fleet_streams: (
                    orders.saturating_mul(plan.concurrency.connections_before().into()),
                    plan.all_streams(),
                ),
                run: RunMark::NONE,
                first: 0,
                orders,
                counts: std::iter::repeat_with(Cell::default)
                    .take(streams)
                    .collect(),
                wall: FixedWall::now(),
            }),
        }
    }

    /// Returns the first set of each worker, in the order of workers.
    pub fn sets(&self) -> impl Iterator<Item = &BlockSet> {
        let workers = self.workers.iter().map(|worker| &worker.set);
        workers.chain(self.mounted.iter().filter_map(|files| files.set()))
    }

    /// Returns the counters of each worker.
    #[must_use]
    pub fn shards(&self) -> Vec<Arc<GeneratorShard>> {
        let shards = self.workers.iter().map(|worker| Arc::clone(&worker.shard));
        shards
            .chain(self.mounted.iter().map(|files| files.load()))
            .collect()
    }

    /// Its name.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the control that moves or empties its log, if it writes one.
    #[must_use]
    pub fn files(&self) -> Option<FileControl> {
        self.opener.files()
    }

    /// Returns the counters of its file system, if it is one.
    #[must_use]
    pub fn file_system(&self) -> Option<Arc<LogFsShard>> {
        self.mounted.as_ref().map(|files| files.shard())
    }

    /// Mounts the files of `owner` for a target before load begins, and serves them on a thread of
    /// `scope`; `None` for all but logs in a file system of their own. The caller ends the
    /// mount before the scope.
    ///
    /// # Errors
    /// [`ShowError`], which says what to do.
    pub fn show(
        &mut self,
        scope: &mut Scope,
        place: &Place,
        owner: MountOwner<'_>,
    ) -> Result<Option<(Mount, Vec<MountNote>)>, ShowError> {
        match &mut self.mounted {
            Some(files) => files.show(scope, place, owner),
            None => Ok(None),
        }
    }

    /// The same, sending in `turns` alone. Schedule, lateness and time breakdown pause in
    /// between, so rates are rates of the time on turn. Waiting for a turn counts as idle.
    /// Blocks that were begun are written to their end.
    #[must_use]
    pub fn in_turns(self, turns: Turns) -> Self {
        Self {
            turns: Some(turns),
            ..self
        }
    }

    /// The same, sending as `prepared` does, which was not started. Blocks, schedule and
    /// counters stay.
    #[must_use]
    pub fn sending_as(self, prepared: Self) -> Self {
        Self {
            opener: prepared.opener,
            ..self
        }
    }

    /// The same, with new blocks after one round through the first set. A thread of lowest
    /// priority builds them for each worker. Has no effect where stamps make events new,
    /// where events come from files, where the plan's blocks repeat, and where turns are
    /// taken, so no thread works off turn.
    #[must_use]
    pub fn fresh(self) -> Self {
        Self {
            is_fresh: true,
            ..self
        }
    }

    /// Cancelled, one for each worker, once all that is to be sent is; empty where
    /// that has no end.
    #[must_use]
    pub fn ends(&self) -> &[Token] {
        &self.ends
    }

    /// Cancelled, one for each worker, once it has ended after it was stopped: what
    /// was begun is finished by then, or was cut.
    #[must_use]
    pub fn over(&self) -> &[Token] {
        &self.over
    }

    /// Counts of the stamped events of each stream that were begun, if a delivery ledger can
    /// be kept. Each connection has a stream, over HTTP/2 and HTTP/3 one for each request at
    /// once.
    #[must_use]
    pub fn streams(&self) -> Option<Arc<[Cell]>> {
        let stamps = self.stamps.as_ref();
        let stamps = stamps.filter(|stamps| stamps.plan.form.prefix().is_none())?;
        Some(Arc::clone(&stamps.counts))
    }

    /// Number of the streams of all processes that share this generator; zero if it has no
    /// delivery ledger.
    #[must_use]
    pub fn all_streams(&self) -> u32 {
        let stamps = self.stamps.as_ref().filter(|_| self.streams().is_some());
        stamps.map_or(0, |stamps| stamps.fleet_streams.1)
    }

    /// The same, with stamps of `run` whose streams have the numbers from `first`
    /// on, those of processes before this one included.
    ///
    /// # Errors
    /// [`PrepareError::Streams`] where they are more than there can be.
    pub fn numbered(mut self, run: RunMark, first: u32) -> Result<Self, PrepareError> {
        if let Some(stamps) = &mut self.stamps {
            let first = first.saturating_add(stamps.fleet_streams.0);
            let last = u64::from(first) + stamps.counts.len() as u64 - 1;
            let can_be = u32::try_from(last).ok().and_then(StreamId::new).is_some();
            if !can_be {
                return Err(PrepareError::Streams {
                    id: self.id,
                    number: last,
                });
            }
            (stamps.run, stamps.first) = (run, first);
        }
        Ok(self)
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
        if let Some(files) = &self.mounted {
            files.begin(start, stop, self.turns.clone());
        }
        let mut streams = 0;
        let is_fresh = self.is_fresh && self.stamps.is_none() && self.turns.is_none();
        for (index, mut prepared) in self.workers.into_iter().enumerate() {
            let stamps = self.stamps.clone();
            let unit = self.rate.unit;
            let first = streams;
            streams += u32::from(prepared.connections);
            let name = format!("gen-{}-{}", self.id, prepared.share.index());
            let (rate, opener, stop) = (self.rate.clone(), Arc::clone(&self.opener), stop.clone());
            let turns = self.turns.clone();
            let recipe = prepared.recipe.take().filter(|_| is_fresh);
            let ready = recipe.map(|recipe| build_beside(scope, place, &name, recipe));
            let ready = ready.transpose()?;
            let sent_all = self.ends.get(index).cloned().unwrap_or_default();
            let over = self.over.get(index).cloned().unwrap_or_default();
            scope.worker(place.clone(), &name, move |token| {
                let connections = prepared.connections;
                let (set, mut state) = prepared.into_state(&rate, start, turns, reserved);
                let stamping = stamps.map(|stamps| stamps.of(first, connections, unit, &set));
                state.stamps = stamping.is_some() || opener.answers_blocks();
                let sets = Sets::new(set, ready);
                let tokens = (token, stop, sent_all);
                async move {
                    let _at_the_end = over.drop_guard();
                    worker::run((sets, stamping), state, connections, opener, tokens).await
                }
            })?;
        }
        Ok(())
    }
}

/// Starts the builder of later sets beside the worker `name`.
fn build_beside(
    scope: &mut Scope,
    place: &Place,
    name: &str,
    recipe: Recipe,
) -> io::Result<Receiver<BlockSet>> {
    let (hand_over, ready) = fresh::channel();
    scope.thread(place.clone(), &format!("{name}-fresh"), move |token| {
        fresh::build(recipe, &hand_over, token)
    })?;
    Ok(ready)
}

impl PreparedStamps {
    /// The stamps of the worker whose first stream is number `first` of the generator's.
    fn of(self, first: u32, connections: u16, unit: RateUnit, set: &BlockSet) -> Stamping {
        let (first, count) = (first * self.orders, u32::from(connections) * self.orders);
        let streams = (first..first + count).filter_map(|index| {
            Some(Stream {
                id: StreamId::new(self.first + index)?,
                counts: Arc::clone(&self.counts),
                index: index as usize,
            })
        });
        let streams = (streams.collect(), self.wall);
        Stamping::new(&self.plan, self.run, unit, set, streams)
    }
}

impl PreparedWorker {
    fn new(plan: &GeneratorPlan, share: Share, sources: Sources<'_>) -> Result<Self, PrepareError> {
        let cache = ByteSize::new(plan.payload.cache.bytes() / u64::from(share.of()));
        let seed = Seeds {
            worker: plan.seed.derive("worker", u64::from(share.index())),
            common: plan.seed,
            part: Part {
                index: share.index(),
                of: share.of(),
            },
            after: fresh::begin_of(&plan.payload),
            exporter: None,
        };
        let slots = match plan.stamps.map(|stamps| stamps.form) {
            Some(StampForm::Text) => SlotUse::Every,
            Some(StampForm::Prefix(framing)) => SlotUse::Before(framing),
            Some(StampForm::Header) | None => SlotUse::None,
        };
        let set = BlockSet::build_with(&plan.payload, cache, seed, sources, slots);
        let set = set.map_err(|source| PrepareError::Payload {
            id: plan.id.clone(),
            source,
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
            recipe: Recipe::new(&plan.payload, seed, cache, &set)
                .filter(|_| plan.transport.sends_payload()),
            set,
            share,
            connections: plan.concurrency.connections_of(share.index()),
            shard: Arc::new(shard),
            spacing: plan.transport.spacing(),
            spacing_seed: plan.seed.derive("spacing", 0),
            lateness,
            response_time,
            service_time,
        })
    }

    fn into_state(
        self,
        rate: &RatePlan,
        start: Moment,
        turns: Option<Turns>,
        reserved: bool,
    ) -> (BlockSet, State) {
        let now = clock::now();
        let worker_time = turns.as_ref().map_or(now, |turns| turns.active_time(now));
        let state = State {
            schedule: Schedule::new(&rate.shape, self.share, start).spaced(
                &rate.shape,
                self.spacing,
                &self.spacing_seed,
            ),
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
            account: TimeAccount::new(worker_time),
            asleep_until: None,
            half_written: 0,
            published_at: now,
            stopped: false,
            stamps: false,
            blocks_left: self.set.blocks_max(),
            unfinished: 0,
        };
        (self.set, state)
    }
}

/// Returns the shares of the workers of this process.
fn shares_of(plan: &GeneratorPlan) -> impl Iterator<Item = Share> {
    let numbers = plan.concurrency.worker_numbers();
    Share::all(plan.concurrency.all_workers())
        .skip(as_usize(numbers.start))
        .take(numbers.len())
}
