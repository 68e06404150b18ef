//! Record of a run without its series.

use serde::{Deserialize, Serialize};
use stillwell_plan::{Phase, RunPlan};
use stillwell_units::{Moment, Nanos, RunId};

use crate::ledger::LedgerRecord;
use crate::run_merge::RunMachines;

/// Names the shape of [`Manifest`]; keys are added within a version and never
/// removed.
pub const MANIFEST_SCHEMA: &str = "stillwell/run/v2";

/// Record of a run without its series.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Manifest {
    /// [`MANIFEST_SCHEMA`].
    pub schema: String,
    /// The run's name.
    pub run: RunId,
    /// Version of Stillwell.
    pub version: String,
    /// The command line, as it was typed.
    pub command: Vec<String>,
    /// Its place in a suite, if it has one.
    pub identity: Option<RunIdentity>,
    /// Plan of the run.
    pub plan: RunPlan,
    /// Facts about the host before the run, by name.
    pub host: serde_json::Value,
    /// The same facts after the run, such as frequencies, load and throttling;
    /// null while it goes on.
    #[serde(default)]
    pub host_after: serde_json::Value,
    /// CPUs of the target; `None` for any.
    pub target_cpus: Option<Vec<u16>>,
    /// CPUs of generators, sinks and observers; `None` for any.
    pub load_cpus: Option<Vec<u16>>,
    /// Missing isolation and other limits.
    pub notes: Vec<Note>,
    /// Warnings for readers, one sentence each.
    pub warnings: Vec<String>,
    /// Wall clock at the start: milliseconds since 1970.
    pub started_wall_millis: u64,
    /// When each phase began, and when the last one ended.
    pub phases: Vec<PhaseMark>,
    /// End of the target, if it ran and ended.
    pub target: Option<TargetEnd>,
    /// Restarts of the target by steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restarts: Vec<Restart>,
    /// Ends of generators, sinks and observers.
    pub parts: Vec<PartNote>,
    /// Fate of every stamped event, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<LedgerRecord>,
    /// Other processes that used most CPU time while it was measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub busiest: Vec<BusyProgram>,
    /// When the last byte came to a sink, if any came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_received: Option<Moment>,
    /// Machines of the run, if it had several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machines: Option<RunMachines>,
    /// Outcome of the run.
    pub outcome: RunOutcome,
}

impl Manifest {
    /// Wall clock at the start and at the end of the last phase, in milliseconds since 1970.
    #[must_use]
    pub fn wall_millis(&self) -> Option<(u64, u64)> {
        let (first, last) = (self.phases.first()?, self.phases.last()?);
        let length = last.moment.since(first.moment).as_u64() / 1_000_000;
        let start = self.started_wall_millis;
        Some((start, start.checked_add(length)?))
    }

    /// The moments between which was measured, if that phase began and ended.
    #[must_use]
    pub fn measured(&self) -> Option<(Moment, Moment)> {
        let at = self
            .phases
            .iter()
            .position(|mark| mark.phase == Phase::Measure)?;
        let end = self.phases.get(at + 1)?;
        Some((self.phases[at].moment, end.moment))
    }
}

/// A run's place in a suite.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct RunIdentity {
    /// The experiment.
    pub experiment: String,
    /// The variant.
    pub variant: String,
    /// Purpose of the run.
    #[serde(default)]
    pub stage: RunStage,
    /// Number of the pair within its stage, from 1; 0 for a probe.
    pub pair: u32,
    /// Position in its pair: first (0) or second (1).
    pub position: u32,
}

/// Purpose of a run of a suite.
#[derive(
    Clone, Copy, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(rename_all = "snake_case")]
pub enum RunStage {
    /// To find out.
    #[default]
    Search,
    /// To confirm on fresh pairs what was found.
    Confirm,
}

/// A process besides the run with its CPU time.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct BusyProgram {
    /// Its name.
    pub name: String,
    /// Its number.
    pub pid: u32,
    /// Its CPU seconds per second.
    pub cpu_share: f64,
}

/// A wanted feature that was unavailable.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Note {
    /// What.
    pub what: String,
    /// Cause.
    pub why: String,
}

/// The beginning of a phase.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct PhaseMark {
    /// The phase; the last mark repeats the last phase and says when it ended.
    pub phase: Phase,
    /// On the monotonic clock.
    pub moment: Moment,
    /// On the wall clock: milliseconds since 1970.
    pub wall_millis: u64,
}

/// End of the target.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct TargetEnd {
    /// Its exit code, if it exited.
    pub code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// True if it was killed because it outlived its grace.
    pub killed: bool,
    /// User CPU time of it and of those of its children it waited for.
    pub cpu_user: Nanos,
    /// System CPU time likewise.
    pub cpu_system: Nanos,
    /// The largest sample of its resident memory in the run, in bytes, summed over its process tree; zero, and left out,
    /// without a sample.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rss_max_bytes: u64,
    /// The last lines that it said.
    pub last_lines: Vec<String>,
}

fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

/// The target was ended on purpose, and started again.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Restart {
    /// Moment of the request to end.
    pub moment: Moment,
    /// Time from the request to the end.
    pub ended_after: Nanos,
    /// True if it was killed because it outlived its grace.
    pub killed: bool,
    /// Time from the request to end until it was started again.
    pub started_after: Option<Nanos>,
    /// Time from the request to end until it was ready again.
    pub ready_after: Option<Nanos>,
    /// Time from the request to end until something arrived at a sink after
    /// it was ready again; absent in older captures.
    #[serde(default)]
    pub delivered_after: Option<Nanos>,
}

/// End of a generator, sink or observer.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct PartNote {
    /// Its thread's name.
    pub name: String,
    /// CPU time that it used.
    pub cpu: Nanos,
    /// Failure, if any.
    pub failure: Option<String>,
}

/// Outcome of a run.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// The run has not ended: its recorder was killed.
    Unfinished,
    /// All phases were gone through.
    Completed,
    /// It could not be set up, for instance because a port was taken.
    CouldNotStart {
        /// Failed action and its cause.
        reason: String,
    },
    /// The target was not ready in time, or ended while it was waited for.
    NeverReady {
        /// Awaited condition and the cause of its failure.
        reason: String,
    },
    /// The target ended while it should have run.
    TargetDied {
        /// In this phase.
        phase: Phase,
    },
    /// A part of ours failed.
    PartFailed {
        /// The part.
        part: String,
        /// Its message.
        reason: String,
    },
    /// A signal or a caller ended the run.
    Interrupted {
        /// The signal's number.
        signal: i32,
    },
    /// The capture could not be written.
    StorageFailed {
        /// The kernel's answer.
        reason: String,
    },
    /// A phase did not end by its deadline.
    Overdue {
        /// The phase.
        phase: Phase,
    },
}

impl RunOutcome {
    /// Returns true if the run has data about its target.
    #[must_use]
    pub const fn is_completed(&self) -> bool {
        matches!(self, Self::Completed)
    }
}

/// Something that happened.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct EventRecord {
    /// On the monotonic clock.
    pub moment: Moment,
    /// On the wall clock: milliseconds since 1970.
    pub wall_millis: u64,
    /// The phase in which it happened.
    pub phase: Phase,
    /// Description of the event, for readers.
    pub what: String,
    /// True if the timeline planned it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_step: bool,
}
