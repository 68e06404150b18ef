//! Reading numbers and texts in network order.

/// The received bytes violate the protocol.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("read {0}")]
pub struct Malformed(pub(crate) &'static str);

/// Reads fields from a message that was received completely.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
    /// Name of the message, for errors.
    message: &'static str,
}

impl<'a> Cursor<'a> {
    pub(crate) const fn new(bytes: &'a [u8], message: &'static str) -> Self {
        Self {
            rest: bytes,
            message,
        }
    }

    #[cfg(test)]
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next `length` bytes.
    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (bytes, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(Malformed(self.message))?;
        self.rest = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let bytes = self.take(N)?;
        bytes.try_into().map_err(|_| Malformed(self.message))
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    pub(crate) fn i16(&mut self) -> Result<i16, Malformed> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    pub(crate) fn i32(&mut self) -> Result<i32, Malformed> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    /// A number as a length.
    pub(crate) fn length(&self, number: impl TryInto<usize>) -> Result<usize, Malformed> {
        number.try_into().map_err(|_| Malformed(self.message))
    }

    pub(crate) const fn malformed(&self) -> Malformed {
        Malformed(self.message)
    }
}

/// Appends `number` in decimal digits.
pub(crate) fn write_decimal(number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let (mut rest, mut at) = (number, digits.len());
    loop {
        at -= 1;
        let digit = u8::try_from(rest % 10).unwrap_or_default();
        digits[at] = b'0' + digit;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}
