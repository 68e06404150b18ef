//! Counters that a predicate can use.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{CallEnd, CallMessages, LoadShard, SourceCount};
use crate::outcome::Outcome;

/// A counter by name: ours, or the one that Nighthawk has for the same.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct LoadCounter(What);

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum What {
    Begun,
    Sent,
    Ended(Outcome),
    Status(u16),
    Call(CallEnd),
    Messages(CallMessages),
    /// Calls that did not end with status 0.
    CallFailures,
    /// Responses of any status.
    Answers,
    Source(SourceCount),
    /// A status from 100 to 199 is never the end of a request.
    Never,
    ConnectFailures,
    StreamResets,
    Connections,
    UsedUp,
    BytesSent,
    BytesReceived,
}

/// Names of counters besides those of [`Outcome`]; of several for one, the
/// first is ours.
const NAMES: [(&str, What); 33] = [
    ("requests", What::Begun),
    ("requests_sent", What::Sent),
    ("upstream_rq_total", What::Sent),
    ("connect_failures", What::ConnectFailures),
    ("benchmark.pool_connection_failure", What::ConnectFailures),
    ("upstream_cx_connect_fail", What::ConnectFailures),
    ("cut_off", What::StreamResets),
    ("benchmark.stream_resets", What::StreamResets),
    ("connections", What::Connections),
    ("upstream_cx_total", What::Connections),
    ("connections_used_up", What::UsedUp),
    ("upstream_cx_max_requests", What::UsedUp),
    ("bytes_sent", What::BytesSent),
    ("upstream_cx_tx_bytes_total", What::BytesSent),
    ("bytes_received", What::BytesReceived),
    ("upstream_cx_rx_bytes_total", What::BytesReceived),
    ("benchmark.http_1xx", What::Never),
    ("benchmark.http_2xx", What::Ended(Outcome::Ok)),
    ("benchmark.http_3xx", What::Ended(Outcome::Status3xx)),
    ("benchmark.http_4xx", What::Ended(Outcome::Status4xx)),
    ("benchmark.http_5xx", What::Ended(Outcome::Status5xx)),
    ("benchmark.http_xxx", What::Ended(Outcome::StatusOther)),
    ("benchmark.pool_overflow", What::Ended(Outcome::Dropped)),
    ("calls_failed", What::CallFailures),
    ("benchmark.grpc_error", What::CallFailures),
    (
        "benchmark.grpc_status.missing",
        What::Call(CallEnd::NotGrpc),
    ),
    ("answers", What::Answers),
    (
        "requestsource.internal.upstream_rq_200",
        What::Source(SourceCount::Answered),
    ),
    (
        "requestsource.upstream_cx_total",
        What::Source(SourceCount::Calls),
    ),
    (
        "requestsource.upstream_cx_connect_fail",
        What::Source(SourceCount::Unconnected),
    ),
    (
        "requestsource.upstream_rq_total",
        What::Source(SourceCount::Calls),
    ),
    (
        "requestsource.upstream_rq_pending_failure_eject",
        What::Source(SourceCount::Unconnected),
    ),
    (
        "requestsource.upstream_rq_5xx",
        What::Source(SourceCount::Failures),
    ),
];

/// Ends of requests that got no connection.
const NO_CONNECTION: [Outcome; 4] = [
    Outcome::ConnectRefused,
    Outcome::ConnectTimedOut,
    Outcome::ConnectFailed,
    Outcome::HandshakeFailed,
];

/// Ends of requests that had one and got no whole answer.
const CUT_OFF: [Outcome; 4] = [
    Outcome::PeerClosed,
    Outcome::TimedOut,
    Outcome::Malformed,
    Outcome::SendFailed,
];

/// A name that no counter has.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("unknown counter `{given}`: the counters are {} and status_100 to status_599", names().join(", "))]
pub struct CounterError {
    /// Text that was given.
    pub given: String,
}

impl LoadCounter {
    /// Counters that have a name of Nighthawk, by that name; of several, the first.
    pub fn foreign() -> impl Iterator<Item = (Self, &'static str)> {
        let is_foreign = |name: &str| name.contains('.') || name.starts_with("upstream_");
        let known = NAMES.iter().filter(move |(name, _)| is_foreign(name));
        known.map(|(name, what)| (Self(*what), *name))
    }

    /// Returns the reported value, of the measured time.
    #[must_use]
    pub fn value(self, shard: &LoadShard) -> u64 {
        let ended = |outcome: Outcome| shard.ended(outcome);
        match self.0 {
            What::Begun => shard.begun.total(),
            What::Sent => shard.sent.total(),
            What::Ended(outcome) => ended(outcome),
            What::Status(status) => shard.statuses.of(status),
            What::Call(end) => shard.calls.ended(end).total(),
            What::Messages(which) => shard.calls.messages(which).total(),
            What::CallFailures => {
                let failures = CallEnd::ALL.into_iter().filter(|end| *end != CallEnd::Ok);
                failures.map(|end| shard.calls.ended(end).total()).sum()
            }
            What::Answers => Outcome::ANSWERS.into_iter().map(ended).sum(),
            What::Source(count) => shard.source.value(count),
            What::Never => 0,
            What::ConnectFailures => NO_CONNECTION.into_iter().map(ended).sum(),
            What::StreamResets => CUT_OFF.into_iter().map(ended).sum(),
            What::Connections => shard.connections.measured(),
            What::UsedUp => shard.connections_used_up.measured(),
            What::BytesSent => shard.bytes_sent.measured(),
            What::BytesReceived => shard.bytes_received.measured(),
        }
    }
}

impl FromStr for LoadCounter {
    type Err = CounterError;

