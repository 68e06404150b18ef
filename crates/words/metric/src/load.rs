//! Counters of one worker that sends requests and reads their answers.

mod calls;
mod counter;
mod counts;
mod evidence;
mod handshakes;
mod sizes;
mod source;
mod statuses;
mod trouble;

use std::sync::{Arc, OnceLock};

use crate::account::{AccountCells, TimeState};
use crate::cell::{Cell, PhasedCell};
use crate::outcome::Outcome;
use crate::recorder::{Intervals, Recorder};
use crate::routes::RouteShard;
pub use calls::{CallCells, CallEnd, CallMessages};
pub use counter::{
    CounterError, CounterFacts, HttpVersion, LoadCounter, MeasuredCount, WorkerCounts,
};
pub use counts::{HandshakeCount, LoadCounts, PhasedCount, SourceCounts};
pub use evidence::{ClockDrift, GeneratorEvidence, LoadEvidence, LoadSourceEvidence, LoadStrain};
pub use handshakes::{HandshakePart, HandshakeTally};
pub use sizes::{SizeCells, Sizes};
pub use source::{SourceCells, SourceCount};
pub use statuses::StatusCells;
pub use trouble::{Remedy, TlsWish, Trouble};

/// Recorded times of requests and connections.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum LoadTime {
    /// End of the answer less the sent time, of answers of this class.
    Service(Outcome),
    /// End of the answer less the intended time, of answers of this class.
    Response(Outcome),
    /// First byte of the response minus the sent time.
    FirstByte,
    /// Sent time minus intended time, of any cause.
    Lateness,
    /// Sent time less intended time where a connection was free: the generator
    /// alone caused it.
    GeneratorLateness,
    /// Connecting, without what follows on the connection.
    Connect,
    /// Securing a connection.
    Handshake,
    /// End of a request that got no answer and ended so, less its intended time,
    /// or less the time at which it was taken where there is no schedule.
    Failed(Outcome),
    /// Time that the schedule was blocked because the queue was full, one sample for
    /// each time; only of workers that hold requests back.
    Blocked,
    /// Times that answers report in a configured header.
    Origin,
    /// First message of an answer that may have several, wholly there, less the sent
    /// time; only of gRPC.
    FirstMessage,
}

impl LoadTime {
    /// Outcomes that are answers.
    const CLASSES: usize = Outcome::ANSWERS.len();
    /// Number of kinds.
    pub const COUNT: usize = 2 * Self::CLASSES + 8 + Outcome::FAILURES.len();

    /// All of them, in the order of their places.
    pub fn all() -> impl Iterator<Item = Self> {
        let service = Outcome::ANSWERS.into_iter().map(Self::Service);
        let response = Outcome::ANSWERS.into_iter().map(Self::Response);
        let single = [
            Self::FirstByte,
            Self::Lateness,
            Self::GeneratorLateness,
            Self::Connect,
            Self::Handshake,
            Self::Blocked,
            Self::Origin,
            Self::FirstMessage,
        ];
        let failed = Outcome::FAILURES.into_iter().map(Self::Failed);
        service.chain(response).chain(single).chain(failed)
    }

    /// Returns true if most loads record this kind repeatedly.
    const fn is_usual(self) -> bool {
        matches!(
            self,
            Self::Service(Outcome::Ok)
                | Self::Response(Outcome::Ok)
                | Self::FirstByte
                | Self::Lateness
                | Self::GeneratorLateness
        )
    }

    /// Its place among all; that of the first class for what is no answer, and of
    /// the first failure for what is none.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Service(class) => class_index(class),
            Self::Response(class) => Self::CLASSES + class_index(class),
            Self::FirstByte => 2 * Self::CLASSES,
            Self::Lateness => 2 * Self::CLASSES + 1,
            Self::GeneratorLateness => 2 * Self::CLASSES + 2,
            Self::Connect => 2 * Self::CLASSES + 3,
            Self::Handshake => 2 * Self::CLASSES + 4,
            Self::Blocked => 2 * Self::CLASSES + 5,
            Self::Origin => 2 * Self::CLASSES + 6,
            Self::FirstMessage => 2 * Self::CLASSES + 7,
            Self::Failed(failure) => 2 * Self::CLASSES + 8 + failure_index(failure),
        }
    }
}

const fn class_index(outcome: Outcome) -> usize {
    if outcome.is_answer() {
        outcome.index()
    } else {
        0
    }
}

const fn failure_index(outcome: Outcome) -> usize {
    let place = outcome.index().saturating_sub(Outcome::ANSWERS.len());
    if place < Outcome::FAILURES.len() {
        place
    } else {
        0
    }
}

