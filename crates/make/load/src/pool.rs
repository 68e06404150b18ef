//! The connections of one worker to one endpoint, and its part of the schedule.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use stillwell_metric::{LoadTime, Outcome};
use stillwell_pacer::{Arrivals, Part};
use stillwell_plan::load::{IdleStrategy, Overflow};
use stillwell_scope::clock;
use stillwell_units::{Moment, Nanos};
use stillwell_wire::Timer;

use super::answer::HeadMemo;
use super::hold::Hold;
use super::recorder::{RequestRecorder, Take, Ticket};
use super::slots::Slots;
use super::spin::WorkDone;
use super::supply::{Supply, SupplyState};
use super::worker::{RequestSource, Worker};

/// A worker that spins sleeps until this long before the next send.
const SPIN: Nanos = Nanos::new(50_000);

/// Requests that were due before the end may begin within this time after it.
const LAST: Nanos = Nanos::from_millis(10);

/// A sleep that took no longer than this beyond its end was not late.
const OVERSLEPT_MIN: Nanos = Nanos::from_millis(1);

/// The connections of one worker to one endpoint, and its part of the schedule.
#[derive(Debug)]
pub(super) struct Pool {
    /// Index of the endpoint.
    pub(super) endpoint: usize,
    pub(super) slots: RefCell<Slots>,
    pub(super) memo: RefCell<HeadMemo>,
    timing: RefCell<Timing>,
    hold: RefCell<Option<Hold>>,
    /// Of a schedule that drops requests: the same from the first request on that may not wait
    /// any more.
    surplus: RefCell<Option<Arrivals>>,
    /// Delay of a schedule that waits for responses.
    deferred: Cell<Option<Nanos>>,
    /// True if the next request waits for a busy connection.
    waits: Cell<bool>,
    /// Moment since which it waits, and the end of the wait before it.
    pub(super) blocked_since: Cell<Option<Moment>>,
    pub(super) blocked_until: Cell<Moment>,
    limits: Cell<Limits>,
    requests: usize,
    next_request: Cell<usize>,
    source: RequestSource,
}

/// Decides when requests are taken.
#[derive(Debug)]
pub(super) enum Timing {
    /// The load has not begun.
    Before,
    /// Whenever a connection is free.
    Closed {
        part: Part,
        /// Number of requests taken.
        taken: u64,
    },
    /// By a schedule.
    Open {
        arrivals: Arrivals,
        overflow: Overflow,
    },
}

/// Limits after which a pool ends.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Limits {
    pub(super) requests: Option<u64>,
    pub(super) until: Option<Moment>,
}

impl Pool {
    /// A pool that begins with request number `first` of `requests`.
    pub(super) fn new(
        endpoint: usize,
        (requests, first): (usize, usize),
        slots: Slots,
        source: &RequestSource,
    ) -> Self {
        Self {
            endpoint,
            slots: RefCell::new(slots),
            memo: RefCell::default(),
            timing: RefCell::new(Timing::Before),
            hold: RefCell::default(),
            surplus: RefCell::default(),
            deferred: Cell::default(),
            waits: Cell::default(),
            blocked_since: Cell::default(),
            blocked_until: Cell::default(),
            limits: Cell::default(),
            requests,
            next_request: Cell::new(first),
            source: source.clone(),
        }
    }

    /// Starts to take requests.
    pub(super) fn begin(&self, timing: Timing, limits: Limits) {
        self.hold.replace(match &timing {
            Timing::Open {
                arrivals,
                overflow: Overflow::Hold { waiting_max },
            } => Some(Hold::new(arrivals.clone(), *waiting_max)),
            _ => None,
        });
        self.surplus.replace(match &timing {
            Timing::Open {
                arrivals,
                overflow: Overflow::Drop { waiting_max },
            } => {
                let mut surplus = arrivals.clone();
                surplus.skip(*waiting_max);
                Some(surplus)
            }
            _ => None,
        });
        let defers = |overflow: &Overflow| *overflow == Overflow::Defer;
        self.deferred.set(match &timing {
            Timing::Open { overflow, .. } => defers(overflow).then_some(Nanos::ZERO),
            Timing::Before | Timing::Closed { .. } => None,
        });
        self.timing.replace(timing);
        self.limits.set(limits);
    }

