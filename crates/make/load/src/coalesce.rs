//! Coalesces responses before they are read.
//!
//! At full speed a worker that is faster than its peer wakes up for every packet. A wake-up
//! may cost more CPU time than the request itself. With many requests in flight and no
//! schedule, the worker therefore pauses before it polls its sockets. Then one system call
//! reads several responses, and one writes several requests.
//!
//! A pause is at most a share of the recent mean latency, including the kernel's timer
//! delay. A response that arrives during a pause counts from the time when it is read, so
//! measured latency grows by half a pause on average. Where the kernel reports arrival
//! times, only the next request is late, and pauses may be longer. With a schedule there
//! are no pauses.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::task::{Poll, Waker};

use rustix::thread::{ClockId, Timespec, clock_nanosleep_absolute};
use stillwell_scope::clock;
use stillwell_units::{Moment, Nanos};

/// Limits of a pause.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// A pause is at most one part in this many of the mean latency.
    share: u64,
    /// Maximum length of a pause.
    longest: Nanos,
    /// No pauses if more than one part in this many of the requests in flight is answered
    /// at once.
    together: u64,
}

/// Limits if a response counts from when it is read.
const READ: Bounds = Bounds {
    share: 20,
    longest: Nanos::new(100_000),
    together: 4,
};

/// Limits if the kernel reports arrival times.
const ARRIVAL: Bounds = Bounds {
    share: 8,
    longest: Nanos::new(1_000_000),
    together: 4,
};

/// Limits if it does and the worker often lacks a CPU. Other programs, such as the server,
/// run during a pause.
const CROWDED: Bounds = Bounds {
    share: 3,
    longest: Nanos::new(2_000_000),
    together: 2,
};

/// CPUs are too few where a worker lacked one for this part of the time, which is
/// looked at so often.
const LACK: u64 = 20;
const LOOK_EVERY: Nanos = Nanos::from_millis(100);

/// A shorter pause does not pay for the system call.
const SHORTEST: Nanos = Nanos::new(2_000);

/// A pause with fewer expected responses does not pay for the system call.
const GATHERED_MIN: u64 = 3;

const SECOND_NS: u64 = 1_000_000_000;

/// Number of recent responses that the mean latency covers.
const LATENCIES: u64 = 64;
const DELAYS: u64 = 16;

/// Decides when a worker pauses, and for how long.
#[derive(Debug)]
pub(super) struct Coalescer {
    /// True if the kernel reports arrival times.
    has_arrival_times: bool,
    is_crowded: Cell<bool>,
    /// Time of the last check for a lack of CPU, and the total lack at that time.
    looked: Cell<(Moment, Nanos)>,
    /// Waker of the task that pauses.
    sleeper: RefCell<Option<Waker>>,
    /// Responses since the last pause.
    answers: Cell<u64>,
    /// Recent mean latency in nanoseconds.
    latency_ns: Cell<u64>,
    /// Recent delay of the kernel's timer in nanoseconds.
    delay_ns: Cell<u64>,
}

impl Coalescer {
    /// An idle coalescer; `has_arrival_times` if the kernel reports them.
    pub(super) fn new(has_arrival_times: bool) -> Self {
        Self {
            has_arrival_times,
            is_crowded: Cell::default(),
            looked: Cell::default(),
            sleeper: RefCell::default(),
            answers: Cell::default(),
            latency_ns: Cell::default(),
            delay_ns: Cell::default(),
        }
    }

    /// Counts a response.
    pub(super) fn answered(&self, latency: Nanos) {
        let mean = self.latency_ns.get();
        self.latency_ns
            .set(mean - mean / LATENCIES + latency.as_u64() / LATENCIES);
        self.answers.set(self.answers.get() + 1);
        self.wake();
    }

    /// Wakes the task that pauses.
    pub(super) fn wake(&self) {
        if let Some(sleeper) = self.sleeper.borrow_mut().take() {
            sleeper.wake();
        }
    }

    /// Waits for a response or the end of the worker.
    pub(super) async fn answer(&self, is_ending: impl Fn() -> bool) {
        poll_fn(|context| {
            if self.answers.get() > 0 || is_ending() {
                return Poll::Ready(());
            }
            self.sleeper.replace(Some(context.waker().clone()));
            Poll::Pending
        })
        .await;
    }

    const fn bounds(&self) -> Bounds {
        match (self.has_arrival_times, self.is_crowded.get()) {
            (false, _) => READ,
            (true, false) => ARRIVAL,
            (true, true) => CROWDED,
        }
    }

    pub(super) fn is_to_look(&self, now: Moment) -> bool {
        self.has_arrival_times && now.since(self.looked.get().0) >= LOOK_EVERY
    }

    /// Notes that the worker lacked a CPU for `lacked` in total.
    pub(super) fn look(&self, now: Moment, lacked: Nanos) {
        let (then, before) = self.looked.replace((now, lacked));
        let lacked = lacked.saturating_sub(before).as_u64();
        self.is_crowded
            .set(lacked.saturating_mul(LACK) >= now.since(then).as_u64());
    }

