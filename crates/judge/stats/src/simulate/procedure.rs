//! The whole procedure: search, then confirmation on fresh pairs.

use crate::level::Level;
use crate::looks::{Looks, LooksError};
use crate::paired::{LogRatios, PairedError};
use crate::simulate::rule::{Ending, SimulatedRule};

/// The first look of a confirmation.
const FIRST_FRESH_LOOK: u32 = 6;

/// An experiment with its confirmation, as `run` makes it by default.
#[derive(Clone, Debug, PartialEq)]
pub struct WholeProcedure {
    search: SimulatedRule,
    fresh: SimulatedRule,
}

/// End of a whole simulated experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WholeEnding {
    /// Verdict after the confirmation, if there was one.
    pub ending: Ending,
    /// Verdict of the search.
    pub searched: Ending,
    /// Pairs of both.
    pub pairs: u32,
    /// True if the intervals of all looks of the search would hold the truth.
    pub always_covered: bool,
}

impl WholeProcedure {
    /// Looks after 4, 6 … `max_pairs` pairs, and confirmation after 6, 8 … as many.
    ///
    /// # Errors
    /// [`LooksError`] for fewer than 6 or more than 10 000 pairs.
    pub fn sequential(max_pairs: u32, tolerance: f64) -> Result<Self, LooksError> {
        let mut at: Vec<u32> = (FIRST_FRESH_LOOK..max_pairs).step_by(2).collect();
        at.push(max_pairs);
        let looks = Looks::group_sequential(&at, Level::NINETY_FIVE)?;
        Ok(Self {
            search: SimulatedRule::sequential(max_pairs, tolerance)?,
            fresh: SimulatedRule::at(looks, at, tolerance),
        })
    }

    /// Ends an experiment whose search and confirmation have these log ratios, where the
    /// true relative change is `truth`.
    ///
    /// # Errors
    /// [`PairedError`] where there are fewer pairs than the last look needs.
    pub fn follow(
        &self,
        [search, fresh]: &[LogRatios; 2],
        truth: f64,
    ) -> Result<WholeEnding, PairedError> {
        let searched = self.search.follow(search, truth)?;
        let mut whole = WholeEnding {
            ending: searched.ending,
            searched: searched.ending,
            pairs: searched.pairs,
            always_covered: searched.always_covered,
        };
        if !matches!(searched.ending, Ending::Regressed | Ending::Improved) {
            return Ok(whole);
        }
        let fresh = self.fresh.follow(fresh, truth)?;
        whole.pairs += fresh.pairs;
        let is_same_way = (fresh.estimate > 0.0) == (searched.estimate > 0.0);
        whole.ending = match fresh.ending {
            ending if ending == searched.ending => ending,
            Ending::Equivalent => Ending::Equivalent,
            Ending::Different if is_same_way => Ending::Different,
            _ => Ending::Inconclusive,
        };
        Ok(whole)
    }
}
