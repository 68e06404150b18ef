//! Why something did not come, for readers.

use serde::{Deserialize, Serialize};

/// Why a connection or an answer did not come.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Trouble {
    /// In words that are no command's own.
    pub why: String,
    /// What can be asked for that may help, if anything: each command has its own words
    /// for it.
    pub remedy: Option<Remedy>,
}

/// What can be asked for after TLS with a peer has failed.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Remedy {
    /// What that is.
    pub wish: TlsWish,
    /// Whether the peer is the proxy and not the target.
    pub of_proxy: bool,
}

/// What can be asked for of TLS.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TlsWish {
    /// To trust another authority, or any.
    Trust,
    /// To take any certificate.
    Unchecked,
    /// To ask for another name.
    Name,
    /// To show a certificate.
    Identity,
}

impl Trouble {
    /// Without a remedy that a command could be asked for.
    #[must_use]
    pub const fn plain(why: String) -> Self {
        Self { why, remedy: None }
    }
}
