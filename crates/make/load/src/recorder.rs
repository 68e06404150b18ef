//! Outcomes and times of requests.

use std::sync::Arc;

use stillwell_metric::{
    AnswerTimes, CallEnd, CallMessages, Cell, CounterFacts, LoadCounter, LoadShard, LoadTime,
    Outcome, Recorder, Sizes,
};
use stillwell_units::{Moment, Nanos};

use super::answer::ResponseSummary;
use super::routes::RouteTally;

/// A request that was taken from the schedule.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Ticket {
    /// Index of its endpoint.
    pub(super) endpoint: usize,
    /// Index among the endpoint's requests.
    pub(super) request: usize,
    /// Intended time; without a schedule the time when it was taken.
    pub(super) intended: Moment,
    /// Time of the first send, if it is sent again.
    pub(super) sent: Option<Moment>,
}

/// The next step of a connection without a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Take {
    /// Send this request.
    Now(Ticket),
    /// Wait at least until this time.
    Later(Moment),
    /// Wait for the supply: a request is due.
    Starved,
    /// End: no request is left.
    Never,
}

/// A complete response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Answer {
    pub(super) whole: ResponseSummary,
    /// Time of the send, the first byte and the last byte.
    pub(super) sent: Moment,
    pub(super) first_byte: Moment,
    pub(super) end: Moment,
}

impl Answer {
    /// Times from the sent time on.
    pub(super) const fn times(&self) -> AnswerTimes {
        AnswerTimes {
            response: None,
            service: self.end.since(self.sent),
            first_byte: self.first_byte.since(self.sent),
        }
    }

    /// The outcome of the request.
    pub(super) const fn outcome(&self) -> Outcome {
        match self.whole.status {
            // An interim answer is no answer.
            ..200 => Outcome::StatusOther,
            status => Outcome::of_status(status),
        }
    }
}

/// A predicate: a counter and its threshold.
#[derive(Debug)]
pub(super) struct PredicateWatch {
    pub(super) counter: LoadCounter,
    pub(super) threshold: u64,
    pub(super) facts: CounterFacts,
}

/// Records the requests of one worker.
#[derive(Debug)]
pub(super) struct RequestRecorder {
    pub(super) shard: Arc<LoadShard>,
    /// Shards that predicates read.
    pub(super) watched: Vec<Arc<LoadShard>>,
    pub(super) watches: Vec<PredicateWatch>,
    pub(super) recorders: Vec<Recorder>,
    pub(super) routes: RouteTally,
    pub(super) has_schedule: bool,
    /// True if latency counts from the intended time as well.
    pub(super) has_response: bool,
    /// Times of requests intended before this are not recorded.
    pub(super) measure_from: Moment,
    /// Requests intended before this count as warm-up.
    pub(super) count_from: Moment,
    /// True during the warm-up. No predicate holds then.
    pub(super) is_warming: bool,
    pub(super) heads: Sizes,
    pub(super) bodies: Sizes,
    /// Requests in flight.
    pub(super) in_flight: u64,
    /// End of the last request.
    pub(super) last_end: Moment,
}

impl RequestRecorder {
    /// A recorder without schedule, warm-up and predicates.
    pub(super) fn new(shard: Arc<LoadShard>, recorders: Vec<Recorder>) -> Self {
        Self {
            shard,
            watched: Vec::new(),
            watches: Vec::new(),
            recorders,
            routes: RouteTally::default(),
            has_schedule: false,
            has_response: false,
            measure_from: Moment::default(),
            count_from: Moment::default(),
            is_warming: false,
            heads: Sizes::default(),
            bodies: Sizes::default(),
            in_flight: 0,
            last_end: Moment::default(),
        }
    }

    /// Counts a request that was taken from the schedule.
    pub(super) fn begin(&mut self, intended: Moment) {
        self.in_flight += 1;
        let begun = if intended < self.count_from {
            &self.shard.warmup_begun
        } else {
            &self.shard.begun
        };
        begun.add(1);
    }

    /// Counts a send of `bytes`. Returns the sent time, which is that of the first send if it
    /// is sent again.
    pub(super) fn sent(&mut self, ticket: &mut Ticket, now: Moment, bytes: usize) -> Moment {
        self.shard.bytes_sent.add(bytes as u64);
        if let Some(first) = ticket.sent {
            return first;
        }
        ticket.sent = Some(now);
        let sent = if ticket.intended < self.count_from {
            &self.shard.warmup_sent
        } else {
            &self.shard.sent
        };
        sent.add(1);
        if self.has_schedule && ticket.intended >= self.measure_from {
            self.record(LoadTime::Lateness, now.since(ticket.intended));
        }
        now
    }

