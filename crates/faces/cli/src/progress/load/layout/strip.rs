//! Strips: one character a second.

use stillwell_units::{Nanos, float_from_u64, floor_to_u64};

use super::{Look, Row, Tone, share_of};
use crate::progress::load::view::Second;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const BARS_OF_ASCII: [char; 8] = ['.', ':', '-', '=', '+', '*', '%', '@'];
/// Times that differ by less than this are one height.
const RATIO_MIN: f64 = 1.5;

/// Heights from 0 to 1 of rates, on a scale from nothing to the largest; `None`
/// where nothing ended.
pub(super) fn levels_of_rates(seconds: &[Second]) -> Vec<Option<f64>> {
    let most = seconds.iter().map(|second| second.rate).fold(0.0, f64::max);
    let level = |second: &Second| (second.rate > 0.0).then(|| second.rate / most);
    seconds.iter().map(level).collect()
}

/// Heights from 0 to 1 of the three latencies, on one logarithmic scale from the
/// smallest median to the largest of all, so strips below each other
/// compare.
pub(super) fn levels_of_times(seconds: &[Second]) -> [Vec<Option<f64>>; 3] {
    let all = || seconds.iter().filter_map(|second| second.latency);
    let least = all().map(|[median, _, _]| median).min();
    let most = all().map(|[_, _, largest]| largest).max();
    let (least, most) = (least.unwrap_or_default(), most.unwrap_or_default());
    let range = share_of(most, least).max(RATIO_MIN).ln();
    let height = |time: Nanos| (share_of(time.max(least), least).ln() / range).clamp(0.0, 1.0);
    [0, 1, 2].map(|index| {
        let level = |second: &Second| second.latency.map(|times| height(times[index]));
        seconds.iter().map(level).collect()
    })
}

/// Adds a strip; seconds with failures are highlighted.
pub(super) fn bars(row: &mut Row, levels: &[Option<f64>], seconds: &[Second], look: Look) {
    let alphabet = if look.unicode { BARS } else { BARS_OF_ASCII };
    for (index, level) in levels.iter().enumerate() {
        let has_failures = seconds.get(index).is_some_and(|second| second.has_failures);
        let tone = if has_failures { Tone::Bad } else { Tone::Strip };
        let bar = level.map_or(' ', |level| bar(alphabet, level));
        row.push(tone, &bar.to_string());
    }
}

fn bar(alphabet: [char; 8], level: f64) -> char {
    let steps = float_from_u64(alphabet.len() as u64);
    let index = floor_to_u64(level * steps).min(alphabet.len() as u64 - 1);
    let index = usize::try_from(index).unwrap_or(0);
    alphabet[index]
}
