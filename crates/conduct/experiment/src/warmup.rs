//! Where the measured stretch of all runs begins.

use serde::{Deserialize, Serialize};
use stillwell_units::Nanos;

/// Names the shape of [`WarmupRecord`].
pub const WARMUP_SCHEMA: &str = "stillwell/warmup/v1";

/// The warm-up that was found in the first runs of an experiment, and holds for
/// all of them: `warmup.json`. Every summary says which one it was made with.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct WarmupRecord {
    /// [`WARMUP_SCHEMA`].
    pub schema: String,
    /// What the plan's phases state.
    #[serde(rename = "stated_ns")]
    pub stated: Nanos,
    /// What all runs are summed up with: at least that.
    #[serde(rename = "found_ns")]
    pub found: Nanos,
}

impl WarmupRecord {
    pub(crate) fn new(stated: Nanos, found: Nanos) -> Self {
        Self {
            schema: WARMUP_SCHEMA.to_owned(),
            stated,
            found,
        }
    }
}
