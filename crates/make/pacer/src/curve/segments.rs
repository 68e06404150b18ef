//! Rates that change evenly or by steps.

use std::sync::Arc;

use stillwell_units::{Nanos, float_from_u64, floor_to_u64};

use super::bounded;

const SECOND_NS: f64 = 1e9;

/// Stretches of time in which the rate changes evenly, the last one without end
/// and at one rate.
///
/// Both directions are taken from the start of the stretch, whose figures are
/// kept, so rounding does not gather over time.
#[derive(Clone, Debug)]
pub(crate) struct Segments(Arc<[Segment]>);

#[derive(Clone, Copy, Debug)]
struct Segment {
    begin_ns: u64,
    /// Units requested before it.
    before: f64,
    /// Units per second at its start.
    rate: f64,
    /// Growth of the rate in each second; may be negative.
    growth: f64,
}

impl Segments {
    /// From one rate evenly to the other, and on at that.
    pub(crate) fn ramp(from: f64, to: f64, over: Nanos) -> Self {
        let (from, to) = (bounded(from), bounded(to));
        Self::build([(from, to, over), (to, to, Nanos::ZERO)])
    }

    /// One rate after the other, the last one going on.
    pub(crate) fn steps(steps: impl IntoIterator<Item = (f64, Nanos)>) -> Self {
        let steps = steps.into_iter();
        Self::build(steps.map(|(rate, length)| (bounded(rate), bounded(rate), length)))
    }

    fn build(stretches: impl IntoIterator<Item = (f64, f64, Nanos)>) -> Self {
        let (mut begin_ns, mut before) = (0_u64, 0.0);
        let mut segments = Vec::new();
        let mut last_rate = 0.0;
        for (from, to, length) in stretches {
            let seconds = length.as_secs_f64();
            segments.push(Segment {
                begin_ns,
                before,
                rate: from,
                growth: if seconds > 0.0 {
                    (to - from) / seconds
                } else {
                    0.0
                },
            });
            begin_ns = begin_ns.saturating_add(length.as_u64());
            before += f64::midpoint(from, to) * seconds;
            last_rate = to;
        }
        // What is last goes on; an end of its own also makes the list not empty.
        segments.push(Segment {
            begin_ns,
            before,
            rate: last_rate,
            growth: 0.0,
        });
        Self(segments.into())
    }

    pub(crate) fn requested_at(&self, elapsed_ns: u64) -> f64 {
        let beyond = self
            .0
            .partition_point(|segment| segment.begin_ns <= elapsed_ns);
        let segment = self.0[beyond.max(1) - 1];
        let seconds = float_from_u64(elapsed_ns - segment.begin_ns) / SECOND_NS;
        let requested = segment.before + (segment.rate + segment.growth / 2.0 * seconds) * seconds;
        self.0
            .get(beyond)
            .map_or(requested, |next| requested.min(next.before))
    }

    /// The first nanosecond at which `units` have been requested; `u64::MAX` for
    /// never.
    pub(crate) fn reaches(&self, units: f64) -> u64 {
        let beyond = self.0.partition_point(|segment| segment.before < units);
        let segment = self.0[beyond.max(1) - 1];
        let rest = units - segment.before;
        let root = (segment.rate * segment.rate + 2.0 * segment.growth * rest)
            .max(0.0)
            .sqrt();
        let divisor = segment.rate + root;
        if rest > 0.0 && divisor <= 0.0 {
            return u64::MAX;
        }
        let seconds = if rest > 0.0 {
            2.0 * rest / divisor
        } else {
            0.0
        };
        let guess = floor_to_u64(seconds * SECOND_NS).saturating_add(segment.begin_ns);
        earliest(guess, |elapsed_ns| self.requested_at(elapsed_ns) >= units)
    }
}

