//! The decision rule of a simulated experiment.

use crate::level::Level;
use crate::looks::{Looks, LooksError};
use crate::paired::{LogRatios, PairedEffect, PairedError};

/// The earliest look, and the step to the next, of [`SimulatedRule::sequential`].
const FIRST_LOOK: u32 = 4;
const LOOK_STEP: usize = 2;

/// Fewest pairs that show that nothing changed.
const EQUIVALENT_FROM: u32 = 6;

/// When a simulated experiment looks at its pairs, and which change matters to
/// it. It stops at the first look whose verdict is certain.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedRule {
    looks: Looks,
    /// Rising, all with an interval.
    at: Vec<u32>,
    tolerance: f64,
}

/// Verdict of a simulated experiment; more is worse.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ending {
    /// Worse for certain, and by the tolerance or more.
    Regressed,
    /// Better for certain, and by the tolerance or more.
    Improved,
    /// Within the tolerance for certain.
    Equivalent,
    /// Another for certain, by less than the tolerance.
    Different,
    /// The last look was not decisive.
    Inconclusive,
}

/// Result of following a rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Followed {
    /// Verdict.
    pub ending: Ending,
    /// After how many pairs.
    pub pairs: u32,
    /// Estimated change at the end.
    pub estimate: f64,
    /// True if the interval at the end holds the truth.
    pub covered: bool,
    /// True if the intervals of all looks would have, those after the end too.
    pub always_covered: bool,
}

impl SimulatedRule {
    /// One look, with the plain 95 % interval.
    #[must_use]
    pub fn fixed(pairs: u32, tolerance: f64) -> Self {
        Self {
            looks: Looks::fixed(pairs, Level::NINETY_FIVE),
            at: vec![pairs],
            tolerance,
        }
    }

    /// These looks, all with an interval.
    pub(crate) const fn at(looks: Looks, at: Vec<u32>, tolerance: f64) -> Self {
        Self {
            looks,
            at,
            tolerance,
        }
    }

    /// Looks after 4, 6, 8 … pairs and the last, whose intervals hold together in
    /// 95 %.
    ///
    /// # Errors
    /// [`LooksError`] for fewer than 4 or more than 10 000 pairs.
    pub fn sequential(max_pairs: u32, tolerance: f64) -> Result<Self, LooksError> {
        let mut at: Vec<u32> = (FIRST_LOOK..max_pairs).step_by(LOOK_STEP).collect();
        at.push(max_pairs);
        Ok(Self {
            looks: Looks::group_sequential(&at, Level::NINETY_FIVE)?,
            at,
            tolerance,
        })
    }

    /// Looks after every pair for as long as there is one, up to `max_pairs`.
    #[must_use]
    pub fn open(max_pairs: u32, tolerance: f64) -> Self {
        let looks = Looks::open(Level::NINETY_FIVE);
        let has_interval = |pairs: &u32| looks.critical(*pairs).is_some();
        let at = (FIRST_LOOK..=max_pairs).filter(has_interval).collect();
        Self {
            looks,
            at,
            tolerance,
        }
    }

    /// Ends an experiment with these log ratios, where the true relative
    /// change is `truth`.
    ///
    /// # Errors
    /// [`PairedError`] where there are fewer pairs than the last look needs.
    pub fn follow(&self, ratios: &LogRatios, truth: f64) -> Result<Followed, PairedError> {
        let mut followed = Followed {
            ending: Ending::Inconclusive,
            pairs: 0,
            estimate: 0.0,
            covered: true,
            always_covered: true,
        };
        let mut ended = false;
        for &pairs in &self.at {
            let effect = ratios.effect_at(&self.looks, pairs)?;
            let covered = effect.relative().contains(truth);
            followed.always_covered &= covered;
            if ended {
                continue;
            }
            (followed.pairs, followed.covered) = (pairs, covered);
            followed.estimate = effect.relative().value;
            let certain = certain(&effect, self.tolerance, pairs);
            ended = certain.is_some();
            followed.ending = certain.unwrap_or_else(|| at_the_end(&effect));
        }
        Ok(followed)
    }
}

/// Verdict that is allowed at any look.
fn certain(effect: &PairedEffect, tolerance: f64, pairs: u32) -> Option<Ending> {
    let change = effect.relative();
    if change.lower > 0.0 && change.value >= tolerance {
        Some(Ending::Regressed)
    } else if change.upper < 0.0 && change.value <= -tolerance {
        Some(Ending::Improved)
    } else if pairs >= EQUIVALENT_FROM && -tolerance < change.lower && change.upper < tolerance {
        Some(Ending::Equivalent)
    } else {
        None
    }
}

/// Verdict at the last look.
fn at_the_end(effect: &PairedEffect) -> Ending {
    if effect.relative().excludes_zero() {
        Ending::Different
    } else {
        Ending::Inconclusive
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn followed(rule: &SimulatedRule, logs: &[f64], truth: f64) -> Followed {
        let pairs: Vec<_> = logs.iter().map(|log| (1.0, log.exp())).collect();
        let ratios = LogRatios::from_pairs(&pairs).unwrap();
        rule.follow(&ratios, truth).unwrap()
    }

    #[test]
    fn experiments_end_where_they_are_certain() {
        let rule = SimulatedRule::sequential(6, 0.02).unwrap();
        let up = [0.030, 0.031, 0.030, 0.031, 0.030, 0.031];
        let early = followed(&rule, &up, 0.0);
        assert_eq!((early.ending, early.pairs), (Ending::Regressed, 4));
        assert!(!early.covered && !early.always_covered);
        let down = up.map(|log| -log);
        assert_eq!(followed(&rule, &down, -0.03).ending, Ending::Improved);
        let level = [0.001, -0.001, 0.002, -0.002, 0.0, 0.0];
        assert_eq!(followed(&rule, &level, 0.0).ending, Ending::Equivalent);
        let wild = [0.3, -0.3, 0.2, -0.2, 0.1, 0.0];
        let late = followed(&rule, &wild, 0.0);
        assert_eq!((late.ending, late.pairs), (Ending::Inconclusive, 6));
        assert!(late.covered && late.always_covered);
        let slight = [0.010, 0.026, 0.010, 0.024, 0.010, 0.026];
        assert_eq!(followed(&rule, &slight, 0.0).ending, Ending::Different);
    }

    #[test]
    fn an_open_rule_starts_at_its_first_interval() {
        let rule = SimulatedRule::open(8, 0.02);
        assert_eq!(rule.at, [5, 6, 7, 8]);
        let pairs = [(1.0, 1.0), (1.0, 1.1)];
        let ratios = LogRatios::from_pairs(&pairs).unwrap();
        assert!(rule.follow(&ratios, 0.0).is_err());
    }
}