    /// Takes the next request if it is due.
    pub(super) fn take(&self, now: Moment) -> Take {
        if let RequestSource::Blocks(blocks) = &self.source {
            return blocks.take(now);
        }
        self.defer(now);
        let look = self.look(now);
        let Take::Now(mut ticket) = look else {
            return look;
        };
        let Some(request) = self.next_request() else {
            return Take::Starved;
        };
        ticket.request = request;
        match &mut *self.timing.borrow_mut() {
            Timing::Before => {}
            Timing::Closed { taken, .. } => *taken += 1,
            Timing::Open { arrivals, .. } => arrivals.advance(),
        }
        self.waits.set(false);
        if let Some(hold) = &mut *self.hold.borrow_mut() {
            hold.take(now);
        }
        if let Some(surplus) = &mut *self.surplus.borrow_mut() {
            surplus.advance();
        }
        Take::Now(ticket)
    }

    /// Takes the next request; `None` if the supply has none yet.
    fn next_request(&self) -> Option<usize> {
        if let Some(supply) = self.source.supply() {
            return supply.take();
        }
        let request = self.next_request.get();
        let next = request + 1;
        self.next_request
            .set(if next < self.requests { next } else { 0 });
        Some(request)
    }

    /// Takes the next request for a connection that was just answered, and records its wait: for the worker alone if
    /// another connection was free.
    pub(super) fn take_next(&self, worker: &Worker, now: Moment) -> Take {
        let is_any_free = self.slots.borrow().is_any_free();
        let take = self.take(now);
        if let Take::Now(ticket) = &take {
            let mut recorder = worker.recorder.borrow_mut();
            recorder.begin(ticket.intended);
            if !is_any_free {
                self.record_wait(&mut recorder, now);
            } else if worker.has_schedule {
                self.record_lateness(&mut recorder, ticket.intended, now);
            }
        }
        take
    }

    /// Records the lateness of a request that waited for no connection from `blocked_until` on.
    fn record_lateness(&self, recorder: &mut RequestRecorder, intended: Moment, now: Moment) {
        if intended >= recorder.measure_from {
            let waited_from = intended.max(self.blocked_until.get());
            recorder.record(LoadTime::GeneratorLateness, now.since(waited_from));
        }
    }

    fn record_wait(&self, recorder: &mut RequestRecorder, now: Moment) {
        if let Some(hold) = &*self.hold.borrow() {
            hold.record(recorder, now);
        }
    }

    /// Takes the due request for a free connection.
    fn take_free(&self, worker: &Worker, now: Moment) -> Option<Ticket> {
        let had_to_wait = self.waits.get();
        let Take::Now(ticket) = self.take(now) else {
            return None;
        };
        let mut recorder = worker.recorder.borrow_mut();
        recorder.begin(ticket.intended);
        // A connection was free all the time: no other request was in the way.
        self.record_lateness(&mut recorder, ticket.intended, now);
        if had_to_wait {
            self.record_wait(&mut recorder, now);
        }
        Some(ticket)
    }

    /// Takes the due request for the connection of `slot`, which is running, if the pacer
    /// would assign it to that slot. The pacer runs only after all tasks that are ready.
    pub(super) fn take_due(&self, worker: &Worker, slot: usize, now: Moment) -> Option<Ticket> {
        let is_due = worker.has_schedule && matches!(self.look(now), Take::Now(_));
        if !is_due || !self.slots.borrow().is_next(slot) {
            return None;
        }
        // Until it is taken the connection counts as free: nothing had to wait for it.
        let ticket = self.take_free(worker, now)?;
        self.slots.borrow_mut().take_next();
        Some(ticket)
    }

    /// Continues a schedule that waits for responses from `now`, if the next request had to
    /// wait.
    fn defer(&self, now: Moment) {
        let Some(deferred) = self.deferred.get() else {
            return;
        };
        // No other connection could have sent it.
        let had_to_wait = self.waits.get() || !self.slots.borrow().is_any_free();
        if let (true, Take::Now(ticket)) = (had_to_wait, self.look(now)) {
            self.deferred
                .set(Some(deferred + now.since(ticket.intended)));
        }
    }

    /// Returns the result of [`Pool::take`] without taking.
    pub(super) fn look(&self, now: Moment) -> Take {
        if let RequestSource::Blocks(blocks) = &self.source {
            return blocks.look(now);
        }
        let Limits { requests, until } = self.limits.get();
        let intended = match &*self.timing.borrow() {
            Timing::Before => return Take::Later(Moment::new(u64::MAX)),
            Timing::Closed { part, taken } => {
                let is_over = |limit: u64| part.number(*taken) >= limit;
                if requests.is_some_and(is_over) || until.is_some_and(|until| now >= until) {
                    return Take::Never;
                }
                now
            }
            Timing::Open { arrivals, .. } => {
                let due = arrivals.next_due() + self.deferred.get().unwrap_or(Nanos::ZERO);
                let is_late = |until: Moment| due > until || now >= until + LAST;
                let is_over = |limit: u64| arrivals.number() >= limit;
                if requests.is_some_and(is_over) || until.is_some_and(is_late) {
                    return Take::Never;
                }
                if now < due {
                    return Take::Later(due);
                }
                match self.source.supply().map(Supply::look) {
                    None | Some(SupplyState::Some) => due,
                    Some(SupplyState::None) => return Take::Starved,
                    Some(SupplyState::Over) => return Take::Never,
                }
            }
        };
        let request = self.next_request.get();
        Take::Now(Ticket {
            endpoint: self.endpoint,
            request,
            intended,
            sent: None,
        })
    }

