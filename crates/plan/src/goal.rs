//! What is compared between variants.

use serde::{Deserialize, Serialize};
use stillwell_units::Tolerance;

/// A metric with a direction and a tolerance.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct GoalPlan {
    /// What is compared: one number a run.
    pub metric: GoalMetric,
    /// How large a change must be to matter.
    pub tolerance: Tolerance,
}

/// What a run is summed up by: always counter end less counter start over the
/// measured phase, never an average of seconds.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GoalMetric {
    /// CPU seconds of the subject's process tree for each second of time.
    Cpu,
    /// CPU nanoseconds of the subject's process tree for each event sent to it.
    CpuPerEvent,
    /// Bytes that sinks received, for each second of time.
    EgressThroughput,
    /// Bytes that generators sent, for each second of time.
    IngressThroughput,
    /// Mean proportional or resident memory of the subject's process tree.
    Memory,
}

impl GoalMetric {
    /// All of them, in the order in which they are listed to users.
    pub const ALL: [Self; 5] = [
        Self::IngressThroughput,
        Self::EgressThroughput,
        Self::CpuPerEvent,
        Self::Cpu,
        Self::Memory,
    ];

    /// The name in files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::CpuPerEvent => "cpu_per_event",
            Self::EgressThroughput => "egress_throughput",
            Self::IngressThroughput => "ingress_throughput",
            Self::Memory => "memory",
        }
    }

    /// Which way is better.
    #[must_use]
    pub const fn direction(self) -> Direction {
        match self {
            Self::Cpu | Self::CpuPerEvent | Self::Memory => Direction::LowerIsBetter,
            Self::EgressThroughput | Self::IngressThroughput => Direction::HigherIsBetter,
        }
    }

    /// The tolerance where none is given, as a share of one: what is worth a
    /// person's time, and what the noise of each metric allows to see. CPU and
    /// memory are counted by the kernel and repeat well; throughput waits for
    /// whatever else the machine does.
    #[must_use]
    pub const fn default_tolerance_share(self) -> f64 {
        match self {
            Self::Cpu | Self::CpuPerEvent => 0.03,
            Self::EgressThroughput | Self::IngressThroughput => 0.02,
            Self::Memory => 0.05,
        }
    }
}

/// Which way is better.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// More is better, as for throughput.
    HigherIsBetter,
    /// Less is better, as for cost.
    LowerIsBetter,
}
