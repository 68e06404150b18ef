//! Finds stamps in bytes as they arrive.
//!
//! The search knows nothing of framing. It jumps from magic to magic and keeps
//! what may still become a stamp, or belongs to a span, for the next read: never
//! more than [`REACH`] bytes of it.

use memchr::memmem::Finder;

use crate::lanes::{Lanes, Work, best};
use crate::span::{GUARD_WIDTH, SPAN_LIMIT, SpanCheck};
use crate::stamp::{MAGIC, STAMP_WIDTH, Stamp};

/// How far behind its beginning a stamp and all that it vouches for end at most.
const REACH: usize = STAMP_WIDTH + SPAN_LIMIT + GUARD_WIDTH;

/// As many bytes behind a stamp as it can speak of.
pub const BEHIND_MAX: usize = SPAN_LIMIT + GUARD_WIDTH;

/// Spans that may be open at once: each begins at least one stamp after the one
/// before it.
const OPEN_SPANS: usize = REACH / STAMP_WIDTH + 2;

/// Something that the search came upon.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sighting {
    /// A stamp. If its span is [`SpanCheck::Pending`], a [`Sighting::Settled`]
    /// follows.
    Stamp {
        /// What it says.
        stamp: Stamp,
        /// What became of its span.
        span: SpanCheck,
    },
    /// What became of the span of a stamp that was told of before.
    Settled {
        /// What the stamp says.
        stamp: Stamp,
        /// What became of its span; never [`SpanCheck::Pending`].
        span: SpanCheck,
    },
    /// The beginning of a stamp, but no stamp: cut off or changed.
    Broken,
}

/// Who is told. A closure can be; what is to be told of millions of events a second
/// is better a type of its own, whose method can be made part of the search.
pub trait Tell {
    /// Hears of the next thing that the search came upon.
    fn tell(&mut self, sighting: Sighting);
}

impl<F: FnMut(Sighting)> Tell for F {
    #[inline(always)]
    fn tell(&mut self, sighting: Sighting) {
        self(sighting);
    }
}

/// What a stamp says that stands apart from what it vouches for, such as in a header
/// before a body: `token` is all of the header, `behind` the body from its beginning,
/// as far as it arrived or as [`BEHIND_MAX`] bytes of it. Never pending.
#[must_use]
pub fn sight(token: &[u8], behind: &[u8]) -> Sighting {
    let stamp = token.try_into().ok().and_then(Stamp::read);
    stamp.map_or(Sighting::Broken, |stamp| Sighting::Stamp {
        stamp,
        span: stamp.span.check(behind),
    })
}

/// The search through one connection, or one file: its reads in their order.
#[derive(Clone, Debug)]
pub struct StampSearch {
    finder: Finder<'static>,
    /// What earlier reads left over.
    carry: Vec<u8>,
    /// From where in `carry` a stamp may begin that was not told of.
    resume: usize,
    /// Stamps whose span goes on, in the order in which they stand.
    open: Vec<OpenSpan>,
}

/// A span of which not all has arrived.
#[derive(Clone, Copy, Debug)]
struct OpenSpan {
    stamp: Stamp,
    /// Where it begins in the buffer.
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

    /// Takes the next read and tells of all stamps that it completes, in the
    /// order in which they stand. Each stamp is told of once, as soon as its last
    /// character arrived.
    #[inline]
    pub fn feed(&mut self, read: &[u8], mut tell: impl Tell) {
        // A span may be open of which nothing has arrived.
        let has_rest = !(self.carry.is_empty() && self.open.is_empty());
        if has_rest && self.feed_carry(read, &mut tell) {
            return;
        }
        self.resume = best(Scan {
            buffer: read,
            from: 0,
            starts_before: read.len(),
            finder: &self.finder,
            open: &mut self.open,
            tell: &mut tell,
        });
        self.keep(read);
    }

    /// Ends the connection or file: what is still open is told of as it stands.
    pub fn end(&mut self, mut tell: impl Tell) {
        for open in self.open.drain(..) {
            tell.tell(open.closed(&self.carry));
        }
        if self.carry[self.resume..].starts_with(MAGIC) {
            tell.tell(Sighting::Broken);
        }
        self.carry.clear();
        self.resume = 0;
    }

