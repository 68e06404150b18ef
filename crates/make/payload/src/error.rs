//! Reasons why a set cannot be built.

use stillwell_plan::payload::TemplateError;
use stillwell_units::ByteSize;

/// A set that could not be built.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum BuildError {
    /// No event of the format surely fits into the largest block.
    #[error("blocks of {name} need a maximum of at least {} bytes, not {}", smallest.bytes(), maximum.bytes())]
    MaximumTooSmall {
        /// The format.
        name: &'static str,
        /// The requested size.
        maximum: ByteSize,
        /// The least that works.
        smallest: ByteSize,
    },
    /// Offsets in a set are 32 bits wide.
    #[error("{requested} of payload exceed the maximum of 4 GiB for one worker")]
    TooLarge {
        /// The requested size.
        requested: ByteSize,
    },
    /// The memory for the set could not be allocated.
    #[error("no memory for {requested} of payload")]
    NoMemory {
        /// The requested size.
        requested: ByteSize,
    },
    /// Lines of a file were requested, but no file was given.
    #[error("the lines of a file are needed, but its content is missing")]
    SourceMissing,
    /// The requested file has no lines.
    #[error("the file holds no lines")]
    SourceEmpty,
    /// A piece of a recording is not base64.
    #[error("piece {number} of the recording is not base64")]
    NotBase64 {
        /// Its number, from 1: of a line, or of a chunk.
        number: u64,
    },
    /// Stamp slots were requested in the lines of a file.
    #[error("the lines of a file are sent as they are and cannot carry stamps")]
    Unstampable,
    /// Stamp slots were requested in a format without text for them.
    #[error("events of {name} have no text that could carry a stamp")]
    NoSlots {
        /// The format.
        name: &'static str,
    },
    /// Times were requested before events that are no lines.
    #[error("events of {name} are not lines, so they cannot have times before them")]
    NotLines {
        /// The format.
        name: &'static str,
    },
    /// A line does not begin with a time.
    #[error("line {line} does not begin with a time that matches the pattern")]
    NoTime {
        /// Its number, from 1.
        line: u64,
    },
    /// Times go back.
    #[error("the time of line {line} lies before that of the line above it")]
    TimeBackwards {
        /// Its number, from 1.
        line: u64,
    },
    /// Too many seconds without a line to hold a placeholder for each.
    #[error("more than 1,000,000 seconds before line {line} have no line")]
    TimeGap {
        /// Its number, from 1.
        line: u64,
    },
    /// Of so many events that were made in a row, none fits, or all are empty.
    #[error(
        "of a thousand events of {name} none has from 1 to {maximum} bytes: allow larger blocks, or make events shorter"
    )]
    NothingFits {
        /// The format.
        name: &'static str,
        /// The largest block.
        maximum: ByteSize,
    },
    /// The template makes no events.
    #[error("the template makes no events")]
    Template(#[from] TemplateError),
    /// The plan names a format that this crate does not have.
    #[error("no payload format is called `{name}`")]
    Unknown {
        /// The name.
        name: &'static str,
    },
}
