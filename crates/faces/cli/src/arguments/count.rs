//! Whole numbers on the command line, such as `2000`, `2k` or `0x7d0`.

use std::ops::{Bound, RangeBounds};

use clap::builder::TypedValueParser;
use stillwell_units::parse_count;

/// Parses a whole number above zero.
pub(super) fn whole<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    read(text, 1..)
}

/// A parser of whole numbers of a range.
pub(super) fn within<T>(
    range: impl RangeBounds<u64> + Clone + Send + Sync + 'static,
) -> impl TypedValueParser<Value = T>
where
    T: TryFrom<u64> + Clone + Send + Sync + 'static,
{
    move |text: &str| read(text, range.clone())
}

fn read<T: TryFrom<u64>>(text: &str, range: impl RangeBounds<u64>) -> Result<T, String> {
    let number = parse_count(text).filter(|number| range.contains(number));
    let converted = number.and_then(|number| T::try_from(number).ok());
    converted.ok_or_else(|| {
        let from = match range.start_bound() {
            Bound::Included(from) => *from,
            Bound::Excluded(before) => *before + 1,
            Bound::Unbounded => 0,
        };
        match range.end_bound() {
            Bound::Included(to) => format!("write a whole number from {from} to {to}"),
            Bound::Excluded(end) => format!("write a whole number from {from} to {}", *end - 1),
            Bound::Unbounded if number.is_some() => {
                format!("write a whole number from {from} to {}", largest::<T>())
            }
            Bound::Unbounded => format!("write a whole number from {from}, such as 2000 or 2k"),
        }
    })
}

/// The largest number of a type of 8 to 64 bits.
fn largest<T: TryFrom<u64>>() -> u64 {
    let all_ones = |bits: u32| u64::MAX >> (64 - bits);
    let sizes = [64, 63, 32, 31, 16, 8].map(all_ones);
    let mut fitting = sizes
        .into_iter()
        .filter(|number| T::try_from(*number).is_ok());
    fitting.next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_factors_and_limits() {
        for (text, expected) in [
            ("7", Ok(7_u16)),
            ("1k", Ok(1000)),
            ("0x10", Ok(16)),
            ("0", Err("write a whole number from 1 to 4096")),
            ("5k", Err("write a whole number from 1 to 4096")),
            ("-1", Err("write a whole number from 1 to 4096")),
            ("1.5", Err("write a whole number from 1 to 4096")),
        ] {
            let expected = expected.map_err(str::to_owned);
            assert_eq!(read::<u16>(text, 1..=4096), expected, "{text}");
        }
        let too_large = whole::<u16>("70k").unwrap_err();
        assert_eq!(too_large, "write a whole number from 1 to 65535");
        let none = whole::<u16>("x").unwrap_err();
        assert_eq!(none, "write a whole number from 1, such as 2000 or 2k");
    }
}
