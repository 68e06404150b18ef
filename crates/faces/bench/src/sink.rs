//! The output of the pipeline.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hdrhistogram::Histogram;
use stillwell_metric::{Volume, empty_histogram};
use stillwell_scope::clock;
use stillwell_units::{Moment, Nanos};

use crate::account::Numbers;
use crate::shared::Shared;
use crate::ticket::Ticket;

/// Takes in what comes out of the pipeline. Each clone has an account of its own,
/// so threads share nothing; all are to be dropped before
/// [`Bench::finish`](crate::Bench::finish).
#[derive(Debug)]
pub struct Sink {
    shared: Arc<Shared>,
    /// `None` only while it is dropped.
    account: Option<Box<SinkAccount>>,
}

/// Events that one sink received.
#[derive(Debug)]
pub(crate) struct SinkAccount {
    /// First arrivals.
    pub(crate) numbers: Numbers,
    /// Delivered for good.
    pub(crate) acknowledged: Numbers,
    /// Given up.
    pub(crate) failed: Numbers,
    pub(crate) latency: Histogram<u64>,
    pub(crate) transit: Histogram<u64>,
    /// All arrivals.
    pub(crate) received: Volume,
    /// Those that are not of the warm-up.
    pub(crate) measured: Volume,
    pub(crate) reordered: u64,
    pub(crate) displacement_max: u64,
    /// Numbers that no source gave out.
    pub(crate) foreign: u64,
    pub(crate) answers_again: u64,
    /// The number after the latest so far.
    latest: u64,
    /// The last arrival that counts.
    pub(crate) last: Option<Moment>,
    /// When measuring begins, once that is known.
    measured_from: Option<Moment>,
}

impl Sink {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        shared.sinks.fetch_add(1, Ordering::AcqRel);
        Self {
            shared,
            account: Some(Box::new(SinkAccount::new())),
        }
    }

    /// The event of this ticket, of so many bytes, has come out now.
    pub fn arrived(&mut self, ticket: &Ticket, bytes: usize) {
        let now = clock::now();
        let shared = &self.shared;
        if let Some(account) = &mut self.account {
            account.take_in(ticket, bytes as u64, now, shared);
        }
    }

    /// The pipeline says that the event of this ticket was delivered for good.
    /// Only the first thing said of an event counts.
    pub fn acknowledged(&mut self, ticket: &Ticket) {
        self.answered(ticket, true);
    }

    /// The pipeline says that the event of this ticket never will be delivered.
    pub fn failed(&mut self, ticket: &Ticket) {
        self.answered(ticket, false);
    }

    fn answered(&mut self, ticket: &Ticket, is_delivered: bool) {
        let limit = self.shared.events;
        let Some(account) = &mut self.account else {
            return;
        };
        if ticket.sequence >= limit {
            account.foreign += 1;
            return;
        }
        let numbers = if is_delivered {
            &mut account.acknowledged
        } else {
            &mut account.failed
        };
        if !numbers.add(ticket.sequence) {
            account.answers_again += 1;
        }
    }
}

impl Clone for Sink {
    /// Another sink of the same bench, with an account of its own.
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.shared))
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        if let Some(account) = self.account.take() {
            self.shared.sink_ended(*account);
        }
    }
}

impl SinkAccount {
    fn new() -> Self {
        Self {
            numbers: Numbers::default(),
            acknowledged: Numbers::default(),
            failed: Numbers::default(),
            latency: empty_histogram(),
            transit: empty_histogram(),
            received: Volume::default(),
            measured: Volume::default(),
            reordered: 0,
            displacement_max: 0,
            foreign: 0,
            answers_again: 0,
            latest: 0,
            last: None,
            measured_from: None,
        }
    }

    fn take_in(&mut self, ticket: &Ticket, bytes: u64, now: Moment, shared: &Shared) {
        // What was never sent is found in the end; this only bounds memory.
        if ticket.sequence >= shared.events {
            self.foreign += 1;
            return;
        }
        self.received.add(bytes);
        let is_first = self.numbers.add(ticket.sequence);
        if is_first && ticket.sequence + 1 < self.latest {
            self.reordered += 1;
            let displacement = self.latest - 1 - ticket.sequence;
            self.displacement_max = self.displacement_max.max(displacement);
        }
        self.latest = self.latest.max(ticket.sequence + 1);
        let from = match self.measured_from {
            Some(from) => from,
            None => *self.measured_from.insert(shared.measured_from()),
        };
        if ticket.intended < from {
            return;
        }
        self.measured.add(bytes);
        self.last = Some(now);
        if is_first {
            let record = |times: &mut Histogram<u64>, time: Nanos| {
                times.saturating_record(time.as_u64().max(1));
            };
            record(&mut self.latency, now.since(ticket.intended));
            record(&mut self.transit, now.since(ticket.sent));
        }
    }
}
