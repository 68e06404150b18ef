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
    /// The scheme of the server's signature.
    Signature,
    /// The version of TLS.
    Version,
}

/// Number of handshakes by the name of their result. There are too many names for
/// cells and few handshakes: a lock that only its worker and a reader take is cheap
/// beside a handshake.
#[derive(Debug, Default)]
pub struct HandshakeTally(Mutex<BTreeMap<(HandshakePart, &'static str), u64>>);

impl HandshakeTally {
    /// One more handshake, with the names of its parts; `None` for a part that it did not have.
    pub fn add(&self, parts: [(HandshakePart, Option<&'static str>); 4]) {
        let mut counts = self.locked();
        for (part, name) in parts {
            if let Some(name) = name {
                *counts.entry((part, name)).or_default() += 1;
            }
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
        let parts = |version, group, signature| {
            [
                (HandshakePart::Version, Some(version)),
                (HandshakePart::Suite, Some("a")),
                (HandshakePart::Group, group),
                (HandshakePart::Signature, signature),
            ]
        };
        tally.add(parts("TLSv1.3", Some("X25519"), Some("ed25519")));
        tally.add(parts("TLSv1.2", None, None));
        assert_eq!(tally.total(), 2);
        let counts = tally.read();
        assert_eq!(counts[&(HandshakePart::Suite, "a")], 2);
        assert_eq!(counts[&(HandshakePart::Group, "X25519")], 1);
        assert_eq!(counts.len(), 5);
    }
}
