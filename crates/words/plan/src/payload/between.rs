//! Ranges from which values are drawn.

use serde::{Deserialize, Serialize};

/// Values from `low` to `high`, both included.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Between<T> {
    /// The least.
    pub low: T,
    /// The most, not below `low`.
    pub high: T,
}

impl<T: Copy> Between<T> {
    /// From `low` to `high`.
    #[must_use]
    pub const fn new(low: T, high: T) -> Self {
        Self { low, high }
    }

    /// `value` only.
    #[must_use]
    pub const fn only(value: T) -> Self {
        Self {
            low: value,
            high: value,
        }
    }
}
