//! All that one worker sends.

use stillwell_plan::payload::{ReplayEnd, ReplayPlan};
use stillwell_plan::stamp::PrefixFraming;
use stillwell_plan::{PayloadFormat, PayloadPlan};
use stillwell_units::{ByteSize, Nanos, Seed, as_usize};

use crate::contract::{Frame, Recipe};
use crate::fill::{Layout, Sizes, fill};
use crate::format::cut::{self, Cuts};
use crate::format::lines;
use crate::format::replay::{self, Replay};
use crate::{
    Block, BuildError, Counts, ExporterPosition, Fingerprint, SLOT_WIDTH, Seeds, SlotUse, catalogue,
};

/// All that one worker sends, built before the run. The blocks are in one buffer, one after the
/// other, so several that are due together are one slice. The end of each event, the beginning of
/// each slot and one mark a block add four bytes an event and twelve a block.
#[derive(Debug)]
pub struct BlockSet {
    layout: Layout,
    /// The time of the last of its events.
    ended: Option<Nanos>,
    /// The position of its exporter of flow records at the end.
    exporter: Option<ExporterPosition>,
    /// Number of blocks to send, where that is limited.
    blocks_max: Option<u64>,
}

/// The contents of the files that a payload is built from.
#[derive(Clone, Debug, Default)]
pub struct Sources<'s>(Vec<&'s [u8]>);

impl<'s> From<Option<&'s [u8]>> for Sources<'s> {
    /// One file, or none.
    fn from(content: Option<&'s [u8]>) -> Self {
        Self(content.into_iter().collect())
    }
}

impl<'s> From<&'s [Vec<u8>]> for Sources<'s> {
    /// Any number of them.
    fn from(contents: &'s [Vec<u8>]) -> Self {
        Self(contents.iter().map(Vec::as_slice).collect())
    }
}

