//! Counts of correct and wrong verdicts of a rule.

use crate::simulate::rule::{Ending, Followed};

/// Counts over simulated experiments; every rate is a share of them, and NaN
/// where there are none.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Tally {
    experiments: u32,
    regressed: u32,
    improved: u32,
    equivalent: u32,
    different: u32,
    covered: u32,
    always_covered: u32,
    pairs: u64,
}

impl Tally {
    /// Counts one experiment.
    pub fn add(&mut self, followed: &Followed) {
        self.experiments += 1;
        match followed.ending {
            Ending::Regressed => self.regressed += 1,
            Ending::Improved => self.improved += 1,
            Ending::Equivalent => self.equivalent += 1,
            Ending::Different => self.different += 1,
            Ending::Inconclusive => {}
        }
        self.covered += u32::from(followed.covered);
        self.always_covered += u32::from(followed.always_covered);
        self.pairs += u64::from(followed.pairs);
    }

    /// Counts all that `right` counted, too.
    pub fn merge(&mut self, right: &Self) {
        self.experiments += right.experiments;
        self.regressed += right.regressed;
        self.improved += right.improved;
        self.equivalent += right.equivalent;
        self.different += right.different;
        self.covered += right.covered;
        self.always_covered += right.always_covered;
        self.pairs += right.pairs;
    }

    /// Number of experiments.
    #[must_use]
    pub const fn experiments(&self) -> u32 {
        self.experiments
    }

    /// Any interval of any look missed the truth: where nothing changed, the rate
    /// of false alarms.
    #[must_use]
    pub fn missed_at_some_look(&self) -> f64 {
        1.0 - self.share(self.always_covered)
    }

    /// The interval at the end held the truth.
    #[must_use]
    pub fn covered(&self) -> f64 {
        self.share(self.covered)
    }

    /// Ended like this.
    #[must_use]
    pub fn ended(&self, ending: Ending) -> f64 {
        let remaining = self.regressed + self.improved + self.equivalent + self.different;
        self.share(match ending {
            Ending::Regressed => self.regressed,
            Ending::Improved => self.improved,
            Ending::Equivalent => self.equivalent,
            Ending::Different => self.different,
            Ending::Inconclusive => self.experiments - remaining,
        })
    }

    /// The mean number of pairs at the end.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "fewer than 2^53 pairs are ever simulated"
    )]
    pub fn mean_pairs(&self) -> f64 {
        self.pairs as f64 / f64::from(self.experiments)
    }

    /// The standard error of a rate near `rate` from so many experiments.
    #[must_use]
    pub fn standard_error(&self, rate: f64) -> f64 {
        (rate * (1.0 - rate) / f64::from(self.experiments)).sqrt()
    }

    fn share(&self, count: u32) -> f64 {
        f64::from(count) / f64::from(self.experiments)
    }
}
