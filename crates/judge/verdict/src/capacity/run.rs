//! Probes that were runs.

use stillwell_capture::{Capture, RunOutcome};
use stillwell_metric::Outcome;
use stillwell_plan::capacity::{CapacityBound, CapacityFigure};
use stillwell_plan::goal::LatencyQuantile;
use stillwell_plan::{GoalMetric, Phase, RateShape, RateUnit, RunPlan, Validity};
use stillwell_stats::capacity::{Observed, Purpose};
use stillwell_units::{Nanos, float_from_u64};

use super::{CapacityProbe, ProbeEvidence, figure_text, figures, judge_probe};
use crate::limits::{PROBE_BLOCKED_SHARE, PROBE_SENT_SHARE, PROBE_UNDER_WAY_OF_BOUND};
use crate::run_warning::RunWarning;
use crate::summary::{Component, OutcomeCount, RunSummary, WorkerShares};

/// Load of a probe that is a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ProbeLoad {
    /// Units each second.
    Rate {
        /// Counted unit.
        unit: RateUnit,
        /// Units each second.
        per_second: f64,
        /// Purpose of the probe.
        purpose: Purpose,
    },
    /// As much as is taken, over so many connections.
    AtFullSpeed {
        /// Connections.
        connections: u32,
    },
}

/// Judges a run whose generator at `place` sent `load`.
///
/// # Errors
/// The warning of a run that neither holds nor breaks a bound, since it did not go as
/// it should.
pub fn judge_run_probe(
    summary: &RunSummary,
    capture: &Capture,
    (place, load): (usize, ProbeLoad),
    bounds: &[CapacityBound],
) -> Result<CapacityProbe, RunWarning> {
    let course = ProbeCourse::of(summary, capture, place);
    let figures = figures(bounds, |figure| figure_of(summary, course, figure));
    let (observed, why) = if let Some((observed, warning)) = failure(summary)? {
        (observed, Some(warning.to_string()))
    } else {
        let generators = &capture.manifest.plan.generators;
        let varied = generators.get(place).map_or("", |plan| plan.id.as_str());
        judge_completed((summary, course), (varied, load), (bounds, &figures))
    };
    let (purpose, rate, reached) = match load {
        ProbeLoad::Rate {
            per_second,
            purpose,
            ..
        } => (Some(purpose), Some(per_second), per_second * course.sent),
        ProbeLoad::AtFullSpeed { .. } => {
            let generator = summary.figures.generators.get(place);
            let achieved = generator.and_then(|figures| figures.achieved_per_second);
            (None, None, achieved.unwrap_or(0.0))
        }
    };
    Ok(CapacityProbe {
        purpose,
        rate,
        connections: None,
        reached,
        observed,
        why,
        figures,
    })
}

/// The observation of a run that did not go as it should, and why; `None` of one that
/// did.
fn failure(summary: &RunSummary) -> Result<Option<(Observed, &RunWarning)>, RunWarning> {
    let mut warnings = summary.warnings.iter();
    let died = warnings.find(|warning| matches!(warning, RunWarning::TargetDied { .. }));
    if let Some(died) = died {
        return Ok(Some((Observed::Failed, died)));
    }
    let mut warnings = summary.warnings.iter();
    let broken = warnings.find(|warning| {
        matches!(
            warning,
            RunWarning::PartFailed { .. } | RunWarning::NotCompleted { .. }
        )
    });
    match broken {
        None => Ok(None),
        Some(broken) if matches!(summary.outcome, RunOutcome::Interrupted { .. }) => {
            Ok(Some((Observed::Unclear, broken)))
        }
        Some(broken) => Err(broken.clone()),
    }
}

