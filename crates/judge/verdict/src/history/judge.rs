//! Points in time, and where their level moved.

use stillwell_plan::GoalMetric;
use stillwell_plan::goal::{Direction, Scale};
use stillwell_stats::Sample;
use stillwell_stats::change::ChangePoint;
use stillwell_units::Tolerance;

use super::{
    Basis, HistoryPoint, Latest, Lead, Measurement, Method, Origin, POINTS_MIN, Role, Suspect,
    Trend, TrendOptions, TrendPoint, otava, permutation,
};
use crate::deltas::on_scale;

/// A place at which a method says that the level moved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) index: usize,
    pub(super) p_value: f64,
    /// Result of the method on the levels, if it has one.
    pub(super) plain: Option<ChangePoint>,
}

/// The trends of all experiments, in the order in which these appeared first,
/// and of each its metrics in the order of the options, or of the latest plan.
#[must_use]
pub fn trends(points: &[HistoryPoint], options: &TrendOptions) -> Vec<Trend> {
    let mut points: Vec<&HistoryPoint> = points.iter().collect();
    points.sort_by_key(|point| (point.origin.time_millis, &point.origin.run));
    let mut tests: Vec<(&str, &str)> = Vec::new();
    for point in &points {
        let test = (point.experiment.as_str(), point.comparison.as_str());
        if !tests.contains(&test) {
            tests.push(test);
        }
    }
    let of_test = |(experiment, comparison): (&str, &str)| -> Vec<Trend> {
        let item = points.iter().copied();
        let item = item.filter(|p| p.experiment == experiment && p.comparison == comparison);
        let item: Vec<&HistoryPoint> = item.collect();
        let metrics = metrics_of(&item, options);
        let metrics = metrics.into_iter();
        metrics
            .filter_map(|metric| trend(&item, &metric, options))
            .collect()
    };
    tests.into_iter().flat_map(of_test).collect()
}

/// The requested metrics, or the goals: of the latest result first.
fn metrics_of(points: &[&HistoryPoint], options: &TrendOptions) -> Vec<GoalMetric> {
    if !options.metrics.is_empty() {
        return options.metrics.clone();
    }
    let mut metrics = Vec::new();
    for point in points.iter().rev() {
        for measured in &point.measurements {
            if measured.role != Role::Recorded && !metrics.contains(&measured.metric) {
                metrics.push(measured.metric.clone());
            }
        }
    }
    metrics
}

fn trend(points: &[&HistoryPoint], metric: &GoalMetric, options: &TrendOptions) -> Option<Trend> {
    let measured = |point: &&HistoryPoint| {
        let item = point
            .measurements
            .iter()
            .find(|item| item.metric == *metric);
        Some((point.origin.clone(), item?.clone()))
    };
    let mut measured: Vec<(Origin, Measurement)> = points.iter().filter_map(measured).collect();
    if let Some(last) = options.last {
        measured.drain(..measured.len().saturating_sub(last));
    }
    let (first, last) = points.first().zip(points.last())?;
    let latest = measured.last()?.1.clone();
    let basis = basis(&measured);
    let points: Vec<TrendPoint> = measured
        .into_iter()
        .map(|(origin, measured)| TrendPoint {
            value: value(basis, &measured),
            origin,
            measured,
        })
        .collect();
    let mut trend = Trend {
        experiment: first.experiment.clone(),
        comparison: first.comparison.clone(),
        work: last.work,
        metric: metric.clone(),
        direction: latest.direction,
        scale: metric.scale(),
        tolerance: latest.tolerance,
        gates: latest.role == Role::Primary || !options.metrics.is_empty(),
        basis,
        stretches: stretches(points.iter().map(|point| &point.origin), basis),
        points,
        points_needed: POINTS_MIN,
        leads: Vec::new(),
        p_value: None,
        latest: Latest::TooFew,
    };
    trend.leads = match options.method {
        Method::Stillwell { alarm_rate } => {
            let tested = permutation::detect(&trend, alarm_rate);
            trend.p_value = tested.p_value;
            trend.points_needed = permutation::points_needed(alarm_rate);
            leads(&trend, tested.result, options.magnitude)
        }
        Method::Otava(otava) => {
            trend.stretches.truncate(1);
            let result = otava::detect(&trend, otava, options.magnitude);
            leads(&trend, result, 0.0)
        }
    };
    trend.latest = latest_state(&trend, options.method);
    Some(trend)
}

fn value(basis: Basis, measured: &Measurement) -> f64 {
    match (basis, measured.metric.scale()) {
        (Basis::Anchor, _) => measured.delta,
        (Basis::Level, Scale::Ratio) => measured.comparison_mean.ln(),
        (Basis::Level, Scale::Difference) => measured.comparison_mean,
    }
}

