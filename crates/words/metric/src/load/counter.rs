//! Counters by name: the list of those that a result prints and that a predicate can use.

mod value;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{CallEnd, CallMessages, HandshakePart, LoadCounts, SourceCount};
use crate::outcome::Outcome;
pub use value::{CounterFacts, HttpVersion, MeasuredCount, WorkerCounts};
use value::{Ends, What};

/// A counter by name: ours, or the one that Nighthawk has for the same.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct LoadCounter(What);

/// Our names of counters besides those of [`Outcome`], and a name of Nighthawk that no result
/// prints.
const NAMES: [(&str, What); 11] = [
    ("requests", What::Begun),
    ("requests_sent", What::Sent),
    ("connect_failures", What::Unconnected),
    ("cut_off", What::StreamResets),
    ("connections", What::Measured(MeasuredCount::Connections)),
    (
        "connections_used_up",
        What::Measured(MeasuredCount::ConnectionsUsedUp),
    ),
    ("bytes_sent", What::Measured(MeasuredCount::BytesSent)),
    (
        "bytes_received",
        What::Measured(MeasuredCount::BytesReceived),
    ),
    ("benchmark.http_1xx", What::Never),
    ("calls_failed", What::CallFailures),
    ("answers", What::Answers),
];

/// Counters of results by Nighthawk's names, most of which are Envoy's.
const PRINTED: [(&str, What); 47] = [
    ("benchmark.http_2xx", What::Ended(Outcome::Ok)),
    ("benchmark.http_3xx", What::Ended(Outcome::Status3xx)),
    ("benchmark.http_4xx", What::Ended(Outcome::Status4xx)),
    ("benchmark.http_5xx", What::Ended(Outcome::Status5xx)),
    ("benchmark.http_xxx", What::Ended(Outcome::StatusOther)),
    ("benchmark.pool_connection_failure", What::Unconnected),
    ("benchmark.pool_overflow", What::Ended(Outcome::Dropped)),
    ("benchmark.stream_resets", What::StreamResets),
    ("benchmark.grpc_error", What::CallFailures),
    ("benchmark.grpc_status.missing", What::CallsWithoutStatus),
    ("benchmark.grpc_status.invalid", What::CallsInvalid),
    ("graceful_stop_requested", What::Stopped),
    ("sequencer.failed_terminations", What::FailedPredicate),
    ("default.total_match_count", What::Targets),
    ("membership_change", What::Targets),
    (
        "upstream_cx_total",
        What::Measured(MeasuredCount::Connections),
    ),
    ("upstream_cx_http1_total", What::Opened(HttpVersion::One)),
    ("upstream_cx_http2_total", What::Opened(HttpVersion::Two)),
    ("upstream_cx_http3_total", What::Opened(HttpVersion::Three)),
    (
        "upstream_cx_connect_fail",
        What::Measured(MeasuredCount::ConnectFailures),
    ),
    (
        "upstream_cx_connect_timeout",
        What::Measured(MeasuredCount::ConnectTimeouts),
    ),
    ("upstream_cx_destroy", What::Destroyed(Ends::ALL)),
    ("upstream_cx_destroy_local", What::Destroyed(Ends::LOCAL)),
    (
        "upstream_cx_destroy_local_with_active_rq",
        What::Destroyed(Ends::LOCAL.active()),
    ),
    ("upstream_cx_destroy_remote", What::Destroyed(Ends::REMOTE)),
    (
        "upstream_cx_destroy_remote_with_active_rq",
        What::Destroyed(Ends::REMOTE.active()),
    ),
    (
        "upstream_cx_destroy_with_active_rq",
        What::Destroyed(Ends::ALL.active()),
    ),
    (
        "upstream_cx_max_requests",
        What::Measured(MeasuredCount::ConnectionsUsedUp),
    ),
    ("upstream_cx_overflow", What::ConnectionOverflow),
    (
        "upstream_cx_rx_bytes_total",
        What::Measured(MeasuredCount::BytesReceived),
    ),
    (
        "upstream_cx_tx_bytes_total",
        What::Measured(MeasuredCount::BytesSent),
    ),
    ("upstream_rq_active_overflow", What::ActiveOverflow),
    ("upstream_rq_pending_overflow", What::PendingOverflow),
    ("upstream_rq_pending_failure_eject", What::Unconnected),
    ("upstream_rq_pending_total", What::Pending),
    ("upstream_rq_total", What::Sent),
    (
        SourceCount::Requests.name(),
        What::Source(SourceCount::Requests),
    ),
    (SourceCount::Ended.name(), What::Source(SourceCount::Ended)),
    (SourceCount::Waits.name(), What::Source(SourceCount::Waits)),
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
    ("ssl.handshake", What::Handshakes),
    (
        "ssl.session_reused",
        What::Measured(MeasuredCount::HandshakesResumed),
    ),
];