/// Judges a run that went as it should, of whose generators `varied` was varied.
fn judge_completed(
    (summary, course): (&RunSummary, ProbeCourse),
    (varied, load): (&str, ProbeLoad),
    (bounds, figures): (&[CapacityBound], &[(CapacityFigure, Option<f64>)]),
) -> (Observed, Option<String>) {
    let has_rate = matches!(load, ProbeLoad::Rate { .. });
    // Lateness that all was sent in spite of moves no totals, only times.
    let is_sent = has_rate
        && course.sent >= PROBE_SENT_SHARE
        && !bounds.iter().any(|bound| bound.figure.is_time());
    let evidence = ProbeEvidence {
        figures,
        reached: course.sent,
        has_rate,
        generator_limit: generator_limit(summary, varied, is_sent),
        // What a lateness of the generator did is in its warnings.
        generator_lateness: Nanos::ZERO,
        late_share: 0.0,
        never_begun_share: 0.0,
        // A pipeline that falls behind needs longer until the last of it has arrived.
        growth: None,
        // The summary has left out what validity lets pass.
        validity: Validity::Normal,
    };
    let missed = missed_by_sink(summary, bounds, figures);
    let known: Vec<CapacityBound> = match missed {
        None => bounds.to_vec(),
        Some(_) => without_loss(bounds),
    };
    match (judge_probe(&known, &evidence), missed) {
        ((Observed::Held | Observed::Unclear, _), Some(warning)) => {
            (Observed::Unclear, Some(warning.to_string()))
        }
        ((Observed::Held, _), None) if course.depends_on_sends_in_flight(bounds) => {
            let share = figure_text(CapacityFigure::Throughput, course.sent - course.counted);
            let why = format!(
                "sends still in flight may be {share} of all, and decide whether the bounds \
                 hold: use longer probes (--probe)"
            );
            (Observed::Unclear, Some(why))
        }
        (judged, _) => judged,
    }
}

/// The warning of a sink that missed events, where a bound of loss broke: the target need not have
/// lost them.
fn missed_by_sink<'s>(
    summary: &'s RunSummary,
    bounds: &[CapacityBound],
    figures: &[(CapacityFigure, Option<f64>)],
) -> Option<&'s RunWarning> {
    let mut items = figures.iter();
    let loss = items.find(|item| item.0 == CapacityFigure::Loss);
    let loss = loss.and_then(|item| item.1);
    let is_broken =
        |bound: &CapacityBound| bound.figure == CapacityFigure::Loss && !bound.is_kept(loss);
    let mut warnings = summary.warnings.iter();
    let warning = warnings.find(|warning| warning.hides_arrivals())?;
    bounds.iter().any(is_broken).then_some(warning)
}

/// Bounds that do not depend on the events that sinks received.
fn without_loss(bounds: &[CapacityBound]) -> Vec<CapacityBound> {
    let bounds = bounds.iter().copied();
    bounds
        .filter(|bound| bound.figure != CapacityFigure::Loss)
        .collect()
}

/// The quantile of latencies that captures hold for this share, if they do.
#[must_use]
pub fn quantile_of(share: f64) -> Option<LatencyQuantile> {
    let known = [
        (0.5, LatencyQuantile::P50),
        (0.9, LatencyQuantile::P90),
        (0.99, LatencyQuantile::P99),
        (0.999, LatencyQuantile::P999),
    ];
    let quantile = known.iter().find(|known| (known.0 - share).abs() < 1e-9);
    quantile.map(|known| known.1)
}

/// Reason why another part and not the target was the limit, if its warnings say so. The varied
/// generator was not where its peer kept its workers waiting, each that was late for
/// longer than that.
fn generator_limit(summary: &RunSummary, varied: &str, is_sent: bool) -> Option<String> {
    let workers = &summary.figures.workers;
    let is_excused =
        |id: &str, late_max| is_sent || (id == varied && is_held_up(workers, varied, late_max));
    let warning = summary.warnings.iter().find(|warning| match warning {
        RunWarning::GeneratorLate { id, limit, .. } => !is_excused(id, *limit),
        RunWarning::GeneratorLimit { id, .. } | RunWarning::RateNotReached { id, .. } => {
            !is_excused(id, PROBE_BLOCKED_SHARE)
        }
        RunWarning::SinkSaturated { .. }
        | RunWarning::SamplesMissing { .. }
        | RunWarning::TargetDelayed { .. }
        | RunWarning::WorkerDelayed { .. }
        | RunWarning::CpuSteal { .. } => true,
        _ => false,
    });
    warning.map(ToString::to_string)
}

/// True if its peer kept a worker of this generator waiting, and every other one
/// that was late for more than `late_max` of the time.
fn is_held_up(workers: &[WorkerShares], id: &str, late_max: f64) -> bool {
    let is_its = |item: &&WorkerShares| item.component == Component::Generator && item.id == id;
    let its = || workers.iter().filter(is_its);
    let waits =
        |item: &WorkerShares| item.blocked > PROBE_BLOCKED_SHARE && item.blocked > item.late;
    its().any(waits) && its().filter(|item| item.late > late_max).all(waits)
}

