//! The capture of one load: what a run of requests leaves behind.
//!
//! [`LoadCapture`] is the whole record. [`LoadCapture::write`] keeps it as a folder and
//! [`LoadCapture::open`] reads that back, equal to the bit: counts are integers, and
//! histograms are kept in the encoding in which they were taken. By
//! [`LoadCapture::evidence`] a result is judged reliable or not.

mod evidence;
mod fleet;
mod folder;
mod merge;
mod telemetry;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use stillwell_metric::{
    Histogram, LoadCounts, LoadTime, Outcome, PackedHistogram, RouteTime, add_histogram,
    empty_histogram, read_outcome_counts,
};
use stillwell_plan::LoadPlan;
use stillwell_units::{Nanos, Secrets};

pub use fleet::{FleetRecord, GeneratorClock, GeneratorRecord, GeneratorResult};
pub use merge::{LoadMerge, MergeError};
pub use telemetry::{PageFound, SinkFound, SpansFound, TelemetryResult};

/// Names the shape of [`LoadManifest`]; keys are added within a version and never removed.
pub const LOAD_SCHEMA: &str = "stillwell/load-capture/v1";

/// A histogram without samples.
static NOTHING: LazyLock<Histogram<u64>> = LazyLock::new(empty_histogram);

/// The record of one load.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadCapture {
    /// Everything recorded except the series.
    pub manifest: LoadManifest,
    /// Times of each worker over the whole load, in the order of its
    /// [workers](LoadManifest::workers) and then of [`LoadTime::index`]; `None` where
    /// nothing was recorded.
    pub times: Vec<Vec<Option<Histogram<u64>>>>,
    /// Times of each route of each worker, in the order of [`RouteTime::ALL`]; empty if there is
    /// only one route.
    pub route_times: Vec<Vec<[Histogram<u64>; RouteTime::ALL.len()]>>,
    /// The measured time second by second, all workers together.
    pub seconds: Vec<LoadSecond>,
}

/// Record of a load without its series.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct LoadManifest {
    /// [`LOAD_SCHEMA`].
    pub schema: String,
    /// Version of Stillwell.
    pub version: String,
    /// The command line, as it was typed.
    pub command: Vec<String>,
    /// Targets as they were typed; empty where requests came from a file.
    pub targets: Vec<String>,
    /// Words that the result carries.
    pub labels: Vec<String>,
    /// Plan of the load.
    pub plan: LoadPlan,
    /// Wall clock when measuring began, since 1970.
    pub started: Nanos,
    /// Wall clock when the record was complete, since 1970.
    pub ended: Nanos,
    /// Length of the measured time: until the last worker began nothing more.
    pub measured: Nanos,
    /// Each worker.
    pub workers: Vec<LoadWorker>,
    /// Reason of the end.
    pub end: LoadEnd,
    /// CPU time of the whole process meanwhile.
    pub cpu: Nanos,
    /// CPU time of the host meanwhile; `None` where it is unknown.
    pub host: Option<HostCpu>,
    /// Exports and their failures.
    pub telemetry: TelemetryResult,
    /// The generators, where several made the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<FleetRecord>,
}

/// One worker of a load.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct LoadWorker {
    /// Its counts.
    pub counts: LoadCounts,
    /// CPU time of its thread, connecting included where there is no warm-up.
    pub cpu: Nanos,
    /// Length of its measured time.
    pub measured: Nanos,
    /// Requests of each route; empty if there is only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<RouteCounts>,
}

/// Requests of one route of a worker.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct RouteCounts {
    /// Method and path.
    pub name: String,
    /// Requests by outcome, in the order of [`Outcome::ALL`].
    #[serde(deserialize_with = "read_outcome_counts")]
    pub outcomes: [u64; Outcome::ALL.len()],
    /// Responses by status code.
    pub statuses: BTreeMap<u16, u64>,
}

/// Reason of the end of a load.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadEnd {
    /// Its time was up.
    Duration,
    /// All requests were sent.
    Requests,
    /// The termination predicate with this number held.
    Termination(usize),
    /// The failure predicate with this number held.
    Failure(usize),
    /// A signal ended it.
    Interrupted(i32),
    /// A worker failed.
    PartFailed(String),
}

