//! Confirmation on fresh pairs; and one budget for a suite.

use stillwell_plan::StoppingPlan;

use super::sequential::{pairs_of, search_pairs, stopping};
use super::*;
use crate::budget::{Protection, apply_error_budget};
use crate::standing::{NextStep, StopReason};
use crate::synthetic;

const WORSE: [f64; 6] = [1.06, 1.061, 1.059, 1.062, 1.058, 1.06];
const SAME: [f64; 6] = [1.001, 0.999, 1.0, 1.002, 0.998, 1.0];

fn confirming() -> ExperimentPlan {
    ExperimentPlan {
        confirm: true,
        ..stopping(StoppingPlan::Sequential { max_pairs: 20 })
    }
}

fn with_fresh(fresh: &[f64]) -> Standing {
    let mut runs = search_pairs(&WORSE[..4]);
    runs.extend(pairs_of(RunStage::Confirm, fresh));
    standing(&confirming(), &runs)
}

#[test]
fn a_regression_needs_fresh_pairs() {
    for fresh in 0..6 {
        let state = with_fresh(&WORSE[..fresh]);
        assert_eq!(
            state.next,
            NextStep::Run {
                stage: RunStage::Confirm,
                valid_pairs_wanted: 6,
                likely_pairs: Some(6),
            }
        );
        let item = state.verdict.goals[0].confirmation.clone().unwrap();
        assert_eq!((item.pairs as usize, item.confirmed), (fresh, None));
        assert_eq!(item.searched, Verdict::Regressed);
        assert_eq!(
            (state.verdict.verdict, state.verdict.gate),
            (Verdict::Inconclusive, Gate::Inconclusive)
        );
        assert_eq!(state.verdict.stopped, None);
    }
    let same = standing(&confirming(), &search_pairs(&SAME));
    assert_eq!(same.next, NextStep::Stop(StopReason::Certain));
    assert_eq!(same.verdict.goals[0].confirmation, None);
}

/// F1: a confirmation of as many pairs as a lucky search took had too little power.
#[test]
fn f1_fresh_pairs_are_looked_at_until_they_are_certain() {
    let noisy: Vec<f64> = (0..20)
        .map(|index| 1.05 + if index % 2 == 0 { 0.05 } else { -0.05 })
        .collect();
    for (fresh, expected) in [(6, 8), (7, 8), (8, 10), (10, 12)] {
        let state = with_fresh(&noisy[..fresh]);
        assert!(
            matches!(state.next, NextStep::Run { stage: RunStage::Confirm, valid_pairs_wanted, .. }
                if valid_pairs_wanted == expected),
            "{fresh}: {:?}",
            state.next
        );
    }
    let state = with_fresh(&noisy);
    assert_eq!(state.next, NextStep::Stop(StopReason::Confirmed));
    let goal = &state.verdict.goals[0];
    let item = goal.confirmation.as_ref().unwrap();
    assert!((12..20).contains(&item.pairs_wanted), "{item:?}");
    // Pairs after the decisive look change nothing.
    let early = with_fresh(&noisy[..item.pairs_wanted as usize]);
    assert_eq!(early.verdict.goals[0].change, goal.change);
}

/// F3: the search's estimate is biased, so the headline is that of the fresh pairs.
#[test]
fn f3_the_headline_is_the_estimate_of_the_fresh_pairs() {
    let state = with_fresh(&WORSE.map(|ratio| ratio - 0.01));
    assert_eq!(state.next, NextStep::Stop(StopReason::Confirmed));
    assert_eq!(state.verdict.gate, Gate::Regressed);
    let goal = &state.verdict.goals[0];
    assert_eq!(
        (goal.verdict, goal.pairs, goal.headline_pairs()),
        (Verdict::Regressed, 4, 6)
    );
    let item = goal.confirmation.as_ref().unwrap();
    assert_eq!(
        (item.confirmed, item.searched),
        (Some(true), Verdict::Regressed)
    );
    assert!(item.p_value.unwrap() < 1e-6);
    assert_eq!(goal.change, item.change);
    assert_eq!(goal.search(), (Verdict::Regressed, item.search_change));
    assert!((goal.change.unwrap().estimate - 0.05).abs() < 1e-3);
    assert!((item.search_change.unwrap().estimate - 0.0605).abs() < 1e-3);
    assert!((item.pooled.unwrap().estimate - 0.0541).abs() < 1e-3);
}

