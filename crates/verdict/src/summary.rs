//! One run in numbers.

mod cautions;
mod doubts;
mod figures;
mod values;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use stillwell_capture::{Capture, RunIdentity, RunOutcome};
use stillwell_plan::{GoalMetric, RateUnit};
use stillwell_units::{Nanos, RunId};

use crate::caution::Caution;
use crate::check::{self, CheckResult};
use crate::doubt::Doubt;
use crate::window::{TimeQuantiles, Window};

/// Names the shape of [`RunSummary`]; keys are added within a version and never
/// removed.
pub const SUMMARY_SCHEMA: &str = "stillwell/summary/v1";

/// One run in numbers: all that a verdict and a report need of a capture.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct RunSummary {
    /// [`SUMMARY_SCHEMA`].
    pub schema: String,
    /// The run's name.
    pub run: RunId,
    /// What reports call the subject.
    pub subject: String,
    /// Its place in a lab, if it has one.
    pub identity: Option<RunIdentity>,
    /// How it ended.
    pub outcome: RunOutcome,
    /// Time between the beats at both ends of the measured phase; zero if it was
    /// not gone through.
    #[serde(rename = "measured_ns")]
    pub measured: Nanos,
    /// The number of each goal.
    pub values: BTreeMap<GoalMetric, Measured>,
    /// Why it must not be believed; none for a valid run.
    pub doubts: Vec<Doubt>,
    /// What readers should know besides.
    pub cautions: Vec<Caution>,
    /// What happened, in figures.
    pub figures: RunFigures,
    /// Whether it kept its bounds.
    pub checks: Vec<CheckResult>,
}

/// A number, or why there is none.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measured {
    /// Finite, in the goal's base unit: bytes for each second, CPU nanoseconds
    /// for each event, CPU seconds for each second, bytes.
    Value(f64),
    /// It was not measured.
    Missing {
        /// Why not.
        reason: String,
    },
}

impl Measured {
    /// The number, if there is one.
    #[must_use]
    pub const fn value(&self) -> Option<f64> {
        match self {
            Self::Value(value) => Some(*value),
            Self::Missing { .. } => None,
        }
    }
}

/// What happened in a run. Shares are shares of one; everything is of the
/// measured phase unless it says otherwise; `None` is what was not recorded.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct RunFigures {
    /// Totals of the measured phase.
    pub measured: Totals,
    /// Totals of the whole run, with warm-up and drain.
    pub whole: Totals,
    /// One for each generator of the plan, in its order.
    pub generators: Vec<GeneratorFigures>,
    /// Sent time less intended time.
    pub lateness: Option<TimeQuantiles>,
    /// End of the answer less intended time.
    pub response_time: Option<TimeQuantiles>,
    /// End of the answer less sent time.
    pub service_time: Option<TimeQuantiles>,
    /// CPU seconds of the subject for each second.
    pub subject_cpu_share: Option<f64>,
    /// The same as a share of the CPUs that it may use, where these are known.
    pub subject_core_share: Option<f64>,
    /// Mean resident memory over time.
    pub rss_mean_bytes: Option<f64>,
    /// Largest resident memory: the kernel's own mark, or the largest sample.
    pub rss_peak_bytes: Option<f64>,
    /// Mean proportional memory; it is read seldom, so it never makes a goal.
    pub pss_mean_bytes: Option<f64>,
    /// Where the time of each of our workers went.
    pub workers: Vec<WorkerShares>,
    /// How sends ended; only outcomes that happened.
    pub outcomes: Vec<OutcomeCount>,
    /// Share of the host's CPU time that the hypervisor took.
    pub steal_share: Option<f64>,
    /// Share of the host's CPU time that others used.
    pub foreign_cpu_share: Option<f64>,
    /// CPUs of the subject; `None` for any.
    pub subject_cpus: Option<Vec<u16>>,
    /// CPUs of generators, sinks and observers; `None` for any.
    pub own_cpus: Option<Vec<u16>>,
}

/// What was sent and received.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Totals {
    /// Whole events that generators handed to the kernel.
    pub events_sent: Option<f64>,
    /// Payload bytes that generators handed to the kernel.
    pub bytes_sent: Option<f64>,
    /// Events that sinks received.
    pub events_received: Option<f64>,
    /// Payload bytes that sinks received.
    pub bytes_received: Option<f64>,
}

/// What one generator was asked for and sent.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct GeneratorFigures {
    /// The generator.
    pub id: String,
    /// What its rate counts.
    pub unit: RateUnit,
    /// Units that the schedule asked for, for each second; `None` at full speed.
    pub asked_per_second: Option<f64>,
    /// Units sent, for each second.
    pub achieved_per_second: Option<f64>,
}

/// Where a worker's time went, as shares of the measured time.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct WorkerShares {
    /// Whose worker.
    pub component: Component,
    /// The generator or sink.
    pub id: String,
    /// Which of its workers.
    pub worker: String,
    /// Waiting for the schedule.
    pub ahead: f64,
    /// Waiting for the peer.
    pub blocked: f64,
    /// Running.
    pub running: f64,
    /// With something due, nothing in the way, and not running.
    pub late: f64,
}

/// Whose worker.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Component {
    /// A generator's.
    Generator,
    /// A sink's.
    Sink,
}

impl Component {
    /// The `component` label.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Generator => "generator",
            Self::Sink => "sink",
        }
    }
}

/// How often sends ended in one way.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct OutcomeCount {
    /// The `outcome` label.
    pub outcome: String,
    /// How often.
    pub count: u64,
}

/// One run in numbers.
///
/// Every total is the counter at the end of the measured phase less the counter
/// at its start, at the beats taken there; nothing is an average of seconds.
/// Memory is the mean of resident memory over time, for all variants alike:
/// resident memory is sampled at every beat, proportional memory only at phase
/// marks and every few seconds, too seldom to stand for a run.
#[must_use]
pub fn summarise(capture: &Capture) -> RunSummary {
    let manifest = &capture.manifest;
    let window = Window::of(capture);
    let figures = figures::figures(capture, window.as_ref().ok());
    let checks = manifest.plan.checks.iter();
    let checks = checks.map(|plan| check::check(plan, &capture.series, window.as_ref().ok()));
    RunSummary {
        schema: SUMMARY_SCHEMA.to_owned(),
        run: manifest.run,
        subject: manifest.plan.subject.name.clone(),
        identity: manifest.identity.clone(),
        outcome: manifest.outcome.clone(),
        measured: window.as_ref().map_or(Nanos::ZERO, Window::length),
        values: values::values(capture, &window, &figures),
        doubts: doubts::doubts(capture, window.as_ref().ok(), &figures),
        cautions: cautions::cautions(capture, window.as_ref().ok(), &figures),
        checks: checks.collect(),
        figures,
    }
}

impl RunSummary {
    /// The number of `metric`, if it was measured.
    #[must_use]
    pub fn value(&self, metric: GoalMetric) -> Option<f64> {
        self.values.get(&metric)?.value()
    }

    /// The first doubt that forbids believing the number of `metric`.
    #[must_use]
    pub fn doubt_about(&self, metric: GoalMetric) -> Option<&Doubt> {
        self.doubts.iter().find(|doubt| doubt.spoils(metric))
    }
}

#[cfg(test)]
mod tests;
