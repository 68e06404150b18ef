//! One number of one run.

use stillwell_lading::capture::LadingSeries;
use stillwell_metric::{Kind, Unit, catalogue};
use stillwell_others::results::Figure;
use stillwell_plan::GoalMetric;
use stillwell_plan::goal::Reduction;
use stillwell_verdict::across::{ComparableRun, Missing, RunNumber, SavedRun, unit_of};

use crate::goals::{self, LadingGoal, SeriesName};
use crate::read::{Run, Source, UNNAMED};

impl ComparableRun for Run {
    fn label(&self) -> &str {
        &self.label
    }

    fn experiment(&self) -> Option<&str> {
        self.experiment.as_deref()
    }

    fn variant(&self) -> Option<&str> {
        self.variant.as_deref()
    }

    fn tool(&self) -> &'static str {
        match &self.source {
            Source::Saved(_) => "Stillwell",
            Source::Lading { .. } => "lading",
            Source::Result(tool, _) => tool.name(),
            Source::Row(_) => "",
        }
    }

    fn saved(&self) -> Option<&SavedRun> {
        match &self.source {
            Source::Saved(saved) => Some(saved),
            _ => None,
        }
    }

    fn number(&self, name: &str) -> Result<RunNumber, Missing> {
        let number = match &self.source {
            Source::Saved(saved) => saved.number(name),
            Source::Lading {
                run, from_millis, ..
            } => {
                let series = |metric: &str, id: Option<&str>| run.series(metric, id);
                of_lading(name, *from_millis, series)
            }
            Source::Result(_, figures) => of_figures(figures, name),
            // A column without a name matches every name.
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

    fn usual_names(&self) -> Vec<String> {
        match &self.source {
            Source::Saved(saved) => saved.usual_names(),
            Source::Lading { .. } => goals::LADING_DEFAULTS.map(str::to_owned).to_vec(),
            Source::Result(_, figures) | Source::Row(figures) => {
                let shown = figures.iter().filter(|figure| figure.shown);
                shown.map(|figure| figure.name.clone()).collect()
            }
        }
    }

    fn all_names(&self) -> Vec<String> {
        match &self.source {
            Source::Saved(saved) => saved.all_names(),
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

impl Run {
    /// Returns the name of the series by which memory is measured, if it is.
    pub(crate) fn memory_series(&self) -> Option<&'static str> {
        match &self.source {
            Source::Saved(saved) => {
                let is_measured = saved.number("memory").is_ok();
                is_measured.then_some(catalogue::TARGET_RSS.name)
            }
            Source::Lading { run, .. } => {
                let is_recorded = |goal: &&LadingGoal| {
                    let series = run.series(goal.metric, None);
                    series.is_some_and(|series| !series.ticks.is_empty())
                };
                let mut goals = goals::lading_goal(&GoalMetric::Memory).iter();
                goals.find(is_recorded).map(|goal| goal.metric)
            }
            Source::Result(..) | Source::Row(_) => None,
        }
    }
}

fn of_lading<'s>(
    name: &str,
    from_millis: u64,
    series: impl Fn(&str, Option<&str>) -> Option<&'s LadingSeries>,
) -> Result<RunNumber, Missing> {
    if let Ok(goal) = name.parse::<GoalMetric>() {
        let matched = goals::lading_goal(&goal)
            .iter()
            .filter_map(|goal| Some((goal, series(goal.metric, None)?)))
            .find(|(_, series)| !series.ticks.is_empty());
        if let Some((measure, recorded)) = matched {
            let scale = measure.scale(&series);
            let (unit, per_second) = match scale.is_share {
                true => (Unit::Ratio, false),
                false => unit_of(&goal),
            };
            let better = goal.direction();
            return Ok(RunNumber {
                value: reduced(recorded, measure.reduction, from_millis)? * scale.factor,
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
    Ok(RunNumber {
        value: reduced(series, reduction, from_millis)?,
        unit,
        per_second: reduction == Reduction::Rate,
        better: None,
    })
}

fn reduced(series: &LadingSeries, reduction: Reduction, from_millis: u64) -> Result<f64, Missing> {
    let because = |text: &str| Missing::Because(text.to_owned());
    if series.kind == Kind::Histogram {
        return Err(because("histograms of lading captures are not supported"));
    }
    let value = match reduction {
        Reduction::Mean => series.mean(from_millis),
        Reduction::Peak => series.peak(from_millis),
        Reduction::Rate => series.rate(from_millis),
        Reduction::PerEvent => {
            return Err(because("a lading capture has no number of sent events"));
        }
    };
    value.map_err(|problem| Missing::Because(problem.to_string()))
}

fn of_figures(figures: &[Figure], name: &str) -> Result<RunNumber, Missing> {
    let figure = figures.iter().find(|figure| figure.name == name);
    figure.map(of_figure).ok_or(Missing::Unknown)
}

const fn of_figure(figure: &Figure) -> RunNumber {
    RunNumber {
        value: figure.value,
        unit: figure.unit.unit,
        per_second: figure.unit.per_second,
        better: figure.better,
    }
}