/// Start of the names of statuses of calls.
const CALL_STATUS: &str = "benchmark.grpc_status.";

/// A name that no counter has.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("unknown counter `{given}`: \
     the counters are {}, status_100 to status_599, benchmark.grpc_status.0 to .16, \
     and ssl.ciphers, .curves, .sigalgs and .versions with a name", names().join(", "))]
pub struct CounterError {
    /// Text that was given.
    pub given: String,
}

impl LoadCounter {
    /// Counters that have a name of Nighthawk, by that name.
    pub fn foreign() -> impl Iterator<Item = (Self, &'static str)> {
        let is_foreign = |name: &str| name.contains('.') || name.starts_with("upstream_");
        let known = NAMES.iter().chain(&PRINTED);
        let known = known.filter(move |(name, _)| is_foreign(name));
        known.map(|(name, what)| (Self(*what), *name))
    }

    /// Counters of a result, without the parts that handshakes agreed on.
    fn printed() -> impl Iterator<Item = (Cow<'static, str>, What)> {
        let named = PRINTED.iter().map(|(name, what)| ((*name).into(), *what));
        let ends = CallEnd::ALL.into_iter();
        let ends = ends.map(|end| (end.name().into(), What::Call(end)));
        let statuses = CallEnd::ALL.into_iter().filter(|end| end.is_status());
        let statuses = statuses.map(|end| {
            let name = format!("{CALL_STATUS}{}", end.index());
            (name.into(), What::Call(end))
        });
        let messages = CallMessages::ALL.into_iter();
        let messages = messages.map(|which| (which.name().into(), What::Messages(which)));
        named.chain(ends).chain(statuses).chain(messages)
    }

    /// Returns the value in the measured time, as results print it.
    #[must_use]
    pub fn value(self, counts: &impl WorkerCounts, facts: &CounterFacts) -> u64 {
        self.0.value(counts, facts)
    }
}

impl LoadCounts {
    /// Returns the counters of a result by name, without zeros. Each name is one of
    /// [`LoadCounter`].
    #[must_use]
    pub fn printed(&self, facts: &CounterFacts) -> BTreeMap<String, u64> {
        let named = LoadCounter::printed();
        let named = named.map(|(name, what)| (name.into_owned(), what.value(self, facts)));
        let agreed = self.handshakes.iter();
        let agreed = agreed.map(|agreed| (agreed.part.counter(&agreed.name), agreed.count));
        let all = named.chain(agreed).filter(|(_, value)| *value > 0);
        all.collect()
    }
}

impl FromStr for LoadCounter {
    type Err = CounterError;

    fn from_str(text: &str) -> Result<Self, CounterError> {
        let named = NAMES.iter().chain(&PRINTED).find(|(name, _)| *name == text);
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
            .or_else(|| HandshakePart::of_counter(text).map(What::Agreed))
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
        let mut named = NAMES.iter().chain(&PRINTED);
        let named = named.find(|(_, what)| *what == self.0);
        match self.0 {
            What::Status(status) => return write!(f, "status_{status}"),
            What::Agreed((part, name)) => return f.write_str(&part.counter(name)),
            _ => {}
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
    let number = text.strip_prefix(CALL_STATUS)?.parse().ok()?;
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
    let source = source.filter(|name| PRINTED.iter().all(|(printed, _)| printed != name));
    let named = NAMES.iter().chain(&PRINTED).map(|(name, _)| *name);
    let all = ends.chain(named).chain(calls).chain(messages);
    all.chain(source).collect()
}

#[cfg(test)]
mod tests;
