//! State that the pools of one worker share.

pub(super) mod run;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use stillwell_metric::{HandshakePart, LoadShard, LoadTime, Outcome, Recorder, Trouble};
use stillwell_pacer::Share;
use stillwell_payload::BlockSet;
use stillwell_plan::LoadPlan;
use stillwell_plan::load::{ClientPlan, LoadPace, LoadProtocol, Overflow, PredicatePlan};
use stillwell_scope::{Token, clock, explain};
use stillwell_units::{Moment, Nanos};
use stillwell_wire::quic::QuicClient;
use stillwell_wire::tls::{ClientTls, Handshake, HandshakeError};
use tokio::sync::{mpsc, watch};

use super::blocks::Blocks;
use super::build::Endpoint;
use super::coalesce::Coalescer;
use super::listen::NoteForwarder;
use super::recorder::{Answer, PredicateWatch, RequestRecorder, Ticket};
use super::routes::RouteTally;
use super::spin::SpinTime;
use super::supply::{ChosenRequest, SuppliedRequest, Supply};
use super::trace::{RequestTrace, TracedRequest, Tracer};
use super::tunnel::Proxy;
use stillwell_wire::stream_outcome;
use stillwell_worker::Slice;

/// Parts of a worker.
pub(super) struct WorkerSetup {
    pub(super) client: ClientPlan,
    pub(super) endpoints: Arc<[Endpoint]>,
    pub(super) tls: Option<ClientTls>,
    pub(super) shard: Arc<LoadShard>,
    pub(super) recorders: Vec<Recorder>,
    pub(super) routes: RouteTally,
}

/// Parts of a worker that only a load has.
pub(super) struct LoadSetup {
    pub(super) plan: Arc<LoadPlan>,
    pub(super) proxy: Option<Proxy>,
    pub(super) share: Share,
    /// Shards of all workers.
    pub(super) shards: Vec<Arc<LoadShard>>,
    pub(super) start: watch::Receiver<Option<Moment>>,
    pub(super) stop: Token,
    pub(super) tracer: Option<Tracer>,
    /// Source of requests other than the plan.
    pub(super) supply: Option<mpsc::Receiver<SuppliedRequest>>,
    /// Forwards response headers, if the plan names any.
    pub(super) listener: Option<NoteForwarder>,
}

/// State that the pools of one worker share on its thread.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) client: ClientPlan,
    pub(super) endpoints: Arc<[Endpoint]>,
    pub(super) tls: Option<ClientTls>,
    pub(super) proxy: Option<Proxy>,
    /// QUIC client for endpoints, after the first connection.
    pub(super) quic: OnceCell<QuicClient>,
    /// QUIC client for the proxy, after the first connection.
    pub(super) proxy_quic: OnceCell<QuicClient>,
    /// Header of responses whose number of nanoseconds is recorded, if any.
    pub(super) latency_header: Option<String>,
    /// Share of the load.
    share: Share,
    /// True if a predicate ends this worker alone.
    ends_alone: bool,
    pub(super) has_schedule: bool,
    pub(super) recorder: RefCell<RequestRecorder>,
    pub(super) end: Token,
    /// Cheaper copy of `end`.
    is_ending: Cell<bool>,
    /// Time during which requests were due with no connection free.
    pub(super) blocked: Cell<Nanos>,
    /// Total oversleep.
    pub(super) late: Cell<Nanos>,
    /// CPU time of spinning until the next request.
    pub(super) spin: SpinTime,
    /// Connections opened during the warm-up, by endpoint and slot.
    warming: RefCell<BTreeMap<(usize, usize), ConnectionTimes>>,
    pub(super) coalescer: Coalescer,
    begun: Token,
    stop: Token,
    failure: Cell<Option<&'static str>>,
    tracer: Option<RefCell<Tracer>>,
    pub(super) source: RequestSource,
    /// Forwards response headers, if the plan names any.
    pub(super) listener: Option<NoteForwarder>,
}

/// Source of the requests of a worker.
#[derive(Clone, Debug)]
pub(super) enum RequestSource {
    /// The plan: its requests in turn.
    Plan,
    /// A feed.
    Feed(Rc<Supply>),
    /// A generator: its blocks, or requests that they pace.
    Blocks(Rc<Blocks>),
}

