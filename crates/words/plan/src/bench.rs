//! One bench: a recording sent through a subject and back.

use serde::{Deserialize, Serialize};

use crate::RigPlan;

/// One bench: a recording sent through a subject and back into a sink.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct BenchPlan {
    /// What reports call it.
    pub name: String,
    /// The run: one generator that replays, one sink, one subject.
    pub rig: RigPlan,
    /// Why its events carry no stamps, if they do not: then they are only counted.
    pub unstamped: Option<String>,
    /// Whether the report is JSON unless something else is asked for.
    pub structured: bool,
    /// Significant decimal digits of latencies, from 1 to 5.
    pub significant_figures: u8,
    /// Whether events may be lost, duplicated or damaged without the bench failing.
    pub lossy: bool,
    /// Rounds through the recording that must all be sent before the time is over;
    /// none where the time is as good an end.
    pub rounds_due: Option<u64>,
}
