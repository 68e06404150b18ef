//! One worker: its pools, and what they share.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use stillwell_metric::{LoadShard, LoadTime, Outcome, Recorder, Sizes, Trouble};
use stillwell_pacer::{Arrivals, Part, Share};
use stillwell_payload::BlockSet;
use stillwell_plan::{LoadPace, LoadPlan, LoadProtocol, Overflow, PredicatePlan};
use stillwell_scope::{PartError, Tasks, Token, clock, explain};
use stillwell_units::{Moment, Nanos, floor_to_u64};
use stillwell_wire::Timer;
use stillwell_wire::quic::QuicClient;
use stillwell_wire::tls::{ClientTls, Handshake, HandshakeError};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{sleep, timeout};

use super::blocks::Blocks;
use super::build::Endpoint;
use super::connection;
use super::ledger::{Answer, Ledger, Ticket, Watch};
use super::listen::Listener;
use super::pool::{Limits, Pool, Timing, pace};
use super::rest::{Rest, rest};
use super::slots::Slots;
use super::spun::Spun;
use super::supply::{Handed, Supply};
use super::trace::{Ended, Trace, Tracer};
use super::tunnel::Proxy;
use stillwell_wire::stream_outcome;
use stillwell_worker::Slice;

/// How often a worker brings its shard up to date and looks whether it is over.
const BEAT: Nanos = Nanos::from_millis(10);

/// So long the first request may wait for a connection where there is no time left
/// for that before the start.
const CONNECTED_MAX: Nanos = Nanos::from_millis(100);

/// What a worker is made of.
pub(super) struct Setup {
    pub(super) plan: Arc<LoadPlan>,
    pub(super) endpoints: Arc<[Endpoint]>,
    pub(super) tls: Option<ClientTls>,
    pub(super) proxy: Option<Proxy>,
    pub(super) share: Share,
    pub(super) shard: Arc<LoadShard>,
    /// Those of all workers.
    pub(super) shards: Vec<Arc<LoadShard>>,
    pub(super) recorders: Vec<Recorder>,
    pub(super) start: watch::Receiver<Option<Moment>>,
    pub(super) stop: Token,
    pub(super) tracer: Option<Tracer>,
    /// Where requests come from, where they are none of the endpoints'.
    pub(super) supply: Option<mpsc::Receiver<Handed>>,
    /// Who is told headers of answers, if anybody is.
    pub(super) listener: Option<Listener>,
}

/// What the pools of one worker share. All of them live on its thread.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) plan: Arc<LoadPlan>,
    pub(super) endpoints: Arc<[Endpoint]>,
    pub(super) tls: Option<ClientTls>,
    pub(super) proxy: Option<Proxy>,
    /// Opens connections of QUIC, once one was.
    pub(super) quic: OnceCell<QuicClient>,
    /// The same with the proxy.
    pub(super) proxy_quic: OnceCell<QuicClient>,
    /// Which of how many it is.
    share: Share,
    pub(super) has_schedule: bool,
    pub(super) ledger: RefCell<Ledger>,
    pub(super) end: Token,
    /// The same, cheaper to ask.
    is_ending: Cell<bool>,
    /// How long requests were due with no connection free, and until when last.
    pub(super) blocked: Cell<Nanos>,
    pub(super) blocked_until: Cell<Moment>,
    /// What sleeps took beyond their end.
    pub(super) late: Cell<Nanos>,
    /// CPU time that was spent on nothing but waiting for the schedule.
    pub(super) spun: Spun,
    /// Connections that were opened in a warm-up that is not over, by endpoint and
    /// slot.
    warming: RefCell<BTreeMap<(usize, usize), Opened>>,
    pub(super) rest: Rest,
    begun: Token,
    stop: Token,
    failure: Cell<Option<&'static str>>,
    tracer: Option<RefCell<Tracer>>,
    /// What is sent, where it is the blocks of a generator.
    pub(super) blocks: Option<Rc<Blocks>>,
    /// What is sent, where others hand it out.
    pub(super) supply: Option<Rc<Supply>>,
    /// Who is told headers of answers, if anybody is.
    pub(super) listener: Option<Listener>,
}