/// Against the anchor, where at least half of the points have one that stays for
/// long enough to see anything.
fn basis(measured: &[(Origin, Measurement)]) -> Basis {
    let origins = || measured.iter().map(|(origin, _)| origin);
    let enough = POINTS_MIN.min(measured.len());
    let starts = stretches(origins(), Basis::Anchor);
    let ends = starts.iter().skip(1).copied().chain([measured.len()]);
    let anchored: usize = starts
        .iter()
        .zip(ends)
        .filter(|(start, end)| end - **start >= enough && measured[**start].0.anchor.is_some())
        .map(|(start, end)| end - start)
        .sum();
    if anchored > 0 && 2 * anchored >= measured.len() {
        Basis::Anchor
    } else {
        Basis::Level
    }
}

/// Start of the points that are comparable with each other.
fn stretches<'a>(origins: impl Iterator<Item = &'a Origin>, basis: Basis) -> Vec<usize> {
    let key = |origin: &'a Origin| {
        let anchor = (basis == Basis::Anchor).then_some(origin.anchor.as_ref());
        (&origin.workload, anchor)
    };
    let mut before = None;
    let mut starts = Vec::new();
    for (index, origin) in origins.enumerate() {
        let now = Some(key(origin));
        if now != before {
            starts.push(index);
            before = now;
        }
    }
    starts
}

/// Changes between their neighbours, without those that are too small: the
/// smallest goes first, since its neighbours are judged again without it.
fn leads(trend: &Trend, mut result: Vec<Found>, magnitude: f64) -> Vec<Lead> {
    loop {
        let leads: Vec<Lead> = (0..result.len())
            .map(|place| lead(trend, &result, place))
            .collect();
        let smallest = leads
            .iter()
            .enumerate()
            .filter(|(_, lead)| magnitude > 0.0 && lead.change.abs() <= magnitude)
            .min_by(|(_, left), (_, right)| left.change.abs().total_cmp(&right.change.abs()));
        match smallest {
            Some((place, _)) => drop(result.remove(place)),
            None => return leads,
        }
    }
}

fn lead(trend: &Trend, result: &[Found], place: usize) -> Lead {
    let Found {
        index,
        p_value,
        plain,
    } = result[place];
    let bounds = trend.stretches.iter().copied();
    let neighbours = result.iter().map(|item| item.index);
    let marks = || bounds.clone().chain(neighbours.clone());
    let start = marks().filter(|mark| *mark < index).max().unwrap_or(0);
    let end = marks().filter(|mark| *mark > index).min();
    let end = end.unwrap_or(trend.points.len());
    let values = |points: &[TrendPoint]| points.iter().map(|item| item.value).collect::<Vec<f64>>();
    let (before, deviation_before) = level(&values(&trend.points[start..index]));
    let (after, deviation_after) = level(&values(&trend.points[index..end]));
    let plain = plain.unwrap_or_else(|| {
        let values = trend.plain_values();
        let (mean_before, standard_deviation_before) = level(&values[start..index]);
        let (mean_after, standard_deviation_after) = level(&values[index..end]);
        ChangePoint {
            index,
            mean_before,
            standard_deviation_before,
            mean_after,
            standard_deviation_after,
            p_value,
        }
    });
    let change = on_scale(trend.scale, after - before);
    let toward = match trend.direction {
        Direction::HigherIsBetter => -change,
        Direction::LowerIsBetter => change,
    };
    Lead {
        index,
        before,
        after,
        deviation_before,
        deviation_after,
        change,
        p_value,
        plain,
        worse: toward > 0.0,
        matters: is_as_large(change, trend.tolerance),
        suspects: suspects(&trend.points[index - 1].origin, &trend.points[index].origin),
    }
}

fn is_as_large(change: f64, tolerance: Tolerance) -> bool {
    change.abs() >= tolerance.share()
}

/// Mean and standard deviation of the values; 0 for the deviation of one.
fn level(values: &[f64]) -> (f64, f64) {
    // Every value is finite, and both sides of a lead have one.
    Sample::try_new(values, 1).map_or((f64::NAN, f64::NAN), |sample| {
        (sample.mean(), sample.standard_deviation().unwrap_or(0.0))
    })
}

fn suspects(before: &Origin, after: &Origin) -> Vec<Suspect> {
    let same = |left: &Option<String>, right: &Option<String>| left.is_some() && left == right;
    let mut suspects = Vec::new();
    if before.machine != after.machine {
        suspects.push(Suspect::OtherMachine);
    }
    if same(&before.executable, &after.executable) || same(&before.commit, &after.commit) {
        suspects.push(Suspect::SameProgram);
    }
    suspects
}

fn latest_state(trend: &Trend, method: Method) -> Latest {
    let can_report = match method {
        Method::Stillwell { alarm_rate } => permutation::can_report(trend, alarm_rate),
        Method::Otava(_) => trend.points.len() >= POINTS_MIN,
    };
    match trend.latest_lead() {
        Some(lead) if lead.worse => Latest::Worse,
        Some(_) => Latest::Better,
        None if can_report => Latest::Steady,
        None => Latest::TooFew,
    }
}
