//! Runs a worker from its start to its end: pools, connections, pacers.

use std::num::NonZeroU64;
use std::rc::Rc;
use std::sync::Arc;

use rustix::thread::set_current_timer_slack;
use stillwell_pacer::{Arrivals, Part, Share};
use stillwell_plan::LoadPlan;
use stillwell_plan::load::LoadPace;
use stillwell_scope::{PartError, Tasks, Token, clock};
use stillwell_units::{Moment, Nanos, floor_to_u64};
use stillwell_wire::Timer;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::super::connection;
use super::super::pool::{Limits, Pool, Timing, pace};
use super::super::slots::Slots;
use super::super::usage::ThreadUsage;
use super::{ConnectionTimes, LoadSetup, Worker, WorkerSetup, connections_of};

/// Interval at which a worker publishes its counts and checks for its end.
const BEAT: Nanos = Nanos::from_millis(10);

/// Maximum wait of the first request for a connection, if the start is sooner.
const CONNECTED_MAX: Nanos = Nanos::from_millis(100);

/// Runs a worker until its time is up, its requests are done, or `scope` or the
/// stop token is cancelled.
pub(crate) async fn run(
    setup: WorkerSetup,
    load: LoadSetup,
    scope: Token,
) -> Result<(), PartError> {
    // The runtime looks at this future whenever any task is woken, so it waits for
    // one thing alone.
    let (sender, ended) = oneshot::channel();
    let mut tasks = Tasks::new(1);
    tasks.spawn(async move {
        // There is no receiver only if the worker itself is gone.
        drop(sender.send(run_worker(setup, load, scope).await));
    });
    let ended = ended.await;
    tasks.all_ended().await;
    ended.unwrap_or(Ok(()))
}

async fn run_worker(setup: WorkerSetup, load: LoadSetup, scope: Token) -> Result<(), PartError> {
    let (share, stop) = (load.share, load.stop.clone());
    let mut start = load.start.clone();
    let plan = Arc::clone(&load.plan);
    let worker = Rc::new(Worker::of_load(setup, load));
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
    worker.begin(&plan, share, &pools, start).await?;
    if worker.has_schedule {
        for (pool, _) in &pools {
            tasks.spawn(pace(Rc::clone(&worker), Rc::clone(pool)));
        }
    } else {
        tasks.spawn(coalesce(Rc::clone(&worker)));
    }
    let baseline = TimeBaseline {
        start,
        cpu: clock::thread_cpu(),
        run_delay: ThreadUsage::now().delay,
    };
    let ending = run_until_end(
        &worker,
        &plan,
        &pools,
        &mut tasks,
        &baseline,
        [&scope, &stop],
    )
    .await?;
    worker.finish_all(&pools);
    // Requests of the schedule and work from here on are no part of the measured time.
    worker.stop(plan.until.duration, &baseline, &pools, ending);
    // What has not ended by then is cut, and counted so.
    let ended = scope.run_until_cancelled(tasks.all_ended());
    drop(timeout(plan.grace.as_duration(), ended).await);
    drop(tasks);
    worker.recorder.borrow_mut().cut();
    worker.count_overdue(&pools);
    worker.recorder.borrow_mut().publish(true);
    worker.failure.get().map_or(Ok(()), |what| Err(what.into()))
}