/// Runs a worker until its time is up, its requests are done, or `scope` or the
/// stop token is cancelled.
pub(super) async fn run(setup: Setup, scope: Token) -> Result<(), PartError> {
    // The runtime looks at this future whenever any task is woken, so it waits for
    // one thing alone.
    let (sender, ended) = oneshot::channel();
    let mut tasks = Tasks::new(1);
    tasks.spawn(async move {
        // Nobody listens only where the worker itself is gone.
        drop(sender.send(carry_out(setup, scope).await));
    });
    let ended = ended.await;
    tasks.all_ended().await;
    ended.unwrap_or(Ok(()))
}

async fn carry_out(setup: Setup, scope: Token) -> Result<(), PartError> {
    let (share, stop) = (setup.share, setup.stop.clone());
    let mut start = setup.start.clone();
    let worker = Rc::new(Worker::new(setup));
    let pools = worker.pools(share);
    let mut tasks = Tasks::new(pools.iter().map(|(_, slots)| slots + 1).sum());
    for (pool, slots) in &pools {
        for slot in 0..*slots {
            tasks.spawn(connection::run(Rc::clone(&worker), Rc::clone(pool), slot));
        }
    }
    // All arms are cancel-safe: they wait and do nothing else.
    let start = tokio::select! {
        biased;
        () = scope.cancelled() => return Ok(()),
        () = stop.cancelled() => return Ok(()),
        start = start.wait_for(Option::is_some) => start.ok().and_then(|start| *start),
    };
    let Some(start) = start else {
        return Ok(());
    };
    worker.begin(share, &pools, start).await?;
    if worker.has_schedule {
        for (pool, _) in &pools {
            tasks.spawn(pace(Rc::clone(&worker), Rc::clone(pool)));
        }
    } else {
        tasks.spawn(rest(Rc::clone(&worker)));
    }
    let book = Book {
        start,
        cpu: clock::thread_cpu(),
        run_delay: run_delay(),
    };
    let ending = carry_on(&worker, &pools, &mut tasks, &book, [&scope, &stop]).await?;
    worker.finish_all(&pools);
    // What the schedule asks for and what the worker does from here on is no part
    // of the measured time.
    worker.stop(&book, &pools, ending);
    let grace = worker.plan.grace.as_duration();
    // What has not ended by then is cut, and counted so.
    drop(timeout(grace, tasks.all_ended()).await);
    drop(tasks);
    worker.ledger.borrow_mut().cut();
    worker.count_overdue(&pools);
    worker.ledger.borrow_mut().publish(true);
    worker.failure.get().map_or(Ok(()), |what| Err(what.into()))
}

/// Waits until the load is over: somebody asks it to end, its time is up, or the
/// last of its requests is answered.
async fn carry_on(
    worker: &Worker,
    pools: &[(Rc<Pool>, usize)],
    tasks: &mut Tasks,
    book: &Book,
    [scope, stop]: [&Token; 2],
) -> Result<Ending, PartError> {
    let measure_from = book.start + worker.plan.warmup;
    let mut timer = Timer::new()?;
    loop {
        let is_warming = worker.ledger.borrow().is_warming;
        // All arms are cancel-safe: they wait and do nothing else.
        let is_asked = tokio::select! {
            biased;
            () = scope.cancelled() => true,
            () = stop.cancelled() => true,
            () = worker.end.cancelled() => true,
            () = timer.until(measure_from), if is_warming => false,
            () = sleep(BEAT.as_duration()) => false,
        };
        worker.publish(book, pools);
        if is_warming && clock::now() >= measure_from {
            worker.measure(book, pools, measure_from);
        }
        if is_asked || worker.is_time_up(book.start) {
            return Ok(Ending::Asked);
        }
        let is_spent = pools.iter().all(|(pool, _)| pool.is_spent());
        worker.look_at_supply();
        if is_spent {
            break;
        }
    }
    // Every request was taken. The load lasts until they are answered: else a few
    // slow ones would look like many fast ones.
    worker.finish_all(pools);
    let until = clock::now() + worker.plan.timeout;
    loop {
        let ending = tokio::select! {
            biased;
            () = scope.cancelled() => Some(Ending::Asked),
            () = stop.cancelled() => Some(Ending::Asked),
            () = tasks.all_ended() => Some(Ending::AllEnded),
            () = sleep(BEAT.as_duration()) => (clock::now() >= until).then_some(Ending::Asked),
        };
        worker.publish(book, pools);
        if let Some(ending) = ending {
            return Ok(ending);
        }
        if worker.is_time_up(book.start) {
            return Ok(Ending::Asked);
        }
    }
}

