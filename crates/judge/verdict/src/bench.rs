//! The figures of a bench, from the capture of its run.

use stillwell_capture::{Capture, Point, RunOutcome, Series};
use stillwell_metric::{
    BenchWindow, Histogram, Metric, Value, Volume, catalogue, decode_histogram, empty_histogram,
};
use stillwell_plan::{BenchPlan, Phase, TransportPlan};
use stillwell_units::{Moment, Nanos};

use crate::run_warning::RunWarning;
use crate::summary::RunSummary;

/// The figures of a bench. Nothing of the warm-up counts, except where that is said.
#[derive(Clone, Debug)]
pub struct BenchFigures {
    /// End of the run: `completed`, or the failure.
    pub outcome: String,
    /// Reasons why its rates and latencies are unreliable, a sentence each.
    pub warnings: Vec<String>,
    /// From the intended time to the first arrival, in nanoseconds, of every event
    /// that arrived; empty without stamps.
    pub latency: Histogram<u64>,
    /// The same from the sent time.
    pub transit: Histogram<u64>,
    /// Amount that arrived in a stretch of time, and its length: from the end of the
    /// warm-up to the end of the load, or to the last arrival where the load had an
    /// end of its own.
    pub window: BenchWindow,
    /// Amount that arrived, until the end.
    pub received: Volume,
    /// Amount that was sent over the whole run, the warm-up included.
    pub sent: Volume,
    /// The receiver's counts of the events of the whole run, if it has any.
    pub answers: Option<BenchAnswers>,
    /// The rounds through the recording that were to be sent, where the limit came
    /// before all of them were.
    pub rounds_cut: Option<u64>,
}

/// The receiver's counts of events.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct BenchAnswers {
    /// It has them.
    pub acknowledged: u64,
    /// It does not want them, however often they are sent.
    pub refused: u64,
    /// It said nothing of them until the end.
    pub unacknowledged: u64,
    /// Requests that were resent.
    pub requests_again: u64,
    /// True if requests that are refused are sent again, so events may arrive
    /// more than once.
    pub at_least_once: bool,
}

/// Takes the figures of a bench out of the capture of its run.
#[must_use]
pub fn bench_figures(plan: &BenchPlan, summary: &RunSummary, capture: &Capture) -> BenchFigures {
    let figures = Figures::new(plan, capture);
    let warnings = summary.warnings.iter();
    let about_figures =
        warnings.filter(|warning| !matches!(warning, RunWarning::NotCompleted { .. }));
    let about_figures = about_figures.map(ToString::to_string);
    BenchFigures {
        outcome: outcome(&summary.outcome),
        warnings: about_figures.chain(figures.too_short()).collect(),
        latency: figures.times(catalogue::EVENT_LATENCY),
        transit: figures.times(catalogue::EVENT_TRANSIT),
        window: figures.window(),
        received: figures.received(),
        sent: Volume {
            events: figures.last(catalogue::EVENTS_WRITTEN),
            bytes: figures.last(catalogue::BYTES_WRITTEN),
        },
        answers: figures.answers(),
        rounds_cut: figures.rounds_cut(&summary.outcome),
    }
}

fn outcome(outcome: &RunOutcome) -> String {
    if outcome.is_completed() {
        return "completed".to_owned();
    }
    RunWarning::NotCompleted {
        outcome: outcome.clone(),
    }
    .to_string()
}

struct Figures<'c> {
    plan: &'c BenchPlan,
    capture: &'c Capture,
    /// From where on things count; `None` for the beginning.
    from: Option<Moment>,
}

impl<'c> Figures<'c> {
    /// Without a warm-up everything counts, from the first event on.
    fn new(plan: &'c BenchPlan, capture: &'c Capture) -> Self {
        let has_warmup = plan.run_plan.phases.warmup > Nanos::ZERO;
        Self {
            plan,
            capture,
            from: mark(capture, Phase::Measure).filter(|_| has_warmup),
        }
    }

    /// The total of a counter at the end.
    fn last(&self, metric: Metric) -> u64 {
        let series = self.capture.series.of(metric);
        series
            .map(|(_, item)| item.points.last().map_or(0, whole))
            .sum()
    }

    /// The total of a counter at the beat of `moment`, and when that was.
    fn at(&self, metric: Metric, moment: Moment) -> (u64, Option<Moment>) {
        let mut beat = None;
        let of = |series: &Series| {
            series
                .at_or_after(moment)
                .or_else(|| series.points.last())
                .cloned()
        };
        let points = self
            .capture
            .series
            .of(metric)
            .filter_map(|(_, item)| of(item));
        let mut total = 0;
        for point in points {
            beat = beat.max(Some(point.moment));
            total += whole(&point);
        }
        (total, beat)
    }

