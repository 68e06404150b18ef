//! Reasons why a set cannot be built.

use stillwell_plan::TemplateError;
use stillwell_units::ByteSize;

/// Why a set could not be built.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum BuildError {
    /// No event of the format surely fits into the largest block.
    #[error("blocks of {name} need a maximum of at least {} bytes, not {}", smallest.bytes(), maximum.bytes())]
    MaximumTooSmall {
        /// The format.
        name: &'static str,
        /// What was asked for.
        maximum: ByteSize,
        /// The least that works.
        smallest: ByteSize,
    },
    /// Offsets in a set are 32 bits wide.
    #[error("{asked} are more than the 4 GiB that one worker's payload may have")]
    TooLarge {
        /// What was asked for.
        asked: ByteSize,
    },
    /// The memory for the set could not be had.
    #[error("no memory for {asked} of payload")]
    NoMemory {
        /// What was asked for.
        asked: ByteSize,
    },
    /// Lines of a file were asked for, but no file was handed in.
    #[error("the lines of a file were asked for without its content")]
    SourceMissing,
    /// The file whose lines were asked for has none.
    #[error("the file holds no lines")]
    SourceEmpty,
    /// A piece of a recording is not base64.
    #[error("piece {number} of the recording is not base64")]
    NotBase64 {
        /// Its number, from 1: of a line, or of a chunk.
        number: u64,
    },
    /// Stamp slots were asked for in the lines of a file.
    #[error("the lines of a file are sent as they are and cannot carry stamps")]
    Unstampable,
    /// Stamp slots were asked for in a format without text for them.
    #[error("events of {name} have no text that could carry a stamp")]
    NoSlots {
        /// The format.
        name: &'static str,
    },
    /// Times were asked for before events that are no lines.
    #[error("events of {name} are no lines, before which times could stand")]
    NotLines {
        /// The format.
        name: &'static str,
    },
    /// A line does not begin with a time.
    #[error("line {line} does not begin with a time as the pattern has it")]
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
    #[error("up to line {line} more than 1,000,000 seconds have no line")]
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
