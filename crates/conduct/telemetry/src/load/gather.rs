//! Pages of metrics from what workers counted.

use std::sync::Arc;

use stillwell_metric::{
    CounterFacts, Histogram, Interval, LoadCounter, LoadShard, LoadTime, Metric, Outcome,
    TimeState, add_histogram, catalogue, empty_histogram,
};
use stillwell_plan::LoadPlan;
use stillwell_plan::load::{LoadPace, StatsdNamesPlan};
use stillwell_units::Nanos;

use super::WorkerTimes;
use crate::format::page::{MetricPoint, MetricsPage, NamedPoint, NamedValue, PointValue, Times};

/// Makes pages from snapshots, and the last one from the result.
#[derive(Debug)]
pub(super) struct Gatherer {
    has_schedule: bool,
    has_warmup: bool,
    has_spans: bool,
    started: Nanos,
    facts: CounterFacts,
    times: Vec<RecordedTimes>,
    /// Names for receivers of statsd, if they are not ours.
    names: Option<StatsdNamesPlan>,
    /// Times of each worker at the last flush, if there are such names.
    flushed: Vec<WorkerTimes>,
}

/// Histograms of one kind of time.
#[derive(Debug)]
struct RecordedTimes {
    time: LoadTime,
    /// Values so far.
    all: Histogram<u64>,
    /// Values since the last flush.
    recent: Histogram<u64>,
}

impl Gatherer {
    /// An empty gatherer.
    pub(super) fn new(plan: &LoadPlan, now: Nanos) -> Self {
        let has_schedule = matches!(plan.pace, LoadPace::Open { .. });
        let exports = |trace: &stillwell_plan::load::TracePlan| trace.export.is_some();
        Self {
            has_schedule,
            has_warmup: plan.warmup > Nanos::ZERO,
            has_spans: plan.telemetry.trace.as_ref().is_some_and(exports),
            started: now,
            facts: plan.counter_facts(),
            names: plan.telemetry.statsd_names.clone(),
            flushed: Vec::new(),
            times: times(has_schedule)
                .map(|time| RecordedTimes {
                    time,
                    all: empty_histogram(),
                    recent: empty_histogram(),
                })
                .collect(),
        }
    }

    /// Starts to count at `now`.
    pub(super) const fn begin(&mut self, now: Nanos) {
        self.started = now;
    }

    /// Adds `times`, in the order of [`LoadTime::index`].
    pub(super) fn add(&mut self, times: &[Option<Interval>]) {
        for recorded in &mut self.times {
            if let Some(interval) = &times[recorded.time.index()] {
                add_histogram(&mut recorded.all, interval);
                add_histogram(&mut recorded.recent, interval);
            }
        }
    }

    /// Returns the page of everything until `now`; `by_worker` are all times of each worker.
    pub(super) fn page(
        &self,
        shards: &[Arc<LoadShard>],
        by_worker: &[WorkerTimes],
        now: Nanos,
    ) -> MetricsPage {
        let mut points = self.counters(shards);
        points.extend(self.times.iter().map(|recorded| MetricPoint {
            metric: metric(recorded.time),
            labels: labelled(class(recorded.time)),
            value: PointValue::Times(Box::new(Times::new(&recorded.all, &recorded.recent))),
        }));
        MetricsPage {
            started: self.started,
            taken: now,
            points,
            named: self.named(shards, by_worker),
        }
    }

    /// Begins the next interval between flushes.
    pub(super) fn flushed(&mut self, by_worker: &[WorkerTimes]) {
        if self.names.is_some() {
            self.flushed = by_worker.to_vec();
        }
        for recorded in &mut self.times {
            recorded.recent.reset();
        }
    }

    /// Returns the page of the result; `totals` gives all values of one kind of time, `by_worker` those
    /// of each worker.
    pub(super) fn finish(
        &mut self,
        shards: &[Arc<LoadShard>],
        (totals, by_worker): (&dyn Fn(LoadTime) -> Histogram<u64>, &[WorkerTimes]),
        now: Nanos,
    ) -> MetricsPage {
        for recorded in &mut self.times {
            let all = totals(recorded.time);
            let mut last = all.clone();
            // The result contains every value of every snapshot.
            if last.subtract(&recorded.all).is_ok() {
                add_histogram(&mut recorded.recent, &last);
            }
            recorded.all = all;
        }
        self.page(shards, by_worker, now)
    }

