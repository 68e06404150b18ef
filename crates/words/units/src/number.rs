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

// Lengths in memory and numbers in files convert both ways without loss.
const _: () = assert!(usize::BITS == 64, "a target with 64 bits is needed");

/// Returns `value` as a length or an index. Nothing is lost: `usize` has 64 bits.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the assertion above: usize has 64 bits"
)]
pub fn as_usize(value: impl Into<u64>) -> usize {
    value.into() as usize
}

/// Returns the number of items of a list, or of bytes of a message.
///
/// # Panics
/// From 2³² items on: no list of a run, a suite or a report and no message comes near.
#[must_use]
pub fn count(items: usize) -> u32 {
    u32::try_from(items).expect("a list has fewer than 2³² items, and a message fewer bytes")
}

/// The whole number that `text` writes with a radix (`0x1f`, `0o17`, `0b101`) or a decimal factor (`2k`, `1.5M`,
/// `1G`). None for all other texts, plain decimal numbers among them.
#[must_use]
pub fn whole_number(text: &str) -> Option<u64> {
    let with_radix = |prefix: &str, radix| {
        let digits = text.strip_prefix(prefix)?;
        let is_digit = |digit: char| digit.is_digit(radix);
        (!digits.is_empty() && digits.chars().all(is_digit)).then_some((digits, radix))
    };
    let written = with_radix("0x", 16)
        .or_else(|| with_radix("0o", 8))
        .or_else(|| with_radix("0b", 2));
    if let Some((digits, radix)) = written {
        return u64::from_str_radix(digits, radix).ok();
    }
    let (digits, zeros) = [('k', 3), ('M', 6), ('G', 9)]
        .into_iter()
        .find_map(|(suffix, zeros)| Some((text.strip_suffix(suffix)?, zeros)))?;
    let (integer, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_decimal =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_decimal(integer) || !is_decimal(fraction) || fraction.len() > zeros {
        return None;
    }
    format!("{integer}{fraction:0<zeros$}").parse().ok()
}

/// The whole number that `text` writes: in decimal digits, or as [`whole_number`] reads it.
#[must_use]
pub fn parse_count(text: &str) -> Option<u64> {
    let text = text.trim();
    whole_number(text).or_else(|| text.parse().ok())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_have_a_radix_or_a_factor() {
        for (text, number) in [
            ("0x1F", Some(31)),
            ("0o17", Some(15)),
            ("0b101", Some(5)),
            ("1k", Some(1_000)),
            ("1.5M", Some(1_500_000)),
            ("0.25k", Some(250)),
            ("3G", Some(3_000_000_000)),
            ("0xffffffffffffffff", Some(u64::MAX)),
            ("0x10000000000000000", None),
            ("99999999999G", None),
            ("1.0005k", None),
            ("12", None),
            ("0x", None),
            ("0x-1", None),
            ("-1k", None),
            ("k", None),
            ("1.k", None),
            ("1e3k", None),
        ] {
            assert_eq!(whole_number(text), number, "{text}");
        }
        assert_eq!(parse_count("12"), Some(12));
        assert_eq!(parse_count(" 1.5k "), Some(1_500));
        assert_eq!(parse_count("-1"), None);
    }
}
