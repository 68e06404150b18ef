//! Contents of files, in order, over and over.

use stillwell_plan::PayloadFormat;
use stillwell_plan::payload::{BlockShape, TimestampedPlan};
use stillwell_units::{ByteSize, Seed};

use crate::BuildError;
use crate::contract::{Event, Joint, Writer};
use crate::random::Random;

mod time;

/// Whole passes over the pieces of files.
#[derive(Debug)]
pub(crate) struct Replay<'s> {
    pieces: Vec<ReplayPiece<'s>>,
    /// The bytes after a piece.
    end: &'static [u8],
    next: usize,
    pieces_left: u64,
    bytes: ByteSize,
    scratch: Vec<u8>,
}

/// One event.
#[derive(Clone, Copy, Debug)]
struct ReplayPiece<'s> {
    bytes: &'s [u8],
    begins_block: bool,
}

impl<'s> Replay<'s> {
    /// As many passes over what `format` makes of `sources` as fit into `cache`,
    /// at least one.
    pub(crate) fn new(
        format: &PayloadFormat,
        sources: &[&'s [u8]],
        cache: ByteSize,
        seed: Seed,
    ) -> Result<Self, BuildError> {
        let mut first = 0;
        let (pieces, end): (Vec<ReplayPiece<'s>>, &[u8]) = match format {
            PayloadFormat::StaticTimestamped(plan) => {
                let source = sources.first().ok_or(BuildError::SourceMissing)?;
                let pieces = time::pieces(plan, source)?;
                first = start(plan, &pieces, seed);
                (pieces, b"\n")
            }
            PayloadFormat::StaticChunks { .. } => (lines(sources), b"\n"),
            _ => (whole(sources), b""),
        };
        let bytes = pieces.iter().map(|piece| piece.bytes.len() + end.len());
        let pass = bytes.sum::<usize>() as u64;
        if pass == 0 {
            return Err(BuildError::SourceEmpty);
        }
        let passes = (cache.bytes() / pass).max(1);
        Ok(Self {
            next: first,
            pieces_left: passes.saturating_mul(pieces.len() as u64),
            bytes: ByteSize::new(pass.saturating_mul(passes)),
            pieces,
            end,
            scratch: Vec::new(),
        })
    }

    /// Bytes of all passes together.
    pub(crate) const fn size(&self) -> ByteSize {
        self.bytes
    }
}

/// Returns the grouping of pieces of `format`, which overrides the requested one.
pub(crate) const fn shape(format: &PayloadFormat, requested: BlockShape) -> BlockShape {
    BlockShape::Events {
        count: u32::MAX,
        maximum: match format {
            PayloadFormat::Static { .. } => ByteSize::new(u64::MAX),
            _ => requested.maximum(),
        },
    }
}

impl Writer for Replay<'_> {
    fn next(&mut self) -> Option<Event<'_>> {
        self.pieces_left = self.pieces_left.checked_sub(1)?;
        let piece = self.pieces[self.next];
        self.next = (self.next + 1) % self.pieces.len();
        let bytes = if self.end.is_empty() {
            piece.bytes
        } else {
            self.scratch.clear();
            self.scratch.extend_from_slice(piece.bytes);
            self.scratch.extend_from_slice(self.end);
            &self.scratch
        };
        Some(Event {
            bytes,
            slot: None,
            units: 1,
            joint: if piece.begins_block {
                Joint::Break
            } else {
                Joint::Frame
            },
        })
    }
}

/// Lines as they are, each file a block.
fn whole<'s>(sources: &[&'s [u8]]) -> Vec<ReplayPiece<'s>> {
    let mut pieces = Vec::new();
    for source in sources {
        let lines = source.split_inclusive(|byte| *byte == b'\n');
        pieces.extend(lines.enumerate().map(|(index, bytes)| ReplayPiece {
            bytes,
            begins_block: index == 0,
        }));
    }
    pieces
}

/// Lines without what ends them.
fn lines<'s>(sources: &[&'s [u8]]) -> Vec<ReplayPiece<'s>> {
    let lines = sources
        .iter()
        .flat_map(|source| source.split_inclusive(|byte| *byte == b'\n'));
    lines
        .map(|line| ReplayPiece {
            bytes: without_end(line),
            begins_block: false,
        })
        .collect()
}

pub(super) fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The first piece of the second in which to begin.
fn start(plan: &TimestampedPlan, pieces: &[ReplayPiece<'_>], seed: Seed) -> usize {
    let count = pieces.len() as u64;
    let line = match plan.start_line {
        _ if count == 0 => return 0,
        Some(line) => line % count,
        None => Random::new(seed.derive("start", 0)).between(0, count - 1),
    };
    let line = usize::try_from(line).unwrap_or(0);
    let before = pieces[..=line].iter().rposition(|piece| piece.begins_block);
    before.unwrap_or(0)
}