/// Why a worker begins nothing more.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Ending {
    /// Its time was up, or somebody asked for it.
    Asked,
    /// All that there was to send was sent, and has ended.
    AllEnded,
}

/// From when on time is accounted.
struct Book {
    start: Moment,
    /// CPU time before.
    cpu: Nanos,
    run_delay: Nanos,
}

impl Book {
    /// How long the worker could have run since then and had no CPU.
    fn delayed(&self) -> Nanos {
        run_delay().saturating_sub(self.run_delay)
    }
}

/// What is known of a connection once it is open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opened {
    /// How long connecting took, without the handshake.
    pub(super) connect: Nanos,
    /// What came of the handshake, where there was one.
    pub(super) handshake: Option<Handshake>,
}

impl Opened {
    fn record(&self, ledger: &mut Ledger) {
        ledger.record(LoadTime::Connect, self.connect);
        if let Some(handshake) = self.handshake {
            ledger.record(LoadTime::Handshake, handshake.length());
            let agreed = &ledger.shard.handshakes;
            agreed.add(handshake.version, handshake.suite, handshake.group);
        }
    }
}

/// How long the calling thread could have run and had no CPU; nothing where the
/// kernel does not say.
pub(super) fn run_delay() -> Nanos {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let delay = text.split_whitespace().nth(1);
    Nanos::new(delay.and_then(|word| word.parse().ok()).unwrap_or(0))
}

impl Worker {
    fn new(setup: Setup) -> Self {
        let until = &setup.plan.until;
        let watch = |predicate: &PredicatePlan| Watch {
            counter: predicate.counter,
            threshold: predicate.threshold,
        };
        let ledger = Ledger {
            watched: if until.by_worker {
                vec![Arc::clone(&setup.shard)]
            } else {
                setup.shards
            },
            watches: until
                .termination
                .iter()
                .chain(&until.failure)
                .map(watch)
                .collect(),
            shard: setup.shard,
            recorders: setup.recorders,
            has_schedule: matches!(setup.plan.pace, LoadPace::Open { .. }),
            has_response: has_response(&setup.plan.pace),
            measure_from: Moment::default(),
            count_from: Moment::default(),
            is_warming: setup.plan.warmup > Nanos::ZERO,
            heads: Sizes::default(),
            bodies: Sizes::default(),
            under_way: 0,
            last_end: Moment::default(),
        };
        if ledger.is_warming {
            ledger.shard.warm_up();
        }
        Self {
            endpoints: setup.endpoints,
            tls: setup.tls,
            proxy: setup.proxy,
            quic: OnceCell::new(),
            proxy_quic: OnceCell::new(),
            share: setup.share,
            has_schedule: ledger.has_schedule,
            ledger: RefCell::new(ledger),
            end: Token::new(),
            is_ending: Cell::new(false),
            begun: Token::new(),
            blocked: Cell::default(),
            blocked_until: Cell::default(),
            late: Cell::default(),
            spun: Spun::default(),
            warming: RefCell::default(),
            // What a proxy leads here comes when it is read.
            rest: Rest::new(
                setup.plan.connecting.protocol == LoadProtocol::Http3
                    && setup.plan.tunnel.is_none(),
            ),
            stop: setup.stop,
            failure: Cell::default(),
            tracer: setup.tracer.map(RefCell::new),
            blocks: None,
            supply: setup.supply.map(|queue| Rc::new(Supply::new(queue))),
            listener: setup.listener,
            plan: setup.plan,
        }
    }

