//! The engine of HTTP loads. Sends requests by a schedule or as fast as responses come;
//! counts one outcome for each request and records its times.
//!
//! [`prepare_load`] encodes all requests; [`PreparedLoad::start`] starts the workers. A worker
//! has a `Pool` of connections to each endpoint and its share of the schedule. Each connection
//! is a task that writes an encoded request, reads the response and records it. This path does
//! not allocate. It reads the clock once for each request whose response arrives in one piece.
//!
//! * With a schedule, a connection takes the next request after a response if one is due.
//!   Otherwise it becomes free, and the pacer of the pool assigns the next request to it. Due
//!   requests without a free connection wait in the schedule; their latency counts from the
//!   intended time.
//! * Without a schedule, a connection takes a request after each response. With many requests
//!   in flight the worker coalesces responses: see `coalesce`.
//! * A request fails immediately if no connection is available.
//!
//! *Running* is CPU time without spinning. *Blocked* is time in which a request was due and no
//! connection free; without a schedule, all time that is not running. *Late* is oversleep.

mod alarm;
mod answer;
mod block_requests;
mod blocks;
mod build;
mod calls;
mod coalesce;
mod connection;
#[cfg(test)]
mod fixture;
mod hold;
mod http1;
mod http2;
mod http3;
mod listen;
mod pool;
mod recorder;
mod routes;
mod scenario;
mod slots;
mod spin;
mod supply;
mod trace;
mod tunnel;
mod usage;
mod web;
mod worker;

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use stillwell_metric::{LoadShard, Recorder};
use stillwell_pacer::Share;
use stillwell_plan::LoadPlan;
use stillwell_plan::load::{LoadPace, Routes};
use stillwell_scope::{Place, Scope, Token};
use stillwell_units::{Moment, as_usize};
use stillwell_wire::tls::ClientTls;
use tokio::sync::{mpsc, watch};

pub use block_requests::BlockRequests;
pub use build::PrepareLoadError;
use build::{Endpoint, RequestEncoder};
pub use listen::AnswerNote;
use listen::NoteForwarder;
use routes::RouteTally;
pub use scenario::{
    PreparedScenario, ScenarioError, ScenarioResult, ScenarioUsers, StepFailure, StepResult,
    UserCounts, prepare_scenario,
};
use supply::SuppliedRequest;
pub use supply::{Feed, FeedError};
use trace::Tracer;
pub use trace::{Span, TraceContext};
use tunnel::Proxy;
use worker::{LoadSetup, WorkerSetup};

/// A load whose requests are laid out and whose workers have not begun.
#[derive(Debug)]
pub struct PreparedLoad {
    plan: Arc<LoadPlan>,
    endpoints: Arc<[Endpoint]>,
    tls: Option<ClientTls>,
    proxy: Option<Proxy>,
    workers: Vec<PreparedWorker>,
    start: watch::Sender<Option<Moment>>,
    spans: Option<Receiver<Span>>,
    notes: Option<Receiver<AnswerNote>>,
}

#[derive(Debug)]
struct PreparedWorker {
    share: Share,
    shard: Arc<LoadShard>,
    recorders: Vec<Recorder>,
    routes: RouteTally,
    tracer: Option<Tracer>,
    supply: Option<mpsc::Receiver<SuppliedRequest>>,
    listener: Option<NoteForwarder>,
}

/// Says when a load that waits for it begins.
#[derive(Clone, Debug)]
pub struct StartSignal(watch::Sender<Option<Moment>>);

impl StartSignal {
    /// It begins at `start`: the zero of its schedule.
    pub fn begin(&self, start: Moment) {
        self.0.send_replace(Some(start));
    }
}

