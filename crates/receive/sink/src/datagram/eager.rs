//! Time for which a sink polls for datagrams before it waits for them.
//!
//! Waiting and waking cost a sink, and the sender, some microseconds of CPU time, several
//! on a virtual machine. Where the next datagram is there sooner than that, it is cheaper
//! to poll until it is. The sink never polls for longer than [`LONGEST`] for one
//! datagram, and not at all where they come more slowly than twice in that time or where
//! polling was mostly without a result.
//!
//! Where nothing depends on when a datagram is found, the sink pauses instead, until some
//! more have been queued: a sender that finds no receiver waiting has none to wake.

use stillwell_units::{Moment, Nanos};

/// Never longer than this: about what it costs to wait.
const LONGEST: Nanos = Nanos::new(8_000);

/// Multiple of the mean time from one datagram to the next.
const MEANS: u64 = 2;

/// Number of recent datagrams whose intervals count.
const REMEMBERED: u64 = 32;

/// Polling without a result for so many times in turn,
const VAIN_MAX: u32 = 8;
/// it is left alone for so many waits.
const LEFT_ALONE: u32 = 1_000;

/// Number of datagrams that are to be queued in one pause,
pub(super) const COLLECTED: usize = 16;
/// and how few may be.
const COLLECTED_MIN: u64 = 4;

/// Maximum length of a pause.
const PAUSE_MAX: Nanos = Nanos::new(100_000);

/// A longer time from one datagram to the next counts as this, for a sink that pauses and for one that polls: one
/// interruption among many datagrams is no sign that they come slowly.
const BETWEEN_MAX_NS: [u64; 2] = [32_000, LONGEST.as_u64() * MEANS];

/// Recent datagrams of one socket.
#[derive(Debug)]
pub(super) struct Eager {
    between_max_ns: u64,
    last: Moment,
    /// The mean time from one datagram to the next of late, in nanoseconds.
    between_ns: u64,
    in_vain: u32,
    left_alone: u32,
}

impl Eager {
    /// Before the first datagram; of a sink that may pause, or only polls.
    pub(super) const fn new(may_pause: bool) -> Self {
        let [pausing, polling] = BETWEEN_MAX_NS;
        Self {
            between_max_ns: if may_pause { pausing } else { polling },
            last: Moment::new(0),
            between_ns: u64::MAX / REMEMBERED,
            in_vain: 0,
            left_alone: 0,
        }
    }

    /// `count` datagrams came since the last, the last of them `now`.
    pub(super) fn came(&mut self, count: u64, now: Moment) {
        let between = now.since(self.last).as_u64() / count.max(1);
        let between = between.min(self.between_max_ns);
        let known = self.between_ns.min(self.between_max_ns);
        self.between_ns = known - known / REMEMBERED + between / REMEMBERED;
        self.last = now;
    }

    /// Returns the length of a pause in which datagrams are queued, now that nothing waits; nothing where they come
    /// slowly.
    pub(super) fn pause(&self) -> Nanos {
        if self.between_ns > PAUSE_MAX.as_u64() / COLLECTED_MIN {
            return Nanos::ZERO;
        }
        Nanos::new(self.between_ns * COLLECTED as u64).min(PAUSE_MAX)
    }

    /// Returns the time to poll now that nothing waits; nothing where polling costs more.
    pub(super) fn length(&mut self) -> Nanos {
        if self.left_alone > 0 {
            self.left_alone -= 1;
            return Nanos::ZERO;
        }
        let length = Nanos::new(self.between_ns.saturating_mul(MEANS));
        if length > LONGEST {
            return Nanos::ZERO;
        }
        length
    }

    /// Records a poll that received this number of datagrams.
    pub(super) fn brought(&mut self, count: u64) {
        self.in_vain = if count > 0 { 0 } else { self.in_vain + 1 };
        if self.in_vain == VAIN_MAX {
            (self.in_vain, self.left_alone) = (0, LEFT_ALONE);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// After many datagrams that came so far apart.
    fn after_arrivals(between: u64) -> (Eager, Moment) {
        after_arrivals_at(between, false)
    }

    fn after_arrivals_at(between: u64, may_pause: bool) -> (Eager, Moment) {
        let (mut eager, mut now) = (Eager::new(may_pause), Moment::new(1_000_000));
        for _ in 0..400 {
            now = now + Nanos::new(between);
            eager.came(1, now);
        }
        (eager, now)
    }

    proptest! {
        #[test]
        fn for_all_rates_it_polls_no_longer_than_waiting_costs(
            between in 0_u64..100_000_000,
        ) {
            let (mut eager, _) = after_arrivals(between);
            let length = eager.length();
            prop_assert!(length <= LONGEST);
            if between > LONGEST.as_u64() / MEANS + REMEMBERED {
                prop_assert_eq!(length, Nanos::ZERO);
            }
        }
    }

    #[test]
    fn it_polls_where_datagrams_come_at_once_and_not_where_they_are_slow() {
        let (mut eager, now) = after_arrivals(2_000);
        assert!((3_000..=4_200).contains(&eager.length().as_u64()));
        // A pause of a second is no slow stream yet.
        eager.came(1, now + Nanos::SECOND);
        assert!(eager.length() > Nanos::ZERO);
        assert_eq!(after_arrivals(20_000).0.length(), Nanos::ZERO);
        assert_eq!(Eager::new(false).length(), Nanos::ZERO);
    }

    proptest! {
        #[test]
        fn for_all_rates_a_pause_is_bounded_and_few_datagrams_are_waited_for(
            between in prop_oneof![0_u64..40_000, 0_u64..100_000_000],
        ) {
            let (eager, _) = after_arrivals_at(between, true);
            let pause = eager.pause();
            prop_assert!(pause <= PAUSE_MAX);
            // The mean approaches the time between datagrams in steps of a part of it, up to `REMEMBERED` nanoseconds.
            if between >= BETWEEN_MAX_NS[0] {
                prop_assert_eq!(pause, Nanos::ZERO);
            } else if (REMEMBERED * 4..10_000).contains(&between) {
                let count = pause.as_u64() / between;
                prop_assert!((COLLECTED_MIN..=20).contains(&count), "{}", count);
            }
        }
    }

    /// Latencies of stamped datagrams contained the time of a wake-up in each burst.
    #[test]
    fn gaps_between_bursts_do_not_stop_the_polling() {
        let (mut eager, mut now) = after_arrivals(2_000);
        for _ in 0..100 {
            for _ in 0..9 {
                now = now + Nanos::new(2_000);
                eager.came(1, now);
            }
            now = now + Nanos::SECOND;
            eager.came(1, now);
        }
        assert!(eager.length() > Nanos::ZERO);
    }

    #[test]
    fn polling_in_vain_stops_for_a_while() {
        let (mut eager, _) = after_arrivals(2_000);
        (0..VAIN_MAX).for_each(|_| eager.brought(0));
        for _ in 0..LEFT_ALONE {
            assert_eq!(eager.length(), Nanos::ZERO);
        }
        assert!(eager.length() > Nanos::ZERO);
        (1..VAIN_MAX).for_each(|_| eager.brought(0));
        eager.brought(1);
        eager.brought(0);
        assert!(eager.length() > Nanos::ZERO);
    }
}
