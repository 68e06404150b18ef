//! How calls end.

use std::fmt::Write as _;

/// The outcomes of calls that occur here, by their numbers in gRPC.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Code {
    /// The client does not want to go on.
    Cancelled,
    /// The client asks for something that makes no sense.
    InvalidArgument,
    /// What is asked for is not there.
    NotFound,
    /// There is more of something than there is room for.
    ResourceExhausted,
    /// There is no such method.
    Unimplemented,
    /// Something went wrong.
    Internal,
    /// Nobody is there, or not any more.
    Unavailable,
    /// Any other, by its number.
    Other(u32),
}

impl Code {
    /// The number.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::Cancelled => 1,
            Self::InvalidArgument => 3,
            Self::NotFound => 5,
            Self::ResourceExhausted => 8,
            Self::Unimplemented => 12,
            Self::Internal => 13,
            Self::Unavailable => 14,
            Self::Other(number) => number,
        }
    }

    /// The one with this number, which is not 0.
    #[must_use]
    pub const fn of(number: u32) -> Self {
        match number {
            1 => Self::Cancelled,
            3 => Self::InvalidArgument,
            5 => Self::NotFound,
            8 => Self::ResourceExhausted,
            12 => Self::Unimplemented,
            13 => Self::Internal,
            14 => Self::Unavailable,
            other => Self::Other(other),
        }
    }
}

/// Why a call ended other than well.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{message} (gRPC status {})", .code.number())]
pub struct Ended {
    /// How.
    pub code: Code,
    /// Why, for people.
    pub message: String,
}

impl Ended {
    /// An end with this code and reason.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// The reason as it stands in a header: what is no plain text is escaped.
    pub(super) fn escaped_message(&self) -> String {
        let mut text = String::with_capacity(self.message.len());
        for byte in self.message.bytes() {
            if (b' '..=b'~').contains(&byte) && byte != b'%' {
                text.push(char::from(byte));
            } else {
                // Writing to a text cannot fail.
                write!(text, "%{byte:02X}").unwrap_or_default();
            }
        }
        text
    }
}

/// The reason that a header holds.
pub(super) fn unescaped_message(header: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(header.len());
    let mut rest = header;
    while let Some((first, behind)) = rest.split_first() {
        let digits = behind
            .get(..2)
            .and_then(|own| std::str::from_utf8(own).ok());
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match escaped.filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn for_all_reasons_what_is_written_is_read(message in ".*") {
            let ended = Ended::new(Code::Internal, message.clone());
            let header = ended.escaped_message();
            prop_assert!(header.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
            prop_assert_eq!(unescaped_message(header.as_bytes()), message);
        }

        #[test]
        fn for_all_numbers_a_code_has_its_number(number in 1_u32..100) {
            prop_assert_eq!(Code::of(number).number(), number);
        }
    }
}
