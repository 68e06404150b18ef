//! Causes of missing connections and answers, for readers.

use serde::{Deserialize, Serialize};

/// Cause of a missing connection or answer.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Trouble {
    /// In words that are no command's own.
    pub why: String,
    /// Setting that may help, if any: each command has its own words for it.
    pub remedy: Option<Remedy>,
}

/// Setting that may help after TLS with a peer has failed.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Remedy {
    /// TLS setting.
    pub wish: TlsWish,
    /// True if the peer is the proxy and not the target.
    pub of_proxy: bool,
}

/// Settings of TLS.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TlsWish {
    /// To trust another authority, or any.
    Trust,
    /// To take any certificate.
    Unchecked,
    /// To request another name.
    Name,
    /// To show a certificate.
    Identity,
}

impl Trouble {
    /// Returns a cause without a remedy.
    #[must_use]
    pub const fn plain(why: String) -> Self {
        Self { why, remedy: None }
    }
}