/// CPU time of the host, over all CPUs.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct HostCpu {
    /// Spent on anything.
    pub busy: Nanos,
    /// Given to others by the hypervisor.
    pub steal: Nanos,
    /// Number of CPUs.
    pub cpus: u32,
}

/// One second of all workers, or what was left at the end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadSecond {
    /// Since measuring began.
    pub begin: Nanos,
    /// Its length.
    pub length: Nanos,
    /// Requests that were due by the schedule.
    pub requested: u64,
    /// Requests begun.
    pub begun: u64,
    /// Requests that were given to a connection.
    pub sent: u64,
    /// Requests by outcome, in the order of [`Outcome::ALL`].
    pub outcomes: [u64; Outcome::ALL.len()],
    /// Bytes received and sent.
    pub bytes: [u64; 2],
    /// Latencies from the intended time; empty without a schedule.
    pub response: PackedHistogram,
    /// Latencies from the sent time.
    pub service: PackedHistogram,
    /// Sent time less intended time.
    pub lateness: PackedHistogram,
}

/// One worker with its times.
#[derive(Clone, Copy, Debug)]
pub struct LoadWorkerView<'a> {
    /// Its part of the manifest.
    pub worker: &'a LoadWorker,
    times: &'a [Option<Histogram<u64>>],
    route_times: &'a [[Histogram<u64>; RouteTime::ALL.len()]],
}

impl LoadManifest {
    /// Returns the record with secrets as `secrets` says.
    ///
    /// # Errors
    /// [`serde_json::Error`] if the plan has no form in JSON.
    pub fn masked(&self, secrets: Secrets) -> Result<Self, serde_json::Error> {
        let texts = |texts: &[String]| texts.iter().map(|text| secrets.text(text)).collect();
        Ok(Self {
            command: secrets.words(&self.command),
            targets: texts(&self.targets),
            labels: texts(&self.labels),
            plan: serde_json::from_value(secrets.json(serde_json::to_value(&self.plan)?))?,
            // Counts of bytes exceed the numbers of a JSON value.
            ..self.clone()
        })
    }
}

impl LoadCapture {
    /// The workers, each with its times.
    pub fn workers(&self) -> impl Iterator<Item = LoadWorkerView<'_>> {
        let workers = self.manifest.workers.iter().zip(&self.times);
        workers
            .enumerate()
            .map(|(index, (worker, times))| LoadWorkerView {
                worker,
                times,
                route_times: self.route_times.get(index).map_or(&[], Vec::as_slice),
            })
    }

    /// The counts of every worker.
    pub fn counts(&self) -> impl Iterator<Item = &LoadCounts> {
        self.manifest.workers.iter().map(|worker| &worker.counts)
    }

    /// A count of all workers together.
    #[must_use]
    pub fn sum(&self, count: impl Fn(&LoadCounts) -> u64) -> u64 {
        self.counts().map(count).sum()
    }
}

impl<'a> LoadWorkerView<'a> {
    /// Its counts.
    #[must_use]
    pub const fn counts(&self) -> &'a LoadCounts {
        &self.worker.counts
    }

    /// Its times of one kind.
    #[must_use]
    pub fn times(&self, time: LoadTime) -> &'a Histogram<u64> {
        let times = self.times.get(time.index()).and_then(Option::as_ref);
        times.unwrap_or(&NOTHING)
    }

    /// The requests of its routes, with their times.
    pub fn routes(
        &self,
    ) -> impl Iterator<Item = (&'a RouteCounts, &'a [Histogram<u64>; RouteTime::ALL.len()])> {
        self.worker.routes.iter().zip(self.route_times)
    }

    /// Its times of answers of every class.
    #[must_use]
    pub fn times_of_answers(&self, time: fn(Outcome) -> LoadTime) -> Histogram<u64> {
        let mut all = empty_histogram();
        for class in Outcome::ANSWERS {
            add_histogram(&mut all, self.times(time(class)));
        }
        all
    }
}
