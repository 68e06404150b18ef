//! Finds stamps in bytes as they arrive.
//!
//! The search knows nothing of framing. It jumps from magic to magic and keeps
//! what may still become a stamp, or belongs to a span, for the next read: never
//! more than [`REACH`] bytes of it.

use memchr::memmem::Finder;

use crate::lanes::{Lanes, Work, best};
use crate::span::{GUARD_WIDTH, SPAN_LIMIT, SpanCheck};
use crate::stamp::{MAGIC, STAMP_WIDTH, Stamp};

/// Maximum distance from the beginning of a stamp to the end of all bytes that it covers.
const REACH: usize = STAMP_WIDTH + SPAN_LIMIT + GUARD_WIDTH;

/// As many bytes behind a stamp as it can speak of.
pub const BEHIND_MAX: usize = SPAN_LIMIT + GUARD_WIDTH;

/// Spans that may be open at once: each begins at least one stamp after the one
/// before it.
const OPEN_SPANS: usize = REACH / STAMP_WIDTH + 2;

/// A match of the search.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StampMatch {
    /// A stamp. If its span is [`SpanCheck::Pending`], a [`StampMatch::SpanChecked`]
    /// follows.
    Stamp {
        /// The content of the stamp.
        stamp: Stamp,
        /// The check of its span.
        span: SpanCheck,
    },
    /// The check of the span of a stamp that was visited before as pending.
    SpanChecked {
        /// The content of the stamp.
        stamp: Stamp,
        /// The check; never [`SpanCheck::Pending`].
        span: SpanCheck,
    },
    /// The beginning of a stamp, but no stamp: cut off or changed.
    Broken,
}

/// Receives the matches. A closure can do it. For millions of events a second, use a type whose
/// method can be inlined into the search.
pub trait StampVisitor {
    /// Takes the next match.
    fn visit(&mut self, matched: StampMatch);
}

impl<F: FnMut(StampMatch)> StampVisitor for F {
    #[inline(always)]
    fn visit(&mut self, matched: StampMatch) {
        self(matched);
    }
}

/// Matches a stamp that is apart from the bytes that it covers, such as in a header before a body:
/// `token` is all of the header, `behind` the body from its beginning, as far as it arrived or as
/// [`BEHIND_MAX`] bytes of it. Never pending.
#[must_use]
pub fn match_header(token: &[u8], behind: &[u8]) -> StampMatch {
    let stamp = token.try_into().ok().and_then(Stamp::read);
    stamp.map_or(StampMatch::Broken, |stamp| StampMatch::Stamp {
        stamp,
        span: stamp.span.check(behind),
    })
}

/// The search through one connection, or one file: its reads in their order.
#[derive(Clone, Debug)]
pub struct StampSearch {
    finder: Finder<'static>,
    /// Bytes left from earlier reads.
    carry: Vec<u8>,
    /// The first place in `carry` at which a stamp that was not visited may begin.
    resume: usize,
    /// Stamps whose span is incomplete, in their order.
    open: Vec<OpenSpan>,
}

/// A span of which not all has arrived.
#[derive(Clone, Copy, Debug)]
struct OpenSpan {
    stamp: Stamp,
    /// The beginning of the span in the buffer.
    start: usize,
}

impl StampSearch {
    /// A search before its first read. Allocates all that it will ever need.
    #[must_use]
    pub fn new() -> Self {
        Self {
            finder: Finder::new(MAGIC),
            carry: Vec::with_capacity(2 * REACH),
            resume: 0,
            open: Vec::with_capacity(OPEN_SPANS),
        }
    }

    /// Takes the next read and visits all stamps that it completes, in their order. Each stamp is
    /// visited once, as soon as its last character arrived.
    #[inline]
    pub fn feed(&mut self, read: &[u8], mut visit: impl StampVisitor) {
        // A span may be open of which nothing has arrived.
        let has_rest = !(self.carry.is_empty() && self.open.is_empty());
        if has_rest && self.feed_carry(read, &mut visit) {
            return;
        }
        self.resume = best(Scan {
            buffer: read,
            from: 0,
            starts_before: read.len(),
            finder: &self.finder,
            open: &mut self.open,
            visit: &mut visit,
        });
        self.keep(read);
    }

    /// Ends the connection or file: incomplete spans are checked as they are.
    pub fn end(&mut self, mut visit: impl StampVisitor) {
        for open in self.open.drain(..) {
            visit.visit(open.closed(&self.carry));
        }
        if self.carry[self.resume..].starts_with(MAGIC) {
            visit.visit(StampMatch::Broken);
        }
        self.carry.clear();
        self.resume = 0;
    }

    /// Searches a complete message, such as a datagram or a body. It neither uses nor changes the
    /// state of [`StampSearch::feed`]. No span is pending.
    #[inline]
    pub fn whole(&self, message: &[u8], mut visit: impl StampVisitor) {
        best(Message {
            bytes: message,
            finder: &self.finder,
            visit: &mut visit,
        });
    }

