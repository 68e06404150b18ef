//! Blocks: the bytes of one send.

use stillwell_plan::stamp::PrefixFraming;
use stillwell_units::as_usize;

/// Width of a stamp slot, in bytes.
pub const SLOT_WIDTH: usize = 64;

/// The content of a slot without a stamp.
pub const SLOT_PLACEHOLDER: [u8; SLOT_WIDTH] = [b'x'; SLOT_WIDTH];

/// One block, or several neighbours as one, borrowed from a
/// [`BlockSet`](crate::BlockSet). Holds whole events only.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    /// The bytes to send.
    pub bytes: &'a [u8],
    /// The beginning of `bytes` in the set.
    start: u32,
    /// Ends of the events, in the set.
    event_ends: &'a [u32],
    /// Beginnings of the slots, in the set.
    slots: &'a [u32],
    /// Log records and the like.
    units: u64,
}

impl<'a> Block<'a> {
    /// Puts a block together; offsets count from the beginning of the set, in
    /// which `bytes` begins at `start`.
    pub(crate) const fn new(
        bytes: &'a [u8],
        start: u32,
        event_ends: &'a [u32],
        slots: &'a [u32],
        units: u64,
    ) -> Self {
        Self {
            bytes,
            start,
            event_ends,
            slots,
            units,
        }
    }

    /// Returns the number of bytes, events and lines of the block.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        Counts {
            events: self.event_ends.len() as u64,
            units: self.units,
            bytes: self.bytes.len() as u64,
        }
    }

    /// Returns the end of each event, in bytes from the beginning of the block; the last one is the
    /// block's length. Framing, such as a line feed or the brackets of an array, belongs to the
    /// event beside it.
    pub fn event_ends(&self) -> impl ExactSizeIterator<Item = usize> + use<'a> {
        relative(self.event_ends, self.start)
    }

    /// Returns the stamp slots in the order of their events; empty unless they were requested.
    pub fn slots(&self) -> impl ExactSizeIterator<Item = Slot> + use<'a> {
        relative(self.slots, self.start).map(|offset| Slot { offset })
    }

    /// Returns the number of events that are complete in the first `bytes` bytes.
    #[must_use]
    pub fn events_within(&self, bytes: usize) -> u32 {
        let whole = self
            .event_ends
            .partition_point(|end| as_usize(end - self.start) <= bytes);
        u32::try_from(whole).expect("a set holds fewer than 2^32 events")
    }
}

/// The number of bytes, events and lines of a block or a set.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// Events.
    pub events: u64,
    /// Log records, metrics or spans; for text formats one an event.
    pub units: u64,
    /// Bytes.
    pub bytes: u64,
}

/// A place of [`SLOT_WIDTH`] bytes in an event's message text, kept free for a
/// stamp, which until one is written holds [`SLOT_PLACEHOLDER`]; or one of eight
/// bytes before an event, for a time, which until then is 0.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Slot {
    /// The beginning, in bytes from the beginning of the block.
    pub offset: usize,
}

/// The room that events keep for a stamp.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum SlotUse {
    /// No event does.
    #[default]
    None,
    /// Every event does, in its message text.
    Every,
    /// Eight bytes are kept before every event, for a time; events are lines.
    Before(PrefixFraming),
}

impl SlotUse {
    /// Returns the slot in the text of events, if it is there.
    pub(crate) const fn in_text(self) -> Self {
        match self {
            Self::Before(_) => Self::None,
            in_text => in_text,
        }
    }
}

/// Offsets in the set as offsets from `start`.
fn relative(offsets: &[u32], start: u32) -> impl ExactSizeIterator<Item = usize> {
    offsets.iter().map(move |offset| as_usize(offset - start))
}
