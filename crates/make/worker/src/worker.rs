//! One worker: its connections, and what they share.

mod left;
mod state;
mod waiting;

use std::cell::{Cell, RefCell};
use std::fmt::Debug;
use std::future::Future;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use stillwell_metric::GeneratorShard;
use stillwell_payload::BlockSet;
use stillwell_plan::RateUnit;
use stillwell_scope::{PartError, Tasks, Token, clock};
use stillwell_units::{Moment, Nanos};
use stillwell_wire::{DialError, Timer};
use tokio::sync::Mutex;
use tokio::time::sleep;

use crate::backoff::Backoff;
use crate::file_control::FileControl;
use crate::fresh::{Sets, Walk};
use crate::slice::{Most, Sending, Slice};
use crate::stamps::{Marks, SliceTimes, Stamping};
use left::Left;
use state::Next;
pub use state::{State, Wait};
use waiting::Waiting;
pub use waiting::watched;

/// Time that begun sends have to end after a stop, unless their plan gives more; and after
/// the end of the scope in any case.
pub const GRACE: Nanos = Nanos::SECOND;

/// Interval at which a waiting worker brings its shard up to date.
const BEAT: Nanos = Nanos::from_millis(100);

/// A worker that owns its CPU sleeps until this long before the next send, and
/// spins from there.
const SPIN: Nanos = Nanos::new(50_000);

/// Opens what a worker sends through. Shared by the workers of a generator.
pub trait Opener: Debug + Send + Sync {
    /// Time that begun sends have to end after a stop.
    fn grace(&self) -> Nanos {
        GRACE
    }

    /// The same after the end of the scope, where nothing else waits for it.
    fn grace_at_the_end(&self) -> Nanos {
        GRACE
    }

    /// Largest number of tasks for so many connections.
    fn tasks_of(&self, connections: u16) -> usize {
        connections.into()
    }

    /// Returns true if blocks that leave together are answered one by one.
    fn answers_blocks(&self) -> bool {
        false
    }

    /// Returns the control that moves or empties the log, if one is written.
    fn files(&self) -> Option<FileControl> {
        None
    }

    /// Starts the tasks of `connections` connections.
    fn open(&self, worker: &Rc<Worker>, connections: u16, tasks: &mut Tasks);
}

/// State that the connections of one worker share. All of them live on its thread.
#[derive(Debug)]
pub struct Worker {
    set: Rc<BlockSet>,
    /// Its blocks, first and later ones.
    pub sets: Sets,
    /// Its counters.
    pub shard: Arc<GeneratorShard>,
    /// Its schedule and its account of time.
    pub state: RefCell<State>,
    /// The stamps of events, if there are any.
    stamping: Option<Stamping>,
    /// Position of all connections that walk its sets together.
    walk: RefCell<Walk>,
    /// The next block, for those that send none and only want to know when.
    pub next: Cell<usize>,
    /// The task that holds it decides what is sent next; passed on in order of requests.
    turn: Mutex<Timer>,
    unit: RateUnit,
    reserved: bool,
    /// True if it sends in turns alone.
    pub takes_turns: bool,
    end: Token,
    /// Cancelled once it cannot go on.
    failed: Token,
    failure: RefCell<Option<PartError>>,
    /// Resources outside this process that the worker made and must remove.
    left: RefCell<Left>,
}

