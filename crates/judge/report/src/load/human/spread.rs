//! A histogram of latencies in bars.

use hdrhistogram::Histogram;
use stillwell_units::human::count;
use stillwell_units::{float_from_u64, floor_to_u64};

use crate::document::Text;
use crate::load::{LoadReport, id};
use crate::words;

/// Bars of equal width; a last one counts everything above them.
const BARS: u32 = 8;
/// Cells of the longest bar.
const CELLS_MAX: f64 = 40.0;
/// Fewer samples make no histogram.
const SAMPLES_MIN: u64 = 20;

/// Returns bars of equal width from the minimum to the 99th percentile, and one for slower
/// responses.
pub(super) fn spread(report: &LoadReport) -> Vec<(Text, Text)> {
    let id = if report.options.open_loop {
        id::RESPONSE_TIME
    } else {
        id::SERVICE_TIME
    };
    let statistic = report.global.statistic(id);
    let packed = statistic.and_then(|statistic| statistic.histogram.as_ref());
    packed.map_or_else(Vec::new, |packed| bars(&packed.unpack()))
}

fn bars(histogram: &Histogram<u64>) -> Vec<(Text, Text)> {
    let (least, most) = (histogram.min(), histogram.value_at_quantile(0.99));
    if histogram.len() < SAMPLES_MIN || most <= least {
        return Vec::new();
    }
    let width = float_from_u64(most - least) / f64::from(BARS);
    let bound = |bar: u32| {
        let value = float_from_u64(least) + width * f64::from(bar);
        floor_to_u64(value).min(most)
    };
    // Samples up to a bound; a bound in the middle of a cell counts the whole cell.
    let up_to = |value: u64| histogram.count_between(0, value);
    let mut before = 0;
    let mut rows: Vec<(String, u64)> = Vec::new();
    for bar in 1..=BARS {
        let to = if bar == BARS { most } else { bound(bar) };
        let through = up_to(to);
        let head = format!("≤ {}", words::time(float_from_u64(to)));
        rows.push((head, through.saturating_sub(before)));
        before = through;
    }
    let head = format!("> {}", words::time(float_from_u64(most)));
    rows.push((head, histogram.len().saturating_sub(before)));
    let largest = rows.iter().map(|(_, samples)| *samples).max().unwrap_or(1);
    let rows = rows.into_iter().map(|(head, samples)| {
        let share = float_from_u64(samples) / float_from_u64(largest.max(1));
        let cells = usize::try_from(floor_to_u64((share * CELLS_MAX).round())).unwrap_or(0);
        let text = format!("{} {}", "█".repeat(cells), count(samples));
        (head.into(), text.trim_start().into())
    });
    rows.collect()
}
