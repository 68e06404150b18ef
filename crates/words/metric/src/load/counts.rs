//! Counts of one load worker as plain numbers: what a capture keeps of a shard.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    CallCells, CallEnd, CallMessages, HandshakePart, HandshakeTally, LoadShard, Sizes, SourceCells,
    SourceCount, Trouble,
};
use crate::account::TimeState;
use crate::cell::PhasedCell;
use crate::outcome::{Outcome, read_outcome_counts};

/// Counts of one load worker, taken once it has ended: the numbers of a [`LoadShard`],
/// whose fields say what each is.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct LoadCounts {
    /// Requests begun in the measured time.
    pub begun: u64,
    /// Requests begun in the warm-up.
    pub warmup_begun: u64,
    /// Requests given to a connection in the measured time.
    pub sent: u64,
    /// Requests that the schedule requested.
    pub requested: PhasedCount,
    /// Requests that were due in the measured time and never begun.
    pub overdue: u64,
    /// Ends of requests of the measured time, in the order of [`Outcome::ALL`].
    #[serde(deserialize_with = "read_outcome_counts")]
    pub outcomes: [u64; Outcome::ALL.len()],
    /// Ends of requests of the warm-up, likewise.
    #[serde(deserialize_with = "read_outcome_counts")]
    pub warmup_outcomes: [u64; Outcome::ALL.len()],
    /// Responses of the measured time by status code.
    #[serde(default)]
    pub statuses: BTreeMap<u16, u64>,
    /// Connections opened.
    pub connections: PhasedCount,
    /// Attempts to connect that failed.
    pub connect_failures: PhasedCount,
    /// Attempts to connect that took too long.
    pub connect_timeouts: PhasedCount,
    /// Reason of the first failed attempt to connect.
    pub connect_trouble: Option<Trouble>,
    /// Reason why the first malformed answer is malformed.
    pub answer_trouble: Option<Trouble>,
    /// Handshakes that resumed a session.
    pub handshakes_resumed: PhasedCount,
    /// Results of handshakes.
    pub handshakes: Vec<HandshakeCount>,
    /// Number of handshakes.
    pub handshakes_total: u64,
    /// Requests that waited for a connection that was opened for them.
    pub waited_for_connect: PhasedCount,
    /// Requests that waited although no connection could be added.
    pub waited_for_free: PhasedCount,
    /// Connections that reached their maximum number of requests.
    pub connections_used_up: PhasedCount,
    /// Connections that the peer ended between two requests.
    pub connections_ended: PhasedCount,
    /// Connections of HTTP/2 and HTTP/3 that the peer ended in the middle of requests; 0 in
    /// captures of earlier versions.
    #[serde(default)]
    pub connections_cut: PhasedCount,
    /// Bytes written to connections.
    pub bytes_sent: PhasedCount,
    /// Bytes read from connections.
    pub bytes_received: PhasedCount,
    /// Sizes of the heads of answers.
    pub head_sizes: Sizes,
    /// Sizes of the bodies of answers.
    pub body_sizes: Sizes,
    /// Ends of gRPC calls, in the order of [`CallEnd::ALL`].
    pub call_ends: [u64; CallEnd::ALL.len()],
    /// Messages of gRPC calls, in the order of [`CallMessages::ALL`].
    pub call_messages: [u64; CallMessages::ALL.len()],
    /// Headers of answers that found their queue full.
    pub headers_dropped: PhasedCount,
    /// Requests that others handed out.
    pub source: SourceCounts,
    /// Nanoseconds of the measured time in each state, in the order of [`TimeState::ALL`].
    pub spent: [u64; TimeState::ALL.len()],
    /// Nanoseconds in which the worker could have run and had no CPU.
    pub run_delay: PhasedCount,
    /// 1 plus the number of the predicate that ended the worker; 0 for none.
    pub predicate: u64,
}

/// A count that goes on over the warm-up.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct PhasedCount {
    /// All of it, warm-up included.
    pub total: u64,
    /// That of the measured time.
    pub measured: u64,
}

/// One part that handshakes agreed on.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct HandshakeCount {
    /// The part.
    pub part: HandshakePart,
    /// Name of what was agreed on.
    pub name: String,
    /// Number of handshakes.
    pub count: u64,
}

/// Counts of the source of one worker, where others hand requests out.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct SourceCounts {
    /// Values in the order of [`SourceCount::ALL`].
    pub values: [u64; SourceCount::ALL.len()],
    /// Times at which a request was due and none was there.
    pub waits: PhasedCount,
    /// Nanoseconds of these.
    pub waited: PhasedCount,
    /// First failure, for readers.
    pub trouble: Option<String>,
}

impl SourceCounts {
    /// Returns the value of a counter.
    #[must_use]
    pub fn value(&self, count: SourceCount) -> u64 {
        let at = SourceCount::ALL.iter().position(|source| *source == count);
        at.map_or(0, |at| self.values[at])
    }
}

impl From<&PhasedCell> for PhasedCount {
    fn from(cell: &PhasedCell) -> Self {
        Self {
            total: cell.total(),
            measured: cell.measured(),
        }
    }
}

