//! Results of a load in progress, for remote clients.

use stillwell_metric::{Histogram, Outcome, add_histogram, empty_histogram};
use stillwell_nighthawk::WorkerResult;
use stillwell_nighthawk::format::nighthawk_result;
use stillwell_report::load::{LoadResult, LoadStatistic, id};
use stillwell_run::{LoadPhase, LoadSnapshot};
use stillwell_scope::clock;

/// Name of the result, unlike that of a final one.
const PROGRESS: &str = "progress";

/// The pieces of time so far, together.
pub(super) struct Progress {
    service: Histogram<u64>,
    response: Histogram<u64>,
    lateness: Histogram<u64>,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            service: empty_histogram(),
            response: empty_histogram(),
            lateness: empty_histogram(),
        }
    }
}

impl Progress {
    /// Adds one interval, and returns the results of all.
    pub(super) fn take(&mut self, snapshot: &LoadSnapshot<'_>) -> WorkerResult {
        if snapshot.phase != LoadPhase::Warmup {
            for (all, piece) in [
                (&mut self.service, &snapshot.second.service),
                (&mut self.response, &snapshot.second.response),
                (&mut self.lateness, &snapshot.second.lateness),
            ] {
                add_histogram(all, &piece.unpack());
            }
        }
        let mut result = LoadResult::named(PROGRESS);
        result.execution_duration = snapshot.elapsed;
        result.execution_start = clock::wall().saturating_sub(snapshot.elapsed);
        for (name, outcome) in [
            ("benchmark.http_2xx", Outcome::Ok),
            ("benchmark.http_3xx", Outcome::Status3xx),
            ("benchmark.http_4xx", Outcome::Status4xx),
            ("benchmark.http_5xx", Outcome::Status5xx),
            ("benchmark.http_xxx", Outcome::StatusOther),
            ("benchmark.pool_overflow", Outcome::Dropped),
        ] {
            result.count(name, snapshot.sum(|shard| shard.ended(outcome)));
        }
        result.count(
            "upstream_cx_total",
            snapshot.sum(|shard| shard.connections.measured()),
        );
        result.count(
            "upstream_rq_total",
            snapshot.sum(|shard| shard.begun.total()),
        );
        for (name, times) in [
            (id::REQUEST_TO_RESPONSE, &self.service),
            (id::SEQUENCER_CALLBACK, &self.response),
            (id::QUEUE_TO_CONNECT, &self.lateness),
        ] {
            result.add_statistic(LoadStatistic::of_times(name, times));
        }
        nighthawk_result(&result)
    }
}
