//! Times and sizes: a histogram, and exact moments beside it.

mod moments;
mod packed;

use std::mem;

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
                let both = merge_histograms([measured.unpack(), original.unpack()]);
                Some(PackedHistogram::new(&both))
            }
            _ => None,
        };
        self.histogram = histogram;
        self.moments.merge(&other.moments);
    }
}

/// All of `parts` in one histogram, which has room for the largest value and the
/// digits of the most exact one. Exact where all have the same bounds. A live histogram takes
/// some hundred thousand bytes, so one part is held at a time.
#[must_use]
pub fn merge_histograms(parts: impl IntoIterator<Item = Histogram<u64>>) -> Histogram<u64> {
    let mut parts = parts.into_iter();
    let Some(first) = parts.next() else {
        return histogram_with_room(2, 3);
    };
    let mut all = histogram_with_room(first.high(), first.sigfig());
    add_samples(&mut all, &first);
    for part in parts {
        let high = all.high().max(part.high());
        let digits = all.sigfig().max(part.sigfig());
        if (high, digits) != (all.high(), all.sigfig()) {
            let narrower = mem::replace(&mut all, histogram_with_room(high, digits));
            add_samples(&mut all, &narrower);
        }
        add_samples(&mut all, &part);
    }
    all
}

/// Returns an empty histogram that grows.
fn histogram_with_room(high: u64, digits: u8) -> Histogram<u64> {
    let mut all = Histogram::new_with_bounds(1, high.max(2), digits)
        .unwrap_or_else(|_| unreachable!("the bounds are those of a histogram"));
    all.auto(true);
    all
}

/// Adds the samples of `part` to `all`, which grows.
fn add_samples(all: &mut Histogram<u64>, part: &Histogram<u64>) {
    all.add(part)
        .unwrap_or_else(|_| unreachable!("the histogram grows as it must"));
}
