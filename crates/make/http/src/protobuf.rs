//! Protocol Buffers without a schema: fields out of bytes, and bytes out of fields.
//!
//! Writing is for rare messages: each nested message is laid out by itself first. (Payloads
//! are written from the back, in their own crate.)
//!
//! ```
//! use stillwell_http::protobuf::{MessageWriter, count};
//!
//! let mut logs = MessageWriter::default();
//! logs.message(1, |stream| {
//!     stream.text(1, "{app=\"a\"}");
//!     stream.message(2, |entry| entry.text(2, "a line"));
//! });
//! assert_eq!(count(&logs.into_bytes(), &[1, 2]), Some(1));
//! ```

const VARINT: u32 = 0;
const FIXED_64: u32 = 1;
const LENGTH: u32 = 2;
const FIXED_32: u32 = 5;

/// A message being laid out. Fields with their default value are written too,
/// which readers take as the same.
#[derive(Debug, Default)]
pub struct MessageWriter {
    bytes: Vec<u8>,
}

impl MessageWriter {
    /// As it is sent.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// A number of any sort that is written as a varint and is not negative.
    pub fn number(&mut self, field: u32, value: u64) {
        self.key(field, VARINT);
        write_varint(value, &mut self.bytes);
    }

    /// Four bytes.
    pub fn fixed_32(&mut self, field: u32, value: u32) {
        self.key(field, FIXED_32);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Eight bytes.
    pub fn fixed_64(&mut self, field: u32, value: u64) {
        self.key(field, FIXED_64);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// A number of eight bytes with a point.
    pub fn double(&mut self, field: u32, value: f64) {
        self.fixed_64(field, value.to_bits());
    }

    /// Bytes behind their length.
    pub fn bytes(&mut self, field: u32, value: &[u8]) {
        self.key(field, LENGTH);
        write_varint(value.len() as u64, &mut self.bytes);
        self.bytes.extend_from_slice(value);
    }

    /// A text.
    pub fn text(&mut self, field: u32, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    /// A nested message that `fill` lays out.
    pub fn message(&mut self, field: u32, fill: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        fill(&mut inner);
        self.bytes(field, &inner.bytes);
    }

    /// Words of eight bytes behind one key.
    pub fn packed_64(&mut self, field: u32, values: impl Iterator<Item = u64>) {
        let packed: Vec<u8> = values.flat_map(u64::to_le_bytes).collect();
        self.bytes(field, &packed);
    }

    fn key(&mut self, field: u32, kind: u32) {
        write_varint(u64::from(field << 3 | kind), &mut self.bytes);
    }
}

/// The value of a field, as the wire has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A number, as it was written.
    Varint(u64),
    /// Eight bytes, the lowest first.
    Fixed64([u8; 8]),
    /// Four bytes, the lowest first.
    Fixed32([u8; 4]),
    /// A text, bytes, a message or packed numbers.
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    /// Returns the bytes of a value with a length.
    #[must_use]
    pub const fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Varint(_) | Self::Fixed64(_) | Self::Fixed32(_) => None,
        }
    }
}

/// Calls `take` with the number and the value of each field of `message`; `None`
/// where it is no message, or `take` gives that.
pub fn fields<'a>(
    message: &'a [u8],
    mut take: impl FnMut(u64, Value<'a>) -> Option<()>,
) -> Option<()> {
    let mut rest = message;
    while !rest.is_empty() {
        let key = varint(&mut rest)?;
        let value = match u32::try_from(key & 7).ok()? {
            VARINT => Value::Varint(varint(&mut rest)?),
            FIXED_64 => Value::Fixed64(*split(&mut rest, 8)?.first_chunk()?),
            LENGTH => {
                let length = usize::try_from(varint(&mut rest)?).ok()?;
                Value::Bytes(split(&mut rest, length)?)
            }
            FIXED_32 => Value::Fixed32(*split(&mut rest, 4)?.first_chunk()?),
            _ => return None,
        };
        if key >> 3 == 0 {
            return None;
        }
        take(key >> 3, value)?;
    }
    Some(())
}

