//! The seconds of captures, as the ancestors' methods want them.

use std::collections::BTreeMap;

use anyhow::{Context, anyhow, ensure};
use stillwell_capture::{Capture, SeriesTable};
use stillwell_lading::capture::LadingSeries;
use stillwell_metric::{Kind, catalogue};
use stillwell_plan::GoalMetric;
use stillwell_plan::goal::Reduction;
use stillwell_report::{AncestorTables, SmpTable, SoakTable};
use stillwell_stats::smp::{SmpOptions, SmpSeries, smp};
use stillwell_stats::soak::{CounterReading, SoakOptions, soak};
use stillwell_units::{Moment, Nanos, float_from_u64};
use stillwell_verdict::across::{RunGroup, SavedRun};

use crate::goals::{self, GoalScale, LadingGoal, SeriesName};
use crate::read::{Run, Source};
use crate::{Method, SideOptions};

/// Maximum p value of a change in the soak rig's script.
const SOAK_P_VALUE: f64 = 0.05;
/// Name in tables of an experiment without a name.
const NAMELESS: &str = "experiment";

/// The readings of one series of one run.
struct Readings {
    kind: Kind,
    /// True for shares of an unknown number of CPUs.
    is_share: bool,
    values: Vec<CounterReading>,
}

impl Readings {
    /// Returns the noun for its numbers; those of different nouns are different quantities.
    const fn noun(&self) -> &'static str {
        match self.is_share {
            true => "share of the granted CPUs",
            false => self.kind.name(),
        }
    }
}

/// A series of a saved run by which a goal is measured.
#[derive(Debug, Eq, PartialEq)]
struct GoalSeries {
    metric: String,
    /// Value of the label `id`, if only series with it count.
    id: Option<String>,
    /// `None` for the kind of the series.
    kind: Option<Kind>,
}

pub(crate) fn tables(
    group: &RunGroup<Run>,
    method: Method,
    names: &[String],
    options: &SideOptions,
) -> anyhow::Result<AncestorTables> {
    match method {
        Method::Soak2022 => {
            let table = soak_table(group, options)?;
            Ok(AncestorTables::Soak2022(Box::new(table)))
        }
        Method::Smp2023 => smp_table(group, names, options).map(AncestorTables::Smp2023),
    }
}

/// Warm-up in seconds; `usual` without --warmup.
fn warmup_seconds(options: &SideOptions, usual: f64) -> f64 {
    options.warmup.map_or(usual, Nanos::as_secs_f64)
}

fn soak_table(group: &RunGroup<Run>, options: &SideOptions) -> anyhow::Result<SoakTable> {
    let soak_options = SoakOptions {
        cpus: f64::from(options.cpus),
        warmup_seconds: warmup_seconds(options, SoakOptions::default().warmup_seconds),
        p_value: SOAK_P_VALUE,
        ..SoakOptions::default()
    };
    let written = catalogue::BYTES_WRITTEN.name;
    let (baseline, comparison) = both(group, written, soak_options.warmup_seconds)?;
    let soak =
        soak(&slices(&baseline), &slices(&comparison), &soak_options).with_context(|| {
            let seconds = soak_options.warmup_seconds;
            format!("apply the soak method after {seconds} s of warm-up (--warmup changes it)")
        })?;
    Ok(SoakTable {
        experiment: name(group),
        soak,
        declared_erratic: soak_options.declared_erratic,
        p_value: soak_options.p_value,
        drift_percent: soak_options.drift_percent,
        target: options.target_name.clone(),
        cpus: soak_options.cpus,
        baseline_runs: run_names(&group.baseline),
        comparison_runs: run_names(&group.comparison),
    })
}

fn smp_table(
    group: &RunGroup<Run>,
    names: &[String],
    options: &SideOptions,
) -> anyhow::Result<SmpTable> {
    let mut goals = Vec::new();
    let mut refused = None;
    for name in names {
        let mut smp_options = SmpOptions::stated(SmpSeries::Counter);
        smp_options.warmup_seconds = warmup_seconds(options, smp_options.warmup_seconds);
        let (baseline, comparison) = match both(group, name, smp_options.warmup_seconds) {
            Ok(both) => both,
            // Such as CPU per event, which has no seconds, or a counter beside a gauge.
            Err(error) => {
                refused.get_or_insert(error);
                continue;
            }
        };
        if baseline.iter().any(|readings| readings.kind == Kind::Gauge) {
            smp_options.series = SmpSeries::Gauge;
        }
        let compared = smp(&slices(&baseline), &slices(&comparison), &smp_options);
        let compared = compared.with_context(|| {
            let seconds = smp_options.warmup_seconds;
            format!(
                "apply the detector's method to `{name}` after {seconds} s of warm-up \
                 (--warmup changes it)"
            )
        })?;
        goals.push((title(name), compared));
    }
    if let (true, Some(error)) = (goals.is_empty(), refused) {
        return Err(error);
    }
    Ok(SmpTable {
        experiment: name(group),
        target: options.target_name.clone(),
        run_id: options.run_id.clone(),
        cpus: f64::from(options.cpus),
        goals,
    })
}

