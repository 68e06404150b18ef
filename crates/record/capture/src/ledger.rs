//! Fate of every stamped event of a run.

use serde::{Deserialize, Serialize};
use stillwell_plan::StampPlan;
use stillwell_units::Nanos;

/// Fate of every stamped event of a run, from its first event to the end of
/// its last sink.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct LedgerRecord {
    /// One for each generator whose events are stamped, in the plan's order.
    pub generators: Vec<LedgerFigures>,
    /// Stamps that were cut off or changed. Their events are
    /// missing.
    pub broken: u64,
    /// Stamps of other runs, or of no generator of this one.
    pub foreign: u64,
    /// Memory of the ledger at its end.
    pub memory_bytes: u64,
    /// True if sinks had been quiet when the drain ended. If not, missing events may
    /// still have been in flight.
    pub quiet: bool,
    /// Events that had been sent and had not arrived when the drain ended; `None`
    /// if the run did not come so far.
    pub under_way: Option<u64>,
    /// Bound on the error of latencies between machines; `None` if one machine sent and received.
    #[serde(
        default,
        rename = "clock_error_ns",
        skip_serializing_if = "Option::is_none"
    )]
    pub clock_error: Option<Nanos>,
    /// Set if sinks were divided among several machines: each has seen a part of the arrivals, and
    /// counted for itself what is reordered and late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub divided: Option<DividedLedger>,
}

/// A ledger that was joined from those of several machines.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct DividedLedger {
    /// Number of machines with sinks.
    pub machines: u16,
    /// First arrivals on a machine of events that arrived on another one, too. Latencies have them.
    pub arrived_again: CountBounds,
}

/// Fate of the stamped events of one generator. Everything is counted in
/// events, or in arrivals where that is said.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct LedgerFigures {
    /// The generator.
    pub id: String,
    /// Expected delivery.
    pub expected: StampPlan,
    /// Number of streams: one for each connection.
    pub streams: u64,
    /// Sent, at least in part.
    pub sent: u64,
    /// Of these, arrived at least once.
    pub received: CountBounds,
    /// Of these, never arrived.
    pub lost: CountBounds,
    /// Arrived in fewer copies than declared.
    pub incomplete: CountBounds,
    /// Arrivals beyond the declared copies.
    pub duplicated: CountBounds,
    /// Arrived although they were never sent.
    pub unsent: CountBounds,
    /// Arrivals in all.
    pub arrivals: u64,
    /// Arrived for the first time after one that was sent later.
    pub reordered: u64,
    /// Largest distance by which that event was ahead, in events of the stream.
    pub displacement_max: u64,
    /// Arrived for the first time later than declared.
    pub late: u64,
    /// Arrivals that may or may not be the first of their event.
    pub unclear: u64,
    /// Arrivals with the text that was sent.
    pub intact: u64,
    /// Arrivals whose text came in full length with other bytes.
    pub damaged: u64,
    /// Arrivals whose text did not come in one piece or not in its form.
    pub unverifiable: u64,
    /// Arrivals without text to compare.
    pub undeclared: u64,
    /// Parts of the account that keep counts only, for lack of memory.
    pub bounded_windows: u64,
    /// The first ranges of what is missing.
    pub losses: Vec<LedgerRange>,
    /// Number of ranges.
    pub loss_ranges: u64,
    /// The first events that arrived damaged.
    pub damages: Vec<LedgerEvent>,
}

/// A count, exact if both are the same.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct CountBounds {
    /// It is no less.
    pub least: u64,
    /// It is no more.
    pub most: u64,
}

impl CountBounds {
    /// The count, if it is known.
    #[must_use]
    pub fn exactly(&self) -> Option<u64> {
        (self.least == self.most).then_some(self.least)
    }
}

/// Neighbouring events of a stream that are missing.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct LedgerRange {
    /// The stream.
    pub stream: u32,
    /// The first event.
    pub first: u64,
    /// The last one.
    pub last: u64,
    /// Number of missing events of the range.
    pub lost: CountBounds,
}

/// One event.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct LedgerEvent {
    /// The stream.
    pub stream: u32,
    /// Number of the stamped event, from 0.
    pub sequence: u64,
}
