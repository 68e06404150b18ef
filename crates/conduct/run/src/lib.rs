//! One run: the lifecycle machine and its shell.
//!
//! [`conduct`] carries a [`RunPlan`](stillwell_plan::RunPlan) out. It builds payloads and binds
//! sinks, starts the target, waits until it is ready, sends, observes, drains, stops and closes. It
//! leaves a capture in every case. The pure [`machine`] decides; the shell around it only waits and
//! performs.
//!
//! If permitted, the run has its own network namespace and cgroup, and all its threads are inside
//! that namespace. The manifest's notes list what was unavailable.
//!
//! [`conduct_together`] carries two of them out at once, so both targets see the same host in the
//! same seconds: see [`Together`].
//!
//! [`conduct_load`] makes a load on a running service, without a target, and returns its capture.
//!
//! A run knows nothing of experiments, pairs or verdicts.

mod conduct;
mod describe;
mod export;
mod fleet;
mod interrupt;
mod ledgers;
mod load;
pub mod machine;
mod parts;
mod prepare;
mod record;
mod recording;
mod request;
mod shell;
mod stamps;
mod steps;
mod target;
mod together;

pub use conduct::{ConductError, conduct, conduct_together, record_failed};
pub use describe::{CallDescriber, DescribeCalls};
pub use export::Exports;
pub use fleet::{FleetStart, Milestone, RunFleet};
pub use interrupt::Interrupt;
pub use ledgers::{LedgerJoinError, join_ledgers};
pub use load::{
    AddressFamily, AgreeStart, ConductScenarioError, HostCpu, LoadBeside, LoadCapture, LoadEnd,
    LoadError, LoadPhase, LoadSecond, LoadSnapshot, LoadSource, ResolveError, conduct_load,
    conduct_load_beside, conduct_scenario,
};
pub use prepare::prepare;
pub use request::{Progress, RunRequest, RunTotals};
pub use shell::clear_memory_disks;
pub use stillwell_load::{
    AnswerNote, Feed, FeedError, ScenarioError, ScenarioResult, StepFailure, StepResult, UserCounts,
};
pub use stillwell_target::{ProgramError, find_program};
pub use stillwell_telemetry::{
    PageAddress, PagePlan, RunMetrics, RunTelemetry, SeriesNaming, TelemetryError,
};
pub use together::Together;
