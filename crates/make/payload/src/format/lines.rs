//! The lines of a file, as they are, in order.

use stillwell_units::ByteSize;

use crate::contract::{Event, Joint, Writer};

/// Whole passes over a file. Lines are never cut, however long; an empty line is
/// an event like any other.
#[derive(Debug)]
pub(crate) struct Lines<'s> {
    source: &'s [u8],
    /// The last line with the line feed that the file lacks.
    completed: Option<Vec<u8>>,
    next: usize,
    passes_left: u64,
}

impl<'s> Lines<'s> {
    /// As many passes over `source` as fit into `cache`, at least one; none
    /// where `source` is empty.
    pub(crate) fn new(source: &'s [u8], cache: ByteSize) -> Option<Self> {
        let last = source.split_inclusive(|byte| *byte == b'\n').next_back()?;
        let completed = (!last.ends_with(b"\n")).then(|| [last, b"\n"].concat());
        Some(Self {
            source,
            completed,
            next: 0,
            passes_left: passes(source, cache),
        })
    }
}

impl Writer for Lines<'_> {
    fn next(&mut self) -> Option<Event<'_>> {
        if self.passes_left == 0 {
            return None;
        }
        let rest = &self.source[self.next..];
        let bytes = match rest.iter().position(|byte| *byte == b'\n') {
            Some(end) => {
                self.next += end + 1;
                &rest[..=end]
            }
            None => {
                self.next = self.source.len();
                self.completed.as_deref().unwrap_or(rest)
            }
        };
        if self.next == self.source.len() {
            self.next = 0;
            self.passes_left -= 1;
        }
        Some(Event {
            bytes,
            slot: None,
            units: 1,
            joint: Joint::Frame,
        })
    }
}

/// Bytes of all passes together.
pub(crate) fn size(source: &[u8], cache: ByteSize) -> ByteSize {
    ByteSize::new(pass_size(source).saturating_mul(passes(source, cache)))
}

/// Returns how many times `source` fits into `cache`, at least once.
fn passes(source: &[u8], cache: ByteSize) -> u64 {
    (cache.bytes() / pass_size(source).max(1)).max(1)
}

/// Bytes of one pass, with the line feed that may be missing.
fn pass_size(source: &[u8]) -> u64 {
    source.len() as u64 + u64::from(!source.ends_with(b"\n"))
}
