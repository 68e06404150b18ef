//! Stamps in what is sent.
//!
//! Each connection sends a stream of its own, for only there is an order. What it
//! sends is copied, and the copy marked: blocks themselves never change, and are
//! sent again and again.

#[cfg(test)]
mod tests;

use std::cell;
use std::sync::Arc;

use stillwell_metric::Cell;
use stillwell_payload::BlockSet;
use stillwell_plan::{RateUnit, StampPlan};
use stillwell_stamp::{RunMark, STAMP_WIDTH, Span, Stamper, StreamId, Times};
use stillwell_units::{Moment, Nanos};

use crate::slice::{Slice, units};

/// What all connections of a worker stamp with.
#[derive(Debug)]
pub(crate) struct Stamping {
    /// One event in so many.
    every: u64,
    run: RunMark,
    unit: RateUnit,
    /// What the stamp of each event of the set vouches for.
    spans: Vec<Span>,
    /// How many stamped events of each of the worker's streams were begun.
    streams: Vec<Stream>,
    /// How many of these streams have a connection.
    given: cell::Cell<usize>,
}

/// One connection's.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    pub(crate) id: StreamId,
    /// The counts of all streams of the generator.
    pub(crate) counts: Arc<[Cell]>,
    /// Its own among them.
    pub(crate) index: usize,
}

impl Stamping {
    pub(crate) fn new(
        plan: &StampPlan,
        run: RunMark,
        unit: RateUnit,
        set: &BlockSet,
        streams: Vec<Stream>,
    ) -> Self {
        Self {
            every: u64::from(plan.every.max(1)),
            run,
            unit,
            spans: spans(set),
            streams,
            given: cell::Cell::new(0),
        }
    }

    /// The marks of one more connection; `None` if there are more connections than
    /// streams, which nobody opens.
    pub(crate) fn marks(&self) -> Option<Marks> {
        let given = self.given.get();
        let stream = self.streams.get(given)?.clone();
        self.given.set(given + 1);
        Some(Marks {
            stamper: Stamper::new(self.run, stream.id),
            stream,
            begun: cell::Cell::new(0),
            filled_from: 0,
            filled_until: 0,
            bytes: Vec::new(),
        })
    }
}

/// The marks of one connection, whatever becomes of the socket under it.
#[derive(Debug)]
pub(crate) struct Marks {
    stamper: Stamper,
    stream: Stream,
    /// Events of the stream that were begun, stamped or not.
    begun: cell::Cell<u64>,
    /// What of the stream was begun before `bytes`, and will be once they are sent.
    filled_from: u64,
    filled_until: u64,
    /// What is sent next; its room is used again.
    bytes: Vec<u8>,
}

/// When a slice is sent, in clock time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SliceTimes {
    /// The intended time of its first block.
    pub(crate) first: Moment,
    /// And of its last.
    pub(crate) last: Moment,
    /// When it is handed to the kernel.
    pub(crate) sent: Moment,
}

impl Marks {
    /// Copies and marks `slice`. Its events have the numbers behind those that were
    /// begun so far: those that never are give theirs to the next.
    pub(crate) fn fill(
        &mut self,
        stamping: &Stamping,
        set: &BlockSet,
        slice: Slice,
        times: SliceTimes,
    ) {
        let run = set.run(slice.first, slice.last);
        self.bytes.clear();
        self.bytes.extend_from_slice(run.bytes);
        let spans = &stamping.spans[first_event(set, slice.first)..];
        let every = stamping.every;
        self.filled_from = self.begun.get();
        self.filled_until = self.filled_from + run.counts().events;
        let first = self.begun.get().div_ceil(every);
        let skipped = as_index(first * every - self.begun.get());
        let mut blocks = Blocks::new(set, slice, stamping.unit, times);
        let slots = run.slots().enumerate();
        let stamped = slots.skip(skipped).step_by(as_index(every));
        for (sequence, (event, slot)) in (first..).zip(stamped) {
            let times = blocks.times_of(event);
            if let Some(token) = self.bytes[slot.offset..].first_chunk_mut() {
                self.stamper.write(token, sequence, times, spans[event]);
            }
        }
    }

