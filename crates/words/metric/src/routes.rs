//! Counts and times of the requests of one route, by one worker.

use std::collections::BTreeMap;
use std::sync::Arc;

use stillwell_units::Nanos;

use crate::cell::Cell;
use crate::load::StatusCells;
use crate::outcome::Outcome;
use crate::recorder::{Interval, Intervals, Recorder};

/// Recorded times of the requests of a route.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum RouteTime {
    /// End of the answer less the intended time.
    Response,
    /// End of the answer less the sent time.
    Service,
    /// First byte of the answer less the sent time.
    FirstByte,
}

impl RouteTime {
    /// All of them, in the order of their places.
    pub const ALL: [Self; 3] = [Self::Response, Self::Service, Self::FirstByte];
}

/// Times of one answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AnswerTimes {
    /// End of the answer less the intended time, where there is a schedule.
    pub response: Option<Nanos>,
    /// End of the answer less the sent time.
    pub service: Nanos,
    /// First byte of the answer less the sent time.
    pub first_byte: Nanos,
}

/// Counters of the requests of one route.
#[derive(Debug)]
pub struct RouteShard {
    outcomes: [Cell; Outcome::ALL.len()],
    statuses: StatusCells,
    times: [Intervals; RouteTime::ALL.len()],
}

impl RouteShard {
    /// Makes a shard, and the end that its worker writes.
    #[must_use]
    pub fn pair() -> (Arc<Self>, RouteRecorder) {
        // A route may be rare, and most times of a closed loop are never recorded.
        let pairs = RouteTime::ALL.map(|_| Recorder::rare_pair());
        let [(response, responses), (service, services), (first, firsts)] = pairs;
        let shard = Arc::new(Self {
            outcomes: Default::default(),
            statuses: StatusCells::default(),
            times: [responses, services, firsts],
        });
        let recorder = RouteRecorder {
            shard: Arc::clone(&shard),
            times: [response, service, first],
        };
        (shard, recorder)
    }

    /// Returns the number of requests with this outcome.
    #[must_use]
    pub fn ended(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome.index()].total()
    }

    /// Returns the status codes that occurred, with their numbers of responses.
    #[must_use]
    pub fn statuses(&self) -> BTreeMap<u16, u64> {
        self.statuses.read()
    }

    /// Takes the times that the worker has handed over since the last call.
    #[must_use]
    pub fn take(&self, time: RouteTime) -> Option<Interval> {
        self.times[time as usize].take()
    }
}

/// Records the requests of one route; owned by its worker.
#[derive(Debug)]
pub struct RouteRecorder {
    shard: Arc<RouteShard>,
    times: [Recorder; RouteTime::ALL.len()],
}

impl RouteRecorder {
    /// Counts an answer with `status` and `outcome`.
    pub fn answered(&mut self, status: u16, outcome: Outcome) {
        self.shard.statuses.count(status);
        self.failed(outcome);
    }

    /// Records the times of an answer.
    pub fn record(&mut self, times: AnswerTimes) {
        let [response, service, first] = &mut self.times;
        if let Some(time) = times.response {
            response.record(time);
        }
        service.record(times.service);
        first.record(times.first_byte);
    }

    /// Counts a request without an answer.
    pub fn failed(&self, outcome: Outcome) {
        self.shard.outcomes[outcome.index()].add(1);
    }

    /// Hands over the times that the reader has requested.
    pub fn hand_over(&mut self) {
        self.times.iter_mut().for_each(Recorder::hand_over);
    }

    /// Hands over all times.
    pub fn flush(&mut self) {
        self.times.iter_mut().for_each(Recorder::flush);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_counts_its_requests_alone() {
        let (first, mut recorder) = RouteShard::pair();
        let (second, _) = RouteShard::pair();
        recorder.answered(429, Outcome::Status4xx);
        recorder.record(AnswerTimes {
            response: None,
            service: Nanos::from_millis(2),
            first_byte: Nanos::from_millis(1),
        });
        recorder.failed(Outcome::TimedOut);
        recorder.flush();
        assert_eq!(first.statuses(), [(429, 1)].into());
        assert_eq!(first.ended(Outcome::TimedOut), 1);
        assert_eq!(first.ended(Outcome::Status4xx), 1);
        let recorded = RouteTime::ALL.map(|time| first.take(time).map_or(0, |all| all.len()));
        assert_eq!(recorded, [0, 1, 1]);
        assert!(second.statuses().is_empty());
    }
}