/// Runs a worker until `scope` or `stop` is cancelled; cancels `sent_all` once
/// there is nothing left to send.
pub(crate) async fn run(
    (sets, stamping): (Sets, Option<Stamping>),
    state: State,
    connections: u16,
    opener: Arc<dyn Opener>,
    (scope, stop, sent_all): (Token, Token, Token),
) -> Result<(), PartError> {
    let worker = Rc::new(Worker {
        set: Rc::clone(&sets.first),
        walk: RefCell::new(Walk::new(&sets)),
        sets,
        stamping,
        shard: Arc::clone(&state.shard),
        next: Cell::new(0),
        turn: Mutex::new(Timer::new()?),
        unit: state.unit,
        reserved: state.reserved,
        takes_turns: state.turns.is_some(),
        state: RefCell::new(state),
        end: Token::new(),
        failed: Token::new(),
        failure: RefCell::new(None),
        left: RefCell::default(),
    });
    let (grace, grace_at_the_end) = (opener.grace(), opener.grace_at_the_end());
    let mut tasks = Tasks::new(opener.tasks_of(connections));
    opener.open(&worker, connections, &mut tasks);
    loop {
        worker.state.borrow_mut().suspend(Wait::Other, clock::now());
        // All arms are cancel-safe: they wait and do nothing else.
        let is_over = tokio::select! {
            biased;
            () = scope.cancelled() => true,
            () = stop.cancelled() => true,
            () = worker.failed.cancelled() => true,
            () = sleep(BEAT.as_duration()) => false,
        };
        let now = clock::now();
        let mut state = worker.state.borrow_mut();
        state.resume(Wait::Other, now);
        state.publish(now);
        if state.is_done() {
            sent_all.cancel();
        }
        if is_over {
            state.stopped = true;
            break;
        }
    }
    worker.end.cancel();
    worker.state.borrow_mut().suspend(Wait::Other, clock::now());
    tokio::select! {
        () = tasks.all_ended() => {}
        () = sleep(grace.as_duration()) => {}
        () = after_the_end(&scope, grace_at_the_end) => {}
    }
    // What has not ended by now is cut; all that was written is counted.
    drop(tasks);
    let now = clock::now();
    let mut state = worker.state.borrow_mut();
    state.resume(Wait::Other, now);
    state.publish(now);
    state.flush();
    let failure = worker.failure.take();
    worker.left.take().at_the_end(failure)
}

/// Waits until the scope has ended and `grace` has passed.
async fn after_the_end(scope: &Token, grace: Nanos) {
    scope.cancelled().await;
    sleep(grace.as_duration()).await;
}

impl Worker {
    /// Waits for the turn and for something to be due, and takes it from the
    /// blocks at `next`, which are not sent: at most `bytes_max` bytes, or one
    /// block. `None` once the worker is to end.
    pub async fn next_slice(&self, next: &Cell<usize>, bytes_max: usize) -> Option<Slice> {
        self.next_with(|now| {
            let mut state = self.state.borrow_mut();
            taken(state.take(&self.set, next, bytes_max, now))
        })
        .await
    }

    /// The same for connections that walk its sets together, a block at a time;
    /// gives the set that the slice is of as well.
    pub async fn next_block(&self) -> Option<(Rc<BlockSet>, Slice)> {
        self.next_with(|now| self.take_block(now)).await
    }

    /// The same for a connection that walks by itself.
    pub async fn next_block_of(
        &self,
        walk: &mut Walk,
        most: Most,
    ) -> Option<(Rc<BlockSet>, Slice)> {
        self.next_with(|now| self.take_of(walk, most, now)).await
    }

    /// Waits for the turn, and until `take` gives something; its error says when to
    /// look again.
    async fn next_with<T>(&self, mut take: impl FnMut(Moment) -> Result<T, Moment>) -> Option<T> {
        self.publish_and_yield().await;
        let mut timer = match self.turn.try_lock() {
            Ok(timer) => timer,
            // The task that holds it gives it back at the end.
            Err(_) => self.wait(Wait::Other, self.turn.lock()).await,
        };
        loop {
            if self.is_ending() {
                return None;
            }
            match take(clock::now()) {
                Ok(what) => return Some(what),
                Err(at) => {
                    let asleep = self.end.run_until_cancelled(self.sleep(&mut timer, at));
                    self.wait(Wait::Schedule(at), asleep).await?;
                }
            }
        }
    }

    /// Takes the next block if it is due, with the set that it is of; else says when
    /// to look again.
    pub fn take_block(&self, now: Moment) -> Result<(Rc<BlockSet>, Slice), Moment> {
        self.take_of(&mut self.walk.borrow_mut(), 0.into(), now)
    }

    fn take_of(
        &self,
        walk: &mut Walk,
        most: Most,
        now: Moment,
    ) -> Result<(Rc<BlockSet>, Slice), Moment> {
        let set = Rc::clone(&walk.set);
        let slice = {
            let mut state = self.state.borrow_mut();
            taken(state.take(&set, &walk.next, most, now))?
        };
        walk.took(slice.first, slice.last, &self.sets, &self.shard);
        Ok((set, slice))
    }

    /// A part of the worker runs again.
    pub fn enter(&self, now: Moment) {
        self.state.borrow_mut().resume(Wait::Other, now);
    }