/// Counters of one load worker.
///
/// A request belongs to the warm-up or to the measured time by when it was due,
/// or taken where there is no schedule. Events with a [`PhasedCell`] belong by when
/// they happen. Connections that are open when measuring begins, and the results of
/// their handshakes, count as measured.
#[derive(Debug)]
pub struct LoadShard {
    /// Requests begun: taken from the schedule, to be sent.
    pub begun: Cell,
    /// The same for requests of the warm-up.
    pub warmup_begun: Cell,
    /// Requests that were given to a connection, each once however often it went
    /// out.
    pub sent: Cell,
    /// The same for requests of the warm-up.
    pub warmup_sent: Cell,
    /// Requests that the schedule has requested so far; stays 0 without a schedule.
    pub requested: PhasedCell,
    /// Requests that were due in the measured time and never begun, once the
    /// worker has ended; stays 0 without a schedule.
    pub overdue: Cell,
    /// Requests by outcome, in the order of [`Outcome::ALL`].
    pub outcomes: [Cell; Outcome::ALL.len()],
    /// The same for requests of the warm-up.
    pub warmup_outcomes: [Cell; Outcome::ALL.len()],
    /// Responses by status code, without those of the warm-up.
    pub statuses: StatusCells,
    /// Connections opened.
    pub connections: PhasedCell,
    /// Attempts to connect that failed.
    pub connect_failures: PhasedCell,
    /// Those of them that took too long.
    pub connect_timeouts: PhasedCell,
    /// Cause of the first failed connection.
    pub connect_trouble: OnceLock<Trouble>,
    /// Cause of the first answer that breaks the protocol.
    pub answer_trouble: OnceLock<Trouble>,
    /// Handshakes that resumed an earlier session.
    pub handshakes_resumed: PhasedCell,
    /// Results of handshakes.
    pub handshakes: HandshakeTally,
    /// Requests that waited for a connection that was opened for them.
    pub waited_for_connect: PhasedCell,
    /// Requests that waited although no connection could be added; only of
    /// workers that hold requests back.
    pub waited_for_free: PhasedCell,
    /// Connections that ended because they had carried all that they may.
    pub connections_used_up: PhasedCell,
    /// Connections that the peer ended between two requests.
    pub connections_ended: PhasedCell,
    /// Connections of HTTP/2 and HTTP/3 that the peer ended in the middle of requests.
    pub connections_cut: PhasedCell,
    /// Bytes written to connections.
    pub bytes_sent: PhasedCell,
    /// Bytes read from connections.
    pub bytes_received: PhasedCell,
    /// Sizes of answers' heads.
    pub head_sizes: SizeCells,
    /// Sizes of answers' bodies.
    pub body_sizes: SizeCells,
    /// Requests of each route, in the order of the plan; empty if there is only one route.
    pub routes: Vec<Arc<RouteShard>>,
    /// Ends and messages of gRPC calls.
    pub calls: CallCells,
    /// Requests that were sampled for a span.
    pub spans_sampled: PhasedCell,
    /// Spans that were dropped because the exporter's queue was full.
    pub spans_dropped: PhasedCell,
    /// Headers of answers that were dropped because their queue was full.
    pub headers_dropped: PhasedCell,
    /// Counters of requests from an external source.
    pub source: SourceCells,
    /// Time breakdown of the worker. *Running* is CPU time.
    pub account: AccountCells,
    /// The same of the warm-up alone; the largest number while that lasts.
    pub warmup_account: AccountCells,
    /// CPU time of the thread until measuring began, in nanoseconds; 0 without a
    /// warm-up, and the largest number while that lasts.
    pub warmup_cpu: Cell,
    /// Nanoseconds in which the worker could have run and had no CPU.
    pub run_delay: PhasedCell,
    /// When it began nothing more, in nanoseconds on the monotonic clock; 0
    /// before.
    pub stopped: Cell,
    /// 1 plus the number of the predicate that has ended the worker: first those
    /// of termination, then those of failure.
    pub predicate: Cell,
    times: Vec<Intervals>,
}

impl LoadShard {
    /// A shard, and the worker's recorders in the order of [`LoadTime::index`].
    #[must_use]
    pub fn pair() -> (Self, Vec<Recorder>) {
        let pairs = LoadTime::all().map(|time| match time.is_usual() {
            true => Recorder::pair(),
            false => Recorder::rare_pair(),
        });
        let (recorders, times) = pairs.unzip();
        let shard = Self {
            begun: Cell::default(),
            warmup_begun: Cell::default(),
            sent: Cell::default(),
            warmup_sent: Cell::default(),
            requested: PhasedCell::default(),
            overdue: Cell::default(),
            outcomes: Default::default(),
            warmup_outcomes: Default::default(),
            statuses: StatusCells::default(),
            connections: PhasedCell::default(),
            connect_failures: PhasedCell::default(),
            connect_timeouts: PhasedCell::default(),
            connect_trouble: OnceLock::new(),
            answer_trouble: OnceLock::new(),
            handshakes_resumed: PhasedCell::default(),
            handshakes: HandshakeTally::default(),
            waited_for_connect: PhasedCell::default(),
            waited_for_free: PhasedCell::default(),
            connections_used_up: PhasedCell::default(),
            connections_ended: PhasedCell::default(),
            connections_cut: PhasedCell::default(),
            bytes_sent: PhasedCell::default(),
            bytes_received: PhasedCell::default(),
            head_sizes: SizeCells::default(),
            body_sizes: SizeCells::default(),
            routes: Vec::new(),
            calls: CallCells::default(),
            spans_sampled: PhasedCell::default(),
            spans_dropped: PhasedCell::default(),
            headers_dropped: PhasedCell::default(),
            source: SourceCells::default(),
            account: AccountCells::default(),
            warmup_account: AccountCells::default(),
            warmup_cpu: Cell::default(),
            run_delay: PhasedCell::default(),
            stopped: Cell::default(),
            predicate: Cell::default(),
            times,
        };
        (shard, recorders)
    }

