//! A recording cut into events, with room for stamps where that is requested.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use stillwell_plan::payload::{BlockShape, ReplayCut, ReplayEnd, ReplayPlan};
use stillwell_units::{ByteSize, as_usize};

use crate::block::SLOT_PLACEHOLDER;
use crate::contract::{Event, Joint, Writer};
use crate::{BuildError, SlotUse};

/// The field that carries a stamp in an event that is a JSON object.
const FIELD: &[u8] = br#""stillwell":""#;

/// Whole passes over the pieces of a recording. Each pass begins a block, so
/// a number of passes is a number of blocks.
#[derive(Debug)]
pub(crate) struct Cuts<'s> {
    pieces: Vec<Cow<'s, [u8]>>,
    end: &'static [u8],
    slots: SlotUse,
    next: usize,
    passes: u64,
    passes_left: u64,
    size: ByteSize,
    scratch: Vec<u8>,
}

impl<'s> Cuts<'s> {
    /// Takes as many passes over `source` as fit into `cache`, at least one and at most those that
    /// are sent. Room for the frame is before each event.
    pub(crate) fn new(
        plan: &ReplayPlan,
        source: &'s [u8],
        cache: ByteSize,
        slots: SlotUse,
        before: usize,
    ) -> Result<Self, BuildError> {
        if slots == SlotUse::Every && !plan.takes_stamps() {
            return Err(BuildError::Unstampable);
        }
        let mut pieces = pieces(plan, source)?;
        if before == 0 && plan.end == ReplayEnd::Nothing && slots != SlotUse::Every {
            // Nothing would be sent of it, and it would count as an event.
            pieces.retain(|piece| !piece.is_empty());
        }
        let end: &[u8] = match plan.end {
            ReplayEnd::LineFeed => b"\n",
            ReplayEnd::Nothing => b"",
        };
        let mut scratch = Vec::new();
        let mut pass = 0;
        for piece in &pieces {
            write(piece, end, slots, &mut scratch);
            pass += (before + scratch.len()) as u64;
        }
        if pass == 0 {
            return Err(BuildError::SourceEmpty);
        }
        let fitting = (cache.bytes() / pass).max(1);
        let passes = fitting.min(plan.rounds.unwrap_or(fitting).max(1));
        Ok(Self {
            pieces,
            end,
            slots,
            next: 0,
            passes,
            passes_left: passes,
            size: ByteSize::new(pass.saturating_mul(passes)),
            scratch,
        })
    }

    /// Bytes of all passes together.
    pub(crate) const fn size(&self) -> ByteSize {
        self.size
    }

    /// Returns the number of passes.
    pub(crate) const fn passes(&self) -> u64 {
        self.passes
    }
}

/// Returns the requested grouping of events, the same in every pass.
pub(crate) const fn shape(requested: BlockShape) -> BlockShape {
    match requested {
        BlockShape::UpTo { maximum } => BlockShape::Events {
            count: u32::MAX,
            maximum,
        },
        BlockShape::Events { .. } => requested,
    }
}

impl Writer for Cuts<'_> {
    fn next(&mut self) -> Option<Event<'_>> {
        if self.passes_left == 0 {
            return None;
        }
        let (at, piece) = (self.next, self.pieces.get(self.next)?);
        let slot = write(piece, self.end, self.slots, &mut self.scratch);
        self.next += 1;
        if self.next == self.pieces.len() {
            self.next = 0;
            self.passes_left -= 1;
        }
        Some(Event {
            bytes: &self.scratch,
            slot,
            units: 1,
            joint: if at == 0 { Joint::Break } else { Joint::Frame },
        })
    }
}

/// The events of `source`, without their ends.
fn pieces<'s>(plan: &ReplayPlan, source: &'s [u8]) -> Result<Vec<Cow<'s, [u8]>>, BuildError> {
    let cut: Vec<&'s [u8]> = match plan.cut {
        ReplayCut::Lines => {
            let lines = source.split_inclusive(|byte| *byte == b'\n');
            lines.map(super::replay::without_end).collect()
        }
        ReplayCut::Chunks { bytes } => {
            let bytes = as_usize(bytes.max(1));
            source.chunks(bytes).collect()
        }
    };
    let numbered = (1..).zip(cut);
    let decoded = numbered.map(|(number, piece)| {
        if !plan.base64 {
            return Ok(Cow::Borrowed(piece));
        }
        let decoded = STANDARD.decode(piece);
        decoded
            .map(Cow::Owned)
            .map_err(|_| BuildError::NotBase64 { number })
    });
    decoded.collect()
}

/// Writes one event and its end; gives its slot. A JSON object gets a field behind
/// its last one, any other text the stamp behind its last word.
fn write(piece: &[u8], end: &[u8], slots: SlotUse, out: &mut Vec<u8>) -> Option<usize> {
    out.clear();
    let mut slot = None;
    match slots {
        SlotUse::None | SlotUse::Before(_) => out.extend_from_slice(piece),
        SlotUse::Every => {
            if let Some((head, tail)) = object(piece) {
                out.extend_from_slice(head);
                let is_empty = head.trim_ascii_end().ends_with(b"{");
                out.extend_from_slice(if is_empty { b"" } else { b"," });
                out.extend_from_slice(FIELD);
                slot = Some(out.len());
                out.extend_from_slice(&SLOT_PLACEHOLDER);
                out.push(b'"');
                out.extend_from_slice(tail);
            } else {
                out.extend_from_slice(piece);
                if !piece.is_empty() {
                    out.push(b' ');
                }
                slot = Some(out.len());
                out.extend_from_slice(&SLOT_PLACEHOLDER);
            }
        }
    }
    out.extend_from_slice(end);
    slot
}

/// Splits a piece that looks like a JSON object before its last brace.
fn object(piece: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = piece.trim_ascii();
    if text.len() < 2 || !text.starts_with(b"{") || !text.ends_with(b"}") {
        return None;
    }
    let last = piece.iter().rposition(|byte| *byte == b'}')?;
    Some(piece.split_at(last))
}
