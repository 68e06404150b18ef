//! One worker: its pools, and what they share.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use stillwell_metric::{LoadShard, Outcome, Recorder, Sizes};
use stillwell_pacer::{Arrivals, Part, Share};
use stillwell_plan::{LoadPace, LoadPlan, PredicatePlan};
use stillwell_scope::{PartError, Tasks, Token, clock};
use stillwell_units::{Moment, Nanos, floor_to_u64};
use stillwell_wire::Timer;
use stillwell_wire::tls::ClientTls;
use tokio::sync::{oneshot, watch};
use tokio::time::{sleep, timeout};

use super::blocks::Blocks;
use super::build::{Endpoint, Request};
use super::connection::{self, explain};
use super::ledger::{Answer, Ledger, Ticket, Watch};
use super::pool::{Limits, Pool, Take, Timing, pace};
use super::rest::{Rest, rest};
use super::slots::Slots;
use super::trace::{Ended, Trace, Tracer};

/// How often a worker brings its shard up to date and looks whether it is over.
const BEAT: Nanos = Nanos::from_millis(10);

/// So long the first request may wait for a connection where there is no time left
/// for that before the start.
const CONNECTED_MAX: Nanos = Nanos::from_millis(100);

/// What floats may lack of a whole request.
const ROUNDING: f64 = 1e-6;

/// What a worker is made of.
pub(super) struct Setup {
    pub(super) plan: Arc<LoadPlan>,
    pub(super) endpoints: Arc<[Endpoint]>,
    pub(super) tls: Option<ClientTls>,
    pub(super) share: Share,
    pub(super) shard: Arc<LoadShard>,
    /// Those of all workers.
    pub(super) shards: Vec<Arc<LoadShard>>,
    pub(super) recorders: Vec<Recorder>,
    pub(super) start: watch::Receiver<Option<Moment>>,
    pub(super) stop: Token,
    pub(super) tracer: Option<Tracer>,
}

/// What the pools of one worker share. All of them live on its thread.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) plan: Arc<LoadPlan>,
    pub(super) endpoints: Arc<[Endpoint]>,
    pub(super) tls: Option<ClientTls>,
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
    pub(super) rest: Rest,
    begun: Token,
    stop: Token,
    failure: Cell<Option<&'static str>>,
    tracer: Option<RefCell<Tracer>>,
    /// What is sent, where it is the blocks of a generator.
    pub(super) blocks: Option<Rc<Blocks>>,
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
    carry_on(&worker, &pools, &mut tasks, &book, [&scope, &stop]).await;
    worker.finish_all(&pools);
    worker
        .ledger
        .borrow()
        .shard
        .stopped
        .set(clock::now().as_u64());
    let grace = worker.plan.grace.as_duration();
    // What has not ended by then is cut, and counted so.
    drop(timeout(grace, tasks.all_ended()).await);
    drop(tasks);
    worker.ledger.borrow_mut().cut();
    worker.publish(&book, &pools, true);
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
) {
    loop {
        // All arms are cancel-safe: they wait and do nothing else.
        let is_asked = tokio::select! {
            biased;
            () = scope.cancelled() => true,
            () = stop.cancelled() => true,
            () = worker.end.cancelled() => true,
            () = sleep(BEAT.as_duration()) => false,
        };
        worker.publish(book, pools, false);
        if is_asked || worker.is_time_up(book.start) {
            return;
        }
        if worker.is_over(pools) {
            break;
        }
    }
    // Every request was taken. The load lasts until they are answered: else a few
    // slow ones would look like many fast ones.
    worker.finish_all(pools);
    let patience = worker
        .plan
        .until
        .requests
        .map_or(Nanos::ZERO, |_| worker.plan.timeout);
    let until = clock::now() + patience;
    loop {
        let is_ended = tokio::select! {
            biased;
            () = scope.cancelled() => true,
            () = stop.cancelled() => true,
            () = tasks.all_ended() => true,
            () = sleep(BEAT.as_duration()) => clock::now() >= until,
        };
        worker.publish(book, pools, false);
        if is_ended || worker.is_time_up(book.start) {
            return;
        }
    }
}

/// From when on time is accounted.
struct Book {
    start: Moment,
    /// CPU time before.
    cpu: Nanos,
    run_delay: Nanos,
}

/// How long the calling thread could have run and had no CPU; nothing where the
/// kernel does not say.
fn run_delay() -> Nanos {
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
            measure_from: Moment::default(),
            heads: Sizes::default(),
            bodies: Sizes::default(),
            under_way: 0,
        };
        Self {
            endpoints: setup.endpoints,
            tls: setup.tls,
            has_schedule: ledger.has_schedule,
            ledger: RefCell::new(ledger),
            end: Token::new(),
            is_ending: Cell::new(false),
            begun: Token::new(),
            blocked: Cell::default(),
            blocked_until: Cell::default(),
            late: Cell::default(),
            rest: Rest::default(),
            stop: setup.stop,
            failure: Cell::default(),
            tracer: setup.tracer.map(RefCell::new),
            blocks: None,
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
            (Rc::new(Pool::new(index, requests, first, slots)), count)
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
        self.ledger.borrow_mut().measure_from = start + plan.warmup;
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

    /// Waits until the load begins; `None` where it never does.
    pub(super) async fn started(&self) -> Option<()> {
        self.end.run_until_cancelled(self.begun.cancelled()).await
    }

    /// Whether nothing new is to be begun.
    pub(super) fn is_ending(&self) -> bool {
        self.is_ending.get()
    }

    /// A request ended without an answer.
    pub(super) fn end_request(&self, intended: Moment, outcome: Outcome) {
        if let Some(blocks) = &self.blocks {
            return blocks.failed(outcome);
        }
        let is_end = self.ledger.borrow_mut().end(intended, outcome);
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
        self.end_if(is_end);
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
        ledger.shard.answer_trouble.get_or_init(|| explain(why));
        Outcome::Malformed
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

    fn end_if(&self, is_end: bool) {
        if is_end {
            self.finish();
            if !self.plan.until.by_worker {
                self.stop.cancel();
            }
        }
    }

    /// What `ticket` asks an endpoint for.
    pub(super) fn request(&self, endpoint: usize, ticket: Ticket) -> &Request {
        match &self.blocks {
            Some(blocks) => &blocks.request,
            None => &self.endpoints[endpoint].requests[ticket.request],
        }
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

    /// Whether there is nothing more to send and nothing to wait for.
    fn is_over(&self, pools: &[(Rc<Pool>, usize)]) -> bool {
        let now = clock::now();
        let is_done = |(pool, _): &(Rc<Pool>, usize)| pool.look(now) == Take::Never;
        pools.iter().all(is_done)
    }

    fn publish(&self, book: &Book, pools: &[(Rc<Pool>, usize)], at_last: bool) {
        let mut ledger = self.ledger.borrow_mut();
        let now = clock::now();
        let asked: f64 = pools.iter().map(|(pool, _)| pool.asked(now)).sum();
        ledger.shard.asked.set(floor_to_u64(asked + ROUNDING));
        let elapsed = now.since(book.start);
        let running = clock::thread_cpu().saturating_sub(book.cpu).min(elapsed);
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
        if at_last {
            let delay = run_delay().saturating_sub(book.run_delay);
            ledger.shard.run_delay.set(delay.as_u64());
        }
        ledger.publish(at_last);
    }
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
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