    /// One that sends `blocks`, from now on.
    pub(super) fn of_blocks(setup: Setup, blocks: Rc<Blocks>) -> Self {
        let worker = Self::new(setup);
        worker.begun.cancel();
        Self {
            blocks: Some(blocks),
            ..worker
        }
    }

    /// A pool for each endpoint, and its number of connections.
    fn pools(&self, share: Share) -> Vec<(Rc<Pool>, usize)> {
        let connecting = &self.plan.connecting;
        let weights: Vec<u32> = self.plan.endpoints.iter().map(|it| it.weight).collect();
        let counts = connections_of(connecting.connections, share, &weights);
        let pools = self.endpoints.iter().zip(counts).enumerate();
        let pools = pools.map(|(index, (endpoint, count))| {
            let requests = endpoint.requests.len();
            // Workers begin at different ones.
            let first = requests * usize::try_from(share.index()).unwrap_or(0)
                / usize::try_from(share.of()).unwrap_or(1).max(1);
            let slots = Slots::new(count, connecting.streams, connecting.reuse);
            let pool = Pool::new(index, requests, first, slots);
            (Rc::new(pool.supplied(self.supply.as_ref())), count)
        });
        pools.collect()
    }

    /// Waits until `start`, and lets everyone begin.
    async fn begin(
        &self,
        share: Share,
        pools: &[(Rc<Pool>, usize)],
        start: Moment,
    ) -> Result<(), PartError> {
        let plan = &self.plan;
        {
            let mut ledger = self.ledger.borrow_mut();
            ledger.measure_from = start;
            if ledger.is_warming {
                // What is due at its very end is the last of the warm-up, as what
                // is due at the end of the load is its last.
                ledger.measure_from = start + plan.warmup + Nanos::new(1);
                ledger.count_from = ledger.measure_from;
            }
        }
        self.blocked_until.set(start);
        let weights: Vec<u32> = plan.endpoints.iter().map(|it| it.weight).collect();
        let limits = Limits {
            requests: plan.until.requests,
            until: plan.until.duration.map(|duration| start + duration),
        };
        for ((pool, _), part) in pools.iter().zip(Part::split(share, &weights)) {
            let timing = match &plan.pace {
                LoadPace::Closed => Timing::Closed { part, taken: 0 },
                LoadPace::Open {
                    curve,
                    spacing,
                    overflow,
                } => Timing::Open {
                    arrivals: Arrivals::new(curve, *spacing, part, start, &plan.seed),
                    overflow: *overflow,
                },
            };
            pool.begin(timing, limits);
        }
        let mut timer = Timer::new()?;
        if let Some((pool, _)) = pools
            .first()
            .filter(|_| plan.first_request && self.has_schedule)
        {
            // By their schedule connections have nothing to send yet.
            self.begun.cancel();
            let at_most = start.max(clock::now() + CONNECTED_MAX);
            // All arms are cancel-safe: they wait and do nothing else.
            tokio::select! {
                () = pool.connected(self) => pool.send_early(self, start),
                () = timer.until(at_most) => {}
            }
        }
        timer.until(start).await;
        self.begun.cancel();
        Ok(())
    }

    /// How long after the start the connection in `slot` of `pool` is opened: they
    /// take turns, those of all workers and endpoints.
    pub(super) fn opens_after(&self, pool: &Pool, slot: usize) -> Nanos {
        let over = self.plan.connecting.over;
        if over == Nanos::ZERO {
            return over;
        }
        let all = self.plan.connecting.connections;
        let weights: Vec<u32> = self.plan.endpoints.iter().map(|it| it.weight).collect();
        let counts = connections_of(all, self.share, &weights);
        turn(over, &counts, pool.endpoint, slot, self.share)
    }

    /// Waits until the load begins; `None` where it never does.
    pub(super) async fn started(&self) -> Option<()> {
        self.end.run_until_cancelled(self.begun.cancelled()).await
    }

    /// Whether nothing new is to be begun.
    pub(super) fn is_ending(&self) -> bool {
        self.is_ending.get()
    }

