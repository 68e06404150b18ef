//! Verdict on one goal of an experiment.

use stillwell_plan::GoalMetric;
use stillwell_plan::goal::{Direction, Scale};
use stillwell_units::{Nanos, Tolerance};

use crate::deltas::Spread;
use crate::rule::{Change, Verdict};

/// Verdict on one goal of an experiment.
///
/// All changes are on the goal's [`Scale`]: comparison / baseline − 1, or
/// comparison − baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct GoalVerdict {
    /// Metric that is compared.
    pub metric: GoalMetric,
    /// Variant that is compared with the baseline.
    pub comparison: String,
    /// True if it decides over the experiment.
    pub primary: bool,
    /// Better direction.
    pub direction: Direction,
    /// By what the two are compared.
    pub scale: Scale,
    /// Smallest change that matters.
    pub tolerance: Tolerance,
    /// The tolerance as a time, if it was given as one.
    pub tolerance_time: Option<Nanos>,
    /// The answer. `different` and `inconclusive` are final only where the
    /// experiment has stopped.
    pub verdict: Verdict,
    /// Mean of the baseline's runs in the pairs used, in the goal's base unit:
    /// geometric where compared by ratio, else arithmetic.
    pub baseline_mean: Option<f64>,
    /// The same of the comparison's runs.
    pub comparison_mean: Option<f64>,
    /// The change, with the interval that holds jointly over all looks: that of the
    /// fresh pairs from their first look on, else that of the search. Before the first look, from two valid pairs on, with the
    /// plain interval that has no verdict.
    pub change: Option<Change>,
    /// The mean over its standard error, of log ratios or differences; infinite
    /// where all pairs agree exactly.
    pub t_statistic: Option<f64>,
    /// Standard deviation of the pairs' log ratios or differences.
    pub pair_deviation: Option<f64>,
    /// Pairs of the verdict: those of the latest look.
    pub pairs: u32,
    /// Valid pairs of the search: those beyond `pairs` wait for the next look.
    pub pairs_valid: u32,
    /// The change of each valid pair of the search, in the order of pair numbers;
    /// the first `pairs` of them are used.
    pub pair_changes: Vec<f64>,
    /// The same test without assuming a distribution.
    pub sensitivity: Option<Sensitivity>,
    /// Result of fresh pairs, where the search found a change and the plan wants
    /// it confirmed.
    pub confirmation: Option<Confirmation>,
    /// The smallest change that the pairs of `change` would have distinguished from none in about
    /// four of five experiments.
    pub smallest_visible: Option<f64>,
    /// Pairs of the search after which a change as large as the tolerance is visible at this noise: a look of the
    /// plan, or more pairs than its last look; at least [`PAIRS_MIN`](crate::limits::PAIRS_MIN). `None` if unknown or
    /// beyond reach.
    pub pairs_needed: Option<u32>,
    /// Reason why it is invalid, inconclusive or no longer regressed, where noise is not
    /// the reason.
    pub reason: Option<String>,
    /// Notes on the number.
    pub note: Option<String>,
    /// Estimate from all pairs, where too few are valid for a verdict.
    pub unreliable: Option<UnreliableEstimate>,
}

/// Estimate from all pairs with two numbers, those with warnings included. It is shown
/// and never judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnreliableEstimate {
    /// The change with its plain 95 % interval; `None` with one pair.
    pub change: Option<Change>,
    /// Mean of the baseline's runs, in the goal's base unit.
    pub baseline_mean: Option<f64>,
    /// The same of the comparison's runs.
    pub comparison_mean: Option<f64>,
    /// Number of pairs.
    pub pairs: u32,
}

/// The rarest fault, as a share of runs, that so many pairs would have shown at least once in
/// 95 of 100 experiments: 1 − 0.05^(1/n).
#[must_use]
pub fn rarest_visible_fault(pairs: u32) -> f64 {
    1.0 - 0.05_f64.powf(1.0 / f64::from(pairs.max(1)))
}

impl GoalVerdict {
    /// Verdict and change of the search, before any confirmation. A change is `inconclusive` while another variant is searched.
    #[must_use]
    pub fn search(&self) -> (Verdict, Option<Change>) {
        self.confirmation
            .as_ref()
            .map_or((self.verdict, self.change), |fresh| {
                (fresh.searched, fresh.search_change)
            })
    }

    /// All valid pairs of the present stage and their change, with the plain 95 % interval: for
    /// progress, and no verdict. `None` for fewer than two pairs.
    #[must_use]
    pub fn so_far(&self) -> Option<(u32, Change)> {
        let fresh = self.confirmation.as_ref();
        let changes = fresh.map_or(&self.pair_changes, |fresh| &fresh.pair_changes);
        let deltas = changes.iter().map(|change| match self.scale {
            Scale::Ratio => change.ln_1p(),
            Scale::Difference => *change,
        });
        let spread = Spread::of(self.scale, &deltas.collect::<Vec<f64>>())?;
        Some((spread.pairs, spread.change(spread.plain_critical()?)))
    }

    /// Number of pairs of the change, the means and the smallest visible change: the fresh ones from their first
    /// look on, else those of the search.
    #[must_use]
    pub fn headline_pairs(&self) -> u32 {
        self.fresh_looked().unwrap_or(self.pairs)
    }

    /// Number of fresh pairs of their latest look; `None` before the first look.
    #[must_use]
    pub fn fresh_looked(&self) -> Option<u32> {
        self.confirmation.as_ref()?.looked
    }
}

/// The pairs used, by their ranks alone. Reported beside the verdict, never part of
/// it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sensitivity {
    /// p of Wilcoxon's signed-rank test, two-sided.
    pub wilcoxon_p: f64,
    /// The Hodges–Lehmann estimate, on the goal's scale.
    pub hodges_lehmann: f64,
    /// True if it and a t test of the same pairs disagree, at 5 %, about whether
    /// there is a change: the answer is sensitive to outlying pairs.
    pub disagrees: bool,
}

/// Result of fresh pairs about a change that the search found.
#[derive(Clone, Debug, PartialEq)]
pub struct Confirmation {
    /// Verdict of the search.
    pub searched: Verdict,
    /// The change in the pairs of the search, which is biased away from none.
    pub search_change: Option<Change>,
    /// Fresh valid pairs of the look at which it ended, or of the next look.
    pub pairs_wanted: u32,
    /// Fresh valid pairs of the latest look; `None` before the first one.
    pub looked: Option<u32>,
    /// Fresh valid pairs so far; only the first `pairs_wanted` count.
    pub pairs: u32,
    /// The change of each of them, in the order of pair numbers.
    pub pair_changes: Vec<f64>,
    /// The change in the fresh pairs alone, with the interval that holds jointly over
    /// their looks; before the first look with the plain 95 % interval.
    pub change: Option<Change>,
    /// The change in the pairs of the search and the fresh ones, with its plain 95 %
    /// interval.
    pub pooled: Option<Change>,
    /// Probability that fresh pairs without any change would point at least this far in
    /// the direction of the search: one-sided, as at a single look.
    pub p_value: Option<f64>,
    /// True if fresh pairs gave the search's verdict; `None` until they are decisive.
    pub confirmed: Option<bool>,
}
