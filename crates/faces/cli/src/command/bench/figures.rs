//! What a capture says of a bench.

use std::path::Path;

use stillwell_capture::{Capture, Point, RunOutcome, Series};
use stillwell_metric::{Histogram, Metric, Value, catalogue, decode_histogram, empty_histogram};
use stillwell_plan::{BenchPlan, Phase, TransportPlan};
use stillwell_report::{BenchAnswers, BenchReport, BenchVolume, BenchWindow};
use stillwell_units::{Moment, Nanos};
use stillwell_verdict::{RunSummary, RunWarning};

use crate::command::output;

pub(super) fn report(
    plan: &BenchPlan,
    summary: &RunSummary,
    capture: &Capture,
    folder: &Path,
) -> BenchReport {
    let figures = Figures::new(plan, capture);
    let warnings = summary.warnings.iter();
    let about_figures =
        warnings.filter(|warning| !matches!(warning, RunWarning::NotCompleted { .. }));
    let about_figures = about_figures.map(ToString::to_string);
    let generator = plan.rig.generators.first();
    let files = generator.map(|one| one.payload.format.files());
    let source = files.and_then(<[_]>::first);
    BenchReport {
        name: plan.name.clone(),
        subject: summary.subject.clone(),
        source: source.map_or_else(String::new, |path| path.display().to_string()),
        outcome: outcome(&summary.outcome),
        warnings: about_figures.chain(figures.too_short()).collect(),
        unstamped: plan.unstamped.clone(),
        latency: figures.times(catalogue::EVENT_LATENCY),
        transit: figures.times(catalogue::EVENT_TRANSIT),
        window: figures.window(),
        received: figures.received(),
        sent: BenchVolume {
            events: figures.last(catalogue::EVENTS_WRITTEN),
            bytes: figures.last(catalogue::BYTES_WRITTEN),
        },
        ledger: capture.manifest.ledger.clone(),
        answers: figures.answers(),
        rounds_cut: figures.rounds_cut(&summary.outcome),
        lossy: plan.lossy,
        significant_figures: plan.significant_figures,
        version: capture.manifest.version.clone(),
        command: output::command_line(),
        capture: output::show_path(folder),
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
        let has_warmup = plan.rig.phases.warmup > Nanos::ZERO;
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
            .map(|(_, one)| one.points.last().map_or(0, whole))
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
            .filter_map(|(_, one)| of(one));
        let mut total = 0;
        for point in points {
            beat = beat.max(Some(point.moment));
            total += whole(&point);
        }
        (total, beat)
    }

    /// What had arrived when things began to count, and when that was.
    fn before(&self) -> (BenchVolume, Option<Moment>) {
        let Some(from) = self.from else {
            return (BenchVolume::default(), mark(self.capture, Phase::Warmup));
        };
        let (events, beat) = self.at(catalogue::EVENTS_RECEIVED, from);
        let (bytes, _) = self.at(catalogue::BYTES_RECEIVED, from);
        (BenchVolume { events, bytes }, beat)
    }

    fn received(&self) -> BenchVolume {
        let (before, _) = self.before();
        BenchVolume {
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
            volume: BenchVolume {
                events: events - before.events,
                bytes: bytes - before.bytes,
            },
        }
    }

    /// What is to be said where nothing is left that counts.
    fn too_short(&self) -> Option<String> {
        let last = self.capture.manifest.last_received?;
        let is_over = self.from.is_some_and(|from| last <= from);
        is_over.then(|| {
            let why = "all had arrived before the warm-up was over";
            format!("{why}: shorten it, or send more rounds")
        })
    }

    /// Whether the load ended before its time was over.
    fn ended_early(&self) -> bool {
        let measured = self.capture.manifest.measured();
        let length = measured.map(|(start, end)| end.since(start));
        length.is_some_and(|length| length < self.plan.rig.phases.measure)
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

    /// What the receiver said, where it says anything.
    fn answers(&self) -> Option<BenchAnswers> {
        let generator = self.plan.rig.generators.first()?;
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
