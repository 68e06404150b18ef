//! HdrHistogram's text of percentiles, which its plotters read.

use hdrhistogram::Histogram;
use stillwell_legacy::nighthawk::{Quantity, Statistic};
use stillwell_units::float_from_u64;

use super::percentile::{is_tick, ticks};
use super::{LoadStatistic, StatisticUnit};

/// One statistic: a row for each tick of the list, and its moments. Times are
/// in milliseconds to the nanosecond, which a first line says. `None` where the
/// statistic has no distribution.
pub(super) fn of_load(own: &LoadStatistic) -> Option<String> {
    let histogram = own.histogram.as_ref()?.unpack();
    let scale = scale(own.unit == StatisticUnit::Nanoseconds);
    let rows = ticks(&histogram).into_iter();
    let rows = rows.map(|entry| Row {
        value: float_from_u64(entry.value.min(own.moments.max)) / scale,
        share: entry.share,
        count: entry.count,
    });
    let mut text = heading(&own.id, own.unit == StatisticUnit::Nanoseconds);
    text.push_str(&table(&rows.collect::<Vec<_>>()));
    text.push_str(&footer(&Footer {
        mean: own.moments.mean() / scale,
        pstdev: own.moments.pstdev() / scale,
        max: float_from_u64(own.moments.max) / scale,
        count: own.moments.count,
    }));
    text.push_str(&buckets(&histogram));
    Some(text)
}

/// The same from Nighthawk's list, of which only the ticks are told, so that the
/// rows of two files match.
pub(super) fn of_nighthawk(own: &Statistic) -> Option<String> {
    let is_time = matches!(own.max, Some(Quantity::Time(_)));
    let scale = scale(is_time);
    let number = |value: Option<Quantity>| match value {
        Some(Quantity::Time(time)) => float_from_u64(time.as_u64()) / scale,
        Some(Quantity::Raw(value)) => value / scale,
        None => 0.0,
    };
    let entries = own.percentiles.iter();
    let entries = entries.filter(|entry| is_tick(entry.percentile));
    let rows: Vec<Row> = entries
        .map(|entry| Row {
            value: number(entry.value),
            share: entry.percentile,
            count: entry.count,
        })
        .collect();
    if rows.is_empty() {
        return None;
    }
    let mut text = heading(&own.id, is_time);
    text.push_str(&table(&rows));
    text.push_str(&footer(&Footer {
        mean: number(own.mean),
        pstdev: number(own.pstdev),
        max: number(own.max),
        count: own.count,
    }));
    Some(text)
}

struct Row {
    value: f64,
    share: f64,
    count: u64,
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
fn table(rows: &[Row]) -> String {
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

fn footer(own: &Footer) -> String {
    format!(
        "#[Mean    = {:>12.6}, StdDeviation   = {:>12.6}]\n#[Max     = {:>12.6}, Total count    = {:>12}]\n",
        own.mean, own.pstdev, own.max, own.count
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
