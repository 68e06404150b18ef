//! Stamps in sent events.
//!
//! Each connection sends a separate stream, because only a connection keeps an order. Its
//! slices are copied, and the copy is stamped: blocks never change, and are sent again and
//! again. With a stamp in a header nothing is copied, and requests are numbered.

#[cfg(test)]
mod tests;

use std::cell;
use std::sync::Arc;

use stillwell_metric::Cell;
use stillwell_payload::BlockSet;
use stillwell_plan::stamp::StampForm;
use stillwell_plan::{RateUnit, StampPlan};
use stillwell_scope::clock::FixedWall;
use stillwell_stamp::{HEADER, RunMark, STAMP_WIDTH, Span, Stamper, StreamId, Times, prefix};
use stillwell_units::{Moment, Nanos, as_usize};

use crate::slice::{Slice, units};

/// The stamps of all connections of a worker.
#[derive(Debug)]
pub struct Stamping {
    /// One event in so many.
    every: u64,
    form: StampForm,
    run: RunMark,
    unit: RateUnit,
    /// The bytes that each stamp guarantees: of an event, in headers of a block.
    spans: Vec<Span>,
    /// Clock of the times before events.
    wall: FixedWall,
    /// Counts of the stamped events that were begun, one for each stream of the worker.
    streams: Vec<Stream>,
    /// Number of these streams that have a connection.
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
        (streams, wall): (Vec<Stream>, FixedWall),
    ) -> Self {
        Self {
            every: plan.every.get().into(),
            form: plan.form,
            run,
            unit,
            spans: match plan.form {
                StampForm::Text => spans(set),
                StampForm::Header => block_spans(set),
                StampForm::Prefix(_) => Vec::new(),
            },
            wall,
            streams,
            given: cell::Cell::new(0),
        }
    }

    /// The marks of one more connection; `None` for more connections than streams, which do
    /// not occur.
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
            header: None,
        })
    }

    /// Returns how many of `events` begun events are numbered: a request is one, with any
    /// number of events.
    const fn numbered(&self, events: u64) -> u64 {
        match self.form {
            StampForm::Header if events > 1 => 1,
            _ => events,
        }
    }
}

/// A stamp, written out.
pub type StampText = [u8; STAMP_WIDTH];

/// End of a line of a head.
const LINE_END: &[u8] = b"\r\n";

/// Adds the header of `stamp` to the end of `head`, one of HTTP/1.1.
pub fn write_header(stamp: &StampText, head: &mut Vec<u8>) {
    // Before the empty line that ends it.
    head.truncate(head.len() - LINE_END.len());
    for part in [HEADER.as_bytes(), b": ", stamp, LINE_END, LINE_END] {
        head.extend_from_slice(part);
    }
}

/// The marks of one connection, which outlive its sockets.
#[derive(Debug)]
pub struct Marks {
    stamper: Stamper,
    stream: Stream,
    /// Events of the stream that were begun, stamped or not; requests where stamps are in
    /// headers.
    begun: cell::Cell<u64>,
    /// Events of the stream begun before `bytes`, and after they are sent.
    filled_from: u64,
    filled_until: u64,
    /// The bytes to send next; their memory is used again.
    bytes: Vec<u8>,
    /// The stamp of the request that is sent next, if it has one in a header.
    header: Option<StampText>,
}