fn slices(runs: &[Readings]) -> Vec<&[CounterReading]> {
    runs.iter().map(|run| run.values.as_slice()).collect()
}

fn name(group: &RunGroup<Run>) -> String {
    group.name.clone().unwrap_or_else(|| NAMELESS.to_owned())
}

/// The detector's words for its goals.
fn title(name: &str) -> String {
    match name {
        "ingress_throughput" => "ingress throughput",
        "egress_throughput" => "egress throughput",
        "cpu" => "% cpu utilization",
        "memory" => "memory utilization",
        other => other,
    }
    .to_owned()
}

fn run_names(runs: &[Run]) -> Vec<String> {
    let name = |run: &Run| match &run.source {
        Source::Lading { run, .. } => run.run_id.clone(),
        Source::Saved(saved) => saved.summary.run.to_string(),
        Source::Result(..) | Source::Row(_) => run.label.clone(),
    };
    runs.iter().map(name).collect()
}

fn both(
    group: &RunGroup<Run>,
    name: &str,
    warmup: f64,
) -> anyhow::Result<(Vec<Readings>, Vec<Readings>)> {
    let side = |runs: &[Run]| -> anyhow::Result<Vec<Readings>> {
        runs.iter().map(|run| readings(run, name, warmup)).collect()
    };
    let (baseline, comparison) = (side(&group.baseline)?, side(&group.comparison)?);
    check_kinds(name, &baseline, &comparison)?;
    Ok((baseline, comparison))
}

/// Refuses readings of several kinds, such as the total of a counter and the value of a gauge.
fn check_kinds(name: &str, baseline: &[Readings], comparison: &[Readings]) -> anyhow::Result<()> {
    let mut nouns = baseline.iter().chain(comparison).map(Readings::noun);
    let Some(first) = nouns.next() else {
        return Ok(());
    };
    let Some(second) = nouns.find(|noun| *noun != first) else {
        return Ok(());
    };
    let (here, there) = match baseline.iter().all(|run| run.noun() == first) {
        true => ("on one side", "on the other"),
        false => ("in one run", "in another"),
    };
    let problem = format!("`{name}` is a {first} {here} and a {second} {there}");
    Err(anyhow!(problem))
}

fn readings(run: &Run, name: &str, warmup: f64) -> anyhow::Result<Readings> {
    let label = &run.label;
    let missing = || anyhow!("{label} has no series of `{name}`");
    match &run.source {
        Source::Lading { run, is_marked, .. } => {
            let series = lading_series(name, |metric, id| run.series(metric, id));
            let (series, scale) = series.ok_or_else(missing)?;
            let behind = is_marked.then_some(warmup);
            Ok(lading_readings(series, scale, behind))
        }
        Source::Saved(saved) => saved_readings(saved, name, warmup)?.ok_or_else(missing),
        Source::Result(..) | Source::Row(_) => Err(anyhow!(
            "{label} is one number for each run, and this method needs the series of captures"
        )),
    }
}

/// Returns true for numbers that each second has. A peak is one number for each run, and no second has a growth
/// for each event.
const fn has_seconds(reduction: Reduction) -> bool {
    matches!(reduction, Reduction::Mean | Reduction::Rate)
}

/// Returns the series of a name and the scale from its unit to that of the goal; `None` for a goal without
/// seconds.
fn lading_series<'s>(
    name: &str,
    series: impl Fn(&str, Option<&str>) -> Option<&'s LadingSeries>,
) -> Option<(&'s LadingSeries, GoalScale)> {
    let goal = name.parse::<GoalMetric>().ok();
    let metrics = goal
        .as_ref()
        .map_or(&[][..], |goal| goals::lading_goal(goal));
    let mut metrics = metrics.iter().filter(|goal| has_seconds(goal.reduction));
    let measured_by = |goal: &LadingGoal| Some((series(goal.metric, None)?, goal.scale(&series)));
    let of_goal = metrics.find_map(measured_by);
    of_goal.or_else(|| {
        let plain = SeriesName::parse(name);
        plain.reduction.is_none_or(has_seconds).then_some(())?;
        Some((series(plain.metric, plain.id)?, GoalScale::NONE))
    })
}