    /// True if all requests were taken.
    pub(super) fn is_spent(&self) -> bool {
        let is_over = |supply: &Supply| supply.look() == SupplyState::Over;
        if self.source.supply().is_some_and(is_over) {
            return true;
        }
        let Some(limit) = self.limits.get().requests else {
            return false;
        };
        match &*self.timing.borrow() {
            Timing::Before => false,
            Timing::Closed { part, taken } => part.number(*taken) >= limit,
            Timing::Open { arrivals, .. } => arrivals.number() >= limit,
        }
    }

    /// Waits until a connection is free or all have failed.
    pub(super) async fn connected(&self, worker: &Worker) {
        poll_fn(|context: &mut Context<'_>| {
            let mut slots = self.slots.borrow_mut();
            if slots.is_any_free() || slots.outage().is_some() || worker.is_ending() {
                return Poll::Ready(());
            }
            slots.watch(context);
            Poll::Pending
        })
        .await;
    }

    /// Sends one request of the warm-up before the schedule begins at `start`.
    pub(super) fn send_early(&self, worker: &Worker, start: Moment) {
        let mut slots = self.slots.borrow_mut();
        let outage = slots.outage();
        if !slots.is_any_free() && outage.is_none() {
            return;
        }
        let Some(request) = self.early_request() else {
            return;
        };
        let ticket = Ticket {
            endpoint: self.endpoint,
            request,
            intended: clock::now().min(start - Nanos::new(1)),
            sent: None,
        };
        let is_sent = slots.offer(ticket);
        drop(slots);
        worker.recorder.borrow_mut().begin(ticket.intended);
        if let (false, Some(outcome)) = (is_sent, outage) {
            worker.end_request(ticket, outcome);
        }
    }

    /// Returns the first request of the schedule or of the supply.
    fn early_request(&self) -> Option<usize> {
        match self.source.supply() {
            None => Some(self.next_request.get()),
            Some(supply) => supply.take(),
        }
    }

    /// Number of requests that the schedule requested until `now`; 0 without a schedule.
    pub(super) fn requested(&self, now: Moment) -> f64 {
        match &*self.timing.borrow() {
            Timing::Before | Timing::Closed { .. } => 0.0,
            Timing::Open { arrivals, .. } => {
                let Limits { requests, until } = self.limits.get();
                let now = until.map_or(now, |until| until.min(now));
                arrivals.requested_until(now, requests)
            }
        }
    }

    /// Number of requests due from `from` to `now` and not taken; 0 without a schedule.
    pub(super) fn overdue(&self, from: Moment, now: Moment) -> u64 {
        match &*self.timing.borrow() {
            Timing::Before | Timing::Closed { .. } => 0,
            Timing::Open { arrivals, .. } => {
                let Limits { requests, until } = self.limits.get();
                let now = until.map_or(now, |until| until.min(now));
                arrivals.overdue(from, now, requests)
            }
        }
    }

    /// Time at which a request is dropped because no connection is free.
    fn drops_at(&self) -> Option<Moment> {
        self.surplus.borrow().as_ref().map(Arrivals::next_due)
    }
}

/// Assigns each request to a free connection when it is due.
pub(super) async fn pace(worker: Rc<Worker>, pool: Rc<Pool>) {
    let Ok(mut timer) = Timer::new() else {
        return worker.fail("cannot create a timer: the limit of open files may be too low");
    };
    loop {
        if worker.is_ending() {
            return;
        }
        let now = clock::now();
        match pool.look(now) {
            Take::Never => return,
            Take::Later(due) => {
                worker.suspend(Some(due));
                let asleep = worker
                    .end
                    .run_until_cancelled(sleep(&worker, &mut timer, due));
                if asleep.await.is_none() {
                    return;
                }
                worker.resume(Some(due));
                let now = clock::now();
                let late = now.since(due);
                // A connection that had the word may have sent it meanwhile.
                let still_due = matches!(
                    pool.look(now),
                    Take::Now(ticket) if ticket.intended <= due
                );
                if still_due && late > OVERSLEPT_MIN {
                    worker.late.set(worker.late.get() + late);
                }
            }
            Take::Starved => wait_for_supply(&worker, &pool, now).await,
            Take::Now(ticket) => {
                if !hand_out(&worker, &pool, ticket, now) {
                    worker.suspend(None);
                    wait_for_free(&worker, &pool, &mut timer).await;
                    worker.resume(None);
                }
            }
        }
    }
}