    /// Length of the next pause with `in_flight` requests; `None` for no pause.
    pub(super) fn length(&self, in_flight: u64) -> Option<Nanos> {
        let answers = self.answers.replace(0);
        let latency = self.latency_ns.get();
        let bounds = self.bounds();
        let most = (latency / bounds.share).min(bounds.longest.as_u64());
        // As long as the peer answers as it did of late, so many come meanwhile.
        let is_worth_it = in_flight.saturating_mul(most) >= latency.saturating_mul(GATHERED_MIN);
        let comes_singly = answers.saturating_mul(bounds.together) <= in_flight;
        if !is_worth_it || !comes_singly {
            return None;
        }
        let delay = self.delay_ns.get();
        let length = most.saturating_sub(delay);
        if length < SHORTEST.as_u64() {
            // The kernel may be quicker next time.
            self.delay_ns.set(delay - delay / 256);
            return None;
        }
        Some(Nanos::new(length))
    }

    /// Pauses the thread with all tasks of the worker.
    pub(super) fn sleep(&self, length: Nanos) {
        let until = clock::now() + length;
        let at = Timespec {
            tv_sec: (until.as_u64() / SECOND_NS).cast_signed(),
            tv_nsec: (until.as_u64() % SECOND_NS).cast_signed(),
        };
        // A rest that a signal cuts short was short.
        clock_nanosleep_absolute(ClockId::Monotonic, &at).unwrap_or_default();
        let beyond = clock::now().since(until).as_u64();
        let delay = self.delay_ns.get();
        self.delay_ns.set(delay - delay / DELAYS + beyond / DELAYS);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The state after `latency` was measured many times.
    fn measured(has_arrival_times: bool, latency: Nanos) -> Coalescer {
        let coalescer = Coalescer::new(has_arrival_times);
        (0..2000).for_each(|_| coalescer.answered(latency));
        coalescer.answers.set(1);
        coalescer
    }

    proptest! {
        #[test]
        fn for_all_latencies_a_rest_is_within_its_share(
            has_arrival_times: bool,
            is_crowded: bool,
            latency in 0_u64..1_000_000_000,
            in_flight in 0_u64..10_000,
            delay in 0_u64..100_000,
        ) {
            let coalescer = measured(has_arrival_times, Nanos::new(latency));
            coalescer.is_crowded.set(is_crowded);
            coalescer.delay_ns.set(delay);
            if let Some(length) = coalescer.length(in_flight) {
                let whole = length.as_u64() + delay;
                let (share, longest) = match (has_arrival_times, is_crowded) {
                    (false, _) => (20, 100_000),
                    (true, false) => (8, 1_000_000),
                    (true, true) => (3, 2_000_000),
                };
                prop_assert!(whole <= latency / share);
                prop_assert!(whole <= longest);
            }
        }
    }

    #[test]
    fn rests_where_many_answers_come_one_by_one() {
        let latency = Nanos::from_millis(1);
        let length = measured(false, latency).length(100).unwrap();
        assert!((49_000..=50_000).contains(&length.as_u64()), "{length}");
        // No other answer would arrive meanwhile.
        assert_eq!(measured(false, latency).length(10), None);
        assert_eq!(measured(false, Nanos::from_secs(1)).length(100), None);
        // The kernel says when they come.
        let longer = measured(true, latency).length(100).unwrap();
        assert!((124_000..=125_000).contains(&longer.as_u64()), "{longer}");
        // They come together as it is.
        let coalescer = measured(false, latency);
        coalescer.answers.set(30);
        assert_eq!(coalescer.length(100), None);
        // The kernel takes too long.
        let coalescer = measured(false, latency);
        coalescer.delay_ns.set(60_000);
        assert_eq!(coalescer.length(100), None);
        assert!(coalescer.delay_ns.get() < 60_000, "it is tried again");
        // Nothing is known yet.
        assert_eq!(Coalescer::new(false).length(100), None);
    }

    #[test]
    fn cpus_are_too_few_where_one_was_lacked_of_late() {
        let coalescer = measured(true, Nanos::from_millis(1));
        let at = |millis: u64| Moment::new(1_000_000 * millis);
        assert!(!coalescer.is_to_look(at(99)));
        assert!(coalescer.is_to_look(at(100)));
        // The time, how long a CPU was lacked by then, and what follows.
        for (millis, lacked, expected) in [(100, 4, false), (200, 9, true), (300, 13, false)] {
            coalescer.look(at(millis), Nanos::from_millis(lacked));
            assert_eq!(coalescer.is_crowded.get(), expected, "{millis}");
        }
        coalescer.is_crowded.set(true);
        let longest = coalescer.length(100).unwrap();
        assert!((333_000..334_000).contains(&longest.as_u64()), "{longest}");
        assert!(!measured(false, Nanos::from_millis(1)).is_to_look(at(1000)));
    }
}
