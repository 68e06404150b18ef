//! Captures of the generators of one load become the capture of that load, exactly.
//!
//! The result is what one process with the workers of all generators would record: each
//! worker keeps its counts, histograms add up bucket by bucket, and no percentile is ever
//! averaged. Only the borders between seconds are those of one generator.

use std::collections::BTreeMap;

use stillwell_metric::{
    Histogram, LoadTime, PackedHistogram, RouteTime, add_histogram, empty_histogram,
};
use stillwell_plan::LoadPlan;
use stillwell_units::Nanos;

use super::{
    FleetRecord, GeneratorClock, GeneratorRecord, GeneratorResult, HostCpu, LOAD_SCHEMA,
    LoadCapture, LoadEnd, LoadManifest, LoadSecond, LoadWorker, RouteCounts, TelemetryResult,
};

/// Number of workers up to which the result keeps the times of each one. Beyond it the
/// first worker has those of all, because each histogram takes 270 kB of memory.
const WORKERS_WITH_TIMES_MAX: u32 = 64;

/// Number of histograms of a second that are added in one go: packing the sum takes longer than
/// adding, and each one that waits takes up to some kilobytes.
const PENDING_MAX: usize = 8;

/// Number of histograms of a second.
const SECOND_TIMES: usize = 3;

/// Captures that do not belong to one load.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum MergeError {
    /// No generator has a result.
    #[error("no generator has a result: {why}")]
    Nothing {
        /// The reason of the first one.
        why: String,
    },
    /// A generator that the load does not have, or that has a result already.
    #[error("generator {index} has a result already, or is not one of {of}")]
    Generator {
        /// Its index.
        index: usize,
        /// Number of generators.
        of: usize,
    },
    /// A generator with other workers or routes than the plan.
    #[error("the result of generator {index} is of another load: its {what} differ")]
    Foreign {
        /// Its index.
        index: usize,
        /// The difference.
        what: &'static str,
    },
}

/// A merge to which captures are added one after the other, so a controller holds one at a
/// time.
#[derive(Debug)]
pub struct LoadMerge {
    plan: LoadPlan,
    fleet: FleetRecord,
    has_each_worker: bool,
    parts: Vec<Option<GeneratorPart>>,
    /// Times of all workers, unless each worker keeps its own.
    times: Vec<Option<Histogram<u64>>>,
    route_times: Vec<[Histogram<u64>; RouteTime::ALL.len()]>,
    seconds: Vec<LoadSecond>,
    /// Times of each second that are not in `seconds` yet.
    pending: Vec<[Vec<PackedHistogram>; SECOND_TIMES]>,
    sum: Histogram<u64>,
    hosts: BTreeMap<String, HostCpu>,
    telemetry: TelemetryResult,
}

/// The parts of the capture of one generator that are kept.
#[derive(Debug)]
struct GeneratorPart {
    workers: Vec<LoadWorker>,
    times: Vec<Vec<Option<Histogram<u64>>>>,
    route_times: Vec<Vec<[Histogram<u64>; RouteTime::ALL.len()]>>,
    started: Nanos,
    ended: Nanos,
    measured: Nanos,
    cpu: Nanos,
    end: LoadEnd,
}

impl LoadMerge {
    /// Begins the merge of the load of `plan`, which `generators` generators of `engine` made.
    #[must_use]
    pub fn new(plan: LoadPlan, engine: &str, generators: u16) -> Self {
        let missing = GeneratorRecord {
            result: Err("no result arrived".to_owned()),
            clock: None,
        };
        Self {
            fleet: FleetRecord {
                engine: engine.to_owned(),
                generators: vec![missing; generators.into()],
            },
            has_each_worker: u32::from(plan.workers) <= WORKERS_WITH_TIMES_MAX,
            parts: (0..generators).map(|_| None).collect(),
            times: (0..LoadTime::COUNT).map(|_| None).collect(),
            route_times: Vec::new(),
            seconds: Vec::new(),
            pending: Vec::new(),
            sum: empty_histogram(),
            hosts: BTreeMap::new(),
            telemetry: TelemetryResult::default(),
            plan,
        }
    }

    /// Adds `capture`, the result of the generator with this `index`.
    ///
    /// # Errors
    /// [`MergeError`] if it belongs to another load, or was added already.
    pub fn add(
        &mut self,
        index: usize,
        result: GeneratorResult,
        capture: LoadCapture,
    ) -> Result<(), MergeError> {
        let of = self.parts.len();
        if self.parts.get(index).is_none_or(Option::is_some) {
            return Err(MergeError::Generator { index, of });
        }
        self.check(index, &capture)?;
        let LoadCapture {
            manifest,
            mut times,
            mut route_times,
            seconds,
        } = capture;
        if !self.has_each_worker {
            for times in std::mem::take(&mut times) {
                add_times(&mut self.times, times);
            }
            for routes in std::mem::take(&mut route_times) {
                add_routes(&mut self.route_times, &routes);
            }
        }
        self.add_seconds(seconds);
        if let Some(host) = manifest.host {
            // Generators on one machine measured the same CPUs.
            self.hosts.entry(result.boot.clone()).or_insert(host);
        }
        add_telemetry(&mut self.telemetry, manifest.telemetry);
        self.parts[index] = Some(GeneratorPart {
            workers: manifest.workers,
            times,
            route_times,
            started: manifest.started,
            ended: manifest.ended,
            measured: manifest.measured,
            cpu: manifest.cpu,
            end: manifest.end,
        });
        self.fleet.generators[index].result = Ok(result);
        Ok(())
    }