/// Assigns, fails or drops the due request; returns `false` if it has to wait.
fn hand_out(worker: &Worker, pool: &Pool, ticket: Ticket, now: Moment) -> bool {
    let outage = {
        let slots = pool.slots.borrow();
        if slots.is_any_free() {
            drop(slots);
            if let Some(ticket) = pool.take_free(worker, now) {
                pool.slots.borrow_mut().offer(ticket);
            }
            return true;
        }
        slots.outage()
    };
    let is_surplus = || pool.drops_at().is_some_and(|at| now >= at);
    let outcome = match outage {
        Some(outcome) => outcome,
        None if is_surplus() => Outcome::Dropped,
        None => return false,
    };
    let ticket = match pool.take(now) {
        Take::Now(Ticket { request, .. }) => Ticket { request, ..ticket },
        Take::Later(_) | Take::Starved | Take::Never => ticket,
    };
    worker.recorder.borrow_mut().begin(ticket.intended);
    worker.end_request(ticket, outcome);
    true
}

/// Waits for the supply: a request has been due since `since`. The schedule catches up
/// afterwards.
async fn wait_for_supply(worker: &Worker, pool: &Pool, since: Moment) {
    let Some(supply) = pool.source.supply() else {
        return;
    };
    worker.recorder.borrow().shard.source.waits.add(1);
    let is_there = worker.end.run_until_cancelled(supply.ready()).await;
    let now = clock::now();
    let waited = now.since(since);
    let mut recorder = worker.recorder.borrow_mut();
    recorder.shard.source.waited.add(waited.as_u64());
    if is_there.is_some() && since >= recorder.measure_from {
        recorder.record(LoadTime::Blocked, waited);
    }
    worker.blocked.set(worker.blocked.get() + waited);
    pool.blocked_until.set(now);
}

/// Waits until a connection is free, all have failed, or a request is dropped.
async fn wait_for_free(worker: &Worker, pool: &Pool, timer: &mut Timer) {
    let since = clock::now();
    pool.blocked_since.set(Some(since));
    let changed = pool.connected(worker);
    match pool.drops_at() {
        None => changed.await,
        // Both arms are cancel-safe: they wait and do nothing else.
        Some(at) => tokio::select! {
            () = changed => {}
            () = timer.until(at) => {}
        },
    }
    let now = clock::now();
    // A connection may have taken it meanwhile.
    pool.waits.set(matches!(pool.look(now), Take::Now(_)));
    worker.blocked.set(worker.blocked.get() + now.since(since));
    pool.blocked_since.set(None);
    pool.blocked_until.set(now);
}

async fn sleep(worker: &Worker, timer: &mut Timer, at: Moment) {
    if worker.client.idle == IdleStrategy::Sleep {
        return timer.until(at).await;
    }
    timer.until(at - SPIN).await;
    let done = || WorkDone::by(&worker.recorder.borrow().shard);
    let (mut now, mut before) = (clock::now(), done());
    while now < at {
        // Unlike a bare spin this lets sockets and other parts go on.
        tokio::task::yield_now().await;
        let (next, after) = (clock::now(), done());
        if before == after {
            worker.spin.add(now, next);
        }
        (now, before) = (next, after);
    }
}

/// An event for which a free connection waits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Offer {
    /// A request.
    Ticket(Ticket),
    /// The peer closed the connection or sent unexpected bytes.
    Lost,
    /// The worker ends.
    Ended,
}

