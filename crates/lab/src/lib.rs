//! Experiments by variants by pairs: order, builds, resume, verdicts.
//!
//! [`run_lab`] carries a [`LabPlan`](stillwell_plan::LabPlan) out. It builds every
//! variant before the first run, finds the operating point of each experiment by
//! a probe, runs the variants next to each other in random but balanced order, and
//! has each experiment judged. What a single run is, is the [`Executor`]'s
//! business: [`Local`] conducts it on this host; tests put another in its place.
//!
//! A results folder is self-contained, and finished pairs in it are never run
//! again:
//!
//! ```text
//! lab.json                                 what was asked for, and of which binaries
//! EXPERIMENT/probe/                        capture of the probe
//! EXPERIMENT/operating_point.json          at which rate, and why
//! EXPERIMENT/pair-001/VARIANT/             capture, and its summary.json
//! EXPERIMENT/discarded/pair-002-1/VARIANT/ runs of pairs that were run again
//! EXPERIMENT/verdict.json
//! ```
//!
//! This crate prints nothing: what goes on is told as [`LabProgress`].

mod binary;
mod build;
mod error;
mod executor;
mod files;
mod fingerprint;
mod forecast;
mod lab;
mod operating;
mod order;
mod outcome;
mod policy;
mod progress;
mod request;
mod results;
mod session;
mod verdict_file;

pub use binary::BinaryIdentity;
pub use build::Built;
pub use error::LabError;
pub use executor::{Executor, ExecutorError, Local};
pub use fingerprint::{fingerprint, first_difference};
pub use forecast::Forecast;
pub use lab::{LabOptions, run_lab};
pub use operating::{
    GeneratorPoint, OPERATING_POINT_SCHEMA, OperatingPointError, OperatingPointFound, Reading,
    settle,
};
pub use order::order_within;
pub use outcome::{LabOutcome, Problem, ProblemKind};
pub use policy::{Consequence, consequence};
pub use progress::LabProgress;
pub use results::{LAB_SCHEMA, LabRecord, Results, latest};
