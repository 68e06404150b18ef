//! From captures to a verdict.
//!
//! [`summarise`] turns the capture of one run into a [`RunSummary`]: one number
//! for each goal, the [`Doubt`]s that forbid believing it, the [`Caution`]s that
//! do not, and the figures that a report shows. [`judge`] turns the summaries of
//! an experiment's runs into an [`ExperimentVerdict`]: pairs, effect, interval,
//! and one of the six words of [`Verdict`]. [`exit_code`] turns verdicts into the
//! answer that a script reads.
//!
//! Validity looks at the rig and the host, never at whether a number is
//! inconvenient: no run is left out for its value. All limits stand in
//! [`limits`]. The crate is pure: it opens no file and reads no clock, and the
//! same runs in any order give the same verdict.

mod caution;
mod check;
mod doubt;
mod gate;
mod judge;
pub mod limits;
mod rule;
mod summary;
mod window;

#[cfg(test)]
mod fixture;

pub use caution::Caution;
pub use check::{CheckPassed, CheckResult};
pub use doubt::{Doubt, ShortfallCause};
pub use gate::{Gate, GatePolicy, exit_code};
pub use judge::{
    CautionSeen, CheckVerdict, ExperimentVerdict, GoalVerdict, PlacedCpus, RateFigure, RunNotUsed,
    judge,
};
pub use rule::{Change, Verdict, verdict_of};
pub use stillwell_capture::{RunIdentity, RunOutcome};
pub use summary::{
    Component, GeneratorFigures, Measured, OutcomeCount, RunFigures, RunSummary, SUMMARY_SCHEMA,
    Totals, WorkerShares, summarise,
};
pub use window::TimeQuantiles;
