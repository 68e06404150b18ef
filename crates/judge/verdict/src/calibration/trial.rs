//! The purpose of each comparison of a calibration.

/// The name of the side that is compared with the baseline.
const ITSELF: &str = "itself";
const WORSE: &str = "worse";

/// The purpose of a comparison.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Trial {
    /// Nothing differs.
    SelfComparison,
    /// The target is made worse.
    Worse,
}

impl Trial {
    /// The trial with this number, from 1: every fourth is made worse, the second
    /// being the first of them, so a short calibration has both.
    #[must_use]
    pub const fn of(number: u32, can_slow: bool) -> Self {
        if can_slow && number % 4 == 2 {
            Self::Worse
        } else {
            Self::SelfComparison
        }
    }

    /// The name of its variant, and of the folder of its results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SelfComparison => ITSELF,
            Self::Worse => WORSE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fourth_is_made_worse_and_the_second_is_the_first() {
        let worse: Vec<u32> = (1..=12)
            .filter(|&value| Trial::of(value, true) == Trial::Worse)
            .collect();
        assert_eq!(worse, [2, 6, 10]);
        assert!((1..=12).all(|value| Trial::of(value, false) == Trial::SelfComparison));
    }
}