/// F4: a confirmation within the tolerance gated all the same.
#[test]
fn f4_the_whole_rule_is_applied_to_fresh_pairs() {
    let shifted = |by: f64| SAME.map(|ratio| ratio + by).to_vec();
    let halves = |by: f64| -> Vec<f64> {
        let noise = [0.012, -0.012].iter().cycle().take(20);
        noise.map(|noise| 1.0 + by + noise).collect()
    };
    for (fresh, verdict) in [
        // Surely worse, and surely within the tolerance of 3 %.
        (shifted(0.01), Verdict::Equivalent),
        (shifted(0.0), Verdict::Equivalent),
        // Surely worse, and not surely within the tolerance.
        (halves(0.026), Verdict::Different),
        (shifted(-0.05), Verdict::Inconclusive),
        (halves(-0.026), Verdict::Inconclusive),
    ] {
        let state = with_fresh(&fresh);
        assert_eq!(state.next, NextStep::Stop(StopReason::NotConfirmed));
        assert_eq!(state.verdict.verdict, verdict, "{fresh:?}");
        assert_ne!(state.verdict.gate, Gate::Regressed);
        let goal = &state.verdict.goals[0];
        let reason = goal.reason.as_deref().unwrap();
        assert!(reason.starts_with("not confirmed on new pairs"), "{reason}");
        let item = goal.confirmation.as_ref().unwrap();
        assert_eq!((item.confirmed, goal.change), (Some(false), item.change));
    }
}

#[test]
fn fresh_pairs_that_cannot_be_had_make_it_invalid() {
    let mut runs = search_pairs(&WORSE[..4]);
    let mut fresh = pairs_of(RunStage::Confirm, &WORSE[..3]);
    for run in &mut fresh {
        run.outcome = RunOutcome::TargetDied {
            phase: Phase::Measure,
        };
        run.warnings = vec![crate::RunWarning::TargetRestarted];
    }
    runs.extend(fresh);
    let state = standing(&confirming(), &runs);
    assert_eq!(state.next, NextStep::Stop(StopReason::Unfit));
    assert_eq!(state.verdict.verdict, Verdict::Invalid);
    assert_eq!(state.verdict.pairs_discarded, 3);
}

fn unconfirmed() -> ExperimentPlan {
    stopping(StoppingPlan::Fixed { pairs: 6 })
}

/// As many experiments as these, without confirmation: (ratio, noise).
fn suite(experiments: &[(f64, f64)]) -> Vec<ExperimentVerdict> {
    let plan = unconfirmed();
    let verdicts = experiments.iter().enumerate().map(|(index, item)| {
        let noise = [-1.0, 1.0, -0.8, 0.8, -1.2, 1.2];
        let ratios: Vec<f64> = noise.iter().map(|noise| item.0 + item.1 * noise).collect();
        ExperimentVerdict {
            name: format!("e{index}"),
            ..judge(&plan, &search_pairs(&ratios))
        }
    });
    verdicts.collect()
}

#[test]
fn one_experiment_needs_no_correction() {
    // p = 0.03.
    let mut left = suite(&[(1.04, 0.03)]);
    assert_eq!(left[0].verdict, Verdict::Regressed);
    let before = left.clone();
    let budget = apply_error_budget(&mut left, &[unconfirmed()]);
    assert_eq!(left, before);
    assert_eq!(budget.protection, Protection::Single);
    assert!((budget.false_alarm_bound.unwrap() - 0.025).abs() < 1e-12);
}

#[test]
fn what_does_not_survive_holm_is_only_different() {
    let mut all = suite(&[(1.04, 0.03), (1.1, 0.001), (1.0, 0.01), (0.96, 0.03)]);
    assert_eq!(all[0].verdict, Verdict::Regressed);
    let planned = vec![unconfirmed(); 4];
    let budget = apply_error_budget(&mut all, &planned);
    let words: Vec<Verdict> = all.iter().map(|item| item.verdict).collect();
    assert_eq!(
        words,
        [
            Verdict::Different,
            Verdict::Regressed,
            Verdict::Equivalent,
            // It never gates, so it is not corrected.
            Verdict::Improved
        ]
    );
    assert_eq!((all[0].gate, all[1].gate), (Gate::Held, Gate::Regressed));
    let reason = all[0].goals[0].reason.as_deref().unwrap();
    assert!(reason.contains("Holm"), "{reason}");
    assert_eq!(
        (budget.comparisons, budget.protection),
        (4, Protection::Holm)
    );
    assert_eq!(budget.demoted, ["e0"]);
    let again = all.clone();
    let same = apply_error_budget(&mut all, &planned);
    assert_eq!((all, same.demoted), (again, Vec::new()));
}

