//! The account of all stamped events: what arrived, how often, in which order.

mod bytes;
mod error;
mod few;
mod figures;
mod received;
mod store;
mod stream;
mod window;

use stillwell_units::{ByteSize, Moment, Nanos};

use crate::search::StampMatch;
use crate::span::SpanCheck;
use crate::stamp::{RunMark, STREAM_LIMIT, Stamp, StreamId};

use bytes::{LedgerReader, LedgerWriter};
use error::COPIES_LIMIT;
pub use error::{LedgerError, LedgerReadError};
pub use figures::{Bounds, Loss, Losses, StreamFigures};
use store::Store;
use stream::StreamLedger;

/// Fixed memory of one stream for one copy, rounded up.
const FIXED_BYTES: u64 = 512;

/// The smallest size of the windows of one stream and copy, and as much again.
const LEAST_BYTES: u64 = 256;

/// Room for windows beside that: fewer open ones would be closed all the time.
const ROOM_BYTES: u64 = 16 * 1024;

/// Streams and limits of a ledger.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Expected {
    /// Stamps of other runs are foreign.
    pub run: RunMark,
    /// The streams, by their numbers; stamps of others are foreign.
    pub streams: Vec<ExpectedStream>,
    /// Memory that the ledger may use. Beyond it the oldest windows are only bounded.
    pub memory: ByteSize,
}

/// An expected stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ExpectedStream {
    /// Number of times that a correct pipeline delivers the stamp of one event: 2 where it keeps
    /// the original beside the parsed form. From 1 to 8.
    pub copies: u8,
    /// An event that arrives later than this after its intended time is late.
    pub late_after: Option<Nanos>,
}

/// The arrival of a stamp.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Arrival {
    /// The number of its stream.
    pub stream: StreamId,
    /// Its sequence number.
    pub sequence: u64,
    /// First, again, or out of order.
    pub kind: ArrivalKind,
    /// From the intended time to the arrival; 0 if the clocks say that it
    /// arrived before.
    pub latency: Nanos,
    /// The same from the sent time.
    pub transit: Nanos,
}

/// First, again, or out of order.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ArrivalKind {
    /// The first of its event, later in sequence than all before.
    First,
    /// The first of its event, after one that is later in sequence.
    Reordered {
        /// Distance to the latest sequence number so far.
        displacement: u64,
    },
    /// One of the further copies that are expected.
    Copy,
    /// One more than expected.
    Duplicated,
    /// First or again: its window is only bounded.
    Unclear,
    /// Of another run, or of no stream of this ledger.
    Foreign,
}

/// The account of all streams of a run, as one sink worker sees it, or as
/// several see it together.
///
/// For each stream and each expected copy it keeps the set of sequence numbers
/// that arrived: everything below a watermark, and above it windows of 65,536
/// that keep their holes. It is exact within its memory; beyond, its oldest
/// windows keep counts instead of numbers and what arrives for them later makes
/// their loss an interval.
#[derive(Clone, Debug)]
pub struct Ledger {
    expected: Expected,
    streams: Vec<StreamLedger>,
    store: Store,
    limit: usize,
    foreign: u64,
    broken: u64,
}

impl Ledger {
    /// An empty ledger.
    ///
    /// # Errors
    /// If streams, copies or memory are out of bounds.
    pub fn new(expected: Expected) -> Result<Self, LedgerError> {
        let streams = expected.streams.len();
        if !u32::try_from(streams).is_ok_and(|count| (1..=STREAM_LIMIT).contains(&count)) {
            return Err(LedgerError::Streams { streams });
        }
        let mut all = expected.streams.iter().map(|stream| stream.copies);
        if let Some(copies) = all.find(|copies| !(1..=COPIES_LIMIT).contains(copies)) {
            return Err(LedgerError::Copies { copies });
        }
        let copies = expected.streams.iter();
        let sets: u64 = copies.map(|stream| u64::from(stream.copies)).sum();
        let fixed = sets * FIXED_BYTES + Store::SPARE_BYTES;
        let needed = ByteSize::new(fixed + sets * LEAST_BYTES + ROOM_BYTES);
        if expected.memory < needed {
            return Err(LedgerError::Memory { streams, needed });
        }
        Ok(Self {
            streams: expected.streams.iter().map(StreamLedger::new).collect(),
            store: Store::new(),
            limit: ByteSize::new(expected.memory.bytes() - fixed).as_usize(),
            foreign: 0,
            broken: 0,
            expected,
        })
    }