impl RequestSource {
    /// Returns the queue of the feed, if it is one.
    pub(super) fn supply(&self) -> Option<&Supply> {
        match self {
            Self::Feed(supply) => Some(supply),
            Self::Plan | Self::Blocks(_) => None,
        }
    }
}

/// Times of an open connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionTimes {
    /// Connect time without the handshake.
    pub(super) connect: Nanos,
    /// The TLS or QUIC handshake, if there was one.
    pub(super) handshake: Option<Handshake>,
}

impl ConnectionTimes {
    fn record(&self, recorder: &mut RequestRecorder) {
        recorder.record(LoadTime::Connect, self.connect);
        if let Some(handshake) = self.handshake {
            recorder.record(LoadTime::Handshake, handshake.length());
            let agreed = &recorder.shard.handshakes;
            agreed.add([
                (HandshakePart::Version, Some(handshake.version)),
                (HandshakePart::Suite, Some(handshake.suite)),
                (HandshakePart::Group, handshake.group),
                (HandshakePart::Signature, handshake.signature),
            ]);
        }
    }
}

impl Worker {
    /// A worker that ends by no predicate and traces nothing.
    pub(super) fn new(setup: WorkerSetup, source: RequestSource) -> Self {
        let client = setup.client;
        Self {
            endpoints: setup.endpoints,
            tls: setup.tls,
            proxy: None,
            quic: OnceCell::new(),
            proxy_quic: OnceCell::new(),
            latency_header: None,
            share: Share::WHOLE,
            ends_alone: false,
            has_schedule: false,
            recorder: RefCell::new(RequestRecorder {
                routes: setup.routes,
                ..RequestRecorder::new(setup.shard, setup.recorders)
            }),
            end: Token::new(),
            is_ending: Cell::new(false),
            begun: Token::new(),
            blocked: Cell::default(),
            late: Cell::default(),
            spin: SpinTime::default(),
            warming: RefCell::default(),
            // What a proxy leads here comes when it is read.
            coalescer: Coalescer::new(
                client.connecting.protocol == LoadProtocol::Http3 && client.tunnel.is_none(),
            ),
            stop: Token::new(),
            failure: Cell::default(),
            tracer: None,
            source,
            listener: None,
            client,
        }
    }

    /// A worker of a load.
    fn of_load(setup: WorkerSetup, load: LoadSetup) -> Self {
        let plan = &load.plan;
        let until = &plan.until;
        let facts = plan.counter_facts();
        let watch = |predicate: &PredicatePlan| PredicateWatch {
            counter: predicate.counter,
            threshold: predicate.threshold,
            facts,
        };
        let source = load.supply.map_or(RequestSource::Plan, |queue| {
            RequestSource::Feed(Rc::new(Supply::new(queue)))
        });
        let is_planned = matches!(source, RequestSource::Plan);
        let mut worker = Self::new(setup, source);
        let recorder = worker.recorder.get_mut();
        if !is_planned {
            // Requests of a feed belong to none of the plan.
            recorder.routes = RouteTally::default();
        }
        recorder.watched = match until.by_worker {
            true => vec![Arc::clone(&recorder.shard)],
            false => load.shards,
        };
        let predicates = until.termination.iter().chain(&until.failure);
        recorder.watches = predicates.map(watch).collect();
        recorder.has_schedule = matches!(plan.pace, LoadPace::Open { .. });
        recorder.has_response = has_response(&plan.pace);
        recorder.is_warming = plan.warmup > Nanos::ZERO;
        if recorder.is_warming {
            recorder.shard.warm_up();
        }
        Self {
            has_schedule: recorder.has_schedule,
            proxy: load.proxy,
            latency_header: plan.latency_header.clone(),
            share: load.share,
            ends_alone: until.by_worker,
            stop: load.stop,
            tracer: load.tracer.map(RefCell::new),
            listener: load.listener,
            ..worker
        }
    }

    /// A worker that sends `blocks` immediately.
    pub(super) fn of_blocks(setup: WorkerSetup, blocks: Rc<Blocks>) -> Self {
        let worker = Self::new(setup, RequestSource::Blocks(blocks));
        worker.begun.cancel();
        worker
    }

