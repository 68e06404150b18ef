//! Lets answers gather before they are read.
//!
//! At full speed a worker that is faster than its peer is woken for every packet,
//! which may cost it more than all else that it does for a request. Where many
//! requests are under way and no schedule says when the next one is due, it
//! rests for a moment before it waits for more: then several answers are read in
//! one call, and several requests are written in one.
//!
//! A rest is never longer than a share of the mean latency of late, with what the
//! kernel took beyond what was asked for. An answer that comes meanwhile counts as
//! coming when it is read, so that latencies are too long by half of that in the
//! mean; where the kernel says when it came, only what is sent next is late, and
//! rests may be longer. With a schedule nothing rests.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::task::{Poll, Waker};

use rustix::thread::{ClockId, Timespec, clock_nanosleep_absolute};
use stillwell_scope::clock;
use stillwell_units::{Moment, Nanos};

/// How long a rest may be.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// A rest takes one part in so many of the mean latency.
    share: u64,
    /// However long answers take, nobody rests for longer.
    longest: Nanos,
    /// Where more than one part in so many of what is under way is answered at once,
    /// answers gather by themselves.
    together: u64,
}

/// Where an answer comes when it is read.
const READ: Bounds = Bounds {
    share: 20,
    longest: Nanos::new(100_000),
    together: 4,
};

/// Where the kernel says when it came.
const TOLD: Bounds = Bounds {
    share: 8,
    longest: Nanos::new(1_000_000),
    together: 4,
};

/// Where it does so and the worker often finds no CPU free: whoever has them, and
/// that may be the server, goes on while it rests.
const CROWDED: Bounds = Bounds {
    share: 3,
    longest: Nanos::new(2_000_000),
    together: 2,
};

/// CPUs are too few where a worker lacked one for this part of the time, which is
/// looked at so often.
const LACK: u64 = 20;
const LOOK_EVERY: Nanos = Nanos::from_millis(100);

/// A shorter rest is not worth the call.
const SHORTEST: Nanos = Nanos::new(2_000);

/// A rest in which fewer answers are to be expected is not worth the call.
const GATHERED_MIN: u64 = 3;

const SECOND_NS: u64 = 1_000_000_000;

/// What is remembered of the latencies, and of the kernel's delays, of late.
const LATENCIES: u64 = 64;
const DELAYS: u64 = 16;

/// When a worker rests, and for how long.
#[derive(Debug)]
pub(super) struct Coalescer {
    /// Whether answers come when the kernel says, or else when they are read.
    is_told: bool,
    is_crowded: Cell<bool>,
    /// When the lack of a CPU was looked at last, and how long it had been in all.
    looked: Cell<(Moment, Nanos)>,
    /// Who rests, while nothing was answered.
    sleeper: RefCell<Option<Waker>>,
    /// Answers since that was looked at last.
    answers: Cell<u64>,
    /// The mean latency of late, in nanoseconds.
    latency_ns: Cell<u64>,
    /// What the kernel took beyond what it was asked for of late, in nanoseconds.
    delay_ns: Cell<u64>,
}

impl Coalescer {
    /// Whether answers come when the kernel says, or else when they are read.
    pub(super) fn new(is_told: bool) -> Self {
        Self {
            is_told,
            is_crowded: Cell::default(),
            looked: Cell::default(),
            sleeper: RefCell::default(),
            answers: Cell::default(),
            latency_ns: Cell::default(),
            delay_ns: Cell::default(),
        }
    }

    /// A request was answered.
    pub(super) fn answered(&self, latency: Nanos) {
        let mean = self.latency_ns.get();
        self.latency_ns
            .set(mean - mean / LATENCIES + latency.as_u64() / LATENCIES);
        self.answers.set(self.answers.get() + 1);
        self.wake();
    }

    /// Lets whoever rests look about.
    pub(super) fn wake(&self) {
        if let Some(sleeper) = self.sleeper.borrow_mut().take() {
            sleeper.wake();
        }
    }

