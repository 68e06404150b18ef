//! The number of each goal.

use std::collections::BTreeMap;

use stillwell_capture::{Capture, CountBounds, LedgerFigures, LedgerRecord};
use stillwell_metric::{Outcome, catalogue};
use stillwell_plan::goal::LatencyQuantile;
use stillwell_plan::{GoalMetric, TargetKind};
use stillwell_units::{Nanos, float_from_u64};

use super::{Measured, OutcomeCount, RouteFigures, RunFigures, instructions, slope};
use crate::window::{TimeQuantiles, Window};

pub(super) fn values(
    capture: &Capture,
    window: &Result<Window<'_>, &'static str>,
    figures: &RunFigures,
) -> BTreeMap<GoalMetric, Measured> {
    let value = |metric: &GoalMetric| match (window, metric) {
        (Ok(window), GoalMetric::InstructionsPerEvent) => {
            has_target(capture)?;
            instructions::per_event(capture, window, figures)
        }
        (Ok(window), _) => Ok(measured(metric, capture, window, figures)?),
        (Err(reason), _) => Err((*reason).to_owned()),
    };
    let measured = |metric: &GoalMetric| match value(metric) {
        Ok(value) if value.is_finite() => Measured::Value(value),
        Ok(_) => missing("the recorded value is not a finite number".to_owned()),
        Err(reason) => missing(reason),
    };
    let all = GoalMetric::ALL.into_iter();
    all.map(|metric| (metric.clone(), measured(&metric)))
        .collect()
}

const fn missing(reason: String) -> Measured {
    Measured::Missing { reason }
}

fn measured(
    metric: &GoalMetric,
    capture: &Capture,
    window: &Window<'_>,
    figures: &RunFigures,
) -> Result<f64, &'static str> {
    match metric {
        GoalMetric::IngressThroughput => {
            has_generator(capture)?;
            window
                .per_second(catalogue::BYTES_WRITTEN, |_| true)
                .ok_or("the bytes that generators sent were not recorded")
        }
        GoalMetric::EgressThroughput => {
            has_sink(capture)?;
            window
                .per_second(catalogue::BYTES_RECEIVED, |_| true)
                .or_else(|| window.per_second(catalogue::TOTAL_BYTES_RECEIVED, |_| true))
                .ok_or("the bytes that sinks received were not recorded")
        }
        GoalMetric::Loss => loss(capture, figures),
        GoalMetric::Duplicated => {
            has_generator(capture)?;
            let ledger = figures.ledger.as_ref().ok_or("no event was stamped")?;
            share_of_stamped(ledger, |entry| &entry.duplicated)
        }
        GoalMetric::EventLatency(quantile) => {
            has_generator(capture)?;
            latency(*quantile, figures.event_latency)
                .ok_or("no stamped event arrived while measuring")
        }
        GoalMetric::ErrorShare
        | GoalMetric::FirstByte(_)
        | GoalMetric::Latency(_)
        | GoalMetric::RequestThroughput
        | GoalMetric::Route(_)
        | GoalMetric::ServiceTime(_)
        | GoalMetric::Status(_) => {
            has_generator(capture)?;
            of_answers(metric, figures, window.length())
        }
        GoalMetric::Cpu | GoalMetric::CpuPerEvent => {
            has_target(capture)?;
            cpu(metric, window, figures)
        }
        GoalMetric::Memory | GoalMetric::MemoryPeak | GoalMetric::MemorySlope => {
            has_target(capture)?;
            let unrecorded = "the target's memory was not recorded";
            match metric {
                GoalMetric::Memory => figures.rss_mean_bytes.ok_or(unrecorded),
                GoalMetric::MemoryPeak => figures.rss_peak_bytes.ok_or(unrecorded),
                _ => slope::share_per_minute(&window.beats(catalogue::TARGET_RSS.name, |_| true))
                    .ok_or("the target's memory was recorded too rarely to show its growth"),
            }
        }
        GoalMetric::InstructionsPerEvent => Err("it has reasons of its own"),
        GoalMetric::Series(_) => Err("it is among the series"),
    }
}

/// Returns the number of a goal that is derived from responses, of a run that measured for
/// `length`. Rates are for each second of load.
pub(super) fn of_answers(
    metric: &GoalMetric,
    figures: &RunFigures,
    length: Nanos,
) -> Result<f64, &'static str> {
    let length = figures.active.map_or(length, |active| active.min(length));
    match metric {
        GoalMetric::Route(goal) => {
            let mut routes = figures.routes.iter();
            let route = routes.find(|route| route.name == goal.route());
            let route = route.ok_or("no request of this route ended while measuring")?;
            Answers::of_route(route).measured(goal.metric(), length)
        }
        _ => Answers::of(figures).measured(metric, length),
    }
}

/// Responses to all requests, or to those of a route.
struct Answers<'f> {
    outcomes: &'f [OutcomeCount],
    statuses: &'f BTreeMap<u16, u64>,
    response_time: Option<TimeQuantiles>,
    service_time: Option<TimeQuantiles>,
    first_byte: Option<TimeQuantiles>,
}

impl<'f> Answers<'f> {
    const fn of(figures: &'f RunFigures) -> Self {
        Self {
            outcomes: figures.outcomes.as_slice(),
            statuses: &figures.statuses,
            response_time: figures.response_time,
            service_time: figures.service_time,
            first_byte: figures.first_byte,
        }
    }

    const fn of_route(route: &'f RouteFigures) -> Self {
        Self {
            outcomes: route.outcomes.as_slice(),
            statuses: &route.statuses,
            response_time: route.response_time,
            service_time: route.service_time,
            first_byte: route.first_byte,
        }
    }

