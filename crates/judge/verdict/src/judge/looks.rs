//! When an experiment is looked at.

use std::cell::OnceCell;

use stillwell_plan::StoppingPlan;
use stillwell_stats::{Level, Looks};

use crate::limits;

/// The looks of a plan and their intervals.
#[derive(Debug)]
pub(crate) struct LookPlan {
    stopping: StoppingPlan,
    looks: Looks,
    /// Computed when the first confirmation needs it.
    fresh: OnceCell<Looks>,
}

impl LookPlan {
    pub(super) fn of(stopping: StoppingPlan) -> Self {
        Self::at(stopping, Level::NINETY_FIVE)
    }

    /// With intervals that all hold together at this level.
    pub(crate) fn at(stopping: StoppingPlan, level: Level) -> Self {
        let last = stopping.max_pairs();
        let looks = match stopping {
            StoppingPlan::Sequential { .. } => Looks::group_sequential(&stopping.looks(), level)
                .unwrap_or_else(|_| Looks::fixed(last, level)),
            StoppingPlan::Fixed { pairs } => Looks::fixed(pairs, level),
            StoppingPlan::Open { .. } => Looks::open(level),
        };
        Self {
            stopping,
            looks,
            fresh: OnceCell::new(),
        }
    }

    /// The latest look that so many valid pairs have reached; none before
    /// [`limits::PAIRS_MIN`].
    pub(super) fn reached(&self, valid: u32) -> Option<u32> {
        let look = self.looks.last_at_most(valid.min(self.last()));
        look.filter(|look| *look >= limits::PAIRS_MIN)
    }

    /// The first look that so many valid pairs have not reached.
    pub(super) fn next(&self, valid: u32) -> Option<u32> {
        self.later(valid).next()
    }

    /// All looks that so many valid pairs have not reached.
    pub(super) fn later(&self, valid: u32) -> impl Iterator<Item = u32> {
        let looks = self.stopping.looks().into_iter();
        let reported = move |look: u32| look == self.last() || self.critical(look).is_some();
        looks.filter(move |look| *look > valid && reported(*look))
    }

    pub(super) const fn last(&self) -> u32 {
        self.stopping.max_pairs()
    }

    /// Numbers of fresh pairs at which a confirmation looks.
    pub(super) fn fresh_looks(&self) -> Vec<u32> {
        self.stopping.fresh_looks()
    }

    /// Number of standard errors that the interval of so many fresh pairs reaches to
    /// each side: all intervals of a confirmation hold together.
    pub(super) fn fresh_critical(&self, look: u32) -> Option<f64> {
        let at = || match self.stopping {
            StoppingPlan::Fixed { .. } => Looks::fixed(look, Level::NINETY_FIVE),
            StoppingPlan::Sequential { .. } | StoppingPlan::Open { .. } => {
                Looks::group_sequential(&self.fresh_looks(), Level::NINETY_FIVE)
                    .unwrap_or_else(|_| Looks::fixed(look, Level::NINETY_FIVE))
            }
        };
        self.fresh.get_or_init(at).critical(look)
    }

    /// Number of standard errors that the interval at this look reaches to each side.
    pub(crate) fn critical(&self, look: u32) -> Option<f64> {
        self.looks.critical(look)
    }
}

/// Number of pairs of so many that may be discarded and repeated.
pub(super) const fn repeats_allowed(pairs: u32) -> u32 {
    pairs.div_ceil(limits::PAIRS_FOR_ONE_REPEAT)
}