    /// Puts as much of `read` behind the carry as anything in it can need. True
    /// if that was all of `read`; if not, nothing of the carry is needed any more.
    #[inline(never)]
    fn feed_carry(&mut self, read: &[u8], visit: &mut impl StampVisitor) -> bool {
        let before = self.carry.len();
        let taken = read.len().min(REACH);
        self.carry.extend_from_slice(&read[..taken]);
        let all = taken == read.len();
        self.visit_complete(visit);
        self.resume = best(Scan {
            buffer: &self.carry,
            from: self.resume,
            starts_before: if all { self.carry.len() } else { before },
            finder: &self.finder,
            open: &mut self.open,
            visit,
        });
        if all {
            let first = first_needed(self.resume, &self.open);
            self.carry.drain(..first);
            self.rebase(first);
        } else {
            debug_assert!(
                self.open.is_empty(),
                "all that began in the carry ended in it"
            );
            self.carry.clear();
        }
        all
    }

    /// Visits the open spans that are now complete in the carry.
    fn visit_complete(&mut self, visit: &mut impl StampVisitor) {
        let carry = &self.carry;
        self.open.retain(|open| {
            let span = open.stamp.span.check_so_far(&carry[open.start..]);
            if span == SpanCheck::Pending {
                return true;
            }
            visit.visit(StampMatch::SpanChecked {
                stamp: open.stamp,
                span,
            });
            false
        });
    }

    /// Carries over what the next read may complete.
    fn keep(&mut self, read: &[u8]) {
        let first = first_needed(self.resume, &self.open);
        self.carry.clear();
        self.carry.extend_from_slice(&read[first..]);
        self.rebase(first);
    }

    /// Counts all places from `first` on.
    fn rebase(&mut self, first: usize) {
        self.resume -= first;
        for open in &mut self.open {
            open.start -= first;
        }
    }
}

impl Default for StampSearch {
    fn default() -> Self {
        Self::new()
    }
}

impl OpenSpan {
    /// The match if nothing more arrives.
    fn closed(&self, buffer: &[u8]) -> StampMatch {
        StampMatch::SpanChecked {
            stamp: self.stamp,
            span: self.stamp.span.check(&buffer[self.start..]),
        }
    }
}

/// The first place that is still needed. Open spans are in their order.
fn first_needed(resume: usize, open: &[OpenSpan]) -> usize {
    open.first().map_or(resume, |open| open.start.min(resume))
}

impl Stamp {
    /// Number of bytes behind the stamp that the search skips. A span that arrived as it was sent
    /// has no other event's stamp.
    #[inline(always)]
    fn skipped_bytes(&self, span: SpanCheck) -> usize {
        if span == SpanCheck::Intact {
            usize::from(self.span.length())
        } else {
            0
        }
    }
}

/// A message that is all there.
struct Message<'a, T> {
    bytes: &'a [u8],
    finder: &'a Finder<'static>,
    visit: &'a mut T,
}

impl<T: StampVisitor> Work for Message<'_, T> {
    type Outcome = ();

    #[inline(always)]
    fn by(self, lanes: impl Lanes) {
        let mut rest = self.bytes;
        while let Some(start) = lanes.find(self.finder, rest) {
            let tail = &rest[start..];
            let read = tail.split_first_chunk();
            let read =
                read.and_then(|(token, behind)| Some((Stamp::read_by(lanes, token)?, behind)));
            let Some((stamp, behind)) = read else {
                visit_broken(self.visit);
                rest = &tail[MAGIC.len()..];
                continue;
            };
            let span = stamp.span.check(behind);
            rest = &behind[stamp.skipped_bytes(span)..];
            self.visit.visit(StampMatch::Stamp { stamp, span });
        }
    }
}

/// One pass over a buffer.
struct Scan<'a, T> {
    buffer: &'a [u8],
    from: usize,
    /// Stamps that begin here or later are another pass's.
    starts_before: usize,
    finder: &'a Finder<'static>,
    open: &'a mut Vec<OpenSpan>,
    visit: &'a mut T,
}

impl<T: StampVisitor> Work for Scan<'_, T> {
    /// The first place at which a stamp that was not visited may begin.
    type Outcome = usize;

    #[inline(always)]
    fn by(self, lanes: impl Lanes) -> usize {
        let mut next = self.from;
        while let Some(offset) = lanes.find(self.finder, &self.buffer[next..]) {
            let start = next + offset;
            if start >= self.starts_before {
                break;
            }
            let Some((characters, behind)) = self.buffer[start..].split_first_chunk() else {
                return start;
            };
            next = start + MAGIC.len();
            let Some(stamp) = Stamp::read_by(lanes, characters) else {
                visit_broken(self.visit);
                continue;
            };
            next = start + STAMP_WIDTH;
            let span = stamp.span.check_so_far(behind);
            if span == SpanCheck::Pending {
                self.open.push(OpenSpan { stamp, start: next });
            }
            next += stamp.skipped_bytes(span);
            self.visit.visit(StampMatch::Stamp { stamp, span });
        }
        next.max(last_beginning(self.buffer))
    }
}

/// The place of the first characters of a magic at the very end, or the end.
fn last_beginning(buffer: &[u8]) -> usize {
    let least = (buffer.len() + 1).saturating_sub(MAGIC.len());
    let mut places = least..buffer.len();
    places
        .find(|place| MAGIC.starts_with(&buffer[*place..]))
        .unwrap_or(buffer.len())
}

/// Visits a beginning without a stamp. A function of its own, because it is rare.
#[cold]
#[inline(never)]
fn visit_broken(visit: &mut impl StampVisitor) {
    visit.visit(StampMatch::Broken);
}

#[cfg(test)]
mod tests;
