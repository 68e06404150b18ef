//! Sizes in bytes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::ParseError;
use crate::number::{float_from_u64, floor_to_u64, split_number};

const KIND: &str = "size";
const ACCEPTED: &str = "a number and a unit, such as `512 B`, `64 KiB`, `10 MB` or `1.5 GiB`";

/// A number of bytes. SI (`MB` = 10⁶) and IEC (`MiB` = 2²⁰) units are kept
/// apart; `Mb` is refused because readers disagree whether it means bits.
#[derive(
    Clone, Copy, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(transparent)]
pub struct ByteSize(u64);

impl ByteSize {
    /// `bytes` bytes.
    #[must_use]
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// `kibibytes` × 1024 bytes.
    #[must_use]
    pub const fn kib(kibibytes: u64) -> Self {
        Self(kibibytes.saturating_mul(1 << 10))
    }

    /// `mebibytes` × 1024² bytes.
    #[must_use]
    pub const fn mib(mebibytes: u64) -> Self {
        Self(mebibytes.saturating_mul(1 << 20))
    }

    /// The number of bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.0
    }

    /// As an index or buffer length.
    #[must_use]
    pub fn as_usize(self) -> usize {
        crate::as_usize(self.0)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u64); 4] = [
            ("TiB", 1 << 40),
            ("GiB", 1 << 30),
            ("MiB", 1 << 20),
            ("KiB", 1 << 10),
        ];
        for (unit, scale) in UNITS {
            if self.0 >= scale {
                let scaled = float_from_u64(self.0) / float_from_u64(scale);
                return if self.0.is_multiple_of(scale) {
                    write!(f, "{scaled:.0} {unit}")
                } else {
                    write!(f, "{scaled:.2} {unit}")
                };
            }
        }
        write!(f, "{} B", self.0)
    }
}

impl FromStr for ByteSize {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let shape = || ParseError::Shape {
            input: text.to_owned(),
            kind: KIND,
            accepted: ACCEPTED,
        };
        let (number, unit) = split_number(text).ok_or_else(shape)?;
        if unit.is_empty() {
            return Err(ParseError::UnitMissing {
                input: text.trim().to_owned(),
                kind: KIND,
                example: " KiB",
            });
        }
        let scale = unit_scale(unit).ok_or_else(shape)?;
        let bytes = number * scale;
        if bytes >= float_from_u64(u64::MAX) {
            return Err(ParseError::Range {
                input: text.to_owned(),
                kind: KIND,
                bounds: "at most 16 EiB",
            });
        }
        Ok(Self(floor_to_u64(bytes.round())))
    }
}

/// Bytes in one `unit`, by its exact spelling.
fn unit_scale(unit: &str) -> Option<f64> {
    let scale = match unit {
        "B" => 1.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "TB" => 1e12,
        "KiB" => 1024.0,
        "MiB" => 1_048_576.0,
        "GiB" => 1_073_741_824.0,
        "TiB" => 1_099_511_627_776.0,
        _ => return None,
    };
    Some(scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_written() {
        for (text, bytes) in [
            ("0 B", 0),
            ("512B", 512),
            ("64 KiB", 65_536),
            ("1.5 MiB", 1_572_864),
            ("10 MB", 10_000_000),
            ("1_000 kB", 1_000_000),
            ("2GiB", 2_147_483_648),
        ] {
            assert_eq!(text.parse::<ByteSize>().unwrap().bytes(), bytes, "{text}");
        }
    }

    #[test]
    fn ambiguous_and_bare_sizes_are_refused() {
        for text in ["500 Mb", "64", "", "MiB", "-1 B", "1 mib", "99999999 TiB"] {
            assert!(text.parse::<ByteSize>().is_err(), "{text}");
        }
        assert_eq!(
            "64".parse::<ByteSize>().unwrap_err().to_string(),
            "a size needs a unit, as none is assumed: write `64 KiB`"
        );
    }

    #[test]
    fn printed_sizes_read_back() {
        for size in [0, 1, 1023, 1024, 65_536, 3 << 30] {
            let size = ByteSize::new(size);
            assert_eq!(size.to_string().parse::<ByteSize>().unwrap(), size);
        }
    }
}
