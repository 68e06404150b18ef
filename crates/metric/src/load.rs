//! What one worker counts that sends requests and reads their answers.

mod counter;
mod handshakes;
mod sizes;

use std::sync::OnceLock;

use crate::account::AccountCells;
use crate::cell::Cell;
use crate::outcome::Outcome;
use crate::recorder::{Intervals, Recorder};
pub use counter::{CounterError, LoadCounter};
pub use handshakes::{HandshakePart, HandshakeTally};
pub use sizes::{SizeCells, Sizes};

/// Which times of requests and connections are recorded.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum LoadTime {
    /// End of the answer less the sent time, of answers of this class.
    Service(Outcome),
    /// End of the answer less the intended time, of answers of this class.
    Response(Outcome),
    /// First byte of the answer less the sent time.
    FirstByte,
    /// Sent time less intended time, whoever was to blame.
    Lateness,
    /// Sent time less intended time where a connection was free: the generator
    /// alone was to blame.
    OwnLateness,
    /// Connecting, without what follows on the connection.
    Connect,
    /// Securing a connection.
    Handshake,
    /// How long the schedule stood still since nothing more may wait, one sample
    /// for each time; only of workers that hold requests back.
    Blocked,
    /// What answers say of themselves in a header that is asked for.
    Origin,
}

impl LoadTime {
    /// Outcomes that are answers.
    const CLASSES: usize = Outcome::ANSWERS.len();
    /// How many there are.
    pub const COUNT: usize = 2 * Self::CLASSES + 7;

    /// Its place among all; that of the first class for what is no answer.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Service(class) => class_index(class),
            Self::Response(class) => Self::CLASSES + class_index(class),
            Self::FirstByte => 2 * Self::CLASSES,
            Self::Lateness => 2 * Self::CLASSES + 1,
            Self::OwnLateness => 2 * Self::CLASSES + 2,
            Self::Connect => 2 * Self::CLASSES + 3,
            Self::Handshake => 2 * Self::CLASSES + 4,
            Self::Blocked => 2 * Self::CLASSES + 5,
            Self::Origin => 2 * Self::CLASSES + 6,
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

/// What one load worker counts.
#[derive(Debug)]
pub struct LoadShard {
    /// Requests begun: taken from the schedule, to be sent.
    pub begun: Cell,
    /// Requests that the schedule has asked for so far; stays 0 without one.
    pub asked: Cell,
    /// How requests ended, in the order of [`Outcome::ALL`].
    pub outcomes: [Cell; Outcome::ALL.len()],
    /// The same for requests of the warm-up.
    pub warmup_outcomes: [Cell; Outcome::ALL.len()],
    /// Connections opened.
    pub connections: Cell,
    /// Attempts to connect that failed.
    pub connect_failures: Cell,
    /// Those of them that took too long.
    pub connect_timeouts: Cell,
    /// Why the first of them did, for readers.
    pub connect_trouble: OnceLock<String>,
    /// Why the first answer that breaks the protocol does, for readers.
    pub answer_trouble: OnceLock<String>,
    /// Handshakes that resumed an earlier session.
    pub handshakes_resumed: Cell,
    /// What was agreed on in handshakes.
    pub handshakes: HandshakeTally,
    /// Requests that waited for a connection that was opened for them.
    pub waited_for_connect: Cell,
    /// Requests that waited although no connection could be added; only of
    /// workers that hold requests back.
    pub waited_for_free: Cell,
    /// Connections that ended because they had carried all that they may.
    pub connections_used_up: Cell,
    /// Connections that the peer ended between two requests.
    pub connections_ended: Cell,
    /// Bytes written to connections.
    pub bytes_sent: Cell,
    /// Bytes read from connections.
    pub bytes_received: Cell,
    /// Sizes of answers' heads.
    pub head_sizes: SizeCells,
    /// Sizes of answers' bodies.
    pub body_sizes: SizeCells,
    /// Requests of which a span was to be exported.
    pub spans_sampled: Cell,
    /// Spans that found the exporter's queue full.
    pub spans_dropped: Cell,
    /// Where the worker's time went. *Running* is CPU time.
    pub account: AccountCells,
    /// Nanoseconds in which the worker could have run and had no CPU.
    pub run_delay: Cell,
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
        let (recorders, times) = (0..LoadTime::COUNT).map(|_| Recorder::pair()).unzip();
        let shard = Self {
            begun: Cell::default(),
            asked: Cell::default(),
            outcomes: Default::default(),
            warmup_outcomes: Default::default(),
            connections: Cell::default(),
            connect_failures: Cell::default(),
            connect_timeouts: Cell::default(),
            connect_trouble: OnceLock::new(),
            answer_trouble: OnceLock::new(),
            handshakes_resumed: Cell::default(),
            handshakes: HandshakeTally::default(),
            waited_for_connect: Cell::default(),
            waited_for_free: Cell::default(),
            connections_used_up: Cell::default(),
            connections_ended: Cell::default(),
            bytes_sent: Cell::default(),
            bytes_received: Cell::default(),
            head_sizes: SizeCells::default(),
            body_sizes: SizeCells::default(),
            spans_sampled: Cell::default(),
            spans_dropped: Cell::default(),
            account: AccountCells::default(),
            run_delay: Cell::default(),
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

    /// How many requests ended so, warm-up included.
    #[must_use]
    pub fn ended(&self, outcome: Outcome) -> u64 {
        let index = outcome.index();
        self.outcomes[index].total() + self.warmup_outcomes[index].total()
    }

    /// How many requests have ended in any way, warm-up included.
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
        let mut places: Vec<usize> = Outcome::ANSWERS
            .iter()
            .flat_map(|class| [LoadTime::Service(*class), LoadTime::Response(*class)])
            .chain([LoadTime::FirstByte, LoadTime::Lateness])
            .chain([
                LoadTime::OwnLateness,
                LoadTime::Connect,
                LoadTime::Handshake,
                LoadTime::Blocked,
                LoadTime::Origin,
            ])
            .map(LoadTime::index)
            .collect();
        places.sort_unstable();
        assert_eq!(places, (0..LoadTime::COUNT).collect::<Vec<_>>());
    }
}