/// The slice that was marked last, on its way out.
#[derive(Debug)]
pub(crate) struct Outgoing<'m> {
    /// The marked copy; `None` where what is sent stays as it is.
    pub(crate) copy: Option<&'m [u8]>,
    /// The stamp for the header of its request, if it has one.
    pub(crate) header: Option<&'m StampText>,
    /// The counter of its begun events.
    pub(crate) begun: Begun<'m>,
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
        let events = set.run(slice.first, slice.last).counts().events;
        self.filled_from = self.begun.get();
        self.filled_until = self.filled_from + stamping.numbered(events);
        match stamping.form {
            StampForm::Text => self.fill_texts(stamping, set, slice, times),
            StampForm::Header => self.fill_header(stamping, slice, times),
            StampForm::Prefix(_) => self.fill_times(stamping, set, slice, times),
        }
    }

    fn fill_texts(&mut self, stamping: &Stamping, set: &BlockSet, slice: Slice, times: SliceTimes) {
        let run = set.run(slice.first, slice.last);
        self.bytes.clear();
        self.bytes.extend_from_slice(run.bytes);
        let spans = &stamping.spans[first_event(set, slice.first)..];
        let every = stamping.every;
        let first = self.begun.get().div_ceil(every);
        let skipped = as_usize(first * every - self.begun.get());
        let mut blocks = Blocks::new(set, slice, stamping.unit, times);
        let slots = run.slots().enumerate();
        let stamped = slots.skip(skipped).step_by(as_usize(every));
        for (sequence, (event, slot)) in (first..).zip(stamped) {
            let times = blocks.times_of(event);
            if let Some(token) = self.bytes[slot.offset..].first_chunk_mut() {
                self.stamper.write(token, sequence, times, spans[event]);
            }
        }
    }

    /// Writes the intended time of each event into the room before it.
    fn fill_times(&mut self, stamping: &Stamping, set: &BlockSet, slice: Slice, times: SliceTimes) {
        let run = set.run(slice.first, slice.last);
        self.bytes.clear();
        self.bytes.extend_from_slice(run.bytes);
        let mut blocks = Blocks::new(set, slice, stamping.unit, times);
        for (event, slot) in run.slots().enumerate() {
            let intended = stamping.wall.at(blocks.intended_of(event));
            if let Some(room) = self.bytes[slot.offset..].first_chunk_mut() {
                *room = prefix::write(intended);
            }
        }
    }

    /// Writes the stamp of a request whose body is the first block of `slice`, unless
    /// it is one that has none.
    fn fill_header(&mut self, stamping: &Stamping, slice: Slice, times: SliceTimes) {
        let number = self.begun.get();
        self.header = None;
        if number.is_multiple_of(stamping.every) {
            let token = self.header.insert([0; STAMP_WIDTH]);
            let times = Times::new(times.first, times.sent);
            let span = stamping.spans[slice.first];
            let sequence = number / stamping.every;
            self.stamper.write(token, sequence, times, span);
        }
    }

    /// Returns the stamp for the header of the request that was marked last, if it has one.
    pub const fn header(&self) -> Option<&StampText> {
        self.header.as_ref()
    }

    /// Sends the slice that was marked last once more, which begins all of its events.
    /// Returns the marked copy; `None` where nothing is copied.
    pub fn again(&self, stamping: &Stamping) -> Option<&[u8]> {
        let begun = self.begun.get().max(self.filled_until);
        self.begun.set(begun);
        self.stream.counts[self.stream.index].set(begun.div_ceil(stamping.every));
        self.copy(stamping)
    }

    fn copy(&self, stamping: &Stamping) -> Option<&[u8]> {
        (stamping.form != StampForm::Header).then_some(self.bytes.as_slice())
    }

    /// Only so many events of the copy that was marked last were begun: the others
    /// never left, and give their numbers to the next.
    pub fn take_back(&self, stamping: &Stamping, events: u64) {
        let begun = self.filled_from + stamping.numbered(events);
        let begun = begun.min(self.begun.get());
        self.begun.set(begun);
        self.stream.counts[self.stream.index].set(begun.div_ceil(stamping.every));
    }

    /// Returns the slice that was marked last, on its way out.
    pub(crate) fn outgoing<'m>(&'m self, stamping: &'m Stamping) -> Outgoing<'m> {
        let begun = Begun {
            events: &self.begun,
            before: self.begun.get(),
            stamping,
            sent: &self.stream.counts[self.stream.index],
        };
        Outgoing {
            copy: self.copy(stamping),
            header: self.header(),
            begun,
        }
    }
}

/// Counts the events that were begun: of which at least a byte was handed over.
#[derive(Debug)]
pub(crate) struct Begun<'m> {
    events: &'m cell::Cell<u64>,
    before: u64,
    stamping: &'m Stamping,
    sent: &'m Cell,
}

impl Begun<'_> {
    /// So many events of the slice were begun.
    pub(crate) fn set(&self, events: u64) {
        let begun = self.before + self.stamping.numbered(events);
        self.events.set(begun);
        self.sent.set(begun.div_ceil(self.stamping.every));
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
    intended: Moment,
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
            intended: times.first,
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

    #[inline]
    fn intended_of(&mut self, event: usize) -> Moment {
        if event >= self.end {
            self.advance(event);
        }
        self.intended
    }

    fn advance(&mut self, event: usize) {
        while event >= self.end && self.block + 1 < self.slice.last {
            self.block += 1;
            self.end += events(self.set, self.block, self.block + 1);
        }
        let before = units(self.set, self.slice.first, self.block, self.unit);
        let times = self.times;
        self.intended = between(times.first, times.last, before, self.units);
        self.current = Times::new(self.intended, times.sent);
    }
}

/// The moment at `part` of `whole` of the way from `first` to `last`.
pub fn between(first: Moment, last: Moment, part: u64, whole: u64) -> Moment {
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

/// The span that a stamp before each block guarantees: as much of the block as it can.
fn block_spans(set: &BlockSet) -> Vec<Span> {
    let blocks = (0..set.len()).map(|index| set.block(index));
    blocks.map(|block| Span::of(block.bytes)).collect()
}

/// The spans that the stamps of all events guarantee: the text behind each, up to its end or
/// the first byte that some pipelines would escape.
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
