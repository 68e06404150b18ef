//! Counts and times that only the requests of generators have.

use std::sync::Arc;

use stillwell_metric::{AnswerTimes, GeneratorShard, Outcome, Recorder, RequestsShard, RouteShard};
use stillwell_plan::load::Routes;
use stillwell_units::{Moment, Nanos};

use super::routes::RouteTally;

/// Interval at which recorded times are handed over.
const PUBLISH_EVERY: Nanos = Nanos::from_millis(10);

/// Records what only requests have, and hands it over.
#[derive(Debug)]
pub(super) struct WebRecorder {
    shard: Arc<GeneratorShard>,
    first_byte: Recorder,
    routes: RouteTally,
    published_at: Moment,
}

/// Indices of an endpoint and of a request; `None` for a request without a route.
type RequestIndex = (usize, Option<usize>);

impl WebRecorder {
    /// Makes the recorder of a worker, which has one. Its reader is `shard`.
    pub(super) fn new(
        shard: &Arc<GeneratorShard>,
        routes: &Routes,
        (tally, shards): (RouteTally, Vec<Arc<RouteShard>>),
    ) -> Self {
        let (first_byte, first_bytes) = Recorder::pair();
        let shards = routes.names().iter().cloned().zip(shards);
        let web = RequestsShard::new(first_bytes, shards.collect());
        // A worker opens its connections once.
        drop(shard.web.set(web));
        Self {
            shard: Arc::clone(shard),
            first_byte,
            routes: tally,
            published_at: Moment::default(),
        }
    }

    /// Counts an answer, and records its times.
    pub(super) fn answered(
        &mut self,
        request: RequestIndex,
        (status, outcome): (u16, Outcome),
        times: AnswerTimes,
    ) {
        if let Some(web) = self.shard.web.get() {
            web.statuses.count(status);
        }
        self.first_byte.record(times.first_byte);
        if let (endpoint, Some(index)) = request
            && let Some(route) = self.routes.of(endpoint, index)
        {
            route.answered(status, outcome);
            route.record(times);
        }
    }

    /// Counts a request without an answer.
    pub(super) fn failed(&mut self, request: RequestIndex, outcome: Outcome) {
        if let (endpoint, Some(index)) = request
            && let Some(route) = self.routes.of(endpoint, index)
        {
            route.failed(outcome);
        }
    }

    /// Hands over what was requested, if that is due.
    pub(super) fn publish(&mut self, now: Moment) {
        if now.since(self.published_at) >= PUBLISH_EVERY {
            self.published_at = now;
            self.first_byte.hand_over();
            self.routes.hand_over();
        }
    }
}
