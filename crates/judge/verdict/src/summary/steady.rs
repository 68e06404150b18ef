//! The steady part of a run, and the variation of its rates.

use std::collections::BTreeMap;

use stillwell_capture::Capture;
use stillwell_metric::{Metric, catalogue};
use stillwell_plan::{GoalMetric, Phase};
use stillwell_stats::warmup::{SteadyState, slope_test_at, steady_state};
use stillwell_stats::{Level, Sample};
use stillwell_units::{Moment, Nanos, count, float_from_u64};

use super::{BeatRates, Drift, WarmupFigures};
use crate::limits;
use crate::window::Window;

/// Rates by which a run is steady or not. With a paced generator what is sent
/// says nothing, and what it costs the target does; at full speed both do.
const RATES: [Metric; 3] = [
    catalogue::BYTES_WRITTEN,
    catalogue::BYTES_RECEIVED,
    catalogue::TARGET_CPU,
];

/// Latencies that grow if a queue fills.
const LATENCIES: [Metric; 2] = [catalogue::RESPONSE_TIME, catalogue::EVENT_LATENCY];

/// Least share of a beat with load for which its rate is reported.
const LOADED_SHARE: f64 = 0.1;

/// A rate between two beats, and when the second one was taken.
#[derive(Clone, Copy, Debug)]
struct Rate {
    until: Moment,
    length: f64,
    value: f64,
}

pub(super) fn warmup(capture: &Capture, window: &Window<'_>) -> Option<WarmupFigures> {
    let load = window.of_load(capture)?;
    let mut marks = capture.manifest.phases.iter();
    let start = marks.find(|mark| mark.phase == Phase::Warmup)?.moment;
    let level = Level::try_new(limits::STEADY_LEVEL).ok()?;
    let judged = RATES.iter().filter_map(|metric| {
        let rates = rates(&load, *metric);
        let values: Vec<f64> = rates.iter().map(|rate| rate.value).collect();
        let state = steady_state(&values, level)?;
        Some(figures(metric.name, &rates, state, (start, window.start)))
    });
    let longest = |figures: &WarmupFigures| figures.cut.unwrap_or(Nanos::new(u64::MAX));
    let slowest = judged.max_by_key(longest)?;
    let drifts = RATES
        .iter()
        .filter_map(|metric| drift(window, *metric, level));
    let drift = drifts.max_by(|left, right| left.share.abs().total_cmp(&right.share.abs()));
    Some(WarmupFigures { drift, ..slowest })
}

fn figures(
    series: &str,
    rates: &[Rate],
    state: SteadyState,
    (start, measured): (Moment, Moment),
) -> WarmupFigures {
    let (before, after) = rates.split_at(state.cut.min(rates.len()));
    let cut = before
        .last()
        .map_or(Nanos::ZERO, |rate| rate.until.since(start));
    let early = before.iter().filter(|rate| rate.until > measured);
    let early: Vec<f64> = early.map(|rate| rate.value).collect();
    let late: Vec<f64> = after.iter().map(|rate| rate.value).collect();
    let mean = |values: &[f64]| Sample::try_new(values, 1).ok().map(|sample| sample.mean());
    let apart = mean(&early).zip(mean(&late).filter(|late| *late > 0.0));
    WarmupFigures {
        series: series.to_owned(),
        cut: (!state.at_bound).then_some(cut),
        beats: count(rates.len()),
        apart: apart.map_or(0.0, |(early, late)| (early / late - 1.0).abs()),
        drift: None,
    }
}

fn drift(window: &Window<'_>, metric: Metric, level: Level) -> Option<Drift> {
    let rates = rates(window, metric);
    let values: Vec<f64> = rates.iter().map(|rate| rate.value).collect();
    let slope = slope_test_at(&values, level)?;
    let mean = Sample::try_new(&values, 1).ok()?.mean();
    let steps = float_from_u64(u64::try_from(values.len()).ok()?);
    let share = slope.per_step * steps / mean;
    let is_certain = slope.interval.excludes_zero() && share.abs() > limits::STEADY_DRIFT;
    (is_certain && mean > 0.0).then(|| Drift {
        series: metric.name.to_owned(),
        share,
    })
}

