//! Unavailable isolation features.

use serde::{Deserialize, Serialize};

/// An isolation feature that was requested and is unavailable; part of the result.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Note {
    /// The missing feature, such as `a memory limit`.
    pub what: String,
    /// The reason.
    pub why: String,
}

impl Note {
    pub(crate) fn new(what: impl Into<String>, why: impl ToString) -> Self {
        Self {
            what: what.into(),
            why: why.to_string(),
        }
    }
}
