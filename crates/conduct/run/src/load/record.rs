//! The capture of a load, from what its workers counted.

use stillwell_capture::{LOAD_SCHEMA, LoadCapture, LoadManifest, LoadWorker};
use stillwell_metric::{LoadCounts, LoadTime};
use stillwell_plan::LoadPlan;
use stillwell_scope::clock;

use super::{LoadFound, LoadWorkerFound};

/// What was typed for a load, for its capture.
#[derive(Clone, Debug, Default)]
pub struct LoadTyped {
    /// Version of Stillwell.
    pub version: String,
    /// The command line.
    pub command: Vec<String>,
    /// Targets; empty where requests came from a file.
    pub targets: Vec<String>,
    /// Words that the result carries.
    pub labels: Vec<String>,
}

impl LoadFound {
    /// The capture of this load, which was that of `plan`.
    #[must_use]
    pub fn capture(&self, plan: &LoadPlan, typed: LoadTyped) -> LoadCapture {
        LoadCapture {
            manifest: LoadManifest {
                schema: LOAD_SCHEMA.to_owned(),
                version: typed.version,
                command: typed.command,
                targets: typed.targets,
                labels: typed.labels,
                plan: plan.clone(),
                started: self.started,
                ended: clock::wall(),
                measured: self.measured,
                workers: self.workers.iter().map(worker).collect(),
                end: self.end.clone(),
                cpu: self.cpu,
                host: self.host,
                telemetry: self.telemetry.clone(),
            },
            times: self.workers.iter().map(times).collect(),
            seconds: self.seconds.clone(),
        }
    }
}

fn worker(found: &LoadWorkerFound) -> LoadWorker {
    LoadWorker {
        counts: LoadCounts::from(&*found.shard),
        cpu: found.cpu,
        measured: found.measured,
    }
}

fn times(found: &LoadWorkerFound) -> Vec<Option<stillwell_metric::Histogram<u64>>> {
    let recorded = |time| {
        let times = found.times(time);
        (!times.is_empty()).then(|| times.clone())
    };
    LoadTime::all().map(recorded).collect()
}