impl BlockSet {
    /// Builds about `cache` bytes of `plan`, without slots.
    ///
    /// `cache` is this worker's share of `plan.cache`. It is not exceeded, save
    /// by a first block that is larger by itself. The lines of a file are
    /// always held whole, as often as they fit but at least once, so the
    /// set ends where the file ends. `seed` is the worker's own; `source` holds
    /// the contents of [`PayloadFormat::files`], in their order.
    ///
    /// # Errors
    /// When no event of the format fits the largest block, when the file is
    /// missing or empty, and when the set would exceed 4 GiB or the memory.
    pub fn build<'s>(
        plan: &PayloadPlan,
        cache: ByteSize,
        seed: impl Into<Seeds>,
        source: impl Into<Sources<'s>>,
    ) -> Result<Self, BuildError> {
        Self::build_with(plan, cache, seed, source, SlotUse::None)
    }

    /// As [`BlockSet::build`], with slots as in `slots`.
    ///
    /// # Errors
    /// As [`BlockSet::build`], if slots are requested in or before the lines of a file, which are
    /// sent as they are, or before events that are no lines.
    pub fn build_with<'s>(
        plan: &PayloadPlan,
        cache: ByteSize,
        seed: impl Into<Seeds>,
        source: impl Into<Sources<'s>>,
        slots: SlotUse,
    ) -> Result<Self, BuildError> {
        let (seeds, sources) = (seed.into(), source.into());
        let (mut blocks_max, mut ended, mut exporter) = (None, None, None);
        let layout = match &plan.format {
            PayloadFormat::Replay(replay) => {
                let (layout, most) = of_recording(plan, replay, cache, &sources, slots)?;
                blocks_max = most;
                layout
            }
            PayloadFormat::Lines { .. }
            | PayloadFormat::Static { .. }
            | PayloadFormat::StaticChunks { .. }
            | PayloadFormat::StaticTimestamped(_) => {
                if slots != SlotUse::None {
                    return Err(BuildError::Unstampable);
                }
                of_files(plan, cache, seeds.worker, &sources)?
            }
            _ => {
                let (layout, time, position) = seeded(plan, cache, seeds, slots)?;
                (ended, exporter) = (time, position);
                layout
            }
        };
        Ok(Self {
            layout,
            ended,
            exporter,
            blocks_max,
        })
    }

    /// Returns the time of the last of its events, since 1970: the value for [`Seeds::after`] of
    /// the worker's next set. `None` for formats whose sets are independent.
    #[must_use]
    pub const fn ended(&self) -> Option<Nanos> {
        self.ended
    }

    /// Returns the position of its exporter of flow records behind the last packet: the value for
    /// [`Seeds::exporter`] of the worker's next set. `None` for other formats.
    #[must_use]
    pub const fn exporter(&self) -> Option<ExporterPosition> {
        self.exporter
    }

    /// Returns the number of blocks, at least one.
    #[must_use]
    #[expect(
        clippy::len_without_is_empty,
        reason = "a set is never empty, so `is_empty` would always return false"
    )]
    pub fn len(&self) -> usize {
        self.layout.marks.len() - 1
    }

    /// Returns the number of blocks to send, counted over and over; `None` for no limit.
    #[must_use]
    pub const fn blocks_max(&self) -> Option<u64> {
        self.blocks_max
    }

    /// Block number `index`, from 0. Panics where there is none.
    #[must_use]
    pub fn block(&self, index: usize) -> Block<'_> {
        self.run(index, index + 1)
    }

    /// All bytes, block after block.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.layout.bytes.bytes()
    }

    /// The blocks `first` to `last_exclusive` - 1 as one. Panics where one of
    /// them is not there.
    #[must_use]
    pub fn run(&self, first: usize, last_exclusive: usize) -> Block<'_> {
        let layout = &self.layout;
        let (from, to) = (layout.marks[first], layout.marks[last_exclusive]);
        let slots: &[u32] = if layout.slots.is_empty() {
            &[]
        } else {
            &layout.slots[as_usize(from.events)..as_usize(to.events)]
        };
        Block::new(
            &layout.bytes.bytes()[as_usize(from.bytes)..as_usize(to.bytes)],
            from.bytes,
            &layout.event_ends[as_usize(from.events)..as_usize(to.events)],
            slots,
            u64::from(to.units - from.units),
        )
    }

    /// The fingerprint of [`BlockSet::bytes`], taken with empty slots. Reads
    /// them all: some tenths of a second for each GiB.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(self.bytes())
    }

    /// Returns the counts of the whole set.
    #[must_use]
    pub fn total(&self) -> Counts {
        self.run(0, self.len()).counts()
    }

    /// Bytes of the largest block. Under a transport with a largest datagram it
    /// must not exceed that one; only a line of a file can make it exceed the
    /// plan's maximum.
    #[must_use]
    pub fn largest_block(&self) -> usize {
        let ends = self.layout.marks.windows(2);
        ends.map(|pair| as_usize(pair[1].bytes - pair[0].bytes))
            .max()
            .unwrap_or(0)
    }
}

/// The contents of files, as they are or in pieces.
fn of_files(
    plan: &PayloadPlan,
    cache: ByteSize,
    seed: Seed,
    sources: &Sources<'_>,
) -> Result<Layout, BuildError> {
    let sizes = |shape| Sizes::new(shape, seed.derive("payload-blocks", 0));
    let first = *sources.0.first().ok_or(BuildError::SourceMissing)?;
    if matches!(plan.format, PayloadFormat::Lines { .. }) {
        let mut lines = lines::Lines::new(first, cache).ok_or(BuildError::SourceEmpty)?;
        let size = lines::size(first, cache);
        return fill(&mut lines, Frame::Lines, sizes(plan.blocks), size);
    }
    let mut replay = Replay::new(&plan.format, &sources.0, cache, seed)?;
    let (size, shape) = (replay.size(), replay::shape(&plan.format, plan.blocks));
    fill(&mut replay, Frame::Lines, sizes(shape), size)
}

