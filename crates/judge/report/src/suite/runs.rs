//! The runs behind an experiment's answer: over time, by latency percentile, and as facts.
//!
//! Captures are added one after the other, so a caller holds one capture at a time.

pub(crate) mod lines;

use std::collections::{BTreeMap, BTreeSet};

use stillwell_capture::{Capture, Manifest, RunProfiles, RunStage};
use stillwell_plan::{GoalMetric, GoalPlan};
use stillwell_profile::{ProfileCollector, RunWork};
use stillwell_verdict::RunSummary;

use super::profiles::ExperimentProfiles;
use crate::document::{AxisScale, Band, Curve};
use crate::profiles;
use lines::{QUANTITIES, RunLines, TimeSpan};

/// The runs of one experiment, ready to be drawn and listed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExperimentRuns {
    /// Name of the experiment.
    pub experiment: String,
    /// Number of drawn runs of each variant.
    pub drawn: usize,
    /// Number of valid runs of each variant.
    pub valid: usize,
    /// The charts.
    pub curves: Vec<Curve>,
    /// Wall clock at the first run's start and the last run's end: milliseconds since 1970.
    pub wall_millis: Option<(u64, u64)>,
    /// True if the page of a large suite leaves out the charts, to stay small.
    pub is_left_out: bool,
    /// Largest share of the host's CPU time that the hypervisor took in a valid run.
    pub steal_max: Option<f64>,
    /// Delivery of stamped events for each variant, summed over its valid runs.
    pub delivery: Vec<RunDelivery>,
    /// Facts of the environment, each with its distinct values.
    pub environment: Vec<(String, Vec<String>)>,
    /// Profiles of the target.
    pub profiles: ExperimentProfiles,
    /// Metrics of [`RunValues::values`].
    pub metrics: Vec<GoalMetric>,
    /// The number of every finished run.
    pub values: Vec<RunValues>,
}

/// Numbers of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunValues {
    /// Stage of the experiment.
    pub stage: RunStage,
    /// Number of the pair.
    pub pair: u32,
    /// The variant.
    pub variant: String,
    /// A number for each metric; `None` for one that was not measured or is unreliable.
    pub values: Vec<Option<f64>>,
}

/// Delivery of stamped events in the runs of one variant; bounds that differ count as their maximum.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunDelivery {
    /// The variant.
    pub variant: String,
    /// Sent events.
    pub sent: u64,
    /// Events that never arrived.
    pub lost: u64,
    /// Arrivals beyond the expected copies.
    pub duplicated: u64,
    /// Events that arrived after a later one.
    pub reordered: u64,
    /// Arrivals with a changed text.
    pub damaged: u64,
}

/// Collects the runs of one experiment.
#[derive(Debug)]
pub struct RunCollector {
    points_max: usize,
    variants: Vec<String>,
    /// True if runs with one number are a pair.
    is_paired: bool,
    span: Option<TimeSpan>,
    runs: Vec<(usize, (RunStage, u32), RunLines)>,
    profiles: ProfileCollector,
    result: ExperimentRuns,
}

/// A name and the points of its line.
type NamedLine = (String, Vec<(f64, f64)>);

impl RunCollector {
    /// Returns an empty collector; lines have at most `points_max` points.
    pub fn new(
        experiment: &str,
        variants: impl IntoIterator<Item = String>,
        points_max: usize,
    ) -> Self {
        Self {
            points_max,
            variants: variants.into_iter().collect(),
            is_paired: true,
            span: None,
            runs: Vec::new(),
            profiles: ProfileCollector::default(),
            result: ExperimentRuns {
                experiment: experiment.to_owned(),
                ..ExperimentRuns::default()
            },
        }
    }

    /// Returns an empty collector of sides that were not run together.
    pub fn unpaired(sides: impl IntoIterator<Item = String>, points_max: usize) -> Self {
        Self {
            is_paired: false,
            ..Self::new("", sides, points_max)
        }
    }

    /// Adds the wall clock at the start and end of a run.
    pub fn add_time(&mut self, manifest: &Manifest) {
        if let Some((start, end)) = manifest.wall_millis() {
            let (first, last) = self.result.wall_millis.unwrap_or((start, end));
            self.result.wall_millis = Some((first.min(start), last.max(end)));
        }
    }

