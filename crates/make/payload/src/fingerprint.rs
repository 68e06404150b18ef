//! Fingerprints of bytes, to check that they have not changed.

use std::collections::BTreeMap;
use std::fmt;

use sha2::{Digest as _, Sha256};
use stillwell_units::float_from_u64;

/// Difference in bits at which two entropies are the same: they are printed rounded.
const ENTROPY_TOLERANCE: f64 = 0.01;

/// SHA-256 and Shannon entropy of bytes. Prints as
/// `<64 hexadecimal digits> entropy=<bits a byte, four decimals>`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fingerprint {
    sha256: [u8; 32],
    entropy: f64,
}

impl Fingerprint {
    /// The fingerprint of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self {
            sha256: Sha256::digest(bytes).into(),
            entropy: entropy(bytes),
        }
    }

    /// The SHA-256 of the bytes.
    #[must_use]
    pub const fn sha256(&self) -> &[u8; 32] {
        &self.sha256
    }

    /// Bits a byte, from 0 (one value only) to 8 (all values alike).
    #[must_use]
    pub const fn entropy(&self) -> f64 {
        self.entropy
    }

    /// True if `printed` is this fingerprint; it may lack the entropy.
    #[must_use]
    pub fn matches(&self, printed: &str) -> bool {
        is_same(&self.to_string(), printed)
    }
}

/// Printed fingerprints by name, from lines of `NAME: FINGERPRINT`.
///
/// ```
/// # use stillwell_payload::PrintedFingerprints;
/// let printed = PrintedFingerprints::parse("load: ba78 entropy=1.5850\n");
/// assert_eq!(printed.get("load"), Some("ba78 entropy=1.5850"));
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PrintedFingerprints(BTreeMap<String, String>);

impl PrintedFingerprints {
    /// Reads the lines of `text`; skips others.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let pairs = text.lines().filter_map(|line| line.split_once(": "));
        let pairs = pairs.map(|(name, print)| (name.to_owned(), print.trim().to_owned()));
        Self(pairs.collect())
    }

    /// Returns the fingerprint of `name`, as it was printed.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.sha256 {
            write!(f, "{byte:02x}")?;
        }
        write!(f, " entropy={:.4}", self.entropy)
    }
}

/// Returns true if two printed fingerprints match; one may lack its entropy.
fn is_same(print: &str, wanted: &str) -> bool {
    let parts = |text: &str| {
        let (hash, entropy) = text.split_once(" entropy=").unwrap_or((text, ""));
        (hash.trim().to_owned(), entropy.trim().parse::<f64>().ok())
    };
    let (actual, expected) = (parts(print), parts(wanted));
    let is_near = actual
        .1
        .zip(expected.1)
        .is_none_or(|(actual, expected)| (actual - expected).abs() < ENTROPY_TOLERANCE);
    actual.0 == expected.0 && is_near
}

/// Shannon entropy of single bytes: -sum p log2 p. Knows nothing of order.
fn entropy(bytes: &[u8]) -> f64 {
    let mut counts = [0_u64; 256];
    for byte in bytes {
        counts[usize::from(*byte)] += 1;
    }
    let total = float_from_u64(bytes.len() as u64);
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| float_from_u64(*count) / total)
        // From a positive zero: the sum of nothing is a negative one.
        .fold(0.0, |sum, share| sum - share * share.log2())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_bytes_have_their_known_fingerprint() {
        // The published SHA-256 of "abc" (FIPS 180-4); three values alike carry log2 3 bits.
        assert_eq!(
            Fingerprint::of(b"abc").to_string(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad entropy=1.5850"
        );
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(format!("{:.4}", Fingerprint::of(&all).entropy()), "8.0000");
        assert_eq!(format!("{:.4}", Fingerprint::of(b"").entropy()), "0.0000");
        assert_eq!(format!("{:.4}", Fingerprint::of(b"zz").entropy()), "0.0000");
    }

    #[test]
    fn a_fingerprint_is_its_hash_and_nearly_its_entropy() {
        for (wanted, same) in [
            ("ab entropy=3.3903", true),
            ("ab entropy=3.3999", true),
            ("ab", true),
            ("ab entropy=3.5", false),
            ("ac entropy=3.3903", false),
        ] {
            assert_eq!(is_same("ab entropy=3.3903", wanted), same, "{wanted}");
        }
    }
}