fn figure_of(summary: &RunSummary, course: ProbeCourse, figure: CapacityFigure) -> Option<f64> {
    let either = |of_events: GoalMetric, of_answers: GoalMetric| {
        summary
            .value(&of_events)
            .or_else(|| summary.value(&of_answers))
    };
    let figures = &summary.figures;
    let times = figures.event_latency.or(figures.response_time);
    let reported = |time: Nanos| float_from_u64(time.as_u64());
    match figure {
        CapacityFigure::Latency(share) => {
            let quantile = quantile_of(share)?;
            either(
                GoalMetric::EventLatency(quantile),
                GoalMetric::Latency(quantile),
            )
        }
        CapacityFigure::LatencyMean => times.map(|times| reported(times.mean)),
        CapacityFigure::LatencyMax => times.map(|times| reported(times.max)),
        CapacityFigure::Errors => {
            let count = |item: &OutcomeCount| float_from_u64(item.count);
            let is_of = |item: &OutcomeCount, outcomes: &[Outcome]| {
                outcomes
                    .iter()
                    .any(|outcome| item.outcome == outcome.name())
            };
            let outcomes = summary.figures.outcomes.iter();
            let ended = outcomes.filter(|item| !is_of(item, &[Outcome::Unfinished]));
            let all: f64 = ended.clone().map(count).sum();
            let good = [Outcome::Ok, Outcome::Status3xx];
            let good = ended.filter(|item| is_of(item, &good)).map(count);
            (all > 0.0).then(|| 1.0 - good.sum::<f64>() / all)
        }
        CapacityFigure::Loss => summary.value(&GoalMetric::Loss),
        CapacityFigure::Throughput => Some(course.sent * course.in_time),
    }
}

/// Units that the generator sent, of those that its rate requires while there is load; and
/// how long its target took to pass that on. Where it falls behind by a tenth it
/// needs a tenth longer until the last of it has arrived, however much buffers
/// take meanwhile.
#[derive(Clone, Copy, Debug)]
struct ProbeCourse {
    /// Sent units, of the requested ones, with those that may be under way.
    sent: f64,
    /// The same without that.
    counted: f64,
    /// The length of the load, of the time from its start to the last arrival.
    in_time: f64,
}

impl ProbeCourse {
    fn of(summary: &RunSummary, capture: &Capture, place: usize) -> Self {
        let plan = &capture.manifest.plan;
        let marks = &capture.manifest.phases;
        let mark = |phase| marks.iter().find(|mark| mark.phase == phase);
        let start = mark(Phase::Warmup);
        // Load continues until the end of the measured phase was sampled.
        let planned = plan.phases.warmup + plan.phases.measure;
        let length = start
            .zip(mark(Phase::Drain))
            .map_or(planned, |(start, drain)| {
                drain.moment.since(start.moment).max(planned)
            });
        let last = start.zip(capture.manifest.last_received);
        let taken = last.map_or(length, |(start, last)| last.since(start.moment));
        let seconds = length.as_secs_f64().max(1e-9);
        let in_time = seconds / taken.as_secs_f64().max(seconds);
        let [sent, counted] = sent_of_requested(summary, plan, place, seconds).unwrap_or([1.0; 2]);
        Self {
            sent,
            counted,
            in_time,
        }
    }

    /// True if a bound holds only by units that may be under way, and that is much of what
    /// the bound leaves.
    fn depends_on_sends_in_flight(self, bounds: &[CapacityBound]) -> bool {
        bounds.iter().any(|bound| {
            let most = PROBE_UNDER_WAY_OF_BOUND * (1.0 - bound.limit);
            bound.figure == CapacityFigure::Throughput
                && self.sent - self.counted > most
                && !bound.is_kept(Some(self.counted * self.in_time))
        })
    }
}

/// Over the whole run where this generator is the only one, else while it was
/// measured; one send of each connection may be under way. With those and without.
fn sent_of_requested(
    summary: &RunSummary,
    plan: &RunPlan,
    place: usize,
    seconds: f64,
) -> Option<[f64; 2]> {
    let item = plan.generators.get(place)?;
    let RateShape::Constant { per_second } = item.rate.shape else {
        return None;
    };
    let whole = &summary.figures.whole;
    let sent = match (item.rate.unit, plan.generators.len()) {
        (RateUnit::Bytes, 1) => whole.bytes_sent.map(|sent| sent / seconds),
        (RateUnit::Events, 1) => whole.events_sent.map(|sent| sent / seconds),
        _ => summary.figures.generators.get(place)?.achieved_per_second,
    };
    let sends: u64 = summary.figures.outcomes.iter().map(|item| item.count).sum();
    let under_way = f64::from(item.concurrency.connections()) / float_from_u64(sends.max(1));
    let counted = sent? / per_second;
    Some([counted + under_way, counted].map(|share| share.min(1.0)))
}