    fn measured(&self, metric: &GoalMetric, length: Nanos) -> Result<f64, &'static str> {
        let timed = |quantile: &LatencyQuantile, times| {
            latency(*quantile, times).ok_or("no response was timed while measuring")
        };
        let requests = || Requests::of(self).ok_or(NO_REQUEST);
        match metric {
            GoalMetric::Latency(quantile) => timed(quantile, self.response_time),
            GoalMetric::ServiceTime(quantile) => timed(quantile, self.service_time),
            GoalMetric::FirstByte(quantile) => timed(quantile, self.first_byte),
            GoalMetric::ErrorShare => {
                let requests = requests()?;
                Ok(requests.failed / requests.ended())
            }
            GoalMetric::RequestThroughput => {
                let seconds = float_from_u64(length.as_u64()) / 1e9;
                Ok(requests()?.answered / seconds)
            }
            GoalMetric::Status(code) => {
                let count = self.statuses.get(&code.get()).copied().unwrap_or(0);
                Ok(float_from_u64(count) / requests()?.ended())
            }
            _ => Err("it is not derived from responses"),
        }
    }
}

fn has_target(capture: &Capture) -> Result<(), &'static str> {
    match capture.manifest.plan.target.kind {
        TargetKind::None => Err("the experiment has no target"),
        TargetKind::Url(_) if capture.series.of(catalogue::TARGET_CPU).next().is_none() => Err(
            "the target is a URL, and no process that listens there can be observed on this host",
        ),
        TargetKind::Child(_)
        | TargetKind::Container(_)
        | TargetKind::Pid(_)
        | TargetKind::Url(_) => Ok(()),
    }
}

fn has_generator(capture: &Capture) -> Result<(), &'static str> {
    match capture.manifest.plan.generators.as_slice() {
        [] => Err("the experiment has no generator"),
        _ => Ok(()),
    }
}

fn has_sink(capture: &Capture) -> Result<(), &'static str> {
    match capture.manifest.plan.sinks.as_slice() {
        [] => Err("the experiment has no sink"),
        _ => Ok(()),
    }
}

fn cpu(
    metric: &GoalMetric,
    window: &Window<'_>,
    figures: &RunFigures,
) -> Result<f64, &'static str> {
    let cpu = window.grown(catalogue::TARGET_CPU, |_| true);
    let cpu = cpu.ok_or("the target's CPU time was not recorded")?;
    if *metric == GoalMetric::Cpu {
        return figures
            .target_cpu_share
            .ok_or("the target's CPU time was not recorded");
    }
    let events = figures.measured.events_sent.filter(|events| *events > 0.0);
    Ok(cpu / events.ok_or("no event was sent while measuring")?)
}

const NO_REQUEST: &str = "no request ended while measuring";

/// Ends of the requests of the measured phase.
struct Requests {
    /// Those with a response below status 400.
    answered: f64,
    /// All others that ended.
    failed: f64,
}

impl Requests {
    /// Returns the ends of requests; `None` if none ended, or if the sends wait for no answers.
    fn of(answers: &Answers<'_>) -> Option<Self> {
        let mut requests = Self {
            answered: 0.0,
            failed: 0.0,
        };
        for entry in answers.outcomes {
            let count = float_from_u64(entry.count);
            let is = |outcome: Outcome| entry.outcome == outcome.name();
            if is(Outcome::Ok) || is(Outcome::Status3xx) {
                requests.answered += count;
            } else if !is(Outcome::Unfinished) {
                requests.failed += count;
            }
        }
        let are_answered = answers.response_time.is_some() || requests.answered == 0.0;
        (are_answered && requests.ended() > 0.0).then_some(requests)
    }

    const fn ended(&self) -> f64 {
        self.answered + self.failed
    }
}

/// Of all events that were sent in the whole run the share that no sink had
/// received by its end: what is under way at either end of the measured phase is
/// neither lost nor gained. Below zero where more came than was sent.
fn loss(capture: &Capture, figures: &RunFigures) -> Result<f64, &'static str> {
    has_generator(capture)?;
    has_sink(capture)?;
    if let Some(ledger) = &figures.ledger {
        let lost = share_of_stamped(ledger, |entry| &entry.lost)?;
        // Units under way are not lost, and the two cannot be distinguished.
        return if lost > 0.0 && !ledger.quiet {
            Err("events still arrived when the drain ended, so none counts as lost")
        } else {
            Ok(lost)
        };
    }
    let sent = figures.whole.events_sent.filter(|sent| *sent > 0.0);
    let sent = sent.ok_or("no event was sent")?;
    let received = figures.whole.events_received;
    let received = received.ok_or("the number of events that sinks received was not recorded")?;
    Ok(1.0 - received / sent)
}

/// A count of the ledger for each stamped event that was sent.
fn share_of_stamped(
    ledger: &LedgerRecord,
    count: impl Fn(&LedgerFigures) -> &CountBounds,
) -> Result<f64, &'static str> {
    let (mut counted, mut sent) = (0, 0);
    for entry in &ledger.generators {
        let exactly = count(entry).exactly();
        counted += exactly
            .ok_or("the delivery ledger ran out of memory, so the exact count is unknown")?;
        sent += entry.sent;
    }
    if sent == 0 {
        return Err("no stamped event was sent");
    }
    Ok(float_from_u64(counted) / float_from_u64(sent))
}

/// In nanoseconds, from the intended time on.
fn latency(quantile: LatencyQuantile, times: Option<TimeQuantiles>) -> Option<f64> {
    let times = times?;
    let time = match quantile {
        LatencyQuantile::P50 => times.p50,
        LatencyQuantile::P90 => times.p90,
        LatencyQuantile::P99 => times.p99,
        LatencyQuantile::P999 => times.p999,
    };
    Some(float_from_u64(time.as_u64()))
}
