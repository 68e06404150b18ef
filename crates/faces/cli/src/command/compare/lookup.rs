//! One number of one run.

use stillwell_lading::capture::LadingSeries;
use stillwell_metric::{Kind, Unit};
use stillwell_others::results::Figure;
use stillwell_plan::{Direction, GoalMetric, Reduction};
use stillwell_verdict::{Measured, RunSummary};

use super::goals::{self, LadingGoal, SeriesName};
use super::read::{Run, Source, UNNAMED};
use super::saved::Saved;

/// A number, and what is known of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Number {
    pub(super) value: f64,
    pub(super) unit: Unit,
    pub(super) per_second: bool,
    pub(super) better: Option<Direction>,
}

/// Why there is no number.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Missing {
    /// Nothing of this name was recorded.
    Unknown,
    /// It was, and there is no number for this reason.
    Because(String),
}

impl Run {
    /// The number of this name.
    pub(super) fn number(&self, name: &str) -> Result<Number, Missing> {
        let number = match &self.source {
            Source::Saved(saved) => of_saved(saved, name),
            Source::Lading {
                run, from_millis, ..
            } => {
                let series = |metric: &str, id: Option<&str>| run.series(metric, id);
                of_lading(name, *from_millis, series)
            }
            Source::Result(_, figures) => of_figures(figures, name),
            // A column without a name is whatever it is said to be.
            Source::Row(figures) => match figures.as_slice() {
                [only] if only.name == UNNAMED => Ok(of_figure(only)),
                _ => of_figures(figures, name),
            },
        }?;
        if number.value.is_finite() {
            Ok(number)
        } else {
            Err(Missing::Because("it is not a finite number".to_owned()))
        }
    }

    /// What is compared unasked, what matters most first.
    pub(super) fn usual_names(&self) -> Vec<String> {
        match &self.source {
            Source::Saved(saved) if !saved.goals.is_empty() => {
                let goals = saved.goals.iter();
                goals.map(|goal| goal.metric.name().into_owned()).collect()
            }
            Source::Saved(_) => {
                let all = GoalMetric::ALL.iter();
                all.map(|goal| goal.name().into_owned()).collect()
            }
            Source::Lading { .. } => goals::LADING_DEFAULTS.map(str::to_owned).to_vec(),
            Source::Result(_, figures) | Source::Row(figures) => {
                let shown = figures.iter().filter(|figure| figure.shown);
                shown.map(|figure| figure.name.clone()).collect()
            }
        }
    }

    /// Everything that could be asked for.
    pub(super) fn all_names(&self) -> Vec<String> {
        match &self.source {
            Source::Saved(saved) => {
                let goals = saved.summary.values.keys();
                let goals = goals.map(|goal| goal.name().into_owned());
                goals.chain(saved.summary.series.keys().cloned()).collect()
            }
            Source::Lading { metrics, .. } => {
                let goals = goals::LADING_DEFAULTS.map(str::to_owned);
                goals.into_iter().chain(metrics.iter().cloned()).collect()
            }
            Source::Result(_, figures) | Source::Row(figures) => {
                figures.iter().map(|figure| figure.name.clone()).collect()
            }
        }
    }
}

fn of_saved(saved: &Saved, name: &str) -> Result<Number, Missing> {
    let summary = &saved.summary;
    if !summary.outcome.is_completed() {
        return Err(Missing::Because("the run did not complete".to_owned()));
    }
    let goal = name.parse::<GoalMetric>().ok();
    let goal = goal.or_else(|| recorded_series(summary, name));
    let goal = goal.ok_or(Missing::Unknown)?;
    if let Some(doubt) = summary.doubt_about(&goal) {
        return Err(Missing::Because(doubt.to_string()));
    }
    let (unit, per_second) = goals::unit_of(&goal);
    match summary.measured(&goal) {
        Measured::Value(value) => Ok(Number {
            value,
            unit,
            per_second,
            better: goal.direction(),
        }),
        Measured::Missing { reason } => Err(Missing::Because(reason)),
    }
}

/// The series that `name` means, with the reduction that suits it where none is
/// given.
fn recorded_series(summary: &RunSummary, name: &str) -> Option<GoalMetric> {
    let name = name.strip_prefix("series:").unwrap_or(name);
    let full = |name: &str| {
        let there = summary.series.contains_key(name);
        there
            .then(|| format!("series:{name}").parse().ok())
            .flatten()
    };
    full(name)
        .or_else(|| full(&format!("{name}:mean")))
        .or_else(|| full(&format!("{name}:rate")))
}

fn of_lading<'s>(
    name: &str,
    from_millis: u64,
    series: impl Fn(&str, Option<&str>) -> Option<&'s LadingSeries>,
) -> Result<Number, Missing> {
    if let Ok(goal) = name.parse::<GoalMetric>() {
        let own = goals::lading_goal(&goal).iter();
        let found = own
            .filter_map(|own| series(own.metric, None).map(|series| (own, series)))
            .find(|(_, series)| !series.ticks.is_empty());
        if let Some((
            LadingGoal {
                reduction, scale, ..
            },
            series,
        )) = found
        {
            let value = reduced(series, *reduction, from_millis)? * scale;
            let (unit, per_second) = goals::unit_of(&goal);
            let better = goal.direction();
            return Ok(Number {
                value,
                unit,
                per_second,
                better,
            });
        }
    }
    let name = SeriesName::parse(name);
    let series = series(name.metric, name.id).ok_or(Missing::Unknown)?;
    let reduction = match (name.reduction, series.kind) {
        (Some(reduction), _) => reduction,
        (None, Kind::Counter) => Reduction::Rate,
        (None, _) => Reduction::Mean,
    };
    let unit = if name.metric.contains("bytes") {
        Unit::Bytes
    } else {
        Unit::Unknown
    };
    Ok(Number {
        value: reduced(series, reduction, from_millis)?,
        unit,
        per_second: reduction == Reduction::Rate,
        better: None,
    })
}

fn reduced(series: &LadingSeries, reduction: Reduction, from_millis: u64) -> Result<f64, Missing> {
    let because = |text: &str| Missing::Because(text.to_owned());
    if series.kind == Kind::Histogram {
        return Err(because("the sketches of lading's histograms are not read"));
    }
    let value = match reduction {
        Reduction::Mean => series.mean(from_millis),
        Reduction::Peak => series.peak(from_millis),
        Reduction::Rate => series.rate(from_millis),
        Reduction::PerEvent => {
            return Err(because(
                "a capture of lading does not say how many events were sent",
            ));
        }
    };
    value.map_err(|problem| Missing::Because(problem.to_string()))
}

fn of_figures(figures: &[Figure], name: &str) -> Result<Number, Missing> {
    let figure = figures.iter().find(|figure| figure.name == name);
    figure.map(of_figure).ok_or(Missing::Unknown)
}

const fn of_figure(figure: &Figure) -> Number {
    Number {
        value: figure.value,
        unit: figure.unit.unit,
        per_second: figure.unit.per_second,
        better: figure.better,
    }
}