    /// Returns the streams and limits.
    #[must_use]
    pub const fn expected(&self) -> &Expected {
        &self.expected
    }

    /// Enters what the search matched at `now`; returns an arrival for a stamp.
    #[inline(always)]
    pub fn take_in(&mut self, matched: &StampMatch, now: Moment) -> Option<Arrival> {
        match matched {
            StampMatch::Stamp { stamp, span } => Some(self.enter(stamp, *span, now)),
            StampMatch::SpanChecked { stamp, span } => {
                self.check_span(stamp, *span);
                None
            }
            StampMatch::Broken => {
                self.broken += 1;
                None
            }
        }
    }

    /// Enters a stamp that arrived at `now`, on the clock of its intended time.
    /// A span that is pending is to be settled later.
    #[inline(always)]
    pub fn enter(&mut self, stamp: &Stamp, span: SpanCheck, now: Moment) -> Arrival {
        let latency = stamp.latency(now);
        let kind = match self.stream_of(stamp) {
            None => ArrivalKind::Foreign,
            Some(index) => {
                let stream = &mut self.streams[index];
                stream.count_span(stamp.sequence, span);
                stream.enter(stamp.sequence, latency, &mut self.store)
            }
        };
        if kind == ArrivalKind::Foreign {
            self.foreign += 1;
        }
        if self.store.used > self.limit {
            self.relieve();
        }
        Arrival {
            stream: stamp.stream,
            sequence: stamp.sequence,
            kind,
            latency,
            transit: latency.saturating_sub(stamp.lateness()),
        }
    }

    /// Enters the check of the span of a stamp that was entered as pending.
    pub fn check_span(&mut self, stamp: &Stamp, span: SpanCheck) {
        if let Some(index) = self.stream_of(stamp) {
            self.streams[index].count_checked_span(stamp.sequence, span);
        }
    }

    /// Takes over all that `source` knows and leaves it empty, so several
    /// workers' ledgers become one: at the end, or from time to time where each
    /// worker sees only a part of a stream and would keep many holes.
    ///
    /// What is lost or duplicated is as exact as if one ledger had seen everything.
    /// Order and lateness are what each worker saw by itself: there is no order
    /// between two connections. An emptied ledger still knows how far its
    /// streams had come, but takes a duplicated event as a first one until the next
    /// time.
    ///
    /// # Errors
    /// If the two expect another run, other streams or other copies; then both
    /// stay as they are.
    pub fn absorb(&mut self, source: &mut Self) -> Result<(), LedgerError> {
        let (expected, source_expected) = (&self.expected, &source.expected);
        if expected.run != source_expected.run || expected.streams != source_expected.streams {
            return Err(LedgerError::Unlike);
        }
        self.foreign += std::mem::take(&mut source.foreign);
        self.broken += std::mem::take(&mut source.broken);
        for (index, its) in source.streams.iter_mut().enumerate() {
            self.streams[index].absorb(its, &mut self.store, &mut source.store);
            self.relieve();
        }
        Ok(())
    }

