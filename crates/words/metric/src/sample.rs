//! One value of one series, on its way into a capture.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use stillwell_units::Moment;

use crate::catalogue::{Kind, Metric};

/// The name of a series: one of the catalogue's, or one that the target gave.
#[derive(Clone, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct SeriesName(Cow<'static, str>);

impl SeriesName {
    /// The name of a series scraped from the target: `target/` and its own.
    #[must_use]
    pub fn scraped(name: &str) -> Self {
        Self(Cow::Owned(format!("target/{name}")))
    }

    /// A name in a capture.
    #[must_use]
    pub const fn recorded(name: String) -> Self {
        Self(Cow::Owned(name))
    }

    /// As text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Metric> for SeriesName {
    fn from(metric: Metric) -> Self {
        Self(Cow::Borrowed(metric.name))
    }
}

/// Labels of a series, sorted by key; keys are unique.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct Labels(Vec<(String, String)>);

impl Labels {
    /// No labels.
    #[must_use]
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// The same labels with `key` set to `value`.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<String>) -> Self {
        let value = value.into();
        match self.0.binary_search_by(|(k, _)| k.as_str().cmp(key)) {
            Ok(at) => self.0[at].1 = value,
            Err(at) => self.0.insert(at, (key.to_owned(), value)),
        }
        self
    }

    /// The value of `key`.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&str> {
        let at = self.0.binary_search_by(|(k, _)| k.as_str().cmp(key)).ok()?;
        Some(&self.0[at].1)
    }

    /// All of them, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v.as_str()))
    }
}

impl FromIterator<(String, String)> for Labels {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(pairs: I) -> Self {
        pairs
            .into_iter()
            .fold(Self::none(), |labels, (key, value)| {
                labels.with(&key, value)
            })
    }
}

/// One value of one series.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Name of the series.
    pub name: SeriesName,
    /// Behaviour of the values.
    pub kind: Kind,
    /// Labels that distinguish series of this name.
    pub labels: Labels,
    /// The value.
    pub value: Value,
}

impl Sample {
    /// A sample of one of the catalogue's metrics.
    #[must_use]
    pub fn new(metric: Metric, labels: &Labels, value: Value) -> Self {
        Self {
            name: metric.into(),
            kind: metric.kind,
            labels: labels.clone(),
            value,
        }
    }

    /// A whole-number sample of one of the catalogue's metrics.
    #[must_use]
    pub fn int(metric: Metric, labels: &Labels, value: u64) -> Self {
        Self::new(metric, labels, Value::Int(value))
    }
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Int(u64),
    /// Any other number; may be infinite or no number where the target says so.
    Float(f64),
    /// The values of one interval, in the HdrHistogram V2 encoding.
    Histogram(Vec<u8>),
}

impl Value {
    /// As one number; `None` for a histogram.
    #[must_use]
    pub const fn number(&self) -> Option<f64> {
        match self {
            Self::Int(value) => Some(stillwell_units::float_from_u64(*value)),
            Self::Float(value) => Some(*value),
            Self::Histogram(_) => None,
        }
    }
}

/// When samples were taken: all samples of a beat have the same.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Beat {
    /// Counts beats from 0.
    pub index: u64,
    /// On the monotonic clock.
    pub moment: Moment,
    /// On the wall clock: milliseconds since 1970.
    pub wall_millis: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_sorted_and_unique() {
        let labels = Labels::none().with("b", "1").with("a", "2").with("b", "3");
        assert_eq!(labels.iter().collect::<Vec<_>>(), [("a", "2"), ("b", "3")]);
        assert_eq!(labels.value("b"), Some("3"));
        assert_eq!(labels.value("c"), None);
    }
}