    fn from_str(text: &str) -> Result<Self, CounterError> {
        let named = NAMES.iter().find(|(name, _)| *name == text);
        let end = || Outcome::ALL.into_iter().find(|end| end.name() == text);
        let call = || CallEnd::ALL.into_iter().find(|end| end.name() == text);
        let messages = || {
            CallMessages::ALL
                .into_iter()
                .find(|count| count.name() == text)
        };
        let source = || {
            SourceCount::ALL
                .into_iter()
                .find(|count| count.name() == text)
        };
        named
            .map(|(_, what)| *what)
            .or_else(|| end().map(What::Ended))
            .or_else(|| call().map(What::Call))
            .or_else(|| messages().map(What::Messages))
            .or_else(|| source().map(What::Source))
            .or_else(|| status(text).map(What::Status))
            .or_else(|| call_status(text).map(What::Call))
            .map(Self)
            .ok_or_else(|| CounterError {
                given: text.to_owned(),
            })
    }
}

impl TryFrom<String> for LoadCounter {
    type Error = CounterError;

    fn try_from(text: String) -> Result<Self, CounterError> {
        text.parse()
    }
}

impl From<LoadCounter> for String {
    fn from(counter: LoadCounter) -> Self {
        counter.to_string()
    }
}

impl fmt::Display for LoadCounter {
    /// Our name of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = NAMES.iter().find(|(_, what)| *what == self.0);
        if let What::Status(status) = self.0 {
            return write!(f, "status_{status}");
        }
        f.write_str(match self.0 {
            What::Ended(outcome) => outcome.name(),
            What::Call(end) => end.name(),
            What::Messages(which) => which.name(),
            What::Source(count) => count.name(),
            _ => named.map_or("", |(name, _)| name),
        })
    }
}

/// Reads `benchmark.grpc_status.13`: one status of calls.
fn call_status(text: &str) -> Option<CallEnd> {
    let number = text.strip_prefix("benchmark.grpc_status.")?.parse().ok()?;
    Some(CallEnd::of_status(number)).filter(|end| *end != CallEnd::StatusOther)
}

/// Reads `status_503`: one status code.
fn status(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("status_")?;
    let status = digits.parse().ok()?;
    (100..=599).contains(&status).then_some(status)
}

fn names() -> Vec<&'static str> {
    let ends = Outcome::ALL.iter().map(|end| end.name());
    let calls = CallEnd::ALL.iter().map(|end| end.name());
    let messages = CallMessages::ALL.iter().map(|which| which.name());
    let source = SourceCount::ALL.iter().map(|count| count.name());
    let named = NAMES.iter().map(|(name, _)| *name);
    let all = ends.chain(named).chain(calls).chain(messages);
    all.chain(source).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back_and_no_other_does() {
        for name in names() {
            let counter: LoadCounter = name.parse().unwrap();
            assert_eq!(counter.to_string().parse(), Ok(counter), "{name}");
        }
        let counter: LoadCounter = "status_503".parse().unwrap();
        assert_eq!(counter.to_string(), "status_503");
        assert!("status_99".parse::<LoadCounter>().is_err());
        let error = "benchmark.http_2x".parse::<LoadCounter>().unwrap_err();
        assert!(error.to_string().contains("status_4xx, "), "{error}");
    }

    #[test]
    fn a_counter_shows_what_its_shard_counted() {
        let (shard, _) = LoadShard::pair();
        shard.outcomes[Outcome::ConnectRefused.index()].add(2);
        shard.outcomes[Outcome::HandshakeFailed.index()].add(1);
        let value = |name: &str| name.parse::<LoadCounter>().unwrap().value(&shard);
        assert_eq!(value("benchmark.pool_connection_failure"), 3);
        assert_eq!(value("connect_refused"), 2);
        assert_eq!(value("benchmark.stream_resets"), 0);
        shard.statuses.count(503);
        assert_eq!((value("status_503"), value("status_500")), (1, 0));
    }

    #[test]
    fn calls_count_by_status_and_by_failure() {
        let (shard, _) = LoadShard::pair();
        shard.calls.ended(CallEnd::Ok).add(4);
        shard.calls.ended(CallEnd::Internal).add(2);
        shard.calls.ended(CallEnd::NotGrpc).add(1);
        let value = |name: &str| name.parse::<LoadCounter>().unwrap().value(&shard);
        assert_eq!(value("benchmark.grpc_status.0"), 4);
        assert_eq!(value("benchmark.grpc_status.13"), 2);
        assert_eq!(value("benchmark.grpc_status.missing"), 1);
        assert_eq!(value("benchmark.grpc_error"), 3);
        assert!("benchmark.grpc_status.17".parse::<LoadCounter>().is_err());
    }

    #[test]
    fn a_predicate_on_sent_requests_counted_dropped_ones() {
        let (shard, _) = LoadShard::pair();
        shard.begun.add(5);
        shard.sent.add(3);
        let value = |name: &str| name.parse::<LoadCounter>().unwrap().value(&shard);
        assert_eq!((value("requests"), value("upstream_rq_total")), (5, 3));
    }

    #[test]
    fn a_predicate_uses_only_counts_of_the_measured_time() {
        let (shard, _) = LoadShard::pair();
        shard.warm_up();
        shard.warmup_begun.add(3);
        shard.warmup_sent.add(3);
        shard.warmup_outcomes[Outcome::Ok.index()].add(3);
        shard.connections.add(1);
        shard.bytes_received.add(99);
        for name in names() {
            let counter: LoadCounter = name.parse().unwrap();
            assert_eq!(counter.value(&shard), 0, "{name}");
        }
    }
}
