//! When the pairs are looked at, and how far an interval reaches at each look.

mod mixture;
mod recursion;
#[cfg(test)]
mod tests;

use crate::level::Level;
use crate::number::{count, float};
use crate::student::StudentT;
use recursion::Boundaries;

/// The first look of [`Looks::open`].
const OPEN_FROM: u32 = 4;

/// The earliest look of [`Looks::group_sequential`]: two pairs have a
/// distribution so wide that nothing is ever decided there.
const GROUP_FROM: u32 = 3;

/// The latest look of [`Looks::group_sequential`], which takes time in
/// proportion to it: some seconds for this many.
const GROUP_UNTIL: u32 = 10_000;

/// The share of the error rate that planned looks do not spend. Where a machine
/// wanders, pairs within a block of balanced order resemble each other a
/// little, which costs up to a quarter of a point of 5 % (docs/internals/calibration.md);
/// this keeps the rate at most nominal, for intervals that are 1 % wider.
const KEPT_BACK: f64 = 0.05;

/// The numbers of pairs at which the data may be looked at, and the multiplier
/// of the standard error that gives the interval at each of them.
///
/// With mean x̄ and sample standard deviation s of the first n values the
/// interval is x̄ ± [`critical`](Looks::critical)(n) · s / √n. All intervals of
/// all looks hold the truth together at the level, however the looks before were
/// used to decide whether to go on.
#[derive(Clone, Debug, PartialEq)]
pub struct Looks {
    level: Level,
    rule: Rule,
}

#[derive(Clone, Debug, PartialEq)]
enum Rule {
    /// Rising in pairs; at least one.
    Planned(Vec<Look>),
    /// Every number of pairs from [`OPEN_FROM`] on.
    Open,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Look {
    pairs: u32,
    /// Infinite where no interval of this level exists.
    critical: f64,
}

impl Looks {
    /// One look, after `pairs` pairs, with the plain t interval of this level.
    /// Fewer than two pairs have none.
    #[must_use]
    pub fn fixed(pairs: u32, level: Level) -> Self {
        let student = StudentT::try_new(float(count(pairs)) - 1.0);
        let critical = student.map_or(f64::INFINITY, |student| student.critical(level));
        Self {
            level,
            rule: Rule::Planned(vec![Look { pairs, critical }]),
        }
    }

    /// A look after each of these numbers of pairs, and none after the last.
    ///
    /// By look n of at most N pairs the share (e²ⁿᐟᴺ − 1) / (e² − 1) of 0.95 of
    /// the error rate is spent (Hwang, Shih and DeCani's spending function with
    /// γ = −2): little early, so the last interval is nearly that of a fixed
    /// number, yet enough to end early where a change is plain. The twentieth
    /// that is kept back pays for drift. The multipliers are exact for normal log
    /// ratios of unknown variance, to six digits up to 200 pairs and four up to
    /// 1000, and follow from no chance. They take 5 ms for 20 pairs, so make them
    /// once for all that is judged by the same plan.
    ///
    /// # Errors
    /// [`LooksError`] where `pairs` is empty, does not rise, or leaves 3 to
    /// 10 000.
    pub fn group_sequential(pairs: &[u32], level: Level) -> Result<Self, LooksError> {
        check_rising(pairs)?;
        let criticals =
            Boundaries::DEFAULT.criticals(pairs, (1.0 - KEPT_BACK) * level.error_rate());
        let looks = pairs.iter().zip(criticals);
        let looks = looks.map(|(&pairs, critical)| Look { pairs, critical });
        Ok(Self {
            level,
            rule: Rule::Planned(looks.collect()),
        })
    }

    /// A look after every pair from the fourth on, without end.
    ///
    /// The multiplier is that of the anytime-valid t interval: effects weighed by
    /// a normal prior as wide as the noise (Lai 1976; Wang and Ramdas,
    /// arXiv 2310.03722). At 95 % it is finite from five pairs on.
    #[must_use]
    pub const fn open(level: Level) -> Self {
        Self {
            level,
            rule: Rule::Open,
        }
    }

    /// Probability that all intervals together hold the truth.
    #[must_use]
    pub const fn level(&self) -> Level {
        self.level
    }

    /// Number of standard errors reach from the mean to each end of the interval
    /// at the look after `pairs` pairs; `None` where there is no look, or where
    /// its interval would be infinite.
    #[must_use]
    pub fn critical(&self, pairs: u32) -> Option<f64> {
        let critical = match &self.rule {
            Rule::Planned(looks) => looks.iter().find(|look| look.pairs == pairs)?.critical,
            Rule::Open if pairs >= OPEN_FROM => mixture::critical(count(pairs), self.level),
            Rule::Open => return None,
        };
        critical.is_finite().then_some(critical)
    }

    /// The latest look that has an interval and that `pairs` pairs have reached.
    #[must_use]
    pub fn last_at_most(&self, pairs: u32) -> Option<u32> {
        let reached = match &self.rule {
            Rule::Planned(looks) => {
                let reached = looks.iter().rev().find(|look| look.pairs <= pairs);
                reached?.pairs
            }
            Rule::Open => pairs,
        };
        self.critical(reached).map(|_| reached)
    }

    /// The last look; `None` where there is no end.
    #[must_use]
    pub fn last(&self) -> Option<u32> {
        match &self.rule {
            Rule::Planned(looks) => looks.last().map(|look| look.pairs),
            Rule::Open => None,
        }
    }
}

fn check_rising(pairs: &[u32]) -> Result<(), LooksError> {
    let Some(&first) = pairs.first() else {
        return Err(LooksError::None);
    };
    if let Some(steps) = pairs.windows(2).find(|steps| steps[0] >= steps[1]) {
        return Err(LooksError::NotRising {
            before: steps[0],
            after: steps[1],
        });
    }
    let last = pairs.last().copied().unwrap_or(first);
    for result in [first, last] {
        if !(GROUP_FROM..=GROUP_UNTIL).contains(&result) {
            return Err(LooksError::OutOfBounds { actual: result });
        }
    }
    Ok(())
}

/// Reason why numbers of pairs make no [`Looks`].
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum LooksError {
    /// No look at all.
    #[error("no look is given")]
    None,
    /// A look that is not after the one before it.
    #[error("a look after {after} pairs follows one after {before}")]
    NotRising {
        /// The look before.
        before: u32,
        /// The look that should be later.
        after: u32,
    },
    /// A look that is too early or too late.
    #[error("a look after {actual} pairs is not within {GROUP_FROM} and {GROUP_UNTIL}")]
    OutOfBounds {
        /// The given value.
        actual: u32,
    },
}