    /// Waits until something was answered, or the worker ends.
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
        match (self.is_told, self.is_crowded.get()) {
            (false, _) => READ,
            (true, false) => TOLD,
            (true, true) => CROWDED,
        }
    }

    pub(super) fn is_to_look(&self, now: Moment) -> bool {
        self.is_told && now.since(self.looked.get().0) >= LOOK_EVERY
    }

    /// The worker could have run for `lacked` in all and had no CPU.
    pub(super) fn look(&self, now: Moment, lacked: Nanos) {
        let (then, before) = self.looked.replace((now, lacked));
        let lacked = lacked.saturating_sub(before).as_u64();
        self.is_crowded
            .set(lacked.saturating_mul(LACK) >= now.since(then).as_u64());
    }

    /// How long to rest with `under_way` requests on their way, if at all.
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

    /// Rests, with all of the worker's tasks.
    pub(super) fn sleep(&self, length: Nanos) {
        let until = clock::now() + length;
        let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let at = Timespec {
            tv_sec: signed(until.as_u64() / SECOND_NS),
            tv_nsec: signed(until.as_u64() % SECOND_NS),
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

    /// What is remembered once `latency` was seen many times.
    fn settled(is_told: bool, latency: Nanos) -> Coalescer {
        let rest = Coalescer::new(is_told);
        (0..2000).for_each(|_| rest.answered(latency));
        rest.answers.set(1);
        rest
    }

    proptest! {
        #[test]
        fn for_all_latencies_a_rest_is_within_its_share(
            is_told: bool,
            is_crowded: bool,
            latency in 0_u64..1_000_000_000,
            in_flight in 0_u64..10_000,
            delay in 0_u64..100_000,
        ) {
            let rest = settled(is_told, Nanos::new(latency));
            rest.is_crowded.set(is_crowded);
            rest.delay_ns.set(delay);
            if let Some(length) = rest.length(in_flight) {
                let whole = length.as_u64() + delay;
                let (share, longest) = match (is_told, is_crowded) {
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
        let length = settled(false, latency).length(100).unwrap();
        assert!((49_000..=50_000).contains(&length.as_u64()), "{length}");
        // Nobody else would come meanwhile.
        assert_eq!(settled(false, latency).length(10), None);
        assert_eq!(settled(false, Nanos::from_secs(1)).length(100), None);
        // The kernel says when they come.
        let longer = settled(true, latency).length(100).unwrap();
        assert!((124_000..=125_000).contains(&longer.as_u64()), "{longer}");
        // They come together as it is.
        let rest = settled(false, latency);
        rest.answers.set(30);
        assert_eq!(rest.length(100), None);
        // The kernel takes too long.
        let rest = settled(false, latency);
        rest.delay_ns.set(60_000);
        assert_eq!(rest.length(100), None);
        assert!(rest.delay_ns.get() < 60_000, "it is tried again");
        // Nothing is known yet.
        assert_eq!(Coalescer::new(false).length(100), None);
    }

    #[test]
    fn cpus_are_too_few_where_one_was_lacked_of_late() {
        let rest = settled(true, Nanos::from_millis(1));
        let at = |millis: u64| Moment::new(1_000_000 * millis);
        assert!(!rest.is_to_look(at(99)));
        assert!(rest.is_to_look(at(100)));
        // The time, how long a CPU was lacked by then, and what follows.
        for (millis, lacked, expected) in [(100, 4, false), (200, 9, true), (300, 13, false)] {
            rest.look(at(millis), Nanos::from_millis(lacked));
            assert_eq!(rest.is_crowded.get(), expected, "{millis}");
        }
        rest.is_crowded.set(true);
        let longest = rest.length(100).unwrap();
        assert!((333_000..334_000).contains(&longest.as_u64()), "{longest}");
        assert!(!settled(false, Nanos::from_millis(1)).is_to_look(at(1000)));
    }
}
