//! A recording that is played again.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Content of a file, cut into events and sent in order, repeatedly.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ReplayPlan {
    /// The file, as an absolute path; it may be compressed.
    pub path: PathBuf,
    /// The rule by which it is cut.
    pub cut: ReplayCut,
    /// True if each piece is base64 and is sent decoded.
    pub base64: bool,
    /// The end of each event.
    pub end: ReplayEnd,
    /// The file is sent so many times in all, at least once; over and over if none.
    pub rounds: Option<u64>,
}

/// The rule by which a recording is cut into events.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayCut {
    /// At the ends of lines, which belong to no event. Empty lines are events.
    Lines,
    /// After so many bytes each, at least one; the last piece may be shorter.
    Chunks {
        /// Bytes of a piece.
        bytes: u32,
    },
}

/// The end of each event.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayEnd {
    /// A line feed.
    LineFeed,
    /// Nothing.
    Nothing,
}

impl ReplayPlan {
    /// Returns true if its events can be stamped: those that are lines.
    #[must_use]
    pub const fn takes_stamps(&self) -> bool {
        matches!(self.end, ReplayEnd::LineFeed)
    }
}
