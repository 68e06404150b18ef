//! The seconds of captures, as the ancestors' methods want them.

use anyhow::{Context, anyhow, ensure};
use stillwell_capture::Capture;
use stillwell_lading::capture::LadingSeries;
use stillwell_metric::{Kind, catalogue};
use stillwell_plan::GoalMetric;
use stillwell_plan::goal::Reduction;
use stillwell_report::{AncestorTables, SmpTable, SoakTable};
use stillwell_stats::smp::{SmpOptions, SmpSeries, smp};
use stillwell_stats::soak::{CounterReading, SoakOptions, soak};
use stillwell_units::{Nanos, float_from_u64};
use stillwell_verdict::across::{RunGroup, SavedRun};

use crate::goals::{self, SeriesName};
use crate::read::{Run, Source};
use crate::{Method, SideOptions};

/// Maximum p value of a change in the soak rig's script.
const SOAK_P_VALUE: f64 = 0.05;
/// Name in tables of an experiment without a name.
const NAMELESS: &str = "experiment";

/// The readings of one series of one run.
struct Readings {
    kind: Kind,
    values: Vec<CounterReading>,
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
            // Such as CPU per event, which has no seconds.
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
    Ok((side(&group.baseline)?, side(&group.comparison)?))
}

fn readings(run: &Run, name: &str, warmup: f64) -> anyhow::Result<Readings> {
    let label = &run.label;
    let missing = || anyhow!("{label} has no series of `{name}`");
    match &run.source {
        Source::Lading { run, .. } => {
            let series = lading_series(name, |metric, id| run.series(metric, id));
            let series = series.ok_or_else(missing)?;
            let ticks = series.ticks.iter().map(|tick| CounterReading {
                second: float_from_u64(tick.index),
                value: tick.value,
            });
            Ok(Readings {
                kind: series.kind,
                values: ticks.collect(),
            })
        }
        Source::Saved(saved) => saved_readings(saved, name, warmup)?.ok_or_else(missing),
        Source::Result(..) | Source::Row(_) => Err(anyhow!(
            "{label} is one number for each run, and this method needs the series of captures"
        )),
    }
}

fn lading_series<'s>(
    name: &str,
    series: impl Fn(&str, Option<&str>) -> Option<&'s LadingSeries>,
) -> Option<&'s LadingSeries> {
    let goal = name.parse::<GoalMetric>().ok();
    let mut metrics = goal
        .as_ref()
        .map_or(&[][..], |goal| goals::lading_goal(goal))
        .iter();
    let plain = SeriesName::parse(name);
    metrics
        .find_map(|metric| series(metric.metric, None))
        .or_else(|| series(plain.metric, plain.id))
}

/// The beats of the measured phase of a capture of ours, placed behind the
/// warm-up that the methods leave out: ours has been left out already.
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
    let Some((metric, kind)) = series_of_goal(name) else {
        return Ok(None);
    };
    let mut beats = std::collections::BTreeMap::new();
    let mut found_kind = kind;
    for (_, series) in capture.series.named(&metric) {
        found_kind = found_kind.or(Some(series.kind));
        for point in series.between(start, end) {
            if let Some(value) = point.value.number() {
                *beats.entry(point.moment).or_insert(0.0) += value;
            }
        }
    }
    ensure!(!beats.is_empty(), "`{metric}` was not recorded");
    let behind = |length: Nanos| length.as_secs_f64() + warmup;
    let values = beats.into_iter().map(|(moment, value)| CounterReading {
        second: behind(moment.since(start)),
        value,
    });
    Ok(Some(Readings {
        kind: found_kind.unwrap_or(Kind::Gauge),
        values: values.collect(),
    }))
}

/// Our series behind a goal; of any other name the series itself.
fn series_of_goal(name: &str) -> Option<(String, Option<Kind>)> {
    let Ok(goal) = name.parse::<GoalMetric>() else {
        return Some((SeriesName::parse(name).metric.to_owned(), None));
    };
    let metric = match goal {
        GoalMetric::IngressThroughput => catalogue::BYTES_WRITTEN,
        GoalMetric::EgressThroughput => catalogue::BYTES_RECEIVED,
        GoalMetric::Cpu => catalogue::TARGET_CPU,
        GoalMetric::Memory | GoalMetric::MemoryPeak => catalogue::TARGET_RSS,
        GoalMetric::Series(series) => {
            let counts = matches!(series.reduction, Reduction::Rate | Reduction::PerEvent);
            let kind = if counts { Kind::Counter } else { Kind::Gauge };
            return Some((series.metric, Some(kind)));
        }
        _ => return None,
    };
    Some((metric.name.to_owned(), Some(metric.kind)))
}
