//! The capture of a load, from what its workers counted.

use stillwell_capture::{
    HostCpu, LOAD_SCHEMA, LoadCapture, LoadEnd, LoadManifest, LoadSecond, LoadWorker,
    TelemetryResult,
};
use stillwell_metric::{Histogram, LoadCounts};
use stillwell_plan::LoadPlan;
use stillwell_scope::clock;
use stillwell_units::Nanos;

use super::LoadWorkerResult;

/// The result of a load whose workers have ended.
#[derive(Debug)]
pub(super) struct LoadResult {
    /// When measuring began, since 1970.
    pub(super) started: Nanos,
    /// Length of measuring: until the last worker began nothing more.
    pub(super) measured: Nanos,
    /// Each worker by itself.
    pub(super) workers: Vec<LoadWorkerResult>,
    /// The measured time second by second, all workers together.
    pub(super) seconds: Vec<LoadSecond>,
    /// The reason why it ended.
    pub(super) end: LoadEnd,
    /// CPU time of the whole process meanwhile.
    pub(super) cpu: Nanos,
    /// CPU time that the host spent on anything meanwhile and that the hypervisor
    /// gave to others, over all CPUs; `None` where it does not say.
    pub(super) host: Option<HostCpu>,
    /// The result of the exporters.
    pub(super) telemetry: TelemetryResult,
}

impl LoadResult {
    /// Makes it the capture of the load of `plan`, without a version and without what
    /// was typed.
    pub(super) fn into_capture(self, plan: LoadPlan) -> LoadCapture {
        let (workers, times) = self.workers.into_iter().map(parts).unzip();
        LoadCapture {
            manifest: LoadManifest {
                schema: LOAD_SCHEMA.to_owned(),
                version: String::new(),
                command: Vec::new(),
                targets: Vec::new(),
                labels: Vec::new(),
                plan,
                started: self.started,
                ended: clock::wall(),
                measured: self.measured,
                workers,
                end: self.end,
                cpu: self.cpu,
                host: self.host,
                telemetry: self.telemetry,
            },
            times,
            seconds: self.seconds,
        }
    }
}

fn parts(result: LoadWorkerResult) -> (LoadWorker, Vec<Option<Histogram<u64>>>) {
    let worker = LoadWorker {
        counts: LoadCounts::from(&*result.shard),
        cpu: result.cpu,
        measured: result.measured,
    };
    let times = result.times.into_iter();
    let recorded = times.map(|times| times.filter(|times| !times.is_empty()));
    (worker, recorded.collect())
}