    /// A request ended without an answer.
    pub(super) fn end_request(&self, ticket: Ticket, outcome: Outcome) {
        if let Some(blocks) = &self.blocks {
            return blocks.failed(ticket, outcome);
        }
        let mut ledger = self.ledger.borrow_mut();
        let is_end = ledger.failed(ticket.intended, outcome, clock::now());
        drop(ledger);
        self.ended(ticket);
        self.end_if(is_end);
    }

    /// A request was answered.
    pub(super) fn answered(&self, ticket: Ticket, answer: &Answer) {
        if let Some(blocks) = &self.blocks {
            return blocks.answered(ticket, answer);
        }
        if !self.has_schedule {
            self.rest.answered(answer.end.since(answer.sent));
        }
        let is_end = self.ledger.borrow_mut().answered(ticket, answer);
        self.ended(ticket);
        self.end_if(is_end);
    }

    /// A connection was opened.
    pub(super) fn connected(&self, endpoint: usize, slot: usize, opened: Opened) {
        let mut ledger = self.ledger.borrow_mut();
        ledger.shard.connections.add(1);
        let is_resumed = opened.handshake.is_some_and(|it| it.resumed);
        ledger.shard.handshakes_resumed.add(u64::from(is_resumed));
        if ledger.is_warming {
            self.warming.borrow_mut().insert((endpoint, slot), opened);
        } else {
            opened.record(&mut ledger);
        }
    }

    /// It is there no more.
    pub(super) fn parted(&self, endpoint: usize, slot: usize) {
        self.warming.borrow_mut().remove(&(endpoint, slot));
    }

    /// The warm-up is over, and was to be so at `from`.
    fn measure(&self, book: &Book, pools: &[(Rc<Pool>, usize)], from: Moment) {
        let mut ledger = self.ledger.borrow_mut();
        ledger.is_warming = false;
        let open = std::mem::take(&mut *self.warming.borrow_mut());
        let is_resumed = |it: &&Opened| it.handshake.is_some_and(|it| it.resumed);
        let resumed = open.values().filter(is_resumed).count();
        for opened in open.values() {
            opened.record(&mut ledger);
        }
        let shard = &ledger.shard;
        shard.run_delay.set(book.delayed().as_u64());
        shard.measure(asked(pools, from), open.len() as u64, resumed as u64);
        shard.warmup_cpu.set(clock::thread_cpu().as_u64());
    }

    /// What an answer says of itself, where it does.
    pub(super) fn origin(&self, ticket: Ticket, nanoseconds: Option<u64>) {
        if let Some(nanoseconds) = nanoseconds {
            self.ledger.borrow_mut().origin(ticket, nanoseconds);
        }
    }

    /// An answer that breaks the protocol; why is kept of the first one.
    pub(super) fn malformed(&self, why: &dyn std::error::Error) -> Outcome {
        let ledger = self.ledger.borrow();
        let trouble = &ledger.shard.answer_trouble;
        trouble.get_or_init(|| Trouble::plain(explain(why)));
        Outcome::Malformed
    }

    /// A read or a write that failed; what a server says of it by TLS is kept of
    /// the first one.
    pub(super) fn broken(&self, endpoint: usize, error: &std::io::Error) -> Outcome {
        let address = &self.endpoints[endpoint].address;
        if let Some(said) = HandshakeError::behind(address, error) {
            let ledger = self.ledger.borrow();
            ledger.shard.answer_trouble.get_or_init(|| Trouble {
                why: explain(&said),
                remedy: said.remedy(false),
            });
        }
        stream_outcome(error)
    }

    /// What the next request says of its trace, if anything.
    pub(super) fn next_trace(&self) -> Option<Trace> {
        let tracer = self.tracer.as_ref()?;
        Some(tracer.borrow_mut().next_trace())
    }

    /// A request has ended that said what `trace` does.
    pub(super) fn hand_over(&self, trace: Option<&Trace>, ended: impl FnOnce() -> Ended) {
        if let (Some(tracer), Some(trace)) = (&self.tracer, trace) {
            let ledger = self.ledger.borrow();
            tracer.borrow().hand_over(trace, &ended(), &ledger.shard);
        }
    }

