//! A load without a target: only generators and their results.
//!
//! [`conduct_load`] resolves names, builds requests, starts the workers and waits for connections.
//! It collects the workers' counts once a second for a series, and all of them at the end. A signal
//! ends it in order, with all results until then. [`conduct_load_beside`] also takes requests from
//! a source and reports responses.

mod beside;
mod collect;
mod record;
mod resolve;
mod scenario;
mod snapshot;
mod strain;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};

use stillwell_load::{PrepareLoadError, prepare_load};
use stillwell_metric::{LoadShard, SourceCells};
use stillwell_plan::LoadPlan;
use stillwell_scope::{PartEnd, Place, Scope, Token, clock, explain};
use stillwell_telemetry::{LoadTelemetry, TelemetryError};
use stillwell_units::{Moment, Nanos};

use crate::interrupt::Interrupt;
use beside::LoadCompanions;
pub use beside::{AgreeStart, LoadBeside, LoadSource};
use collect::Collector;
use collect::LoadWorkerResult;
use record::LoadResult;
pub use resolve::{AddressFamily, ResolveError};
pub use scenario::{ConductScenarioError, conduct_scenario};
pub use snapshot::{LoadPhase, LoadSnapshot};
use stillwell_capture::TelemetryResult;
pub use stillwell_capture::{HostCpu, LoadCapture, LoadEnd, LoadSecond};

/// The longest time without a look at signals and workers while they begin or end.
const LOOK_EVERY: Nanos = Nanos::from_millis(5);
/// The same in between, where each look takes CPU time from the load.
const LOOK_RARELY: Nanos = Nanos::from_millis(25);
/// The longest time that the start waits for connections.
const CONNECTED_MAX: Nanos = Nanos::from_secs(2);
/// From the signal to the start, so every worker has received it.
const LEAD: Nanos = Nanos::from_millis(20);
/// The longest time that workers may take to end besides their grace.
const CLOSE_MARGIN: Nanos = Nanos::from_secs(2);
/// The longest time that workers may take to end after an interrupt, grace included.
const INTERRUPTED_MAX: Nanos = Nanos::from_secs(7);

