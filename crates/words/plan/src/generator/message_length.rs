//! Length of messages of fixed length.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

/// Length of each message of a fixed length, from 1 B to 1 GiB.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct MessageLength(NonZeroU32);

/// A length that no message has.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a message length of {bytes} B is out of range: use 1 B to 1 GiB")]
pub struct MessageLengthError {
    bytes: u64,
}

impl MessageLength {
    /// One byte.
    pub const MIN: Self = Self(NonZeroU32::MIN);
    /// The longest one, 1 GiB.
    pub const MAX_BYTES: u32 = 1 << 30;

    /// Returns the length of `bytes`.
    ///
    /// # Errors
    /// No byte, or more than 1 GiB.
    pub fn try_new(bytes: u64) -> Result<Self, MessageLengthError> {
        let length = u32::try_from(bytes).ok().and_then(NonZeroU32::new);
        let length = length.filter(|length| length.get() <= Self::MAX_BYTES);
        length.map(Self).ok_or(MessageLengthError { bytes })
    }

    /// Bytes, at least one.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        self.0.get()
    }
}

impl TryFrom<u32> for MessageLength {
    type Error = MessageLengthError;

    fn try_from(bytes: u32) -> Result<Self, MessageLengthError> {
        Self::try_new(bytes.into())
    }
}

impl From<MessageLength> for u32 {
    fn from(length: MessageLength) -> Self {
        length.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_from_one_byte_to_one_gibibyte() {
        for (bytes, fits) in [
            (0, false),
            (1, true),
            (1 << 30, true),
            ((1 << 30) + 1, false),
            (u64::MAX, false),
        ] {
            let length = MessageLength::try_new(bytes);
            assert_eq!(length.is_ok(), fits, "{bytes}");
            let read = serde_json::from_str::<MessageLength>(&bytes.to_string());
            assert_eq!(read.ok(), length.ok());
        }
        let written = serde_json::to_string(&MessageLength::try_new(9).unwrap());
        assert_eq!(written.unwrap(), "9");
    }
}
