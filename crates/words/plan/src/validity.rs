//! Strictness of the limits of validity.

use serde::{Deserialize, Serialize};

/// Strictness of the limits above which a run is unreliable.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Validity {
    /// Half the limits of steal, delay and lateness.
    Strict,
    /// The limits.
    #[default]
    Normal,
    /// None: what is above a limit is reported, and its numbers count.
    Off,
}

impl Validity {
    /// Every value with its word.
    pub const WORDS: [(&str, Self); 3] = [
        ("strict", Self::Strict),
        ("normal", Self::Normal),
        ("off", Self::Off),
    ];

    /// Returns true if nothing above a limit makes a number unreliable.
    #[must_use]
    pub const fn is_off(self) -> bool {
        matches!(self, Self::Off)
    }

    /// Returns true for the limits as they are.
    #[must_use]
    pub const fn is_normal(&self) -> bool {
        matches!(self, Self::Normal)
    }

    /// Returns the word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Normal => "normal",
            Self::Off => "off",
        }
    }

    /// Returns the factor of the limits of steal, delay and lateness.
    #[must_use]
    pub const fn limit_factor(self) -> f64 {
        match self {
            Self::Strict => 0.5,
            Self::Normal | Self::Off => 1.0,
        }
    }
}