#[test]
fn holm_steps_down() {
    // Each alone survives 5 % / 1, and none but the first 5 % / 3.
    let mut all = suite(&[(1.1, 0.001), (1.1, 0.002), (1.04, 0.03)]);
    let budget = apply_error_budget(&mut all, &vec![unconfirmed(); 3]);
    assert_eq!(budget.demoted, Vec::<String>::new());
    // Two rejections leave 5 % for the third, whose p is 3 %.
    assert_eq!(all[2].verdict, Verdict::Regressed);
}

#[test]
fn confirmed_and_erratic_experiments_need_no_holm() {
    let confirmed = with_fresh(&WORSE).verdict;
    let mut erratic = suite(&[(1.04, 0.03)]).remove(0);
    erratic.erratic = true;
    let mut all = vec![confirmed; 20];
    all.push(erratic);
    let before = all.clone();
    let planned = vec![confirming(); 20];
    let budget = apply_error_budget(&mut all, &planned);
    assert_eq!(all, before);
    assert_eq!(
        (budget.comparisons, budget.confirmed, budget.protection),
        (20, 20, Protection::Confirmation)
    );
    assert!((budget.false_alarm_bound.unwrap() - 0.0125).abs() < 1e-12);
    all.push(suite(&[(1.0, 0.01)]).remove(0));
    let planned: Vec<ExperimentPlan> = planned.into_iter().chain([unconfirmed()]).collect();
    let mixed = apply_error_budget(&mut all, &planned);
    assert_eq!(mixed.protection, Protection::Mixed);
    assert!((mixed.false_alarm_bound.unwrap() - 0.0375).abs() < 1e-12);
}

/// F2: an interrupted suite of 20 gated by a change that waited for its confirmation.
#[test]
fn f2_a_change_that_waits_for_confirmation_never_gates() {
    let pending = standing(&confirming(), &search_pairs(&WORSE[..4])).verdict;
    let mut all = vec![pending];
    let budget = apply_error_budget(&mut all, &vec![confirming(); 20]);
    assert_eq!(
        (all[0].verdict, all[0].gate),
        (Verdict::Inconclusive, Gate::Inconclusive)
    );
    let reason = all[0].goals[0].reason.as_deref().unwrap();
    assert_eq!(
        reason,
        "regressed in the search, to be confirmed: 0 of 6 new pairs"
    );
    assert_eq!((budget.comparisons, budget.false_alarm_bound), (20, None));
}

/// `plan` with a third variant.
fn with_third(mut plan: ExperimentPlan) -> ExperimentPlan {
    plan.variants
        .push(VariantPlan::unchanged("third".to_owned()));
    plan
}

/// Runs of the search of the third variant that cost these ratios of the baseline.
fn of_third(ratios: &[f64]) -> Vec<RunSummary> {
    let runs = (1..).zip(ratios).map(|(pair, ratio)| {
        let place = (RunStage::Search, pair, "third");
        synthetic::run("e", place, &[(CPU, 1000.0 * ratio)])
    });
    runs.collect()
}

fn next_stage(state: &Standing) -> Option<RunStage> {
    match state.next {
        NextStep::Run { stage, .. } => Some(stage),
        NextStep::Stop(_) => None,
    }
}

/// With three variants one comparison can be certain before another.
#[test]
fn a_change_waits_until_every_comparison_is_searched() {
    let plan = with_third(confirming());
    let better = WORSE.map(|ratio| 2.0 - ratio);
    for (ratios, verdict) in [(WORSE, Verdict::Regressed), (better, Verdict::Improved)] {
        let mut runs = search_pairs(&ratios[..4]);
        runs.extend(of_third(&[1.02, 0.98, 1.021, 0.979]));
        let state = standing(&plan, &runs);
        assert_eq!(next_stage(&state), Some(RunStage::Search));
        let goal = &state.verdict.goals[0];
        let word = verdict.name();
        let reason = format!("{word} in the search, to be confirmed: 0 of 6 new pairs");
        assert_eq!(goal.verdict, Verdict::Inconclusive);
        assert_eq!(goal.reason, Some(reason));
        // The estimate so far is that of the search.
        assert_eq!(goal.so_far().unwrap().0, 4);
        assert!(goal.change.is_some() && goal.confirmation.is_none());
        assert_eq!(state.verdict.gate, Gate::Inconclusive);
        assert_eq!(exit_code(&[state.verdict], GatePolicy::Normal), 0);

        let mut runs = search_pairs(&ratios);
        runs.extend(of_third(&SAME));
        let searched = standing(&plan, &runs);
        assert_eq!(next_stage(&searched), Some(RunStage::Confirm));
        runs.extend(pairs_of(RunStage::Confirm, &ratios));
        let confirmed = standing(&plan, &runs);
        assert_eq!(confirmed.next, NextStep::Stop(StopReason::Confirmed));
        assert_eq!(confirmed.verdict.goals[0].verdict, verdict);
    }
}

