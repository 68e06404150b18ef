//! The plan of a bench.

use std::ops::Deref;
use std::time::Duration;

/// Most events of one bench: each takes one bit at every sink.
pub const EVENTS_LIMIT: u64 = 1 << 32;

/// Fastest schedule: an event each nanosecond.
const PER_SECOND_MAX: f64 = 1e9;

/// The plan of a bench.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Name of the bench, in reports.
    pub name: String,
    /// When events are due.
    pub rate: Rate,
    /// Number of events, from 1 to [`EVENTS_LIMIT`].
    pub events: u64,
    /// It ends after this time even where not all events were sent.
    pub duration: Option<Duration>,
    /// Events that are due earlier than this are accounted for, and count neither
    /// for latency nor for throughput.
    pub warmup: Duration,
    /// True where the pipeline acknowledges or fails every event. The report then counts the
    /// events without either.
    pub answers: bool,
}

/// When events are due.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// Events a second, evenly, at any speed of the pipeline; above 0.
    PerSecond(f64),
    /// Each as soon as the pipeline has taken the one before.
    Max,
}

/// A plan that cannot be carried out.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// No event, or too many.
    #[error("{given} events: 1 to {EVENTS_LIMIT} are accepted")]
    Events {
        /// The given number.
        given: u64,
    },
    /// A rate that is none.
    #[error("a rate of {given} events a second: it must be above 0 and at most 1e9")]
    Rate {
        /// The given rate.
        given: f64,
    },
}

impl Plan {
    /// A million events, as fast as they are taken, without a warm-up or answers.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            rate: Rate::Max,
            events: 1_000_000,
            duration: None,
            warmup: Duration::ZERO,
            answers: false,
        }
    }
}

/// A plan that can be carried out: a bench and its ends have no [`Plan`] of another kind.
#[derive(Debug)]
pub(crate) struct CheckedPlan(Plan);

impl TryFrom<Plan> for CheckedPlan {
    type Error = PlanError;

    fn try_from(plan: Plan) -> Result<Self, PlanError> {
        if !(1..=EVENTS_LIMIT).contains(&plan.events) {
            return Err(PlanError::Events { given: plan.events });
        }
        match plan.rate {
            Rate::PerSecond(given) if !(given > 0.0 && given <= PER_SECOND_MAX) => {
                Err(PlanError::Rate { given })
            }
            Rate::PerSecond(_) | Rate::Max => Ok(Self(plan)),
        }
    }
}

impl Deref for CheckedPlan {
    type Target = Plan;

    fn deref(&self) -> &Plan {
        &self.0
    }
}