    /// Delay between the start and the opening of the connection in `slot`. Connections of
    /// all workers and endpoints open in turn.
    pub(super) fn opens_after(&self, endpoint: usize, slot: usize) -> Nanos {
        let over = self.client.connecting.over;
        if over == Nanos::ZERO {
            return over;
        }
        let all = self.client.connecting.connections;
        let counts = connections_of(all, self.share, &self.weights());
        turn(over, &counts, endpoint, slot, self.share)
    }

    fn weights(&self) -> Vec<u32> {
        let endpoints = self.endpoints.iter();
        endpoints.map(|endpoint| endpoint.weight).collect()
    }

    /// Waits for the start; `None` if the load ends before.
    pub(super) async fn started(&self) -> Option<()> {
        self.end.run_until_cancelled(self.begun.cancelled()).await
    }

    /// True if no further request may begin.
    pub(super) fn is_ending(&self) -> bool {
        self.is_ending.get()
    }

    /// Counts a request that failed.
    pub(super) fn end_request(&self, ticket: Ticket, outcome: Outcome) {
        if let Some(blocks) = self.blocks() {
            return blocks.failed(ticket, outcome);
        }
        let mut recorder = self.recorder.borrow_mut();
        let is_end = recorder.failed(ticket, outcome, clock::now());
        drop(recorder);
        self.ended(ticket);
        self.end_if(is_end);
    }

    /// Counts a response.
    pub(super) fn answered(&self, ticket: Ticket, answer: &Answer) {
        if let Some(blocks) = self.blocks() {
            return blocks.answered(ticket, answer);
        }
        if !self.has_schedule {
            self.coalescer.answered(answer.end.since(answer.sent));
        }
        let is_end = self.recorder.borrow_mut().answered(ticket, answer);
        self.ended(ticket);
        self.end_if(is_end);
    }

    /// Counts an opened connection.
    pub(super) fn connected(&self, endpoint: usize, slot: usize, opened: ConnectionTimes) {
        let mut recorder = self.recorder.borrow_mut();
        recorder.shard.connections.add(1);
        let is_resumed = opened.handshake.is_some_and(|handshake| handshake.resumed);
        recorder.shard.handshakes_resumed.add(u64::from(is_resumed));
        if recorder.is_warming {
            self.warming.borrow_mut().insert((endpoint, slot), opened);
        } else {
            opened.record(&mut recorder);
        }
    }

    /// Removes a closed connection.
    pub(super) fn disconnected(&self, endpoint: usize, slot: usize) {
        self.warming.borrow_mut().remove(&(endpoint, slot));
    }

    /// Records the server time that a response reports.
    pub(super) fn origin(&self, ticket: Ticket, nanoseconds: Option<u64>) {
        if let Some(nanoseconds) = nanoseconds {
            self.recorder.borrow_mut().origin(ticket, nanoseconds);
        }
    }

    /// Counts a malformed response and keeps the first error.
    pub(super) fn malformed(&self, why: &dyn std::error::Error) -> Outcome {
        let recorder = self.recorder.borrow();
        let trouble = &recorder.shard.answer_trouble;
        trouble.get_or_init(|| Trouble::plain(explain(why)));
        Outcome::Malformed
    }

    /// Maps an I/O error to an outcome and keeps the first TLS alert of a server.
    pub(super) fn broken(&self, endpoint: usize, error: &std::io::Error) -> Outcome {
        let address = &self.endpoints[endpoint].address;
        if let Some(handshake_error) = HandshakeError::behind(address, error) {
            let recorder = self.recorder.borrow();
            recorder.shard.answer_trouble.get_or_init(|| Trouble {
                why: explain(&handshake_error),
                remedy: handshake_error.remedy(false),
            });
        }
        stream_outcome(error)
    }

    /// Trace context of the next request.
    pub(super) fn next_trace(&self) -> Option<RequestTrace> {
        let tracer = self.tracer.as_ref()?;
        Some(tracer.borrow_mut().next_trace())
    }

    /// Exports the span of a request that has ended.
    pub(super) fn hand_over(
        &self,
        trace: Option<&RequestTrace>,
        ended: impl FnOnce() -> TracedRequest,
    ) {
        if let (Some(tracer), Some(trace)) = (&self.tracer, trace) {
            let recorder = self.recorder.borrow();
            tracer.borrow().hand_over(trace, &ended(), &recorder.shard);
        }
    }

