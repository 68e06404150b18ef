//! What is sent.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use stillwell_units::ByteSize;

/// The bytes of one generator.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct PayloadPlan {
    /// The format of one event.
    pub format: PayloadFormat,
    /// How events are gathered into blocks.
    pub blocks: BlockShape,
    /// Bytes built before the run, for all workers of the generator together.
    pub cache: ByteSize,
}

/// The format of one event.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PayloadFormat {
    /// Lines of printable ASCII.
    Ascii,
    /// One JSON object a line.
    Json,
    /// One RFC 5424 syslog message a line.
    Syslog5424,
    /// One line of an Apache common log.
    ApacheCommon,
    /// Datadog logs intake: one JSON array of log objects a block.
    DatadogLog,
    /// The lines of a file, in order, over and over.
    Lines {
        /// The file, as an absolute path.
        path: PathBuf,
    },
}

impl PayloadFormat {
    /// The name under which the format is asked for.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Ascii => "ascii",
            Self::Json => "json",
            Self::Syslog5424 => "syslog5424",
            Self::ApacheCommon => "apache_common",
            Self::DatadogLog => "datadog_log",
            Self::Lines { .. } => "lines",
        }
    }
}

/// How events are gathered into blocks: a block is what is sent as one
/// datagram, one HTTP body or one write.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockShape {
    /// Sizes drawn evenly between an eighth of `maximum` and `maximum`.
    UpTo {
        /// No block is larger, save one whose single event is.
        maximum: ByteSize,
    },
    /// A fixed number of events a block, at least one.
    Events {
        /// Events in each block.
        count: u32,
        /// No block is larger: it closes early instead.
        maximum: ByteSize,
    },
}

impl BlockShape {
    /// The largest block.
    #[must_use]
    pub const fn maximum(self) -> ByteSize {
        match self {
            Self::UpTo { maximum } | Self::Events { maximum, .. } => maximum,
        }
    }
}