    /// Adds the facts of the valid runs.
    pub fn add_summaries<'a>(&mut self, summaries: impl IntoIterator<Item = &'a RunSummary>) {
        let mut environment: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let mut delivery: BTreeMap<usize, RunDelivery> = BTreeMap::new();
        let mut counts = vec![0; self.variants.len()];
        for run in summaries {
            let Some(variant) = self.variant_of(run) else {
                continue;
            };
            counts[variant] += 1;
            let steal = run.figures.steal_share.into_iter();
            self.result.steal_max = steal.chain(self.result.steal_max).max_by(f64::total_cmp);
            for (fact, value) in &run.environment {
                environment.entry(fact).or_default().insert(value);
            }
            for ledger in run
                .figures
                .ledger
                .iter()
                .flat_map(|ledger| &ledger.generators)
            {
                let sum = delivery.entry(variant).or_default();
                sum.sent += ledger.sent;
                sum.lost += ledger.lost.most;
                sum.duplicated += ledger.duplicated.most;
                sum.reordered += ledger.reordered;
                sum.damaged += ledger.damaged;
            }
        }
        self.result.valid = counts.into_iter().max().unwrap_or(0);
        let delivery = delivery.into_iter().map(|(index, sum)| RunDelivery {
            variant: self.variants[index].clone(),
            ..sum
        });
        self.result.delivery = delivery.collect();
        let environment = environment.into_iter().map(|(fact, values)| {
            let values = values.into_iter().map(str::to_owned).collect();
            (fact.to_owned(), values)
        });
        self.result.environment = environment.collect();
    }

    /// Adds the numbers of all runs, whether they are valid or not: those of their summaries, and of
    /// the goals of their experiment.
    pub fn add_values(&mut self, summaries: &[RunSummary], goals: &[GoalPlan]) {
        let goals = goals.iter().map(|goal| &goal.metric);
        let measured = summaries.iter().flat_map(|run| {
            let metrics = run.values.keys().chain(goals.clone());
            metrics.filter(move |metric| run.value(metric).is_some())
        });
        let metrics: BTreeSet<&GoalMetric> = measured.collect();
        let metrics: Vec<GoalMetric> = metrics.into_iter().cloned().collect();
        for run in summaries {
            let Some(identity) = &run.identity else {
                continue;
            };
            let value = |metric| match run.warning_about(metric) {
                None if run.outcome.is_completed() => run.value(metric),
                _ => None,
            };
            self.result.values.push(RunValues {
                stage: identity.stage,
                pair: identity.pair,
                variant: identity.variant.clone(),
                values: metrics.iter().map(value).collect(),
            });
        }
        self.result.metrics = metrics;
    }

    fn variant_of(&self, run: &RunSummary) -> Option<usize> {
        let name = &run.identity.as_ref()?.variant;
        self.variants.iter().position(|variant| variant == name)
    }

    /// Adds the lines of a run; a capture without a measured phase has none.
    pub fn add_capture(&mut self, capture: &Capture) {
        let manifest = &capture.manifest;
        let Some(identity) = &manifest.identity else {
            return;
        };
        let variant = self
            .variants
            .iter()
            .position(|name| *name == identity.variant);
        if let Some(variant) = variant {
            self.add_capture_of(variant, capture);
        }
    }

    /// Adds the lines of a run of the variant or side with this index.
    pub fn add_capture_of(&mut self, variant: usize, capture: &Capture) {
        let manifest = &capture.manifest;
        let (Some(identity), Some((start, _))) = (&manifest.identity, lines::load_of(manifest))
        else {
            return;
        };
        if self.span.is_none() {
            self.span = TimeSpan::of(capture, self.points_max);
        }
        if let Some(span) = &self.span {
            let lines = RunLines::of(capture, span, start);
            self.runs
                .push((variant, (identity.stage, identity.pair), lines));
        }
    }

    /// Adds the profiles of a run. Amounts are divided by the events of its measured time.
    pub fn add_profiles(&mut self, run: &RunSummary, stored: &RunProfiles) {
        let (Some(variant), Some(events_per_second)) =
            (self.variant_of(run), profiles::work_rate(run))
        else {
            return;
        };
        let work = RunWork {
            events_per_second,
            measured_ns: stored.measured_ns,
        };
        let (files, unreadable) = profiles::read(run, stored);
        let known = &mut self.result.profiles.unreadable;
        *known = known.take().or(unreadable);
        self.profiles
            .add_run(&self.variants[variant], &files, &work);
    }

    /// Returns the charts and facts.
    #[must_use]
    pub fn finish(mut self) -> ExperimentRuns {
        let of_variant = |index: usize| self.runs.iter().filter(move |run| run.0 == index);
        let counts = (0..self.variants.len()).map(|index| of_variant(index).count());
        self.result.drawn = counts.max().unwrap_or(0);
        if let Some(span) = &self.span {
            let mut curves = Vec::new();
            for (quantity, head) in QUANTITIES.iter().enumerate() {
                // Sent bytes repeat the received ones, unless there is no sink.
                let is_repeated = head.is_fallback && !curves.is_empty();
                curves.extend(
                    (!is_repeated)
                        .then(|| self.over_time(span, quantity))
                        .flatten(),
                );
            }
            curves.extend(self.percentiles());
            curves.extend(self.is_paired.then(|| self.shift()).flatten());
            self.result.curves = curves;
        }
        if let [baseline, compared @ ..] = self.variants.as_slice() {
            let compared = compared
                .iter()
                .map(|variant| (variant.clone(), self.profiles.compare(baseline, variant)));
            let compared = compared.filter(|(_, comparisons)| !comparisons.is_empty());
            self.result.profiles.comparisons = compared.collect();
        }
        self.result
    }

    fn over_time(&self, span: &TimeSpan, quantity: usize) -> Option<Curve> {
        let head = &QUANTITIES[quantity];
        let place = |bin: usize| span.middle(bin);
        let value = |run: &RunLines, bin: usize| run.lines[quantity].get(bin).copied().flatten();
        let (series, bands) = self.of_variants(span.bins, place, value);
        (!series.is_empty()).then(|| Curve {
            scales: (AxisScale::Linear, head.scale),
            x: ("time".to_owned(), "s"),
            y: (head.name.to_owned(), head.unit),
            series,
            bands,
            shades: span.shades.clone(),
            marks: Vec::new(),
        })
    }

    fn percentiles(&self) -> Option<Curve> {
        let value = |run: &RunLines, place: usize| run.percentiles.get(place).copied();
        let (series, bands) = self.of_variants(lines::PERCENTILES, lines::inverse, value);
        (!series.is_empty()).then(|| Curve {
            scales: (AxisScale::Percentiles, AxisScale::Log),
            x: ("percentile".to_owned(), ""),
            y: ("latency".to_owned(), "ns"),
            series,
            bands,
            ..Curve::default()
        })
    }

    /// Returns the change of each latency percentile within pairs, of the second variant against the first.
    fn shift(&self) -> Option<Curve> {
        let of = |variant: usize| {
            let runs = self.runs.iter().filter(move |run| run.0 == variant);
            runs.map(|(_, pair, lines)| (*pair, &lines.percentiles))
        };
        let baseline: BTreeMap<_, _> = of(0).collect();
        let mut line = Vec::new();
        let mut band = Vec::new();
        for place in 0..lines::PERCENTILES {
            let changes = of(1).filter_map(|(pair, comparison)| {
                let before = baseline.get(&pair)?.get(place)?;
                Some(comparison.get(place)? / before - 1.0)
            });
            let Some((low, middle, high)) = spread(changes.collect(), self.result.drawn) else {
                break;
            };
            let x = lines::inverse(place);
            line.push((x, middle));
            band.push((x, low, high));
        }
        let name = format!(
            "{} against {}",
            self.variants.get(1)?,
            self.variants.first()?
        );
        (!line.is_empty()).then(|| Curve {
            scales: (AxisScale::Percentiles, AxisScale::Linear),
            x: ("percentile".to_owned(), ""),
            y: ("change in latency".to_owned(), "share"),
            series: vec![(name, line)],
            bands: vec![Band {
                series: 0,
                points: band,
            }],
            ..Curve::default()
        })
    }

    /// Returns a line and a band for each variant: median, minimum and maximum over its runs at each place.
    fn of_variants(
        &self,
        places: usize,
        x: impl Fn(usize) -> f64,
        value: impl Fn(&RunLines, usize) -> Option<f64>,
    ) -> (Vec<NamedLine>, Vec<Band>) {
        let (mut all, mut bands) = (Vec::new(), Vec::new());
        for (index, name) in self.variants.iter().enumerate() {
            let runs: Vec<&RunLines> = self
                .runs
                .iter()
                .filter(|run| run.0 == index)
                .map(|run| &run.2)
                .collect();
            let (mut line, mut points) = (Vec::new(), Vec::new());
            for place in 0..places {
                let values = runs.iter().filter_map(|run| value(run, place)).collect();
                if let Some((low, middle, high)) = spread(values, runs.len()) {
                    line.push((x(place), middle));
                    points.push((x(place), low, high));
                }
            }
            if !line.is_empty() {
                bands.push(Band {
                    series: all.len(),
                    points,
                });
                all.push((name.clone(), line));
            }
        }
        (all, bands)
    }
}

/// Returns minimum, median and maximum; `None` if less than half of `expected` values are finite.
fn spread(mut values: Vec<f64>, expected: usize) -> Option<(f64, f64, f64)> {
    values.retain(|value| value.is_finite());
    values.sort_by(f64::total_cmp);
    if values.is_empty() || values.len() * 2 < expected {
        return None;
    }
    let middle = values.len() / 2;
    let median = f64::midpoint(values[middle], values[(values.len() - 1) / 2]);
    Some((*values.first()?, median, *values.last()?))
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn the_middle_of_an_even_number_is_between_two_values() {
        let values = |values: &[f64], expected| spread(values.to_vec(), expected);
        assert_eq!(values(&[4.0, 1.0, 3.0, 2.0], 4), Some((1.0, 2.5, 4.0)));
        assert_eq!(values(&[5.0, f64::NAN, 1.0, 2.0], 4), Some((1.0, 2.0, 5.0)));
        assert_eq!(values(&[5.0], 4), None);
        assert_eq!(values(&[], 0), None);
    }
}
