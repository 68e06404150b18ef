//! The request of a run, and its progress.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use stillwell_capture::RunIdentity;
use stillwell_metric::Histogram;
use stillwell_plan::target::Places;
use stillwell_plan::{Phase, RunPlan};
use stillwell_units::{Moment, Nanos, RunId, Secrets};

use crate::describe::CallDescriber;
use crate::export::Exports;
use crate::fleet::RunFleet;

/// One run to be made.
#[derive(Clone, Debug)]
pub struct RunRequest {
    /// The plan.
    pub plan: RunPlan,
    /// Folders and files of the plan's places. A missing state folder is made.
    pub places: Places,
    /// Folder of the capture.
    pub folder: PathBuf,
    /// The run's place in a suite.
    pub identity: Option<RunIdentity>,
    /// The command line, for the manifest.
    pub command: Vec<String>,
    /// Handling of secrets in the capture.
    pub secrets: Secrets,
    /// The run's name.
    pub run: RunId,
    /// Files besides the capture.
    pub exports: Exports,
    /// The other parts of a run on several machines.
    pub fleet: Option<RunFleet>,
    /// Source of descriptions of gRPC calls.
    pub describer: CallDescriber,
}

/// Totals of a run, or of a part of it, since it began.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct RunTotals {
    /// Events that generators sent.
    pub events_sent: u64,
    /// Bytes that generators sent.
    pub bytes_sent: u64,
    /// Bytes that sinks received.
    pub bytes_received: u64,
    /// CPU time of the target, if it is watched.
    pub target_cpu: Option<Nanos>,
    /// Resident memory of the target in bytes, if it is watched.
    pub rss_bytes: Option<u64>,
    /// Units that schedules requested and that were sent for them; zero without a schedule.
    pub scheduled_units: [u64; 2],
}

/// Progress of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// A phase began.
    Phase {
        /// Which.
        phase: Phase,
        /// The longest time that the phase takes.
        ends_in: Option<Nanos>,
    },
    /// A second went by.
    Beat {
        /// Time of the totals.
        at: Moment,
        /// Totals since the run began.
        totals: RunTotals,
        /// Latencies of the last second: response times, else those of stamped events.
        latencies: Option<Box<Histogram<u64>>>,
    },
    /// Something that a reader should know now.
    Note(String),
}
