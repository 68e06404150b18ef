//! What could not be had.

use serde::{Deserialize, Serialize};

/// Something that was wanted and could not be had; it stands in the result.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Note {
    /// What is missing, such as `a memory limit`.
    pub what: String,
    /// Why.
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
