//! Results of a load in progress, for remote clients.

use stillwell_metric::{
    CounterFacts, Histogram, LoadCounter, LoadTime, Outcome, add_histogram, empty_histogram,
};
use stillwell_nighthawk::WorkerResult;
use stillwell_nighthawk::format::nighthawk_result;
use stillwell_report::load::{LoadResult, LoadStatistic, id};
use stillwell_run::{LoadPhase, LoadSnapshot};
use stillwell_scope::clock;

/// Name of the result, unlike that of a final one.
const PROGRESS: &str = "progress";

/// The pieces of time so far, together.
pub(super) struct Progress {
    facts: CounterFacts,
    service: Histogram<u64>,
    /// From the intended time to the end of requests, also of those without a response.
    completed: Histogram<u64>,
    lateness: Histogram<u64>,
}

impl Progress {
    /// Returns the progress of a load that begins; its counters depend on `facts`.
    pub(super) fn new(facts: CounterFacts) -> Self {
        Self {
            facts,
            service: empty_histogram(),
            completed: empty_histogram(),
            lateness: empty_histogram(),
        }
    }

    /// Adds one interval, and returns the results of all.
    pub(super) fn take(&mut self, snapshot: &LoadSnapshot<'_>) -> WorkerResult {
        if snapshot.phase != LoadPhase::Warmup {
            for (all, piece) in [
                (&mut self.service, &snapshot.second.service),
                (&mut self.completed, &snapshot.second.response),
                (&mut self.lateness, &snapshot.second.lateness),
            ] {
                add_histogram(all, &piece.unpack());
            }
            let failures = Outcome::FAILURES.into_iter();
            for times in failures.filter_map(|end| snapshot.times(LoadTime::Failed(end))) {
                add_histogram(&mut self.completed, times);
            }
        }
        let mut result = LoadResult::named(PROGRESS);
        result.execution_duration = snapshot.elapsed;
        result.execution_start = clock::wall().saturating_sub(snapshot.elapsed);
        // Those of failures too: without them, a failing load seems to be idle.
        for (counter, name) in LoadCounter::foreign() {
            let value = snapshot.sum(|shard| counter.value(shard, &self.facts));
            result.count(name, value);
        }
        for (name, times) in [
            (id::REQUEST_TO_RESPONSE, &self.service),
            (id::SEQUENCER_CALLBACK, &self.completed),
            (id::QUEUE_TO_CONNECT, &self.lateness),
        ] {
            result.add_statistic(LoadStatistic::of_times(name, times));
        }
        nighthawk_result(&result)
    }
}
