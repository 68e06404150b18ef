//! Figures of a run.

use std::collections::{BTreeMap, BTreeSet};

use stillwell_capture::{Capture, Manifest, SeriesTable};
use stillwell_metric::{Labels, Metric, catalogue, is_sink_worker, sink_worker_name};
use stillwell_plan::{Phase, PhasesPlan, WorkUnit};
use stillwell_units::{Nanos, float_from_u64, floor_to_u64};

use super::{
    Component, GeneratorFigures, OutcomeCount, PrefixCounts, RouteFigures, RunFigures, StepMark,
    Totals, WorkerShares,
};
use crate::window::{self, Window};

pub(super) fn figures(capture: &Capture, window: Option<&Window<'_>>) -> RunFigures {
    let manifest = &capture.manifest;
    let mut figures = RunFigures {
        whole: whole(&capture.series),
        rss_peak_bytes: rss_peak(&capture.series),
        target_cpus: manifest.target_cpus.clone(),
        load_cpus: manifest.load_cpus.clone(),
        ledger: manifest.ledger.clone(),
        machines: manifest.machines.clone(),
        prefixes: prefixes(&capture.series),
        work: WorkUnit::of(&manifest.plan.generators),
        drain: drain(manifest),
        steps: steps(capture),
        restarts: manifest.restarts.clone(),
        ..RunFigures::default()
    };
    let Some(window) = window else {
        return figures;
    };
    figures.active = window.active();
    figures.measured = measured(window);
    let generators = manifest.plan.generators.iter();
    figures.generators = generators
        .map(|plan| GeneratorFigures {
            id: plan.id.clone(),
            unit: WorkUnit::of_rate(plan.rate.unit, &plan.transport),
            requested_per_second: if plan.rate.is_max() {
                None
            } else {
                window.per_second(catalogue::REQUESTED_UNITS, is_of(&plan.id))
            },
            achieved_per_second: window.per_second(catalogue::SENT_UNITS, is_of(&plan.id)),
        })
        .collect();
    figures.lateness = window.quantiles(catalogue::LATENESS);
    figures.response_time = window.quantiles(catalogue::RESPONSE_TIME);
    figures.service_time = window.quantiles(catalogue::SERVICE_TIME);
    figures.first_byte = window.quantiles(catalogue::FIRST_BYTE_TIME);
    figures.statuses = statuses(window, catalogue::STATUSES, |_| true);
    figures.routes = routes(window);
    figures.event_latency = window.quantiles(catalogue::EVENT_LATENCY);
    figures.event_transit = window.quantiles(catalogue::EVENT_TRANSIT);
    figures.target_cpu_share = window.share_of_load(catalogue::TARGET_CPU);
    figures.target_core_share = figures.target_cpu_share.and_then(|share| {
        let cpus = manifest.target_cpus.as_ref()?.len();
        (cpus > 0).then(|| share / count(cpus))
    });
    figures.rss_mean_bytes = window.mean(catalogue::TARGET_RSS);
    figures.pss_mean_bytes = window.mean(catalogue::TARGET_PSS);
    figures.workers = workers(&capture.series, window);
    figures.outcomes = outcomes(window, catalogue::OUTCOMES, |_| true);
    if let Some((waited, delayed)) = delays(window) {
        figures.target_waited_share = Some(waited);
        figures.target_delayed_share = delayed;
    }
    figures.worker_delayed = worker_delayed(&capture.series, window);
    if let Some(cpus) = host_cpus(manifest) {
        let of_host = |metric| Some(window.share(metric)? / cpus);
        figures.steal_share = of_host(catalogue::HOST_CPU_STEAL);
        figures.foreign_cpu_share = of_host(catalogue::HOST_CPU_FOREIGN);
    }
    figures
}

/// The largest resident memory of the whole run. The kernel's mark vanishes with its process, and
/// it is read rarely: an earlier mark, or a sample, may be larger than the last mark.
fn rss_peak(series: &SeriesTable) -> Option<f64> {
    let metrics = [catalogue::TARGET_RSS_PEAK, catalogue::TARGET_RSS].into_iter();
    let peaks = metrics.filter_map(|metric| window::largest(series, metric));
    peaks.max_by(f64::total_cmp)
}

/// Of the time in which the target ran or wanted to, the share in which it waited, and
/// the share that others took. Threads of a target also wait for each other: what others
/// took is at most what they used of its CPUs.
fn delays(window: &Window<'_>) -> Option<(f64, Option<f64>)> {
    let grown = |metric| window.grown(metric, |_| true);
    let (cpu, waited) = (
        grown(catalogue::TARGET_CPU)?,
        grown(catalogue::TARGET_RUN_DELAY)?,
    );
    let share = |delay: f64| {
        let wanted = cpu + delay;
        if wanted > 0.0 { delay / wanted } else { 0.0 }
    };
    let foreign =
        grown(catalogue::TARGET_CPUS_FOREIGN).or_else(|| grown(catalogue::HOST_CPU_FOREIGN));
    Some((
        share(waited),
        foreign.map(|foreign| share(waited.min(foreign))),
    ))
}

