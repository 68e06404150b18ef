//! The format of events in a segment: a length, a checksum and the bytes, one event after
//! another. Numbers are little-endian, of 32 bits each.

use crate::split::LINE_BYTES_MAX;
use stillwell_units::{as_usize, count};

/// Size of the head before the bytes of an event.
pub(super) const HEAD_BYTES: usize = 8;

/// An event may have grown on its way through the relay; one that is longer is none.
pub(super) const EVENT_BYTES_MAX: usize = 16 * LINE_BYTES_MAX;

/// Appends `event` to `out`.
pub(super) fn write(event: &[u8], out: &mut Vec<u8>) {
    let length = count(event.len());
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&checksum(event).to_le_bytes());
    out.extend_from_slice(event);
}

/// The record at the beginning of `bytes`.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Read<'b> {
    /// An event, and what it takes with its head.
    Event(&'b [u8], usize),
    /// The beginning of one: so many bytes are needed in all.
    Part(usize),
    /// No event of ours: it was torn, or something else was written over it.
    Torn,
}

/// Reads the event at the beginning of `bytes`.
pub(super) fn read(bytes: &[u8]) -> Read<'_> {
    let Some((head, rest)) = bytes.split_at_checked(HEAD_BYTES) else {
        return Read::Part(HEAD_BYTES);
    };
    let number = |at: usize| u32::from_le_bytes(std::array::from_fn(|index| head[at + index]));
    let length = as_usize(number(0));
    if length > EVENT_BYTES_MAX {
        return Read::Torn;
    }
    match rest.get(..length) {
        None => Read::Part(HEAD_BYTES + length),
        Some(event) if checksum(event) == number(4) => Read::Event(event, HEAD_BYTES + length),
        Some(_) => Read::Torn,
    }
}

/// CRC-32 as in zip files, of the length first: so zeros are no event.
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    let length = count(bytes.len()).to_le_bytes();
    let sum = continued(!0, &length);
    !continued(sum, bytes)
}

fn continued(mut sum: u32, bytes: &[u8]) -> u32 {
    for byte in bytes {
        let index = usize::from(sum.to_le_bytes()[0] ^ byte);
        sum = TABLE[index] ^ (sum >> 8);
    }
    sum
}

/// The polynomial with its bits reversed.
const POLYNOMIAL: u32 = 0xedb8_8320;

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    let mut sum: u32 = 0;
    while byte < table.len() {
        let mut entry = sum;
        let mut bit = 0;
        while bit < 8 {
            entry = if entry & 1 == 1 {
                (entry >> 1) ^ POLYNOMIAL
            } else {
                entry >> 1
            };
            bit += 1;
        }
        table[byte] = entry;
        byte += 1;
        sum += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_checksum_is_that_of_zip_files() {
        assert_eq!(!continued(!0, b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn zeros_and_wild_lengths_are_no_events() {
        assert_eq!(read(&[0; 64]), Read::Torn);
        assert_eq!(read(&[0xff; 64]), Read::Torn);
    }

    proptest! {
        #[test]
        fn for_all_events_what_is_cut_is_a_part_and_what_is_changed_is_torn(
            event in proptest::collection::vec(any::<u8>(), 0..200),
            at in any::<prop::sample::Index>(),
        ) {
            let mut bytes = Vec::new();
            write(&event, &mut bytes);
            prop_assert_eq!(read(&bytes), Read::Event(&event, bytes.len()));
            let cut = at.index(bytes.len());
            prop_assert!(matches!(read(&bytes[..cut]), Read::Part(_)));
            // A changed length may claim more than there is.
            bytes[cut] ^= 0x10;
            prop_assert!(!matches!(read(&bytes), Read::Event(..)));
        }
    }
}