/// Lays out all requests of `plan`, whose endpoints' addresses are best resolved
/// already: names are looked up with each connection. Opens nothing.
///
/// # Errors
/// [`PrepareLoadError`] where the plan cannot be carried out.
pub fn prepare_load(plan: LoadPlan) -> Result<PreparedLoad, PrepareLoadError> {
    let plan = Arc::new(plan);
    let encoder = RequestEncoder::of_load(&plan);
    let endpoints = plan.endpoints.iter();
    let endpoints: Result<Vec<Endpoint>, _> =
        endpoints.map(|plan| encoder.endpoint(plan)).collect();
    let endpoints = endpoints?;
    let tls = build::tls(&plan.client, &plan.endpoints)?;
    let proxy = plan.client.tunnel.as_ref().map(Proxy::new).transpose();
    let proxy = proxy.map_err(PrepareLoadError::Proxy)?;
    let telemetry = &plan.telemetry;
    let trace = telemetry.trace.as_ref();
    let exports = trace.is_some_and(|trace| trace.export.is_some());
    let queue = exports.then(|| sync_channel(trace::SPANS_WAITING_MAX));
    let (sender, spans) = queue.unzip();
    let listens = telemetry.completions || !telemetry.headers.is_empty();
    let queue = listens.then(|| sync_channel(listen::NOTES_WAITING_MAX));
    let (listener, notes) = queue.unzip();
    let listener = listener.map(|queue| NoteForwarder::new(&plan, &queue));
    let routes = Routes::of(&plan.endpoints);
    let requests = endpoints.iter().map(|endpoint| &*endpoint.requests);
    let (here, of) = plan.worker_counts();
    let numbers = plan.worker_numbers();
    let shares = Share::all(of).skip(as_usize(numbers.start));
    let workers = numbers.zip(shares.take(as_usize(here)));
    let workers = workers.map(|(worker, share)| {
        let (mut shard, recorders) = LoadShard::pair();
        let (tally, of_routes) = RouteTally::new(&routes, requests.clone());
        shard.routes = of_routes;
        PreparedWorker {
            share,
            shard: Arc::new(shard),
            recorders,
            routes: tally,
            tracer: trace.map(|plan| {
                // Plans have no more workers than that.
                let worker = u16::try_from(worker).unwrap_or(u16::MAX);
                Tracer::new(plan, telemetry.run, worker, sender.clone())
            }),
            supply: None,
            listener: listener.clone(),
        }
    });
    Ok(PreparedLoad {
        workers: workers.collect(),
        spans,
        notes,
        plan: Arc::clone(&plan),
        endpoints: endpoints.into(),
        tls,
        proxy,
        start: watch::Sender::new(None),
    })
}

impl PreparedLoad {
    /// Counters of each worker.
    #[must_use]
    pub fn shards(&self) -> Vec<Arc<LoadShard>> {
        let shards = self.workers.iter().map(|worker| &worker.shard);
        shards.map(Arc::clone).collect()
    }

    /// The other end of the queue of spans, where any are to be exported; once. It
    /// ends when the last worker has.
    #[must_use]
    pub const fn take_spans(&mut self) -> Option<Receiver<Span>> {
        self.spans.take()
    }

    /// The other end of the queue of notes about answers, if any are reported; once.
    /// It ends when the last worker has.
    #[must_use]
    pub const fn take_notes(&mut self) -> Option<Receiver<AnswerNote>> {
        self.notes.take()
    }

    /// Has requests come from elsewhere while the load goes on, in place of those of the
    /// plan, through one feed for each worker. On each at most `waiting_max` wait. A
    /// worker that has none when one is due waits for it; once its feed is dropped and
    /// all that came was sent, it ends.
    ///
    /// # Errors
    /// [`PrepareLoadError::Unscheduled`] where the load has no schedule.
    pub fn feeds(&mut self, waiting_max: usize) -> Result<Vec<Feed>, PrepareLoadError> {
        if matches!(self.plan.pace, LoadPace::Closed) {
            return Err(PrepareLoadError::Unscheduled);
        }
        let feed = |worker: &mut PreparedWorker| {
            let (feed, queue) = Feed::new(&self.plan, &worker.shard, waiting_max);
            worker.supply = Some(queue);
            feed
        };
        Ok(self.workers.iter_mut().map(feed).collect())
    }

    /// Starts the workers as threads `load-0` and on, each at its place, the
    /// places taking turns. They open connections at once where the plan says so,
    /// and send once the returned signal says when, until the plan's end, `stop`
    /// or the end of the scope. A worker that is done ends its thread.
    ///
    /// # Errors
    /// The kernel's answer where it starts no more threads.
    pub fn start(
        self,
        scope: &mut Scope,
        places: &[Place],
        stop: &Token,
    ) -> io::Result<StartSignal> {
        let shards = self.shards();
        for (index, prepared) in self.workers.into_iter().enumerate() {
            let place = places.get(index % places.len().max(1)).cloned();
            let setup = WorkerSetup {
                client: self.plan.client.clone(),
                endpoints: Arc::clone(&self.endpoints),
                tls: self.tls.as_ref().map(ClientTls::for_worker),
                shard: prepared.shard,
                recorders: prepared.recorders,
                routes: prepared.routes,
            };
            let load = LoadSetup {
                plan: Arc::clone(&self.plan),
                proxy: self.proxy.as_ref().map(Proxy::for_worker),
                share: prepared.share,
                shards: shards.clone(),
                start: self.start.subscribe(),
                stop: stop.clone(),
                tracer: prepared.tracer,
                supply: prepared.supply,
                listener: prepared.listener,
            };
            let name = format!("load-{index}");
            scope.worker(place.unwrap_or_default(), &name, move |token| {
                worker::run::run(setup, load, token)
            })?;
        }
        Ok(StartSignal(self.start))
    }
}