impl From<&SourceCells> for SourceCounts {
    fn from(cells: &SourceCells) -> Self {
        Self {
            values: SourceCount::ALL.map(|count| cells.value(count)),
            waits: (&cells.waits).into(),
            waited: (&cells.waited).into(),
            trouble: cells.trouble.get().cloned(),
        }
    }
}

fn handshake_counts(tally: &HandshakeTally) -> Vec<HandshakeCount> {
    let counts = tally.read().into_iter();
    counts
        .map(|((part, name), count)| HandshakeCount {
            part,
            name: name.to_owned(),
            count,
        })
        .collect()
}

impl From<&LoadShard> for LoadCounts {
    fn from(shard: &LoadShard) -> Self {
        let calls: &CallCells = &shard.calls;
        Self {
            begun: shard.begun.total(),
            warmup_begun: shard.warmup_begun.total(),
            sent: shard.sent.total(),
            requested: (&shard.requested).into(),
            overdue: shard.overdue.total(),
            outcomes: std::array::from_fn(|at| shard.outcomes[at].total()),
            warmup_outcomes: std::array::from_fn(|at| shard.warmup_outcomes[at].total()),
            statuses: shard.statuses.read(),
            connections: (&shard.connections).into(),
            connect_failures: (&shard.connect_failures).into(),
            connect_timeouts: (&shard.connect_timeouts).into(),
            connect_trouble: shard.connect_trouble.get().cloned(),
            answer_trouble: shard.answer_trouble.get().cloned(),
            handshakes_resumed: (&shard.handshakes_resumed).into(),
            handshakes: handshake_counts(&shard.handshakes),
            handshakes_total: shard.handshakes.total(),
            waited_for_connect: (&shard.waited_for_connect).into(),
            waited_for_free: (&shard.waited_for_free).into(),
            connections_used_up: (&shard.connections_used_up).into(),
            connections_ended: (&shard.connections_ended).into(),
            connections_cut: (&shard.connections_cut).into(),
            bytes_sent: (&shard.bytes_sent).into(),
            bytes_received: (&shard.bytes_received).into(),
            head_sizes: shard.head_sizes.read(),
            body_sizes: shard.body_sizes.read(),
            call_ends: CallEnd::ALL.map(|end| calls.ended(end).total()),
            call_messages: CallMessages::ALL.map(|which| calls.messages(which).total()),
            headers_dropped: (&shard.headers_dropped).into(),
            source: (&shard.source).into(),
            spent: TimeState::ALL.map(|state| shard.spent(state)),
            run_delay: (&shard.run_delay).into(),
            predicate: shard.predicate.total(),
        }
    }
}

impl LoadCounts {
    /// Returns the number of requests that ended so in the measured time.
    #[must_use]
    pub const fn ended(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome.index()]
    }

    /// Returns the number of requests that ended so, warm-up included.
    #[must_use]
    pub const fn ended_ever(&self, outcome: Outcome) -> u64 {
        self.ended(outcome) + self.warmup_outcomes[outcome.index()]
    }

    /// Returns the number of requests that were due in the measured time, begun or not.
    #[must_use]
    pub const fn due(&self) -> u64 {
        self.begun + self.overdue
    }

    /// Returns the nanoseconds that the worker spent in `state` in the measured time.
    #[must_use]
    pub const fn spent(&self, state: TimeState) -> u64 {
        self.spent[state.index()]
    }

    /// Returns the number of calls that ended so.
    #[must_use]
    pub const fn calls_ended(&self, end: CallEnd) -> u64 {
        self.call_ends[end.index()]
    }

    /// Returns the number of messages of calls.
    #[must_use]
    pub const fn messages(&self, which: CallMessages) -> u64 {
        self.call_messages[which as usize]
    }

    /// Returns the number of requests that have ended in any way, warm-up included.
    #[must_use]
    pub fn ended_in_all(&self) -> u64 {
        self.outcomes.iter().chain(&self.warmup_outcomes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_their_shard() {
        let (shard, _) = LoadShard::pair();
        shard.warm_up();
        shard.connections.add(5);
        shard.account.running.add(10);
        shard.warmup_outcomes[Outcome::Ok.index()].add(4);
        shard.measure(90, 2, 0);
        shard.outcomes[Outcome::TimedOut.index()].add(3);
        shard.begun.add(3);
        shard.overdue.add(2);
        shard.requested.set(100);
        shard.account.running.add(4);
        shard.handshakes.add([
            (HandshakePart::Version, Some("TLSv1.3")),
            (HandshakePart::Suite, Some("a")),
            (HandshakePart::Group, Some("X25519")),
            (HandshakePart::Signature, None),
        ]);
        let counts = LoadCounts::from(&shard);
        assert_eq!((counts.due(), counts.ended(Outcome::TimedOut)), (5, 3));
        assert_eq!(
            (counts.ended_ever(Outcome::Ok), counts.ended_in_all()),
            (4, 7)
        );
        assert_eq!(
            (counts.connections.total, counts.connections.measured),
            (5, 2)
        );
        assert_eq!(counts.requested.measured, 10);
        assert_eq!(counts.spent(TimeState::Running), 4);
        assert_eq!((counts.handshakes.len(), counts.handshakes_total), (3, 1));
    }
}