/// The first number for which `reached` holds, which is near `guess`; it holds
/// for all after that. `u64::MAX` where it never does.
fn earliest(guess: u64, reached: impl Fn(u64) -> bool) -> u64 {
    // Widen to a window (low, high] that holds the answer, then halve it.
    let (mut low, mut high, mut step) = (guess, guess, 1_u64);
    if reached(guess) {
        while low > 0 && reached(low) {
            high = low;
            low = low.saturating_sub(step);
            step = step.saturating_mul(2);
        }
        if reached(low) {
            return low;
        }
    } else {
        while !reached(high) {
            if high == u64::MAX {
                return u64::MAX;
            }
            low = high;
            high = high.saturating_add(step);
            step = step.saturating_mul(2);
        }
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if reached(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seconds(count: u64) -> u64 {
        Nanos::from_secs(count).as_u64()
    }

    fn total_at(ramp: &Segments, elapsed_ns: u64) -> u64 {
        floor_to_u64(ramp.requested_at(elapsed_ns))
    }

    #[test]
    fn ramps_request_the_area_under_their_rate() {
        for (from, to, totals) in [
            (0.0, 20.0, [0.0, 10.0, 30.0]),
            (20.0, 0.0, [0.0, 10.0, 10.0]),
            (10.0, 10.0, [0.0, 10.0, 20.0]),
        ] {
            let ramp = Segments::ramp(from, to, Nanos::SECOND);
            for (second, total) in (0..).zip(totals) {
                assert!((ramp.requested_at(seconds(second)) - total).abs() < 1e-9);
            }
        }
        let down = Segments::ramp(20.0, 0.0, Nanos::SECOND);
        assert_eq!(down.reaches(11.0), u64::MAX);
    }

    #[test]
    fn steps_request_their_rates_in_turn() {
        let second = Nanos::SECOND;
        let steps = Segments::steps([(10.0, second), (0.0, second), (5.0, second)]);
        for (at, total) in [(1, 10.0), (2, 10.0), (3, 15.0), (10, 50.0)] {
            assert!(
                (steps.requested_at(seconds(at)) - total).abs() < 1e-9,
                "{at} s"
            );
        }
        assert_eq!(steps.reaches(10.0), seconds(1));
        assert_eq!(steps.reaches(15.0), seconds(3));
    }

    #[test]
    fn a_ramp_requests_the_area_under_its_rate() {
        let ramp = Segments::ramp(10.0, 30.0, Nanos::from_secs(2));
        for (at, total) in [(0, 0), (1, 15), (2, 40), (3, 70), (100, 2980)] {
            assert_eq!(total_at(&ramp, seconds(at)), total, "{at} s");
        }
        assert_eq!(ramp.reaches(40.0), 2_000_000_000);
        assert_eq!(ramp.reaches(70.0), 3_000_000_000);
    }

    proptest! {
        #[test]
        fn for_all_thresholds_and_guesses_the_earliest_is_found(
            threshold in any::<u64>(),
            guess in any::<u64>(),
        ) {
            prop_assert_eq!(earliest(guess, |n| n >= threshold), threshold);
        }

        #[test]
        fn for_all_growing_ramps_a_unit_is_due_when_reached_and_not_before(
            initial in 0.0_f64..1e6,
            above in 0.001_f64..1e9,
            over in 1_u64..1 << 63,
            total in 1_u64..1_000_000_000_000,
        ) {
            let ramp = Segments::ramp(initial, initial + above, Nanos::new(over));
            let elapsed_ns = ramp.reaches(float_from_u64(total));
            prop_assert!(elapsed_ns > 0 && elapsed_ns < u64::MAX);
            prop_assert!(total_at(&ramp, elapsed_ns) >= total);
            prop_assert!(total_at(&ramp, elapsed_ns - 1) < total);
        }

        #[test]
        fn for_all_growing_ramps_requests_never_fall(
            initial in 0.0_f64..1e6,
            above in 0.001_f64..1e6,
            over in 1_u64..1 << 55,
            times in prop::collection::vec(0_u64..1 << 55, 2..40),
        ) {
            let ramp = Segments::ramp(initial, initial + above, Nanos::new(over));
            // Around the bend it is most likely to.
            let mut times = times;
            times.extend(over.saturating_sub(3)..over.saturating_add(3));
            times.sort_unstable();
            prop_assert!(times.is_sorted_by_key(|&time| total_at(&ramp, time)));
        }

        #[test]
        fn for_all_steps_a_unit_is_due_when_reached_and_not_before(
            steps in prop::collection::vec((0.0_f64..1e6, 0_u64..10_000_000_000), 0..6),
            last in 0.001_f64..1e6,
            units in 1_u32..100_000_000,
        ) {
            let steps = steps.into_iter().map(|(rate, length)| (rate, Nanos::new(length)));
            let curve = Segments::steps(steps.chain([(last, Nanos::ZERO)]));
            let units = f64::from(units);
            let elapsed_ns = curve.reaches(units);
            prop_assert!(elapsed_ns > 0 && elapsed_ns < u64::MAX);
            prop_assert!(curve.requested_at(elapsed_ns) >= units);
            prop_assert!(curve.requested_at(elapsed_ns - 1) < units);
        }

        #[test]
        fn for_all_ramps_later_units_are_due_later(
            from in 0.0_f64..1e5,
            to in 0.0_f64..1e5,
            over in 0_u64..10_000_000_000,
            units in prop::collection::vec(0_u32..10_000_000, 2..20),
        ) {
            let ramp = Segments::ramp(from, to, Nanos::new(over));
            let mut units = units;
            units.sort_unstable();
            prop_assert!(units.is_sorted_by_key(|units| ramp.reaches(f64::from(*units))));
        }
    }
}
