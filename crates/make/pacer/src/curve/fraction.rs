//! A constant rate, exactly.

use stillwell_units::float_from_u64;

const SECOND_NS: u128 = 1_000_000_000;
/// Units per nanosecond as a fraction of integers. Every float is one: a whole
/// number times a power of two. So a rate such as 0.1 is kept as it was given,
/// and no rounding gathers however long the schedule runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fraction {
    /// At most 2⁶³, so its product with any time fits.
    numerator: u128,
    /// At most 10⁹ × 2⁹².
    denominator: u128,
}

impl Fraction {
    /// `per_second` is zero or from 2⁻⁴⁰ to 2⁶³.
    pub(crate) fn new(per_second: f64) -> Self {
        if per_second <= 0.0 {
            return Self {
                numerator: 0,
                denominator: 1,
            };
        }
        let (mantissa, exponent) = decompose(per_second);
        let (numerator, denominator) = if exponent >= 0 {
            (mantissa << exponent, SECOND_NS)
        } else {
            (mantissa, SECOND_NS << exponent.unsigned_abs())
        };
        // Small numbers divide faster.
        let divisor = greatest_common_divisor(numerator, denominator);
        Self {
            numerator: numerator / divisor,
            denominator: denominator / divisor,
        }
    }

    pub(crate) fn total_at(&self, elapsed_ns: u64) -> u64 {
        let total = u128::from(elapsed_ns) * self.numerator / self.denominator;
        u64::try_from(total).unwrap_or(u64::MAX)
    }

    pub(crate) fn reaches(&self, total: u64) -> u64 {
        if self.numerator == 0 {
            return u64::MAX;
        }
        // A product that does not fit divides to more than 64 bits.
        u128::from(total)
            .checked_mul(self.denominator)
            .map(|product| product.div_ceil(self.numerator))
            .and_then(|elapsed_ns| u64::try_from(elapsed_ns).ok())
            .unwrap_or(u64::MAX)
    }

    pub(crate) fn requested_at(&self, elapsed_ns: u64) -> f64 {
        let product = u128::from(elapsed_ns) * self.numerator;
        let whole = u64::try_from(product / self.denominator).unwrap_or(u64::MAX);
        float_from_u64(whole) + ratio(product % self.denominator, self.denominator)
    }
}

/// `value` as a whole number times a power of two; `value` is normal, positive
/// and at least 2⁻⁴⁰.
fn decompose(value: f64) -> (u128, i32) {
    const FRACTION_BITS: u32 = f64::MANTISSA_DIGITS - 1;
    let bits = value.to_bits();
    let mantissa = bits & ((1 << FRACTION_BITS) - 1) | 1 << FRACTION_BITS;
    let biased = i32::try_from(bits >> FRACTION_BITS & 0x7ff).expect("an exponent has 11 bits");
    let exponent = biased - 1023 - FRACTION_BITS.cast_signed();
    (u128::from(mantissa), exponent)
}

const fn greatest_common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// `part / whole` as a float.
#[expect(
    clippy::cast_precision_loss,
    reason = "the part of one unit that is under way is only shown"
)]
const fn ratio(part: u128, whole: u128) -> f64 {
    part as f64 / whole as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::curve::{RATE_MIN, bounded};

    #[test]
    fn floats_are_taken_exactly() {
        for (rate, elapsed_ns, total) in [
            (1.0, 999_999_999, 0),
            (1.0, 1_000_000_000, 1),
            (0.5, 1_999_999_999, 0),
            (0.5, 2_000_000_000, 1),
            (1e9, 7, 7),
            (0.0, u64::MAX, 0),
            (-3.0, u64::MAX, 0),
            (f64::NAN, u64::MAX, 0),
            (f64::INFINITY, 1, 9_223_372_036),
            (f64::MIN_POSITIVE, u64::MAX, 0),
        ] {
            let fraction = Fraction::new(bounded(rate));
            assert_eq!(fraction.total_at(elapsed_ns), total, "{rate}");
        }
        assert_eq!(Fraction::new(0.0).reaches(1), u64::MAX);
        assert_eq!(Fraction::new(RATE_MIN).reaches(1), u64::MAX);
    }

    proptest! {
        #[test]
        fn for_all_rates_a_unit_is_due_when_reached_and_not_before(
            rate in prop_oneof![1e-6_f64..1e12, (1_u32..1_000_000).prop_map(f64::from)],
            total in 1_u64..1 << 50,
        ) {
            let fraction = Fraction::new(rate);
            let elapsed_ns = fraction.reaches(total);
            prop_assert!(elapsed_ns > 0);
            if elapsed_ns < u64::MAX {
                prop_assert!(fraction.total_at(elapsed_ns) >= total);
                prop_assert!(fraction.total_at(elapsed_ns - 1) < total);
            }
        }

        #[test]
        fn for_all_floats_nothing_panics(bits in any::<u64>(), time in any::<u64>()) {
            let fraction = Fraction::new(bounded(f64::from_bits(bits)));
            let total = fraction.total_at(time);
            prop_assert!(total == 0 || fraction.reaches(total) <= time);
            prop_assert!(fraction.requested_at(time) >= float_from_u64(total));
        }
    }
}
