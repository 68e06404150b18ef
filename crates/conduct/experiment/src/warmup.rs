//! The beginning of the measured part of all runs.

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
    /// Warm-up of the plan's phases.
    #[serde(rename = "stated_ns")]
    pub stated: Nanos,
    /// Warm-up of all summaries: at least the stated one.
    #[serde(rename = "found_ns")]
    pub measured: Nanos,
}

impl WarmupRecord {
    pub(crate) fn new(stated: Nanos, measured: Nanos) -> Self {
        Self {
            schema: WARMUP_SCHEMA.to_owned(),
            stated,
            measured,
        }
    }
}