/// The worker's thread that waited longest for a CPU, at most as long as others used CPUs
/// that are not the target's alone.
fn worker_delayed(series: &SeriesTable, window: &Window<'_>) -> Option<(String, f64)> {
    let foreign = window.share(catalogue::HOST_CPU_FOREIGN)?
        - window.share(catalogue::TARGET_CPUS_FOREIGN).unwrap_or(0.0);
    let delays = series
        .of(catalogue::WORKER_RUN_DELAY)
        .filter_map(|(labels, series)| {
            let name = labels.value("worker").filter(|name| is_of_load(name))?;
            let growth = window.growth(series)?;
            let share = growth.value / float_from_u64(growth.length.as_u64());
            Some((name.to_owned(), share.min(foreign).max(0.0)))
        });
    delays.max_by(|left, right| left.1.total_cmp(&right.1))
}

/// True if a thread of this name sends or receives: the one that makes fresh payload
/// does neither.
fn is_of_load(name: &str) -> bool {
    (name.starts_with("gen-") && !name.ends_with("-fresh")) || is_sink_worker(name)
}

/// Timestamps that sinks read before events, where the plan has them.
fn prefixes(series: &SeriesTable) -> Option<PrefixCounts> {
    let last = |metric| window::last(series, metric).map(floor_to_u64);
    Some(PrefixCounts {
        read: last(catalogue::PREFIXES_READ)?,
        implausible: last(catalogue::PREFIXES_IMPLAUSIBLE)?,
    })
}

/// Steps of the timeline, planned and done.
fn steps(capture: &Capture) -> Vec<StepMark> {
    let marks = &capture.manifest.phases;
    let Some(start) = marks.iter().find(|mark| mark.phase == Phase::Measure) else {
        return Vec::new();
    };
    let steps = capture.events.iter().filter(|event| event.is_step);
    let marked = steps.map(|event| StepMark {
        at: event.moment.since(start.moment),
        what: event.what.clone(),
    });
    marked.collect()
}

/// The drain less the silence that ended it.
fn drain(manifest: &Manifest) -> Option<Nanos> {
    let marks = &manifest.phases;
    let at = marks.iter().position(|mark| mark.phase == Phase::Drain)?;
    let length = marks.get(at + 1)?.moment.since(marks[at].moment);
    let PhasesPlan { drain, quiet, .. } = manifest.plan.phases;
    (length < drain).then(|| length.saturating_sub(quiet))
}

/// True if labels are those of the generator or sink `id`.
pub(super) fn is_of(id: &str) -> impl Fn(&Labels) -> bool {
    move |labels| labels.value("id") == Some(id)
}

fn measured(window: &Window<'_>) -> Totals {
    let grown = |metric| window.grown(metric, |_| true);
    Totals {
        events_sent: grown(catalogue::EVENTS_WRITTEN),
        bytes_sent: grown(catalogue::BYTES_WRITTEN),
        events_received: grown(catalogue::EVENTS_RECEIVED),
        bytes_received: grown(catalogue::BYTES_RECEIVED)
            .or_else(|| grown(catalogue::TOTAL_BYTES_RECEIVED)),
    }
}

fn whole(series: &SeriesTable) -> Totals {
    let last = |metric| window::last(series, metric);
    Totals {
        events_sent: last(catalogue::EVENTS_WRITTEN),
        bytes_sent: last(catalogue::BYTES_WRITTEN),
        events_received: last(catalogue::EVENTS_RECEIVED),
        bytes_received: last(catalogue::BYTES_RECEIVED)
            .or_else(|| last(catalogue::TOTAL_BYTES_RECEIVED)),
    }
}