/// A search without an end has no interval for few pairs at a strict level.
#[test]
fn what_has_no_interval_at_the_corrected_level_does_not_survive() {
    let open = || stopping(StoppingPlan::Open { max_pairs: 200 });
    let ratios = [1.1, 1.101, 1.099, 1.1, 1.102, 1.098];
    let mut all = vec![judge(&open(), &search_pairs(&ratios))];
    assert_eq!(all[0].verdict, Verdict::Regressed);
    let budget = apply_error_budget(&mut all, &vec![open(); 20]);
    assert_eq!(budget.demoted, ["e"]);
    assert_eq!(all[0].verdict, Verdict::Different);
}

/// F2: the family was chosen after the data.
#[test]
fn f2_the_family_is_every_planned_experiment() {
    let mut interrupted = suite(&[(1.04, 0.03)]);
    let budget = apply_error_budget(&mut interrupted, &vec![unconfirmed(); 20]);
    assert_eq!(interrupted[0].verdict, Verdict::Different);
    assert_eq!(
        (budget.protection, budget.false_alarm_bound),
        (Protection::Holm, None)
    );
}

/// F2: the sentence was printed for suites that are invalid with no pair.
#[test]
fn f2_there_is_no_bound_for_an_invalid_suite() {
    let mut invalid = suite(&[(1.0, 0.01)]);
    invalid[0].verdict = Verdict::Invalid;
    let budget = apply_error_budget(&mut invalid, &[unconfirmed()]);
    assert_eq!(budget.false_alarm_bound, None);
}

#[test]
fn one_fresh_pair_without_a_ratio_was_no_confirmation_and_no_warning() {
    let mut fresh = WORSE;
    fresh[3] = 0.0;
    let state = with_fresh(&fresh);
    assert_eq!(state.next, NextStep::Stop(StopReason::Unfit));
    assert_eq!(state.verdict.gate, Gate::Invalid);
    let goal = &state.verdict.goals[0];
    let reason = goal.reason.as_deref().unwrap();
    assert!(
        reason.contains("a ratio needs numbers above zero"),
        "{reason}"
    );
    assert_eq!(goal.confirmation.as_ref().unwrap().confirmed, None);
}

#[test]
fn a_loss_that_went_to_zero_was_a_hundred_points_less() {
    let plan = ExperimentPlan {
        confirm: true,
        stopping: StoppingPlan::Sequential { max_pairs: 20 },
        ..experiment(&[GoalMetric::Loss])
    };
    let pairs = |stage, losses: &[f64]| {
        let pairs = (1..).zip(losses).flat_map(|(pair, loss)| {
            let run = |variant: &str, value| {
                synthetic::run("e", (stage, pair, variant), &[(GoalMetric::Loss, value)])
            };
            [run("baseline", *loss), run("comparison", 0.0)]
        });
        pairs.collect::<Vec<_>>()
    };
    let with = |fresh: &[f64]| {
        let mut runs = pairs(RunStage::Search, &[0.2, 0.21, 0.19, 0.2]);
        runs.extend(pairs(RunStage::Confirm, fresh));
        let state = standing(&plan, &runs);
        let confirmation = state.verdict.goals[0].confirmation.clone();
        (state.next, confirmation.unwrap().change.unwrap())
    };
    let (next, change) = with(&[0.2, 0.19, 0.21, 0.2, 0.2, 0.2]);
    assert_eq!(next, NextStep::Stop(StopReason::Confirmed));
    assert!((change.estimate + 0.2).abs() < 1e-12, "{change:?}");
    // One loss among many of next to nothing proves nothing.
    let mut rare = [1e-4; 20];
    rare[0] = 0.5;
    let (next, _) = with(&rare);
    assert_eq!(next, NextStep::Stop(StopReason::NotConfirmed));
}

