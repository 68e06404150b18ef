//! What a bench has found.

mod json;
mod text;

use std::ops::RangeInclusive;

use hdrhistogram::Histogram;
use stillwell_metric::empty_histogram;
use stillwell_units::{Moment, Nanos, float_from_u64};

use crate::account::Numbers;
use crate::plan::Plan;
use crate::sink::SinkAccount;

/// Ranges of lost events that are told.
const RANGES_TOLD: usize = 64;

/// What a bench has found.
#[derive(Clone, Debug)]
pub struct Report {
    /// What it is called.
    pub name: String,
    /// Whether it was stopped before its end.
    pub stopped: bool,
    /// From the intended time to the first arrival, in nanoseconds.
    pub latency: Histogram<u64>,
    /// From the sent time to the first arrival, in nanoseconds.
    pub transit: Histogram<u64>,
    /// From the end of the warm-up to the last arrival.
    pub length: Nanos,
    /// What arrived in that time.
    pub measured: Volume,
    /// What was sent over the whole run.
    pub sent: Volume,
    /// What arrived over the whole run.
    pub received: Volume,
    /// Events that arrived at least once.
    pub arrived: u64,
    /// Arrivals beyond the first of each event.
    pub doubled: u64,
    /// First arrivals after an event that was sent later, as each sink saw it by
    /// itself.
    pub reordered: u64,
    /// How far ahead that one was at most, in events.
    pub displacement_max: u64,
    /// Tickets that the source never gave out.
    pub foreign: u64,
    /// The first ranges of lost events, at most 64.
    pub losses: Vec<RangeInclusive<u64>>,
    /// How many ranges there are.
    pub loss_ranges: u64,
    /// What the pipeline said of events, where it was to say anything.
    pub answers: Option<Answers>,
}

/// Events and bytes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Volume {
    /// Events.
    pub events: u64,
    /// Bytes, as they were counted.
    pub bytes: u64,
}

/// What the pipeline said of events; each event counts once.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Answers {
    /// Delivered for good, whatever else was said of it.
    pub acknowledged: u64,
    /// Given up.
    pub failed: u64,
    /// Nothing was said of it.
    pub unacknowledged: u64,
    /// Said once more of the same event.
    pub again: u64,
}

impl Volume {
    pub(crate) const fn add(&mut self, bytes: u64) {
        self.events += 1;
        self.bytes += bytes;
    }

    const fn join(&mut self, other: Self) {
        self.events += other.events;
        self.bytes += other.bytes;
    }
}

impl Report {
    pub(crate) fn of(
        plan: &Plan,
        sent: Volume,
        accounts: Vec<SinkAccount>,
        from: Moment,
        stopped: bool,
    ) -> Self {
        let mut report = Self::empty(plan, sent, stopped);
        let (mut numbers, mut delivered) = (Numbers::default(), Numbers::default());
        let (mut failed, mut again, mut last) = (Numbers::default(), 0, None);
        for own in accounts {
            numbers.join(&own.numbers);
            delivered.join(&own.acknowledged);
            failed.join(&own.failed);
            again += own.answers_again;
            for (all, its) in [
                (&mut report.latency, &own.latency),
                (&mut report.transit, &own.transit),
            ] {
                all.add(its)
                    .unwrap_or_else(|_| unreachable!("both histograms have the same bounds"));
            }
            report.received.join(own.received);
            report.measured.join(own.measured);
            report.reordered += own.reordered;
            report.displacement_max = report.displacement_max.max(own.displacement_max);
            report.foreign += own.foreign;
            last = last.max(own.last);
        }
        let known = numbers.count();
        let (losses, ranges) = numbers.missing(sent.events, RANGES_TOLD);
        // Numbers that were not given out, though the plan has them.
        let beyond = known - (sent.events - missing(&numbers, sent.events));
        report.foreign += beyond;
        report.arrived = known - beyond;
        report.doubled = report.received.events - known;
        (report.losses, report.loss_ranges) = (losses, ranges);
        report.length = last.map_or(Nanos::ZERO, |last: Moment| last.since(from));
        report.answers = plan
            .answers
            .then(|| answers(&delivered, failed, again, sent.events));
        report
    }

    fn empty(plan: &Plan, sent: Volume, stopped: bool) -> Self {
        Self {
            name: plan.name.clone(),
            stopped,
            latency: empty_histogram(),
            transit: empty_histogram(),
            length: Nanos::ZERO,
            measured: Volume::default(),
            sent,
            received: Volume::default(),
            arrived: 0,
            doubled: 0,
            reordered: 0,
            displacement_max: 0,
            foreign: 0,
            losses: Vec::new(),
            loss_ranges: 0,
            answers: None,
        }
    }

    /// Events that were sent and never arrived.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.sent.events - self.arrived
    }

    /// Events that arrived each second; 0 where nothing was measured.
    #[must_use]
    pub fn events_per_second(&self) -> f64 {
        self.per_second(self.measured.events)
    }

    /// Bytes that arrived each second; 0 where nothing was measured.
    #[must_use]
    pub fn bytes_per_second(&self) -> f64 {
        self.per_second(self.measured.bytes)
    }

    fn per_second(&self, count: u64) -> f64 {
        let seconds = self.length.as_secs_f64();
        if seconds > 0.0 {
            float_from_u64(count) / seconds
        } else {
            0.0
        }
    }

    /// What did not go as it should, a sentence each: events that were lost, doubled,
    /// given up or never acknowledged.
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        let answers = self.answers.unwrap_or_default();
        let explained = answers.failed + answers.unacknowledged;
        [
            (answers.failed, "events failed"),
            (answers.unacknowledged, "events were not acknowledged"),
            (self.lost().saturating_sub(explained), "events were lost"),
            (self.doubled, "events arrived more than once"),
            (self.foreign, "tickets are none of this bench"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect()
    }

    /// For people: Tremor's table of latencies in nanoseconds, which plotters read,
    /// and what became of events; as `stillwell bench` prints it.
    #[must_use]
    pub fn text(&self) -> String {
        text::text(self)
    }

    /// For programs: one object that has all keys of Tremor's report, and those of
    /// `stillwell bench` that there are in one process.
    #[must_use]
    pub fn json(&self) -> String {
        format!("{:#}\n", json::json(self))
    }
}

fn missing(numbers: &Numbers, end: u64) -> u64 {
    let (ranges, _) = numbers.missing(end, usize::MAX);
    ranges
        .iter()
        .map(|range| range.end() - range.start() + 1)
        .sum()
}

fn answers(delivered: &Numbers, failed: Numbers, again: u64, sent: u64) -> Answers {
    let acknowledged = delivered.count();
    let mut answered = failed;
    answered.join(delivered);
    let said = answered.count();
    Answers {
        acknowledged,
        failed: said - acknowledged,
        unacknowledged: sent.saturating_sub(said),
        again,
    }
}
