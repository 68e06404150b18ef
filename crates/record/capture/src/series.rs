//! Series as the reading half sees them.

use std::collections::BTreeMap;

use stillwell_metric::{Kind, Labels, Metric, SeriesName, Value};
use stillwell_plan::Phase;
use stillwell_units::Moment;

/// All series of a capture.
#[derive(Debug, Default)]
pub struct SeriesTable {
    series: BTreeMap<(SeriesName, Labels), Series>,
}

/// One series.
#[derive(Debug)]
pub struct Series {
    /// Behaviour of the values.
    pub kind: Kind,
    /// Its values, in the order of time.
    pub points: Vec<Point>,
}

/// One value of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// When it was taken.
    pub moment: Moment,
    /// In which phase.
    pub phase: Phase,
    /// The value.
    pub value: Value,
}

impl SeriesTable {
    /// Adds a point; points come in the order of time.
    pub fn push(&mut self, name: SeriesName, kind: Kind, labels: Labels, point: Point) {
        self.series
            .entry((name, labels))
            .or_insert_with(|| Series {
                kind,
                points: Vec::new(),
            })
            .points
            .push(point);
    }

    /// All of them, by name and labels.
    pub fn iter(&self) -> impl Iterator<Item = (&SeriesName, &Labels, &Series)> {
        self.series
            .iter()
            .map(|((name, labels), series)| (name, labels, series))
    }

    /// The series of a metric, one per set of labels.
    pub fn of(&self, metric: Metric) -> impl Iterator<Item = (&Labels, &Series)> {
        self.named(metric.name)
    }

    /// The series with this name, one per set of labels.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a Labels, &'a Series)> {
        let from = (SeriesName::recorded(name.to_owned()), Labels::none());
        self.series
            .range(from..)
            .take_while(move |((series, _), _)| series.as_str() == name)
            .map(|((_, labels), series)| (labels, series))
    }
}

impl Series {
    /// The first point taken at `moment` or after.
    #[must_use]
    pub fn at_or_after(&self, moment: Moment) -> Option<&Point> {
        let at = self.points.partition_point(|point| point.moment < moment);
        self.points.get(at)
    }

    /// Points taken between two moments, both included.
    #[must_use]
    pub fn between(&self, start: Moment, end: Moment) -> &[Point] {
        let from = self.points.partition_point(|point| point.moment < start);
        let to = self.points.partition_point(|point| point.moment <= end);
        &self.points[from..to.max(from)]
    }
}
