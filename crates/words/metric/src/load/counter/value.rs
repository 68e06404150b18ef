//! Values of counters, from the counts of a worker that runs or has ended.

use super::super::{
    CallEnd, CallMessages, HandshakePart, LoadCounts, LoadShard, PhasedCount, SourceCount,
};
use crate::cell::PhasedCell;
use crate::outcome::Outcome;

/// Version of HTTP of a load.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum HttpVersion {
    /// HTTP/1.1.
    One,
    /// HTTP/2.
    Two,
    /// HTTP/3.
    Three,
}

/// Properties of a load that counters depend on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CounterFacts {
    /// Version of HTTP.
    pub http: HttpVersion,
    /// Number of targets.
    pub targets: u64,
    /// Number of termination predicates, which come before those of failure.
    pub terminations: u64,
    /// True once the load was interrupted.
    pub was_stopped: bool,
}

/// A count that separates the warm-up from the measured time.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum MeasuredCount {
    /// Connections opened.
    Connections,
    /// Attempts to connect that failed.
    ConnectFailures,
    /// Attempts to connect that took too long.
    ConnectTimeouts,
    /// Handshakes that resumed a session.
    HandshakesResumed,
    /// Requests that waited for a connection that was opened for them.
    WaitedForConnect,
    /// Requests that waited although no connection could be added.
    WaitedForFree,
    /// Connections that reached their maximum number of requests.
    ConnectionsUsedUp,
    /// Connections that the peer ended between two requests.
    ConnectionsEnded,
    /// Connections of HTTP/2 and HTTP/3 that the peer ended in the middle of requests.
    ConnectionsCut,
    /// Bytes written to connections.
    BytesSent,
    /// Bytes read from connections.
    BytesReceived,
}

impl MeasuredCount {
    /// Returns its cell in `shard`.
    #[must_use]
    pub const fn cell(self, shard: &LoadShard) -> &PhasedCell {
        match self {
            Self::Connections => &shard.connections,
            Self::ConnectFailures => &shard.connect_failures,
            Self::ConnectTimeouts => &shard.connect_timeouts,
            Self::HandshakesResumed => &shard.handshakes_resumed,
            Self::WaitedForConnect => &shard.waited_for_connect,
            Self::WaitedForFree => &shard.waited_for_free,
            Self::ConnectionsUsedUp => &shard.connections_used_up,
            Self::ConnectionsEnded => &shard.connections_ended,
            Self::ConnectionsCut => &shard.connections_cut,
            Self::BytesSent => &shard.bytes_sent,
            Self::BytesReceived => &shard.bytes_received,
        }
    }

    const fn of(self, counts: &LoadCounts) -> PhasedCount {
        match self {
            Self::Connections => counts.connections,
            Self::ConnectFailures => counts.connect_failures,
            Self::ConnectTimeouts => counts.connect_timeouts,
            Self::HandshakesResumed => counts.handshakes_resumed,
            Self::WaitedForConnect => counts.waited_for_connect,
            Self::WaitedForFree => counts.waited_for_free,
            Self::ConnectionsUsedUp => counts.connections_used_up,
            Self::ConnectionsEnded => counts.connections_ended,
            Self::ConnectionsCut => counts.connections_cut,
            Self::BytesSent => counts.bytes_sent,
            Self::BytesReceived => counts.bytes_received,
        }
    }
}

/// Counts of a worker in the measured time.
pub trait WorkerCounts {
    /// Returns the number of requests begun.
    fn begun(&self) -> u64;
    /// Returns the number of requests given to a connection.
    fn sent(&self) -> u64;
    /// Returns the number of requests with this outcome.
    fn ended(&self, outcome: Outcome) -> u64;
    /// Returns the number of responses with this status code.
    fn status(&self, status: u16) -> u64;
    /// Returns the number of calls with this end.
    fn calls(&self, end: CallEnd) -> u64;
    /// Returns the number of messages of calls.
    fn messages(&self, which: CallMessages) -> u64;
    /// Returns a count of the request source.
    fn source(&self, count: SourceCount) -> u64;
    /// Returns a count of the measured time.
    fn measured(&self, count: MeasuredCount) -> u64;
    /// Returns the number of handshakes.
    fn handshakes(&self) -> u64;
    /// Returns the number of handshakes that agreed on `name`.
    fn agreed(&self, part: HandshakePart, name: &str) -> u64;
    /// Returns 1 plus the number of the predicate that ended the worker; 0 for none.
    fn predicate(&self) -> u64;
}