    /// Counts a response. Returns whether it ends the load.
    pub(super) fn answered(&mut self, ticket: Ticket, answer: &Answer) -> bool {
        let outcome = answer.outcome();
        if ticket.intended >= self.count_from {
            self.heads.add(answer.whole.head_bytes);
            self.bodies.add(answer.whole.body_bytes);
            self.shard.statuses.count(answer.whole.status);
            if let Some(route) = self.routes.of(ticket.endpoint, ticket.request) {
                route.answered(answer.whole.status, outcome);
            }
        }
        if ticket.intended >= self.measure_from {
            let times = answer.times();
            self.record(LoadTime::Service(outcome), times.service);
            self.record(LoadTime::FirstByte, times.first_byte);
            let response = answer.end.since(ticket.intended);
            let response = self.has_response.then_some(response);
            if let Some(response) = response {
                self.record(LoadTime::Response(outcome), response);
            }
            if let Some(route) = self.routes.of(ticket.endpoint, ticket.request) {
                route.record(AnswerTimes { response, ..times });
            }
        }
        self.end(ticket.intended, outcome, answer.end)
    }

    /// Records the server time that a response reports.
    pub(super) fn origin(&mut self, ticket: Ticket, nanoseconds: u64) {
        if ticket.intended >= self.measure_from {
            self.record(LoadTime::Origin, Nanos::new(nanoseconds));
        }
    }

    /// Records further times of a response.
    pub(super) fn time(&mut self, ticket: Ticket, what: LoadTime, time: Nanos) {
        if ticket.intended >= self.measure_from {
            self.record(what, time);
        }
    }

    /// Counts the end of a gRPC call.
    pub(super) fn call_ended(&self, ticket: Ticket, end: CallEnd) {
        if ticket.intended >= self.count_from {
            self.shard.calls.ended(end).add(1);
        }
    }

    /// Counts gRPC messages.
    pub(super) fn messages(&self, ticket: Ticket, which: CallMessages, messages: u64) {
        if ticket.intended >= self.count_from {
            self.shard.calls.messages(which).add(messages);
        }
    }

    /// Counts a failure at `now`. Returns whether it ends the load.
    pub(super) fn failed(&mut self, ticket: Ticket, outcome: Outcome, now: Moment) -> bool {
        let intended = ticket.intended;
        if intended >= self.count_from
            && let Some(route) = self.routes.of(ticket.endpoint, ticket.request)
        {
            route.failed(outcome);
        }
        if intended >= self.measure_from && Outcome::FAILURES.contains(&outcome) {
            self.record(LoadTime::Failed(outcome), now.since(intended));
        }
        self.end(intended, outcome, now)
    }

    /// Counts the end of a request. Returns whether it ends the load.
    fn end(&mut self, intended: Moment, outcome: Outcome, now: Moment) -> bool {
        self.last_end = now;
        self.in_flight = self.in_flight.saturating_sub(1);
        let cells = if intended < self.count_from {
            &self.shard.warmup_outcomes
        } else {
            &self.shard.outcomes
        };
        cells[outcome.index()].add(1);
        self.is_over()
    }

    /// True if a predicate ended the load.
    pub(super) fn is_over(&self) -> bool {
        !self.watches.is_empty() && !self.is_warming && self.look()
    }

    /// Counts the requests in flight as cut.
    pub(super) fn cut(&mut self) {
        let sum = |cells: &[Cell]| cells.iter().map(Cell::total).sum::<u64>();
        let shard = &self.shard;
        for (begun, outcomes) in [
            (&shard.warmup_begun, &shard.warmup_outcomes),
            (&shard.begun, &shard.outcomes),
        ] {
            let left = begun.total().saturating_sub(sum(outcomes));
            outcomes[Outcome::Unfinished.index()].add(left);
        }
        self.in_flight = 0;
    }

    pub(super) fn record(&mut self, what: LoadTime, time: Nanos) {
        self.recorders[what.index()].record(time);
    }

    /// Publishes the recorded times, completely if `at_last`.
    pub(super) fn publish(&mut self, at_last: bool) {
        if at_last {
            self.routes.flush();
        }
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

    /// Returns true if a predicate holds; stores the first one.
    fn look(&self) -> bool {
        if self.shard.predicate.total() > 0 {
            return true;
        }
        let holds = |watch: &PredicateWatch| {
            let values = self
                .watched
                .iter()
                .map(|shard| watch.counter.value(shard.as_ref(), &watch.facts));
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
