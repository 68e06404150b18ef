//! Record batches of version 2.

use super::compression::{Compression, CompressionFailed};
use super::length_of;
use crc32c::crc32c;

/// From the beginning of a batch: its length, what the sum is of, and the sum itself.
const LENGTH_AT: usize = 8;
const SUM_AT: usize = 17;
const SUMMED_AT: usize = 21;
/// Length of a batch's header, before its records.
const HEAD_BYTES: usize = 61;

/// Writes batches; its room is used again.
#[derive(Debug)]
pub struct BatchWriter {
    compression: Compression,
    /// Records that are still to be packed.
    records: Vec<u8>,
}

impl BatchWriter {
    /// Of batches that are packed by `compression`.
    #[must_use]
    pub const fn new(compression: Compression) -> Self {
        Self {
            compression,
            records: Vec::new(),
        }
    }

    /// Appends a batch of `messages`, at least one. All have the time `now_ms`, in milliseconds since 1970, and
    /// neither keys nor headers.
    ///
    /// # Errors
    /// [`CompressionFailed`]; `out` then ends in an incomplete batch.
    pub fn write<'m>(
        &mut self,
        messages: impl Iterator<Item = &'m [u8]>,
        now_ms: i64,
        out: &mut Vec<u8>,
    ) -> Result<(), CompressionFailed> {
        let begin = out.len();
        out.extend_from_slice(&[0; HEAD_BYTES]);
        let count = if self.compression == Compression::None {
            put_records(messages, out)
        } else {
            self.records.clear();
            let count = put_records(messages, &mut self.records);
            self.compression.pack(&self.records, out)?;
            count
        };
        let batch = &mut out[begin..];
        let length = length_of(batch.len() - LENGTH_AT - 4);
        let mut put = |at: usize, bytes: &[u8]| batch[at..at + bytes.len()].copy_from_slice(bytes);
        put(LENGTH_AT, &length.to_be_bytes());
        // The leader's epoch, unknown, and the version.
        put(12, &(-1_i32).to_be_bytes());
        put(16, &[2]);
        put(SUMMED_AT, &self.compression.number().to_be_bytes());
        put(23, &(count - 1).to_be_bytes());
        put(27, &now_ms.to_be_bytes());
        put(35, &now_ms.to_be_bytes());
        // No producer id, so no epoch and no sequence.
        put(43, &[0xff; 14]);
        put(57, &count.to_be_bytes());
        let sum = crc32c(&batch[SUMMED_AT..]);
        batch[SUM_AT..SUMMED_AT].copy_from_slice(&sum.to_be_bytes());
        Ok(())
    }
}

/// Appends `messages` as records. Returns their number.
fn put_records<'m>(messages: impl Iterator<Item = &'m [u8]>, out: &mut Vec<u8>) -> i32 {
    let mut count = 0_i32;
    for message in messages {
        let (offset, length) = (Varint::of(count.into()), Varint::of_length(message.len()));
        // Attributes, time difference 0, no key, and no headers take a byte each.
        let record_bytes = 4 + offset.bytes().len() + length.bytes().len() + message.len();
        out.extend_from_slice(Varint::of_length(record_bytes).bytes());
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(offset.bytes());
        // A length of -1.
        out.push(1);
        out.extend_from_slice(length.bytes());
        out.extend_from_slice(message);
        out.push(0);
        count += 1;
    }
    count
}

/// A number in seven bits a byte, the lowest first, with its sign in the lowest bit.
#[derive(Clone, Copy, Debug)]
struct Varint {
    bytes: [u8; 10],
    length: usize,
}

impl Varint {
    fn of(number: i64) -> Self {
        let mut rest = (number.cast_unsigned() << 1) ^ (number >> 63).cast_unsigned();
        let (mut bytes, mut length) = ([0; 10], 0);
        loop {
            let low = u8::try_from(rest & 0x7f).unwrap_or_default();
            rest >>= 7;
            bytes[length] = low | u8::from(rest > 0) << 7;
            length += 1;
            if rest == 0 {
                return Self { bytes, length };
            }
        }
    }

    fn of_length(length: usize) -> Self {
        Self::of(length_of(length).into())
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_the_protocol_has_them() {
        for (number, expected) in [
            (0, &[0][..]),
            (-1, &[1]),
            (1, &[2]),
            (63, &[0x7e]),
            (64, &[0x80, 1]),
            (300, &[0xd8, 4]),
            (
                i64::MIN,
                &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
            ),
        ] {
            assert_eq!(Varint::of(number).bytes(), expected, "{number}");
        }
    }
}
