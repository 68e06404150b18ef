//! Experiments by variants by pairs: order, builds, resume, verdicts.
//!
//! [`run_suite`] carries a [`SuitePlan`](stillwell_plan::SuitePlan) out. It builds every variant before
//! the first run, finds the operating point of each experiment by a probe, and runs the variants
//! next to each other in random but balanced order. Before each pair it waits, for a bounded time, until
//! other programs leave the host alone. After every pair it calls
//! [`standing`](stillwell_verdict::standing) and does the next step: one pair more, of the search
//! or of the confirmation, or the end. In the end all experiments share one error budget. An
//! [`Executor`] makes a single run: [`Local`] conducts it on this host; tests put another in its
//! place.
//!
//! A pair that was lost, or that has an unreliable run, is repeated as a whole under the next
//! number, and its folder stays. A results folder is self-contained, and pairs in it are never run
//! again. A resumed suite has the same result as one without an interruption:
//!
//! ```text
//! suite.json                               the request, with the executables
//! problems.json                            reasons why something was not finished, if any
//! EXPERIMENT/probe/                        capture of the probe
//! EXPERIMENT/operating_point.json          the rate, and its reason
//! EXPERIMENT/warmup.json                   the beginning of measuring, if it was measured
//! EXPERIMENT/pair-001/VARIANT/             capture, and its summary.json
//! EXPERIMENT/confirm-001/VARIANT/          the same of the confirmation
//! EXPERIMENT/discarded/pair-002-1/VARIANT/ runs of pairs that were cut off
//! EXPERIMENT/verdict.json                  verdict and course
//! ```
//!
//! This crate prints nothing: it reports [`SuiteProgress`].

mod audit;
pub mod bench_tests;
mod binary;
pub mod bisect;
mod build;
pub mod calibrate;
pub mod capacity;
mod error;
mod executor;
mod files;
mod fingerprint;
mod forecast;
mod health;
pub mod history;
mod host_facts;
pub mod library;
mod object_store;
mod operating;
mod options;
mod order;
mod outcome;
mod policy;
mod progress;
mod quiet;
mod request;
mod results;
mod saved;
mod session;
pub mod slowdown;
mod suite;
mod targets;
mod timestamp;
mod upgrade;
mod verdict_file;
mod warmup;

pub use binary::BinaryIdentity;
pub use build::Built;
pub use error::SuiteError;
pub use executor::{Executor, ExecutorError, Local};
pub use fingerprint::{fingerprint, first_difference};
pub use forecast::{Forecast, RunsLeft, TimeLeft};
pub use health::HealthRule;
pub use host_facts::host_facts;
pub use object_store::{ObjectStore, ObjectStoreError, StoreAction, StoreListing, StoredObject};
pub use operating::{
    GeneratorPoint, OPERATING_POINT_SCHEMA, OperatingPointError, OperatingPointFound, Reading,
    choose_rate,
};
pub use options::SuiteOptions;
pub use order::order_within;
pub use outcome::{Problem, ProblemKind, SuiteOutcome};
pub use policy::{Consequence, consequence};
pub use progress::{PairsWanted, SuiteProgress};
pub use quiet::HostUse;
pub use results::{
    PROBLEMS_SCHEMA, ProblemsRecord, Results, SUITE_SCHEMA, SavedProblem, SuiteRecord, latest,
};
pub use saved::{SavedReader, SavedRunError};
pub use suite::run_suite;
pub use targets::{
    FileIdentity, NotInstalled, TARGETS_SCHEMA, TargetIdentity, TargetsOutcome, TargetsRecord,
    not_installed, run_targets,
};
pub use timestamp::timestamp;
pub use warmup::{WARMUP_SCHEMA, WarmupRecord};
