//! Ends of calls.

use std::fmt::Write as _;

/// The error codes of gRPC that this crate uses.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StatusCode {
    /// The client cancelled the call.
    Cancelled,
    /// The request is invalid.
    InvalidArgument,
    /// The requested object does not exist.
    NotFound,
    /// A limit is exceeded.
    ResourceExhausted,
    /// There is no such method.
    Unimplemented,
    /// The caller may not do that.
    PermissionDenied,
    /// The caller has no valid token.
    Unauthenticated,
    /// An internal error.
    Internal,
    /// The server is not available.
    Unavailable,
    /// Any other, by its number.
    Other(u32),
}

impl StatusCode {
    /// The number.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::Cancelled => 1,
            Self::InvalidArgument => 3,
            Self::NotFound => 5,
            Self::PermissionDenied => 7,
            Self::ResourceExhausted => 8,
            Self::Unimplemented => 12,
            Self::Internal => 13,
            Self::Unavailable => 14,
            Self::Unauthenticated => 16,
            Self::Other(number) => number,
        }
    }

    /// Returns the code with this number, which is not 0.
    #[must_use]
    pub const fn of(number: u32) -> Self {
        match number {
            1 => Self::Cancelled,
            3 => Self::InvalidArgument,
            5 => Self::NotFound,
            7 => Self::PermissionDenied,
            8 => Self::ResourceExhausted,
            12 => Self::Unimplemented,
            13 => Self::Internal,
            14 => Self::Unavailable,
            16 => Self::Unauthenticated,
            other => Self::Other(other),
        }
    }
}

/// A call that ended with an error status.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{message} (gRPC status {})", .code.number())]
pub struct CallFailed {
    /// The code.
    pub code: StatusCode,
    /// The reason, for people.
    pub message: String,
}

impl CallFailed {
    /// An end with this code and reason.
    #[must_use]
    pub fn new(code: StatusCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// Returns the reason for a header: characters outside of printable ASCII are escaped.
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

/// Returns the reason in a header.
pub(super) fn unescaped_message(header: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(header.len());
    let mut rest = header;
    while let Some((first, behind)) = rest.split_first() {
        let digits = behind
            .get(..2)
            .and_then(|digits| std::str::from_utf8(digits).ok());
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
            let ended = CallFailed::new(StatusCode::Internal, message.clone());
            let header = ended.escaped_message();
            prop_assert!(header.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
            prop_assert_eq!(unescaped_message(header.as_bytes()), message);
        }

        #[test]
        fn for_all_numbers_a_code_has_its_number(number in 1_u32..100) {
            prop_assert_eq!(StatusCode::of(number).number(), number);
        }
    }
}