/// The reason why a load could not be made.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A name that has no address.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// A plan that cannot be carried out.
    #[error(transparent)]
    Prepare(#[from] PrepareLoadError),
    /// An exporter could not start.
    #[error(transparent)]
    Telemetry(#[from] TelemetryError),
    /// The generators did not agree on a start.
    #[error("the load was cancelled before its start")]
    NoStart,
    /// The kernel starts no more threads.
    #[error("start the workers")]
    Start(#[source] std::io::Error),
}

/// As [`conduct_load_beside`], with nothing beside it but `progress`.
///
/// # Errors
/// [`LoadError`] where it could not begin.
pub fn conduct_load(
    plan: LoadPlan,
    family: AddressFamily,
    places: &[Place],
    interrupt: &Interrupt,
    progress: &mut dyn FnMut(&LoadSnapshot<'_>),
) -> Result<LoadCapture, LoadError> {
    let beside = LoadBeside {
        progress,
        on_note: &mut |_| {},
        source: None,
        agree: None,
    };
    conduct_load_beside(plan, family, places, interrupt, beside)
}

/// Makes the load of `plan`, workers at `places` in turn, and all activity of `beside`, with
/// reports on the calling thread. Returns its capture without version and command line: the caller
/// adds them.
///
/// # Errors
///
/// [`LoadError`] where it could not begin. Later failures are in the capture.
pub fn conduct_load_beside(
    plan: LoadPlan,
    family: AddressFamily,
    places: &[Place],
    interrupt: &Interrupt,
    beside: LoadBeside<'_>,
) -> Result<LoadCapture, LoadError> {
    let mut resolved = plan.clone();
    resolve::endpoints(&mut resolved, family, interrupt.token())?;
    let mut prepared = prepare_load(resolved.clone())?;
    let telemetry = LoadTelemetry::start(&resolved, prepared.take_spans())?;
    let mut companions = LoadCompanions::start(beside, telemetry, &mut prepared)?;
    let shards = prepared.shards();
    let mut scope = Scope::new(&Token::new());
    // Cancelled with the interrupt, or by a worker whose predicate holds.
    let stop = interrupt.token().child_token();
    let signal = prepared.start(&mut scope, places, &stop);
    let signal = signal.map_err(LoadError::Start)?;
    let pause = Pause::new();
    wait_for_connections(&plan, &shards, interrupt, &pause);
    companions.wait_for_requests(&shards, interrupt, &pause);
    let workers = shards.len();
    let start = companions.start_moment(interrupt)?;
    let measured_from = start + plan.warmup;
    let mut collector = Collector::new(shards, start, measured_from).fleet(plan.fleet.is_some());
    signal.begin(start);
    let exporters = companions.telemetry.iter_mut();
    exporters.for_each(LoadTelemetry::begin);
    let mut watch = Watch {
        ends: Vec::new(),
        scope,
    };
    let mut overdue = Overdue::new(&plan, start);
    while clock::now() < measured_from
        && watch.running(workers)
        && !overdue.is_past(clock::now(), &stop, interrupt)
    {
        pause.wait(companions.pause_length(&collector, Some(measured_from)));
        companions.publish(&mut collector, false);
    }
    // Reported a moment later than it was.
    let wall = clock::wall().saturating_sub(clock::now().since(measured_from));
    let cpu = clock::process_cpu();
    let host = resolve::host_cpu();
    if plan.warmup > Nanos::ZERO {
        collector.warmed_up();
    }
    let until = plan.until.duration.map(|duration| start + duration);
    while watch.running(workers) && !overdue.is_past(clock::now(), &stop, interrupt) {
        let rest = companions.pause_length(&collector, until);
        pause.wait(if stop.is_cancelled() {
            LOOK_EVERY
        } else {
            rest
        });
        let is_draining = stop.is_cancelled() || until.is_some_and(|until| clock::now() >= until);
        companions.publish(&mut collector, is_draining);
    }
    let cpu = clock::process_cpu().saturating_sub(cpu);
    let host = resolve::host_cpu_since(host);
    // The grace of workers that still run is over.
    watch.ends.extend(watch.scope.close(CLOSE_MARGIN));
    let (workers, seconds, measured) = collector.finish(&watch.ends);
    let telemetry = companions.finish();
    let telemetry =
        telemetry.map(|exporters| finish_telemetry(exporters, &workers, interrupt, &pause));
    let result = LoadResult {
        started: wall,
        measured,
        end: end_of(&plan, &workers, measured, &watch.ends, interrupt),
        workers,
        seconds,
        cpu,
        host,
        telemetry: telemetry.unwrap_or_default(),
    };
    Ok(result.into_capture(plan))
}

/// Exports the result.
fn finish_telemetry(
    telemetry: LoadTelemetry,
    workers: &[LoadWorkerResult],
    interrupt: &Interrupt,
    pause: &Pause,
) -> TelemetryResult {
    let shards = workers.iter().map(|worker| Arc::clone(&worker.shard));
    let wait = || {
        pause.wait(LOOK_EVERY);
        interrupt.signal().is_some()
    };
    let totals = |time| collect::total_times(workers, time);
    let by_worker: Vec<_> = workers.iter().map(|worker| worker.times.clone()).collect();
    telemetry.finish(&shards.collect::<Vec<_>>(), (&totals, &by_worker), &wait)
}

/// Waits until all connections that are to be open before the start are, or one
/// has failed.
fn wait_for_connections(
    plan: &LoadPlan,
    shards: &[Arc<LoadShard>],
    interrupt: &Interrupt,
    pause: &Pause,
) {
    if !plan.client.connecting.prefetch {
        return;
    }
    let until = clock::now() + CONNECTED_MAX;
    let sum = |count: fn(&LoadShard) -> u64| shards.iter().map(|shard| count(shard)).sum::<u64>();
    while clock::now() < until && interrupt.signal().is_none() {
        let open = sum(|shard| shard.connections.total());
        let failed = sum(|shard| shard.connect_failures.total());
        if open + failed >= plan.connections_here() {
            return;
        }
        pause.wait(LOOK_EVERY);
    }
}

/// The workers that have ended.
struct Watch {
    ends: Vec<PartEnd>,
    scope: Scope,
}

impl Watch {
    /// Returns true if not all of `workers` have ended, and none has failed.
    fn running(&mut self, workers: usize) -> bool {
        self.ends.extend(self.scope.ends());
        self.ends.len() < workers && self.ends.iter().all(|end| end.result.is_ok())
    }
}

/// When workers should have ended by themselves, so a stuck one does not block the end.
struct Overdue {
    at: Option<Moment>,
    grace: Nanos,
    /// Limit after the request to stop, if there was one.
    after_stop: Option<Moment>,
    /// Limit after the interrupt, if there was one.
    after_interrupt: Option<Moment>,
}

impl Overdue {
    fn new(plan: &LoadPlan, start: Moment) -> Self {
        let grace = plan.grace + CLOSE_MARGIN;
        let at = plan.until.duration.map(|duration| start + duration + grace);
        Self {
            at,
            grace,
            after_stop: None,
            after_interrupt: None,
        }
    }

    /// Returns true if workers that run at `now` are late.
    fn is_past(&mut self, now: Moment, stop: &Token, interrupt: &Interrupt) -> bool {
        if stop.is_cancelled() {
            self.after_stop.get_or_insert(now + self.grace);
        }
        // The grace may be the timeout of a request, and a second signal does not shorten it.
        if interrupt.signal().is_some() {
            self.after_interrupt.get_or_insert(now + INTERRUPTED_MAX);
        }
        let limits = [self.at, self.after_stop, self.after_interrupt];
        limits.into_iter().flatten().any(|limit| now >= limit)
    }
}

/// Waits a little, without a sleep of its own.
struct Pause {
    /// Kept, so the other end goes on waiting.
    _keep: SyncSender<()>,
    wait: Receiver<()>,
}

impl Pause {
    fn new() -> Self {
        let (keep, wait) = sync_channel(0);
        Self { _keep: keep, wait }
    }

    fn wait(&self, length: Nanos) {
        // Nothing is ever sent, so this waits for the whole length.
        match self.wait.recv_timeout(length.as_duration()) {
            Ok(()) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
    }
}

fn end_of(
    plan: &LoadPlan,
    workers: &[LoadWorkerResult],
    measured: Nanos,
    ends: &[PartEnd],
    interrupt: &Interrupt,
) -> LoadEnd {
    let failed = ends.iter().find_map(|end| {
        let failure = end.result.as_ref().err()?;
        Some(format!("{}: {}", end.name, explain(failure)))
    });
    if let Some(what) = failed {
        return LoadEnd::PartFailed(what);
    }
    let predicates = workers.iter().filter_map(|worker| worker.predicate);
    // A failure counts before a success, regardless of the worker.
    if let Some(number) = predicates.max() {
        return match number.checked_sub(plan.until.termination.len()) {
            Some(number) => LoadEnd::Failure(number),
            None => LoadEnd::Termination(number),
        };
    }
    if let Some(signal) = interrupt.signal() {
        return LoadEnd::Interrupted(signal);
    }
    let begun: u64 = workers
        .iter()
        .map(|worker| worker.shard.begun_in_all())
        .sum();
    let duration = plan.until.duration;
    let is_early = duration.is_none_or(|duration| plan.warmup + measured < duration);
    let mut sources = workers.iter().map(|worker| &worker.shard.source);
    if is_early && sources.any(SourceCells::is_over) {
        // The source has ended.
        return LoadEnd::Requests;
    }
    match plan.requests_here() {
        Some(requests) if begun >= requests => LoadEnd::Requests,
        _ => LoadEnd::Duration,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With a long timeout of requests in place of its grace, a load could not be interrupted.
    #[test]
    fn an_interrupted_load_does_not_wait_for_all_of_its_grace() {
        let at = |seconds| Moment::new(Nanos::from_secs(seconds).as_u64());
        let overdue = || Overdue {
            at: Some(at(3000)),
            grace: Nanos::from_secs(1000),
            after_stop: None,
            after_interrupt: None,
        };
        for (is_interrupted, ends_at) in [(false, 1010), (true, 17)] {
            let (mut overdue, stop, interrupt) = (overdue(), Token::new(), Interrupt::new());
            assert!(!overdue.is_past(at(5), &stop, &interrupt));
            stop.cancel();
            if is_interrupted {
                interrupt.raise(2);
            }
            assert!(!overdue.is_past(at(10), &stop, &interrupt));
            assert!(!overdue.is_past(at(ends_at - 1), &stop, &interrupt));
            assert!(overdue.is_past(at(ends_at), &stop, &interrupt));
        }
        assert!(overdue().is_past(at(3000), &Token::new(), &Interrupt::new()));
    }
}
