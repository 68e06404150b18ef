//! Content of a capture in numbers, for `captool`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use stillwell_metric::{Kind, Labels, Value};
use stillwell_units::float_from_u64;

use super::{LadingError, visit_lading};

/// The metrics of a capture.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricList {
    /// Their kinds, by name.
    pub metrics: BTreeMap<String, Kind>,
    /// Reason for a missing end, if the writer was killed.
    pub cut: Option<String>,
}

/// One metric of a capture.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricSurvey {
    /// Its name.
    pub metric: String,
    /// Its series, by run and labels.
    pub series: BTreeMap<(String, Labels), SeriesSurvey>,
    /// Reason for a missing end, if the writer was killed.
    pub cut: Option<String>,
}

/// One series of a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesSurvey {
    /// Its smallest value; infinite where it has none.
    pub min: f64,
    /// Its largest value; infinite where it has none.
    pub max: f64,
    /// The mean of its values.
    pub mean: f64,
    /// No value is smaller than the one before.
    pub is_monotonic: bool,
    /// Its values with their ticks, if requested.
    pub values: Vec<(u64, Value)>,
    count: u64,
    last: f64,
}

/// Lists the metrics of the capture at `path`.
///
/// # Errors
/// [`LadingError`] with the file, and the line if there is one.
pub fn list_metrics(path: &Path) -> Result<MetricList, LadingError> {
    let mut metrics = BTreeMap::new();
    let cut = visit_lading(path, &mut |row| {
        metrics.entry(row.metric).or_insert(row.kind);
    })?;
    Ok(MetricList { metrics, cut })
}

/// Surveys each series of `metric` in the capture at `path`. For a histogram, the values count ticks and are
/// not numbers.
///
/// # Errors
/// [`LadingError`] with the file, and the line if there is one.
pub fn survey_metric(
    path: &Path,
    metric: &str,
    keep_values: bool,
) -> Result<MetricSurvey, LadingError> {
    let mut survey = MetricSurvey {
        metric: metric.to_owned(),
        ..MetricSurvey::default()
    };
    survey.cut = visit_lading(path, &mut |row| {
        if row.metric != metric {
            return;
        }
        let series = survey.series.entry((row.run_id, row.labels));
        let series = series.or_insert_with(SeriesSurvey::new);
        series.add(&row.value);
        if keep_values {
            series.values.push((row.tick, row.value));
        }
    })?;
    Ok(survey)
}

impl SeriesSurvey {
    const fn new() -> Self {
        Self {
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            mean: 0.0,
            is_monotonic: true,
            values: Vec::new(),
            count: 0,
            last: f64::NEG_INFINITY,
        }
    }

    fn add(&mut self, value: &Value) {
        // As lading has it, a histogram is zero.
        let value = value.number().unwrap_or(0.0);
        self.count += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.mean += (value - self.mean) / float_from_u64(self.count);
        self.is_monotonic &= value >= self.last;
        self.last = value;
    }
}

/// One line for each metric: the letter of its kind and its name.
impl fmt::Display for MetricList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, kind) in &self.metrics {
            let letter = match kind {
                Kind::Counter => 'c',
                Kind::Gauge => 'g',
                Kind::Histogram => 'h',
            };
            writeln!(f, "{letter}: {name}")?;
        }
        Ok(())
    }
}

/// One line for each series, with its values below it if they were kept.
impl fmt::Display for MetricSurvey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ((_, labels), series) in &self.series {
            let labels = labels.iter().map(|(key, value)| format!("{key}:{value}"));
            let labels = labels.collect::<Vec<_>>().join(",");
            writeln!(
                f,
                "{}[{labels}]: min: {}, mean: {}, max: {}, is_monotonic: {}",
                self.metric, series.min, series.mean, series.max, series.is_monotonic
            )?;
            for (tick, value) in &series.values {
                match value {
                    Value::Int(value) => writeln!(f, "{tick}: {value}")?,
                    Value::Float(value) => writeln!(f, "{tick}: {value}")?,
                    Value::Histogram(_) => writeln!(f, "{tick}: [hist]")?,
                }
            }
        }
        Ok(())
    }
}
