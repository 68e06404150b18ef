//! Blocks that were not sent before, built beside while others are sent.
//!
//! The worker's *first set* is built before the run. Once a connection has walked through it
//! (or all of a worker together, where they send requests), it goes on with *later sets*.
//! Each has its own seed and is much smaller; a thread of lowest priority builds one ahead.
//! If that thread does not keep up, the connection walks on through the first set, so no
//! connection waits for blocks. At a rate that leaves CPU time to build, nothing repeats; at
//! full speed no send is slower.

#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use stillwell_metric::GeneratorShard;
use stillwell_payload::{BlockSet, Seeds};
use stillwell_plan::PayloadPlan;
use stillwell_scope::{PartError, Token, clock};
use stillwell_units::{ByteSize, Nanos};

/// A later set is this much smaller than the first.
const PARTS: u64 = 64;
/// But it has room for so many of the largest blocks.
const BLOCKS_MIN: u64 = 4;

/// The lowest priority that a thread can have.
const NICE_LOWEST: i32 = 19;

/// The input from which later sets are built.
#[derive(Clone, Debug)]
pub(crate) struct Recipe {
    payload: PayloadPlan,
    seeds: Seeds,
    bytes: ByteSize,
}

impl Recipe {
    /// For a worker with `first`, a set of `cache`; `None` where that set repeats: the plan
    /// says so, or nothing new can be built, because events from files are sent unchanged.
    pub(crate) fn new(
        payload: &PayloadPlan,
        seeds: Seeds,
        cache: ByteSize,
        first: &BlockSet,
    ) -> Option<Self> {
        if payload.repeats || !payload.format.files().is_empty() {
            return None;
        }
        let room = payload.blocks.maximum().bytes().saturating_mul(BLOCKS_MIN);
        let bytes = (cache.bytes() / PARTS).max(room).min(cache.bytes());
        Some(Self {
            payload: payload.clone(),
            seeds: Seeds {
                after: first.ended(),
                exporter: first.exporter(),
                ..seeds
            },
            bytes: ByteSize::new(bytes),
        })
    }

    /// Later set number `pass`, from 1; the one before was the last to be built.
    fn build(&mut self, pass: u64) -> Result<BlockSet, stillwell_payload::BuildError> {
        let seeds = Seeds {
            worker: self.seeds.worker.derive("pass", pass),
            after: self.seeds.after.max(begin_of(&self.payload)),
            ..self.seeds
        };
        let set = BlockSet::build(&self.payload, self.bytes, seeds, None)?;
        self.seeds.after = set.ended();
        self.seeds.exporter = set.exporter();
        Ok(set)
    }
}

/// When events that are built now are to begin, where the plan says so.
pub(crate) fn begin_of(payload: &PayloadPlan) -> Option<Nanos> {
    payload.format.begins_now().then(clock::wall)
}

/// Both ends of the way from a builder to its worker. There is never more than one
/// set on it.
pub(crate) fn channel() -> (SyncSender<BlockSet>, Receiver<BlockSet>) {
    sync_channel(0)
}

/// Builds one set after another, each once the one before was taken. Ends when the receiver
/// is dropped or `token` is cancelled.
pub(crate) fn build(
    mut recipe: Recipe,
    hand_over: &SyncSender<BlockSet>,
    token: &Token,
) -> Result<(), PartError> {
    // Where it is not permitted the worker shares its CPU evenly.
    rustix::process::setpriority_process(None, NICE_LOWEST).unwrap_or_default();
    let mut pass = 1;
    while !token.is_cancelled() {
        if hand_over.send(recipe.build(pass)?).is_err() {
            break;
        }
        pass += 1;
    }
    Ok(())
}

/// The sets of one worker.
#[derive(Debug)]
pub struct Sets {
    pub(crate) first: Rc<BlockSet>,
    later: Option<Later>,
}

#[derive(Debug)]
struct Later {
    ready: Receiver<BlockSet>,
    /// The one taken last, and its number.
    newest: RefCell<Option<(u64, Rc<BlockSet>)>>,
}

impl Sets {
    /// The first set, and where later ones come from, if there are any.
    pub(crate) fn new(first: BlockSet, ready: Option<Receiver<BlockSet>>) -> Self {
        Self {
            first: Rc::new(first),
            later: ready.map(|ready| Later {
                ready,
                newest: RefCell::default(),
            }),
        }
    }

    /// A set later than number `pass`, if there is one; the first is number 0.
    fn after(&self, pass: u64) -> Option<(u64, Rc<BlockSet>)> {
        let later = self.later.as_ref()?;
        let mut newest = later.newest.borrow_mut();
        if let Some((number, set)) = newest.as_ref()
            && *number > pass
        {
            return Some((*number, Rc::clone(set)));
        }
        let set = Rc::new(later.ready.try_recv().ok()?);
        let number = newest.as_ref().map_or(0, |(number, _)| *number) + 1;
        *newest = Some((number, Rc::clone(&set)));
        Some((number, set))
    }
}

/// Position of one connection in its worker's sets, or of all that walk them together.
#[derive(Debug)]
pub struct Walk {
    pub(crate) set: Rc<BlockSet>,
    /// The next block of it.
    pub(crate) next: Cell<usize>,
    pass: u64,
    /// Next block of the first set, for the time without a later set.
    again: usize,
    is_again: bool,
}

impl Walk {
    /// At the beginning.
    #[must_use]
    pub fn new(sets: &Sets) -> Self {
        Self {
            set: Rc::clone(&sets.first),
            next: Cell::new(0),
            pass: 0,
            again: 0,
            is_again: false,
        }
    }

    /// The blocks up to `last` of the set under way were taken: goes on where the
    /// next ones are.
    pub(crate) fn took(&mut self, first: usize, last: usize, sets: &Sets, shard: &GeneratorShard) {
        if self.is_again {
            shard.blocks_again.add((last - first) as u64);
            self.again = self.next.get();
        }
        // The end of a set is followed by its beginning.
        let is_through = self.is_again || self.next.get() == 0;
        if sets.later.is_none() || !is_through {
            return;
        }
        match sets.after(self.pass) {
            Some((pass, set)) => {
                (self.pass, self.set, self.is_again) = (pass, set, false);
                self.next.set(0);
            }
            None if !self.is_again => {
                (self.set, self.is_again) = (Rc::clone(&sets.first), true);
                self.next.set(self.again);
            }
            None => {}
        }
    }
}