fn workers(series: &SeriesTable, window: &Window<'_>) -> Vec<WorkerShares> {
    // Counts are constant while another run has the load.
    let share_of = |metric: Metric, wanted: &Labels| {
        let mut item = series.of(metric).filter(|(labels, _)| *labels == wanted);
        let growth = item.next().and_then(|(_, series)| window.growth(series));
        growth.map(|growth| window.rate(growth) / 1e9)
    };
    let share = |metric, labels| share_of(metric, labels).unwrap_or(0.0);
    let mut workers = Vec::new();
    for component in [Component::Generator, Component::Sink] {
        for (labels, _) in series.of(catalogue::WORKER_RUNNING) {
            if labels.value("component") != Some(component.label()) {
                continue;
            }
            let text = |key| labels.value(key).unwrap_or_default().to_owned();
            let thread = |metric| {
                let name = sink_worker_name(&text("id"), &text("worker"));
                share_of(metric, &Labels::none().with("worker", name))
            };
            let wanted = match component {
                Component::Generator => None,
                Component::Sink => thread(catalogue::WORKER_CPU)
                    .zip(thread(catalogue::WORKER_RUN_DELAY))
                    .map(|(cpu, delay)| cpu + delay),
            };
            workers.push(WorkerShares {
                component,
                wanted,
                id: text("id"),
                worker: text("worker"),
                idle: share(catalogue::WORKER_IDLE, labels),
                blocked: share(catalogue::WORKER_BLOCKED, labels),
                running: share(catalogue::WORKER_RUNNING, labels),
                late: share(catalogue::WORKER_LATE, labels),
            });
        }
    }
    workers
}

fn outcomes(
    window: &Window<'_>,
    metric: Metric,
    wanted: impl Fn(&Labels) -> bool,
) -> Vec<OutcomeCount> {
    let counts = counted(window, metric, "outcome", wanted).into_iter();
    let counts = counts.map(|(outcome, count)| OutcomeCount {
        outcome: outcome.to_owned(),
        count,
    });
    counts.collect()
}

fn statuses(
    window: &Window<'_>,
    metric: Metric,
    wanted: impl Fn(&Labels) -> bool,
) -> BTreeMap<u16, u64> {
    let counts = counted(window, metric, "status", wanted).into_iter();
    let counts = counts.filter_map(|(status, count)| Some((status.parse().ok()?, count)));
    counts.collect()
}

/// Counts that grew in the window, by a label, in the order of the series. What is first
/// counted while measuring was at zero before.
pub(super) fn counted<'w>(
    window: &Window<'w>,
    metric: Metric,
    label: &str,
    wanted: impl Fn(&Labels) -> bool,
) -> Vec<(&'w str, u64)> {
    let mut counts: Vec<(&str, u64)> = Vec::new();
    let all = window.table().of(metric);
    for (labels, series) in all.filter(|(labels, _)| wanted(labels)) {
        let name = labels.value(label).unwrap_or_default();
        let grown = match series.points.first() {
            Some(first) if first.moment > window.start => {
                let end = series.at_or_after(window.end);
                end.and_then(|point| point.value.number()).unwrap_or(0.0)
            }
            _ => window.growth(series).map_or(0.0, |growth| growth.value),
        };
        let count = floor_to_u64(grown);
        match counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum = sum.saturating_add(count),
            None => counts.push((name, count)),
        }
    }
    counts.retain(|(_, count)| *count > 0);
    counts
}

/// Requests of each route that ended in the window.
fn routes(window: &Window<'_>) -> Vec<RouteFigures> {
    let mut names: Vec<&str> = Vec::new();
    for (labels, _) in window.table().of(catalogue::ROUTE_OUTCOMES) {
        let name = labels.value("route").unwrap_or_default();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let routes = names.into_iter().map(|name| {
        let is_of = |labels: &Labels| labels.value("route") == Some(name);
        RouteFigures {
            name: name.to_owned(),
            outcomes: outcomes(window, catalogue::ROUTE_OUTCOMES, is_of),
            statuses: statuses(window, catalogue::ROUTE_STATUSES, is_of),
            response_time: window.quantiles_where(catalogue::ROUTE_RESPONSE_TIME, is_of),
            service_time: window.quantiles_where(catalogue::ROUTE_SERVICE_TIME, is_of),
            first_byte: window.quantiles_where(catalogue::ROUTE_FIRST_BYTE_TIME, is_of),
        }
    });
    routes.filter(|route| !route.outcomes.is_empty()).collect()
}

/// Number of CPUs the host has: by the manifest's host facts, where `cpus` or
/// `cpu_count` is a number or a list, else all those that were handed out.
pub(super) fn host_cpus(manifest: &Manifest) -> Option<f64> {
    let reported = ["cpus", "cpu_count"].into_iter().find_map(|key| {
        let fact = manifest.host.get(key)?;
        fact.as_f64()
            .or_else(|| fact.as_array().map(|list| count(list.len())))
    });
    let handed_out = || {
        let (target, item) = (manifest.target_cpus.as_ref()?, manifest.load_cpus.as_ref()?);
        let all: BTreeSet<u16> = target.iter().chain(item).copied().collect();
        Some(count(all.len()))
    };
    reported.or_else(handed_out).filter(|cpus| *cpus >= 1.0)
}

fn count(number: usize) -> f64 {
    float_from_u64(number as u64)
}