    /// The reader's end of the recorder of `time`.
    #[must_use]
    pub fn times(&self, time: LoadTime) -> &Intervals {
        &self.times[time.index()]
    }

    /// Returns the number of requests with this outcome in the measured time.
    #[must_use]
    pub fn ended(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome.index()].total()
    }

    /// Returns the number of requests begun, warm-up included.
    #[must_use]
    pub fn begun_in_all(&self) -> u64 {
        self.begun.total() + self.warmup_begun.total()
    }

    /// Returns the number of requests due in the measured time, begun or not, once the
    /// worker has ended. A random schedule counts its drawn requests, not their mean.
    #[must_use]
    pub fn due(&self) -> u64 {
        self.begun.total() + self.overdue.total()
    }

    /// Returns the number of requests with this outcome, warm-up included.
    #[must_use]
    pub fn ended_ever(&self, outcome: Outcome) -> u64 {
        self.ended(outcome) + self.warmup_outcomes[outcome.index()].total()
    }

    /// Nanoseconds that the worker spent in `state` in the measured time.
    #[must_use]
    pub fn spent(&self, state: TimeState) -> u64 {
        let before = self.warmup_account.of(state).total();
        self.account.of(state).total().saturating_sub(before)
    }

    /// A warm-up begins: what happens from now on counts only once it is over.
    pub fn warm_up(&self) {
        self.phased().into_iter().for_each(PhasedCell::warm_up);
        for state in TimeState::ALL {
            self.warmup_account.of(state).set(u64::MAX);
        }
        self.warmup_cpu.set(u64::MAX);
    }

    /// The warm-up is over. `requested` requests belong to it, and of the connections
    /// that were opened `open` are still there, `resumed` of them with a session
    /// of an earlier one.
    pub fn measure(&self, requested: u64, open: u64, resumed: u64) {
        for cell in self.phased() {
            cell.measure_from(cell.total());
        }
        self.requested.measure_from(requested);
        for (cell, kept) in [
            (&self.connections, open),
            (&self.handshakes_resumed, resumed),
        ] {
            cell.measure_from(cell.total().saturating_sub(kept));
        }
        for state in TimeState::ALL {
            let spent = self.account.of(state).total();
            self.warmup_account.of(state).set(spent);
        }
    }

    /// All counters that separate the warm-up from the measured time.
    const fn phased(&self) -> [&PhasedCell; 18] {
        [
            &self.requested,
            &self.connections,
            &self.connect_failures,
            &self.connect_timeouts,
            &self.handshakes_resumed,
            &self.waited_for_connect,
            &self.waited_for_free,
            &self.connections_used_up,
            &self.connections_ended,
            &self.connections_cut,
            &self.bytes_sent,
            &self.bytes_received,
            &self.spans_sampled,
            &self.spans_dropped,
            &self.headers_dropped,
            &self.source.waits,
            &self.source.waited,
            &self.run_delay,
        ]
    }

    /// Returns the number of ended requests of every outcome, warm-up included.
    #[must_use]
    pub fn ended_in_all(&self) -> u64 {
        let cells = self.outcomes.iter().chain(&self.warmup_outcomes);
        cells.map(Cell::total).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_has_its_own_place() {
        let places: Vec<usize> = LoadTime::all().map(LoadTime::index).collect();
        assert_eq!(places, (0..LoadTime::COUNT).collect::<Vec<_>>());
    }

    #[test]
    fn connections_that_outlive_the_warm_up_are_measured() {
        let (shard, _) = LoadShard::pair();
        shard.warm_up();
        shard.connections.add(5);
        shard.handshakes_resumed.add(3);
        shard.bytes_sent.add(700);
        shard.account.running.add(10);
        assert_eq!(shard.spent(TimeState::Running), 0, "it is not over");
        shard.measure(90, 2, 1);
        shard.connections.add(1);
        shard.bytes_sent.add(7);
        shard.requested.set(100);
        shard.account.running.add(4);
        assert_eq!(shard.connections.measured(), 3);
        assert_eq!(shard.handshakes_resumed.measured(), 1);
        assert_eq!(shard.bytes_sent.measured(), 7);
        assert_eq!(shard.requested.measured(), 10);
        assert_eq!(shard.spent(TimeState::Running), 4);
    }
}
