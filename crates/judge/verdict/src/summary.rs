//! One run in numbers.

mod environment;
mod figures;
mod from_capture;
mod instructions;
mod machines;
mod notes;
mod series;
mod slope;
mod steady;
mod values;
mod warnings;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use stillwell_capture::{LedgerRecord, Restart, RunIdentity, RunMachines, RunOutcome};
use stillwell_plan::{GoalMetric, WorkUnit};
use stillwell_units::{Nanos, RunId};

use crate::check::CheckResult;
use crate::run_note::RunNote;
use crate::run_warning::RunWarning;
use crate::window::TimeQuantiles;

pub(crate) use self::environment::TARGET_CPUS;
pub use self::from_capture::{summarise, summarise_from};

/// Names the shape of [`RunSummary`]; keys are added within a version and never
/// removed.
pub const SUMMARY_SCHEMA: &str = "stillwell/summary/v2";

/// One run in numbers: all that a verdict and a report need of a capture.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct RunSummary {
    /// [`SUMMARY_SCHEMA`].
    pub schema: String,
    /// The run's name.
    pub run: RunId,
    /// Name in reports of the target.
    pub target: String,
    /// Its place in a suite, if it has one.
    pub identity: Option<RunIdentity>,
    /// End of the run.
    pub outcome: RunOutcome,
    /// Time between the beats at both ends of the measured phase; zero if it was
    /// not gone through.
    #[serde(rename = "measured_ns")]
    pub measured: Nanos,
    /// Load that was left out before that, from the start of the warm-up on: the
    /// stated length, or longer where [`summarise_from`] was given one.
    #[serde(default, rename = "warmup_ns")]
    pub warmup: Nanos,
    /// From the first phase's beginning to the last one's end.
    #[serde(default, rename = "length_ns")]
    pub length: Nanos,
    /// The number of each goal that needs no name of a series or route and no status code; a run
    /// of a report has all its numbers here. [`RunSummary::value`] has the number of any goal.
    pub values: BTreeMap<GoalMetric, Measured>,
    /// Warnings; none for a valid run.
    pub warnings: Vec<RunWarning>,
    /// Further notes for readers.
    pub notes: Vec<RunNote>,
    /// Figures of the run.
    pub figures: RunFigures,
    /// Results of the bounds.
    pub checks: Vec<CheckResult>,
    /// One number for each recorded or scraped series and reduction, by
    /// `METRIC:REDUCTION` for all series of a metric together,
    /// `METRIC['ID']:REDUCTION` for those with this `id`, and
    /// `METRIC{LABEL=VALUE,…}:REDUCTION` for each where there are several.
    /// Counters have `rate` (growth for each second) and `per_event` (for each
    /// event sent), gauges `mean` and `peak`.
    #[serde(default)]
    pub series: BTreeMap<String, f64>,
    /// Series that were left out because there were more than
    /// [`SERIES_MAX`](crate::limits::SERIES_MAX).
    #[serde(default)]
    pub series_left_out: u32,
    /// Facts that both runs of a pair must share: kernel, CPUs, governor,
    /// limits, what could not be isolated; as text.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
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
        /// Reason why not.
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

/// A step of the timeline that was done.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct StepMark {
    /// Time since the start of the measured phase.
    #[serde(rename = "at_ns")]
    pub at: Nanos,
    /// The action.
    pub what: String,
}

/// Timestamps before events.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct PrefixCounts {
    /// Those that were reliable.
    pub read: u64,
    /// Other bytes in place of a timestamp; and events that were cut.
    pub implausible: u64,
}

