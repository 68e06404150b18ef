//! Protocol Buffers, appended field by field. For what is told once in a while:
//! each nested message is laid out by itself first.

const VARINT: u32 = 0;
const FIXED_64: u32 = 1;
const LENGTH: u32 = 2;
const FIXED_32: u32 = 5;

/// A message being laid out. Fields with their default value are written too,
/// which readers take as the same.
#[derive(Debug, Default)]
pub(crate) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub(crate) fn number(&mut self, field: u32, value: u64) {
        self.key(field, VARINT);
        self.varint(value);
    }

    pub(crate) fn fixed_32(&mut self, field: u32, value: u32) {
        self.key(field, FIXED_32);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn fixed_64(&mut self, field: u32, value: u64) {
        self.key(field, FIXED_64);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn double(&mut self, field: u32, value: f64) {
        self.fixed_64(field, value.to_bits());
    }

    pub(crate) fn bytes(&mut self, field: u32, value: &[u8]) {
        self.key(field, LENGTH);
        self.varint(value.len() as u64);
        self.bytes.extend_from_slice(value);
    }

    pub(crate) fn text(&mut self, field: u32, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    /// A nested message that `fill` lays out.
    pub(crate) fn message(&mut self, field: u32, fill: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        fill(&mut inner);
        self.bytes(field, &inner.bytes);
    }

    /// Words of eight bytes behind one key.
    pub(crate) fn packed_64(&mut self, field: u32, values: impl Iterator<Item = u64>) {
        let packed: Vec<u8> = values.flat_map(u64::to_le_bytes).collect();
        self.bytes(field, &packed);
    }

    fn key(&mut self, field: u32, kind: u32) {
        self.varint(u64::from(field << 3 | kind));
    }

    fn varint(&mut self, value: u64) {
        push_varint(value, &mut self.bytes);
    }
}

/// Appends a number, seven bits in each byte, the lowest first.
pub(crate) fn push_varint(mut value: u64, out: &mut Vec<u8>) {
    loop {
        let [low, ..] = value.to_le_bytes();
        value >>= 7;
        if value == 0 {
            return out.push(low);
        }
        out.push(low | 0x80);
    }
}

/// A field of a message that somebody else laid out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Field<'m> {
    Number(u64),
    Bytes(&'m [u8]),
    /// Of fixed length, and of no interest here.
    Other,
}

/// The fields of `message` in turn, up to its end or to what makes no sense.
pub(crate) fn fields(mut message: &[u8]) -> impl Iterator<Item = (u64, Field<'_>)> {
    std::iter::from_fn(move || {
        let key = take_varint(&mut message)?;
        let field = match u32::try_from(key & 7).ok()? {
            VARINT => Field::Number(take_varint(&mut message)?),
            LENGTH => {
                let length = usize::try_from(take_varint(&mut message)?).ok()?;
                let (bytes, rest) = message.split_at_checked(length)?;
                message = rest;
                Field::Bytes(bytes)
            }
            kind @ (FIXED_64 | FIXED_32) => {
                let length = if kind == FIXED_64 { 8 } else { 4 };
                (_, message) = message.split_at_checked(length)?;
                Field::Other
            }
            _ => return None,
        };
        Some((key >> 3, field))
    })
}

fn take_varint(message: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = message.split_first()?;
        *message = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_published_examples_come_out() {
        let mut message = Message::default();
        message.number(1, 150);
        message.text(2, "testing");
        message.message(3, |inner| inner.number(1, 150));
        assert_eq!(
            message.into_bytes(),
            b"\x08\x96\x01\x12\x07testing\x1a\x03\x08\x96\x01"
        );
    }

    proptest! {
        #[test]
        fn for_all_fields_what_was_written_reads_back(
            number in any::<u64>(),
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            fixed in any::<u32>(),
        ) {
            let mut message = Message::default();
            message.number(1, number);
            message.fixed_32(2, fixed);
            message.double(3, 1.5);
            message.bytes(400, &bytes);
            let written = message.into_bytes();
            let read: Vec<_> = fields(&written).collect();
            prop_assert_eq!(read, [
                (1, Field::Number(number)),
                (2, Field::Other),
                (3, Field::Other),
                (400, Field::Bytes(&bytes)),
            ]);
        }

        #[test]
        fn for_all_bytes_reading_ends(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            prop_assert!(fields(&bytes).count() <= bytes.len());
        }
    }
}
