//! From what workers counted to pages.

use std::sync::Arc;

use stillwell_export::{Page, Point, PointValue, Times};
use stillwell_metric::{
    Histogram, LoadShard, LoadTime, Metric, Outcome, TimeState, add_histogram, catalogue,
    empty_histogram,
};
use stillwell_plan::{LoadPace, LoadPlan};
use stillwell_units::Nanos;

use super::super::{LoadSnapshot, LoadWorkerFound};

/// Makes pages of snapshots, and the last one of the result.
#[derive(Debug)]
pub(super) struct Gatherer {
    has_schedule: bool,
    has_warmup: bool,
    has_spans: bool,
    started: Nanos,
    times: Vec<Recorded>,
}

/// Times of one kind.
#[derive(Debug)]
struct Recorded {
    what: LoadTime,
    /// All of them so far.
    all: Histogram<u64>,
    /// Those since the last flush.
    recent: Histogram<u64>,
}

impl Gatherer {
    /// Nothing yet.
    pub(super) fn new(plan: &LoadPlan, now: Nanos) -> Self {
        let has_schedule = matches!(plan.pace, LoadPace::Open { .. });
        let exports = |trace: &stillwell_plan::TracePlan| trace.export.is_some();
        Self {
            has_schedule,
            has_warmup: plan.warmup > Nanos::ZERO,
            has_spans: plan.telemetry.trace.as_ref().is_some_and(exports),
            started: now,
            times: times(has_schedule)
                .map(|what| Recorded {
                    what,
                    all: empty_histogram(),
                    recent: empty_histogram(),
                })
                .collect(),
        }
    }

    /// Counting begins at `now`.
    pub(super) const fn begin(&mut self, now: Nanos) {
        self.started = now;
    }

    /// Takes the times that a snapshot adds.
    pub(super) fn take(&mut self, snapshot: &LoadSnapshot<'_>) {
        for own in &mut self.times {
            if let Some(more) = snapshot.times(own.what) {
                add_histogram(&mut own.all, more);
                add_histogram(&mut own.recent, more);
            }
        }
    }

    /// All until `now`.
    pub(super) fn page(&self, shards: &[Arc<LoadShard>], now: Nanos) -> Page {
        let mut points = self.counters(shards);
        points.extend(self.times.iter().map(|own| Point {
            metric: metric(own.what),
            label: class(own.what).map(|outcome| ("outcome", outcome.name())),
            value: PointValue::Times(Box::new(Times::new(&own.all, &own.recent))),
        }));
        Page {
            started: self.started,
            taken: now,
            points,
        }
    }

    /// The page was told.
    pub(super) fn flushed(&mut self) {
        self.times.iter_mut().for_each(|own| own.recent.reset());
    }

    /// The page of the result.
    pub(super) fn finish(&mut self, workers: &[LoadWorkerFound], now: Nanos) -> Page {
        for own in &mut self.times {
            let mut all = empty_histogram();
            for worker in workers {
                add_histogram(&mut all, worker.times(own.what));
            }
            let mut rest = all.clone();
            // Snapshots told of nothing that is not in the result.
            if rest.subtract(&own.all).is_ok() {
                add_histogram(&mut own.recent, &rest);
            }
            own.all = all;
        }
        let shards: Vec<_> = workers.iter().map(|it| Arc::clone(&it.shard)).collect();
        self.page(&shards, now)
    }

    fn counters(&self, shards: &[Arc<LoadShard>]) -> Vec<Point> {
        let sum = |count: &dyn Fn(&LoadShard) -> u64| -> u64 {
            shards.iter().map(|shard| count(shard)).sum()
        };
        let mut points = Vec::new();
        let mut push = |metric: Metric, outcome: Option<Outcome>, total: u64| {
            points.push(Point {
                metric,
                label: outcome.map(|outcome| ("outcome", outcome.name())),
                value: PointValue::Counter(total),
            });
        };
        let begun = sum(&LoadShard::begun_in_all);
        push(catalogue::REQUESTS_SENT, None, begun);
        if self.has_schedule {
            push(catalogue::REQUESTS_ASKED, None, sum(&|it| it.asked.total()));
        }
        for end in Outcome::ALL {
            let total = sum(&|it| it.outcomes[end.index()].total());
            push(catalogue::OUTCOMES, Some(end), total);
        }
        if self.has_warmup {
            for end in Outcome::ALL {
                let total = sum(&|it| it.warmup_outcomes[end.index()].total());
                push(catalogue::WARMUP_OUTCOMES, Some(end), total);
            }
        }
        let plain = [
            (
                catalogue::CONNECTIONS_OPENED,
                sum(&|it| it.connections.total()),
            ),
            (
                catalogue::CONNECT_FAILURES,
                sum(&|it| it.connect_failures.total()),
            ),
            (
                catalogue::CONNECTIONS_ENDED,
                sum(&|it| it.connections_ended.total()),
            ),
            (
                catalogue::CONNECTIONS_USED_UP,
                sum(&|it| it.connections_used_up.total()),
            ),
            (
                catalogue::HANDSHAKES_RESUMED,
                sum(&|it| it.handshakes_resumed.total()),
            ),
            (catalogue::WIRE_SENT, sum(&|it| it.bytes_sent.total())),
            (
                catalogue::WIRE_RECEIVED,
                sum(&|it| it.bytes_received.total()),
            ),
            (catalogue::WORKER_RUN_DELAY, sum(&|it| it.run_delay.total())),
        ];
        for (metric, total) in plain {
            push(metric, None, total);
        }
        for (state, metric) in STATES {
            let total = sum(&|it| it.account.of(state).total());
            push(metric, None, total);
        }
        if self.has_spans {
            let counts = sum(&|it| it.spans_sampled.total());
            push(catalogue::SPANS_SAMPLED, None, counts);
            let counts = sum(&|it| it.spans_dropped.total());
            push(catalogue::SPANS_DROPPED, None, counts);
        }
        points
    }
}

const STATES: [(TimeState, Metric); TimeState::ALL.len()] = [
    (TimeState::Ahead, catalogue::WORKER_AHEAD),
    (TimeState::Blocked, catalogue::WORKER_BLOCKED),
    (TimeState::Running, catalogue::WORKER_RUNNING),
    (TimeState::Late, catalogue::WORKER_LATE),
];

/// The times that are told, those of one metric together.
fn times(has_schedule: bool) -> impl Iterator<Item = LoadTime> {
    let service = Outcome::ANSWERS.map(LoadTime::Service);
    let response = Outcome::ANSWERS.map(LoadTime::Response);
    let lateness = [LoadTime::Lateness, LoadTime::OwnLateness];
    let others = [LoadTime::FirstByte, LoadTime::Connect, LoadTime::Handshake];
    let failed = Outcome::FAILURES.map(LoadTime::Failed);
    let scheduled = response.into_iter().chain(lateness);
    service
        .into_iter()
        .chain(others)
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
        _ => catalogue::OWN_LATENESS,
    }
}

const fn class(time: LoadTime) -> Option<Outcome> {
    match time {
        LoadTime::Service(end) | LoadTime::Response(end) | LoadTime::Failed(end) => Some(end),
        _ => None,
    }
}
