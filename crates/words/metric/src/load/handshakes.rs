//! Results of TLS handshakes.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

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

/// Number of handshakes by the name of their result. There are too many names for
/// cells and few handshakes: a lock that only its worker and a reader take is cheap
/// beside a handshake. Predicates on these counts take it for each request.
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

    /// Returns the number of handshakes that agreed on `name`.
    #[must_use]
    pub fn of(&self, part: HandshakePart, name: &str) -> u64 {
        let counts = self.locked();
        let mut counts = counts.iter();
        let counted = counts.find(|((of, known), _)| *of == part && *known == name);
        counted.map_or(0, |(_, count)| *count)
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
