//! What came of every request.

use std::sync::Arc;

use stillwell_metric::{LoadCounter, LoadShard, LoadTime, Outcome, Recorder, Sizes};
use stillwell_units::{Moment, Nanos};

use super::answer::Whole;

/// A request that was taken from the schedule.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Ticket {
    /// Which of the endpoint's requests.
    pub(super) request: usize,
    /// When it was due; without a schedule when it was taken.
    pub(super) intended: Moment,
}

/// A whole answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Answer {
    pub(super) whole: Whole,
    /// When the request was sent, and when what of the answer had come.
    pub(super) sent: Moment,
    pub(super) first_byte: Moment,
    pub(super) end: Moment,
}

impl Answer {
    /// How a request ends that is answered so.
    pub(super) const fn outcome(&self) -> Outcome {
        match self.whole.status {
            // An interim answer is no answer.
            ..200 => Outcome::StatusOther,
            status => Outcome::of_status(status),
        }
    }
}

/// Ends the load once a counter exceeds its threshold.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) counter: LoadCounter,
    pub(super) threshold: u64,
}

/// Counts and records for one worker.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) shard: Arc<LoadShard>,
    /// Those that predicates look at.
    pub(super) watched: Vec<Arc<LoadShard>>,
    pub(super) watches: Vec<Watch>,
    pub(super) recorders: Vec<Recorder>,
    pub(super) has_schedule: bool,
    /// Requests intended for earlier are counted apart.
    pub(super) measure_from: Moment,
    pub(super) heads: Sizes,
    pub(super) bodies: Sizes,
    /// Requests begun that have not ended.
    pub(super) under_way: u64,
}

impl Ledger {
    /// A request was taken from the schedule.
    pub(super) fn begin(&mut self) {
        self.under_way += 1;
        self.shard.begun.add(1);
    }

    /// It is sent now: `bytes` of it. Gives the sent time.
    pub(super) fn sent(&mut self, ticket: Ticket, sent: Moment, bytes: usize) -> Moment {
        self.shard.bytes_sent.add(bytes as u64);
        if self.has_schedule && ticket.intended >= self.measure_from {
            self.record(LoadTime::Lateness, sent.since(ticket.intended));
        }
        sent
    }

    /// It was answered. Whether that ends the load.
    pub(super) fn answered(&mut self, ticket: Ticket, answer: &Answer) -> bool {
        let outcome = answer.outcome();
        self.heads.add(answer.whole.head_bytes);
        self.bodies.add(answer.whole.body_bytes);
        if ticket.intended >= self.measure_from {
            let service = answer.end.since(answer.sent);
            self.record(LoadTime::Service(outcome), service);
            self.record(LoadTime::FirstByte, answer.first_byte.since(answer.sent));
            if self.has_schedule {
                let response = answer.end.since(ticket.intended);
                self.record(LoadTime::Response(outcome), response);
            }
        }
        self.end(ticket.intended, outcome)
    }

    /// What an answer said of itself.
    pub(super) fn origin(&mut self, ticket: Ticket, nanoseconds: u64) {
        if ticket.intended >= self.measure_from {
            self.record(LoadTime::Origin, Nanos::new(nanoseconds));
        }
    }

    /// It ended otherwise. Whether that ends the load.
    pub(super) fn end(&mut self, intended: Moment, outcome: Outcome) -> bool {
        self.under_way = self.under_way.saturating_sub(1);
        let cells = if intended < self.measure_from {
            &self.shard.warmup_outcomes
        } else {
            &self.shard.outcomes
        };
        cells[outcome.index()].add(1);
        !self.watches.is_empty() && self.look()
    }

    /// What is still under way will not end any more.
    pub(super) fn cut(&mut self) {
        self.shard.outcomes[Outcome::Unfinished.index()].add(self.under_way);
        self.under_way = 0;
    }

    pub(super) fn record(&mut self, what: LoadTime, time: Nanos) {
        self.recorders[what.index()].record(time);
    }

    /// Hands over what was recorded, and all of it `at_last`.
    pub(super) fn publish(&mut self, at_last: bool) {
        self.shard.head_sizes.set(&self.heads);
        self.shard.body_sizes.set(&self.bodies);
        for recorder in &mut self.recorders {
            if at_last {
                recorder.flush();
            } else {
                recorder.hand_over();
            }
        }
    }

    /// Whether a predicate holds; the first one that did is noted.
    fn look(&self) -> bool {
        if self.shard.predicate.total() > 0 {
            return true;
        }
        let holds = |watch: &Watch| {
            let values = self.watched.iter().map(|shard| watch.counter.value(shard));
            values.sum::<u64>() > watch.threshold
        };
        let Some(number) = self.watches.iter().position(holds) else {
            return false;
        };
        self.shard.predicate.set(number as u64 + 1);
        true
    }
}

#[cfg(test)]
mod tests;
