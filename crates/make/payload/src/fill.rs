//! Events into blocks.

use stillwell_plan::payload::BlockShape;
use stillwell_units::{ByteSize, Seed, as_usize};

use crate::BuildError;
use crate::contract::{Event, Frame, Joint, Writer};
use crate::memory::Memory;
use crate::random::Random;

/// Blocks one after the other, with the tables that find what is in them.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) bytes: Memory,
    /// The end of each event in `bytes`.
    pub(crate) event_ends: Vec<u32>,
    /// The beginning of each event's slot in `bytes`; as long as `event_ends`, or empty.
    pub(crate) slots: Vec<u32>,
    /// The totals before each block, and at last those of all blocks.
    pub(crate) marks: Vec<Mark>,
}

/// Totals before a boundary between blocks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mark {
    pub(crate) bytes: u32,
    pub(crate) events: u32,
    pub(crate) units: u32,
}

/// When a block closes.
#[derive(Clone, Copy, Debug)]
struct Target {
    bytes_max: usize,
    events_max: u32,
}

/// Draws one target after the other.
#[derive(Debug)]
pub(crate) struct Sizes {
    shape: BlockShape,
    random: Random,
}

impl Sizes {
    pub(crate) fn new(shape: BlockShape, seed: Seed) -> Self {
        Self {
            shape,
            random: Random::new(seed),
        }
    }

    fn next(&mut self) -> Target {
        match self.shape {
            BlockShape::UpTo { maximum } => {
                let bytes = maximum.bytes();
                let drawn = ByteSize::new(self.random.between(bytes / 8, bytes));
                Target {
                    bytes_max: drawn.as_usize(),
                    events_max: u32::MAX,
                }
            }
            BlockShape::Events { count, maximum } => Target {
                bytes_max: maximum.as_usize(),
                events_max: count.max(1),
            },
        }
    }
}

/// Gathers events into blocks until `writer` has no more or the next event
/// would make more than `cache` bytes; a block that is then still open is left
/// out, unless it is the only one or the writer came to its end.
pub(crate) fn fill(
    writer: &mut dyn Writer,
    frame: Frame,
    mut sizes: Sizes,
    cache: ByteSize,
) -> Result<Layout, BuildError> {
    let mut builder = Builder::new(frame, cache)?;
    let mut target = sizes.next();
    while let Some(event) = writer.next() {
        if !builder.takes(&event, target) {
            builder.close()?;
            target = sizes.next();
        }
        if builder.is_full(&event) {
            return builder.finish();
        }
        builder.push(&event)?;
    }
    builder.close()?;
    builder.finish()
}

#[derive(Debug)]
struct Builder {
    layout: Layout,
    frame: Frame,
    cache: usize,
    /// The totals before the open block.
    start: Mark,
    /// Events and units of the open block.
    open: Mark,
}

impl Builder {
    fn new(frame: Frame, cache: ByteSize) -> Result<Self, BuildError> {
        offset(cache.as_usize())?;
        Ok(Self {
            layout: Layout {
                bytes: Memory::new(cache.as_usize())?,
                event_ends: Vec::new(),
                slots: Vec::new(),
                marks: vec![Mark::default()],
            },
            frame,
            cache: cache.as_usize(),
            start: Mark::default(),
            open: Mark::default(),
        })
    }

    /// Returns true if `event` fits into the open block. An empty block takes any.
    fn takes(&self, event: &Event<'_>, target: Target) -> bool {
        if matches!(event.joint, Joint::Break) {
            return self.open.events == 0;
        }
        let used = self.layout.bytes.len() - as_usize(self.start.bytes);
        let needed = used + self.size(event);
        self.open.events == 0
            || (needed <= target.bytes_max && self.open.events < target.events_max)
    }

    /// Returns true if the set would exceed its size with `event`.
    fn is_full(&self, event: &Event<'_>) -> bool {
        let has_block = self.layout.marks.len() > 1 || self.open.events > 0;
        has_block && self.layout.bytes.len() + self.size(event) > self.cache
    }

    /// Returns the size that `event` adds if the block closes after it.
    fn size(&self, event: &Event<'_>) -> usize {
        let before = event.before(self.frame, self.open.events == 0);
        let content = self.frame.content(event.bytes);
        before.len() + content.len() + self.frame.close().len()
    }

    fn push(&mut self, event: &Event<'_>) -> Result<(), BuildError> {
        let Layout {
            bytes,
            event_ends,
            slots,
            ..
        } = &mut self.layout;
        let (start, content) = (bytes.len(), self.frame.content(event.bytes));
        bytes.push(event.before(self.frame, self.open.events == 0))?;
        let in_text = event.slot.map(|slot| bytes.len() + slot);
        if let Some(slot) = self.frame.time_at().map(|at| start + at).or(in_text) {
            slots.push(offset(slot)?);
        }
        bytes.push(content)?;
        if let Some(length) = self.frame.length_of(content) {
            bytes.replace(start, &length);
        }
        event_ends.push(offset(bytes.len())?);
        self.open.events += 1;
        self.open.units += event.units;
        Ok(())
    }

    /// Closes the open block, if anything is in it.
    fn close(&mut self) -> Result<(), BuildError> {
        if self.open.events == 0 {
            return Ok(());
        }
        let layout = &mut self.layout;
        layout.bytes.push(self.frame.close())?;
        let end = offset(layout.bytes.len())?;
        let start = self.start.bytes;
        if let Some((at, head)) = self.frame.head(end - start, self.open.events) {
            layout.bytes.replace(as_usize(start + at), &head);
        }
        if let Some(last) = layout.event_ends.last_mut() {
            *last = end;
        }
        self.start = Mark {
            bytes: end,
            events: self.start.events + self.open.events,
            units: self.start.units + self.open.units,
        };
        self.open = Mark::default();
        layout.marks.push(self.start);
        Ok(())
    }

    /// The closed blocks, or the open one where there is no other.
    fn finish(mut self) -> Result<Layout, BuildError> {
        if self.layout.marks.len() == 1 {
            self.close()?;
        }
        let layout = &mut self.layout;
        let events = as_usize(self.start.events);
        layout.bytes.truncate(as_usize(self.start.bytes));
        layout.event_ends.truncate(events);
        layout.slots.truncate(events);
        layout.event_ends.shrink_to_fit();
        layout.slots.shrink_to_fit();
        Ok(self.layout)
    }
}

/// A place in the set, as it is kept.
fn offset(place: usize) -> Result<u32, BuildError> {
    u32::try_from(place).map_err(|_| BuildError::TooLarge {
        requested: ByteSize::new(place as u64),
    })
}
