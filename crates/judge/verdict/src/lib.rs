//! From captures to a verdict, and to what to do next.
//!
//! [`summarise`] turns the capture of one run into a [`RunSummary`]: one number
//! for each goal, the [`RunWarning`]s that forbid believing it, the [`RunNote`]s that
//! do not, one number for every series, and the figures that a report shows.
//! [`standing`] turns the summaries of an experiment's runs so far into an
//! [`ExperimentVerdict`] (pairs, effect, interval, and one of the six words of
//! [`Verdict`]) and the [`NextStep`]: more pairs, fresh pairs to confirm what was
//! found, or no more. [`judge`] is its verdict alone. [`apply_error_budget`] holds
//! all experiments of a suite to one budget, and [`exit_code`] turns them into the
//! answer that a script reads. [`across`] compares runs that were not made in pairs,
//! [`judge_targets`] several programs under one load. [`load_warnings`] says why the
//! result of a load is unreliable, [`capacity`] judges probes of capacity.
//!
//! Validity looks at the generators, sinks and the host, never at whether a number is
//! inconvenient: no run is left out for its value. All limits are in
//! [`limits`]. The crate is pure: it opens no file and reads no clock, and the
//! same runs in any order give the same verdict.

pub mod across;
pub mod bench;
mod budget;
pub mod calibration;
pub mod capacity;
mod check;
mod deltas;
mod erratic;
mod experiment_verdict;
pub mod explain;
mod gate;
mod goal_verdict;
pub mod history;
mod imported;
mod judge;
pub mod limits;
mod load;
mod moved;
mod rule;
mod run_note;
mod run_warning;
mod standing;
mod summary;
#[doc(hidden)]
pub mod synthetic;
mod targets;
mod window;

#[cfg(test)]
mod fixture;

pub use budget::{ErrorBudget, Protection, apply_error_budget};
pub use check::{CheckPassed, CheckResult};
pub use erratic::ErraticSign;
pub use experiment_verdict::{
    ArmDiscards, CheckVerdict, ExperimentVerdict, PlacedCpus, RateFigure, RunNotUsed, RunNoteCount,
    SkippedGoal, failing_more,
};
pub use gate::{Gate, GatePolicy, exit_code};
pub use goal_verdict::{
    Confirmation, GoalVerdict, Sensitivity, UnreliableEstimate, rarest_visible_fault,
};
pub use imported::{
    ImportWarning, ImportedCell, ImportedRow, ImportedTable, imported_warnings, judge_imported,
};
pub use judge::{judge, standing};
pub use load::{LoadRules, LoadWarning, load_warnings, strain_warnings};
pub use moved::Moved;
pub use rule::{Change, Verdict, verdict_of};
pub use run_note::RunNote;
pub use run_warning::{RunWarning, ShortfallCause};
pub use standing::{NextStep, Standing, StopReason};
pub use stillwell_capture::{
    CountBounds, DividedLedger, LedgerEvent, LedgerFigures, LedgerRange, LedgerRecord, RunIdentity,
    RunOutcome, RunStage,
};
pub use summary::{
    BeatRates, Component, Drift, GeneratorFigures, Measured, OutcomeCount, PrefixCounts,
    RouteFigures, RunFigures, RunSummary, SUMMARY_SCHEMA, StepMark, Totals, WarmupFigures,
    WorkerShares, summarise, summarise_from,
};
pub use targets::{
    ColumnFound, DeliveryFound, PairFound, Place, Ranking, TargetFigure, TargetsCell,
    TargetsMetric, TargetsRow, TargetsVerdict, judge_targets, target_figures, targets_exit_code,
};
pub use window::TimeQuantiles;
