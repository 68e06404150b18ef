//! Notes for readers of a run.

use stillwell_capture::Capture;
use stillwell_metric::{Outcome, catalogue};
use stillwell_plan::{RatePlan, RateShape, RateUnit, TargetKind};
use stillwell_units::{Nanos, float_from_u64, floor_to_u64};

use super::figures::{counted, host_cpus, is_of};
use super::warnings::{falls_short, largest, workers_of};
use super::{Component, RunFigures, instructions, steady};
use crate::limits;
use crate::run_note::RunNote;
use crate::window::Window;

pub(super) fn notes(
    capture: &Capture,
    window: Option<&Window<'_>>,
    figures: &RunFigures,
    (warmup, series_left_out): (Nanos, u32),
) -> Vec<RunNote> {
    let manifest = &capture.manifest;
    let mut notes = Vec::new();
    if let Some(window) = window {
        notes.extend(of_target(window, figures));
        notes.extend(instructions::notes(capture, window));
        notes.extend(of_warmup(figures, warmup));
        notes.extend(
            steady::latency_growth(window).map(|drift| RunNote::LatencyGrew {
                series: drift.series,
                growth: drift.share,
            }),
        );
        notes.extend(of_generators(capture, window, figures));
        notes.extend(of_blocks(capture, window));
        notes.extend(of_host(capture, window, figures));
    }
    notes.extend(of_scrapes(capture));
    notes.extend(of_records(capture));
    notes.extend(manifest.notes.iter().map(|note| RunNote::NotIsolated {
        what: note.what.clone(),
        why: note.why.clone(),
    }));
    let messages = manifest.warnings.iter();
    notes.extend(messages.map(|text| RunNote::Message { text: text.clone() }));
    if series_left_out > 0 {
        notes.push(RunNote::SeriesLeftOut {
            count: series_left_out,
        });
    }
    notes
}

fn of_warmup(figures: &RunFigures, warmup: Nanos) -> Vec<RunNote> {
    let Some(steady) = &figures.warmup else {
        return Vec::new();
    };
    let mut notes = Vec::new();
    if steady.apart > limits::STEADY_DRIFT {
        notes.push(RunNote::WarmupTooShort {
            series: steady.series.clone(),
            warmup,
            cut: steady.cut,
            apart: steady.apart,
        });
    }
    if let Some(drift) = &steady.drift {
        notes.push(RunNote::NotSteady {
            series: drift.series.clone(),
            drift: drift.share,
        });
    }
    notes
}

fn of_target(window: &Window<'_>, figures: &RunFigures) -> Vec<RunNote> {
    let mut notes = Vec::new();
    if let Some(cpu_share) = figures.target_cpu_share
        && cpu_share < limits::LIGHT_LOAD_SHARE
    {
        notes.push(RunNote::LightLoad { cpu_share });
    }
    let most_frequent = figures.statuses.iter().max_by_key(|(_, count)| **count);
    if let Some((status, _)) = most_frequent
        && figures.statuses.keys().all(|status| *status >= 400)
    {
        notes.push(RunNote::NoSuccess { status: *status });
    }
    if let Some(share) = window.share(catalogue::CGROUP_THROTTLED)
        && share > 0.0
    {
        notes.push(RunNote::Throttled { share });
    }
    notes
}

/// Returns true if an attempt of a generator to connect failed in the window.
fn fails_to_connect(window: &Window<'_>, id: &str) -> bool {
    let outcomes = counted(window, catalogue::OUTCOMES, "outcome", is_of(id));
    let mut names = outcomes.iter().map(|(outcome, _)| outcome);
    names.any(|outcome| outcome.starts_with("connect"))
}

