//! One worker: its connections, and what they share.

mod state;

use std::cell::{Cell, RefCell};
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
use crate::slice::{Sending, Slice};
use crate::transport::Line;
use state::Next;
pub(crate) use state::{State, Wait};

/// How long what was begun may take to end after a stop.
pub const GRACE: Nanos = Nanos::SECOND;

/// How often a worker that waits brings its shard up to date.
const BEAT: Nanos = Nanos::from_millis(100);

/// A worker that owns its CPU sleeps until this long before the next send, and
/// spins from there.
const SPIN: Nanos = Nanos::new(50_000);

/// What the connections of one worker share. All of them live on its thread.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) set: BlockSet,
    pub(crate) shard: Arc<GeneratorShard>,
    pub(crate) state: RefCell<State>,
    /// The next block, where all connections walk the set together.
    pub(crate) next: Cell<usize>,
    /// Who holds it decides what is sent next; passed on in order of asking.
    turn: Mutex<Timer>,
    unit: RateUnit,
    reserved: bool,
    pub(crate) takes_turns: bool,
    end: Token,
}

/// Runs a worker until `scope` or `stop` is cancelled.
pub(crate) async fn run(
    set: BlockSet,
    state: State,
    connections: u16,
    line: Line,
    scope: Token,
    stop: Token,
) -> Result<(), PartError> {
    let worker = Rc::new(Worker {
        set,
        shard: Arc::clone(&state.shard),
        next: Cell::new(0),
        turn: Mutex::new(Timer::new()?),
        unit: state.unit,
        reserved: state.reserved,
        takes_turns: state.turns.is_some(),
        state: RefCell::new(state),
        end: Token::new(),
    });
    let mut tasks = Tasks::new(usize::from(connections));
    line.open(&worker, connections, &mut tasks);
    loop {
        worker.state.borrow_mut().suspend(Wait::Other, clock::now());
        // All arms are cancel-safe: they wait and do nothing else.
        let is_over = tokio::select! {
            biased;
            () = scope.cancelled() => true,
            () = stop.cancelled() => true,
            () = sleep(BEAT.as_duration()) => false,
        };
        let now = clock::now();
        let mut state = worker.state.borrow_mut();
        state.resume(Wait::Other, now);
        state.publish(now);
        if is_over {
            state.stopped = true;
            break;
        }
    }
    worker.end.cancel();
    worker.state.borrow_mut().suspend(Wait::Other, clock::now());
    tokio::select! {
        () = tasks.all_ended() => {}
        () = sleep(GRACE.as_duration()) => {}
    }
    // What has not ended by now is cut; all that was written is counted.
    drop(tasks);
    let now = clock::now();
    let mut state = worker.state.borrow_mut();
    state.resume(Wait::Other, now);
    state.publish(now);
    state.flush();
    Ok(())
}

impl Worker {
    /// Waits for the turn and for something to be due, and takes it from the
    /// blocks at `next`: at most `bytes_max` bytes, or one block. `None` once
    /// the worker is to end.
    pub(crate) async fn ask(&self, next: &Cell<usize>, bytes_max: usize) -> Option<Slice> {
        self.breathe().await;
        let mut timer = match self.turn.try_lock() {
            Ok(timer) => timer,
            // Whoever holds it gives it back at the end.
            Err(_) => self.wait(Wait::Other, self.turn.lock()).await,
        };
        loop {
            if self.is_ending() {
                return None;
            }
            let now = clock::now();
            let what = self
                .state
                .borrow_mut()
                .take(&self.set, next, bytes_max, now);
            match what {
                Next::Send(slice) => return Some(slice),
                Next::SleepUntil(at) => {
                    let asleep = self.end.run_until_cancelled(self.sleep(&mut timer, at));
                    self.wait(Wait::Schedule(at), asleep).await?;
                }
            }
        }
    }

    /// Whether nothing new is to be begun.
    pub(crate) fn is_ending(&self) -> bool {
        self.end.is_cancelled()
    }

    /// `slice` on its way out.
    pub(crate) fn sending(&self, slice: Slice) -> Sending<'_> {
        self.shard.requests.add(1);
        Sending::new(&self.set, &self.shard, self.unit, slice)
    }

    /// Dials until there is a connection; `None` once the worker is to end.
    pub(crate) async fn connect<C>(
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

    /// Waits before the next attempt; `None` once the worker is to end.
    pub(crate) async fn pause(&self, backoff: &mut Backoff) -> Option<()> {
        let pause = sleep(backoff.pause().as_duration());
        self.wait(Wait::Other, self.end.run_until_cancelled(pause))
            .await
    }

    /// Waits for `writable`; but once the worker is to end only where a block
    /// has been begun.
    pub(crate) async fn room(
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

    /// Waits for `what`, and accounts for the time.
    pub(crate) async fn wait<F: Future>(&self, wait: Wait, what: F) -> F::Output {
        self.state.borrow_mut().suspend(wait, clock::now());
        let output = what.await;
        self.state.borrow_mut().resume(wait, clock::now());
        output
    }

    /// Brings the shard up to date where that is due, and lets the worker's
    /// other parts run, however busy this one is.
    async fn breathe(&self) {
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
