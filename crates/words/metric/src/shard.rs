//! Counters of one worker.

use std::sync::{Arc, OnceLock};

use crate::account::AccountCells;
use crate::catalogue as metric;
use crate::cell::Cell;
use crate::load::StatusCells;
use crate::outcome::Outcome;
use crate::recorder::{Interval, Intervals, encode_histogram};
use crate::routes::{RouteShard, RouteTime};
use crate::sample::{Labels, Sample, Value};

/// Something that the sampler reads once a beat.
pub trait Shard: Send + Sync {
    /// Adds a sample of everything that this shard counts.
    fn sample(&self, samples: &mut Vec<Sample>);
}

/// Counters of one generator worker.
#[derive(Debug)]
pub struct GeneratorShard {
    labels: Labels,
    /// Payload bytes handed to the kernel.
    pub bytes: Cell,
    /// Whole events handed to the kernel.
    pub events: Cell,
    /// Whole blocks handed to the kernel.
    pub blocks: Cell,
    /// Log records, metrics and spans in them; for formats of text one an event.
    pub units: Cell,
    /// Units that the schedule requested; stays 0 at full speed.
    pub requested_units: Cell,
    /// Units of the schedule that were sent.
    pub sent_units: Cell,
    /// Requests, datagrams or writes begun.
    pub requests: Cell,
    /// Connections opened.
    pub connections: Cell,
    /// Blocks that were sent before, since no new ones were ready.
    pub blocks_again: Cell,
    /// Events that the receiver acknowledged.
    pub events_acknowledged: Cell,
    /// Events that it refused permanently.
    pub events_refused: Cell,
    /// Requests that were resent.
    pub requests_again: Cell,
    /// Requests that the receiver acknowledged.
    pub acks_received: Cell,
    /// Requests that were taken and not acknowledged in time.
    pub acks_lost: Cell,
    /// Requests that were taken and are neither yet.
    pub acks_pending: Cell,
    /// Polls for acknowledgements that were answered.
    pub ack_questions_ok: Cell,
    /// Polls for acknowledgements that failed.
    pub ack_questions_failed: Cell,
    /// Polls for acknowledgements that were not answered in time.
    pub ack_questions_late: Cell,
    /// Bytes of the messages that answered calls.
    pub response_bytes: Cell,
    /// Most requests in flight at once, where that is recorded.
    pub requests_max: Cell,
    /// Sends by outcome.
    pub outcomes: [Cell; Outcome::ALL.len()],
    /// Counters of HTTP requests, if the worker sends any.
    pub web: OnceLock<RequestsShard>,
    /// Time breakdown of the worker.
    pub account: AccountCells,
    lateness: Intervals,
    response_time: Intervals,
    service_time: Intervals,
}

impl GeneratorShard {
    /// A shard that shows `labels`, and the sampler's ends of the worker's
    /// recorders: of lateness, of response time, of service time.
    #[must_use]
    pub fn new(
        labels: Labels,
        lateness: Intervals,
        response_time: Intervals,
        service_time: Intervals,
    ) -> Self {
        Self {
            labels,
            bytes: Cell::default(),
            events: Cell::default(),
            blocks: Cell::default(),
            units: Cell::default(),
            requested_units: Cell::default(),
            sent_units: Cell::default(),
            requests: Cell::default(),
            connections: Cell::default(),
            blocks_again: Cell::default(),
            events_acknowledged: Cell::default(),
            events_refused: Cell::default(),
            requests_again: Cell::default(),
            acks_received: Cell::default(),
            acks_lost: Cell::default(),
            acks_pending: Cell::default(),
            ack_questions_ok: Cell::default(),
            ack_questions_failed: Cell::default(),
            ack_questions_late: Cell::default(),
            response_bytes: Cell::default(),
            requests_max: Cell::default(),
            outcomes: Default::default(),
            web: OnceLock::new(),
            account: AccountCells::default(),
            lateness,
            response_time,
            service_time,
        }
    }