fn of_generators(capture: &Capture, window: &Window<'_>, figures: &RunFigures) -> Vec<RunNote> {
    let mut notes = Vec::new();
    let plans = &capture.manifest.plan.generators;
    let has_target = !matches!(capture.manifest.plan.target.kind, TargetKind::None);
    for (plan, generator) in plans.iter().zip(&figures.generators) {
        let workers = workers_of(figures, Component::Generator, &generator.id);
        let blocked_share = largest(workers.clone().map(|worker| worker.blocked));
        let late = largest(workers.map(|worker| worker.late));
        let behind = falls_short(plan, generator, &figures.measured, window.length());
        let achieved_per_second = generator.achieved_per_second.unwrap_or(0.0);
        // Of a receiver that is not there, the report has the failed attempts to connect.
        let is_there = achieved_per_second > 0.0 || !fails_to_connect(window, &generator.id);
        if behind && blocked_share >= limits::BLOCKED_SHARE && is_there {
            let id = generator.id.clone();
            let unit = generator.unit;
            let requested_per_second = generator.requested_per_second.unwrap_or(0.0);
            notes.push(if has_target {
                RunNote::TargetSaturated {
                    id,
                    unit,
                    requested_per_second,
                    achieved_per_second,
                    blocked_share,
                }
            } else {
                RunNote::ReceiverSaturated {
                    id,
                    unit,
                    requested_per_second,
                    achieved_per_second,
                    blocked_share,
                }
            });
        }
        let lateness = window.quantiles_where(catalogue::LATENESS, is_of(&generator.id));
        if let Some(lateness) = lateness
            && generator.requested_per_second.is_some()
            && late > limits::GENERATOR_LATE_SHARE
            && lateness.p99 <= limits::GENERATOR_LATENESS_P99
        {
            notes.push(RunNote::LateWakeups {
                id: generator.id.clone(),
                share: late,
                lateness_p99: lateness.p99,
            });
        }
    }
    if capture.manifest.plan.generators.is_empty() {
        return notes;
    }
    let all: u64 = figures.outcomes.iter().map(|item| item.count).sum();
    for item in &figures.outcomes {
        let share = float_from_u64(item.count) / float_from_u64(all.max(1));
        if item.outcome != Outcome::Ok.name() && share > limits::FAILED_SHARE {
            notes.push(RunNote::SendsFailed {
                outcome: item.outcome.clone(),
                count: item.count,
                share,
            });
        }
    }
    notes
}

/// If a run holds few blocks, the amount it sends depends on the drawn blocks.
fn of_blocks(capture: &Capture, window: &Window<'_>) -> Vec<RunNote> {
    let generators = capture.manifest.plan.generators.iter();
    let coarse = generators.filter_map(|generator| {
        let RatePlan {
            unit: RateUnit::Bytes,
            shape: RateShape::Constant { per_second },
        } = generator.rate
        else {
            return None;
        };
        let block_max = generator.payload.blocks.maximum().bytes();
        let share = float_from_u64(block_max) / (per_second * window.length().as_secs_f64());
        (share > limits::BLOCK_SHARE).then(|| RunNote::CoarseBlocks {
            id: generator.id.clone(),
            block_max,
            share,
        })
    });
    coarse.collect()
}

fn of_host(capture: &Capture, window: &Window<'_>, figures: &RunFigures) -> Vec<RunNote> {
    let mut notes = Vec::new();
    if let Some(share) = figures.foreign_cpu_share
        && share > limits::FOREIGN_CPU_SHARE
    {
        notes.push(RunNote::ForeignCpu {
            share,
            target_delayed: figures.target_delayed_share,
            busiest: capture.manifest.busiest.clone(),
        });
    }
    for (metric, resource) in [
        (catalogue::HOST_PRESSURE_CPU, "CPU"),
        (catalogue::HOST_PRESSURE_MEMORY, "memory"),
        (catalogue::HOST_PRESSURE_IO, "storage"),
    ] {
        if let Some(share) = window.share(metric)
            && share > limits::PRESSURE_SHARE
        {
            notes.push(RunNote::Pressure {
                resource: resource.to_owned(),
                share,
            });
        }
    }
    if let Some(count) = window.grown(catalogue::HOST_NET_DROPS, |_| true)
        && count > 0.0
    {
        notes.push(RunNote::PacketsDropped {
            count: floor_to_u64(count),
        });
    }
    if host_cpus(&capture.manifest).is_none() {
        notes.push(RunNote::HostCpusUnknown);
    }
    notes
}

/// Points that sinks were to record.
fn of_records(capture: &Capture) -> Vec<RunNote> {
    let passed_over = capture.series.of(catalogue::POINTS_SKIPPED);
    let reported = passed_over.filter_map(|(labels, series)| {
        let last = series.points.last()?.value.number()?;
        Some(RunNote::PointsSkipped {
            id: labels.value("id")?.to_owned(),
            reason: labels.value("reason")?.to_owned(),
            count: floor_to_u64(last),
        })
    });
    reported.collect()
}

fn of_scrapes(capture: &Capture) -> Vec<RunNote> {
    let scrapes = capture.manifest.plan.observer.scrapes.iter();
    let silent = scrapes.filter(|scrape| {
        let mut answered = capture.series.of(catalogue::SCRAPE_OK);
        !answered.any(|(labels, series)| {
            let last = series.points.last().and_then(|point| point.value.number());
            labels.value("url") == Some(&scrape.url) && last.is_some_and(|count| count > 0.0)
        })
    });
    silent
        .map(|scrape| RunNote::ScrapeNeverAnswered {
            url: scrape.url.clone(),
        })
        .collect()
}