    /// Looks through a message that is all there, such as a datagram or a body.
    /// Neither uses nor changes what [`StampSearch::feed`] keeps. No span is
    /// told of as pending.
    #[inline]
    pub fn whole(&self, message: &[u8], mut tell: impl Tell) {
        best(Message {
            bytes: message,
            finder: &self.finder,
            tell: &mut tell,
        });
    }

    /// Puts as much of `read` behind the carry as anything in it can need. True
    /// if that was all of `read`; if not, nothing of the carry is needed any more.
    #[inline(never)]
    fn feed_carry(&mut self, read: &[u8], tell: &mut impl Tell) -> bool {
        let before = self.carry.len();
        let taken = read.len().min(REACH);
        self.carry.extend_from_slice(&read[..taken]);
        let all = taken == read.len();
        self.settle(tell);
        self.resume = best(Scan {
            buffer: &self.carry,
            from: self.resume,
            starts_before: if all { self.carry.len() } else { before },
            finder: &self.finder,
            open: &mut self.open,
            tell,
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

    /// Tells of the open spans that the carry now holds whole.
    fn settle(&mut self, tell: &mut impl Tell) {
        let carry = &self.carry;
        self.open.retain(|open| {
            let span = open.stamp.span.check_so_far(&carry[open.start..]);
            if span == SpanCheck::Pending {
                return true;
            }
            tell.tell(Sighting::Settled {
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
    /// What is told of it when nothing more arrives.
    fn closed(&self, buffer: &[u8]) -> Sighting {
        Sighting::Settled {
            stamp: self.stamp,
            span: self.stamp.span.check(&buffer[self.start..]),
        }
    }
}

/// The first place that is still needed. Open spans stand in their order.
fn first_needed(resume: usize, open: &[OpenSpan]) -> usize {
    open.first().map_or(resume, |open| open.start.min(resume))
}

impl Stamp {
    /// How far behind the stamp the search goes on. A span that arrived as it was
    /// sent holds no other event's stamp.
    #[inline(always)]
    fn passed_over(&self, span: SpanCheck) -> usize {
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
    tell: &'a mut T,
}

impl<T: Tell> Work for Message<'_, T> {
    type Outcome = ();

    #[inline(always)]
    fn by(self, lanes: impl Lanes) {
        let mut rest = self.bytes;
        while let Some(start) = lanes.find(self.finder, rest) {
            let found = &rest[start..];
            let read = found.split_first_chunk();
            let read =
                read.and_then(|(token, behind)| Some((Stamp::read_by(lanes, token)?, behind)));
            let Some((stamp, behind)) = read else {
                tell_broken(self.tell);
                rest = &found[MAGIC.len()..];
                continue;
            };
            let span = stamp.span.check(behind);
            rest = &behind[stamp.passed_over(span)..];
            self.tell.tell(Sighting::Stamp { stamp, span });
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
    tell: &'a mut T,
}

impl<T: Tell> Work for Scan<'_, T> {
    /// The place from which a stamp may begin that was not told of.
    type Outcome = usize;

    #[inline(always)]
    fn by(self, lanes: impl Lanes) -> usize {
        let mut next = self.from;
        while let Some(found) = lanes.find(self.finder, &self.buffer[next..]) {
            let start = next + found;
            if start >= self.starts_before {
                break;
            }
            let Some((characters, behind)) = self.buffer[start..].split_first_chunk() else {
                return start;
            };
            next = start + MAGIC.len();
            let Some(stamp) = Stamp::read_by(lanes, characters) else {
                tell_broken(self.tell);
                continue;
            };
            next = start + STAMP_WIDTH;
            let span = stamp.span.check_so_far(behind);
            if span == SpanCheck::Pending {
                self.open.push(OpenSpan { stamp, start: next });
            }
            next += stamp.passed_over(span);
            self.tell.tell(Sighting::Stamp { stamp, span });
        }
        next.max(last_beginning(self.buffer))
    }
}

/// Where the first characters of a magic stand at the very end, or the end.
fn last_beginning(buffer: &[u8]) -> usize {
    let least = (buffer.len() + 1).saturating_sub(MAGIC.len());
    let mut places = least..buffer.len();
    places
        .find(|place| MAGIC.starts_with(&buffer[*place..]))
        .unwrap_or(buffer.len())
}

/// Tells of a beginning without a stamp. Apart, because it is rare.
#[cold]
#[inline(never)]
fn tell_broken(tell: &mut impl Tell) {
    tell.tell(Sighting::Broken);
}

#[cfg(test)]
mod tests;