    /// Amount that had arrived when counting began, and that time.
    fn before(&self) -> (Volume, Option<Moment>) {
        let Some(from) = self.from else {
            return (Volume::default(), mark(self.capture, Phase::Warmup));
        };
        let (events, beat) = self.at(catalogue::EVENTS_RECEIVED, from);
        let (bytes, _) = self.at(catalogue::BYTES_RECEIVED, from);
        (Volume { events, bytes }, beat)
    }

    fn received(&self) -> Volume {
        let (before, _) = self.before();
        Volume {
            events: self.last(catalogue::EVENTS_RECEIVED) - before.events,
            bytes: self.last(catalogue::BYTES_RECEIVED) - before.bytes,
        }
    }

    /// Until the end of the load; where that had an end of its own, until the last
    /// arrival.
    fn window(&self) -> BenchWindow {
        let (before, start) = self.before();
        let (Some(start), Some((_, end))) = (start, self.capture.manifest.measured()) else {
            return BenchWindow::default();
        };
        if let Some(last) = self
            .capture
            .manifest
            .last_received
            .filter(|_| self.ended_early())
        {
            return BenchWindow {
                length: last.since(start),
                volume: self.received(),
            };
        }
        let (events, beat) = self.at(catalogue::EVENTS_RECEIVED, end);
        let (bytes, _) = self.at(catalogue::BYTES_RECEIVED, end);
        BenchWindow {
            length: beat.unwrap_or(end).since(start),
            volume: Volume {
                events: events - before.events,
                bytes: bytes - before.bytes,
            },
        }
    }

    /// Reason when nothing is left that counts.
    fn too_short(&self) -> Option<String> {
        let last = self.capture.manifest.last_received?;
        let is_over = self.from.is_some_and(|from| last <= from);
        is_over.then(|| {
            let why = "all events arrived before the end of the warm-up";
            format!("{why}: use a shorter warm-up, or send more rounds")
        })
    }

    /// True if the load ended before its duration was over.
    fn ended_early(&self) -> bool {
        let measured = self.capture.manifest.measured();
        let length = measured.map(|(start, end)| end.since(start));
        length.is_some_and(|length| length < self.plan.run_plan.phases.measure)
    }

    /// The rounds that were to be sent, where the time was over before they were.
    fn rounds_cut(&self, outcome: &RunOutcome) -> Option<u64> {
        let is_cut = outcome.is_completed() && !self.ended_early();
        self.plan.rounds_due.filter(|_| is_cut)
    }

    /// All times that were recorded since things count.
    fn times(&self, metric: Metric) -> Histogram<u64> {
        let (_, beat) = self.before();
        let from = self.from.and(beat);
        let mut all = empty_histogram();
        for (_, series) in self.capture.series.of(metric) {
            let counts = |point: &&Point| from.is_none_or(|from| point.moment > from);
            for point in series.points.iter().filter(counts) {
                if let Value::Histogram(bytes) = &point.value
                    && let Some(histogram) = decode_histogram(bytes)
                {
                    // Both have the same bounds.
                    all.add(&histogram).unwrap_or_default();
                }
            }
        }
        all
    }

    /// The receiver's counts, if it has any.
    fn answers(&self) -> Option<BenchAnswers> {
        let generator = self.plan.run_plan.generators.first()?;
        let TransportPlan::Acknowledged(plan) = &generator.transport else {
            return None;
        };
        let acknowledged = self.last(catalogue::EVENTS_ACKNOWLEDGED);
        let refused = self.last(catalogue::EVENTS_REFUSED);
        let sent = self.last(catalogue::EVENTS_WRITTEN);
        Some(BenchAnswers {
            acknowledged,
            refused,
            unacknowledged: sent.saturating_sub(acknowledged + refused),
            requests_again: self.last(catalogue::REQUESTS_AGAIN),
            at_least_once: plan.retries > 0,
        })
    }
}

fn mark(capture: &Capture, phase: Phase) -> Option<Moment> {
    let marks = &capture.manifest.phases;
    let mark = marks.iter().find(|mark| mark.phase == phase)?;
    Some(mark.moment)
}

const fn whole(point: &Point) -> u64 {
    match point.value {
        Value::Int(value) => value,
        Value::Float(_) | Value::Histogram(_) => 0,
    }
}