    pub(super) fn end_if(&self, is_end: bool) {
        if is_end {
            self.finish();
            if !self.ends_alone {
                self.stop.cancel();
            }
        }
    }

    /// Returns the blocks that are sent, or that pace requests.
    pub(super) fn blocks(&self) -> Option<&Blocks> {
        match &self.source {
            RequestSource::Blocks(blocks) => Some(blocks),
            RequestSource::Plan | RequestSource::Feed(_) => None,
        }
    }

    /// Returns the block of `ticket`, if blocks are sent.
    pub(super) fn block(&self, ticket: Ticket) -> Option<(&Blocks, (Rc<BlockSet>, Slice))> {
        let blocks = self.blocks().filter(|blocks| blocks.are_bodies())?;
        Some((blocks, blocks.block(ticket)?))
    }

    /// Returns true if blocks are the bodies of requests.
    pub(super) fn sends_blocks(&self) -> bool {
        self.blocks().is_some_and(Blocks::are_bodies)
    }

    /// Counts a send of `bytes`. Returns the sent time, which is that of the first send if it
    /// is sent again.
    pub(super) fn sent(&self, ticket: &mut Ticket, now: Moment, bytes: usize) -> Moment {
        let Some(blocks) = self.blocks() else {
            return self.recorder.borrow_mut().sent(ticket, now, bytes);
        };
        if let Some(first) = ticket.sent {
            return first;
        }
        ticket.sent = Some(now);
        blocks.sent(bytes);
        now
    }

    /// Shortest timeout of the requests to an endpoint.
    pub(super) fn request_timeout(&self, endpoint: usize) -> Nanos {
        let requests = self.endpoints[endpoint].requests.iter();
        let deadlines = requests.filter_map(|request| request.call()?.deadline);
        deadlines.fold(self.client.timeout, Nanos::min)
    }

    /// Notes that the pacer waits: until a time, or for a connection.
    pub(super) fn suspend(&self, until: Option<Moment>) {
        if let Some(blocks) = self.blocks() {
            blocks.suspend(until);
        }
    }

    /// Notes that the pacer continues.
    pub(super) fn resume(&self, until: Option<Moment>) {
        if let Some(blocks) = self.blocks() {
            blocks.resume(until);
        }
    }

    /// Lets no further request begin.
    pub(super) fn finish(&self) {
        self.is_ending.set(true);
        self.end.cancel();
    }

    /// Ends the worker with an error.
    pub(super) fn fail(&self, what: &'static str) {
        self.failure.set(Some(what));
        self.finish();
    }

    /// Returns the request of `ticket`.
    pub(super) fn request(&self, endpoint: usize, ticket: Ticket) -> ChosenRequest<'_> {
        match &self.source {
            RequestSource::Plan => {
                ChosenRequest::Planned(&self.endpoints[endpoint].requests[ticket.request])
            }
            RequestSource::Feed(supply) => ChosenRequest::Supplied(supply.request(ticket.request)),
            RequestSource::Blocks(blocks) => ChosenRequest::Planned(blocks.request_of(ticket)),
        }
    }

    /// Index among the endpoint's requests, if the plan has the request.
    pub(super) fn planned(&self, ticket: Ticket) -> Option<usize> {
        self.source.supply().is_none().then_some(ticket.request)
    }

    /// Releases the request of `ticket`.
    pub(super) fn ended(&self, ticket: Ticket) {
        if let Some(supply) = self.source.supply() {
            supply.ended(ticket.request);
        }
    }

    /// Checks the predicates after a failure of the supply, which ends no request.
    pub(super) fn look_at_supply(&self) {
        let recorder = self.recorder.borrow();
        let has_failed = recorder.shard.source.failures.total() > 0;
        let is_end = self.source.supply().is_some() && has_failed && recorder.is_over();
        drop(recorder);
        self.end_if(is_end);
    }

    /// Forwards response headers.
    pub(super) fn receive<'h>(
        &self,
        status: u16,
        headers: impl Iterator<Item = (&'h [u8], &'h [u8])>,
    ) {
        if let Some(listener) = &self.listener {
            listener.forward(&self.recorder.borrow().shard, status, headers);
        }
    }

    /// Reports the end of an answer on the connection of `number`, which may get one here.
    pub(super) fn complete(&self, number: &mut Option<u64>, status: u16) {
        if let Some(listener) = &self.listener {
            listener.complete(&self.recorder.borrow().shard, number, status);
        }
    }

    /// Returns true if headers of answers are reported.
    pub(super) fn forwards_headers(&self) -> bool {
        self.listener
            .as_ref()
            .is_some_and(NoteForwarder::forwards_headers)
    }
}

