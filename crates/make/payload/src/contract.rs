//! The contract of formats: a writer of single events, and the frame of a block. Imports no
//! format.

use std::fmt;

use stillwell_plan::PayloadFormat;
use stillwell_plan::stamp::PrefixFraming;
use stillwell_units::{Nanos, Seed};

use crate::{ExporterPosition, Part, SlotUse};

/// Bytes of a time before an event, and of a length before that.
const TIME_BYTES: usize = 8;

/// Maximum length of the beginning of a document or stream of Loki.
pub(crate) const LOKI_OPENING_MAX: usize = 224;

/// The input of a writer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recipe<'r> {
    /// The format, with its options.
    pub(crate) format: &'r PayloadFormat,
    /// The worker's own.
    pub(crate) seed: Seed,
    /// That of all workers of the generator, for what they have in common.
    pub(crate) common: Seed,
    /// This worker's part of the series that all workers share.
    pub(crate) part: Part,
    /// When the last event of the worker's set before took place, since 1970.
    pub(crate) after: Option<Nanos>,
    /// Position from which an exporter of flow records continues.
    pub(crate) exporter: Option<ExporterPosition>,
    /// Bytes that an event may have, what frames it not counted.
    pub(crate) event_max: usize,
    /// The place of stamp slots.
    pub(crate) slots: SlotUse,
}

/// Gives one event after the other.
pub(crate) trait Writer: fmt::Debug + Send {
    /// The next event, without its frame; none where they have an end.
    fn next(&mut self) -> Option<Event<'_>>;

    /// When the event given last took place, since 1970, where the worker's next set
    /// is to go on from there.
    fn time(&self) -> Option<Nanos> {
        None
    }

    /// Position of an exporter of flow records before the event given last: that event exceeds
    /// the size of the set and is not part of it.
    fn exporter(&self) -> Option<ExporterPosition> {
        None
    }
}

/// One event.
#[derive(Debug)]
pub(crate) struct Event<'w> {
    /// The event, with its line feed in formats of lines.
    pub(crate) bytes: &'w [u8],
    /// The beginning of its slot in `bytes`.
    pub(crate) slot: Option<usize>,
    /// Log records and the like in it.
    pub(crate) units: u32,
    /// The bytes before it.
    pub(crate) joint: Joint<'w>,
}

/// The bytes before an event.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Joint<'w> {
    /// Those of the frame.
    Frame,
    /// The same, and the event is the first of its block.
    Break,
    /// These, which the frame must have room for.
    Separator {
        /// Before the first event of a block.
        first: &'w [u8],
        /// Before any other one.
        next: &'w [u8],
    },
}

impl<'w> Event<'w> {
    /// Returns the bytes before it in a block with `frame`.
    pub(crate) const fn before(&self, frame: Frame, is_first: bool) -> &'w [u8] {
        match self.joint {
            Joint::Frame | Joint::Break => frame.before(is_first),
            Joint::Separator { first, .. } if is_first => first,
            Joint::Separator { next, .. } => next,
        }
    }
}

/// The bytes around and between the events of a block.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Frame {
    /// Nothing: each event ends with a line feed of its own.
    Lines,
    /// One JSON array a block.
    JsonArray,
    /// One document of Loki's push API a block; its writer opens it.
    Loki,
    /// Nothing: each event says itself where it ends, or is alone in its block.
    Bare,
    /// One `MessagePack` array a block.
    MsgpackArray,
    /// The length of the rest of the block, as 32 bits in little-endian order.
    LengthPrefixed,
    /// Room for a time of eight bytes before each line.
    TimedLines,
    /// The same before each event, and before that the length of both in eight bytes,
    /// in big-endian order; the line feed is left out.
    TimedLengths,
}

impl Frame {
    /// Returns the bytes before an event of the block.
    pub(crate) const fn before(self, is_first: bool) -> &'static [u8] {
        match (self, is_first) {
            (Self::Lines | Self::Loki | Self::Bare, _) => b"",
            (Self::JsonArray, true) => b"[",
            (Self::JsonArray, false) => b",",
            (Self::MsgpackArray, true) => &[0xdd, 0, 0, 0, 0],
            (Self::LengthPrefixed, true) => &[0; 4],
            (Self::TimedLines, _) => &[0; TIME_BYTES],
            (Self::TimedLengths, _) => &[0; 2 * TIME_BYTES],
            (Self::MsgpackArray | Self::LengthPrefixed, false) => b"",
        }
    }

    /// Returns the bytes after the last event of the block.
    pub(crate) const fn close(self) -> &'static [u8] {
        match self {
            Self::Lines
            | Self::Bare
            | Self::MsgpackArray
            | Self::LengthPrefixed
            | Self::TimedLines
            | Self::TimedLengths => b"",
            Self::JsonArray => b"]",
            Self::Loki => b"]}]}",
        }
    }

    /// Returns the number of `bytes` or `events`, known only when a block closes, and its place in
    /// the bytes before the first event.
    pub(crate) const fn head(self, bytes: u32, events: u32) -> Option<(u32, [u8; 4])> {
        match self {
            Self::Lines
            | Self::Bare
            | Self::JsonArray
            | Self::Loki
            | Self::TimedLines
            | Self::TimedLengths => None,
            Self::MsgpackArray => Some((1, events.to_be_bytes())),
            Self::LengthPrefixed => Some((0, (bytes - 4).to_le_bytes())),
        }
    }

    /// Lines with room for a time before each.
    pub(crate) const fn timed(framing: PrefixFraming) -> Self {
        match framing {
            PrefixFraming::Lines => Self::TimedLines,
            PrefixFraming::LengthPrefixed => Self::TimedLengths,
        }
    }

    /// Returns the place of the time in the bytes before each event, if there is one.
    pub(crate) const fn time_at(self) -> Option<usize> {
        match self {
            Self::TimedLines => Some(0),
            Self::TimedLengths => Some(TIME_BYTES),
            _ => None,
        }
    }

    /// Returns the part of an event that is sent.
    pub(crate) fn content(self, event: &[u8]) -> &[u8] {
        match self {
            Self::TimedLengths => event.strip_suffix(b"\n").unwrap_or(event),
            _ => event,
        }
    }

    /// Returns the length of `content` in the form in which it precedes an event.
    pub(crate) const fn length_of(self, content: &[u8]) -> Option<[u8; 8]> {
        match self {
            Self::TimedLengths => Some(((TIME_BYTES + content.len()) as u64).to_be_bytes()),
            _ => None,
        }
    }

    /// Bytes that the frame adds to a block of one event.
    pub(crate) const fn overhead(self) -> usize {
        let opening = match self {
            Self::Loki => LOKI_OPENING_MAX,
            _ => self.before(true).len(),
        };
        opening + self.close().len()
    }
}
