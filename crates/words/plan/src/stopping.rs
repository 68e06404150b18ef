//! Number of pairs of an experiment, and their use of the machine.

use serde::{Deserialize, Serialize};
use stillwell_units::Nanos;

/// Fewest valid pairs that any verdict needs: with three, a t interval is 4.3
/// standard errors wide on each side, and one odd pair decides.
pub const PAIRS_MIN: u32 = 4;

/// The last look where nothing is said: with 20 pairs, a change of one and a half
/// tolerances is found for all but certain where pairs scatter by a tolerance.
pub const PAIRS_MAX_DEFAULT: u32 = 20;

/// Default maximum number of pairs of an open end: ten times
/// the last planned look.
pub const PAIRS_OPEN_DEFAULT: u32 = 200;

/// Fewest pairs of a confirmation.
pub const PAIRS_CONFIRM_MIN: u32 = 6;

/// When an experiment has seen enough.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StoppingPlan {
    /// Looks at 4, 6, 8 … pairs and at the last; stops at the first at which the
    /// verdict is certain. Intervals hold jointly over all looks.
    Sequential {
        /// The last look, at least [`PAIRS_MIN`].
        max_pairs: u32,
    },
    /// One look, after this many pairs.
    Fixed {
        /// At least one; below [`PAIRS_MIN`] there is no verdict.
        pairs: u32,
    },
    /// Looks after every pair from the fourth on, with intervals that hold
    /// however long it goes on.
    Open {
        /// The maximum.
        max_pairs: u32,
    },
}

impl Default for StoppingPlan {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl StoppingPlan {
    /// The default.
    pub const DEFAULT: Self = Self::Sequential {
        max_pairs: PAIRS_MAX_DEFAULT,
    };

    /// The most pairs that may be judged by.
    #[must_use]
    pub const fn max_pairs(self) -> u32 {
        match self {
            Self::Sequential { max_pairs } | Self::Open { max_pairs } => max_pairs,
            Self::Fixed { pairs } => pairs,
        }
    }

    /// After how many valid pairs the data are looked at first.
    #[must_use]
    pub const fn first_look(self) -> u32 {
        match self {
            Self::Sequential { max_pairs } | Self::Open { max_pairs } => {
                if max_pairs < PAIRS_MIN {
                    max_pairs
                } else {
                    PAIRS_MIN
                }
            }
            Self::Fixed { pairs } => pairs,
        }
    }

    /// Numbers of fresh valid pairs at which a confirmation looks, rising, at least one.
    #[must_use]
    pub fn fresh_looks(self) -> Vec<u32> {
        let last = match self {
            Self::Sequential { max_pairs } => max_pairs.max(PAIRS_CONFIRM_MIN),
            Self::Open { .. } => PAIRS_MAX_DEFAULT,
            Self::Fixed { pairs } => return vec![pairs.max(PAIRS_CONFIRM_MIN)],
        };
        let mut looks: Vec<u32> = (PAIRS_CONFIRM_MIN..last).step_by(2).collect();
        looks.push(last);
        looks
    }

    /// After how many valid pairs the data are looked at, rising, at least one.
    #[must_use]
    pub fn looks(self) -> Vec<u32> {
        match self {
            Self::Sequential { max_pairs } => {
                let mut looks: Vec<u32> = (PAIRS_MIN..max_pairs).step_by(2).collect();
                looks.push(max_pairs);
                looks
            }
            Self::Fixed { pairs } => vec![pairs],
            Self::Open { max_pairs } => {
                let mut looks: Vec<u32> = (PAIRS_MIN..max_pairs).collect();
                looks.push(max_pairs);
                looks
            }
        }
    }
}

/// The way in which the two variants of a pair share the machine.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DesignPlan {
    /// One after the other, in random order.
    #[default]
    Paired,
    /// Both at once, on different CPUs.
    Duet,
    /// Both run at the same time; the load is switched between them in random turns.
    Sliced {
        /// Shortest turn.
        turn_min: Nanos,
        /// Longest turn.
        turn_max: Nanos,
    },
}

impl DesignPlan {
    /// Shortest turn by default: the target of a pipeline has taken up
    /// its load long before.
    pub const TURN_MIN_DEFAULT: Nanos = Nanos::from_millis(20);
    /// Longest turn where nothing is said: a second of the host holds several,
    /// so both variants meet the same neighbours.
    pub const TURN_MAX_DEFAULT: Nanos = Nanos::from_millis(60);
    /// Turns of the lengths that hold where nothing is said.
    pub const SLICED: Self = Self::Sliced {
        turn_min: Self::TURN_MIN_DEFAULT,
        turn_max: Self::TURN_MAX_DEFAULT,
    };

    /// The word in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Paired => "paired",
            Self::Duet => "duet",
            Self::Sliced { .. } => "sliced",
        }
    }
}

/// Beginning of the measured phase of a run.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WarmupPlan {
    /// After the length that the phases state; runs that are not yet steady by
    /// then are said to be so.
    #[default]
    Stated,
    /// At the time from which the runs of the first two pairs were steady, the same
    /// for all runs; at least the length that the phases state.
    Measured,
}

#[cfg(test)]
mod tests;