impl WorkerCounts for LoadShard {
    fn begun(&self) -> u64 {
        self.begun.total()
    }

    fn sent(&self) -> u64 {
        self.sent.total()
    }

    fn ended(&self, outcome: Outcome) -> u64 {
        Self::ended(self, outcome)
    }

    fn status(&self, status: u16) -> u64 {
        self.statuses.of(status)
    }

    fn calls(&self, end: CallEnd) -> u64 {
        self.calls.ended(end).total()
    }

    fn messages(&self, which: CallMessages) -> u64 {
        self.calls.messages(which).total()
    }

    fn source(&self, count: SourceCount) -> u64 {
        self.source.value(count)
    }

    fn measured(&self, count: MeasuredCount) -> u64 {
        count.cell(self).measured()
    }

    fn handshakes(&self) -> u64 {
        self.handshakes.total()
    }

    fn agreed(&self, part: HandshakePart, name: &str) -> u64 {
        self.handshakes.of(part, name)
    }

    fn predicate(&self) -> u64 {
        self.predicate.total()
    }
}

impl WorkerCounts for LoadCounts {
    fn begun(&self) -> u64 {
        self.begun
    }

    fn sent(&self) -> u64 {
        self.sent
    }

    fn ended(&self, outcome: Outcome) -> u64 {
        Self::ended(self, outcome)
    }

    fn status(&self, status: u16) -> u64 {
        self.statuses.get(&status).copied().unwrap_or(0)
    }

    fn calls(&self, end: CallEnd) -> u64 {
        self.calls_ended(end)
    }

    fn messages(&self, which: CallMessages) -> u64 {
        Self::messages(self, which)
    }

    fn source(&self, count: SourceCount) -> u64 {
        self.source.value(count)
    }

    fn measured(&self, count: MeasuredCount) -> u64 {
        count.of(self).measured
    }

    fn handshakes(&self) -> u64 {
        self.handshakes_total
    }

    fn agreed(&self, part: HandshakePart, name: &str) -> u64 {
        let mut agreed = self.handshakes.iter();
        let agreed = agreed.find(|agreed| agreed.part == part && agreed.name == name);
        agreed.map_or(0, |agreed| agreed.count)
    }

    fn predicate(&self) -> u64 {
        self.predicate
    }
}

/// Ends of connections that a counter includes.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct Ends {
    by_us: bool,
    by_peer: bool,
    only_active: bool,
}

impl Ends {
    pub(super) const ALL: Self = Self {
        by_us: true,
        by_peer: true,
        only_active: false,
    };
    pub(super) const LOCAL: Self = Self {
        by_peer: false,
        ..Self::ALL
    };
    pub(super) const REMOTE: Self = Self {
        by_us: false,
        ..Self::ALL
    };

    /// The same during a request.
    pub(super) const fn active(self) -> Self {
        Self {
            only_active: true,
            ..self
        }
    }
}

