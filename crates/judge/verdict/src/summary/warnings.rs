//! Warnings of a run.

use stillwell_capture::{Capture, Manifest, RunOutcome};
use stillwell_metric::{Metric, catalogue};
use stillwell_plan::step::{StepAction, StepPlan, TargetChange, TargetSignal};
use stillwell_plan::{GeneratorPlan, Phase, RateUnit, TargetKind};
use stillwell_units::{Nanos, float_from_u64, floor_to_u64};

use super::figures::is_of;
use super::series::growth;
use super::{Component, GeneratorFigures, RunFigures, Totals, WorkerShares};
use crate::limits;
use crate::run_warning::{RunWarning, ShortfallCause};
use crate::window::{self, Window};

pub(super) fn warnings(
    capture: &Capture,
    window: Option<&Window<'_>>,
    figures: &RunFigures,
) -> Vec<RunWarning> {
    let manifest = &capture.manifest;
    let mut warnings = of_outcome(manifest);
    if let Some(kills) = window::last(&capture.series, catalogue::TARGET_OOM_KILLS)
        && kills > 0.0
    {
        warnings.push(RunWarning::OutOfMemory {
            kills: floor_to_u64(kills),
        });
    }
    let Some(window) = window else {
        if warnings.is_empty() {
            // It says that it went through all phases and has nothing to show.
            warnings.push(RunWarning::SamplesMissing {
                gap: manifest.plan.phases.measure,
                limit: gap_limit(manifest),
            });
        }
        return warnings;
    };
    warnings.extend(of_pause(capture, window));
    warnings.extend(of_recording(capture, window));
    let factor = manifest.plan.observer.validity.limit_factor();
    warnings.extend(of_host(&manifest.plan.target.kind, figures, factor));
    for (plan, generator) in manifest.plan.generators.iter().zip(&figures.generators) {
        let lateness = window.quantiles_where(catalogue::LATENESS, is_of(&plan.id));
        warnings.extend(of_generator(
            plan,
            generator,
            (lateness.map(|lateness| lateness.p99), factor),
            figures,
            window.length(),
        ));
    }
    warnings.extend(of_sinks(figures));
    warnings.extend(of_arrivals(manifest, window));
    warnings
}

/// Warns about a target that was stopped while it was measured, unless a step stopped it.
fn of_pause(capture: &Capture, window: &Window<'_>) -> Option<RunWarning> {
    let is_pause = |step: &StepPlan| {
        matches!(
            step.action,
            StepAction::Signal(TargetSignal::Stop) | StepAction::Target(TargetChange::Pause)
        )
    };
    if capture.manifest.plan.timeline.iter().any(is_pause) {
        return None;
    }
    let beats = |metric: Metric| window.beats(metric.name, |_| true);
    let mut stopped = beats(catalogue::TARGET_STOPPED);
    stopped.retain(|(_, value)| *value > 0.0);
    // The series begins when the target is stopped for the first time.
    let measured = beats(catalogue::TARGET_CPU).len().max(stopped.len());
    let share = float_from_u64(stopped.len() as u64) / float_from_u64(measured as u64);
    (!stopped.is_empty()).then_some(RunWarning::TargetStopped { share })
}