/// Growth of the median latency over the measured window, as a share of its mean, with the series that
/// shows it; `None` if it is not certain, or too small to report.
pub(super) fn latency_growth(window: &Window<'_>) -> Option<Drift> {
    let level = Level::try_new(limits::STEADY_LEVEL).ok()?;
    LATENCIES.iter().find_map(|metric| {
        let medians = window.medians(*metric)?;
        let slope = slope_test_at(&medians, level)?;
        let mean = Sample::try_new(&medians, 1).ok()?.mean();
        let steps = float_from_u64(u64::try_from(medians.len()).ok()?);
        let share = slope.per_step * steps / mean;
        (slope.interval.lower > 0.0 && share > limits::LATENCY_GROWTH).then(|| Drift {
            series: metric.name.to_owned(),
            share,
        })
    })
}

/// Growth for each second of load, from beat to beat.
fn rates(window: &Window<'_>, metric: Metric) -> Vec<Rate> {
    let beats = window.beats(metric.name, |_| true);
    let active: BTreeMap<Moment, f64> = window
        .beats(catalogue::ACTIVE_TIME.name, |_| true)
        .into_iter()
        .collect();
    let rates = beats.windows(2).filter_map(|pair| {
        let ((from, before), (until, after)) = (pair[0], pair[1]);
        let beat = until.since(from).as_secs_f64();
        let length = if active.is_empty() {
            beat
        } else {
            (active.get(&until)? - active.get(&from)?) / 1e9
        };
        let is_reported = length > LOADED_SHARE * beat && after >= before;
        is_reported.then(|| Rate {
            until,
            length,
            value: (after - before) / length,
        })
    });
    rates.collect()
}

/// The rates behind the goals that are counted.
pub(super) fn beats(window: &Window<'_>) -> BTreeMap<GoalMetric, BeatRates> {
    let mut all = BTreeMap::new();
    for (goal, metric, unit) in [
        (GoalMetric::IngressThroughput, catalogue::BYTES_WRITTEN, 1.0),
        (GoalMetric::EgressThroughput, catalogue::BYTES_RECEIVED, 1.0),
        (GoalMetric::Cpu, catalogue::TARGET_CPU, 1e-9),
    ] {
        if let Some(rates) = kept(&rates(window, metric), unit) {
            all.insert(goal, rates);
        }
    }
    let events: BTreeMap<Moment, f64> = rates(window, catalogue::EVENTS_WRITTEN)
        .iter()
        .map(|rate| (rate.until, rate.value))
        .collect();
    let cpu = rates(window, catalogue::TARGET_CPU);
    let each = cpu.iter().filter_map(|rate| {
        let events = events.get(&rate.until).filter(|events| **events > 0.0)?;
        Some(Rate {
            value: rate.value / events,
            ..*rate
        })
    });
    if let Some(rates) = kept(&each.collect::<Vec<_>>(), 1.0) {
        all.insert(GoalMetric::CpuPerEvent, rates);
    }
    all
}

fn kept(rates: &[Rate], unit: f64) -> Option<BeatRates> {
    let group = rates.len().div_ceil(limits::BEATS_MAX).max(1);
    let lengths: Vec<f64> = rates.iter().map(|rate| rate.length).collect();
    let beat = Sample::try_new(&lengths, 1).ok()?.mean();
    let values = rates.chunks_exact(group).filter_map(|group| {
        let values: Vec<f64> = group.iter().map(|rate| rate.value * unit).collect();
        Some(Sample::try_new(&values, 1).ok()?.mean())
    });
    Some(BeatRates {
        beat: Nanos::from_secs_f64(beat * float_from_u64(u64::try_from(group).ok()?)),
        values: values.collect(),
    })
}