/// The counted quantity.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum What {
    Begun,
    Sent,
    Ended(Outcome),
    Status(u16),
    Call(CallEnd),
    Messages(CallMessages),
    /// Calls that did not end with status 0.
    CallFailures,
    CallsWithoutStatus,
    /// Calls with a status that gRPC does not have, or with an invalid answer.
    CallsInvalid,
    /// Responses of any status.
    Answers,
    Source(SourceCount),
    /// A status from 100 to 199 is never the end of a request.
    Never,
    /// Requests that got no connection.
    Unconnected,
    StreamResets,
    Measured(MeasuredCount),
    /// Connections opened, if the load uses this version.
    Opened(HttpVersion),
    Destroyed(Ends),
    ConnectionOverflow,
    ActiveOverflow,
    PendingOverflow,
    Pending,
    Targets,
    Stopped,
    FailedPredicate,
    Handshakes,
    Agreed((HandshakePart, &'static str)),
}

/// Ends of requests that got no connection.
const UNCONNECTED: [Outcome; 4] = [
    Outcome::ConnectRefused,
    Outcome::ConnectTimedOut,
    Outcome::ConnectFailed,
    Outcome::HandshakeFailed,
];

/// Ends of requests that we cut off, connection and all.
const CUT_BY_US: [Outcome; 3] = [Outcome::TimedOut, Outcome::Malformed, Outcome::SendFailed];

fn ended(counts: &impl WorkerCounts, outcomes: &[Outcome]) -> u64 {
    outcomes.iter().map(|end| counts.ended(*end)).sum()
}

fn calls(counts: &impl WorkerCounts, is_included: impl Fn(CallEnd) -> bool) -> u64 {
    let ends = CallEnd::ALL.into_iter().filter(|end| is_included(*end));
    ends.map(|end| counts.calls(end)).sum()
}

const fn has_no_status(end: CallEnd) -> bool {
    matches!(end, CallEnd::NoStatus | CallEnd::NotGrpc)
}

impl What {
    pub(super) fn value(self, counts: &impl WorkerCounts, facts: &CounterFacts) -> u64 {
        match self {
            Self::Begun => counts.begun(),
            Self::Sent => counts.sent(),
            Self::Ended(outcome) => counts.ended(outcome),
            Self::Status(status) => counts.status(status),
            Self::Call(end) => counts.calls(end),
            Self::Messages(which) => counts.messages(which),
            Self::CallFailures => calls(counts, |end| end != CallEnd::Ok),
            Self::CallsWithoutStatus => calls(counts, has_no_status),
            Self::CallsInvalid => calls(counts, |end| !end.is_status() && !has_no_status(end)),
            Self::Answers => ended(counts, &Outcome::ANSWERS),
            Self::Source(count) => counts.source(count),
            Self::Never => 0,
            Self::Unconnected => ended(counts, &UNCONNECTED),
            Self::StreamResets => ended(counts, &CUT_BY_US) + counts.ended(Outcome::PeerClosed),
            Self::Measured(count) => counts.measured(count),
            Self::Opened(http) if http != facts.http => 0,
            Self::Opened(_) => counts.measured(MeasuredCount::Connections),
            Self::Destroyed(ends) => destroyed(counts, facts, ends),
            Self::ConnectionOverflow
            | Self::ActiveOverflow
            | Self::PendingOverflow
            | Self::Pending => self.queued(counts, facts),
            Self::Targets => facts.targets,
            Self::Stopped => u64::from(facts.was_stopped),
            Self::FailedPredicate => u64::from(counts.predicate() > facts.terminations),
            Self::Handshakes => counts.handshakes(),
            Self::Agreed((part, name)) => counts.agreed(part, name),
        }
    }

    /// Over HTTP/2 and 3 a request waits for a stream, not for a connection. Envoy has called
    /// requests without a stream both names, one after the other.
    fn queued(self, counts: &impl WorkerCounts, facts: &CounterFacts) -> u64 {
        let dropped = counts.ended(Outcome::Dropped);
        let opened_for = counts.measured(MeasuredCount::WaitedForConnect);
        let waited = counts.measured(MeasuredCount::WaitedForFree);
        let is_first = facts.http == HttpVersion::One;
        match self {
            Self::ConnectionOverflow if is_first => waited,
            Self::PendingOverflow if is_first => dropped,
            Self::Pending if is_first => opened_for + waited,
            Self::Pending => opened_for,
            Self::ActiveOverflow | Self::PendingOverflow if !is_first => dropped + waited,
            _ => 0,
        }
    }
}

/// Returns the number of connections that ended so. Over HTTP/2 and 3 the end of a request does
/// not show the end of its connection; connections that the peer cut have a count of their own.
fn destroyed(counts: &impl WorkerCounts, facts: &CounterFacts, ends: Ends) -> u64 {
    let (mut by_us, mut by_peer) = (0, counts.measured(MeasuredCount::ConnectionsCut));
    if facts.http == HttpVersion::One {
        by_us = ended(counts, &CUT_BY_US);
        by_peer = counts.ended(Outcome::PeerClosed);
    }
    if !ends.only_active {
        by_us += counts.measured(MeasuredCount::ConnectionsUsedUp);
        by_peer += counts.measured(MeasuredCount::ConnectionsEnded);
    }
    by_us * u64::from(ends.by_us) + by_peer * u64::from(ends.by_peer)
}
