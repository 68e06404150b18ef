//! Time alone in front of an event: eight bytes, big-endian, nanoseconds, as
//! Tremor's `ingest-ns` pre- and postprocessors read and write them.
//!
//! It has no magic, no sequence and no checksum: it is found only where the
//! framing says that an event begins, gives a latency, and nothing can be said
//! about loss from it. Any eight bytes are a prefix, so that a time is to be
//! believed only within the bounds that the caller knows.

use stillwell_units::Moment;

/// Bytes of the prefix.
pub const PREFIX_WIDTH: usize = 8;

/// The prefix for an event that is meant to be sent at `intended`. The receiver
/// has to read the same clock; Tremor's own is the time of day.
#[must_use]
pub const fn write(intended: Moment) -> [u8; PREFIX_WIDTH] {
    intended.as_u64().to_be_bytes()
}

/// The time in front of an event, and the event; `None` if there are fewer than
/// [`PREFIX_WIDTH`] bytes.
#[must_use]
pub fn split(event: &[u8]) -> Option<(Moment, &[u8])> {
    let (prefix, rest) = event.split_first_chunk()?;
    Some((Moment::new(u64::from_be_bytes(*prefix)), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_reads_back() {
        for time in [0, 1, 0x0102_0304_0506_0708, u64::MAX] {
            let event = [&write(Moment::new(time))[..], b"event"].concat();
            assert_eq!(split(&event), Some((Moment::new(time), &b"event"[..])));
        }
        assert_eq!(write(Moment::new(0x0102)), [0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(split(b"1234567"), None);
        assert_eq!(
            split(b"\0\0\0\0\0\0\0\x01"),
            Some((Moment::new(1), &b""[..]))
        );
    }
}
