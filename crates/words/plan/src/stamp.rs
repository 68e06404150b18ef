//! Stamped events and their expected deliveries.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use stillwell_units::Nanos;

/// Stamped events of a generator and their expected deliveries.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct StampPlan {
    /// One event in so many is stamped, the first one of each connection included;
    /// 1 for all events.
    pub every: NonZeroU32,
    /// Deliveries of each stamped event by a correct pipeline,
    /// from 1 to 8: 2 where it keeps the original beside what it parsed.
    pub copies: u8,
    /// An event that arrives later than this after its intended time is late.
    pub late_after: Option<Nanos>,
    /// Form and position of a stamp.
    #[serde(default, skip_serializing_if = "StampForm::is_text")]
    pub form: StampForm,
}

/// Form and position of a stamp.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StampForm {
    /// A token in the text of each event.
    #[default]
    Text,
    /// A token in a header of each request or of each call of gRPC, which then is
    /// what is numbered and followed: one block.
    Header,
    /// A time of eight bytes before each event, as `ingest-ns` writes it. It
    /// measures the latency of each event and nothing else: there is no delivery ledger.
    Prefix(PrefixFraming),
}

impl StampForm {
    /// Returns true if it is a token in the text of each event.
    #[must_use]
    pub const fn is_text(&self) -> bool {
        matches!(self, Self::Text)
    }

    /// The framing of events that have a time before them, if they do.
    #[must_use]
    pub const fn prefix(&self) -> Option<PrefixFraming> {
        match self {
            Self::Prefix(framing) => Some(*framing),
            Self::Text | Self::Header => None,
        }
    }
}

/// Framing of events that have a time before them.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PrefixFraming {
    /// Behind the line feed of the event before; the eight bytes of the time may
    /// hold one as well, which ends nothing.
    Lines,
    /// Behind its length in eight bytes, big-endian, that of the time included, as
    /// `length-prefixed` writes it; there is no line feed then.
    LengthPrefixed,
}

impl PrefixFraming {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Lines, Self::LengthPrefixed];

    /// The word in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lines => "lines",
            Self::LengthPrefixed => "length_prefixed",
        }
    }
}

impl StampPlan {
    /// Every event, expected once, never late.
    pub const ALL: Self = Self {
        every: NonZeroU32::MIN,
        copies: 1,
        late_after: None,
        form: StampForm::Text,
    };

    /// The most copies that can be expected.
    pub const COPIES_MAX: u8 = 8;
}
