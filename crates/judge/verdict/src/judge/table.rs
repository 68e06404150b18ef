//! Runs by stage, pair and variant.

use std::collections::BTreeMap;

use stillwell_capture::RunStage;
use stillwell_plan::ExperimentPlan;
use stillwell_plan::stopping::{DesignPlan, WarmupPlan};
use stillwell_units::Nanos;

use crate::run_warning::RunWarning;
use crate::summary::{RunSummary, TARGET_CPUS};

/// The runs of one experiment by stage, pair and variant.
#[derive(Debug)]
pub(super) struct RunTable<'a> {
    rows: BTreeMap<(RunStage, u32, usize), Row<'a>>,
    /// In the order of the plan.
    variants: Vec<&'a str>,
    /// Summary that every run must have, where it was measured.
    warmup: Option<Nanos>,
}

/// A run in its place.
#[derive(Debug)]
pub(super) struct Row<'a> {
    pub(super) run: &'a RunSummary,
    /// Fault of its pair.
    pub(super) pair_warnings: Vec<RunWarning>,
}

/// Reason why two runs are no pair: their environments differ.
pub(crate) fn pair_warnings(
    design: DesignPlan,
    baseline: &RunSummary,
    right: &RunSummary,
) -> Vec<RunWarning> {
    // What runs side by side has CPUs of its own.
    let may_differ = |fact: &str| fact == TARGET_CPUS && design == DesignPlan::Duet;
    differences(&baseline.environment, &right.environment)
        .into_iter()
        .filter(|(fact, ..)| !may_differ(fact))
        .map(|(fact, there, here)| RunWarning::EnvironmentDiffers {
            fact: fact.to_owned(),
            baseline: there.to_owned(),
            here: here.to_owned(),
        })
        .collect()
}

impl<'a> RunTable<'a> {
    pub(super) fn of(plan: &'a ExperimentPlan, runs: &'a [RunSummary]) -> Self {
        let variants: Vec<&str> = plan
            .variants
            .iter()
            .map(|item| item.name.as_str())
            .collect();
        let mut rows: BTreeMap<(RunStage, u32, usize), Row<'_>> = BTreeMap::new();
        for run in runs {
            let Some(identity) = &run.identity else {
                continue;
            };
            let Some(variant) = variants.iter().position(|item| *item == identity.variant) else {
                continue;
            };
            if identity.experiment != plan.name || identity.pair == 0 {
                continue;
            }
            let place = rows
                .entry((identity.stage, identity.pair, variant))
                .or_insert_with(|| Row {
                    run,
                    pair_warnings: Vec::new(),
                });
            // By validity and name, never by value or order of arrival.
            if (run.warnings.is_empty(), run.run) > (place.run.warnings.is_empty(), place.run.run) {
                place.run = run;
            }
        }
        let mut table = Self {
            rows,
            variants,
            warmup: None,
        };
        table.compare_environments(plan);
        table.warmup = match plan.warmup {
            WarmupPlan::Stated => None,
            WarmupPlan::Measured => Some(table.common_warmup(plan)),
        };
        table
    }

    fn compare_environments(&mut self, plan: &ExperimentPlan) {
        let places: Vec<(RunStage, u32, usize)> = self.rows.keys().copied().collect();
        for place in places {
            let (stage, pair, variant) = place;
            let Some(baseline) = self.rows.get(&(stage, pair, 0)).map(|row| row.run) else {
                continue;
            };
            let Some(row) = self.rows.get_mut(&place).filter(|_| variant > 0) else {
                continue;
            };
            row.pair_warnings = pair_warnings(plan.design, baseline, row.run);
        }
    }

    /// The longest warm-up found in the first two whole pairs, the same for all
    /// runs; where one took half of the load or more, that. Whether a run is
    /// unreliable has no say in it, since that depends on the warm-up.
    fn common_warmup(&self, plan: &ExperimentPlan) -> Nanos {
        let phases = &plan.run_plan.phases;
        let (stated, half) = (phases.warmup, Nanos::new(phases.measure.as_u64() / 2));
        let longest = Nanos::new(stated.as_u64().saturating_add(half.as_u64()));
        let pairs = self.pairs_of(RunStage::Search).into_iter();
        let whole = pairs.filter_map(|pair| {
            let runs = plan.variants.iter();
            let runs = runs.map(|variant| self.run(RunStage::Search, pair, &variant.name));
            runs.collect::<Option<Vec<&RunSummary>>>()
                .filter(|runs| runs.iter().all(|run| run.outcome.is_completed()))
        });
        let first: Vec<Vec<&RunSummary>> = whole.take(2).collect();
        if first.len() < 2 {
            return stated;
        }
        let runs = first.iter().flatten();
        let result = runs.filter_map(|run| run.figures.warmup.as_ref());
        let cuts = result.map(|result| result.cut.unwrap_or(longest));
        cuts.fold(stated, Ord::max).min(longest)
    }

    /// The warm-up with which every run has to be summed up.
    pub(super) const fn warmup(&self) -> Option<Nanos> {
        self.warmup
    }

    /// All of them, by stage, pair and variant.
    pub(super) fn iter(&self) -> impl Iterator<Item = (RunStage, u32, &'a str, &Row<'a>)> {
        let all = self.rows.iter();
        all.map(|((stage, pair, variant), row)| (*stage, *pair, self.variants[*variant], row))
    }

    /// The numbers of the pairs of this stage of which a run exists, rising.
    pub(super) fn pairs_of(&self, stage: RunStage) -> Vec<u32> {
        let item = self.rows.keys().filter(|(item, ..)| *item == stage);
        let mut pairs: Vec<u32> = item.map(|(_, pair, _)| *pair).collect();
        pairs.dedup();
        pairs
    }

    pub(super) fn row(&self, stage: RunStage, pair: u32, variant: &str) -> Option<&Row<'a>> {
        let variant = self.variants.iter().position(|item| *item == variant)?;
        self.rows.get(&(stage, pair, variant))
    }

    /// The run of `variant` in `pair`.
    pub(super) fn run(&self, stage: RunStage, pair: u32, variant: &str) -> Option<&'a RunSummary> {
        Some(self.row(stage, pair, variant)?.run)
    }
}

/// Facts that the two have differently, by name; one that only one of them has
/// is `absent` in the other.
fn differences<'e>(
    left: &'e BTreeMap<String, String>,
    right: &'e BTreeMap<String, String>,
) -> Vec<(&'e str, &'e str, &'e str)> {
    const ABSENT: &str = "absent";
    // A summary of an older version says nothing of it.
    if left.is_empty() || right.is_empty() {
        return Vec::new();
    }
    let text = |facts: &'e BTreeMap<String, String>, fact: &str| -> &'e str {
        facts.get(fact).map_or(ABSENT, String::as_str)
    };
    let mut facts: Vec<&str> = left
        .keys()
        .chain(right.keys())
        .map(String::as_str)
        .collect();
    facts.sort_unstable();
    facts.dedup();
    let reported = facts.into_iter();
    reported
        .map(|fact| (fact, text(left, fact), text(right, fact)))
        .filter(|(_, left, right)| left != right)
        .collect()
}
