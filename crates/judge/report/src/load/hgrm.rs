//! HdrHistogram's text of percentiles, which its plotters read.

use hdrhistogram::Histogram;
use stillwell_units::float_from_u64;

use super::percentile::ticks;
use super::{LoadStatistic, StatisticUnit};

/// One statistic: a row for each tick of the list, and its moments. Times are
/// in milliseconds to the nanosecond, which a first line says. `None` where the
/// statistic has no distribution.
#[must_use]
pub fn of_load(statistic: &LoadStatistic) -> Option<String> {
    let histogram = statistic.histogram.as_ref()?.unpack();
    let scale = scale(statistic.unit == StatisticUnit::Nanoseconds);
    let rows = ticks(&histogram).into_iter();
    let rows = rows.map(|entry| PercentileRow {
        value: float_from_u64(entry.value.min(statistic.moments.max)) / scale,
        share: entry.share,
        count: entry.count,
    });
    let mut text = heading(&statistic.id, statistic.unit == StatisticUnit::Nanoseconds);
    text.push_str(&table(&rows.collect::<Vec<_>>()));
    text.push_str(&footer(&Footer {
        mean: statistic.moments.mean() / scale,
        pstdev: statistic.moments.pstdev() / scale,
        max: float_from_u64(statistic.moments.max) / scale,
        count: statistic.moments.count,
    }));
    text.push_str(&buckets(&histogram));
    Some(text)
}

/// A list of percentiles that a tool has written, as far as the text shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct PercentileTable<'a> {
    /// The name of the statistic.
    pub id: &'a str,
    /// `true` where values are nanoseconds.
    pub is_time: bool,
    /// The list's ticks, in base units.
    pub rows: Vec<PercentileRow>,
    /// The mean, in base units.
    pub mean: f64,
    /// The standard deviation of the population, in base units.
    pub pstdev: f64,
    /// The largest sample, in base units.
    pub max: f64,
    /// Samples.
    pub count: u64,
}

/// One row of a [`PercentileTable`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PercentileRow {
    /// In base units.
    pub value: f64,
    /// The share of samples that are not above the value, from 0 to 1.
    pub share: f64,
    /// Number of samples up to the value.
    pub count: u64,
}

/// The text of a list of percentiles; `None` where it has no rows.
#[must_use]
pub fn of_table(percentiles: &PercentileTable<'_>) -> Option<String> {
    if percentiles.rows.is_empty() {
        return None;
    }
    let scale = scale(percentiles.is_time);
    let rows = percentiles.rows.iter().map(|row| PercentileRow {
        value: row.value / scale,
        ..*row
    });
    let mut text = heading(percentiles.id, percentiles.is_time);
    text.push_str(&table(&rows.collect::<Vec<_>>()));
    text.push_str(&footer(&Footer {
        mean: percentiles.mean / scale,
        pstdev: percentiles.pstdev / scale,
        max: percentiles.max / scale,
        count: percentiles.count,
    }));
    Some(text)
}

struct Footer {
    mean: f64,
    pstdev: f64,
    max: f64,
    count: u64,
}

/// Base units in one unit of the text.
const fn scale(is_time: bool) -> f64 {
    if is_time { 1e6 } else { 1.0 }
}

fn heading(id: &str, is_time: bool) -> String {
    let unit = if is_time { "milliseconds" } else { "bytes" };
    let columns = ["Value", "Percentile", "TotalCount", "1/(1-Percentile)"];
    let [value, percentile, count, inverse] = columns;
    format!("#[{id} in {unit}]\n{value:>12} {percentile:>14} {count:>10} {inverse:>14}\n\n")
}

/// Plotters take rows of four columns with a number in the first and the last:
/// all but the one for the largest sample, whose inverse has no end.
fn table(rows: &[PercentileRow]) -> String {
    let rows = rows.iter().map(|row| {
        let inverse = if row.share < 1.0 {
            format!("{:>14.2}", 1.0 / (1.0 - row.share))
        } else {
            format!("{:>14}", "inf")
        };
        format!(
            "{:>12.6} {:>2.12} {:>10} {inverse}\n",
            row.value, row.share, row.count
        )
    });
    rows.collect()
}

fn footer(values: &Footer) -> String {
    format!(
        "#[Mean    = {:>12.6}, StdDeviation   = {:>12.6}]\n#[Max     = {:>12.6}, Total count    = {:>12}]\n",
        values.mean, values.pstdev, values.max, values.count
    )
}

/// Sub-buckets as the Java library counts them: of one bucket.
fn buckets(histogram: &Histogram<u64>) -> String {
    let all = histogram.distinct_values();
    let half = all / (usize::from(histogram.buckets()) + 1);
    format!(
        "#[Buckets = {:>12}, SubBuckets     = {:>12}]\n",
        histogram.buckets(),
        2 * half
    )
}
