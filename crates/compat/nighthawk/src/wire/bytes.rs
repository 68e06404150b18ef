//! Protocol buffers' bytes: numbers of a length of their own, and fields.

/// Why bytes are no message. It says where, where that is known.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum WireError {
    /// They end within a field.
    #[error("the message ends within a field")]
    Truncated,
    /// A number of more than 64 bits, a field without a number, or of a type that
    /// is not used any more.
    #[error("the bytes are no message")]
    Malformed,
    /// A field that is not known, in a message where that matters.
    #[error("field {number} of {message} is not known here: it cannot be taken into account")]
    Unknown {
        /// The message's full name.
        message: String,
        /// The field's number.
        number: u32,
    },
    /// A field that does not hold what it should.
    #[error("`{field}` of {message} must be {expected}")]
    Shape {
        /// The message's full name.
        message: String,
        /// The field's name.
        field: String,
        /// What it must be.
        expected: &'static str,
    },
    /// A name that no message or field has.
    #[error("there is no `{name}`")]
    NoSuch {
        /// The name.
        name: String,
    },
    /// Messages in messages in messages.
    #[error("messages are nested more than {} deep", DEPTH_MAX)]
    Deep,
}

/// So deep may messages be nested.
pub(super) const DEPTH_MAX: usize = 64;

/// A field's value as it stands in the bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Raw<'a> {
    Varint(u64),
    Eight([u8; 8]),
    Four([u8; 4]),
    Bytes(&'a [u8]),
}

/// Takes fields off `bytes`, one by one.
pub(super) struct FieldReader<'a> {
    rest: &'a [u8],
}

impl<'a> FieldReader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Whether all was taken.
    pub(super) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next field's number and value; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u32, Raw<'a>)>, WireError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).map_err(|_| WireError::Malformed)?;
        if number == 0 || number >= 1 << 29 {
            return Err(WireError::Malformed);
        }
        let raw = match tag & 7 {
            0 => Raw::Varint(self.varint()?),
            1 => Raw::Eight(self.array()?),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| WireError::Truncated)?;
                Raw::Bytes(self.take(length)?)
            }
            5 => Raw::Four(self.array()?),
            _ => return Err(WireError::Malformed),
        };
        Ok(Some((number, raw)))
    }

    /// A number of up to ten bytes.
    pub(super) fn varint(&mut self) -> Result<u64, WireError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (first, rest) = self.rest.split_first().ok_or(WireError::Truncated)?;
            self.rest = rest;
            let part = u64::from(first & 0x7f);
            if shift == 63 && part > 1 {
                return Err(WireError::Malformed);
            }
            value |= part << shift;
            if first & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(WireError::Malformed)
    }

    /// So many bytes, for numbers of a fixed length.
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let bytes = self.take(N)?;
        bytes.try_into().map_err(|_| WireError::Truncated)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], WireError> {
        let (bytes, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(bytes)
    }
}

/// Appends a number of a length of its own.
pub(super) fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    loop {
        let low = u8::try_from(value & 0x7f).unwrap_or(0);
        value >>= 7;
        if value == 0 {
            return out.push(low);
        }
        out.push(low | 0x80);
    }
}

/// Appends the field `number`, which holds a number.
pub(super) fn put_number(number: u32, value: u64, out: &mut Vec<u8>) {
    put_varint(u64::from(number) << 3, out);
    put_varint(value, out);
}

/// Appends the field `number`, which holds a number with a fraction.
pub(super) fn put_double(number: u32, value: f64, out: &mut Vec<u8>) {
    put_varint(u64::from(number) << 3 | 1, out);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends the field `number`, which holds one with half the digits.
pub(super) fn put_float(number: u32, value: f32, out: &mut Vec<u8>) {
    put_varint(u64::from(number) << 3 | 5, out);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends the field `number`, which holds a text, bytes or a message.
pub(super) fn put_bytes(number: u32, value: &[u8], out: &mut Vec<u8>) {
    put_varint(u64::from(number) << 3 | 2, out);
    put_varint(value.len() as u64, out);
    out.extend_from_slice(value);
}