fn of_outcome(manifest: &Manifest) -> Vec<RunWarning> {
    let mut warnings = Vec::new();
    match &manifest.outcome {
        RunOutcome::Completed => {}
        RunOutcome::TargetDied { phase } => {
            let end = manifest.target.as_ref();
            warnings.push(RunWarning::TargetDied {
                phase: *phase,
                code: end.and_then(|end| end.code),
                signal: end.and_then(|end| end.signal),
                last_lines: end.map_or_else(Vec::new, |end| end.last_lines.clone()),
            });
        }
        RunOutcome::PartFailed { part, reason } => warnings.push(RunWarning::PartFailed {
            part: part.clone(),
            reason: reason.clone(),
        }),
        right => warnings.push(RunWarning::NotCompleted {
            outcome: right.clone(),
        }),
    }
    for part in &manifest.parts {
        let Some(reason) = &part.failure else {
            continue;
        };
        let warning = RunWarning::PartFailed {
            part: part.name.clone(),
            reason: reason.clone(),
        };
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    warnings
}

fn gap_limit(manifest: &Manifest) -> Nanos {
    let period = manifest.plan.observer.period.as_secs_f64();
    Nanos::from_secs_f64(period * limits::BEAT_GAP_PERIODS)
}

fn of_recording(capture: &Capture, window: &Window<'_>) -> Vec<RunWarning> {
    let mut warnings = Vec::new();
    let (gap, limit) = (window.longest_gap(), gap_limit(&capture.manifest));
    if gap > limit {
        warnings.push(RunWarning::SamplesMissing { gap, limit });
    }
    let by = clock_step(capture);
    if by > limits::CLOCK_STEP {
        warnings.push(RunWarning::ClockStepped {
            by,
            limit: limits::CLOCK_STEP,
        });
    }
    warnings
}

/// By how much the wall clock's idea of the time since the start of the measured
/// phase left the monotonic clock's, at its end or at an event within.
fn clock_step(capture: &Capture) -> Nanos {
    let phases = &capture.manifest.phases;
    let Some(at) = phases.iter().position(|mark| mark.phase == Phase::Measure) else {
        return Nanos::ZERO;
    };
    let start = &phases[at];
    let end = phases
        .get(at + 1)
        .map(|mark| (mark.moment, mark.wall_millis));
    let events = capture.events.iter();
    let events = events
        .filter(|event| event.moment >= start.moment)
        .filter(|event| end.is_some_and(|(end, _)| event.moment <= end))
        .map(|event| (event.moment, event.wall_millis));
    let steps = events.chain(end).map(|(moment, wall_millis)| {
        let monotonic = float_from_u64(moment.since(start.moment).as_u64()) / 1e6;
        let wall = float_from_u64(wall_millis) - float_from_u64(start.wall_millis);
        Nanos::from_secs_f64((wall - monotonic).abs() / 1e3)
    });
    steps.max().unwrap_or(Nanos::ZERO)
}

/// Harm by the host, by limits times `factor`. A service at a URL has no priority above other programs, which delay it in the
/// runs of all variants: that is noted and no reason to discard a run.
fn of_host(target: &TargetKind, figures: &RunFigures, factor: f64) -> Vec<RunWarning> {
    let mut warnings = Vec::new();
    let limit = limits::STEAL_SHARE * factor;
    if let Some(share) = figures.steal_share
        && share > limit
    {
        warnings.push(RunWarning::CpuSteal { share, limit });
    }
    let limit = limits::TARGET_DELAYED_SHARE * factor;
    if let Some(share) = figures.target_delayed_share
        && share > limit
        && !matches!(target, TargetKind::Url(_))
    {
        warnings.push(RunWarning::TargetDelayed { share, limit });
    }
    let limit = limits::WORKER_DELAYED_SHARE * factor;
    if let Some((worker, share)) = &figures.worker_delayed
        && *share > limit
    {
        warnings.push(RunWarning::WorkerDelayed {
            worker: worker.clone(),
            share: *share,
            limit,
        });
    }
    warnings
}

/// The workers of a generator or sink.
pub(super) fn workers_of<'f>(
    figures: &'f RunFigures,
    component: Component,
    id: &'f str,
) -> impl Iterator<Item = &'f WorkerShares> + Clone {
    let all = figures.workers.iter();
    all.filter(move |worker| worker.component == component && worker.id == id)
}

/// The largest of some shares, or zero.
pub(super) fn largest(shares: impl Iterator<Item = f64>) -> f64 {
    shares.fold(0.0, f64::max)
}

/// True if less was sent than requested, beyond the limits.
pub(super) fn falls_short(
    plan: &GeneratorPlan,
    generator: &GeneratorFigures,
    sent: &Totals,
    measured: Nanos,
) -> bool {
    let (Some(requested), Some(achieved)) = (
        generator.requested_per_second,
        generator.achieved_per_second,
    ) else {
        return false;
    };
    let seconds = measured.as_secs_f64();
    // Units requested since a worker's last report are not in its figure yet.
    let unreported_share = limits::REQUESTED_UNREPORTED.as_secs_f64() / seconds;
    // A block is sent when all of it is requested: each worker may have begun one.
    let begun = f64::from(plan.concurrency.workers().max(1)) * block_units(plan, sent) / seconds;
    requested > 0.0
        && achieved + begun < requested * (limits::RATE_ACHIEVED_SHARE - unreported_share)
}

/// Units of the schedule in the largest block; of events by their mean size.
fn block_units(plan: &GeneratorPlan, sent: &Totals) -> f64 {
    let block = float_from_u64(plan.payload.blocks.maximum().bytes());
    match plan.rate.unit {
        RateUnit::Bytes => block,
        RateUnit::Blocks => 1.0,
        RateUnit::Events => match (sent.events_sent, sent.bytes_sent) {
            (Some(events), Some(bytes)) if bytes > 0.0 => (block * events / bytes).max(1.0),
            _ => 1.0,
        },
    }
}

