//! Reason why pairs have no effect.

use std::fmt;

/// One half of a pair.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Half {
    /// The run of the baseline.
    Baseline,
    /// The run of the comparison.
    Comparison,
}

impl fmt::Display for Half {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Baseline => "baseline",
            Self::Comparison => "comparison",
        })
    }
}

/// Reason why pairs have no effect.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PairedError {
    /// One pair says nothing about noise.
    #[error("too few pairs: {actual}, at least 2 are needed")]
    TooFewPairs {
        /// Number of values.
        actual: usize,
    },
    /// More pairs than the t distribution is accurate for.
    #[error("{actual} pairs are too many for a t interval")]
    TooManyPairs {
        /// Number of values.
        actual: usize,
    },
    /// A value without a logarithm.
    #[error("{half} value {value} of pair {pair} is not a positive, finite number")]
    NotPositive {
        /// Number of the pair, counted from one.
        pair: usize,
        /// The half of it.
        half: Half,
        /// The actual value.
        value: f64,
    },
    /// A value that has no difference to any other.
    #[error("{half} value {value} of pair {pair} is not a finite number")]
    NotANumber {
        /// Number of the pair, counted from one.
        pair: usize,
        /// The half of it.
        half: Half,
        /// The actual value.
        value: f64,
    },
    /// Two values so far apart that their difference is not finite.
    #[error("the difference of pair {pair} is not a finite number")]
    NotFinite {
        /// Number of the pair, counted from one.
        pair: usize,
    },
    /// No interval is planned for this number of pairs.
    #[error("there is no look with an interval after {pairs} pairs")]
    NotALook {
        /// The requested number.
        pairs: u32,
    },
}