/// True if latency counts from the intended time. A schedule that waits for responses has
/// no useful intended time.
const fn has_response(pace: &LoadPace) -> bool {
    match pace {
        LoadPace::Closed => false,
        LoadPace::Open { overflow, .. } => !matches!(overflow, Overflow::Defer),
    }
}

/// Number of connections of one worker for each endpoint; at least one each.
fn connections_of(connections: u32, share: Share, weights: &[u32]) -> Vec<usize> {
    let of_share = (connections / share.of()) + u32::from(share.index() < connections % share.of());
    let spare = u64::from(of_share).saturating_sub(weights.len() as u64);
    let total: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
    let even = |weight: &u32| spare * u64::from(*weight) / total.max(1);
    let left = spare - weights.iter().map(even).sum::<u64>();
    let counts = (0..).zip(weights).map(|(index, weight)| {
        // What does not divide goes to the first ones.
        1 + even(weight) + u64::from(index < left)
    });
    counts
        .map(|count| usize::try_from(count).unwrap_or(1))
        .collect()
}

/// Opening time of connection `slot` to `endpoint`. All connections open within `over` at
/// even distances: first the first slot of each endpoint, then the second, worker by worker.
fn turn(over: Nanos, counts: &[usize], endpoint: usize, slot: usize, share: Share) -> Nanos {
    let before = |(index, count): (usize, &usize)| {
        let is_ahead = index < endpoint && slot < *count;
        slot.min(*count) + usize::from(is_ahead)
    };
    let before: usize = counts.iter().enumerate().map(before).sum();
    let all = counts.iter().sum::<usize>().max(1);
    let position = before as u128 * u128::from(share.of()) + u128::from(share.index());
    let whole = all as u128 * u128::from(share.of());
    let nanos = u128::from(over.as_u64()) * position / whole;
    Nanos::new(u64::try_from(nanos).expect("a fraction of a length is shorter than it"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn for_all_connections_each_has_a_turn_of_its_own(
            weights in prop::collection::vec(1_u32..50, 1..4),
            workers in 1_u32..4,
            spare in 0_u32..40,
        ) {
            let connections = u32::try_from(weights.len()).unwrap() * workers + spare;
            let over = Nanos::from_secs(60);
            let mut turns = Vec::new();
            for share in Share::all(workers) {
                let counts = connections_of(connections, share, &weights);
                for (endpoint, count) in counts.iter().enumerate() {
                    turns.extend((0..*count).map(|slot| turn(over, &counts, endpoint, slot, share)));
                }
            }
            turns.sort_unstable();
            // Workers may differ by one connection, and their turns by as much.
            let even = over.as_u64() / u64::from(connections);
            prop_assert_eq!(turns[0], Nanos::ZERO);
            for (index, at) in (0..).zip(&turns) {
                let away = at.as_u64().abs_diff(index * even);
                prop_assert!(*at < over && away <= 3 * even * u64::from(workers), "{at} of {index}");
            }
        }

        #[test]
        fn for_all_weights_every_connection_has_its_place(
            weights in prop::collection::vec(1_u32..1000, 1..5),
            workers in 1_u32..5,
            spare in 0_u32..100,
        ) {
            let parts = u32::try_from(weights.len()).unwrap() * workers;
            let connections = parts + spare;
            let counts = Share::all(workers).map(|share| connections_of(connections, share, &weights));
            let counts: Vec<usize> = counts.flatten().collect();
            prop_assert!(counts.iter().all(|count| *count > 0));
            prop_assert_eq!(counts.iter().sum::<usize>(), connections as usize);
        }
    }
}