    /// The copy that was marked last, to be sent once more: all of its events are
    /// begun by that.
    pub(crate) fn again(&self, stamping: &Stamping) -> &[u8] {
        let begun = self.begun.get().max(self.filled_until);
        self.begun.set(begun);
        self.stream.counts[self.stream.index].set(begun.div_ceil(stamping.every));
        &self.bytes
    }

    /// Only so many events of the copy that was marked last were begun: the others
    /// never left, and give their numbers to the next.
    pub(crate) fn take_back(&self, stamping: &Stamping, events: u64) {
        let begun = (self.filled_from + events).min(self.begun.get());
        self.begun.set(begun);
        self.stream.counts[self.stream.index].set(begun.div_ceil(stamping.every));
    }

    /// The marked copy, and where it is kept how much of it was begun.
    pub(crate) fn outgoing<'m>(&'m self, stamping: &'m Stamping) -> (&'m [u8], Begun<'m>) {
        let begun = Begun {
            events: &self.begun,
            before: self.begun.get(),
            every: stamping.every,
            sent: &self.stream.counts[self.stream.index],
        };
        (&self.bytes, begun)
    }
}

/// Counts the events that were begun: of which at least a byte was handed over.
#[derive(Debug)]
pub(crate) struct Begun<'m> {
    events: &'m cell::Cell<u64>,
    before: u64,
    every: u64,
    sent: &'m Cell,
}

impl Begun<'_> {
    /// So many events of the slice were begun.
    pub(crate) fn set(&self, events: u64) {
        let begun = self.before + events;
        self.events.set(begun);
        self.sent.set(begun.div_ceil(self.every));
    }
}

/// Says for each event when its block is meant to be sent. Within a slice intended
/// times lie on a straight line.
struct Blocks<'s> {
    set: &'s BlockSet,
    slice: Slice,
    unit: RateUnit,
    times: SliceTimes,
    /// Units before the last block.
    units: u64,
    /// The block under way, and the first event behind it.
    block: usize,
    end: usize,
    current: Times,
}

impl<'s> Blocks<'s> {
    fn new(set: &'s BlockSet, slice: Slice, unit: RateUnit, times: SliceTimes) -> Self {
        Self {
            set,
            slice,
            unit,
            times,
            units: units(set, slice.first, slice.last - 1, unit),
            block: slice.first,
            end: events(set, slice.first, slice.first + 1),
            current: Times::new(times.first, times.sent),
        }
    }

    #[inline]
    fn times_of(&mut self, event: usize) -> Times {
        if event >= self.end {
            self.advance(event);
        }
        self.current
    }

    fn advance(&mut self, event: usize) {
        while event >= self.end && self.block + 1 < self.slice.last {
            self.block += 1;
            self.end += events(self.set, self.block, self.block + 1);
        }
        let before = units(self.set, self.slice.first, self.block, self.unit);
        let times = self.times;
        let intended = between(times.first, times.last, before, self.units);
        self.current = Times::new(intended, times.sent);
    }
}

/// The moment at `part` of `whole` of the way from `first` to `last`.
pub(crate) fn between(first: Moment, last: Moment, part: u64, whole: u64) -> Moment {
    let length = last.since(first).as_u64();
    let passed = length.saturating_mul(part) / whole.max(1);
    first + Nanos::new(passed)
}

fn first_event(set: &BlockSet, block: usize) -> usize {
    events(set, 0, block)
}

fn events(set: &BlockSet, first: usize, last: usize) -> usize {
    set.run(first, last).event_ends().len()
}

fn as_index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// What the stamps of all events vouch for: the text behind each, up to where it
/// ends or some pipeline would write it in another way.
fn spans(set: &BlockSet) -> Vec<Span> {
    let whole = set.run(0, set.len());
    let ends = whole.event_ends();
    let texts = whole.slots().zip(ends).map(|(slot, end)| {
        let behind = &whole.bytes[(slot.offset + STAMP_WIDTH).min(end)..end];
        let plain = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
        let text = behind.iter().take_while(|byte| plain(byte)).count();
        Span::of(&behind[..text])
    });
    texts.collect()
}
