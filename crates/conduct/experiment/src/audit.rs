//! The course of an experiment: its looks, pairs and orders.

use std::collections::BTreeMap;

use serde::Serialize;
use stillwell_capture::RunStage;
use stillwell_plan::ExperimentPlan;
use stillwell_units::Nanos;
use stillwell_verdict::{Change, GoalVerdict, NextStep, RunSummary, Standing, Verdict, standing};

/// The course of an experiment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Audit {
    /// The state at each look, in order.
    pub(crate) looks: Vec<LookRecord>,
    /// Number of valid pairs for which the next look waits. Before the first look there are figures
    /// too, but no verdict.
    awaited: Option<u32>,
    /// Time for which each pair of this session waited until the machine was quiet.
    pub(crate) waits: BTreeMap<(RunStage, u32), Nanos>,
}

/// State of one comparison at one look.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct LookRecord {
    stage: RunStage,
    /// Valid pairs behind the figures.
    pairs: u32,
    comparison: String,
    /// On the goal's scale; in the search with the interval that holds jointly
    /// over all looks.
    estimate: Option<f64>,
    lower: Option<f64>,
    upper: Option<f64>,
    /// The verdict of an experiment that ends at this look.
    verdict: &'static str,
    /// True if fresh pairs confirmed what was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    confirmed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p_value: Option<f64>,
}

/// One pair that was run.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub(crate) struct PairRecord {
    stage: RunStage,
    pair: u32,
    /// The variants that have a run, in the order in which they ran.
    order: Vec<String>,
    /// Time for which it waited until the machine was quiet; left out if it did not, and
    /// after a resume for the pairs of earlier sessions.
    #[serde(rename = "waited_ns", skip_serializing_if = "Option::is_none")]
    waited: Option<Nanos>,
}

impl Audit {
    /// Takes down what is known now; whether there is anything new in it.
    pub(crate) fn note(&mut self, standing: &Standing) -> bool {
        let before = self.looks.len();
        let verdict = &standing.verdict;
        let primaries = || verdict.goals.iter().filter(|goal| goal.primary);
        for goal in primaries() {
            let is_look = self.awaited.is_some_and(|awaited| goal.pairs >= awaited);
            let known = self.is_known(RunStage::Search, &goal.comparison, Some(goal.pairs));
            if is_look && !known {
                self.looks.push(LookRecord::of_search(goal));
            }
        }
        for goal in primaries() {
            if !self.is_known(RunStage::Confirm, &goal.comparison, None) {
                self.looks.extend(LookRecord::of_confirmation(goal));
            }
        }
        if let NextStep::Run {
            stage: RunStage::Search,
            valid_pairs_wanted,
            ..
        } = standing.next
        {
            self.awaited = Some(valid_pairs_wanted);
        }
        self.looks.len() > before
    }

    fn is_known(&self, stage: RunStage, comparison: &str, pairs: Option<u32>) -> bool {
        self.looks.iter().any(|look| {
            look.stage == stage
                && look.comparison == comparison
                && pairs.is_none_or(|pairs| look.pairs == pairs)
        })
    }

    /// Takes down what was known at the looks of an earlier session: what its
    /// pairs say, one after the other.
    pub(crate) fn replay(&mut self, plan: &ExperimentPlan, runs: &[RunSummary]) {
        let mut runs = runs.to_vec();
        runs.sort_by_key(place);
        let ends = (1..=runs.len()).filter(|end| {
            let next = runs.get(*end);
            next.is_none_or(|next| place(next) != place(&runs[end - 1]))
        });
        self.note(&standing(plan, &[]));
        for end in ends {
            self.note(&standing(plan, &runs[..end]));
        }
    }
}

impl LookRecord {
    fn of_search(goal: &GoalVerdict) -> Self {
        Self {
            pairs: goal.pairs,
            ..Self::new(goal, RunStage::Search, goal.search())
        }
    }

    fn of_confirmation(goal: &GoalVerdict) -> Option<Self> {
        let fresh = goal.confirmation.as_ref()?;
        let confirmed = fresh.confirmed?;
        Some(Self {
            pairs: fresh.pairs_wanted.min(fresh.pairs),
            confirmed: Some(confirmed),
            p_value: fresh.p_value,
            ..Self::new(goal, RunStage::Confirm, (goal.verdict, fresh.change))
        })
    }

    fn new(
        goal: &GoalVerdict,
        stage: RunStage,
        (verdict, change): (Verdict, Option<Change>),
    ) -> Self {
        Self {
            stage,
            pairs: 0,
            comparison: goal.comparison.clone(),
            estimate: change.map(|change| change.estimate),
            lower: change.map(|change| change.lower),
            upper: change.map(|change| change.upper),
            verdict: verdict.name(),
            confirmed: None,
            p_value: None,
        }
    }
}

/// The pairs of these runs, in the order in which they were run.
pub(crate) fn pairs_of(runs: &[RunSummary], audit: &Audit) -> Vec<PairRecord> {
    let mut identities: Vec<_> = runs
        .iter()
        .filter_map(|run| run.identity.as_ref())
        .collect();
    identities.sort_by_key(|identity| (identity.stage, identity.pair, identity.position));
    let mut pairs: Vec<PairRecord> = Vec::new();
    for identity in identities {
        let variant = identity.variant.clone();
        match pairs.last_mut() {
            Some(pair) if (pair.stage, pair.pair) == (identity.stage, identity.pair) => {
                pair.order.push(variant);
            }
            _ => pairs.push(PairRecord {
                stage: identity.stage,
                pair: identity.pair,
                order: vec![variant],
                waited: audit.waits.get(&(identity.stage, identity.pair)).copied(),
            }),
        }
    }
    pairs
}

/// The pair that a run is of.
fn place(run: &RunSummary) -> (RunStage, u32) {
    let identity = run.identity.as_ref();
    identity.map_or((RunStage::Search, 0), |identity| {
        (identity.stage, identity.pair)
    })
}