    /// Samples a gauge that can fall to 0 again; reported if any acknowledgement was requested.
    fn sample_acks_pending(&self, samples: &mut Vec<Sample>) {
        let pending = self.acks_pending.total();
        if pending + self.acks_received.total() + self.acks_lost.total() > 0 {
            samples.push(Sample::int(metric::ACKS_PENDING, &self.labels, pending));
        }
    }

    /// Counts one more of `outcome`.
    pub fn count(&self, outcome: Outcome) {
        self.outcomes[outcome.index()].add(1);
    }
}

impl Shard for GeneratorShard {
    fn sample(&self, samples: &mut Vec<Sample>) {
        let counters = [
            (metric::BYTES_WRITTEN, &self.bytes),
            (metric::EVENTS_WRITTEN, &self.events),
            (metric::BLOCKS_WRITTEN, &self.blocks),
            (metric::REQUESTED_UNITS, &self.requested_units),
            (metric::SENT_UNITS, &self.sent_units),
            (metric::REQUESTS_SENT, &self.requests),
            (metric::CONNECTIONS_OPENED, &self.connections),
        ];
        for (metric, cell) in counters {
            samples.push(Sample::int(metric, &self.labels, cell.total()));
        }
        // Where an event holds several things.
        let units = self.units.total();
        if units > self.events.total() {
            samples.push(Sample::int(metric::UNITS_WRITTEN, &self.labels, units));
        }
        let rare = [
            (metric::BLOCKS_AGAIN, &self.blocks_again),
            (metric::EVENTS_ACKNOWLEDGED, &self.events_acknowledged),
            (metric::EVENTS_REFUSED, &self.events_refused),
            (metric::REQUESTS_AGAIN, &self.requests_again),
            (metric::ACKS_RECEIVED, &self.acks_received),
            (metric::ACKS_LOST, &self.acks_lost),
            (metric::ACK_QUESTIONS_OK, &self.ack_questions_ok),
            (metric::ACK_QUESTIONS_FAILED, &self.ack_questions_failed),
            (metric::ACK_QUESTIONS_LATE, &self.ack_questions_late),
            (metric::RESPONSE_BYTES, &self.response_bytes),
            (metric::REQUESTS_MAX, &self.requests_max),
        ];
        sample_rare(&rare, &self.labels, samples);
        self.sample_acks_pending(samples);
        for outcome in Outcome::ALL {
            let total = self.outcomes[outcome.index()].total();
            if total > 0 {
                let labels = self.labels.clone().with("outcome", outcome.name());
                samples.push(Sample::int(metric::OUTCOMES, &labels, total));
            }
        }
        if let Some(web) = self.web.get() {
            web.sample(&self.labels, samples);
        }
        sample_account(&self.account, &self.labels, samples);
        let histograms = [
            (metric::LATENESS, &self.lateness),
            (metric::RESPONSE_TIME, &self.response_time),
            (metric::SERVICE_TIME, &self.service_time),
        ];
        for (metric, intervals) in histograms {
            sample_times(metric, &self.labels, intervals.take(), samples);
        }
    }
}

/// Counters of the HTTP requests of one generator worker.
#[derive(Debug)]
pub struct RequestsShard {
    /// Responses by status code.
    pub statuses: StatusCells,
    first_byte: Intervals,
    routes: Vec<(String, Arc<RouteShard>)>,
}

impl RequestsShard {
    /// A shard with the sampler's end of the recorder of first bytes, and the routes by their
    /// names; none if there is only one route.
    #[must_use]
    pub fn new(first_byte: Intervals, routes: Vec<(String, Arc<RouteShard>)>) -> Self {
        Self {
            statuses: StatusCells::default(),
            first_byte,
            routes,
        }
    }