    /// It waits again. Brings the shard up to date where that is due.
    pub fn leave(&self, now: Moment) {
        let mut state = self.state.borrow_mut();
        if state.is_publish_due(now) {
            state.publish(now);
        }
        state.suspend(Wait::Other, now);
    }

    /// The unit of its schedule.
    pub const fn unit(&self) -> RateUnit {
        self.unit
    }

    /// Returns true if the worker owns its CPU.
    pub const fn is_reserved(&self) -> bool {
        self.reserved
    }

    /// It cannot go on, and ends; the first reason counts.
    pub fn fail(&self, reason: impl Into<PartError>) {
        self.failure
            .borrow_mut()
            .get_or_insert_with(|| reason.into());
        // Before the tasks run again, which would begin new sends.
        self.end.cancel();
        self.failed.cancel();
    }

    /// Notes `what` as left outside this process because of `why`; `remedy` removes it.
    pub fn left(&self, what: &str, remedy: &str, why: &str) {
        self.left.borrow_mut().keep(what, remedy, why);
    }

    /// Removes the note on `what`.
    pub fn not_left(&self, what: &str) {
        self.left.borrow_mut().drop(what);
    }

    /// Returns true once nothing new may begin.
    pub fn is_ending(&self) -> bool {
        self.end.is_cancelled()
    }

    /// `slice` of `set` on its way out.
    pub fn sending_of<'a>(&'a self, set: &'a BlockSet, slice: Slice) -> Sending<'a> {
        self.shard.requests.add(1);
        Sending::new(set, &self.shard, self.unit, slice)
    }

    /// Returns the stamps of events, if there are any.
    pub const fn stamping(&self) -> Option<&Stamping> {
        self.stamping.as_ref()
    }

    /// Marks `slices` taken slices as finished: they are sent and their results are known.
    pub fn finish_slices(&self, slices: u64) {
        let mut state = self.state.borrow_mut();
        state.unfinished = state.unfinished.saturating_sub(slices);
    }

    /// Adds `more` answers that a taken slice still needs, besides one.
    pub fn expect_answers(&self, more: u64) {
        self.state.borrow_mut().unfinished += more;
    }

    /// The marks of one more connection, if events are stamped.
    pub fn marks(&self) -> Option<Marks> {
        self.stamping.as_ref().and_then(Stamping::marks)
    }

