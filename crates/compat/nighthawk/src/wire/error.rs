//! Errors of bytes and JSON that are no message.

use prost_reflect::Kind;

/// Bytes that are no message, with the path if it is known.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum WireError {
    /// They do not follow the rules of protocol buffers, or hold something else than
    /// the message's fields.
    #[error("the bytes are not a message: {problem}")]
    Malformed {
        /// The reason, and the field where it is known.
        problem: String,
    },
    /// A field that is not known, in a message where that matters.
    #[error("field {number} of {message} is not supported")]
    Unknown {
        /// The message's full name.
        message: String,
        /// The field's number.
        number: u32,
    },
    /// A field with a wrong value.
    #[error("`{field}` of {message} must be {expected}")]
    Shape {
        /// The message's full name.
        message: String,
        /// The field's name.
        field: String,
        /// The expected shape.
        expected: &'static str,
    },
    /// A name that no message or field has.
    #[error("unknown name `{name}`")]
    NoSuch {
        /// The name.
        name: String,
    },
    /// Messages in messages in messages.
    #[error("messages are nested more than {} deep", DEPTH_MAX)]
    Deep,
}

/// The largest number of messages within messages.
pub(super) const DEPTH_MAX: usize = 64;

/// The value that a field of this kind must have, for readers.
pub(super) const fn expected(kind: &Kind) -> &'static str {
    match kind {
        Kind::Double | Kind::Float => "a number",
        Kind::Int32
        | Kind::Int64
        | Kind::Sint32
        | Kind::Sint64
        | Kind::Sfixed32
        | Kind::Sfixed64 => "a whole number",
        Kind::Uint32 | Kind::Uint64 | Kind::Fixed32 | Kind::Fixed64 => {
            "a whole number that is not negative"
        }
        Kind::Bool => "true or false",
        Kind::String => "a string",
        Kind::Bytes => "bytes",
        Kind::Enum(_) => "one of the values of its enum",
        Kind::Message(_) => "a message",
    }
}
