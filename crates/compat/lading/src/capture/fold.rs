//! From samples in any order to runs with their series.

use std::collections::{BTreeMap, BTreeSet};

use stillwell_metric::Kind;
use stillwell_plan::Phase;
use stillwell_units::float_from_u64;

use super::{LadingCapture, NAMES_MAX, POINTS_MAX, Problem, RUNS_MAX, Sample};
use crate::series::PHASE_MARKER;

/// The series of a capture to keep.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SeriesWanted {
    by_metric: BTreeMap<String, BTreeSet<Option<String>>>,
}

impl SeriesWanted {
    /// Returns an empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the metric of this name: only series with the `id` if one is given, otherwise all.
    #[must_use]
    pub fn with(mut self, metric: &str, id: Option<&str>) -> Self {
        let ids = self.by_metric.entry(metric.to_owned()).or_default();
        ids.insert(id.map(str::to_owned));
        self
    }
}

/// One run of a capture.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CaptureRun {
    /// The name that lading gave it.
    pub run_id: String,
    /// Value of its label `experiment`, if it has one.
    pub experiment: Option<String>,
    /// Value of its label `variant`, if it has one.
    pub variant: Option<String>,
    /// Wall clock of its first sample of any metric: milliseconds since 1970.
    pub started_wall_millis: u64,
    /// Wall clock of its last sample of any metric.
    pub ended_wall_millis: u64,
    /// Wall clock of the first and last tick that was measured, if its phases are
    /// marked.
    pub measured: Option<(u64, u64)>,
    series: BTreeMap<(String, Option<String>), LadingSeries>,
}

impl CaptureRun {
    /// Returns a requested series, if the run has it.
    #[must_use]
    pub fn series(&self, metric: &str, id: Option<&str>) -> Option<&LadingSeries> {
        self.series.get(&(metric.to_owned(), id.map(str::to_owned)))
    }

    /// The same with the ticks that were measured alone, where phases are marked.
    #[must_use]
    pub fn only_measured(mut self) -> Self {
        if let Some((from, to)) = self.measured {
            for series in self.series.values_mut() {
                series
                    .ticks
                    .retain(|tick| (from..=to).contains(&tick.wall_millis));
            }
        }
        self
    }
}

/// One metric of a run, summed over its labels.
#[derive(Clone, Debug, PartialEq)]
pub struct LadingSeries {
    /// Kind of its values; histograms have no ticks.
    pub kind: Kind,
    /// Its values, in the order of time.
    pub ticks: Vec<LadingTick>,
}

/// One beat of lading's clock, by custom a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LadingTick {
    /// Its number since the capture's start.
    pub index: u64,
    /// Wall clock: milliseconds since 1970.
    pub wall_millis: u64,
    /// The sum over all labels: of counters the total since the start.
    pub value: f64,
}

impl LadingSeries {
    /// Returns the growth of a counter per second, from the first tick at or after `from_millis` (milliseconds
    /// since 1970) to the last.
    ///
    /// # Errors
    /// [`SeriesProblem`] if there is no such number.
    pub fn rate(&self, from_millis: u64) -> Result<f64, SeriesProblem> {
        if self.kind != Kind::Counter {
            return Err(SeriesProblem::NoCounter);
        }
        let ticks = self.from(from_millis)?;
        if ticks.windows(2).any(|pair| pair[1].value < pair[0].value) {
            return Err(SeriesProblem::Fell);
        }
        let (Some(first), Some(last)) = (ticks.first(), ticks.last()) else {
            return Err(SeriesProblem::TooShort);
        };
        let millis = last.wall_millis.saturating_sub(first.wall_millis);
        if millis == 0 {
            return Err(SeriesProblem::TooShort);
        }
        finite((last.value - first.value) / (float_from_u64(millis) / 1e3))
    }

    /// Returns the mean of a gauge's ticks from `from_millis` on.
    ///
    /// # Errors
    /// [`SeriesProblem`] if there is no such number.
    pub fn mean(&self, from_millis: u64) -> Result<f64, SeriesProblem> {
        let ticks = self.gauge(from_millis)?;
        let mut mean = 0.0;
        let mut count = 0.0;
        for tick in ticks {
            count += 1.0;
            mean += (tick.value - mean) / count;
        }
        finite(mean)
    }

    /// Returns the largest of a gauge's ticks from `from_millis` on.
    ///
    /// # Errors
    /// [`SeriesProblem`] if there is no such number.
    pub fn peak(&self, from_millis: u64) -> Result<f64, SeriesProblem> {
        let ticks = self.gauge(from_millis)?;
        let values = ticks.iter().map(|tick| tick.value);
        finite(values.fold(f64::NEG_INFINITY, f64::max))
    }

    fn gauge(&self, from_millis: u64) -> Result<&[LadingTick], SeriesProblem> {
        if self.kind != Kind::Gauge {
            return Err(SeriesProblem::NoGauge);
        }
        self.from(from_millis)
    }

    fn from(&self, from_millis: u64) -> Result<&[LadingTick], SeriesProblem> {
        let at = self
            .ticks
            .partition_point(|tick| tick.wall_millis < from_millis);
        let ticks = self.ticks.get(at..).unwrap_or_default();
        if ticks.is_empty() {
            return Err(SeriesProblem::TooShort);
        }
        Ok(ticks)
    }
}

fn finite(value: f64) -> Result<f64, SeriesProblem> {
    if value.is_finite() {
        Ok(value)
    } else {
        Err(SeriesProblem::NotFinite)
    }
}

