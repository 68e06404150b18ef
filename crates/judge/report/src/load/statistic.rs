//! Times and sizes: a histogram, and exact moments beside it.

mod moments;
mod packed;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

pub use moments::Moments;
pub use packed::{HistogramError, PackedHistogram};

/// One statistic: many samples of one quantity.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LoadStatistic {
    /// Its name, one of [`super::id`] or any other.
    pub id: String,
    /// Unit of a sample.
    pub unit: StatisticUnit,
    /// Count, mean and spread, exact where the recorder kept them itself.
    pub moments: Moments,
    /// Distribution of the samples; `None` if only the moments were kept.
    pub histogram: Option<PackedHistogram>,
}

/// Unit of a statistic's samples.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StatisticUnit {
    /// Nanoseconds.
    Nanoseconds,
    /// Bytes, or any other plain number.
    Plain,
}

impl LoadStatistic {
    /// Times in nanoseconds; the moments are those of the histogram.
    #[must_use]
    pub fn of_times(id: &str, histogram: &Histogram<u64>) -> Self {
        Self {
            id: id.to_owned(),
            unit: StatisticUnit::Nanoseconds,
            moments: Moments::of(histogram),
            histogram: Some(PackedHistogram::new(histogram)),
        }
    }

    /// Plain numbers of which only the moments were kept, such as sizes.
    #[must_use]
    pub fn of_sizes(id: &str, moments: Moments) -> Self {
        Self {
            id: id.to_owned(),
            unit: StatisticUnit::Plain,
            moments,
            histogram: None,
        }
    }

    /// Samples.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.moments.count
    }

    /// Adds the samples of `other`: exact where both histograms have the same
    /// bounds. A side without samples changes nothing; otherwise the histogram
    /// is dropped where one of the sides has none.
    pub fn merge(&mut self, other: &Self) {
        let histogram = match (&self.histogram, &other.histogram) {
            _ if other.count() == 0 => self.histogram.take(),
            (_, original) if self.count() == 0 => original.clone(),
            (Some(measured), Some(original)) => {
                let both = merge_histograms(&[measured.unpack(), original.unpack()]);
                Some(PackedHistogram::new(&both))
            }
            _ => None,
        };
        self.histogram = histogram;
        self.moments.merge(&other.moments);
    }
}

/// All of `parts` in one histogram, which has room for the largest value and the
/// digits of the most exact one. Exact where all have the same bounds.
#[must_use]
pub fn merge_histograms(parts: &[Histogram<u64>]) -> Histogram<u64> {
    let digits = parts.iter().map(Histogram::sigfig).max().unwrap_or(3);
    let high = parts.iter().map(Histogram::high).max().unwrap_or(2).max(2);
    let mut all = Histogram::new_with_bounds(1, high, digits)
        .unwrap_or_else(|_| unreachable!("the bounds are those of a histogram"));
    all.auto(true);
    for part in parts {
        all.add(part)
            .unwrap_or_else(|_| unreachable!("the histogram grows as it must"));
    }
    all
}
