//! The capture of a load, from what its workers counted.

use stillwell_capture::{
    HostCpu, LOAD_SCHEMA, LoadCapture, LoadEnd, LoadManifest, LoadSecond, LoadWorker, RouteCounts,
    TelemetryResult,
};
use stillwell_metric::{Histogram, LoadCounts, Outcome, RouteTime, empty_histogram};
use stillwell_plan::LoadPlan;
use stillwell_plan::load::Routes;
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
        let names = Routes::of(&plan.endpoints);
        let of_routes = self.workers.iter();
        let of_routes = of_routes.map(|worker| routes(worker, names.names()));
        let (counts, route_times): (Vec<_>, Vec<_>) = of_routes.unzip();
        let (mut workers, times): (Vec<_>, Vec<_>) = self.workers.into_iter().map(parts).unzip();
        for (worker, counts) in workers.iter_mut().zip(counts) {
            worker.routes = counts;
        }
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
                fleet: None,
            },
            times,
            route_times,
            seconds: self.seconds,
        }
    }
}

/// Takes the requests of each route of a worker that has ended.
fn routes(
    worker: &LoadWorkerResult,
    names: &[String],
) -> (
    Vec<RouteCounts>,
    Vec<[Histogram<u64>; RouteTime::ALL.len()]>,
) {
    let routes = worker.shard.routes.iter().zip(names);
    let taken = routes.map(|(route, name)| {
        let counts = RouteCounts {
            name: name.clone(),
            outcomes: Outcome::ALL.map(|outcome| route.ended(outcome)),
            statuses: route.statuses(),
        };
        let times = RouteTime::ALL.map(|time| {
            let taken = route.take(time);
            taken.map_or_else(empty_histogram, |times| times.clone())
        });
        (counts, times)
    });
    taken.unzip()
}

fn parts(result: LoadWorkerResult) -> (LoadWorker, Vec<Option<Histogram<u64>>>) {
    let worker = LoadWorker {
        counts: LoadCounts::from(&*result.shard),
        cpu: result.cpu,
        measured: result.measured,
        routes: Vec::new(),
    };
    let times = result.times.into_iter();
    let recorded = times.map(|times| times.filter(|times| !times.is_empty()));
    (worker, recorded.collect())
}
