//! What is asked of a run, and what it tells while it goes on.

use std::path::PathBuf;

use stillwell_capture::RunIdentity;
use stillwell_plan::{Phase, Places, RigPlan};
use stillwell_units::{Nanos, RunId};

use crate::export::Exports;

/// One run to be made.
#[derive(Clone, Debug)]
pub struct RunRequest {
    /// What is to be done.
    pub plan: RigPlan,
    /// Folders and files that the plan's places stand for. The state folder is
    /// made if it is not there.
    pub places: Places,
    /// Where the capture goes.
    pub folder: PathBuf,
    /// The run's place in a suite.
    pub identity: Option<RunIdentity>,
    /// The command line, for the manifest.
    pub command: Vec<String>,
    /// The run's name.
    pub run: RunId,
    /// What it leaves besides its capture.
    pub exports: Exports,
}

/// What a run tells while it goes on.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// A phase began.
    Phase {
        /// Which.
        phase: Phase,
        /// How long it takes at most.
        ends_in: Option<Nanos>,
    },
    /// A second went by. Totals since the run began.
    Beat {
        /// Events that generators sent.
        events_sent: u64,
        /// Bytes that generators sent.
        bytes_sent: u64,
        /// Bytes that sinks received.
        bytes_received: u64,
        /// CPU time of the target, if it is watched.
        target_cpu: Option<Nanos>,
        /// Resident memory of the target, if it is watched.
        rss_bytes: Option<u64>,
    },
    /// Something that a reader should know now.
    Note(String),
}
