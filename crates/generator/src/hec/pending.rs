//! What was sent on one channel and is not acknowledged yet. Reads no clock.

use std::collections::VecDeque;

use stillwell_units::{Moment, Nanos};

/// Requests that wait at most; where there are more the oldest counts as lost.
const WAITING_MAX: usize = 100_000;

/// Requests that one question asks for at most.
const QUESTION_MAX: usize = 4096;

/// Requests that wait for their acknowledgement, in the order of their sending.
#[derive(Debug, Default)]
pub(super) struct Pending {
    waiting: VecDeque<(u64, Moment)>,
}

impl Pending {
    /// One more waits, from `now` on; gives how many are lost for that.
    pub(super) fn add(&mut self, id: u64, now: Moment) -> u64 {
        self.waiting.push_back((id, now));
        let lost = self.waiting.len() > WAITING_MAX;
        if lost {
            self.waiting.pop_front();
        }
        u64::from(lost)
    }

    /// Gives up those that have waited for `timeout`; gives how many.
    pub(super) fn expire(&mut self, now: Moment, timeout: Nanos) -> u64 {
        let is_late = |(_, since): &(u64, Moment)| now.since(*since) >= timeout;
        let lost = self.waiting.iter().take_while(|one| is_late(one)).count();
        self.waiting.drain(..lost);
        lost as u64
    }

    /// Those to ask for next.
    pub(super) fn question(&self) -> impl Iterator<Item = u64> {
        let oldest = self.waiting.iter().take(QUESTION_MAX);
        oldest.map(|(id, _)| *id)
    }

    /// Whether nobody waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Those of `kept`, in order, wait no more; gives how many there were.
    pub(super) fn acknowledge(&mut self, kept: &[u64]) -> u64 {
        let before = self.waiting.len();
        self.waiting
            .retain(|(id, _)| kept.binary_search(id).is_err());
        (before - self.waiting.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::default() + Nanos::from_secs(seconds)
    }

    #[test]
    fn what_is_not_acknowledged_in_time_is_lost() {
        let mut pending = Pending::default();
        for (id, second) in [(0, 0), (1, 1), (2, 2)] {
            assert_eq!(pending.add(id, at(second)), 0);
        }
        assert_eq!(pending.acknowledge(&[1, 7]), 1);
        assert_eq!(pending.expire(at(3), Nanos::from_secs(3)), 1);
        assert_eq!(pending.question().collect::<Vec<_>>(), [2]);
        assert_eq!(pending.expire(at(5), Nanos::from_secs(3)), 1);
        assert!(pending.is_empty());
    }

    proptest! {
        #[test]
        fn for_all_orders_every_request_is_waiting_kept_or_lost(
            steps in prop::collection::vec((0_u64..3, any::<prop::sample::Index>()), 0..200),
        ) {
            let (mut pending, mut sent, mut ended) = (Pending::default(), 0, 0);
            for (second, (step, index)) in (0..).zip(steps) {
                match step {
                    0 => {
                        ended += pending.add(sent, at(second));
                        sent += 1;
                    }
                    1 => {
                        let asked: Vec<u64> = pending.question().collect();
                        if !asked.is_empty() {
                            ended += pending.acknowledge(&asked[..=index.index(asked.len())]);
                        }
                    }
                    _ => ended += pending.expire(at(second), Nanos::from_secs(20)),
                }
            }
            prop_assert_eq!(sent, ended + pending.question().count() as u64);
        }
    }
}
