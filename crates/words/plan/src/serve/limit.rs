//! A bucket of tokens, as one number.

use stillwell_units::{Moment, Nanos};

/// A bucket of tokens that come back at a fixed rate. Its state is the moment at
/// which it would be full again, so workers can share it as one atomic
/// number.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TokenBucket {
    /// Between two tokens, in nanoseconds; at least one.
    interval_ns: u64,
    /// Time to fill the empty bucket, in nanoseconds.
    depth_ns: u64,
}

/// Result of a request at a bucket.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Admission {
    /// A token; the bucket is then full at this moment.
    Now(Moment),
    /// None before `at`. One who waits for it leaves the bucket full at `full`.
    Later {
        /// When there is one.
        at: Moment,
        /// When the bucket is full after it was taken.
        full: Moment,
    },
}

impl TokenBucket {
    /// A bucket of `burst` tokens, at least one, of which `per_second` come back.
    #[must_use]
    pub fn new(per_second: f64, burst: u32) -> Self {
        let interval_ns = Nanos::from_secs_f64(1.0 / per_second).as_u64().max(1);
        Self {
            interval_ns,
            depth_ns: interval_ns.saturating_mul(u64::from(burst.max(1))),
        }
    }

    /// The result of a request `now` at a bucket that is `full` at that moment.
    #[must_use]
    pub fn admit(&self, full: Moment, now: Moment) -> Admission {
        let begin = full.as_u64().max(now.as_u64());
        let full = Moment::new(begin.saturating_add(self.interval_ns));
        let at = Moment::new(full.as_u64().saturating_sub(self.depth_ns));
        if at <= now {
            Admission::Now(full)
        } else {
            Admission::Later { at, full }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// For all buckets and arrivals: in no window more requests are admitted
        /// than the bucket holds and the rate brings back.
        #[test]
        fn never_more_than_burst_and_rate(
            rate in 1_u32..10_000,
            burst in 1_u32..50,
            gaps in proptest::collection::vec(0_u64..2_000_000, 1..300),
        ) {
            let bucket = TokenBucket::new(f64::from(rate), burst);
            let (mut full, mut now) = (Moment::new(0), 1_000_000_000);
            let mut admitted = Vec::new();
            for gap in gaps {
                now += gap;
                if let Admission::Now(next) = bucket.admit(full, Moment::new(now)) {
                    full = next;
                    admitted.push(now);
                }
            }
            let interval = 1e9 / f64::from(rate);
            for (first, from) in admitted.iter().enumerate() {
                for (last, to) in admitted.iter().enumerate().skip(first) {
                    let window = u32::try_from(to - from).unwrap();
                    let count = u32::try_from(last - first + 1).unwrap();
                    let most = f64::from(burst) + f64::from(window) / interval + 0.001;
                    prop_assert!(f64::from(count) <= most, "{count} > {most}");
                }
            }
        }

        /// For all buckets: waiting requests are admitted one interval apart.
        #[test]
        fn waiters_are_woken_one_by_one(rate in 1_u32..10_000, burst in 1_u32..50) {
            let bucket = TokenBucket::new(f64::from(rate), burst);
            let now = Moment::new(5_000_000_000);
            let mut full = Moment::new(0);
            let mut due = Vec::new();
            for _ in 0..burst + 5 {
                match bucket.admit(full, now) {
                    Admission::Now(next) => full = next,
                    Admission::Later { at, full: next } => {
                        due.push(at);
                        full = next;
                    }
                }
            }
            prop_assert_eq!(due.len(), 5);
            for pair in due.windows(2) {
                prop_assert_eq!(pair[1].since(pair[0]).as_u64(), bucket.interval_ns);
            }
            prop_assert_eq!(due[0].since(now).as_u64(), bucket.interval_ns);
        }
    }
}