impl Pool {
    /// Waits for a request for `slot`. `is_lost` polls whether its connection was closed.
    pub(super) async fn wait(
        &self,
        worker: &Worker,
        slot: usize,
        is_open: bool,
        mut is_lost: impl FnMut(&mut Context<'_>) -> bool,
    ) -> Offer {
        self.slots.borrow_mut().free(slot, is_open);
        poll_fn(|context| {
            let mut slots = self.slots.borrow_mut();
            if let Some(ticket) = slots.accept(slot, context) {
                return Poll::Ready(Offer::Ticket(ticket));
            }
            if worker.is_ending() {
                return Poll::Ready(Offer::Ended);
            }
            if is_lost(context) {
                slots.withdraw(slot);
                return Poll::Ready(Offer::Lost);
            }
            Poll::Pending
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use stillwell_pacer::Share;
    use stillwell_plan::RateShape;
    use stillwell_plan::load::{Reuse, Spacing};
    use stillwell_units::Seed;

    use super::*;

    /// A thousand requests a second over one connection, four in all.
    fn pool(overflow: Overflow) -> Pool {
        pool_of(1000.0, overflow, 4)
    }

    fn pool_of(per_second: f64, overflow: Overflow, requests: u64) -> Pool {
        let pool = Pool::new(
            0,
            (1, 0),
            Slots::new(1, 1, Reuse::Lru),
            &RequestSource::Plan,
        );
        let curve = RateShape::Constant { per_second };
        let part = Part::whole(Share::WHOLE);
        let seed = Seed::from_number(1);
        let arrivals = Arrivals::new(&curve, Spacing::Even, part, Moment::default(), &seed);
        let limits = Limits {
            requests: Some(requests),
            until: None,
        };
        pool.begin(Timing::Open { arrivals, overflow }, limits);
        pool
    }

    fn micros(count: u64) -> Moment {
        Moment::default() + Nanos::new(count * 1000)
    }

    /// When the requests are due that are taken at these times, or why not.
    fn due(pool: &Pool, at: &[u64]) -> Vec<Option<u64>> {
        let due = |now: &u64| match pool.take(micros(*now)) {
            Take::Now(ticket) => Some(ticket.intended.as_u64() / 1000),
            Take::Later(_) | Take::Starved | Take::Never => None,
        };
        at.iter().map(due).collect()
    }

    /// A pacer that wakes when the pool says sends one request at a time, each when it is
    /// due: no gap is shorter than in the schedule.
    #[test]
    fn requests_are_due_one_by_one_and_never_in_bunches() {
        for per_second in [800.0, 20_000.0] {
            let pool = pool_of(per_second, Overflow::Wait, 1000);
            let gap = 1e9 / per_second;
            let (mut now, mut sent) = (Moment::default(), Vec::new());
            loop {
                match pool.take(now) {
                    Take::Now(ticket) => {
                        assert_eq!(ticket.intended, now, "sent when it is due");
                        sent.push(now);
                    }
                    Take::Later(due) => {
                        assert!(due > now);
                        now = due;
                    }
                    Take::Starved | Take::Never => break,
                }
            }
            assert_eq!(sent.len(), 1000);
            for pair in sent.windows(2) {
                let length = stillwell_units::float_from_u64(pair[1].since(pair[0]).as_u64());
                assert!((length - gap).abs() <= 1.0, "{length} ns at {per_second}/s");
            }
        }
    }

    #[test]
    fn a_closed_loop_with_a_rate_let_requests_queue_up() {
        // The connection is busy for five milliseconds with the first one.
        let taken = [1000, 6000, 6500, 7000, 8000, 9000];
        let waited = due(&pool(Overflow::Wait), &taken);
        let queue = [Some(1000), Some(2000), Some(3000), Some(4000), None, None];
        assert_eq!(waited, queue, "an open loop catches up");
        let deferred = due(&pool(Overflow::Defer), &taken);
        let paced = [Some(1000), Some(6000), None, Some(7000), Some(8000), None];
        assert_eq!(deferred, paced, "it goes on at its rate");
    }

    /// A walk over all that may wait came before each request that was dropped.
    #[test]
    fn the_first_request_that_may_not_wait_moves_on_with_each_that_is_taken() {
        let dropping = |waiting_max| pool(Overflow::Drop { waiting_max });
        let (few, many) = (dropping(2), dropping(u64::from(u32::MAX)));
        for taken in 1..=3 {
            assert_eq!(few.drops_at(), Some(micros(1000 * (taken + 2))));
            assert_eq!(due(&few, &[1000 * taken]), [Some(1000 * taken)]);
        }
        assert_eq!(many.drops_at(), Some(micros(1000 << 32)));
        assert_eq!(pool(Overflow::Wait).drops_at(), None);
    }

    #[test]
    fn a_late_generator_makes_no_slower_closed_loop() {
        let pool = pool(Overflow::Defer);
        // Another connection is free: no request waits for an answer.
        pool.slots.borrow_mut().free(0, true);
        let taken = due(&pool, &[1300, 2300, 3300, 4300]);
        assert_eq!(taken, [Some(1000), Some(2000), Some(3000), Some(4000)]);
    }
}