fn of_generator(
    plan: &GeneratorPlan,
    generator: &GeneratorFigures,
    (lateness_p99, factor): (Option<Nanos>, f64),
    figures: &RunFigures,
    measured: Nanos,
) -> Vec<RunWarning> {
    let workers = workers_of(figures, Component::Generator, &plan.id);
    let blocked = largest(workers.clone().map(|worker| worker.blocked));
    let busy = workers.clone().map(|worker| worker.running + worker.late);
    let busy = busy.min_by(f64::total_cmp).unwrap_or(0.0);
    let late = largest(workers.map(|worker| worker.late));
    let id = plan.id.clone();
    if plan.rate.is_max() {
        let limit = limits::GENERATOR_BUSY_SHARE;
        let is_limit = busy > limit && blocked < limits::BLOCKED_SHARE;
        let warning = RunWarning::GeneratorLimit {
            id,
            share: busy,
            limit,
        };
        return is_limit.then_some(warning).into_iter().collect();
    }
    let mut warnings = Vec::new();
    let limit = limits::GENERATOR_LATE_SHARE * factor;
    let lateness_max = limits::GENERATOR_LATENESS_P99.as_secs_f64() * factor;
    let harms = lateness_p99.is_none_or(|lateness| lateness.as_secs_f64() > lateness_max);
    if late > limit && harms {
        warnings.push(RunWarning::GeneratorLate {
            id: id.clone(),
            share: late,
            limit,
        });
    }
    if falls_short(plan, generator, &figures.measured, measured) && blocked < limits::BLOCKED_SHARE
    {
        warnings.push(RunWarning::RateNotReached {
            id,
            unit: generator.unit,
            requested_per_second: generator.requested_per_second.unwrap_or(0.0),
            achieved_per_second: generator.achieved_per_second.unwrap_or(0.0),
            because: shortfall_cause(late, busy, figures),
        });
    }
    warnings
}

fn shortfall_cause(late: f64, busy: f64, figures: &RunFigures) -> ShortfallCause {
    let connections = ["connect_refused", "connect_failed", "peer_closed"];
    let mut outcomes = figures.outcomes.iter();
    if late > limits::GENERATOR_LATE_SHARE {
        ShortfallCause::GeneratorLate
    } else if busy > limits::GENERATOR_BUSY_SHARE {
        ShortfallCause::GeneratorBusy
    } else if outcomes.any(|item| connections.contains(&item.outcome.as_str())) {
        ShortfallCause::ConnectionsFailed
    } else {
        ShortfallCause::Unknown
    }
}

/// Items that arrived at a sink and do not count.
fn of_arrivals<'w>(
    manifest: &'w Manifest,
    window: &'w Window<'_>,
) -> impl Iterator<Item = RunWarning> {
    manifest.plan.sinks.iter().flat_map(move |sink| {
        let unread = missed(window, catalogue::BODIES_MALFORMED, &sink.id);
        let unread = unread.map(|(count, measured)| RunWarning::BodiesUnread {
            id: sink.id.clone(),
            count,
            measured,
        });
        let dropped = missed(window, catalogue::DATAGRAMS_DROPPED, &sink.id);
        let dropped = dropped.map(|(count, measured)| RunWarning::DatagramsDropped {
            id: sink.id.clone(),
            count,
            measured,
        });
        [unread, dropped].into_iter().flatten()
    })
}

/// Items by `metric` that the sink `id` missed: over the whole run, since loss is counted over it,
/// and of these during the measured phase. `None` if it missed none.
fn missed(window: &Window<'_>, metric: Metric, id: &str) -> Option<(u64, u64)> {
    let wanted = is_of(id);
    let (mut count, mut measured) = (0.0, 0.0);
    let all = window.table().of(metric);
    for (_, series) in all.filter(|(labels, _)| wanted(labels)) {
        let last = series.points.last().and_then(|last| last.value.number());
        count += last.unwrap_or(0.0);
        measured += growth(window, series).map_or(0.0, |growth| growth.value);
    }
    let (count, measured) = (floor_to_u64(count), floor_to_u64(measured));
    (count > 0).then_some((count, measured))
}

fn of_sinks(figures: &RunFigures) -> Vec<RunWarning> {
    let saturated = figures.target_core_share;
    if saturated.is_some_and(|share| share >= limits::TARGET_SATURATED_SHARE) {
        return Vec::new();
    }
    let mut warnings: Vec<RunWarning> = Vec::new();
    let sinks = figures.workers.iter();
    for worker in sinks.filter(|worker| worker.component == Component::Sink) {
        let reported = |warning: &RunWarning| matches!(warning, RunWarning::SinkSaturated { id, .. } if *id == worker.id);
        if worker.busy() > limits::SINK_BUSY_SHARE && !warnings.iter().any(reported) {
            warnings.push(RunWarning::SinkSaturated {
                id: worker.id.clone(),
                share: worker.busy(),
                limit: limits::SINK_BUSY_SHARE,
            });
        }
    }
    warnings
}
