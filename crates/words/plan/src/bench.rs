//! One bench: a recording that is sent through a target and back.

use serde::{Deserialize, Serialize};

use crate::RunPlan;

/// One bench: a recording that is sent through a target and back into a sink.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct BenchPlan {
    /// Its name in reports.
    pub name: String,
    /// The run: one generator that replays, one sink, one target.
    pub run_plan: RunPlan,
    /// The reason if its events carry no stamps; they are only counted then.
    pub unstamped: Option<String>,
    /// True if the report is JSON by default.
    pub structured: bool,
    /// Significant decimal digits of latencies, from 1 to 5.
    pub significant_figures: u8,
    /// True if lost, duplicated or damaged events do not fail the bench.
    pub lossy: bool,
    /// Rounds through the recording that must all be sent before the time is over;
    /// none where the time is as good an end.
    pub rounds_due: Option<u64>,
}
