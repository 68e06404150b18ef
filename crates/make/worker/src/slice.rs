//! Neighbouring blocks that leave together, and how far they have left.

#[cfg(test)]
mod tests;

use std::cell::Cell;

use stillwell_metric::GeneratorShard;
use stillwell_payload::{Block, BlockSet};
use stillwell_plan::RateUnit;
use stillwell_units::{Moment, as_usize};

use crate::stamps::{Begun, Outgoing, StampText, between};

/// The blocks `first` to `last` - 1 of a set, due together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Slice {
    /// The first block.
    pub first: usize,
    /// One beyond the last block.
    pub last: usize,
    /// The intended time of the first block, in the worker's own time.
    pub intended: Moment,
    /// The intended time of the last block, where it is needed.
    pub intended_last: Moment,
}

impl Slice {
    /// Size of the slice in bytes.
    pub fn bytes_len(&self, set: &BlockSet) -> usize {
        set.run(self.first, self.last).bytes.len()
    }
}

/// The most that may leave together; one block always may.
#[derive(Clone, Copy, Debug)]
pub struct Most {
    /// Bytes.
    pub bytes: usize,
    /// Blocks.
    pub blocks: usize,
}

impl From<usize> for Most {
    /// So many bytes, in any number of blocks.
    fn from(bytes: usize) -> Self {
        let blocks = usize::MAX;
        Self { bytes, blocks }
    }
}

/// The most that may leave together now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    pub(crate) most: Most,
    /// Blocks before which this many units or more come are not due.
    pub(crate) due: u64,
    pub(crate) unit: RateUnit,
}

/// One beyond the last block that is within `reach` when taking begins at
/// `first`; at least `first` + 1, at most the end of the set.
pub(crate) fn last_within(set: &BlockSet, first: usize, reach: Reach) -> usize {
    let is_within = |last: usize| {
        last - first <= reach.most.blocks
            && set.run(first, last).bytes.len() <= reach.most.bytes
            && units(set, first, last - 1, reach.unit) < reach.due
    };
    // Mostly one or two blocks are due: look at the near ones first.
    let (mut within, mut step) = (first + 1, 1);
    while within + step <= set.len() && is_within(within + step) {
        within += step;
        step *= 2;
    }
    let mut beyond = (within + step).min(set.len() + 1);
    while beyond - within > 1 {
        let middle = within.midpoint(beyond);
        if is_within(middle) {
            within = middle;
        } else {
            beyond = middle;
        }
    }
    within
}

/// Number of `unit` in the blocks `first` to `last` - 1.
pub fn units(set: &BlockSet, first: usize, last: usize, unit: RateUnit) -> u64 {
    let counts = set.run(first, last).counts();
    match unit {
        RateUnit::Bytes => counts.bytes,
        RateUnit::Events => counts.events,
        RateUnit::Blocks => (last - first) as u64,
    }
}

/// Moves `next` beyond `last`, back to the first block after the end.
pub(crate) fn pass(set: &BlockSet, next: &Cell<usize>, last: usize) {
    next.set(if last < set.len() { last } else { 0 });
}

/// A slice on its way out. What the kernel has taken is counted at once, so
/// nothing is lost to the counts wherever the sending ends.
#[derive(Debug)]
pub struct Sending<'a> {
    set: &'a BlockSet,
    shard: &'a GeneratorShard,
    unit: RateUnit,
    slice: Slice,
    run: Block<'a>,
    /// The bytes to send: the run, or a copy of it with stamps.
    bytes: &'a [u8],
    /// The stamp for the header of its request, if it has one.
    header: Option<&'a StampText>,
    /// The counter of events that were begun, if there is one.
    begun: Option<Begun<'a>>,
    /// It was sent before, on a connection that ended, and counts once.
    is_repeated: bool,
    written: usize,
    events: u64,
    blocks: u64,
}

impl<'a> Sending<'a> {
    pub(crate) fn new(
        set: &'a BlockSet,
        shard: &'a GeneratorShard,
        unit: RateUnit,
        slice: Slice,
    ) -> Self {
        let run = set.run(slice.first, slice.last);
        Self {
            set,
            shard,
            unit,
            slice,
            run,
            bytes: run.bytes,
            header: None,
            begun: None,
            is_repeated: false,
            written: 0,
            events: 0,
            blocks: 0,
        }
    }

