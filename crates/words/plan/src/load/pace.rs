//! When requests are sent.

use serde::{Deserialize, Serialize};
use stillwell_units::Nanos;

use super::LoadPlan;
use crate::RateShape;

/// When requests are sent.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadPace {
    /// Each connection sends as soon as it has its answer: no schedule, and so no
    /// latency from an intended time.
    Closed,
    /// By a schedule, which no answer holds back but where it says so.
    Open {
        /// Requested rate over time, of all workers together; never [`RateShape::Max`].
        curve: RateShape,
        /// Spacing of single requests on the curve.
        spacing: Spacing,
        /// Handling of requests that are due while no connection is free.
        overflow: Overflow,
    },
}

/// The times from which a schedule makes latencies count.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LoadPacing {
    /// There is no schedule.
    Closed,
    /// Latency counts from the sent time all the same.
    Deferred,
    /// Latency counts from the intended time.
    Open,
}

impl LoadPacing {
    /// That of `plan`.
    #[must_use]
    pub fn of(plan: &LoadPlan) -> Self {
        match &plan.pace {
            LoadPace::Closed => Self::Closed,
            LoadPace::Open { overflow, .. } => match overflow {
                Overflow::Defer => Self::Deferred,
                Overflow::Wait | Overflow::Hold { .. } | Overflow::Drop { .. } => Self::Open,
            },
        }
    }
}

/// Spacing of single requests on a curve.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Spacing {
    /// Evenly.
    #[default]
    Even,
    /// So many at once, the last of them when it would be due anyhow.
    Burst {
        /// At least one.
        size: u32,
    },
    /// Each later by a time drawn evenly between nothing and this, in order.
    JitterUniform {
        /// The largest delay.
        most: Nanos,
    },
    /// As independent users would send: exponential gaps.
    Poisson,
    /// In clumps: gaps of a whole number of ticks, drawn from a Zipf distribution
    /// over 1 to 1000, in the mean those of the curve.
    Zipf {
        /// Above one; the nearer to one, the longer the longest gaps.
        exponent: f64,
    },
}

/// Handling of requests that are due while no connection is free.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Overflow {
    /// They wait, and their latency counts on.
    Wait,
    /// The schedule waits with them: it goes on from when a connection is free, so
    /// nothing queues up and no more than the rate is sent. A closed loop with
    /// a rate; latency counts from the sent time alone.
    Defer,
    /// They wait as well. Where more than so many do on a worker, its schedule
    /// counts as standing still, and for how long is recorded.
    Hold {
        /// Maximum number that may wait.
        waiting_max: u64,
    },
    /// So many may wait on each worker; others are dropped and counted so.
    Drop {
        /// Maximum number that may wait.
        waiting_max: u64,
    },
}
