//! Series of metrics that a sink received and records for the capture.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use stillwell_metric::{Kind, Labels, Sample, SeriesName, Shard, Value, catalogue};
use stillwell_plan::sink::SeriesRecord;
use stillwell_units::{float_from_u64, floor_to_u64};

/// Series at most; more are skipped and counted: a target that makes up tags does not
/// fill the memory.
const SERIES_MAX: usize = 100_000;

/// Reason why points are skipped, as their count is labelled.
const REASONS: [&str; 3] = ["too_many", "untyped", "no_number"];
/// There are too many series already.
const TOO_MANY: usize = 0;
/// Nothing says how the values of their series behave.
const UNTYPED: usize = 1;
/// Their values are infinite or no numbers.
const NO_NUMBER: usize = 2;

/// The series of one sink, received by any worker.
#[derive(Debug)]
pub(crate) struct Recorded {
    sink: String,
    /// Only these, where any are named.
    names: Option<Vec<String>>,
    received: Mutex<Received>,
}

#[derive(Debug, Default)]
struct Received {
    series: BTreeMap<(String, Labels), Series>,
    /// Points that were skipped, by [`REASONS`].
    passed_over: [u64; REASONS.len()],
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

/// Kind of the points of a series.
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
            received: Mutex::default(),
        })
    }

    /// Takes in points of the series `name` with `tags`, each `key:value` or a bare key.
    /// Without a `kind`, or beyond the most series, they are skipped.
    pub(super) fn take(
        &self,
        name: &str,
        tags: &[&str],
        kind: Option<PointKind>,
        points: &[Point],
    ) {
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
        let mut received = self.received();
        let Received {
            series,
            passed_over,
        } = &mut *received;
        let Some(kind) = kind else {
            passed_over[UNTYPED] += points.len() as u64;
            return;
        };
        let key = (name.to_owned(), labels);
        if series.len() >= SERIES_MAX && !series.contains_key(&key) {
            passed_over[TOO_MANY] += points.len() as u64;
            return;
        }
        let is_number = |point: &&Point| point.value.is_finite();
        let numbers = points.iter().filter(is_number).count();
        passed_over[NO_NUMBER] += (points.len() - numbers) as u64;
        if numbers == 0 {
            // A series of which nothing is known has no value, not even 0.
            return;
        }
        let series = series.entry(key).or_insert_with(|| Series::new(kind));
        for point in points.iter().filter(is_number) {
            series.take(kind, *point);
        }
    }

    fn received(&self) -> MutexGuard<'_, Received> {
        // A thread that panicked with the lock in hand left whole values.
        let received = self.received.lock();
        received.unwrap_or_else(PoisonError::into_inner)
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
        let received = self.received();
        let all = received.series.iter();
        samples.extend(all.map(|((name, labels), series)| Sample {
            name: SeriesName::scraped(name),
            kind: series.kind,
            labels: labels.clone(),
            value: match series.kind {
                Kind::Counter => Value::Int(floor_to_u64(series.value.round())),
                Kind::Gauge | Kind::Histogram => Value::Float(series.value),
            },
        }));
        for (reason, points) in REASONS.iter().zip(received.passed_over) {
            if points > 0 {
                let labels = Labels::none()
                    .with("component", "sink")
                    .with("component_name", "datadog")
                    .with("id", self.sink.as_str())
                    .with("reason", *reason);
                samples.push(Sample::int(catalogue::POINTS_SKIPPED, &labels, points));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed_over(recorded: &Recorded) -> Vec<(String, Value)> {
        let mut samples = Vec::new();
        recorded.sample(&mut samples);
        let name = catalogue::POINTS_SKIPPED.into();
        let sample_of_name = samples.iter().filter(|sample| sample.name == name);
        let reason = |sample: &Sample| sample.labels.value("reason").unwrap().to_owned();
        sample_of_name
            .map(|sample| (reason(sample), sample.value.clone()))
            .collect()
    }

    #[test]
    fn series_beyond_100_000_are_not_passed_over_silently() {
        let recorded = Recorded::new("intake", &SeriesRecord::All).unwrap();
        let points = [Point::default(); 2];
        for number in 0..SERIES_MAX + 3 {
            recorded.take(&format!("s{number}"), &[], Some(PointKind::Gauge), &points);
        }
        // Those that are known go on.
        recorded.take("s7", &[], Some(PointKind::Gauge), &points);
        let expected = [("too_many".to_owned(), Value::Int(6))];
        assert_eq!(passed_over(&recorded), expected);
    }

    #[test]
    fn a_series_whose_points_are_no_numbers_is_not_recorded_as_0() {
        let recorded = Recorded::new("intake", &SeriesRecord::All).unwrap();
        let none = Point {
            value: f64::INFINITY,
            seconds: 1,
        };
        recorded.take("a", &[], Some(PointKind::Gauge), &[none]);
        let mut samples = Vec::new();
        recorded.sample(&mut samples);
        let names: Vec<&str> = samples.iter().map(|sample| sample.name.as_str()).collect();
        assert_eq!(names, ["points_skipped"]);
    }

    #[test]
    fn points_without_type_or_number_are_not_passed_over_silently() {
        let named = SeriesRecord::Named(vec!["a".to_owned()]);
        let recorded = Recorded::new("intake", &named).unwrap();
        let none = Point {
            value: f64::NAN,
            seconds: 1,
        };
        recorded.take("a", &[], Some(PointKind::Count), &[none, Point::default()]);
        recorded.take("a", &[], None, &[Point::default(); 4]);
        let mut samples = Vec::new();
        recorded.sample(&mut samples);
        let name = SeriesName::scraped("a");
        assert!(samples.iter().any(|sample| sample.name == name));
        // No test needs this one.
        recorded.take("b", &[], None, &[Point::default()]);
        let expected = [("untyped", 4), ("no_number", 1)];
        let expected = expected.map(|(reason, points)| (reason.to_owned(), Value::Int(points)));
        assert_eq!(passed_over(&recorded), expected);
    }
}
