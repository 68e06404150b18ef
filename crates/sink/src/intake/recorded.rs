//! Series of metrics that a sink received and records for the capture.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use stillwell_metric::{Kind, Labels, Sample, SeriesName, Shard, Value};
use stillwell_plan::SeriesRecord;
use stillwell_units::{float_from_u64, floor_to_u64};

/// Series at most; more are passed over, so that a subject that makes up tags
/// does not fill the memory.
const SERIES_MAX: usize = 100_000;

/// The series of one sink, whatever worker received them.
#[derive(Debug)]
pub(crate) struct Recorded {
    sink: String,
    /// Only these, where any are named.
    names: Option<Vec<String>>,
    series: Mutex<BTreeMap<(String, Labels), Series>>,
}

#[derive(Clone, Copy, Debug)]
struct Series {
    kind: Kind,
    /// A total, or the value of the latest point.
    value: f64,
    /// When the latest point of a gauge was.
    seconds: u64,
}

/// One point of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Point {
    pub(super) value: f64,
    /// Since 1970.
    pub(super) seconds: u64,
}

/// How the points of a series behave.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum PointKind {
    /// Each is a number of things since the point before.
    Count,
    /// The same, each second.
    Rate { interval_seconds: u64 },
    /// Each is a value of its moment.
    Gauge,
}

impl Recorded {
    /// For the sink called `sink`; `None` where nothing is to be recorded.
    pub(crate) fn new(sink: &str, record: &SeriesRecord) -> Option<Self> {
        let names = match record {
            SeriesRecord::None => return None,
            SeriesRecord::All => None,
            SeriesRecord::Named(names) => Some(names.clone()),
        };
        Some(Self {
            sink: sink.to_owned(),
            names,
            series: Mutex::default(),
        })
    }

    /// Takes in points of the series `name` with `tags`, each `key:value` or a bare
    /// key.
    pub(super) fn take(&self, name: &str, tags: &[&str], kind: PointKind, points: &[Point]) {
        let is_wanted = |names: &Vec<String>| names.iter().any(|wanted| wanted == name);
        if points.is_empty() || !self.names.as_ref().is_none_or(is_wanted) {
            return;
        }
        let pairs = tags
            .iter()
            .map(|tag| tag.split_once(':').unwrap_or((tag, "")));
        let labels: Labels = pairs
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        let labels = labels.with("source", self.sink.as_str());
        // Whoever panicked with the lock in hand left whole values.
        let mut all = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (name.to_owned(), labels);
        if all.len() >= SERIES_MAX && !all.contains_key(&key) {
            return;
        }
        let series = all.entry(key).or_insert_with(|| Series::new(kind));
        for point in points.iter().filter(|point| point.value.is_finite()) {
            series.take(kind, *point);
        }
    }
}

impl Series {
    const fn new(kind: PointKind) -> Self {
        Self {
            kind: match kind {
                PointKind::Count | PointKind::Rate { .. } => Kind::Counter,
                PointKind::Gauge => Kind::Gauge,
            },
            value: 0.0,
            seconds: 0,
        }
    }

    fn take(&mut self, kind: PointKind, point: Point) {
        match kind {
            PointKind::Count => self.value += point.value,
            PointKind::Rate { interval_seconds } => {
                self.value += point.value * float_from_u64(interval_seconds);
            }
            PointKind::Gauge if point.seconds >= self.seconds => {
                self.value = point.value;
                self.seconds = point.seconds;
            }
            PointKind::Gauge => {}
        }
    }
}

impl Shard for Recorded {
    fn sample(&self, samples: &mut Vec<Sample>) {
        let all = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        samples.extend(all.iter().map(|((name, labels), series)| Sample {
            name: SeriesName::scraped(name),
            kind: series.kind,
            labels: labels.clone(),
            value: match series.kind {
                Kind::Counter => Value::Int(floor_to_u64(series.value.round())),
                Kind::Gauge | Kind::Histogram => Value::Float(series.value),
            },
        }));
    }
}
