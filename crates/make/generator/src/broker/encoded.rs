//! Blocks as messages, and how far they have left.

use stillwell_payload::Block;
use stillwell_plan::generator::MessageOf;

use super::Cutting;

/// One message among the bytes of a slice.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Cut {
    /// Start of the message in the encoded bytes.
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// End in the source bytes.
    pub(crate) source_end: usize,
}

/// Appends the messages of `block`, whose bytes, or a copy of them, begin at `start`
/// of `bytes`.
pub(super) fn cut(
    cutting: Cutting,
    block: &Block<'_>,
    bytes: &[u8],
    start: usize,
    cuts: &mut Vec<Cut>,
) {
    if cutting.message == MessageOf::Block {
        let end = start + block.bytes.len();
        cuts.push(Cut {
            start,
            end,
            source_end: end,
        });
        return;
    }
    let mut begin = start;
    for source_end in block.event_ends().map(|end| start + end) {
        let is_line = cutting.drops_line_feeds && bytes[begin..source_end].ends_with(b"\n");
        cuts.push(Cut {
            start: begin,
            end: source_end - usize::from(is_line),
            source_end,
        });
        begin = source_end;
    }
}

/// Ends of the parts of the output that a broker can understand by themselves.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    ends: Vec<End>,
    /// Number of pieces that were sent.
    passed: usize,
    /// Bytes of messages so far.
    sent: usize,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct End {
    /// In what is written.
    written: usize,
    /// Position in the source bytes.
    source: usize,
    /// Bytes of messages until here.
    sent: usize,
}

impl Pieces {
    pub(super) fn clear(&mut self) {
        self.ends.clear();
        (self.passed, self.sent) = (0, 0);
    }

    /// The output up to `written` ends with these messages.
    pub(crate) fn push(&mut self, written: usize, messages: &[Cut]) {
        let Some(last) = messages.last() else {
            return;
        };
        let sent = messages
            .iter()
            .map(|cut| cut.end - cut.start)
            .sum::<usize>();
        self.sent += sent;
        self.ends.push(End {
            written,
            source: last.source_end,
            sent: self.sent,
        });
    }

    /// All up to `written` has left: how many more bytes of the source that are, how
    /// many more bytes of messages, and how many pieces have left in all.
    pub(super) fn pass(&mut self, written: usize) -> (usize, usize, usize) {
        let end = |passed: usize| match passed {
            0 => End::default(),
            passed => self.ends[passed - 1],
        };
        let before = end(self.passed);
        let more = self.ends[self.passed..].partition_point(|end| end.written <= written);
        self.passed += more;
        let after = end(self.passed);
        (
            after.source - before.source,
            after.sent - before.sent,
            self.passed,
        )
    }

    /// Number of pieces.
    pub(super) const fn len(&self) -> usize {
        self.ends.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_pieces_have_left() {
        let cut = |start, end, source_end| Cut {
            start,
            end,
            source_end,
        };
        let mut pieces = Pieces::default();
        pieces.push(10, &[cut(0, 4, 5)]);
        pieces.push(25, &[cut(5, 9, 10), cut(10, 12, 13)]);
        for (written, expected) in [
            (9, (0, 0, 0)),
            (10, (5, 4, 1)),
            (24, (0, 0, 1)),
            (40, (8, 6, 2)),
            (40, (0, 0, 2)),
        ] {
            assert_eq!(pieces.pass(written), expected, "{written}");
        }
    }
}
