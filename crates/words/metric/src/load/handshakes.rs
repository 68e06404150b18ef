//! Results of TLS handshakes.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::cell::Cell;

/// A part of what a handshake agrees on.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
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

impl HandshakePart {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Suite, Self::Group, Self::Signature, Self::Version];

    /// Start of the names of its counters.
    const fn prefix(self) -> &'static str {
        match self {
            Self::Suite => "ssl.ciphers.",
            Self::Group => "ssl.curves.",
            Self::Signature => "ssl.sigalgs.",
            Self::Version => "ssl.versions.",
        }
    }

    /// Names of all results that the TLS library can agree on.
    #[must_use]
    pub const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Suite => &[
                "TLS_AES_128_GCM_SHA256",
                "TLS_AES_256_GCM_SHA384",
                "TLS_CHACHA20_POLY1305_SHA256",
                "ECDHE-ECDSA-AES128-GCM-SHA256",
                "ECDHE-ECDSA-AES256-GCM-SHA384",
                "ECDHE-ECDSA-CHACHA20-POLY1305",
                "ECDHE-RSA-AES128-GCM-SHA256",
                "ECDHE-RSA-AES256-GCM-SHA384",
                "ECDHE-RSA-CHACHA20-POLY1305",
                "unknown",
            ],
            Self::Group => &[
                "X25519",
                "secp256r1",
                "secp384r1",
                "X25519MLKEM768",
                "secp256r1MLKEM768",
                "MLKEM768",
                "MLKEM1024",
            ],
            Self::Signature => &[
                "rsa_pkcs1_sha256",
                "rsa_pkcs1_sha384",
                "rsa_pkcs1_sha512",
                "ecdsa_secp256r1_sha256",
                "ecdsa_secp384r1_sha384",
                "ecdsa_secp521r1_sha512",
                "rsa_pss_rsae_sha256",
                "rsa_pss_rsae_sha384",
                "rsa_pss_rsae_sha512",
                "ed25519",
                "ed448",
            ],
            Self::Version => &["TLSv1.2", "TLSv1.3", "unknown"],
        }
    }

    /// Returns the counter of handshakes that agreed on `name`, by BoringSSL's name of it.
    #[must_use]
    pub fn counter(self, name: &str) -> String {
        let name = match name {
            "secp256r1" => "P-256",
            "secp384r1" => "P-384",
            other => other,
        };
        format!("{}{name}", self.prefix())
    }

    /// Returns the part and the name of a counter.
    pub(super) fn of_counter(text: &str) -> Option<(Self, &'static str)> {
        let mut parts = Self::ALL.into_iter();
        let part = parts.find(|part| text.starts_with(part.prefix()))?;
        let mut names = part.names().iter();
        let name = names.find(|name| part.counter(name) == text)?;
        Some((part, name))
    }
}

/// Number of handshakes by the name of their result. Predicates read these counts for each
/// request, so they take no lock for a name of [`HandshakePart::names`].
#[derive(Debug)]
pub struct HandshakeTally {
    /// Handshakes that have a version: all.
    all: Cell,
    /// By part, in the order of [`HandshakePart::ALL`], and by name.
    known: [Box<[Cell]>; 4],
    /// Those with another name. Only their worker and a reader take the lock.
    unlisted: Mutex<BTreeMap<(HandshakePart, &'static str), u64>>,
}

impl Default for HandshakeTally {
    fn default() -> Self {
        let cells = |part: HandshakePart| part.names().iter().map(|_| Cell::default()).collect();
        Self {
            all: Cell::default(),
            known: HandshakePart::ALL.map(cells),
            unlisted: Mutex::default(),
        }
    }
}

impl HandshakeTally {
    /// One more handshake, with the names of its parts; `None` for a part that it did not have.
    /// Only the owning worker may add one.
    pub fn add(&self, parts: [(HandshakePart, Option<&'static str>); 4]) {
        for (part, name) in parts {
            let Some(name) = name else { continue };
            self.all.add(u64::from(part == HandshakePart::Version));
            match self.cell(part, name) {
                Some(cell) => cell.add(1),
                None => *self.locked().entry((part, name)).or_default() += 1,
            }
        }
    }

    /// Returns the counts so far.
    #[must_use]
    pub fn read(&self) -> BTreeMap<(HandshakePart, &'static str), u64> {
        let mut counts = self.locked().clone();
        for (part, cells) in HandshakePart::ALL.into_iter().zip(&self.known) {
            let named = part.names().iter().zip(cells.iter());
            let named = named.map(|(name, cell)| ((part, *name), cell.total()));
            counts.extend(named.filter(|(_, count)| *count > 0));
        }
        counts
    }

    /// Returns the number of handshakes that agreed on `name`.
    #[must_use]
    pub fn of(&self, part: HandshakePart, name: &str) -> u64 {
        if let Some(cell) = self.cell(part, name) {
            return cell.total();
        }
        let unlisted = self.locked();
        let mut counts = unlisted.iter();
        let counted = counts.find(|((of, known), _)| *of == part && *known == name);
        counted.map_or(0, |(_, count)| *count)
    }

    /// Returns the number of handshakes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.all.total()
    }

    fn cell(&self, part: HandshakePart, name: &str) -> Option<&Cell> {
        let place = part.names().iter().position(|known| *known == name)?;
        self.known[part as usize].get(place)
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<(HandshakePart, &'static str), u64>> {
        // Counts are right after every single step.
        self.unlisted.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// A predicate on them took the lock for each request.
    #[test]
    fn counts_of_every_known_name_are_read_without_the_lock() {
        let tally = HandshakeTally::default();
        for (part, name) in all_names() {
            tally.add(HandshakePart::ALL.map(|kind| (kind, (kind == part).then_some(name))));
        }
        let locked = tally.locked();
        for (part, name) in all_names() {
            assert_eq!(tally.of(part, name), 1, "{part:?}: {name}");
        }
        let versions = HandshakePart::Version.names().len() as u64;
        assert_eq!(tally.total(), versions);
        drop(locked);
        assert_eq!(tally.read(), all_names().map(|named| (named, 1)).collect());
    }

    fn all_names() -> impl Iterator<Item = (HandshakePart, &'static str)> {
        let parts = HandshakePart::ALL.into_iter();
        parts.flat_map(|part| part.names().iter().map(move |name| (part, *name)))
    }
}
