//! Delivery of events.

use stillwell_capture::LedgerFigures;
use stillwell_plan::targets::Delivery;

use crate::summary::RunSummary;

/// Delivery of the stamped events of all runs of a target.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct DeliveryFound {
    /// Runs whose events were followed to their end.
    pub runs: u32,
    /// Events that were sent.
    pub sent: u64,
    /// Of these never arrived, at the least.
    pub lost: u64,
    /// Arrivals beyond the first, at the least.
    pub duplicated: u64,
    /// Arrived after one that was sent later.
    pub reordered: u64,
    /// Arrivals with other bytes.
    pub damaged: u64,
    /// Reason why nothing is known of some run, if so.
    pub unknown: Option<String>,
}

impl DeliveryFound {
    pub(super) fn of(runs: &[&RunSummary]) -> Self {
        let mut result = Self::default();
        for run in runs {
            result.add(run);
        }
        result
    }

    fn add(&mut self, run: &RunSummary) {
        let Some(ledger) = &run.figures.ledger else {
            return;
        };
        if !run.outcome.is_completed() {
            let reason = "a run did not complete".to_owned();
            self.unknown.get_or_insert(reason);
            return;
        }
        let sum =
            |count: fn(&LedgerFigures) -> u64| -> u64 { ledger.generators.iter().map(count).sum() };
        let lost = sum(|run| run.lost.least);
        if let Some(reason) = unproven_reason(run, ledger.quiet).filter(|_| lost > 0) {
            self.unknown.get_or_insert(reason);
        } else {
            self.lost += lost;
        }
        self.runs += 1;
        self.sent += sum(|run| run.sent);
        self.duplicated += sum(|run| run.duplicated.least);
        self.reordered += sum(|run| run.reordered);
        self.damaged += sum(|run| run.damaged);
    }

    /// Observed delivery: `None` where events were lost and others duplicated, and where
    /// too little is known.
    #[must_use]
    pub const fn seen(&self) -> Option<Delivery> {
        match (self.lost, self.duplicated) {
            _ if self.runs == 0 => None,
            (0, _) if self.unknown.is_some() => None,
            (0, 0) => Some(Delivery::ExactlyOnce),
            (0, _) => Some(Delivery::AtLeastOnce),
            (_, 0) => Some(Delivery::AtMostOnce),
            (_, _) => None,
        }
    }

    /// True if that keeps to `expected`; `None` where nothing was expected, or too
    /// little is known.
    #[must_use]
    pub const fn keeps(&self, expected: Option<Delivery>) -> Option<bool> {
        let Some(expected) = expected else {
            return None;
        };
        if (self.lost > 0 && !expected.may_lose())
            || (self.duplicated > 0 && !expected.may_double())
        {
            return Some(false);
        }
        if self.runs == 0 || self.unknown.is_some() {
            return None;
        }
        Some(true)
    }
}

/// Reason why events that did not arrive may not be lost, if so.
fn unproven_reason(run: &RunSummary, is_quiet: bool) -> Option<String> {
    if !is_quiet {
        return Some("events still arrived when the drain ended".to_owned());
    }
    let mut warnings = run.warnings.iter();
    let warning = warnings.find(|warning| warning.hides_arrivals())?;
    Some(warning.to_string())
}
