//! Runs by pair and variant.

use std::collections::BTreeMap;

use stillwell_plan::ExperimentPlan;

use crate::summary::RunSummary;

/// The runs of one experiment by pair and variant.
#[derive(Debug)]
pub(super) struct RunTable<'a> {
    runs: BTreeMap<(u32, &'a str), &'a RunSummary>,
    variants: usize,
}

impl<'a> RunTable<'a> {
    pub(super) fn of(plan: &ExperimentPlan, runs: &'a [RunSummary]) -> Self {
        let mut table: BTreeMap<(u32, &str), &RunSummary> = BTreeMap::new();
        for run in runs {
            let Some(identity) = &run.identity else {
                continue;
            };
            let known = plan.variants.iter().any(|own| own.name == identity.variant);
            if identity.experiment != plan.name || identity.pair == 0 || !known {
                continue;
            }
            let place = table
                .entry((identity.pair, identity.variant.as_str()))
                .or_insert(run);
            // By validity and name, never by value or order of arrival.
            if (run.doubts.is_empty(), run.run) > (place.doubts.is_empty(), place.run) {
                *place = run;
            }
        }
        Self {
            runs: table,
            variants: plan.variants.len(),
        }
    }

    /// All of them, by pair and variant.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &'a str, &'a RunSummary)> {
        let all = self.runs.iter();
        all.map(|((pair, variant), run)| (*pair, *variant, *run))
    }

    /// The numbers of the pairs of which a run exists.
    pub(super) fn pairs(&self) -> Vec<u32> {
        let mut pairs: Vec<u32> = self.runs.keys().map(|(pair, _)| *pair).collect();
        pairs.dedup();
        pairs
    }

    /// How many pairs have a run of every variant.
    pub(super) fn finished_pairs(&self) -> u32 {
        let pairs = self.pairs();
        let finished = pairs.iter().filter(|pair| {
            let runs = self.runs.keys().filter(|(own, _)| own == *pair);
            runs.count() == self.variants
        });
        u32::try_from(finished.count()).unwrap_or(u32::MAX)
    }

    /// The run of `variant` in `pair`.
    pub(super) fn run(&self, pair: u32, variant: &str) -> Option<&'a RunSummary> {
        let mut own = self.runs.iter();
        own.find(|((at, name), _)| *at == pair && *name == variant)
            .map(|(_, run)| *run)
    }
}
