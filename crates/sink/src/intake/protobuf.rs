//! Walking through protobuf without knowing its schema.

/// The value of a field, as the wire has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Varint(u64),
    Fixed64([u8; 8]),
    Fixed32([u8; 4]),
    /// A text, bytes, a message or packed numbers.
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    /// What has a length.
    pub(super) const fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Varint(_) | Self::Fixed64(_) | Self::Fixed32(_) => None,
        }
    }
}

/// Calls `take` with the number and the value of each field of `message`; `None`
/// where it is no message, or `take` gives that.
pub(super) fn fields<'a>(
    message: &'a [u8],
    mut take: impl FnMut(u64, Value<'a>) -> Option<()>,
) -> Option<()> {
    let mut rest = message;
    while !rest.is_empty() {
        let key = varint(&mut rest)?;
        let value = match key & 7 {
            0 => Value::Varint(varint(&mut rest)?),
            1 => Value::Fixed64(*split(&mut rest, 8)?.first_chunk()?),
            2 => {
                let length = usize::try_from(varint(&mut rest)?).ok()?;
                Value::Bytes(split(&mut rest, length)?)
            }
            5 => Value::Fixed32(*split(&mut rest, 4)?.first_chunk()?),
            _ => return None,
        };
        if key >> 3 == 0 {
            return None;
        }
        take(key >> 3, value)?;
    }
    Some(())
}

/// Calls `take` with each message that stands in the fields of `path`, one within
/// the other; `None` where anything on the way is no message.
pub(super) fn within<'a>(
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

/// How many messages stand in the fields of `path`.
pub(super) fn count(message: &[u8], path: &[u64]) -> Option<u64> {
    let mut found = 0;
    within(message, path, &mut |_| {
        found += 1;
        Some(())
    })?;
    Some(found)
}

/// Appends a varint.
pub(super) fn write_varint(mut value: u64, out: &mut Vec<u8>) {
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
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Appends a field with a length.
    pub(crate) fn write(number: u64, bytes: &[u8], out: &mut Vec<u8>) {
        write_varint(number << 3 | 2, out);
        write_varint(bytes.len() as u64, out);
        out.extend_from_slice(bytes);
    }

    /// A message of these fields.
    pub(crate) fn message(fields: &[(u64, &[u8])]) -> Vec<u8> {
        let mut out = Vec::new();
        for (number, bytes) in fields {
            write(*number, bytes, &mut out);
        }
        out
    }

    #[test]
    fn fields_of_every_kind_are_read() {
        let mut bytes = vec![0x08, 0x96, 0x01, 0x11, 1, 2, 3, 4, 5, 6, 7, 8];
        bytes.extend_from_slice(&[0x1a, 2, b'h', b'i', 0x25, 9, 8, 7, 6]);
        let mut found = Vec::new();
        let whole = fields(&bytes, |number, value| {
            found.push((number, value));
            Some(())
        });
        assert_eq!(whole, Some(()));
        let expected = [
            (1, Value::Varint(150)),
            (2, Value::Fixed64([1, 2, 3, 4, 5, 6, 7, 8])),
            (3, Value::Bytes(b"hi")),
            (4, Value::Fixed32([9, 8, 7, 6])),
        ];
        assert_eq!(found, expected);
    }

    proptest! {
        #[test]
        fn for_all_numbers_a_varint_is_read_as_it_was_written(value in any::<u64>()) {
            let mut bytes = Vec::new();
            write_varint(value, &mut bytes);
            let mut rest = bytes.as_slice();
            prop_assert_eq!(varint(&mut rest), Some(value));
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn for_all_bytes_walking_ends(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            count(&bytes, &[1, 2, 2]);
        }

        #[test]
        fn for_all_messages_those_within_are_counted(
            outer in prop::collection::vec((1_u64..4, prop::collection::vec(1_u64..4, 0..5)), 0..5),
        ) {
            let inner = |numbers: &[u64]| {
                message(&numbers.iter().map(|number| (*number, &b""[..])).collect::<Vec<_>>())
            };
            let bytes: Vec<(u64, Vec<u8>)> =
                outer.iter().map(|(number, numbers)| (*number, inner(numbers))).collect();
            let whole: Vec<(u64, &[u8])> =
                bytes.iter().map(|(number, bytes)| (*number, bytes.as_slice())).collect();
            let in_ones = outer.iter().filter(|(number, _)| *number == 1);
            let twos = in_ones.flat_map(|(_, numbers)| numbers).filter(|number| **number == 2);
            prop_assert_eq!(count(&message(&whole), &[1, 2]), Some(twos.count() as u64));
        }
    }
}
