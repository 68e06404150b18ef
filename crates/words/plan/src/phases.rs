//! Lengths and deadlines of a run's phases.

use serde::{Deserialize, Serialize};
use stillwell_units::Nanos;

/// The phases of a run, in their order.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Payloads are built and sinks bound.
    Prepare,
    /// The target is started.
    Start,
    /// The run waits for the target.
    Ready,
    /// Load that is not measured.
    Warmup,
    /// Load that is measured.
    Measure,
    /// The target sends the events that it still holds.
    Drain,
    /// The target is stopped.
    Stop,
    /// Sinks, observers and capture are closed.
    Close,
}

impl Phase {
    /// All of them, in their order.
    pub const ALL: [Self; 8] = [
        Self::Prepare,
        Self::Start,
        Self::Ready,
        Self::Warmup,
        Self::Measure,
        Self::Drain,
        Self::Stop,
        Self::Close,
    ];

    /// The word in captures and progress.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::Start => "start",
            Self::Ready => "ready",
            Self::Warmup => "warmup",
            Self::Measure => "measure",
            Self::Drain => "drain",
            Self::Stop => "stop",
            Self::Close => "close",
        }
    }

    /// The phase with this word.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|phase| phase.name() == name)
    }
}

/// Lengths and deadlines of a run's phases.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct PhasesPlan {
    /// Deadline for building payloads and binding sinks.
    pub prepare: Nanos,
    /// Deadline for the target to be ready.
    pub ready: Nanos,
    /// Length of load that is not measured.
    pub warmup: Nanos,
    /// Length of load that is measured.
    pub measure: Nanos,
    /// Deadline for the target to send the events that it still holds; ends as soon as
    /// sinks have been quiet for `quiet`.
    pub drain: Nanos,
    /// Time without received bytes after which the drain is over.
    pub quiet: Nanos,
    /// Deadline for sinks, observers and capture to close.
    pub close: Nanos,
}

impl Default for PhasesPlan {
    fn default() -> Self {
        Self {
            prepare: Nanos::from_secs(120),
            ready: Nanos::from_secs(30),
            warmup: Nanos::from_secs(5),
            measure: Nanos::from_secs(20),
            drain: Nanos::from_secs(10),
            quiet: Nanos::from_millis(500),
            close: Nanos::from_secs(10),
        }
    }
}