    pub(super) fn end_if(&self, is_end: bool) {
        if is_end {
            self.finish();
            if !self.plan.until.by_worker {
                self.stop.cancel();
            }
        }
    }

    /// The block of `ticket` and where it is from, where blocks are sent.
    pub(super) fn block(&self, ticket: Ticket) -> Option<(&Blocks, (Rc<BlockSet>, Slice))> {
        let blocks = self.blocks.as_deref()?;
        Some((blocks, blocks.block(ticket)?))
    }

    /// How long the most urgent request to an endpoint may take.
    pub(super) fn patience(&self, endpoint: usize) -> Nanos {
        let requests = self.endpoints[endpoint].requests.iter();
        let deadlines = requests.filter_map(|request| request.call.as_ref()?.deadline);
        deadlines.fold(self.plan.timeout, Nanos::min)
    }

    /// The pacer begins to wait: until then, or for a connection.
    pub(super) fn suspend(&self, until: Option<Moment>) {
        if let Some(blocks) = &self.blocks {
            blocks.suspend(until);
        }
    }

    /// It waits no longer.
    pub(super) fn resume(&self, until: Option<Moment>) {
        if let Some(blocks) = &self.blocks {
            blocks.resume(until);
        }
    }

    /// Nothing new is to be begun.
    pub(super) fn finish(&self) {
        self.is_ending.set(true);
        self.end.cancel();
    }

    /// Ends the worker: it cannot do its work.
    pub(super) fn fail(&self, what: &'static str) {
        self.failure.set(Some(what));
        self.finish();
    }

    /// Ends what connections and schedules do, and wakes those that wait.
    /// Connections look at this: else they would go on for as long as the grace
    /// lasts.
    fn finish_all(&self, pools: &[(Rc<Pool>, usize)]) {
        self.finish();
        for (pool, _) in pools {
            pool.slots.borrow_mut().wake_all();
        }
        self.rest.wake();
    }

    /// Whether the load has lasted as long as it may.
    fn is_time_up(&self, start: Moment) -> bool {
        let duration = self.plan.until.duration;
        duration.is_some_and(|duration| clock::now() >= start + duration)
    }

    /// Nothing more is begun from now on.
    ///
    /// That it hears of it only now and then makes the load no longer: it lasted as
    /// long as it was to, or until the last of its requests had ended.
    fn stop(&self, book: &Book, pools: &[(Rc<Pool>, usize)], ending: Ending) {
        self.publish(book, pools);
        let ledger = self.ledger.borrow();
        let mut at = clock::now();
        if let Some(duration) = self.plan.until.duration {
            at = at.min(book.start + duration);
        }
        if ending == Ending::AllEnded {
            // One that had no request ended as it began.
            at = at.min(ledger.last_end.max(book.start));
        }
        let shard = &ledger.shard;
        shard.asked.set(asked(pools, at));
        shard.run_delay.set(book.delayed().as_u64());
        shard.stopped.set(at.as_u64());
    }

    /// What was due by then and never begun. All has ended: it may take a while.
    fn count_overdue(&self, pools: &[(Rc<Pool>, usize)]) {
        let ledger = self.ledger.borrow();
        let (from, at) = (ledger.count_from, ledger.shard.stopped.total());
        let overdue = pools
            .iter()
            .map(|(pool, _)| pool.overdue(from, Moment::new(at)));
        ledger.shard.overdue.set(overdue.sum());
    }

    fn publish(&self, book: &Book, pools: &[(Rc<Pool>, usize)]) {
        let mut ledger = self.ledger.borrow_mut();
        let now = clock::now();
        ledger.shard.asked.set(asked(pools, now));
        let elapsed = now.since(book.start);
        let cpu = clock::thread_cpu().saturating_sub(book.cpu).min(elapsed);
        // Turning round until something is due keeps nothing waiting.
        let running = cpu.saturating_sub(self.spun.length());
        let rest = elapsed.saturating_sub(running);
        let blocked = if self.has_schedule {
            self.blocked.get().min(rest)
        } else {
            rest
        };
        let late = self.late.get().min(rest.saturating_sub(blocked));
        let account = &ledger.shard.account;
        account.running.set(running.as_u64());
        account.blocked.set(blocked.as_u64());
        account.late.set(late.as_u64());
        let ahead = rest.saturating_sub(blocked).saturating_sub(late);
        account.ahead.set(ahead.as_u64());
        ledger.publish(false);
    }
}