    /// Counters and times of each worker under given names.
    fn named(&self, shards: &[Arc<LoadShard>], by_worker: &[WorkerTimes]) -> Vec<NamedPoint> {
        let Some(names) = &self.names else {
            return Vec::new();
        };
        let counter =
            |worker: usize, shard: &LoadShard, (counter, name): &(LoadCounter, String)| {
                NamedPoint {
                    worker,
                    name: name.clone(),
                    value: NamedValue::Counter(counter.value(shard, &self.facts)),
                }
            };
        let mut points = Vec::new();
        for (worker, shard) in shards.iter().enumerate() {
            let counters = names.counters.iter();
            points.extend(counters.map(|named| counter(worker, shard, named)));
        }
        for (worker, times) in by_worker.iter().enumerate() {
            let flushed = self.flushed.get(worker);
            for (outcome, name) in &names.times {
                let Some(class) = Outcome::ANSWERS.iter().find(|end| end.name() == outcome) else {
                    continue;
                };
                let index = LoadTime::Service(*class).index();
                let before = flushed.and_then(|flushed| flushed[index].as_ref());
                points.push(NamedPoint {
                    worker,
                    name: name.clone(),
                    value: times_since(times[index].as_ref(), before),
                });
            }
        }
        points
    }

    fn counters(&self, shards: &[Arc<LoadShard>]) -> Vec<MetricPoint> {
        let sum = |count: &dyn Fn(&LoadShard) -> u64| -> u64 {
            shards.iter().map(|shard| count(shard)).sum()
        };
        let mut points = Vec::new();
        let mut push = |metric: Metric, outcome: Option<Outcome>, total: u64| {
            points.push(MetricPoint {
                metric,
                labels: labelled(outcome),
                value: PointValue::Counter(total),
            });
        };
        let begun = sum(&LoadShard::begun_in_all);
        push(catalogue::REQUESTS_SENT, None, begun);
        if self.has_schedule {
            push(
                catalogue::REQUESTS_SCHEDULED,
                None,
                sum(&|shard| shard.requested.total()),
            );
        }
        for end in Outcome::ALL {
            let total = sum(&|shard| shard.outcomes[end.index()].total());
            push(catalogue::OUTCOMES, Some(end), total);
        }
        if self.has_warmup {
            for end in Outcome::ALL {
                let total = sum(&|shard| shard.warmup_outcomes[end.index()].total());
                push(catalogue::WARMUP_OUTCOMES, Some(end), total);
            }
        }
        for (metric, total) in plain_totals(sum) {
            push(metric, None, total);
        }
        for (state, metric) in STATES {
            let total = sum(&|shard| shard.account.of(state).total());
            push(metric, None, total);
        }
        if self.has_spans {
            let counts = sum(&|shard| shard.spans_sampled.total());
            push(catalogue::SPANS_SAMPLED, None, counts);
            let counts = sum(&|shard| shard.spans_dropped.total());
            push(catalogue::SPANS_DROPPED, None, counts);
        }
        points
    }
}

/// All times of a series, of which those in `before` are sent already.
fn times_since(all: Option<&Histogram<u64>>, before: Option<&Histogram<u64>>) -> NamedValue {
    let mut recent = all.cloned().unwrap_or_else(empty_histogram);
    let count = recent.len();
    if let Some(before) = before {
        // A series only grows.
        recent.subtract(before).ok();
    }
    NamedValue::Times {
        count,
        recent: each(&recent),
    }
}

/// The recorded values of `times`, each with its number.
fn each(times: &Histogram<u64>) -> Vec<(Nanos, u64)> {
    let cells = times.iter_recorded();
    let value = |cell: u64| Nanos::new(times.median_equivalent(cell));
    cells
        .map(|cell| (value(cell.value_iterated_to()), cell.count_at_value()))
        .collect()
}

