//! Progress of a load, line by line, for output that cannot be drawn over.

use stillwell_metric::{Histogram, Outcome, add_histogram, empty_histogram};
use stillwell_run::{LoadPhase, LoadSnapshot};
use stillwell_units::{Nanos, float_from_u64};

use super::view::{failed, quantiles};
use crate::progress::figure;

/// The data of the next line.
#[derive(Debug)]
pub(super) struct Lines {
    phase: Option<LoadPhase>,
    /// Time in its phase at which the last line was printed.
    printed_at: Nanos,
    /// Since then.
    length: Nanos,
    outcomes: [u64; Outcome::ALL.len()],
    latencies: Histogram<u64>,
}

impl Lines {
    pub(super) fn new() -> Self {
        Self {
            phase: None,
            printed_at: Nanos::ZERO,
            length: Nanos::ZERO,
            outcomes: [0; Outcome::ALL.len()],
            latencies: empty_histogram(),
        }
    }

    /// Adds a second; gives a line where it is time for one.
    pub(super) fn add(&mut self, snapshot: &LoadSnapshot<'_>) -> Option<String> {
        let phase = Some(snapshot.phase);
        if self.phase == Some(LoadPhase::Warmup) && phase != self.phase {
            *self = Self::new();
        }
        self.phase = phase;
        self.length += snapshot.second.length;
        for (sum, count) in self.outcomes.iter_mut().zip(snapshot.second.outcomes) {
            *sum += count;
        }
        add_histogram(&mut self.latencies, snapshot.latencies());
        if !is_due(self.printed_at, snapshot.elapsed) {
            return None;
        }
        let line = self.line(snapshot.elapsed);
        *self = Self {
            phase,
            printed_at: snapshot.elapsed,
            ..Self::new()
        };
        Some(line)
    }

    fn line(&self, elapsed: Nanos) -> String {
        let ended: u64 = self.outcomes.iter().sum();
        let seconds = self.length.as_secs_f64().max(1e-9);
        let rate = figure::rate(float_from_u64(ended) / seconds);
        let head = match self.phase {
            Some(LoadPhase::Warmup) => "warm-up ",
            Some(LoadPhase::Drain) => "draining ",
            Some(LoadPhase::Measure) | None => "",
        };
        let clock = figure::clock(elapsed);
        let bad = failed(&self.outcomes);
        let mut line = format!("{head}{clock:>5}  {rate:>12}  {bad:>6} failed");
        if let Some([median, p99, largest]) = quantiles(&self.latencies) {
            let [median, p99, largest] =
                [median, p99, largest].map(|time| figure::time(time, false));
            line.push_str(&format!(
                "  p50 {median:>7}  p99 {p99:>7}  max {largest:>7}"
            ));
        }
        let classes = Outcome::ALL.into_iter().zip(self.outcomes);
        let classes: Vec<String> = classes
            .filter(|(outcome, count)| *outcome != Outcome::Ok && *count > 0)
            .map(|(outcome, count)| format!("{count} {}", outcome.name()))
            .collect();
        if !classes.is_empty() {
            line.push_str(&format!("  ({})", classes.join(", ")));
        }
        line
    }
}

/// Each second at first, then less and less often: a later reader wants no thousands of
/// lines.
fn is_due(printed_at: Nanos, elapsed: Nanos) -> bool {
    let step = match printed_at.as_u64() / Nanos::SECOND.as_u64() {
        ..10 => 1,
        10..600 => 10,
        _ => 60,
    };
    // Seconds are a little longer than they should be.
    let slack = Nanos::from_millis(500);
    elapsed + slack >= printed_at + Nanos::from_secs(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_rarer() {
        let mut printed_at = Nanos::ZERO;
        let mut times = Vec::new();
        for second in 1..=700 {
            let elapsed = Nanos::from_millis(second * 1003);
            if is_due(printed_at, elapsed) {
                printed_at = elapsed;
                times.push(second);
            }
        }
        assert_eq!(times[..12], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30]);
        assert_eq!(times[times.len() - 2..], [600, 660]);
    }

    #[test]
    fn a_line_names_what_failed_and_how_long_answers_took() {
        let mut lines = Lines::new();
        lines.length = Nanos::from_secs(10);
        lines.outcomes[Outcome::Ok.index()] = 19_990;
        lines.outcomes[Outcome::Status5xx.index()] = 7;
        lines.outcomes[Outcome::TimedOut.index()] = 3;
        lines.latencies.record_n(1_200_000, 10).unwrap();
        let line = lines.line(Nanos::from_secs(20));
        let expected = " 20 s       2,000/s      10 failed  p50 1.20 ms  p99 1.20 ms  max 1.20 ms  \
                    (7 status_5xx, 3 timed_out)";
        assert_eq!(line, expected);
        let nothing = Lines::new().line(Nanos::from_secs(65));
        assert_eq!(nothing, "1 min 5 s           0/s       0 failed");
    }
}