    /// Records why the generator with this `index` has no result.
    pub fn miss(&mut self, index: usize, why: String) {
        if let (Some(generator), Some(None)) = (
            self.fleet.generators.get_mut(index),
            self.parts.get(index).map(Option::as_ref),
        ) {
            generator.result = Err(why);
        }
    }

    /// Records the clock of the generator with this `index`.
    pub fn add_clock(&mut self, index: usize, clock: GeneratorClock) {
        if let Some(generator) = self.fleet.generators.get_mut(index) {
            generator.clock = Some(clock);
        }
    }

    /// Adds `seconds` to those with the same number; borders are those of the longest series.
    fn add_seconds(&mut self, mut seconds: Vec<LoadSecond>) {
        let all = self.seconds.len().max(seconds.len());
        self.pending.resize_with(all, Default::default);
        for (pending, second) in self.pending.iter_mut().zip(&mut seconds) {
            for (pending, times) in pending.iter_mut().zip(times_of(second)) {
                let times = std::mem::take(times);
                if !times.is_empty() {
                    pending.push(times);
                }
                if pending.len() >= PENDING_MAX {
                    let sum = add_packed(&mut self.sum, pending);
                    pending.push(sum);
                }
            }
        }
        if self.seconds.len() < seconds.len() {
            std::mem::swap(&mut self.seconds, &mut seconds);
        }
        for (all, second) in self.seconds.iter_mut().zip(seconds) {
            all.requested += second.requested;
            all.begun += second.begun;
            all.sent += second.sent;
            for (all, count) in all.outcomes.iter_mut().zip(second.outcomes) {
                *all += count;
            }
            for (all, count) in all.bytes.iter_mut().zip(second.bytes) {
                *all += count;
            }
        }
    }

    /// Returns the seconds with their times.
    fn take_seconds(&mut self) -> Vec<LoadSecond> {
        let mut seconds = std::mem::take(&mut self.seconds);
        for (second, mut pending) in seconds.iter_mut().zip(self.pending.drain(..)) {
            for (times, pending) in times_of(second).into_iter().zip(&mut pending) {
                *times = add_packed(&mut self.sum, pending);
            }
        }
        seconds
    }

    fn check(&self, index: usize, capture: &LoadCapture) -> Result<(), MergeError> {
        let workers = &capture.manifest.workers;
        let whole = self.plan.workers;
        if workers.len() * self.parts.len() != usize::from(whole) {
            let what = "numbers of workers";
            return Err(MergeError::Foreign { index, what });
        }
        let first = self.parts.iter().flatten().next();
        let first = first.and_then(|part| part.workers.first());
        let names = |worker: &LoadWorker| -> Vec<String> {
            let routes = worker.routes.iter();
            routes.map(|route| route.name.clone()).collect()
        };
        if let (Some(first), Some(worker)) = (first, workers.first())
            && names(first) != names(worker)
        {
            let what = "routes";
            return Err(MergeError::Foreign { index, what });
        }
        Ok(())
    }

    /// Returns the capture of the load, without version and command line.
    ///
    /// # Errors
    /// [`MergeError::Nothing`] if no capture was added.
    pub fn finish(mut self) -> Result<LoadCapture, MergeError> {
        let seconds = self.take_seconds();
        let parts: Vec<&GeneratorPart> = self.parts.iter().flatten().collect();
        let times = |time: fn(&GeneratorPart) -> Nanos| parts.iter().map(move |part| time(part));
        let Some(started) = times(|part| part.started).min() else {
            let mut reasons = self.fleet.generators.into_iter();
            let why = reasons.find_map(|generator| generator.result.err());
            return Err(MergeError::Nothing {
                why: why.unwrap_or_else(|| "there is no generator".to_owned()),
            });
        };
        let missing = self.fleet.generators.iter().enumerate();
        let missing = missing
            .filter_map(|(index, generator)| Some((index, generator.result.as_ref().err()?)));
        let missing: Vec<(usize, &String)> = missing.collect();
        let end = end_of(&missing, parts.iter().map(|part| &part.end));
        let measured = times(|part| part.measured).max().unwrap_or(Nanos::ZERO);
        let ended = times(|part| part.ended).max().unwrap_or(started);
        let cpu = times(|part| part.cpu).fold(Nanos::ZERO, |sum, cpu| sum + cpu);
        let mut capture = LoadCapture {
            manifest: LoadManifest {
                schema: LOAD_SCHEMA.to_owned(),
                version: String::new(),
                command: Vec::new(),
                targets: Vec::new(),
                labels: Vec::new(),
                plan: self.plan,
                started,
                ended,
                measured,
                workers: Vec::new(),
                end,
                cpu,
                host: self.hosts.into_values().reduce(|all, host| HostCpu {
                    busy: all.busy + host.busy,
                    steal: all.steal + host.steal,
                    cpus: all.cpus.saturating_add(host.cpus),
                }),
                telemetry: self.telemetry,
                fleet: Some(self.fleet),
            },
            times: Vec::new(),
            route_times: Vec::new(),
            seconds,
        };
        for part in self.parts.into_iter().flatten() {
            capture.manifest.workers.extend(part.workers);
            capture.times.extend(part.times);
            capture.route_times.extend(part.route_times);
        }
        if !self.has_each_worker {
            let workers = capture.manifest.workers.len();
            let nothing = || (0..LoadTime::COUNT).map(|_| None).collect();
            capture.times = vec![self.times];
            capture.times.resize_with(workers, nothing);
            capture.route_times = vec![self.route_times];
            capture.route_times.resize_with(workers, Vec::new);
            join_routes(&mut capture.manifest.workers);
        }
        fit_seconds(&mut capture.seconds, measured);
        Ok(capture)
    }
}

