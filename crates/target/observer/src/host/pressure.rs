//! Time in which tasks of the host waited, from `/proc/pressure`: counted in
//! microseconds.

use crate::text;

/// Nanoseconds in which some task waited.
pub(crate) fn parse(text: &[u8]) -> Option<u64> {
    let line = text::lines(text).find_map(|line| line.strip_prefix(b"some "))?;
    let total = text::words(line).find_map(|word| word.strip_prefix(b"total="))?;
    Some(text::scaled(text::number(total)?, 1000))
}