/// Calls `take` with each message in the fields of `path`, one within the other; `None` where
/// anything on the way is no message.
pub fn within<'a>(
    message: &'a [u8],
    path: &[u64],
    take: &mut dyn FnMut(&'a [u8]) -> Option<()>,
) -> Option<()> {
    let Some((first, rest)) = path.split_first() else {
        return take(message);
    };
    fields(message, |number, value| {
        if number == *first {
            within(value.bytes()?, rest, take)
        } else {
            Some(())
        }
    })
}

/// Number of messages in the fields of `path`; `None` as for [`within`].
#[must_use]
pub fn count(message: &[u8], path: &[u64]) -> Option<u64> {
    let mut messages = 0;
    within(message, path, &mut |_| {
        messages += 1;
        Some(())
    })?;
    Some(messages)
}

/// Appends a varint: seven bits in each byte, the lowest first.
pub fn write_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for (index, byte) in rest.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f).checked_shl(u32::try_from(index * 7).ok()?)?;
        if byte & 0x80 == 0 {
            *rest = &rest[index + 1..];
            return Some(value);
        }
    }
    None
}

fn split<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (front, back) = rest.split_at_checked(length)?;
    *rest = back;
    Some(front)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A message of these fields.
    fn message(fields: &[(u32, &[u8])]) -> Vec<u8> {
        let mut message = MessageWriter::default();
        for (field, bytes) in fields {
            message.bytes(*field, bytes);
        }
        message.into_bytes()
    }

    #[test]
    fn the_published_examples_come_out() {
        let mut message = MessageWriter::default();
        message.number(1, 150);
        message.text(2, "testing");
        message.message(3, |inner| inner.number(1, 150));
        assert_eq!(
            message.into_bytes(),
            b"\x08\x96\x01\x12\x07testing\x1a\x03\x08\x96\x01"
        );
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for bytes in [
            &b"\xff"[..],
            // A number of eleven bytes, a field 0, a kind 3, a length beyond the end.
            b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\x00\x01",
            b"\x0b",
            b"\x0a\x02a",
        ] {
            assert_eq!(fields(bytes, |_, _| Some(())), None, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn for_all_fields_what_was_written_reads_back(
            number in any::<u64>(),
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            fixed in any::<u32>(),
            words in prop::collection::vec(any::<u64>(), 0..4),
        ) {
            let mut message = MessageWriter::default();
            message.number(1, number);
            message.fixed_32(2, fixed);
            message.double(3, 1.5);
            message.bytes(400, &bytes);
            message.packed_64(5, words.iter().copied());
            let written = message.into_bytes();
            let mut read = Vec::new();
            let whole = fields(&written, |number, value| {
                read.push((number, value));
                Some(())
            });
            let words: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            prop_assert_eq!(whole, Some(()));
            prop_assert_eq!(read, [
                (1, Value::Varint(number)),
                (2, Value::Fixed32(fixed.to_le_bytes())),
                (3, Value::Fixed64(1.5_f64.to_le_bytes())),
                (400, Value::Bytes(&bytes)),
                (5, Value::Bytes(&words)),
            ]);
        }

        #[test]
        fn for_all_bytes_walking_ends(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let mut messages = 0;
            fields(&bytes, |_, _| {
                messages += 1;
                Some(())
            });
            prop_assert!(messages <= bytes.len());
            prop_assert!(count(&bytes, &[1, 2, 2]).is_none_or(|messages| messages <= bytes.len() as u64));
        }

        #[test]
        fn for_all_messages_those_within_are_counted(
            outer in prop::collection::vec((1_u32..4, prop::collection::vec(1_u32..4, 0..5)), 0..5),
        ) {
            let inner = |numbers: &[u32]| {
                message(&numbers.iter().map(|number| (*number, &b""[..])).collect::<Vec<_>>())
            };
            let bytes: Vec<(u32, Vec<u8>)> =
                outer.iter().map(|(number, numbers)| (*number, inner(numbers))).collect();
            let whole: Vec<(u32, &[u8])> =
                bytes.iter().map(|(number, bytes)| (*number, bytes.as_slice())).collect();
            let in_ones = outer.iter().filter(|(number, _)| *number == 1);
            let twos = in_ones.flat_map(|(_, numbers)| numbers).filter(|number| **number == 2);
            prop_assert_eq!(count(&message(&whole), &[1, 2]), Some(twos.count() as u64));
        }
    }
}