/// Reason why a series has no number.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SeriesProblem {
    /// The counter fell: the program was restarted.
    #[error("the counter fell: the program was restarted")]
    Fell,
    /// Only counters have rates.
    #[error("it is not a counter, so it has no rate")]
    NoCounter,
    /// Only gauges have means.
    #[error("it is not a gauge, so it has neither mean nor peak")]
    NoGauge,
    /// The number is not finite.
    #[error("the recorded value is not a finite number")]
    NotFinite,
    /// There are fewer than two ticks after the warm-up.
    #[error("it has no values after the warm-up")]
    TooShort,
}

/// Gathers samples.
#[derive(Debug)]
pub(super) struct Fold<'w> {
    wanted: &'w SeriesWanted,
    order: Vec<String>,
    runs: BTreeMap<String, RunFold>,
    metrics: BTreeSet<String>,
    points: usize,
}

#[derive(Debug)]
struct RunFold {
    experiment: Option<String>,
    variant: Option<String>,
    started_wall_millis: u64,
    ended_wall_millis: u64,
    last_tick: u64,
    measured: Option<(u64, u64)>,
    series: BTreeMap<(String, Option<String>), SeriesFold>,
}

#[derive(Debug)]
struct SeriesFold {
    kind: Kind,
    ticks: BTreeMap<u64, (u64, f64)>,
}

impl<'w> Fold<'w> {
    pub(super) const fn new(wanted: &'w SeriesWanted) -> Self {
        Self {
            wanted,
            order: Vec::new(),
            runs: BTreeMap::new(),
            metrics: BTreeSet::new(),
            points: 0,
        }
    }

    pub(super) fn push(&mut self, sample: Sample) -> Result<(), Problem> {
        if self.metrics.len() < NAMES_MAX && !self.metrics.contains(&sample.metric) {
            self.metrics.insert(sample.metric.clone());
        }
        if !self.runs.contains_key(&sample.run_id) {
            if self.order.len() >= RUNS_MAX {
                return Err(Problem::TooLarge("ten thousand runs"));
            }
            self.order.push(sample.run_id.clone());
        }
        let run = self.runs.entry(sample.run_id).or_insert_with(|| RunFold {
            experiment: None,
            variant: None,
            started_wall_millis: sample.wall_millis,
            ended_wall_millis: sample.wall_millis,
            last_tick: sample.tick,
            measured: None,
            series: BTreeMap::new(),
        });
        run.started_wall_millis = run.started_wall_millis.min(sample.wall_millis);
        run.ended_wall_millis = run.ended_wall_millis.max(sample.wall_millis);
        run.last_tick = run.last_tick.max(sample.tick);
        if run.experiment.is_none() {
            run.experiment = sample.experiment;
        }
        if run.variant.is_none() {
            run.variant = sample.variant;
        }
        let is_measured = sample.phase.as_deref() == Some(Phase::Measure.name());
        if is_measured && sample.metric == PHASE_MARKER {
            let (from, to) = run.measured.unwrap_or((sample.wall_millis, 0));
            run.measured = Some((from.min(sample.wall_millis), to.max(sample.wall_millis)));
        }
        let Some(ids) = self.wanted.by_metric.get(&sample.metric) else {
            return Ok(());
        };
        for id in ids.iter().filter(|id| id.is_none() || **id == sample.id) {
            let key = (sample.metric.clone(), id.clone());
            let series = run.series.entry(key).or_insert_with(|| SeriesFold {
                kind: sample.kind,
                ticks: BTreeMap::new(),
            });
            let Some(value) = sample.value else {
                continue;
            };
            let tick = series.ticks.entry(sample.tick).or_insert_with(|| {
                self.points += 1;
                (sample.wall_millis, 0.0)
            });
            tick.1 += value;
        }
        if self.points > POINTS_MAX {
            return Err(Problem::TooLarge(
                "four million points of the wanted series",
            ));
        }
        Ok(())
    }

    /// Returns the result. If the file was `cut`, its last tick is skipped: some of its labels may be missing,
    /// and its sums wrong.
    pub(super) fn finish(self, cut: Option<String>) -> Result<LadingCapture, Problem> {
        if self.order.is_empty() {
            return Err(Problem::Empty);
        }
        let Self {
            order,
            mut runs,
            metrics,
            ..
        } = self;
        let last = order.last().cloned();
        let runs = order.into_iter().filter_map(|run_id| {
            let is_cut = cut.is_some() && last.as_ref() == Some(&run_id);
            let run = runs.remove(&run_id)?;
            Some(run.finish(run_id, is_cut))
        });
        Ok(LadingCapture {
            runs: runs.collect(),
            cut,
            metrics,
        })
    }
}

impl RunFold {
    fn finish(self, run_id: String, is_cut: bool) -> CaptureRun {
        let last = self.last_tick;
        let series = self.series.into_iter().map(|(key, series)| {
            let ticks = series.ticks.into_iter();
            let ticks = ticks.filter(|(index, _)| !is_cut || *index < last);
            let ticks = ticks.map(|(index, (wall_millis, value))| LadingTick {
                index,
                wall_millis,
                value,
            });
            let series = LadingSeries {
                kind: series.kind,
                ticks: ticks.collect(),
            };
            (key, series)
        });
        CaptureRun {
            run_id,
            experiment: self.experiment,
            variant: self.variant,
            started_wall_millis: self.started_wall_millis,
            ended_wall_millis: self.ended_wall_millis,
            measured: self.measured,
            series: series.collect(),
        }
    }
}