    fn sample(&self, labels: &Labels, samples: &mut Vec<Sample>) {
        for (status, count) in self.statuses.read() {
            let labels = labels.clone().with("status", status.to_string());
            samples.push(Sample::int(metric::STATUSES, &labels, count));
        }
        let first_byte = self.first_byte.take();
        sample_times(metric::FIRST_BYTE_TIME, labels, first_byte, samples);
        for (name, route) in &self.routes {
            let labels = labels.clone().with("route", name.as_str());
            for (status, count) in route.statuses() {
                let labels = labels.clone().with("status", status.to_string());
                samples.push(Sample::int(metric::ROUTE_STATUSES, &labels, count));
            }
            let ended = Outcome::ALL.map(|outcome| (outcome, route.ended(outcome)));
            for (outcome, count) in ended.into_iter().filter(|(_, count)| *count > 0) {
                let labels = labels.clone().with("outcome", outcome.name());
                samples.push(Sample::int(metric::ROUTE_OUTCOMES, &labels, count));
            }
            for time in RouteTime::ALL {
                let metric = match time {
                    RouteTime::Response => metric::ROUTE_RESPONSE_TIME,
                    RouteTime::Service => metric::ROUTE_SERVICE_TIME,
                    RouteTime::FirstByte => metric::ROUTE_FIRST_BYTE_TIME,
                };
                sample_times(metric, &labels, route.take(time), samples);
            }
        }
    }
}

fn sample_times(
    metric: metric::Metric,
    labels: &Labels,
    interval: Option<Interval>,
    samples: &mut Vec<Sample>,
) {
    if let Some(histogram) = interval.filter(|histogram| !histogram.is_empty()) {
        let value = Value::Histogram(encode_histogram(&histogram));
        samples.push(Sample::new(metric, labels, value));
    }
}

/// The name of the thread on which worker `number` of sink `id` runs, under
/// which its CPU time is recorded.
#[must_use]
pub fn sink_worker_name(id: &str, number: &(impl std::fmt::Display + ?Sized)) -> String {
    format!("{SINK_WORKER}{id}-{number}")
}

/// Returns true if a thread of this name is a worker of a sink.
#[must_use]
pub fn is_sink_worker(name: &str) -> bool {
    name.starts_with(SINK_WORKER)
}

/// Prefix of the names of the threads of sinks.
const SINK_WORKER: &str = "sink-";

/// Counters of one sink worker.
#[derive(Debug)]
pub struct SinkShard {
    labels: Labels,
    /// Payload bytes as they came over the wire.
    pub bytes: Cell,
    /// The same without their compression, where a sink undoes it.
    pub decoded_bytes: Cell,
    /// Events.
    pub events: Cell,
    /// Datagrams or requests.
    pub messages: Cell,
    /// Events that answers held: messages handed out, samples scraped.
    pub events_served: Cell,
    /// Connections accepted.
    pub connections: Cell,
    /// Those of them that have ended.
    pub connections_ended: Cell,
    /// When the last byte had come, in nanoseconds of the run's clock; 0 before.
    pub received_at: Cell,
    /// Most connections at once, where there is a limit.
    pub connections_max: Cell,
    /// gRPC calls.
    pub calls: Cell,
    /// Bodies with series of metrics that were read.
    pub parsed: Cell,
    /// Connections given up because of what they sent.
    pub errors: Cell,
    /// Requests whose bodies were not what the protocol says.
    pub malformed: Cell,
    /// Datagrams that the kernel dropped before the sink read them.
    pub dropped: Cell,
    /// Requests refused on purpose: what was in them was not delivered.
    pub refused: Cell,
    /// Time breakdown of the worker.
    pub account: AccountCells,
}

impl SinkShard {
    /// Returns true if its worker is the first of its sink.
    #[must_use]
    pub fn is_first(&self) -> bool {
        self.labels
            .value("worker")
            .is_none_or(|worker| worker == "0")
    }