#[test]
fn what_an_unfit_machine_showed_before_a_look_was_let_through_or_taken_back() {
    let mut runs = search_pairs(&[1.1, 1.101, 1.099, 1.1, 1.1, 1.1, 1.1]);
    for run in runs.iter_mut().skip(8).filter(|run| {
        let identity = run.identity.as_ref();
        identity.is_some_and(|item| item.variant == "comparison")
    }) {
        run.warnings = vec![crate::RunWarning::CpuSteal {
            share: 0.2,
            limit: 0.05,
        }];
    }
    let fixed = ExperimentPlan {
        max_time: Nanos::from_secs(200),
        ..stopping(StoppingPlan::Fixed { pairs: 8 })
    };
    // No confirmation was requested: it stays, by an interval of what there was, and four pairs do
    // not gate.
    let mut state = [standing(&fixed, &runs).verdict];
    let budget = apply_error_budget(&mut state, std::slice::from_ref(&fixed));
    assert_eq!(
        (state[0].verdict, state[0].gate),
        (Verdict::Regressed, Gate::Inconclusive)
    );
    assert_eq!(budget.protection, Protection::Single);
    // One was requested, and there can be none.
    let confirming = ExperimentPlan {
        confirm: true,
        ..fixed
    };
    let state = standing(&confirming, &runs);
    assert_eq!(state.next, NextStep::Stop(StopReason::Unfit));
    assert_eq!(state.verdict.gate, Gate::Invalid);
    let reason = state.verdict.goals[0].reason.clone().unwrap();
    assert!(
        reason.starts_with(
            "regressed in 4 pairs, and new pairs were not available: too many pairs were discarded"
        ),
        "{reason}"
    );
    // While another comparison is searched, there may be more valid pairs.
    runs.extend(of_third(&[1.0; 7]));
    let state = standing(&with_third(confirming), &runs);
    assert_eq!(
        (state.verdict.goals[0].verdict, state.verdict.gate),
        (Verdict::Inconclusive, Gate::Inconclusive)
    );
}

/// F10: pairs that agree exactly had a p of 0.
#[test]
fn f10_pairs_without_any_spread_have_no_p_value() {
    let state = with_fresh(&[1.06; 6]);
    assert_eq!(state.next, NextStep::Stop(StopReason::Confirmed));
    let item = state.verdict.goals[0].confirmation.clone().unwrap();
    assert_eq!(item.p_value, None);
}

/// Change, means, detectable change and number of pairs are of the same pairs: those of the latest look.
#[test]
fn figures_beside_new_pairs_are_those_of_the_new_pairs() {
    let searched = standing(&confirming(), &search_pairs(&WORSE[..4])).verdict;
    let search_visible = searched.goals[0].smallest_visible.unwrap();
    let noisy = [1.1, 1.0, 1.1, 1.0, 1.1, 1.0, 1.1];
    for (fresh, looked) in [
        (&WORSE[..5], None),
        (&WORSE[..6], Some(6)),
        (&SAME[..6], Some(6)),
        (&noisy[..6], Some(6)),
        // The look after six is not reached.
        (&noisy[..7], Some(6)),
    ] {
        let verdict = with_fresh(fresh).verdict;
        let goal = &verdict.goals[0];
        assert_eq!(goal.fresh_looked(), looked, "{fresh:?}");
        assert_eq!(goal.headline_pairs(), looked.unwrap_or(4), "{fresh:?}");
        let is_of_search = goal.smallest_visible == Some(search_visible);
        assert_eq!(is_of_search, looked.is_none(), "{fresh:?}");
    }
    let mean = |fresh: &[f64]| with_fresh(fresh).verdict.goals[0].comparison_mean.unwrap();
    assert!((mean(&noisy[..6]) / mean(&noisy[..7]) - 1.0).abs() < 1e-9);
}

/// The pairs for a better answer are a look of the plan at which the tolerance is visible.
#[test]
fn the_pairs_needed_are_those_of_a_look() {
    let goal =
        |ratios: &[f64]| standing(&confirming(), &search_pairs(ratios)).verdict.goals[0].clone();
    // Noise of 2 % and a tolerance of 2 %.
    let some = goal(&[1.02, 0.98, 1.02, 0.98]);
    let needed = some.pairs_needed.unwrap();
    assert!(some.smallest_visible.unwrap() > 0.05);
    assert!((6..=20).contains(&needed) && needed % 2 == 0, "{needed}");
    // No look of the plan is late enough.
    assert!(goal(&[1.5, 0.6, 1.4, 0.7]).pairs_needed.unwrap() > 20);
}