    /// Returns all that it knows in a form for files, for [`Ledger::from_bytes`].
    ///
    /// A window takes up to 8 KiB, so it has no more bytes than the ledger has memory.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut to = LedgerWriter::begin();
        to.number(u64::from(self.expected.run.number()));
        to.number(self.streams.len() as u64);
        for stream in &self.expected.streams {
            to.byte(stream.copies);
            to.byte(u8::from(stream.late_after.is_some()));
            to.number(stream.late_after.unwrap_or_default().as_u64());
        }
        to.number(self.foreign);
        to.number(self.broken);
        for stream in &self.streams {
            stream.write(&mut to);
        }
        to.end()
    }

    /// Reads what [`Ledger::to_bytes`] returned. Each value is checked before it is used.
    ///
    /// # Errors
    /// If `bytes` are no ledger of a known version, are damaged, or are of a ledger that expects
    /// something else or has more memory.
    pub fn from_bytes(bytes: &[u8], expected: Expected) -> Result<Self, LedgerReadError> {
        let mut from = LedgerReader::begin(bytes)?;
        let mut ledger = Self::new(expected)?;
        if !ledger.is_expected(&mut from)? {
            return Err(LedgerError::Unlike.into());
        }
        ledger.foreign = from.count()?;
        ledger.broken = from.count()?;
        for stream in &mut ledger.streams {
            stream.read(&mut from, &mut ledger.store, ledger.limit)?;
        }
        from.end()?;
        Ok(ledger)
    }

    /// Returns true if what follows was written by a ledger that expects the same.
    fn is_expected(&self, from: &mut LedgerReader<'_>) -> Result<bool, LedgerReadError> {
        let run = from.number(u64::MAX)?;
        let streams = from.number(u64::MAX)?;
        if run != u64::from(self.expected.run.number()) || streams != self.streams.len() as u64 {
            return Ok(false);
        }
        for stream in &self.expected.streams {
            let copies = from.byte()?;
            let is_limited = from.byte()? != 0;
            let after = Nanos::new(from.number(u64::MAX)?);
            if copies != stream.copies || is_limited.then_some(after) != stream.late_after {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The figures of one stream whose first `sent` sequence numbers were
    /// sent; if that is not known, all up to the latest that arrived. `None` if
    /// the ledger has no such stream.
    #[must_use]
    pub fn figures(&self, stream: StreamId, sent: Option<u64>) -> Option<StreamFigures> {
        self.stream(stream).map(|stream| stream.figures(sent))
    }

    /// Returns the missing ranges of a stream in rising order: the first `most`, and their number.
    /// `sent` as in [`Ledger::figures`].
    #[must_use]
    pub fn losses(&self, stream: StreamId, sent: Option<u64>, most: usize) -> Option<Losses> {
        self.stream(stream).map(|stream| stream.losses(sent, most))
    }

    /// Stamps of other runs or of streams that are not expected.
    #[must_use]
    pub const fn foreign(&self) -> u64 {
        self.foreign
    }

    /// Stamps that were cut off or changed.
    #[must_use]
    pub const fn broken(&self) -> u64 {
        self.broken
    }

    /// The memory that the ledger takes now, close to the truth.
    #[must_use]
    pub fn memory(&self) -> ByteSize {
        let fixed = self.expected.memory.as_usize() - self.limit;
        let used = (self.store.used + fixed) as u64;
        ByteSize::new(used)
    }

    fn stream(&self, stream: StreamId) -> Option<&StreamLedger> {
        self.streams.get(usize::try_from(stream.number()).ok()?)
    }

    /// The index of the stream that a stamp belongs to.
    #[inline]
    fn stream_of(&self, stamp: &Stamp) -> Option<usize> {
        let index = usize::try_from(stamp.stream.number()).ok()?;
        (stamp.run == self.expected.run && index < self.streams.len()).then_some(index)
    }

    /// Comes well within the limit again if it was passed, at the cost of the
    /// streams that use most.
    #[cold]
    fn relieve(&mut self) {
        let target = self.limit - self.limit / 8;
        if self.store.used <= self.limit {
            return;
        }
        for stream in &mut self.streams {
            stream.compress(&mut self.store);
        }
        while self.store.used > target {
            let largest = self.streams.iter_mut().max_by_key(|stream| stream.heap());
            if !largest.is_some_and(|largest| largest.shrink(&mut self.store)) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