    /// The same, sent before on a connection that ended: it is not counted again.
    pub(crate) fn repeated(self) -> Self {
        Self {
            is_repeated: true,
            ..self
        }
    }

    /// The same, marked: a copy leaves in place of the blocks, or a header before them.
    pub(crate) fn marked(self, outgoing: Outgoing<'a>) -> Self {
        let bytes = outgoing.copy.unwrap_or(self.bytes);
        debug_assert_eq!(bytes.len(), self.bytes.len(), "a copy is as long");
        Self {
            bytes,
            header: outgoing.header,
            begun: Some(outgoing.begun),
            ..self
        }
    }

    /// Returns the stamp for the header of its request, if it has one.
    pub const fn header(&self) -> Option<&'a StampText> {
        self.header
    }

    /// Returns the bytes still to be written; empty at the end.
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.written..]
    }

    /// The kernel has taken `bytes` more.
    pub fn wrote(&mut self, bytes: usize) {
        self.wrote_of(bytes, bytes);
    }

    /// The kernel has taken the copy of `bytes` more, of which only `sent` were to leave.
    pub fn wrote_of(&mut self, bytes: usize, sent: usize) {
        self.written += bytes;
        let events = u64::from(self.run.events_within(self.written));
        let blocks = (self.whole_until() - self.slice.first) as u64;
        let (new_events, new_blocks) = (events - self.events, blocks - self.blocks);
        (self.events, self.blocks) = (events, blocks);
        if let Some(begun) = &self.begun
            && let Some(last) = self.written.checked_sub(1)
        {
            // Those that ended before the last byte, and the one that has it.
            begun.set(u64::from(self.run.events_within(last)) + 1);
        }
        if self.is_repeated {
            return;
        }
        if new_blocks > 0 {
            let whole = self.whole_until();
            let run = self.set.run(whole - as_usize(new_blocks), whole);
            self.shard.units.add(run.counts().units);
        }
        self.shard.bytes.add(sent as u64);
        self.shard.events.add(new_events);
        self.shard.blocks.add(new_blocks);
        self.shard.sent_units.add(match self.unit {
            RateUnit::Bytes => bytes as u64,
            RateUnit::Events => new_events,
            RateUnit::Blocks => new_blocks,
        });
    }

    /// Gives up the remaining bytes: an event that is not whole was not sent.
    pub fn give_up(&self) {
        if let Some(begun) = &self.begun {
            begun.set(self.events);
        }
    }

    /// Leaves out every block of which nothing has been written yet.
    pub fn stop_at_block_end(&mut self) {
        let last = self.first_untouched();
        self.slice.last = last;
        self.run = self.set.run(self.slice.first, last);
        self.bytes = &self.bytes[..self.run.bytes.len()];
    }

    /// The blocks of which nothing has been written yet, if there are any.
    pub fn untouched(&self) -> Option<Slice> {
        let Slice {
            first,
            last,
            intended,
            intended_last,
        } = self.slice;
        let next = self.first_untouched();
        let passed = |block| units(self.set, first, block, self.unit);
        (next < last).then(|| Slice {
            first: next,
            intended: between(intended, intended_last, passed(next), passed(last - 1)),
            ..self.slice
        })
    }

    /// Returns true if a block is partly written.
    pub fn is_block_cut(&self) -> bool {
        self.bytes_until(self.whole_until()) < self.written
    }

    fn first_untouched(&self) -> usize {
        self.whole_until() + usize::from(self.is_block_cut())
    }

    /// One beyond the last block that is written whole.
    fn whole_until(&self) -> usize {
        if self.written == self.run.bytes.len() {
            return self.slice.last;
        }
        // The largest whose end is within what is written.
        let (mut whole, mut beyond) = (self.slice.first, self.slice.last);
        while beyond - whole > 1 {
            let middle = whole.midpoint(beyond);
            if self.bytes_until(middle) <= self.written {
                whole = middle;
            } else {
                beyond = middle;
            }
        }
        whole
    }

    fn bytes_until(&self, block: usize) -> usize {
        self.set.run(self.slice.first, block).bytes.len()
    }
}