/// Returns the label of an outcome, if there is one.
fn labelled(outcome: Option<Outcome>) -> Vec<(String, String)> {
    let label = outcome.map(|outcome| ("outcome".to_owned(), outcome.name().to_owned()));
    label.into_iter().collect()
}

/// Totals of the counters without a label.
fn plain_totals(sum: impl Fn(&dyn Fn(&LoadShard) -> u64) -> u64) -> [(Metric, u64); 8] {
    use catalogue as metric;
    let opened = sum(&|shard| shard.connections.total());
    let failed = sum(&|shard| shard.connect_failures.total());
    let ended = sum(&|shard| shard.connections_ended.total());
    let used_up = sum(&|shard| shard.connections_used_up.total());
    let resumed = sum(&|shard| shard.handshakes_resumed.total());
    [
        (metric::CONNECTIONS_OPENED, opened),
        (metric::CONNECT_FAILURES, failed),
        (metric::CONNECTIONS_ENDED, ended),
        (metric::CONNECTIONS_USED_UP, used_up),
        (metric::HANDSHAKES_RESUMED, resumed),
        (metric::WIRE_SENT, sum(&|shard| shard.bytes_sent.total())),
        (
            metric::WIRE_RECEIVED,
            sum(&|shard| shard.bytes_received.total()),
        ),
        (
            metric::WORKER_RUN_DELAY,
            sum(&|shard| shard.run_delay.total()),
        ),
    ]
}

const STATES: [(TimeState, Metric); TimeState::ALL.len()] = [
    (TimeState::Idle, catalogue::WORKER_IDLE),
    (TimeState::Blocked, catalogue::WORKER_BLOCKED),
    (TimeState::Running, catalogue::WORKER_RUNNING),
    (TimeState::Late, catalogue::WORKER_LATE),
];

/// The exported times, those of one metric next to each other.
fn times(has_schedule: bool) -> impl Iterator<Item = LoadTime> {
    let service = Outcome::ANSWERS.map(LoadTime::Service);
    let response = Outcome::ANSWERS.map(LoadTime::Response);
    let lateness = [LoadTime::Lateness, LoadTime::GeneratorLateness];
    let connecting = [LoadTime::FirstByte, LoadTime::Connect, LoadTime::Handshake];
    let failed = Outcome::FAILURES.map(LoadTime::Failed);
    let scheduled = response.into_iter().chain(lateness);
    service
        .into_iter()
        .chain(connecting)
        .chain(failed)
        .chain(scheduled.filter(move |_| has_schedule))
}

const fn metric(time: LoadTime) -> Metric {
    match time {
        LoadTime::Service(_) => catalogue::SERVICE_TIME,
        LoadTime::Response(_) => catalogue::RESPONSE_TIME,
        LoadTime::FirstByte => catalogue::FIRST_BYTE_TIME,
        LoadTime::Lateness => catalogue::LATENESS,
        LoadTime::Connect => catalogue::CONNECT_TIME,
        LoadTime::Handshake => catalogue::HANDSHAKE_TIME,
        LoadTime::Failed(_) => catalogue::FAILED_TIME,
        _ => catalogue::GENERATOR_LATENESS,
    }
}

const fn class(time: LoadTime) -> Option<Outcome> {
    match time {
        LoadTime::Service(end) | LoadTime::Response(end) | LoadTime::Failed(end) => Some(end),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_were_flushed_before_are_not_recent() {
        let mut before = empty_histogram();
        before.record(1_000).unwrap();
        let mut all = before.clone();
        all.record(2_000).unwrap();
        let of = |count, recent| NamedValue::Times { count, recent };
        let new = |before| times_since(Some(&all), before);
        assert_eq!(new(Some(&before)), of(2, vec![(Nanos::new(2_000), 1)]));
        assert_eq!(new(Some(&all)), of(2, Vec::new()));
        let both = vec![(Nanos::new(1_000), 1), (Nanos::new(2_000), 1)];
        assert_eq!(new(None), of(2, both));
        assert_eq!(times_since(None, None), of(0, Vec::new()));
    }
}
