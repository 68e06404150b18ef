//! Names of goals, and what they are in other tools' terms.

use std::iter;

use stillwell_lading::capture::{LadingSeries, SeriesWanted};
use stillwell_plan::GoalMetric;
use stillwell_plan::goal::Reduction;
use stillwell_units::Nanos;

/// lading's own warm-up where none is given.
pub(crate) const LADING_WARMUP: Nanos = Nanos::from_secs(30);

/// Default metrics of lading captures.
pub(crate) const LADING_DEFAULTS: [&str; 4] =
    ["ingress_throughput", "egress_throughput", "cpu", "memory"];

const INGRESS: [LadingGoal; 1] = [LadingGoal::new("bytes_written", Reduction::Rate, 1.0)];
const EGRESS: [LadingGoal; 2] = [
    LadingGoal::new("total_bytes_received", Reduction::Rate, 1.0),
    LadingGoal::new("bytes_received", Reduction::Rate, 1.0),
];
const CPU: [LadingGoal; 2] = [
    LadingGoal::new("total_cpu_usage_millicores", Reduction::Mean, 1e-3),
    LadingGoal {
        limit: Some("cpu_limit_millicores"),
        ..LadingGoal::new("total_cpu_percentage", Reduction::Mean, 1e-2)
    },
];
const MEMORY: [LadingGoal; 2] = [
    LadingGoal::new("total_pss_bytes", Reduction::Mean, 1.0),
    LadingGoal::new("total_rss_bytes", Reduction::Mean, 1.0),
];
const MEMORY_PEAK: [LadingGoal; 2] = [
    LadingGoal::new("total_pss_bytes", Reduction::Peak, 1.0),
    LadingGoal::new("total_rss_bytes", Reduction::Peak, 1.0),
];

/// A goal in terms of lading's series: the first of these that is recorded.
pub(crate) const fn lading_goal(metric: &GoalMetric) -> &'static [LadingGoal] {
    match metric {
        GoalMetric::IngressThroughput => &INGRESS,
        GoalMetric::EgressThroughput => &EGRESS,
        GoalMetric::Cpu => &CPU,
        GoalMetric::Memory => &MEMORY,
        GoalMetric::MemoryPeak => &MEMORY_PEAK,
        _ => &[],
    }
}

/// A series that measures a goal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LadingGoal {
    pub(crate) metric: &'static str,
    pub(crate) reduction: Reduction,
    /// Factor from the unit of the series to that of the goal, or to a share of the limit.
    scale: f64,
    /// Series of a limit in thousandths of the goal's unit, if the numbers are percent of that limit.
    limit: Option<&'static str>,
}

/// Factor from the unit of a series to that of its goal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct GoalScale {
    pub(crate) factor: f64,
    /// True if the result is a share of a limit that the capture does not have.
    pub(crate) is_share: bool,
}

impl GoalScale {
    /// Scale of a series in the unit of its goal.
    pub(crate) const NONE: Self = Self {
        factor: 1.0,
        is_share: false,
    };
}

impl LadingGoal {
    const fn new(metric: &'static str, reduction: Reduction, scale: f64) -> Self {
        Self {
            metric,
            reduction,
            scale,
            limit: None,
        }
    }

    /// Returns the scale in a capture with these series. A limit is constant in a run.
    pub(crate) fn scale<'s>(
        &self,
        series: impl Fn(&str, Option<&str>) -> Option<&'s LadingSeries>,
    ) -> GoalScale {
        let last_of = |limit| series(limit, None)?.ticks.last();
        let limit = self.limit.and_then(last_of);
        GoalScale {
            factor: self.scale * limit.map_or(1.0, |tick| tick.value / 1e3),
            is_share: self.limit.is_some() && limit.is_none(),
        }
    }
}

/// A series as a name says it: `NAME`, `NAME['ID']`, either with `:mean`,
/// `:peak`, `:rate` or `:per_event` behind.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct SeriesName<'n> {
    pub(crate) metric: &'n str,
    pub(crate) id: Option<&'n str>,
    pub(crate) reduction: Option<Reduction>,
}

impl<'n> SeriesName<'n> {
    pub(crate) fn parse(name: &'n str) -> Self {
        let name = name.strip_prefix("series:").unwrap_or(name);
        let all = [
            Reduction::Mean,
            Reduction::Peak,
            Reduction::PerEvent,
            Reduction::Rate,
        ];
        let (series, reduction) = match name.rsplit_once(':') {
            Some((series, word)) => {
                match all.into_iter().find(|reduction| reduction.name() == word) {
                    Some(reduction) => (series, Some(reduction)),
                    None => (name, None),
                }
            }
            None => (name, None),
        };
        let id = series
            .strip_suffix("']")
            .and_then(|rest| rest.split_once("['"));
        let (metric, id) = id.map_or((series, None), |(metric, id)| (metric, Some(id)));
        Self {
            metric,
            id,
            reduction,
        }
    }
}

/// The series of a capture of lading that these names need; all of the usual ones where
/// none is named.
pub(crate) fn lading_series(names: &[String]) -> SeriesWanted {
    let defaults = LADING_DEFAULTS.map(str::to_owned);
    let names = if names.is_empty() {
        defaults.as_slice()
    } else {
        names
    };
    // What the soak method goes by is always needed.
    let mut wanted = SeriesWanted::new().with("bytes_written", None);
    for name in names {
        match name.parse::<GoalMetric>() {
            Ok(goal) if !lading_goal(&goal).is_empty() => {
                let goals = lading_goal(&goal).iter();
                for metric in goals.flat_map(|goal| iter::once(goal.metric).chain(goal.limit)) {
                    wanted = wanted.with(metric, None);
                }
            }
            _ => {
                let series = SeriesName::parse(name);
                wanted = wanted.with(series.metric, series.id);
            }
        }
    }
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_series_are_taken_apart() {
        let name = |text| {
            let SeriesName {
                metric,
                id,
                reduction,
            } = SeriesName::parse(text);
            (metric, id, reduction)
        };
        assert_eq!(name("a"), ("a", None, None));
        assert_eq!(name("a:mean"), ("a", None, Some(Reduction::Mean)));
        assert_eq!(name("target/a:b"), ("target/a:b", None, None));
        assert_eq!(name("a['x:y']"), ("a", Some("x:y"), None));
        let full = ("a", Some("x"), Some(Reduction::Rate));
        assert_eq!(name("series:a['x']:rate"), full);
    }
}