#[cfg(test)]
mod tests {
    use stillwell_capture::RunStage;

    use super::*;

    fn worker(id: &str, blocked: f64, late: f64) -> WorkerShares {
        WorkerShares {
            component: Component::Generator,
            id: id.to_owned(),
            worker: String::new(),
            idle: 0.0,
            blocked,
            running: 0.0,
            late,
            wanted: None,
        }
    }

    /// One that waited excused another one, of another generator even.
    #[test]
    fn each_worker_is_judged_by_itself() {
        let workers = [worker("a", 0.5, 0.0), worker("a", 0.0, 0.2)];
        assert!(is_held_up(&workers[..1], "a", 0.01));
        assert!(!is_held_up(&workers, "a", 0.01));
        assert!(!is_held_up(&workers[..1], "b", 0.01));
        let both = [worker("a", 0.5, 0.1), worker("a", 0.0, 0.005)];
        assert!(is_held_up(&both, "a", 0.01));
    }

    /// Redirects are good answers, and requests under way at the end are neither good nor bad: as in loads.
    #[test]
    fn errors_are_those_of_a_load() {
        let mut summary = crate::synthetic::run("e", (RunStage::Search, 1, "baseline"), &[]);
        let count = |outcome: Outcome, count| OutcomeCount {
            outcome: outcome.name().to_owned(),
            count,
        };
        summary.figures.outcomes = vec![
            count(Outcome::Ok, 60),
            count(Outcome::Status3xx, 30),
            count(Outcome::Status5xx, 10),
            count(Outcome::Unfinished, 100),
        ];
        let course = ProbeCourse {
            sent: 1.0,
            counted: 1.0,
            in_time: 1.0,
        };
        let errors = figure_of(&summary, course, CapacityFigure::Errors).unwrap();
        assert!((errors - 0.1).abs() < 1e-12, "{errors}");
    }

    /// Its own sink had dropped the events, and the target was the one that failed.
    #[test]
    fn what_a_sink_missed_is_no_loss_of_the_target() {
        let id = || "s".to_owned();
        let dropped = RunWarning::DatagramsDropped {
            id: id(),
            count: 7,
            measured: 0,
        };
        let unread = RunWarning::BodiesUnread {
            id: id(),
            count: 7,
            measured: 0,
        };
        let load = ProbeLoad::Rate {
            unit: RateUnit::Events,
            per_second: 100.0,
            purpose: Purpose::Grow,
        };
        let course = ProbeCourse {
            sent: 1.0,
            counted: 1.0,
            in_time: 1.0,
        };
        let bounds = ["loss<1%".parse().unwrap(), "errors<1%".parse().unwrap()];
        let judged = |warnings: &[RunWarning], loss: f64, errors: f64| {
            let mut summary = crate::synthetic::run("e", (RunStage::Search, 1, "baseline"), &[]);
            summary.warnings = warnings.to_vec();
            let figures = [
                (CapacityFigure::Loss, Some(loss)),
                (CapacityFigure::Errors, Some(errors)),
            ];
            judge_completed((&summary, course), ("g", load), (&bounds, &figures))
        };
        let (observed, why) = judged(&[], 0.5, 0.0);
        assert_eq!(observed, Observed::Failed, "{why:?}");
        for warnings in [[dropped], [unread]] {
            let unclear = (Observed::Unclear, Some(warnings[0].to_string()));
            assert_eq!(judged(&warnings, 0.5, 0.0), unclear);
            assert_eq!(judged(&warnings, 0.0, 0.0), (Observed::Held, None));
            // Another bound that breaks is the reason, not the loss.
            let failed = (Observed::Failed, Some("errors 50 %".to_owned()));
            assert_eq!(judged(&warnings, 0.5, 0.5), failed);
        }
    }

    /// With few sends all of them counted as sent, for any outcome.
    #[test]
    fn what_may_be_under_way_decides_nothing() {
        let bounds = ["throughput>99%".parse().unwrap()];
        for (counted, sent, expected) in [
            (0.90, 1.0, true),
            (0.9895, 0.9904, false),
            (1.0, 1.0, false),
            (0.995, 1.0, false),
        ] {
            let course = ProbeCourse {
                sent,
                counted,
                in_time: 1.0,
            };
            assert_eq!(
                course.depends_on_sends_in_flight(&bounds),
                expected,
                "{counted}"
            );
        }
    }
}
