//! Intervals of a long load, merged into fewer and longer ones.

use std::ops::Add;
use std::slice::Chunks;

use stillwell_units::Nanos;

use super::result::add_outcome;
use super::{LoadInterval, LoadReport, PackedHistogram};

/// Maximum number of points of a line over time, and of intervals in the data of a page.
pub(super) const STEPS_MAX: usize = 240;

/// Returns at most [`STEPS_MAX`] steps of the same number of intervals; the last may have fewer.
pub(super) fn steps(intervals: &[LoadInterval]) -> Chunks<'_, LoadInterval> {
    intervals.chunks(intervals.len().div_ceil(STEPS_MAX).max(1))
}

impl LoadInterval {
    /// Returns the interval of all of `step`.
    fn merged(step: &[Self]) -> Self {
        if let [only] = step {
            return only.clone();
        }
        let mut outcomes = Vec::new();
        for ended in step.iter().flat_map(|interval| &interval.outcomes) {
            add_outcome(&mut outcomes, *ended);
        }
        let sum = |of: fn(&Self) -> u64| step.iter().map(of).fold(0, u64::saturating_add);
        let times = |of: fn(&Self) -> &PackedHistogram| {
            PackedHistogram::new(&PackedHistogram::merged(step.iter().map(of)))
        };
        let lengths = step.iter().map(|interval| interval.length);
        let requested = step.iter().filter_map(|interval| interval.requested);
        Self {
            start: step.first().map_or(Nanos::ZERO, |first| first.start),
            length: lengths.fold(Nanos::ZERO, Add::add),
            requested: requested.reduce(u64::saturating_add),
            sent: sum(|interval| interval.sent),
            outcomes,
            bytes_received: sum(|interval| interval.bytes_received),
            bytes_sent: sum(|interval| interval.bytes_sent),
            response_time: times(|interval| &interval.response_time),
            service_time: times(|interval| &interval.service_time),
            lateness: times(|interval| &interval.lateness),
        }
    }
}

impl LoadReport {
    /// Returns the report with at most [`STEPS_MAX`] intervals. Its size does not grow with the
    /// duration of the load.
    pub(super) fn coarse(&self) -> Self {
        Self {
            version: self.version.clone(),
            command: self.command.clone(),
            seed: self.seed.clone(),
            host: self.host.clone(),
            options: self.options.clone(),
            written: self.written,
            workers: self.workers.clone(),
            global: self.global.clone(),
            intervals: steps(&self.intervals).map(LoadInterval::merged).collect(),
            due: self.due,
            health: self.health.clone(),
            ending: self.ending.clone(),
        }
    }
}
