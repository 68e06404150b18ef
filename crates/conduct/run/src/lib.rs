//! One run: the lifecycle machine and its shell.
//!
//! [`conduct`] carries a [`RigPlan`](stillwell_plan::RigPlan) out: it builds payloads and binds
//! sinks, starts the target, waits until it is ready, sends, observes, drains, stops and closes,
//! and leaves a capture behind, whatever happens on the way. What is to happen is decided by the
//! pure [`machine`]; the shell around it only waits and performs.
//!
//! Where it is permitted the run has a network namespace and a cgroup of its own. The whole run
//! then happens on threads inside that namespace; what could not be had stands in the manifest's
//! notes.
//!
//! [`conduct_together`] carries two of them out at once, so that both targets see the same host in
//! the same seconds: see [`Together`].
//!
//! [`conduct_load`] makes a load on a service that runs anyway, without a target, and gives its
//! capture.
//!
//! A run knows nothing of experiments, pairs or verdicts.

mod conduct;
mod export;
mod interrupt;
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
mod subject;
mod together;

pub use conduct::{ConductError, conduct, conduct_together};
pub use export::Exports;
pub use interrupt::Interrupt;
pub use load::{
    AddressFamily, HostCpu, LoadBeside, LoadCapture, LoadEnd, LoadError, LoadPhase, LoadSecond,
    LoadSnapshot, LoadSource, ResolveError, conduct_load, conduct_load_beside,
};
pub use prepare::prepare;
pub use request::{Progress, RunRequest};
pub use stillwell_load::{AnswerHeader, Feed, FeedError};
pub use stillwell_target::{ProgramError, find_program};
pub use stillwell_telemetry::{PageAddress, PagePlan, SeriesNaming, TelemetryError};
pub use together::Together;
