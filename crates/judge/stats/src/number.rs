//! The conversions between counts and floats that the rest relies on.

/// `count` as a float; exact up to 2⁵³, far above any count of runs.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of values in memory stay far below 2^53"
)]
pub(crate) const fn float(count: usize) -> f64 {
    count as f64
}

/// `value` rounded down to an index; negative and NaN give 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float-to-int casts saturate, which is what this function documents"
)]
pub(crate) const fn floor_index(value: f64) -> usize {
    value as usize
}

/// `value` rounded up to an index; negative and NaN give 0.
pub(crate) fn ceil_index(value: f64) -> usize {
    floor_index(value.ceil())
}

/// `pairs` as a count of things in memory.
pub(crate) const fn count(pairs: u32) -> usize {
    pairs as usize
}