/// The events of a recording, and how many blocks are sent in all.
fn of_recording(
    plan: &PayloadPlan,
    replay: &ReplayPlan,
    cache: ByteSize,
    sources: &Sources<'_>,
    slots: SlotUse,
) -> Result<(Layout, Option<u64>), BuildError> {
    let first = *sources.0.first().ok_or(BuildError::SourceMissing)?;
    let frame = match slots {
        SlotUse::None | SlotUse::Every => Frame::Lines,
        SlotUse::Before(PrefixFraming::Lines) if replay.end != ReplayEnd::LineFeed => {
            let name = plan.format.name();
            return Err(BuildError::NotLines { name });
        }
        SlotUse::Before(framing) => Frame::timed(framing),
    };
    let mut cuts = Cuts::new(replay, first, cache, slots.in_text(), frame.overhead())?;
    let (size, passes) = (cuts.size(), cuts.passes());
    // Blocks of a recording are drawn from nothing.
    let sizes = Sizes::new(cut::shape(plan.blocks), Seed::from_number(0));
    let layout = fill(&mut cuts, frame, sizes, size)?;
    let each = (layout.marks.len() - 1) as u64 / passes;
    let most = replay
        .rounds
        .map(|rounds| rounds.max(1).saturating_mul(each));
    Ok((layout, most))
}

/// Events of a format that is written from a seed.
fn seeded(
    plan: &PayloadPlan,
    cache: ByteSize,
    seeds: Seeds,
    slots: SlotUse,
) -> Result<(Layout, Option<Nanos>, Option<ExporterPosition>), BuildError> {
    let seed = seeds.worker;
    let name = plan.format.name();
    let entry = catalogue::find(name).ok_or(BuildError::Unknown { name })?;
    check_template(&plan.format, slots)?;
    if slots == SlotUse::Every && !entry.takes_slots() {
        return Err(BuildError::NoSlots { name });
    }
    let maximum = plan.blocks.maximum();
    let frame = match (slots, entry.frame(&plan.format)) {
        (SlotUse::Before(framing), Frame::Lines) => Frame::timed(framing),
        (SlotUse::Before(_), _) => return Err(BuildError::NotLines { name }),
        (SlotUse::None | SlotUse::Every, frame) => frame,
    };
    let slot = match slots {
        SlotUse::None | SlotUse::Before(_) => 0,
        SlotUse::Every => SLOT_WIDTH + 1,
    };
    let smallest = (entry.event_floor)(&plan.format) + slot + frame.overhead();
    if maximum.as_usize() < smallest {
        return Err(BuildError::MaximumTooSmall {
            name,
            maximum,
            smallest: ByteSize::new(smallest as u64),
        });
    }
    let mut writer = (entry.writer)(&Recipe {
        format: &plan.format,
        seed: seed.derive(name, 0),
        common: seeds.common.derive(name, 0),
        part: seeds.part,
        after: seeds.after,
        exporter: seeds.exporter,
        event_max: maximum.as_usize() - frame.overhead(),
        slots: slots.in_text(),
    });
    let sizes = Sizes::new(plan.blocks, seed.derive("payload-blocks", 0));
    let layout = fill(writer.as_mut(), frame, sizes, cache)?;
    // A template may have none, or next to none, that is short enough.
    if layout.marks.len() == 1 {
        return Err(BuildError::NothingFits { name, maximum });
    }
    Ok((layout, writer.time(), writer.exporter()))
}

fn check_template(format: &PayloadFormat, slots: SlotUse) -> Result<(), BuildError> {
    let Some(template) = format.template() else {
        return Ok(());
    };
    template.lengths()?;
    if slots == SlotUse::Every && !template.has_stamp() {
        let name = format.name();
        return Err(BuildError::NoSlots { name });
    }
    if slots == SlotUse::Before(PrefixFraming::Lines) && !template.makes_lines() {
        let name = format.name();
        return Err(BuildError::NotLines { name });
    }
    Ok(())
}
