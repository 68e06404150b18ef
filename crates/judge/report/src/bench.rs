//! Results of a bench.

mod document;
mod json;

#[cfg(test)]
mod tests;

use hdrhistogram::Histogram;
use stillwell_metric::{BenchWindow, Volume};
use stillwell_units::human::counted;
use stillwell_verdict::{CountBounds, LedgerRecord};

use crate::FullReport;
use crate::document::Curve;

pub use json::bench_json;
pub use stillwell_verdict::bench::BenchAnswers;

/// The longest latency that the histogram holds before it grows.
const LONGEST_NS: u64 = 100_000_000_000;

/// The result of a bench. Counts leave out the warm-up, except where the field says
/// otherwise.
#[derive(Clone, Debug)]
pub struct BenchReport {
    /// Name of the bench.
    pub name: String,
    /// The program.
    pub target: String,
    /// The recording.
    pub source: String,
    /// End of the run: `completed`, or the failure.
    pub outcome: String,
    /// Warnings about its rates and latencies, a sentence each.
    pub warnings: Vec<String>,
    /// Reason why events carried no stamps, if they did not.
    pub unstamped: Option<String>,
    /// From the intended time to the first arrival, in nanoseconds, of every event
    /// that arrived; empty without stamps.
    pub latency: Histogram<u64>,
    /// The same from the sent time.
    pub transit: Histogram<u64>,
    /// Arrivals in the measured time, and the length of that time: from the end of the warm-up
    /// to the end of the load, or to the last arrival if the load ended by itself.
    pub window: BenchWindow,
    /// Events that arrived, until the end.
    pub received: Volume,
    /// Events that were sent over the whole run, including the warm-up.
    pub sent: Volume,
    /// Delivery of every stamped event of the whole run.
    pub ledger: Option<LedgerRecord>,
    /// Answers of the receiver to the events of the whole run, if it answers.
    pub answers: Option<BenchAnswers>,
    /// The rounds through the recording that were to be sent, where the limit came
    /// before all of them were.
    pub rounds_cut: Option<u64>,
    /// True if events may be lost, duplicated or damaged.
    pub lossy: bool,
    /// The digits of latencies, from 1 to 5.
    pub significant_figures: u8,
    /// Our version.
    pub version: String,
    /// The command line that makes it again.
    pub command: String,
    /// The folder of the capture.
    pub capture: String,
    /// Lines over time, from the capture.
    pub curves: Vec<Curve>,
}

impl From<&BenchReport> for FullReport {
    fn from(report: &BenchReport) -> Self {
        Self {
            document: document::document(report),
            data: format!("{:#}\n", bench_json(report)),
            page_data: None,
        }
    }
}

impl BenchReport {
    /// Returns the reasons why the bench fails, a sentence each; empty if every event arrived
    /// as it should.
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        let mut failures = Vec::new();
        // That is no loss which one may allow: nothing was tried, or not all.
        if self.sent.events == 0 {
            failures.push("nothing was sent".to_owned());
        } else if let Some(rounds) = self.rounds_cut {
            let sent = self.sent.events;
            failures.push(format!(
                "the time limit ended the bench before all {rounds} rounds were sent: {sent} \
                 events were sent; raise `limit` or send fewer rounds"
            ));
        }
        if self.lossy {
            return failures;
        }
        let mut fail = |count: u64, [singular, plural]: [&str; 2]| {
            if count > 0 {
                failures.push(counted(count, singular, plural));
            }
        };
        let answers = self.answers.unwrap_or_default();
        fail(
            answers.refused,
            [
                "event was refused permanently",
                "events were refused permanently",
            ],
        );
        fail(
            answers.unacknowledged,
            ["event was not acknowledged", "events were not acknowledged"],
        );
        let Some(ledger) = &self.ledger else {
            // Without stamps only the numbers can be held against each other, and
            // those of a warm-up are of both.
            let missing = self.sent.events.saturating_sub(self.received.events);
            if self.unstamped.is_none() {
                fail(missing, ["event is missing", "events are missing"]);
            }
            return failures;
        };
        let sum = |of: fn(&stillwell_verdict::LedgerFigures) -> u64| {
            ledger.generators.iter().map(of).sum::<u64>()
        };
        let least = |bounds: CountBounds| bounds.least;
        let lost = sum(|generator| generator.lost.least);
        let explained = answers.refused + answers.unacknowledged;
        fail(
            lost.saturating_sub(explained),
            ["event was lost", "events were lost"],
        );
        if !answers.at_least_once {
            let duplicated: u64 = ledger
                .generators
                .iter()
                .map(|generator| least(generator.duplicated))
                .sum();
            fail(
                duplicated,
                [
                    "event arrived more than once",
                    "events arrived more than once",
                ],
            );
        }
        fail(
            sum(|generator| generator.damaged),
            ["event arrived damaged", "events arrived damaged"],
        );
        failures
    }

    /// Returns the latencies with the requested number of digits.
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