/// Waits for the end of the load: cancellation, its duration, or the last response.
async fn run_until_end(
    worker: &Worker,
    plan: &LoadPlan,
    pools: &[(Rc<Pool>, usize)],
    tasks: &mut Tasks,
    baseline: &TimeBaseline,
    [scope, stop]: [&Token; 2],
) -> Result<WorkerEnd, PartError> {
    let end = plan
        .until
        .duration
        .map(|duration| baseline.start + duration);
    let is_time_up = || end.is_some_and(|end| clock::now() >= end);
    let measure_from = baseline.start + plan.warmup;
    let mut timer = Timer::new()?;
    loop {
        let is_warming = worker.recorder.borrow().is_warming;
        // All arms are cancel-safe: they wait and do nothing else.
        let is_requested = tokio::select! {
            biased;
            () = scope.cancelled() => true,
            () = stop.cancelled() => true,
            () = worker.end.cancelled() => true,
            () = timer.until(measure_from), if is_warming => false,
            () = sleep(BEAT.as_duration()) => false,
        };
        worker.publish(baseline, pools);
        if is_warming && clock::now() >= measure_from {
            worker.measure(baseline, pools, measure_from);
        }
        if is_requested || is_time_up() {
            return Ok(WorkerEnd::Requested);
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
    let until = clock::now() + worker.client.timeout;
    loop {
        let ending = tokio::select! {
            biased;
            () = scope.cancelled() => Some(WorkerEnd::Requested),
            () = stop.cancelled() => Some(WorkerEnd::Requested),
            () = tasks.all_ended() => Some(WorkerEnd::AllEnded),
            () = sleep(BEAT.as_duration()) => (clock::now() >= until).then_some(WorkerEnd::Requested),
        };
        worker.publish(baseline, pools);
        if let Some(ending) = ending {
            return Ok(ending);
        }
        if is_time_up() {
            return Ok(WorkerEnd::Requested);
        }
    }
}

/// The reason why a worker begins no more requests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum WorkerEnd {
    /// Its time was up, or it was cancelled.
    Requested,
    /// All requests have ended.
    AllEnded,
}

/// Values at the start of the accounted time.
struct TimeBaseline {
    start: Moment,
    /// CPU time before the start.
    cpu: Nanos,
    run_delay: Nanos,
}

impl TimeBaseline {
    /// Time since the start in which the worker was runnable without a CPU.
    fn delayed(&self) -> Nanos {
        ThreadUsage::now().delay.saturating_sub(self.run_delay)
    }
}

/// Coalesces responses until the worker ends. Runs after all tasks of the worker that
/// were ready when a response came.
async fn coalesce(worker: Rc<Worker>) {
    // If the kernel refuses, pauses are too long and therefore rare.
    set_current_timer_slack(Some(NonZeroU64::MIN)).unwrap_or_default();
    loop {
        worker.coalescer.answer(|| worker.is_ending()).await;
        if worker.is_ending() {
            return;
        }
        let in_flight = worker.recorder.borrow().in_flight;
        if let Some(length) = worker.coalescer.length(in_flight) {
            worker.coalescer.sleep(length);
            let now = clock::now();
            if worker.coalescer.is_to_look(now) {
                worker.coalescer.look(now, ThreadUsage::now().delay);
            }
        }
    }
}

impl Worker {
    /// Returns a pool for each endpoint with its number of connections.
    fn pools(&self, share: Share) -> Vec<(Rc<Pool>, usize)> {
        let connecting = &self.client.connecting;
        let counts = connections_of(connecting.connections, share, &self.weights());
        let pools = self.endpoints.iter().zip(counts).enumerate();
        let pools = pools.map(|(index, (endpoint, count))| {
            let requests = endpoint.requests.len();
            // Workers begin at different ones.
            let first = requests * usize::try_from(share.index()).unwrap_or(0)
                / usize::try_from(share.of()).unwrap_or(1).max(1);
            let slots = Slots::new(count, connecting.streams, connecting.reuse);
            let pool = Pool::new(index, (requests, first), slots, &self.source);
            (Rc::new(pool), count)
        });
        pools.collect()
    }

    /// Waits until `start`, then releases pools and connections.
    async fn begin(
        &self,
        plan: &LoadPlan,
        share: Share,
        pools: &[(Rc<Pool>, usize)],
        start: Moment,
    ) -> Result<(), PartError> {
        {
            let mut recorder = self.recorder.borrow_mut();
            recorder.measure_from = start;
            if recorder.is_warming {
                // What is due at its very end is the last of the warm-up, as what
                // is due at the end of the load is its last.
                recorder.measure_from = start + plan.warmup + Nanos::new(1);
                recorder.count_from = recorder.measure_from;
            }
        }
        let limits = Limits {
            requests: plan.until.requests,
            until: plan.until.duration.map(|duration| start + duration),
        };
        for ((pool, _), part) in pools.iter().zip(Part::split(share, &self.weights())) {
            pool.blocked_until.set(start);
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

    /// Ends the warm-up, which was due to end at `from`.
    fn measure(&self, baseline: &TimeBaseline, pools: &[(Rc<Pool>, usize)], from: Moment) {
        let mut recorder = self.recorder.borrow_mut();
        recorder.is_warming = false;
        let open = std::mem::take(&mut *self.warming.borrow_mut());
        let is_resumed =
            |times: &&ConnectionTimes| times.handshake.is_some_and(|times| times.resumed);
        let resumed = open.values().filter(is_resumed).count();
        for opened in open.values() {
            opened.record(&mut recorder);
        }
        let shard = &recorder.shard;
        shard.run_delay.set(baseline.delayed().as_u64());
        shard.measure(requested(pools, from), open.len() as u64, resumed as u64);
        shard.warmup_cpu.set(clock::thread_cpu().as_u64());
    }

    /// Stops pools and wakes all waiting tasks. Otherwise connections would run until the
    /// end of the grace period.
    fn finish_all(&self, pools: &[(Rc<Pool>, usize)]) {
        self.finish();
        for (pool, _) in pools {
            pool.slots.borrow_mut().wake_all();
        }
        self.coalescer.wake();
    }

    /// Records the end of the load, which may last for `duration`.
    ///
    /// The end is the planned one, or that of the last request, even if the worker notices
    /// it later.
    fn stop(
        &self,
        duration: Option<Nanos>,
        baseline: &TimeBaseline,
        pools: &[(Rc<Pool>, usize)],
        ending: WorkerEnd,
    ) {
        self.publish(baseline, pools);
        let recorder = self.recorder.borrow();
        let mut at = clock::now();
        if let Some(duration) = duration {
            at = at.min(baseline.start + duration);
        }
        if ending == WorkerEnd::AllEnded {
            // One that had no request ended as it began.
            at = at.min(recorder.last_end.max(baseline.start));
        }
        let shard = &recorder.shard;
        shard.requested.set(requested(pools, at));
        shard.run_delay.set(baseline.delayed().as_u64());
        shard.stopped.set(at.as_u64());
    }

    /// Counts the requests that were due before the end and never begun.
    fn count_overdue(&self, pools: &[(Rc<Pool>, usize)]) {
        let recorder = self.recorder.borrow();
        let (from, at) = (recorder.count_from, recorder.shard.stopped.total());
        let overdue = pools
            .iter()
            .map(|(pool, _)| pool.overdue(from, Moment::new(at)));
        recorder.shard.overdue.set(overdue.sum());
    }

    fn publish(&self, baseline: &TimeBaseline, pools: &[(Rc<Pool>, usize)]) {
        let mut recorder = self.recorder.borrow_mut();
        let now = clock::now();
        recorder.shard.requested.set(requested(pools, now));
        let elapsed = now.since(baseline.start);
        let cpu = clock::thread_cpu()
            .saturating_sub(baseline.cpu)
            .min(elapsed);
        // Turning round until something is due keeps nothing waiting.
        let running = cpu.saturating_sub(self.spin.length());
        let rest = elapsed.saturating_sub(running);
        let blocked = if self.has_schedule {
            // A wait that has not ended counts already.
            let waits = pools
                .iter()
                .filter_map(|(pool, _)| pool.blocked_since.get());
            let waiting = waits.map(|since| now.since(since)).max();
            (self.blocked.get() + waiting.unwrap_or_default()).min(rest)
        } else {
            rest
        };
        let late = self.late.get().min(rest.saturating_sub(blocked));
        let account = &recorder.shard.account;
        account.running.set(running.as_u64());
        account.blocked.set(blocked.as_u64());
        account.late.set(late.as_u64());
        let idle = rest.saturating_sub(blocked).saturating_sub(late);
        account.idle.set(idle.as_u64());
        recorder.publish(false);
    }
}

/// Number of requests that the schedules of `pools` requested until `now`.
fn requested(pools: &[(Rc<Pool>, usize)], now: Moment) -> u64 {
    let sum: f64 = pools.iter().map(|(pool, _)| pool.requested(now)).sum();
    floor_to_u64(sum)
}
