//! Run identifiers, and seeds that make the bytes of a run reproducible.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{ParseError, parse_count};

/// The 32 bytes from which everything random in a run follows.
///
/// A seed is typed as one whole number; lading's 32 numbers are taken as they
/// are. [`Seed::derive`] gives every user of randomness its own stream, so
/// adding one never changes the bytes of another.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Seed([u8; 32]);

impl Seed {
    /// Returns the seed for the number `value`.
    #[must_use]
    pub fn from_number(value: u64) -> Self {
        let mut state = value;
        let mut bytes = [0; 32];
        for chunk in bytes.chunks_exact_mut(8) {
            chunk.copy_from_slice(&split_mix(&mut state).to_le_bytes());
        }
        Self(bytes)
    }

    /// These 32 bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The seed of the part called `label`, number `index`: an FNV-1a hash of
    /// seed, label and index, spread by SplitMix64. Not cryptographic.
    #[must_use]
    pub fn derive(&self, label: &str, index: u64) -> Self {
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        let bytes = self.0.iter().chain(label.as_bytes());
        for byte in bytes.copied().chain([0xff]).chain(index.to_le_bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Self::from_number(hash)
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl FromStr for Seed {
    type Err = ParseError;

    /// A whole number, also with a factor such as `1k`, or the 64 hexadecimal digits that are printed.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let text = text.trim();
        // The printed form first: its digits may all be decimal, and make a small number.
        parse_hex::<32>(text)
            .map(Self)
            .or_else(|| parse_count(text).map(Self::from_number))
            .ok_or_else(|| ParseError::Shape {
                input: text.to_owned(),
                kind: "seed",
                accepted: "a whole number such as `42`, or 64 hexadecimal digits",
            })
    }
}

impl Serialize for Seed {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Seed {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Names one run: 16 bytes, printed as 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RunId([u8; 16]);

impl RunId {
    /// Builds the identifier from these bytes; the caller makes them unique per run.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The 16 bytes.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl FromStr for RunId {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        parse_hex::<16>(text.trim())
            .map(Self)
            .ok_or_else(|| ParseError::Shape {
                input: text.to_owned(),
                kind: "run id",
                accepted: "32 hexadecimal digits",
            })
    }
}

impl Serialize for RunId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RunId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// `2 × N` hexadecimal digits as `N` bytes.
fn parse_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    // `from_str_radix` would accept signs.
    if text.len() != 2 * N || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; N];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(bytes)
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): spreads similar states far
/// apart.
const fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read_back(seed: Seed) -> Option<Seed> {
        seed.to_string().parse().ok()
    }

    proptest! {
        #[test]
        fn for_all_seeds_the_printed_one_reads_back(bytes: [u8; 32], small: u64) {
            let seed = Seed::from_bytes(bytes);
            prop_assert_eq!(read_back(seed), Some(seed));
            let text = format!("{small:064}");
            let seed: Seed = text.parse().unwrap();
            prop_assert_eq!(seed.to_string(), text);
        }
    }

    #[test]
    fn a_seed_of_decimal_digits_reads_back_as_itself() {
        let mut small = [0; 32];
        small[31] = 0x17;
        for bytes in [[0; 32], small, [0x42; 32]] {
            let seed = Seed::from_bytes(bytes);
            assert_eq!(read_back(seed), Some(seed));
        }
        assert!("+1".repeat(32).parse::<Seed>().is_err());
    }

    #[test]
    fn seeds_read_back_and_stay_the_same() {
        let seed = Seed::from_number(42);
        assert_eq!(seed.to_string().parse::<Seed>().unwrap(), seed);
        assert_eq!("42".parse::<Seed>().unwrap(), seed);
        // The published first output of SplitMix64 from state 0, little-endian.
        assert_eq!(
            Seed::from_number(0).bytes()[..8],
            0xe220_a839_7b1d_cdaf_u64.to_le_bytes()
        );
    }

    #[test]
    fn every_part_has_its_own_stream() {
        let seed = Seed::from_number(1);
        let streams = [
            seed.derive("payload", 0),
            seed.derive("payload", 1),
            seed.derive("order", 0),
            Seed::from_number(2).derive("payload", 0),
        ];
        for (index, stream) in streams.iter().enumerate() {
            assert!(!streams[index + 1..].contains(stream));
        }
    }

    #[test]
    fn run_ids_read_back() {
        let id = RunId::from_bytes([7; 16]);
        assert_eq!(id.to_string().parse::<RunId>().unwrap(), id);
        assert!("07".parse::<RunId>().is_err());
    }
}
