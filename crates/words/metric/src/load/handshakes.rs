//! Results of TLS handshakes.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

/// A part of what a handshake agrees on.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HandshakePart {
    /// The cipher suite.
    Suite,
    /// The group of the key exchange.
    Group,
    /// The version of TLS.
    Version,
}

/// Number of handshakes by the name of their result. There are too many names for
/// cells and few handshakes: a lock that only its worker and a reader take is cheap
/// beside a handshake.
#[derive(Debug, Default)]
pub struct HandshakeTally(Mutex<BTreeMap<(HandshakePart, &'static str), u64>>);

impl HandshakeTally {
    /// One more handshake.
    pub fn add(&self, version: &'static str, suite: &'static str, group: Option<&'static str>) {
        let mut counts = self.locked();
        let parts = [
            Some((HandshakePart::Version, version)),
            Some((HandshakePart::Suite, suite)),
            group.map(|group| (HandshakePart::Group, group)),
        ];
        for part in parts.into_iter().flatten() {
            *counts.entry(part).or_default() += 1;
        }
    }

    /// Returns the counts so far.
    #[must_use]
    pub fn read(&self) -> BTreeMap<(HandshakePart, &'static str), u64> {
        self.locked().clone()
    }

    /// Returns the number of handshakes.
    #[must_use]
    pub fn total(&self) -> u64 {
        let counts = self.locked();
        let versions = counts
            .iter()
            .filter(|((part, _), _)| *part == HandshakePart::Version);
        versions.map(|(_, count)| count).sum()
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<(HandshakePart, &'static str), u64>> {
        // Counts are right after every single step.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handshake_counts_once_for_each_part() {
        let tally = HandshakeTally::default();
        tally.add("TLSv1.3", "a", Some("X25519"));
        tally.add("TLSv1.2", "a", None);
        assert_eq!(tally.total(), 2);
        let counts = tally.read();
        assert_eq!(counts[&(HandshakePart::Suite, "a")], 2);
        assert_eq!(counts[&(HandshakePart::Group, "X25519")], 1);
        assert_eq!(counts.len(), 4);
    }
}