    /// A shard that shows `labels`.
    #[must_use]
    pub fn new(labels: Labels) -> Self {
        Self {
            labels,
            bytes: Cell::default(),
            decoded_bytes: Cell::default(),
            events: Cell::default(),
            messages: Cell::default(),
            events_served: Cell::default(),
            connections: Cell::default(),
            connections_ended: Cell::default(),
            received_at: Cell::default(),
            connections_max: Cell::default(),
            calls: Cell::default(),
            parsed: Cell::default(),
            errors: Cell::default(),
            malformed: Cell::default(),
            dropped: Cell::default(),
            refused: Cell::default(),
            account: AccountCells::default(),
        }
    }
}

impl Shard for SinkShard {
    fn sample(&self, samples: &mut Vec<Sample>) {
        let counters = [
            (metric::BYTES_RECEIVED, &self.bytes),
            (metric::EVENTS_RECEIVED, &self.events),
            (metric::MESSAGES_RECEIVED, &self.messages),
            (metric::CONNECTIONS_ACCEPTED, &self.connections),
            (metric::SINK_ERRORS, &self.errors),
        ];
        for (metric, cell) in counters {
            samples.push(Sample::int(metric, &self.labels, cell.total()));
        }
        let (accepted, ended) = (self.connections.total(), self.connections_ended.total());
        if accepted > 0 {
            let open = accepted.saturating_sub(ended);
            samples.push(Sample::int(metric::CONNECTIONS_OPEN, &self.labels, open));
        }
        let rare = [
            (metric::DECODED_BYTES_RECEIVED, &self.decoded_bytes),
            (metric::CONNECTIONS_MAX, &self.connections_max),
            (metric::CALLS_RECEIVED, &self.calls),
            (metric::BODIES_PARSED, &self.parsed),
            (metric::BODIES_MALFORMED, &self.malformed),
            (metric::REQUESTS_REFUSED, &self.refused),
            (metric::EVENTS_SERVED, &self.events_served),
            (metric::DATAGRAMS_DROPPED, &self.dropped),
        ];
        sample_rare(&rare, &self.labels, samples);
        sample_account(&self.account, &self.labels, samples);
    }
}

/// Counters that most parts never touch: only those that were.
fn sample_rare(counters: &[(metric::Metric, &Cell)], labels: &Labels, samples: &mut Vec<Sample>) {
    for (metric, cell) in counters {
        let total = cell.total();
        if total > 0 {
            samples.push(Sample::int(*metric, labels, total));
        }
    }
}

fn sample_account(account: &AccountCells, labels: &Labels, samples: &mut Vec<Sample>) {
    let counters = [
        (metric::WORKER_IDLE, &account.idle),
        (metric::WORKER_BLOCKED, &account.blocked),
        (metric::WORKER_RUNNING, &account.running),
        (metric::WORKER_LATE, &account.late),
    ];
    for (metric, cell) in counters {
        samples.push(Sample::int(metric, labels, cell.total()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::Recorder;

    #[test]
    fn a_shard_shows_what_its_worker_counted() {
        let (mut recorder, lateness) = Recorder::pair();
        let (_, response) = Recorder::pair();
        let (_, service) = Recorder::pair();
        let labels = Labels::none().with("id", "one");
        let shard = GeneratorShard::new(labels, lateness, response, service);
        shard.bytes.add(10);
        shard.bytes.add(5);
        shard.count(Outcome::ConnectRefused);
        recorder.record(stillwell_units::Nanos::new(50));
        recorder.flush();
        let mut samples = Vec::new();
        shard.sample(&mut samples);
        let find = |metric: metric::Metric| samples.iter().find(|s| s.name == metric.into());
        assert_eq!(find(metric::BYTES_WRITTEN).unwrap().value, Value::Int(15));
        let refused = find(metric::OUTCOMES).unwrap();
        assert_eq!(refused.labels.value("outcome"), Some("connect_refused"));
        assert!(find(metric::LATENESS).is_some());
        assert!(find(metric::RESPONSE_TIME).is_none());
    }
}