    /// `slice` on its way out, marked with `marks` if there are any.
    pub fn sending_marked<'a>(
        &'a self,
        set: &'a BlockSet,
        slice: Slice,
        mut marks: Option<&'a mut Marks>,
    ) -> Sending<'a> {
        self.mark(set, slice, marks.as_deref_mut());
        self.sending_of_marked(set, slice, marks.map(|marks| &*marks))
    }

    /// `slice` on its way out again, after the connection that had it ended before the peer read it.
    pub fn sending_again<'a>(
        &'a self,
        set: &'a BlockSet,
        slice: Slice,
        mut marks: Option<&'a mut Marks>,
    ) -> Sending<'a> {
        self.mark(set, slice, marks.as_deref_mut());
        self.sending_again_of_marked(set, slice, marks.map(|marks| &*marks))
    }

    /// Marks `slice`, which is to leave next, with `marks` if there are any.
    pub fn mark(&self, set: &BlockSet, slice: Slice, marks: Option<&mut Marks>) {
        let Some((stamping, marks)) = self.stamping.as_ref().zip(marks) else {
            return;
        };
        let state = self.state.borrow();
        let times = SliceTimes {
            first: state.clock_time(slice.intended),
            last: state.clock_time(slice.intended_last),
            sent: clock::now(),
        };
        marks.fill(stamping, set, slice, times);
    }

    /// `slice` on its way out, which was marked with `marks` if there are any.
    pub fn sending_of_marked<'a>(
        &'a self,
        set: &'a BlockSet,
        slice: Slice,
        marks: Option<&'a Marks>,
    ) -> Sending<'a> {
        self.with_marks(self.sending_of(set, slice), marks)
    }

    /// The same, on its way out again: see [`Self::sending_again`].
    pub fn sending_again_of_marked<'a>(
        &'a self,
        set: &'a BlockSet,
        slice: Slice,
        marks: Option<&'a Marks>,
    ) -> Sending<'a> {
        let sending = Sending::new(set, &self.shard, self.unit, slice).repeated();
        self.with_marks(sending, marks)
    }

    fn with_marks<'a>(&'a self, sending: Sending<'a>, marks: Option<&'a Marks>) -> Sending<'a> {
        match self.stamping.as_ref().zip(marks) {
            Some((stamping, marks)) => sending.marked(marks.outgoing(stamping)),
            None => sending,
        }
    }

    /// A request begins whose bytes are not the payload's.
    pub fn begin_paced(&self) {
        self.shard.requests.add(1);
    }

    /// It is sent: one event, which is a block and a unit of the schedule.
    pub fn end_paced(&self) {
        self.end_exchange();
        self.shard.sent_units.add(1);
    }

    /// A request ended that is one of several of a unit of the schedule: one event, which is a
    /// block.
    pub fn end_exchange(&self) {
        self.shard.events.add(1);
        self.shard.blocks.add(1);
    }

    /// Dials until there is a connection; `None` once the worker is to end.
    pub async fn connect<C>(
        &self,
        backoff: &mut Backoff,
        dial: impl AsyncFn() -> Result<C, DialError>,
    ) -> Option<C> {
        loop {
            let dialled = self.end.run_until_cancelled(dial());
            match self.wait(Wait::Other, dialled).await? {
                Ok(connection) => {
                    self.shard.connections.add(1);
                    return Some(connection);
                }
                Err(error) => self.shard.count(error.outcome()),
            }
            self.pause(backoff).await?;
        }
    }

    /// Dials until there is a connection, also once the worker is to end: for what was begun. Its grace cuts this off.
    pub async fn connect_again<C>(
        &self,
        backoff: &mut Backoff,
        dial: impl AsyncFn() -> Result<C, DialError>,
    ) -> C {
        loop {
            self.wait(Wait::Other, sleep(backoff.pause().as_duration()))
                .await;
            match self.wait(Wait::Other, dial()).await {
                Ok(connection) => {
                    self.shard.connections.add(1);
                    return connection;
                }
                Err(error) => self.shard.count(error.outcome()),
            }
        }
    }

    /// Waits before the next attempt; `None` once the worker is to end.
    pub async fn pause(&self, backoff: &mut Backoff) -> Option<()> {
        let pause = sleep(backoff.pause().as_duration());
        self.wait(Wait::Other, self.end.run_until_cancelled(pause))
            .await
    }

    /// Waits for `what`; `None` where the worker is to end before.
    pub async fn unless_ending<F: Future>(&self, what: F) -> Option<F::Output> {
        self.end.run_until_cancelled(what).await
    }

    /// Waits for `writable`; but once the worker is to end only where a block
    /// has been begun.
    pub async fn room(
        &self,
        writable: impl Future<Output = io::Result<()>>,
        is_block_cut: bool,
    ) -> io::Result<()> {
        if is_block_cut {
            return writable.await;
        }
        let unless_ending = self.end.run_until_cancelled(writable);
        unless_ending.await.unwrap_or(Ok(()))
    }

    /// Waits for `what`, and accounts for the time, even where the waiting is given up.
    pub async fn wait<F: Future>(&self, wait: Wait, what: F) -> F::Output {
        let _waiting = Waiting::begin(self, wait);
        what.await
    }

    /// Brings the shard up to date where that is due, and lets the worker's
    /// other parts run, however busy this one is.
    async fn publish_and_yield(&self) {
        let now = clock::now();
        {
            let mut state = self.state.borrow_mut();
            if !state.is_publish_due(now) {
                return;
            }
            state.publish(now);
        }
        self.wait(Wait::Other, tokio::task::yield_now()).await;
    }

    async fn sleep(&self, timer: &mut Timer, at: Moment) {
        if !self.reserved {
            return timer.until(at).await;
        }
        timer.until(at - SPIN).await;
        while clock::now() < at {
            // Unlike a bare spin this lets sockets and other parts go on.
            tokio::task::yield_now().await;
        }
    }
}

/// Returns the slice, or the time of the next look as an error.
const fn taken(what: Next) -> Result<Slice, Moment> {
    match what {
        Next::Send(slice) => Ok(slice),
        Next::SleepUntil(at) => Err(at),
    }
}