/// Figures of a run. Shares are shares of one; everything is of the
/// measured phase unless it says otherwise; `None` is what was not recorded.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct RunFigures {
    /// Unit of the work of all generators.
    #[serde(default)]
    pub work: WorkUnit,
    /// Time with load within the measured phase, where that is not all of it.
    #[serde(default, rename = "active_ns", skip_serializing_if = "Option::is_none")]
    pub active: Option<Nanos>,
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
    /// First arrival of stamped events less their intended time.
    #[serde(default)]
    pub event_latency: Option<TimeQuantiles>,
    /// First arrival of stamped events less their sent time.
    #[serde(default)]
    pub event_transit: Option<TimeQuantiles>,
    /// Timestamps before the events that sinks received, over the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefixes: Option<PrefixCounts>,
    /// Steps of the timeline that were done.
    #[serde(default)]
    pub steps: Vec<StepMark>,
    /// Recovery of the target each time that a step ended it.
    #[serde(default)]
    pub restarts: Vec<Restart>,
    /// Fate of every stamped event of the whole run.
    #[serde(default)]
    pub ledger: Option<LedgerRecord>,
    /// Machines of the run, if it had several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machines: Option<RunMachines>,
    /// Time that the target went on sending after the load had ended; `None` where
    /// it had not ended when the drain did, and without a drain.
    #[serde(default, rename = "drain_ns")]
    pub drain: Option<Nanos>,
    /// CPU seconds of the target for each second.
    pub target_cpu_share: Option<f64>,
    /// The same as a share of the CPUs that it may use, where these are known.
    pub target_core_share: Option<f64>,
    /// Mean resident memory over time.
    pub rss_mean_bytes: Option<f64>,
    /// Largest resident memory of the whole run: the kernel's own mark, or a larger sample.
    pub rss_peak_bytes: Option<f64>,
    /// Mean proportional memory; it is read rarely, so it never makes a goal.
    pub pss_mean_bytes: Option<f64>,
    /// Time breakdown of each load worker.
    pub workers: Vec<WorkerShares>,
    /// Ends of sends; only outcomes that happened.
    pub outcomes: Vec<OutcomeCount>,
    /// First byte of the answer less sent time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte: Option<TimeQuantiles>,
    /// Responses by status code.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub statuses: BTreeMap<u16, u64>,
    /// Requests of each route, if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<RouteFigures>,
    /// Share of the host's CPU time that the hypervisor took.
    pub steal_share: Option<f64>,
    /// Share of the host's CPU time that others used.
    pub foreign_cpu_share: Option<f64>,
    /// Of the time in which the target's threads ran or wanted to, the share in which
    /// they waited for a CPU, also for each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_waited_share: Option<f64>,
    /// Of the same time the share that other programs took: no more than they used of
    /// the target's CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_delayed_share: Option<f64>,
    /// The thread of a generator or sink that other programs delayed most, and the share
    /// of the measured time: no more than they used of our CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_delayed: Option<(String, f64)>,
    /// CPUs of the target; `None` for any.
    pub target_cpus: Option<Vec<u16>>,
    /// CPUs of generators, sinks and observers; `None` for any.
    pub load_cpus: Option<Vec<u16>>,
    /// The steady part of the run.
    #[serde(default)]
    pub warmup: Option<WarmupFigures>,
    /// Its rates from beat to beat, if available: they predict the effect of longer runs
    /// on the noise, and never enter a verdict.
    #[serde(default)]
    pub beats: BTreeMap<GoalMetric, BeatRates>,
}

/// The steady part of a run, by its rates from beat to beat; judged
/// for each run by itself, without a look at its variant. There is none with
/// fewer than 20 beats.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct WarmupFigures {
    /// The rate that took longest, by its series.
    pub series: String,
    /// Load to leave out, from the start of the warm-up on, by MSER-5; `None`
    /// where the warm-up seems to take half of the load or more.
    #[serde(rename = "cut_ns")]
    pub cut: Option<Nanos>,
    /// Beats that this is based on.
    pub beats: u32,
    /// Distance by which the rate within the measured window, but before the cut, lay from
    /// the rate after it, as a share of that; 0 where the cut lies before.
    pub apart: f64,
    /// Growth or fall of the rate over the measured window, as a share of its
    /// mean, by a straight line; of all rates the one that surely drifted most.
    pub drift: Option<Drift>,
}

/// A rate that surely rose or fell while measuring.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Drift {
    /// The rate, by its series.
    pub series: String,
    /// From the window's start to its end, as a share of the mean.
    pub share: f64,
}

