//! Requests that were sent on one channel and are not acknowledged yet. Reads no clock.

use std::collections::VecDeque;
use std::ops::Range;

use stillwell_units::{Moment, Nanos};

/// Requests that wait at most; where there are more the oldest counts as lost.
const WAITING_MAX: usize = 1 << 18;

/// Number of waiting requests without a query that makes a query due.
const UNREQUESTED_MAX: u64 = 1 << 16;

/// Maximum number of requests in one query: the answer is kept whole.
const QUESTION_MAX: usize = 4096;

/// Requests that wait for their acknowledgement, in the order of their sending.
#[derive(Debug, Default)]
pub(super) struct Pending {
    waiting: VecDeque<PendingRequest>,
    /// The number of the next to wait.
    next: u64,
    /// Requests with a lower number were in a query at least once.
    requested_to: u64,
}

#[derive(Clone, Copy, Debug)]
struct PendingRequest {
    /// Its place in the order of sending.
    number: u64,
    id: u64,
    events: u64,
    since: Moment,
}

/// Acknowledged requests and events.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Kept {
    pub(super) requests: u64,
    pub(super) events: u64,
}

impl Pending {
    /// One more waits, of so many events, from `now` on; gives how many are lost for
    /// that.
    pub(super) fn add(&mut self, id: u64, events: u64, now: Moment) -> u64 {
        self.waiting.push_back(PendingRequest {
            number: self.next,
            id,
            events,
            since: now,
        });
        self.next += 1;
        let lost = self.waiting.len() > WAITING_MAX;
        if lost {
            self.waiting.pop_front();
        }
        u64::from(lost)
    }

    /// Gives up those that have waited for `timeout`; gives how many.
    pub(super) fn expire(&mut self, now: Moment, timeout: Nanos) -> u64 {
        let is_late = |request: &PendingRequest| now.since(request.since) >= timeout;
        let lost = self
            .waiting
            .iter()
            .take_while(|request| is_late(request))
            .count();
        self.waiting.drain(..lost);
        lost as u64
    }

    /// Returns true once so many requests were never in a query that one is due.
    pub(super) const fn is_crowded(&self) -> bool {
        self.next - self.requested_to >= UNREQUESTED_MAX
    }

    /// Begins a round of questions for all that wait now; gives their numbers.
    pub(super) const fn round(&mut self) -> Range<u64> {
        self.requested_to = self.next;
        0..self.next
    }

    /// The numbers in the next query of a round, of which `round` is left; `None` where none of
    /// them waits any more.
    pub(super) fn question(&self, round: &Range<u64>) -> Option<Range<u64>> {
        let places = self.places(round);
        let last = places.end.min(places.start + QUESTION_MAX);
        let first = self
            .waiting
            .get(places.start)
            .filter(|_| !places.is_empty())?;
        Some(first.number..self.waiting[last - 1].number + 1)
    }

    /// The identifiers in a query.
    pub(super) fn ids(&self, question: &Range<u64>) -> impl Iterator<Item = u64> {
        let requests = self.waiting.range(self.places(question));
        requests.map(|request| request.id)
    }

    /// Requests of `question` that are in `kept`, which is sorted, wait no more; returns their
    /// number.
    pub(super) fn acknowledge(&mut self, question: &Range<u64>, kept: &[u64]) -> Kept {
        let places = self.places(question);
        let mut left = places.start;
        for place in places.clone() {
            if kept.binary_search(&self.waiting[place].id).is_err() {
                self.waiting.swap(left, place);
                left += 1;
            }
        }
        let ended = self.waiting.drain(left..places.end);
        ended.fold(Kept::default(), |sum, request| Kept {
            requests: sum.requests + 1,
            events: sum.events + request.events,
        })
    }

    /// Returns true while no request waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Indexes of the waiting requests with `numbers`.
    fn places(&self, numbers: &Range<u64>) -> Range<usize> {
        let before = |number: u64| {
            self.waiting
                .partition_point(|request| request.number < number)
        };
        before(numbers.start)..before(numbers.end)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Of each request.
    const EVENTS: u64 = 3;

    fn at(seconds: u64) -> Moment {
        Moment::default() + Nanos::from_secs(seconds)
    }

    /// Queries all that wait, and acknowledges those that `is_kept` accepts; returns the
    /// queried ones and the number of acknowledged ones.
    fn poll_round(pending: &mut Pending, is_kept: impl Fn(u64) -> bool) -> (Vec<u64>, u64) {
        let (mut round, mut requested, mut ended) = (pending.round(), Vec::new(), 0);
        while let Some(question) = pending.question(&round) {
            let ids: Vec<u64> = pending.ids(&question).collect();
            assert!((1..=QUESTION_MAX).contains(&ids.len()));
            let mut kept: Vec<u64> = ids.iter().copied().filter(|id| is_kept(*id)).collect();
            kept.sort_unstable();
            let ended_now = pending.acknowledge(&question, &kept);
            assert_eq!(ended_now.events, EVENTS * ended_now.requests);
            ended += ended_now.requests;
            requested.extend(ids);
            round.start = question.end;
        }
        (requested, ended)
    }

    #[test]
    fn what_is_not_acknowledged_in_time_is_lost() {
        let mut pending = Pending::default();
        for (id, second) in [(0, 0), (1, 1), (2, 2)] {
            assert_eq!(pending.add(id, EVENTS, at(second)), 0);
        }
        assert_eq!(poll_round(&mut pending, |id| id == 1), (vec![0, 1, 2], 1));
        assert_eq!(pending.expire(at(3), Nanos::from_secs(3)), 1);
        assert_eq!(poll_round(&mut pending, |_| false), (vec![2], 0));
        assert_eq!(pending.expire(at(5), Nanos::from_secs(3)), 1);
        assert!(pending.is_empty());
    }

    #[test]
    fn more_than_one_question_holds_are_all_requested_in_one_round() {
        let mut pending = Pending::default();
        let all = 3 * QUESTION_MAX as u64 + 5;
        let lost: u64 = (0..all).map(|id| pending.add(id, EVENTS, at(0))).sum();
        let (requested, ended) = poll_round(&mut pending, |_| true);
        assert_eq!((requested.len() as u64, ended, lost), (all, all, 0));
        assert!(pending.is_empty());
    }

    #[test]
    fn requests_without_a_question_make_a_round_due() {
        let mut pending = Pending::default();
        for id in 0..UNREQUESTED_MAX {
            assert!(!pending.is_crowded());
            pending.add(id, EVENTS, at(0));
        }
        assert!(pending.is_crowded());
        poll_round(&mut pending, |_| false);
        assert!(!pending.is_crowded(), "they wait, but were asked for");
    }

    proptest! {
        #[test]
        fn for_all_orders_every_request_is_waiting_kept_or_lost(
            steps in prop::collection::vec((0_u64..8, 1_u64..6), 0..200),
        ) {
            let (mut pending, mut sent, mut ended) = (Pending::default(), 0, 0);
            for (second, (step, factor)) in (0..).zip(steps) {
                match step {
                    0..6 => {
                        // A receiver may give numbers in any order.
                        ended += pending.add(sent ^ 1, EVENTS, at(second));
                        sent += 1;
                    }
                    6 => ended += poll_round(&mut pending, |id| id % factor == 0).1,
                    _ => ended += pending.expire(at(second), Nanos::from_secs(20)),
                }
            }
            let (requested, _) = poll_round(&mut pending, |_| false);
            prop_assert_eq!(sent, ended + requested.len() as u64);
        }
    }
}
