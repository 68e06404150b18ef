//! The report of a bench.

mod json;
mod text;

use std::ops::RangeInclusive;

use hdrhistogram::Histogram;
use stillwell_metric::{BenchWindow, Volume, empty_histogram};
use stillwell_units::human::counted;
use stillwell_units::{Moment, Nanos};

use crate::account::Numbers;
use crate::plan::CheckedPlan;
use crate::sink::SinkAccount;

/// Maximum number of ranges of lost events in a report.
const RANGES_MAX: usize = 64;

/// The report of a bench.
#[derive(Clone, Debug)]
pub struct Report {
    /// Name of the bench.
    pub name: String,
    /// True if it was stopped before its end.
    pub stopped: bool,
    /// From the intended time to the first arrival, in nanoseconds.
    pub latency: Histogram<u64>,
    /// From the sent time to the first arrival, in nanoseconds.
    pub transit: Histogram<u64>,
    /// From the end of the warm-up to the last arrival.
    pub length: Nanos,
    /// Events that arrived in that time.
    pub measured: Volume,
    /// Events sent over the whole run.
    pub sent: Volume,
    /// Events received over the whole run.
    pub received: Volume,
    /// Events that arrived at least once.
    pub arrived: u64,
    /// Arrivals beyond the first of each event.
    pub duplicated: u64,
    /// First arrivals after an event that was sent later, as each sink saw it by
    /// itself.
    pub reordered: u64,
    /// Greatest distance to that later event, in events.
    pub displacement_max: u64,
    /// Tickets that the source never gave out.
    pub foreign: u64,
    /// The first ranges of lost events, at most 64.
    pub losses: Vec<RangeInclusive<u64>>,
    /// Number of ranges.
    pub loss_ranges: u64,
    /// The answers of the pipeline, if it was to give any.
    pub answers: Option<Answers>,
}

/// The answers of the pipeline; each event counts once.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Answers {
    /// Delivered for good, even if it also failed.
    pub acknowledged: u64,
    /// Given up.
    pub failed: u64,
    /// Nothing was said of it.
    pub unacknowledged: u64,
    /// Said once more of the same event.
    pub again: u64,
}

impl Report {
    pub(crate) fn of(
        plan: &CheckedPlan,
        sent: Volume,
        accounts: Vec<SinkAccount>,
        from: Moment,
        stopped: bool,
    ) -> Self {
        let mut report = Self::empty(plan, sent, stopped);
        let (mut numbers, mut delivered) = (Numbers::default(), Numbers::default());
        let (mut failed, mut again, mut last) = (Numbers::default(), 0, None);
        for account in accounts {
            numbers.join(&account.numbers);
            delivered.join(&account.acknowledged);
            failed.join(&account.failed);
            again += account.answers_again;
            for (all, added) in [
                (&mut report.latency, &account.latency),
                (&mut report.transit, &account.transit),
            ] {
                all.add(added)
                    .unwrap_or_else(|_| unreachable!("both histograms have the same bounds"));
            }
            report.received.join(account.received);
            report.measured.join(account.measured);
            report.reordered += account.reordered;
            report.displacement_max = report.displacement_max.max(account.displacement_max);
            report.foreign += account.foreign;
            last = last.max(account.last);
        }
        let known = numbers.count();
        let (losses, ranges) = numbers.missing(sent.events, RANGES_MAX);
        // Numbers that were not given out, though the plan has them.
        let beyond = known - (sent.events - missing(&numbers, sent.events));
        report.foreign += beyond;
        report.arrived = known - beyond;
        report.duplicated = report.received.events - known;
        (report.losses, report.loss_ranges) = (losses, ranges);
        report.length = last.map_or(Nanos::ZERO, |last: Moment| last.since(from));
        report.answers = plan
            .answers
            .then(|| answers(&delivered, failed, again, sent.events));
        report
    }

    fn empty(plan: &CheckedPlan, sent: Volume, stopped: bool) -> Self {
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
            duplicated: 0,
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
        self.window().events_per_second()
    }

    /// Bytes that arrived each second; 0 where nothing was measured.
    #[must_use]
    pub fn bytes_per_second(&self) -> f64 {
        self.window().bytes_per_second()
    }

    const fn window(&self) -> BenchWindow {
        BenchWindow {
            length: self.length,
            volume: self.measured,
        }
    }

    /// One sentence for each failure: events that were lost, duplicated, given up or never
    /// acknowledged.
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        let answers = self.answers.unwrap_or_default();
        let explained = answers.failed + answers.unacknowledged;
        [
            (answers.failed, ["event failed", "events failed"]),
            (
                answers.unacknowledged,
                ["event was not acknowledged", "events were not acknowledged"],
            ),
            (
                self.lost().saturating_sub(explained),
                ["event was lost", "events were lost"],
            ),
            (
                self.duplicated,
                [
                    "event arrived more than once",
                    "events arrived more than once",
                ],
            ),
            (
                self.foreign,
                [
                    "ticket belongs to another bench",
                    "tickets belong to another bench",
                ],
            ),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, [singular, plural])| counted(count, singular, plural))
        .collect()
    }

    /// For people: Tremor's table of latencies in nanoseconds, which plotters read, and the
    /// counts of events; as `stillwell bench` prints them.
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
    let answered_count = answered.count();
    Answers {
        acknowledged,
        failed: answered_count - acknowledged,
        unacknowledged: sent.saturating_sub(answered_count),
        again,
    }
}