/// The rates of one run from beat to beat over the measured window.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct BeatRates {
    /// Mean time from one to the next.
    #[serde(rename = "beat_ns")]
    pub beat: Nanos,
    /// In the goal's unit; at most
    /// [`BEATS_MAX`](crate::limits::BEATS_MAX), neighbours taken together where
    /// there are more.
    pub values: Vec<f64>,
}

/// Units that were sent and received.
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

/// Units that one generator was to send and sent.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct GeneratorFigures {
    /// The generator.
    pub id: String,
    /// Unit of its rate.
    pub unit: WorkUnit,
    /// Units of the schedule per second; `None` at full speed.
    pub requested_per_second: Option<f64>,
    /// Units sent, for each second.
    pub achieved_per_second: Option<f64>,
}

/// Time breakdown of a worker, as shares of the measured time.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct WorkerShares {
    /// Component of the worker.
    pub component: Component,
    /// The generator or sink.
    pub id: String,
    /// Index of the worker.
    pub worker: String,
    /// Waiting for the schedule.
    pub idle: f64,
    /// Waiting for the peer.
    pub blocked: f64,
    /// Running.
    pub running: f64,
    /// With something due, nothing in the way, and not running.
    pub late: f64,
    /// Of a sink's: its thread ran or waited for a CPU; `None` where the kernel
    /// did not say. A sink that gets no CPU does not run, and is not free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<f64>,
}

impl WorkerShares {
    /// Not free to take more in: at work, or waiting for a CPU to work on.
    #[must_use]
    pub fn busy(&self) -> f64 {
        self.wanted.unwrap_or(0.0).max(self.running)
    }
}

/// Component of the worker.
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

/// The requests of one route, of all generators together.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct RouteFigures {
    /// Method and path.
    pub name: String,
    /// Ends of requests; only outcomes that happened.
    pub outcomes: Vec<OutcomeCount>,
    /// Responses by status code.
    pub statuses: BTreeMap<u16, u64>,
    /// End of the answer less intended time.
    pub response_time: Option<TimeQuantiles>,
    /// End of the answer less sent time.
    pub service_time: Option<TimeQuantiles>,
    /// First byte of the answer less sent time.
    pub first_byte: Option<TimeQuantiles>,
}

/// Number of sends that ended in one way.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct OutcomeCount {
    /// The `outcome` label.
    pub outcome: String,
    /// Count.
    pub count: u64,
}

impl RunSummary {
    /// The number of `metric`, if it was measured.
    #[must_use]
    pub fn value(&self, metric: &GoalMetric) -> Option<f64> {
        self.measured(metric).value()
    }

    /// The number of `metric`, or why there is none.
    #[must_use]
    pub fn measured(&self, metric: &GoalMetric) -> Measured {
        if let Some(measured) = self.values.get(metric) {
            return measured.clone();
        }
        let missing = |reason: &str| Measured::Missing {
            reason: reason.to_owned(),
        };
        let goal = match metric {
            GoalMetric::Series(goal) => goal,
            GoalMetric::Route(_) | GoalMetric::Status(_) => {
                let value = values::of_answers(metric, &self.figures, self.measured);
                return value.map_or_else(missing, Measured::Value);
            }
            _ => return missing("it is not in the summary"),
        };
        match self.series.get(&goal.to_string()) {
            Some(value) => Measured::Value(*value),
            None if self.series_left_out > 0 => missing(
                "it was not recorded, or is one of the series beyond the maximum of a summary",
            ),
            None => missing(
                "it was not recorded, or is of another kind: mean and peak need a gauge, rate and \
                 per_event a counter",
            ),
        }
    }

    /// The first warning that forbids believing the number of `metric`.
    #[must_use]
    pub fn warning_about(&self, metric: &GoalMetric) -> Option<&RunWarning> {
        self.warnings.iter().find(|warning| warning.spoils(metric))
    }
}

#[cfg(test)]
mod tests;
