//! A rate that grows evenly up to a maximum.

use stillwell_units::{float_from_u64, floor_to_u64};

const SECOND_NS: f64 = 1e9;

/// With initial rate `r`, growth `c` and maximum `m`, the rate at time `t` is
/// `min(r + c·t, m)`. Up to `t₁ = (m − r) / c` it has requested
///
/// `n(t) = r·t + c·t²/2`, whose inverse is `t(n) = 2n / (r + √(r² + 2cn))`,
///
/// and from there on for `n(t₁) + m·(t − t₁)`. (This form of the inverse does
/// not subtract like numbers, and holds for `r = 0` as well.)
///
/// Both are always taken from the start, so that rounding never gathers: floats
/// err by some 10⁻¹⁶ of the elapsed time, under a nanosecond for weeks. The
/// inverse is then corrected to agree with `n(t)` to the nanosecond.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ramp {
    initial: f64,
    maximum: f64,
    /// Half the growth, in units per second squared.
    change_half: f64,
    /// When the maximum is reached, in seconds.
    top_seconds: f64,
    /// Units requested until then.
    top_units: f64,
}

impl Ramp {
    /// All three above zero or `initial` zero, and `initial` below `maximum`.
    pub(crate) fn new(initial: f64, maximum: f64, change: f64) -> Self {
        let change_half = change / 2.0;
        let top_seconds = (maximum - initial) / change;
        Self {
            initial,
            maximum,
            change_half,
            top_seconds,
            top_units: initial * top_seconds + change_half * top_seconds * top_seconds,
        }
    }

    /// Never falls as time goes on, for each operation on floats rounds in
    /// order and none of them subtracts but the last, of a constant.
    pub(crate) fn requested_at(&self, elapsed_ns: u64) -> f64 {
        let seconds = float_from_u64(elapsed_ns) / SECOND_NS;
        if seconds < self.top_seconds {
            let requested = self.initial * seconds + self.change_half * seconds * seconds;
            requested.min(self.top_units)
        } else {
            self.top_units + self.maximum * (seconds - self.top_seconds)
        }
    }

    pub(crate) fn reaches(&self, units: f64) -> u64 {
        let seconds = if units < self.top_units {
            let root = (self.initial * self.initial + 4.0 * self.change_half * units).sqrt();
            2.0 * units / (self.initial + root)
        } else {
            self.top_seconds + (units - self.top_units) / self.maximum
        };
        earliest(floor_to_u64(seconds * SECOND_NS), |elapsed_ns| {
            self.requested_at(elapsed_ns) >= units
        })
    }
}

/// The first number for which `reached` holds, which is near `guess`; it holds
/// for all after that. `u64::MAX` where it never does.
pub(super) fn earliest(guess: u64, reached: impl Fn(u64) -> bool) -> u64 {
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

    fn total_at(ramp: &Ramp, elapsed_ns: u64) -> u64 {
        floor_to_u64(ramp.requested_at(elapsed_ns))
    }

    #[test]
    fn a_ramp_requests_the_area_under_its_rate() {
        // 10/s growing by 10/s each second, to 30/s at two seconds.
        let ramp = Ramp::new(10.0, 30.0, 10.0);
        for (seconds, total) in [(0, 0), (1, 15), (2, 40), (3, 70), (100, 2980)] {
            assert_eq!(
                total_at(&ramp, seconds * 1_000_000_000),
                total,
                "{seconds} s"
            );
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
        fn for_all_ramps_a_unit_is_due_when_reached_and_not_before(
            initial in 0.0_f64..1e6,
            above in 0.001_f64..1e9,
            change in 0.001_f64..1e9,
            total in 1_u64..1_000_000_000_000,
        ) {
            let ramp = Ramp::new(initial, initial + above, change);
            let elapsed_ns = ramp.reaches(float_from_u64(total));
            prop_assert!(elapsed_ns > 0 && elapsed_ns < u64::MAX);
            prop_assert!(total_at(&ramp, elapsed_ns) >= total);
            prop_assert!(total_at(&ramp, elapsed_ns - 1) < total);
        }

        #[test]
        fn for_all_ramps_asking_never_falls(
            initial in 0.0_f64..1e6,
            above in 0.001_f64..1e6,
            change in 0.001_f64..1e6,
            times in prop::collection::vec(0_u64..1 << 55, 2..40),
        ) {
            let ramp = Ramp::new(initial, initial + above, change);
            // Around the bend it is most likely to.
            let bend = floor_to_u64(ramp.top_seconds * SECOND_NS);
            let mut times = times;
            times.extend(bend.saturating_sub(3)..bend.saturating_add(3));
            times.sort_unstable();
            prop_assert!(times.is_sorted_by_key(|&time| total_at(&ramp, time)));
        }
    }
}
