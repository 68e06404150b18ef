//! The few conversions between integers and floats that the rest relies on.

/// `value` as a float; exact up to 2⁵³, then rounded to the nearest.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "rounding above 2^53 is what this function documents"
)]
pub const fn float_from_u64(value: u64) -> f64 {
    value as f64
}

/// `value` rounded down to an integer; negative and NaN give 0, too large gives
/// `u64::MAX`.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float-to-int casts saturate, which is what this function documents"
)]
pub const fn floor_to_u64(value: f64) -> u64 {
    value as u64
}

/// Splits `text` into its leading decimal number and the trimmed rest.
pub(crate) fn split_number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
        .unwrap_or(text.len());
    let digits: String = text[..end].chars().filter(|c| *c != '_').collect();
    let number: f64 = digits.parse().ok()?;
    Some((number, text[end..].trim()))
}
