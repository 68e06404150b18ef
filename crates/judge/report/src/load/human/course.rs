//! A load over time, in two lines of bars.

use stillwell_metric::Outcome;
use stillwell_units::float_from_u64;

use crate::document::{Inline, Sparkline, Text};
use crate::load::{LoadInterval, PackedHistogram};
use crate::words;

/// Bars in one line; longer series are shown in steps of several intervals.
const BARS_MAX: usize = 60;

/// Returns the rate of ended requests and the p99 of their latency; empty with fewer than
/// two intervals or no ended request.
pub(super) fn course(intervals: &[LoadInterval]) -> Vec<(Text, Text)> {
    let whole = whole(intervals);
    if whole.len() < 2 {
        return Vec::new();
    }
    let step = whole.len().div_ceil(BARS_MAX);
    let steps = whole.chunks(step);
    let (rates, times): (Vec<_>, Vec<_>) = steps.map(rate_and_p99).unzip();
    let line = |head: &str, values: &[Option<f64>], show: fn(f64) -> String| {
        let present = || values.iter().copied().flatten();
        let least = present().fold(f64::INFINITY, f64::min);
        let most = present().fold(0.0, f64::max);
        let bars = Text(vec![Inline::Sparkline(Sparkline::from_zero(values))]);
        let range = format!("  {} to {}", show(least), show(most));
        (most > 0.0).then(|| (head.into(), bars.and(range)))
    };
    let lines = [
        line("completed/s", &rates, words::grouped),
        line("p99", &times, words::time),
    ];
    lines.into_iter().flatten().collect()
}

/// Returns the intervals without a short one at the end, which has no rate.
pub(super) fn whole(intervals: &[LoadInterval]) -> &[LoadInterval] {
    match intervals {
        [all @ .., last] if is_cut(all, last) => all,
        all => all,
    }
}

fn is_cut(all: &[LoadInterval], last: &LoadInterval) -> bool {
    let usual = all.first().map_or(0, |interval| interval.length.as_u64());
    last.length.as_u64() < usual / 2
}

/// Returns requests per second that ended in one of these ways. Those in flight at the end did not end.
pub(super) fn rate(intervals: &[LoadInterval], counts: impl Fn(Outcome) -> bool) -> f64 {
    let lengths = intervals.iter().map(|interval| interval.length);
    let seconds: f64 = lengths.map(|length| length.as_secs_f64()).sum();
    let ended = intervals.iter().flat_map(|interval| &interval.outcomes);
    let ended = ended.filter(|ended| ended.outcome != Outcome::Unfinished && counts(ended.outcome));
    let ended = ended.fold(0, |sum: u64, ended| sum.saturating_add(ended.count));
    if seconds > 0.0 {
        float_from_u64(ended) / seconds
    } else {
        0.0
    }
}

/// Returns the rate of a step, and its p99 if it has a response.
fn rate_and_p99(intervals: &[LoadInterval]) -> (Option<f64>, Option<f64>) {
    let rate = rate(intervals, |_| true);
    let times = intervals.iter().map(|interval| &interval.response_time);
    let times = PackedHistogram::merged(times);
    let p99 = (!times.is_empty()).then(|| float_from_u64(times.value_at_quantile(0.99)));
    (Some(rate), p99)
}
