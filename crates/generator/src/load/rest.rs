//! Lets answers gather before they are read.
//!
//! At full speed a worker that is faster than its peer is woken for every packet,
//! which may cost it more than all else that it does for a request. Where many
//! requests are under way and no schedule says when the next one is due, it
//! rests for a moment before it waits for more: then several answers are read in
//! one call, and several requests are written in one.
//!
//! An answer that comes meanwhile counts as coming when it is read. So a rest is
//! never longer than a [`SHARE`]th of the mean latency of late, with what the
//! kernel took beyond what was asked for: latencies are too long by half of that
//! in the mean. With a schedule nothing rests.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::num::NonZeroU64;
use std::rc::Rc;
use std::task::{Poll, Waker};

use rustix::thread::{ClockId, Timespec, clock_nanosleep_absolute, set_current_timer_slack};
use stillwell_scope::clock;
use stillwell_units::Nanos;

use super::worker::Worker;

/// The part of the mean latency that a rest may take.
const SHARE: u64 = 20;

/// However long answers take, nobody rests for longer.
const LONGEST: Nanos = Nanos::new(100_000);

/// A shorter rest is not worth the call.
const SHORTEST: Nanos = Nanos::new(2_000);

/// A rest in which fewer answers are to be expected is not worth the call.
const GATHERED_MIN: u64 = 3;

const SECOND_NS: u64 = 1_000_000_000;

/// What is remembered of the latencies, and of the kernel's delays, of late.
const LATENCIES: u64 = 64;
const DELAYS: u64 = 16;

/// When a worker rests, and for how long.
#[derive(Debug, Default)]
pub(super) struct Rest {
    /// Who rests, while nothing was answered.
    sleeper: RefCell<Option<Waker>>,
    /// Answers since that was looked at last.
    answers: Cell<u64>,
    /// The mean latency of late, in nanoseconds.
    latency_ns: Cell<u64>,
    /// What the kernel took beyond what it was asked for of late, in nanoseconds.
    delay_ns: Cell<u64>,
}

/// Rests whenever that is worth it, until the worker ends. Runs after all of the
/// worker's tasks that were ready when an answer came.
pub(super) async fn rest(worker: Rc<Worker>) {
    // Where the kernel refuses, rests are too long and therefore rare.
    set_current_timer_slack(Some(NonZeroU64::MIN)).unwrap_or_default();
    loop {
        worker.rest.answer(&worker).await;
        if worker.is_ending() {
            return;
        }
        let under_way = worker.ledger.borrow().under_way;
        if let Some(length) = worker.rest.length(under_way) {
            worker.rest.sleep(length);
        }
    }
}

impl Rest {
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
    async fn answer(&self, worker: &Worker) {
        poll_fn(|context| {
            if self.answers.get() > 0 || worker.is_ending() {
                return Poll::Ready(());
            }
            self.sleeper.replace(Some(context.waker().clone()));
            Poll::Pending
        })
        .await;
    }

    /// How long to rest with `under_way` requests on their way, if at all.
    fn length(&self, under_way: u64) -> Option<Nanos> {
        let answers = self.answers.replace(0);
        let latency = self.latency_ns.get();
        let most = (latency / SHARE).min(LONGEST.as_u64());
        // As long as the peer answers as it did of late, so many come meanwhile.
        let is_worth_it = under_way.saturating_mul(most) >= latency.saturating_mul(GATHERED_MIN);
        let comes_singly = answers.saturating_mul(4) <= under_way;
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
    fn sleep(&self, length: Nanos) {
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
    fn settled(latency: Nanos) -> Rest {
        let rest = Rest::default();
        (0..2000).for_each(|_| rest.answered(latency));
        rest.answers.set(1);
        rest
    }

    proptest! {
        #[test]
        fn for_all_latencies_a_rest_is_within_its_share(
            latency in 0_u64..1_000_000_000,
            under_way in 0_u64..10_000,
            delay in 0_u64..100_000,
        ) {
            let rest = settled(Nanos::new(latency));
            rest.delay_ns.set(delay);
            if let Some(length) = rest.length(under_way) {
                let whole = length.as_u64() + delay;
                prop_assert!(whole <= latency / SHARE);
                prop_assert!(whole <= LONGEST.as_u64());
            }
        }
    }

    #[test]
    fn rests_where_many_answers_come_one_by_one() {
        let latency = Nanos::from_millis(1);
        let length = settled(latency).length(100).unwrap();
        assert!((49_000..=50_000).contains(&length.as_u64()), "{length}");
        // Nobody else would come meanwhile.
        assert_eq!(settled(latency).length(10), None);
        assert_eq!(settled(Nanos::from_secs(1)).length(100), None);
        // They come together as it is.
        let rest = settled(latency);
        rest.answers.set(30);
        assert_eq!(rest.length(100), None);
        // The kernel takes too long.
        let rest = settled(latency);
        rest.delay_ns.set(60_000);
        assert_eq!(rest.length(100), None);
        assert!(rest.delay_ns.get() < 60_000, "it is tried again");
        // Nothing is known yet.
        assert_eq!(Rest::default().length(100), None);
    }
}