/// Adds the requests of the routes of all workers to those of the first one.
fn join_routes(workers: &mut [LoadWorker]) {
    let Some((first, rest)) = workers.split_first_mut() else {
        return;
    };
    for worker in rest {
        let routes = std::mem::take(&mut worker.routes);
        for (all, route) in first.routes.iter_mut().zip(routes) {
            let RouteCounts {
                outcomes, statuses, ..
            } = route;
            for (all, count) in all.outcomes.iter_mut().zip(outcomes) {
                *all += count;
            }
            for (status, count) in statuses {
                *all.statuses.entry(status).or_default() += count;
            }
        }
    }
}

fn add_times(all: &mut [Option<Histogram<u64>>], times: Vec<Option<Histogram<u64>>>) {
    for (all, times) in all.iter_mut().zip(times) {
        match (all, times) {
            (Some(all), Some(times)) => add_histogram(all, &times),
            (all @ None, times) => *all = times,
            (Some(_), None) => {}
        }
    }
}

fn add_routes(
    all: &mut Vec<[Histogram<u64>; RouteTime::ALL.len()]>,
    routes: &[[Histogram<u64>; RouteTime::ALL.len()]],
) {
    let nothing = || RouteTime::ALL.map(|_| empty_histogram());
    all.resize_with(all.len().max(routes.len()), nothing);
    for (all, route) in all.iter_mut().zip(routes) {
        for (all, times) in all.iter_mut().zip(route) {
            add_histogram(all, times);
        }
    }
}

/// Returns the histograms of a second.
fn times_of(second: &mut LoadSecond) -> [&mut PackedHistogram; SECOND_TIMES] {
    [
        &mut second.response,
        &mut second.service,
        &mut second.lateness,
    ]
}

/// Takes `pending` and returns their sum; `sum` has room for it.
fn add_packed(sum: &mut Histogram<u64>, pending: &mut Vec<PackedHistogram>) -> PackedHistogram {
    if pending.len() <= 1 {
        return pending.pop().unwrap_or_default();
    }
    sum.reset();
    for times in pending.drain(..) {
        times.add_to(sum);
    }
    PackedHistogram::new(sum)
}

/// Fits the last second to the length of the load.
fn fit_seconds(seconds: &mut [LoadSecond], measured: Nanos) {
    if let Some(last) = seconds.last_mut() {
        last.length = measured.saturating_sub(last.begin).max(last.length);
    }
}

fn add_telemetry(all: &mut TelemetryResult, result: TelemetryResult) {
    all.sinks.extend(result.sinks);
    all.page = all.page.take().or(result.page);
    all.failure = all.failure.take().or(result.failure);
    all.spans = match (all.spans.take(), result.spans) {
        (Some(mut all), Some(spans)) => {
            all.sampled += spans.sampled;
            all.dropped += spans.dropped;
            all.exported += spans.exported;
            all.batches += spans.batches;
            all.batches_failed += spans.batches_failed;
            all.trouble = all.trouble.or(spans.trouble);
            Some(all)
        }
        (all, spans) => all.or(spans),
    };
}

/// Returns the reason of the end: the worst one of all generators.
fn end_of<'a>(
    missing: &[(usize, &String)],
    ends: impl Iterator<Item = &'a LoadEnd> + Clone,
) -> LoadEnd {
    if let Some((index, why)) = missing.first() {
        return LoadEnd::PartFailed(format!("generator {index} has no result: {why}"));
    }
    let kinds: [fn(&LoadEnd) -> bool; 5] = [
        |end| matches!(end, LoadEnd::PartFailed(_)),
        |end| matches!(end, LoadEnd::Failure(_)),
        |end| matches!(end, LoadEnd::Interrupted(_)),
        |end| matches!(end, LoadEnd::Termination(_)),
        |end| matches!(end, LoadEnd::Duration),
    ];
    let worst = kinds
        .into_iter()
        .find_map(|is| ends.clone().find(|end| is(end)));
    worst.cloned().unwrap_or(LoadEnd::Requests)
}

#[cfg(test)]
mod tests;