/// Returns the ticks of a series, multiplied by `scale`. If its marks have removed the warm-up already, the first
/// tick is placed `behind` the warm-up that the methods leave out.
fn lading_readings(series: &LadingSeries, scale: GoalScale, behind: Option<f64>) -> Readings {
    let first = series.ticks.first().map_or(0, |tick| tick.index);
    let (start, shift) = behind.map_or((0, 0.0), |warmup| (first, warmup));
    let ticks = series.ticks.iter().map(|tick| CounterReading {
        second: float_from_u64(tick.index.saturating_sub(start)) + shift,
        value: tick.value * scale.factor,
    });
    Readings {
        kind: series.kind,
        is_share: scale.is_share,
        values: ticks.collect(),
    }
}

/// The beats of the measured phase of a saved run, placed behind the
/// warm-up that the methods leave out: that of the run has been left out already.
fn saved_readings(saved: &SavedRun, name: &str, warmup: f64) -> anyhow::Result<Option<Readings>> {
    let folder = saved
        .folder
        .as_ref()
        .context("the run has only a summary, and this method needs its capture")?;
    let capture = Capture::open(folder)?;
    let (start, end) = capture
        .manifest
        .measured()
        .context("the run has no measured phase")?;
    let Some(wanted) = series_of_goal(name) else {
        return Ok(None);
    };
    let (beats, kind) = summed_beats(&capture.series, &wanted, start, end);
    ensure!(!beats.is_empty(), "`{name}` was not recorded");
    let behind = |length: Nanos| length.as_secs_f64() + warmup;
    let values = beats.into_iter().map(|(moment, value)| CounterReading {
        second: behind(moment.since(start)),
        value,
    });
    Ok(Some(Readings {
        kind: kind.unwrap_or(Kind::Gauge),
        is_share: false,
        values: values.collect(),
    }))
}

/// Returns the sums over the wanted series from `start` to `end`, and their kind.
fn summed_beats(
    table: &SeriesTable,
    wanted: &GoalSeries,
    start: Moment,
    end: Moment,
) -> (BTreeMap<Moment, f64>, Option<Kind>) {
    let mut beats = BTreeMap::new();
    let mut kind = wanted.kind;
    let id = wanted.id.as_deref();
    let named = table.named(&wanted.metric);
    for (_, series) in named.filter(|(labels, _)| id.is_none() || labels.value("id") == id) {
        kind = kind.or(Some(series.kind));
        for point in series.between(start, end) {
            if let Some(value) = point.value.number() {
                *beats.entry(point.moment).or_insert(0.0) += value;
            }
        }
    }
    (beats, kind)
}

/// Returns the series of a goal in saved runs, or of any other name the series itself; `None` for a goal without
/// seconds.
fn series_of_goal(name: &str) -> Option<GoalSeries> {
    let Ok(goal) = name.parse::<GoalMetric>() else {
        let plain = SeriesName::parse(name);
        plain.reduction.is_none_or(has_seconds).then_some(())?;
        return Some(GoalSeries {
            metric: plain.metric.to_owned(),
            id: plain.id.map(str::to_owned),
            kind: None,
        });
    };
    let metric = match goal {
        GoalMetric::IngressThroughput => catalogue::BYTES_WRITTEN,
        GoalMetric::EgressThroughput => catalogue::BYTES_RECEIVED,
        GoalMetric::Cpu => catalogue::TARGET_CPU,
        GoalMetric::Memory => catalogue::TARGET_RSS,
        GoalMetric::Series(series) if has_seconds(series.reduction) => {
            let kind = match series.reduction {
                Reduction::Rate => Kind::Counter,
                _ => Kind::Gauge,
            };
            return Some(GoalSeries {
                metric: series.metric,
                id: series.id,
                kind: Some(kind),
            });
        }
        _ => return None,
    };
    Some(GoalSeries {
        metric: metric.name.to_owned(),
        id: None,
        kind: Some(metric.kind),
    })
}

#[cfg(test)]
mod tests;