/// Whether latency counts from the intended time: a schedule that waits for
/// answers has none that would say more than the sent time.
const fn has_response(pace: &LoadPace) -> bool {
    match pace {
        LoadPace::Closed => false,
        LoadPace::Open { overflow, .. } => !matches!(overflow, Overflow::Defer),
    }
}

/// How many requests `pools` were asked for until `now`.
fn asked(pools: &[(Rc<Pool>, usize)], now: Moment) -> u64 {
    let asked: f64 = pools.iter().map(|(pool, _)| pool.asked(now)).sum();
    floor_to_u64(asked)
}

/// The part of one worker of all connections, by endpoint; at least one each.
fn connections_of(connections: u32, share: Share, weights: &[u32]) -> Vec<usize> {
    let of_share = (connections / share.of()) + u32::from(share.index() < connections % share.of());
    let spare = u64::from(of_share).saturating_sub(weights.len() as u64);
    let total: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
    let even = |weight: &u32| spare * u64::from(*weight) / total.max(1);
    let left = spare - weights.iter().map(even).sum::<u64>();
    let counts = (0..).zip(weights).map(|(index, weight)| {
        // What does not divide goes to the first ones.
        1 + even(weight) + u64::from(index < left)
    });
    counts
        .map(|count| usize::try_from(count).unwrap_or(1))
        .collect()
}

/// When it is the turn of connection `slot` to `endpoint`, of as many as `counts`
/// says, where all are opened within `over` at even distances: the first one of
/// each endpoint, then the second, workers one behind the other.
fn turn(over: Nanos, counts: &[usize], endpoint: usize, slot: usize, share: Share) -> Nanos {
    let before = |(index, count): (usize, &usize)| {
        let is_ahead = index < endpoint && slot < *count;
        slot.min(*count) + usize::from(is_ahead)
    };
    let before: usize = counts.iter().enumerate().map(before).sum();
    let all = counts.iter().sum::<usize>().max(1);
    let position = before as u128 * u128::from(share.of()) + u128::from(share.index());
    let whole = all as u128 * u128::from(share.of());
    let nanos = u128::from(over.as_u64()) * position / whole;
    Nanos::new(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn for_all_connections_each_has_a_turn_of_its_own(
            weights in prop::collection::vec(1_u32..50, 1..4),
            workers in 1_u32..4,
            spare in 0_u32..40,
        ) {
            let connections = u32::try_from(weights.len()).unwrap() * workers + spare;
            let over = Nanos::from_secs(60);
            let mut turns = Vec::new();
            for share in Share::all(workers) {
                let counts = connections_of(connections, share, &weights);
                for (endpoint, count) in counts.iter().enumerate() {
                    turns.extend((0..*count).map(|slot| turn(over, &counts, endpoint, slot, share)));
                }
            }
            turns.sort_unstable();
            // Workers may differ by one connection, and their turns by as much.
            let even = over.as_u64() / u64::from(connections);
            prop_assert_eq!(turns[0], Nanos::ZERO);
            for (index, at) in (0..).zip(&turns) {
                let away = at.as_u64().abs_diff(index * even);
                prop_assert!(*at < over && away <= 3 * even * u64::from(workers), "{at} of {index}");
            }
        }

        #[test]
        fn for_all_weights_every_connection_has_its_place(
            weights in prop::collection::vec(1_u32..1000, 1..5),
            workers in 1_u32..5,
            spare in 0_u32..100,
        ) {
            let parts = u32::try_from(weights.len()).unwrap() * workers;
            let connections = parts + spare;
            let counts = Share::all(workers).map(|share| connections_of(connections, share, &weights));
            let counts: Vec<usize> = counts.flatten().collect();
            prop_assert!(counts.iter().all(|count| *count > 0));
            prop_assert_eq!(counts.iter().sum::<usize>(), connections as usize);
        }
    }
}
