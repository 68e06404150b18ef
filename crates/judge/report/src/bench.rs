//! Results of a bench.

mod document;
mod json;

#[cfg(test)]
mod tests;

use hdrhistogram::Histogram;
use stillwell_verdict::{CountBounds, LedgerRecord};

pub use document::bench_text;
pub use json::bench_json;
pub use stillwell_verdict::bench::{BenchAnswers, BenchVolume, BenchWindow};

/// The longest latency that the histogram holds before it grows.
const LONGEST_NS: u64 = 100_000_000_000;

/// What a bench has found. Nothing of the warm-up counts, save where that is said.
#[derive(Clone, Debug)]
pub struct BenchReport {
    /// What it is called.
    pub name: String,
    /// The program.
    pub target: String,
    /// The recording.
    pub source: String,
    /// How the run ended: `completed`, or what went wrong.
    pub outcome: String,
    /// What makes its rates and latencies unreliable, a sentence each.
    pub warnings: Vec<String>,
    /// Why events carried no stamps, if they did not.
    pub unstamped: Option<String>,
    /// From the intended time to the first arrival, in nanoseconds, of every event
    /// that arrived; empty without stamps.
    pub latency: Histogram<u64>,
    /// The same from the sent time.
    pub transit: Histogram<u64>,
    /// What arrived in a stretch of time, and how long that was: from the end of the
    /// warm-up to the end of the load, or to the last arrival where the load had an
    /// end of its own.
    pub window: BenchWindow,
    /// What arrived, until the end.
    pub received: BenchVolume,
    /// What was sent over the whole run, the warm-up included.
    pub sent: BenchVolume,
    /// What became of every stamped event of the whole run.
    pub ledger: Option<LedgerRecord>,
    /// What the receiver said of the events of the whole run, where it says anything.
    pub answers: Option<BenchAnswers>,
    /// The rounds through the recording that were to be sent, where the limit came
    /// before all of them were.
    pub rounds_cut: Option<u64>,
    /// Whether events may be lost, duplicated or damaged.
    pub lossy: bool,
    /// The digits of latencies, from 1 to 5.
    pub significant_figures: u8,
    /// Our version.
    pub version: String,
    /// The command line that makes it again.
    pub command: String,
    /// The folder of the capture.
    pub capture: String,
}

impl BenchReport {
    /// Why the bench fails, a sentence each; none where every event came through as
    /// it should.
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        let mut failures = Vec::new();
        // That is no loss which one may allow: nothing was tried, or not all.
        if self.sent.events == 0 {
            failures.push("nothing was sent".to_owned());
        } else if let Some(rounds) = self.rounds_cut {
            let sent = self.sent.events;
            failures.push(format!(
                "the limit ended it before all of {rounds} rounds were through: {sent} events were sent; give it \
                 more time by `limit`, or fewer rounds"
            ));
        }
        if self.lossy {
            return failures;
        }
        let mut fail = |count: u64, what: &str| {
            if count > 0 {
                failures.push(format!("{count} {what}"));
            }
        };
        let answers = self.answers.unwrap_or_default();
        fail(answers.refused, "events were refused for good");
        fail(answers.unacknowledged, "events were not acknowledged");
        let Some(ledger) = &self.ledger else {
            // Without stamps only the numbers can be held against each other, and
            // those of a warm-up are of both.
            let missing = self.sent.events.saturating_sub(self.received.events);
            if self.unstamped.is_none() {
                fail(missing, "events are missing");
            }
            return failures;
        };
        let sum = |of: fn(&stillwell_verdict::LedgerFigures) -> u64| {
            ledger.generators.iter().map(of).sum::<u64>()
        };
        let least = |bounds: CountBounds| bounds.least;
        let lost = sum(|own| own.lost.least);
        let explained = answers.refused + answers.unacknowledged;
        fail(lost.saturating_sub(explained), "events were lost");
        if !answers.at_least_once {
            let duplicated: u64 = ledger
                .generators
                .iter()
                .map(|own| least(own.duplicated))
                .sum();
            fail(duplicated, "events arrived more than once");
        }
        fail(sum(|own| own.damaged), "events arrived damaged");
        failures
    }

    /// The latencies with as many digits as were asked for.
    fn table(&self) -> Histogram<u64> {
        coarse(&self.latency, self.significant_figures)
    }
}

/// The same samples with fewer digits; those that it does not have are zeros.
fn coarse(histogram: &Histogram<u64>, digits: u8) -> Histogram<u64> {
    let digits = digits.clamp(1, 5);
    let mut coarse = Histogram::new_with_bounds(1, LONGEST_NS, digits)
        .unwrap_or_else(|_| unreachable!("bounds and digits are within what it takes"));
    coarse.auto(true);
    for value in histogram.iter_recorded() {
        let middle = histogram.median_equivalent(value.value_iterated_to());
        coarse
            .record_n(middle, value.count_at_value())
            .unwrap_or_else(|_| unreachable!("it grows"));
    }
    coarse
}
