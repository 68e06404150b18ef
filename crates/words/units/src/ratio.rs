//! Shares of one.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::ParseError;
use crate::number::split_number;

/// The smallest relative change that matters: above 0 and below 1.
///
/// A tolerance is written as percent (`3%`) and kept as a share (`0.03`).
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, PartialOrd, Serialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Tolerance(f64);

impl Tolerance {
    /// 5 %.
    pub const DEFAULT: Self = Self(0.05);

    /// `share` of one, above 0 and below 1.
    ///
    /// # Errors
    /// [`ParseError::Range`] otherwise.
    pub fn try_new(share: f64) -> Result<Self, ParseError> {
        if share > 0.0 && share < 1.0 {
            Ok(Self(share))
        } else {
            Err(ParseError::Range {
                input: format!("{}%", share * 100.0),
                kind: "tolerance",
                bounds: "above 0% and below 100%",
            })
        }
    }

    /// As a share of one.
    #[must_use]
    pub const fn share(self) -> f64 {
        self.0
    }
}

impl From<Tolerance> for f64 {
    fn from(tolerance: Tolerance) -> Self {
        tolerance.0
    }
}

impl TryFrom<f64> for Tolerance {
    type Error = ParseError;

    fn try_from(share: f64) -> Result<Self, ParseError> {
        Self::try_new(share)
    }
}

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = (self.0 * 1e6).round() / 1e4;
        write!(f, "{percent}%")
    }
}

impl FromStr for Tolerance {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match split_number(text) {
            Some((number, "%")) => Self::try_new(number / 100.0),
            Some((_, "")) => Err(ParseError::UnitMissing {
                input: text.trim().to_owned(),
                kind: "tolerance",
                example: "%",
            }),
            _ => Err(ParseError::Shape {
                input: text.to_owned(),
                kind: "tolerance",
                accepted: "a percentage, such as `3%` or `0.5%`",
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerances_are_percentages() {
        assert!(("3%".parse::<Tolerance>().unwrap().share() - 0.03).abs() < 1e-12);
        assert_eq!("0.5 %".parse::<Tolerance>().unwrap().to_string(), "0.5%");
        for text in ["3", "0%", "100%", "x%", ""] {
            assert!(text.parse::<Tolerance>().is_err(), "{text}");
        }
    }
}
