//! Looks, and what is known between them.

use stillwell_plan::StoppingPlan;

use super::*;
use crate::standing::{NextStep, StopReason};
use crate::synthetic;

/// An experiment of one goal at 3 % with these looks.
pub(super) fn stopping(stopping: StoppingPlan) -> ExperimentPlan {
    ExperimentPlan {
        stopping,
        ..experiment(&[CPU])
    }
}

/// Pairs of a stage whose comparison costs these ratios.
pub(super) fn pairs_of(stage: RunStage, ratios: &[f64]) -> Vec<RunSummary> {
    let pairs = (1..).zip(ratios).flat_map(|(pair, ratio)| {
        let run =
            |variant: &str, value| synthetic::run("e", (stage, pair, variant), &[(CPU, value)]);
        [run("baseline", 1000.0), run("comparison", 1000.0 * ratio)]
    });
    pairs.collect()
}

pub(super) fn search_pairs(ratios: &[f64]) -> Vec<RunSummary> {
    pairs_of(RunStage::Search, ratios)
}

const NOISE: [f64; 8] = [-0.02, 0.02, -0.018, 0.022, -0.02, 0.02, -0.021, 0.019];

/// Pairs around this ratio with 2 % of noise.
fn noisy(ratio: f64, pairs: usize) -> Vec<RunSummary> {
    let ratios: Vec<f64> = NOISE[..pairs].iter().map(|noise| ratio + noise).collect();
    search_pairs(&ratios)
}

fn wanted(standing: &Standing) -> Option<u32> {
    match standing.next {
        NextStep::Run {
            valid_pairs_wanted, ..
        } => Some(valid_pairs_wanted),
        NextStep::Stop(_) => None,
    }
}

#[test]
fn pairs_wait_for_the_next_look() {
    let plan = stopping(StoppingPlan::Sequential { max_pairs: 8 });
    for (pairs, used, next) in [
        (0, 0, Some(4)),
        (3, 3, Some(4)),
        (4, 4, Some(6)),
        (5, 4, Some(6)),
        (6, 6, Some(8)),
        (7, 6, Some(8)),
        (8, 8, None),
    ] {
        let state = standing(&plan, &noisy(1.0, pairs));
        let goal = &state.verdict.goals[0];
        assert_eq!((goal.pairs, wanted(&state)), (used, next), "{pairs} pairs");
        assert_eq!(
            (goal.pairs_valid as usize, goal.pair_changes.len()),
            (pairs, pairs)
        );
    }
}

#[test]
fn unused_pairs_change_nothing() {
    let plan = stopping(StoppingPlan::Sequential { max_pairs: 8 });
    let four = judge(&plan, &noisy(1.0, 4));
    let mut wild = noisy(1.0, 4);
    wild.extend(search_pairs(&[1.0, 1.0, 1.0, 1.0, 9.0]).split_off(8));
    let five = judge(&plan, &wild);
    assert_eq!(five.goals[0].change, four.goals[0].change);
    assert_eq!((five.verdict, five.pairs_valid), (four.verdict, 5));
}

#[test]
fn it_stops_at_the_first_look_that_is_certain() {
    let plan = stopping(StoppingPlan::Sequential { max_pairs: 20 });
    for (ratio, verdict) in [
        (1.06, Verdict::Regressed),
        (0.94, Verdict::Improved),
        (1.0, Verdict::Equivalent),
    ] {
        let ratios: Vec<f64> = NOISE.iter().map(|noise| ratio + noise / 10.0).collect();
        let early = standing(&plan, &search_pairs(&ratios[..4]));
        assert_eq!(wanted(&early), Some(6), "{ratio}");
        assert_eq!(early.verdict.verdict, Verdict::Inconclusive);
        let state = standing(&plan, &search_pairs(&ratios[..6]));
        assert_eq!(state.next, NextStep::Stop(StopReason::Certain), "{ratio}");
        assert_eq!(state.verdict.verdict, verdict);
        assert_eq!(state.verdict.stopped, Some(StopReason::Certain));
    }
}

/// With confirmation a change ends the search at four pairs.
#[test]
fn f10_four_pairs_show_no_equivalence_and_gate_only_if_confirmed() {
    let same = [1.0, 1.001, 0.999, 1.0];
    let worse = [1.06, 1.061, 1.059, 1.06];
    let four = stopping(StoppingPlan::Fixed { pairs: 4 });
    let state = standing(&four, &search_pairs(&same));
    assert_eq!(state.next, NextStep::Stop(StopReason::LastLook));
    let goal = &state.verdict.goals[0];
    assert_eq!(goal.verdict, Verdict::Inconclusive);
    let reason = goal.reason.as_deref().unwrap();
    assert!(
        reason.ends_with("may miss a fault that occurs in 52.7 % of all runs"),
        "{reason}"
    );
    let state = standing(&four, &search_pairs(&worse)).verdict;
    assert_eq!(
        (state.verdict, state.gate),
        (Verdict::Regressed, Gate::Inconclusive)
    );
    let six = stopping(StoppingPlan::Fixed { pairs: 6 });
    let ratios = [1.06, 1.061, 1.059, 1.06, 1.062, 1.058];
    assert_eq!(judge(&six, &search_pairs(&ratios)).gate, Gate::Regressed);
    let confirming = ExperimentPlan {
        confirm: true,
        ..stopping(StoppingPlan::Sequential { max_pairs: 20 })
    };
    assert!(matches!(
        standing(&confirming, &search_pairs(&worse)).next,
        NextStep::Run {
            stage: RunStage::Confirm,
            ..
        }
    ));
}

#[test]
fn f9_the_rarest_visible_fault_follows_from_the_pairs() {
    let shown = [4, 6, 8, 12, 20].map(|pairs| {
        let share = crate::goal_verdict::rarest_visible_fault(pairs);
        format!("{:.0}", 100.0 * share)
    });
    assert_eq!(shown, ["53", "39", "31", "22", "14"]);
}

#[test]
fn f9_one_sided_noise_is_reported() {
    let plan = stopping(StoppingPlan::Sequential { max_pairs: 12 });
    let signs = |ratios: &[f64]| -> Vec<String> {
        let state = judge(&plan, &search_pairs(ratios));
        state
            .erratic_signs
            .iter()
            .map(ToString::to_string)
            .collect()
    };
    let mut ratios = [
        1.0, 1.002, 0.998, 1.001, 0.999, 1.003, 0.997, 1.0, 1.002, 0.998, 1.001, 1.0,
    ];
    assert!(signs(&ratios).is_empty(), "{:?}", signs(&ratios));
    ratios[6] = 1.03;
    let verdict_signs = signs(&ratios);
    assert!(
        verdict_signs
            .iter()
            .any(|sign| sign.starts_with("one-sided: some of 12 pairs")),
        "{verdict_signs:?}"
    );
}

#[test]
fn different_and_inconclusive_are_reported_at_the_last_look_only() {
    // 2.6 % with 0.3 % of noise: sure, and neither large nor small.
    let ratios: Vec<f64> = NOISE.iter().map(|noise| 1.026 + noise / 4.0).collect();
    let plan = stopping(StoppingPlan::Sequential { max_pairs: 8 });
    for pairs in 4..8 {
        let state = standing(&plan, &search_pairs(&ratios[..pairs])).verdict;
        assert_eq!(state.verdict, Verdict::Inconclusive, "{pairs} pairs");
        let reason = state.goals[0].reason.as_deref().unwrap();
        assert!(reason.starts_with("not decided yet"), "{reason}");
        assert_eq!(state.stopped, None);
    }
    let last = standing(&plan, &search_pairs(&ratios));
    assert_eq!(last.next, NextStep::Stop(StopReason::LastLook));
    assert_eq!(last.verdict.verdict, Verdict::Different);
    assert_eq!(last.verdict.goals[0].reason, None);
    let noisy = standing(&plan, &noisy(1.0, 8)).verdict;
    assert_eq!(noisy.verdict, Verdict::Equivalent);
}

#[test]
fn the_likely_number_of_pairs_is_reported() {
    let plan = stopping(StoppingPlan::Sequential { max_pairs: 20 });
    let runs = noisy(1.0, 4);
    let state = standing(&plan, &runs);
    let NextStep::Run {
        likely_pairs: Some(likely),
        ..
    } = state.next
    else {
        panic!("{:?}", state.next);
    };
    assert!((6..=12).contains(&likely), "{likely}");
    // Both runs of a pair take 15 s each.
    let left = state.verdict.likely_left.unwrap();
    assert_eq!(left, Nanos::from_secs(30 * u64::from(likely - 4)));
    assert_eq!(standing(&plan, &runs[..4]).verdict.likely_pairs, None);
}

#[test]
fn a_fixed_number_is_looked_at_once() {
    let plan = stopping(StoppingPlan::Fixed { pairs: 8 });
    let almost = standing(&plan, &noisy(1.1, 7));
    assert_eq!(almost.verdict.verdict, Verdict::Inconclusive);
    assert_eq!(
        almost.verdict.goals[0].reason.as_deref(),
        Some("7 valid pairs, 8 are needed")
    );
    assert!(almost.verdict.goals[0].change.is_some());
    let whole = standing(&plan, &noisy(1.1, 8));
    assert_eq!(whole.verdict.verdict, Verdict::Regressed);
    assert_eq!(whole.next, NextStep::Stop(StopReason::Certain));
    let few = standing(&stopping(StoppingPlan::Fixed { pairs: 2 }), &noisy(1.1, 2));
    assert_eq!(few.next, NextStep::Stop(StopReason::LastLook));
    assert_eq!(few.verdict.verdict, Verdict::Inconclusive);
}

#[test]
fn an_open_end_looks_after_every_pair() {
    let plan = stopping(StoppingPlan::Open { max_pairs: 12 });
    let state: Vec<Option<u32>> = (4..=6)
        .map(|pairs| wanted(&standing(&plan, &noisy(1.0, pairs))))
        .collect();
    assert_eq!(state, [Some(5), Some(6), Some(7)]);
}

#[test]
fn every_comparison_has_to_be_certain() {
    let mut plan = stopping(StoppingPlan::Sequential { max_pairs: 8 });
    plan.variants
        .push(VariantPlan::unchanged("third".to_owned()));
    let mut runs = search_pairs(&[1.0, 1.001, 0.999, 1.0, 1.001, 0.999]);
    for (pair, noise) in (1..).zip(&NOISE[..6]) {
        let place = (RunStage::Search, pair, "third");
        runs.push(synthetic::run(
            "e",
            place,
            &[(CPU, 1000.0 * (1.02 + noise))],
        ));
    }
    let state = standing(&plan, &runs);
    assert_eq!(state.verdict.goals[0].verdict, Verdict::Equivalent);
    assert_eq!(wanted(&state), Some(8));
}

#[test]
fn ranks_are_reported_beside_the_verdict() {
    let plan = stopping(StoppingPlan::Sequential { max_pairs: 8 });
    let four = judge(&plan, &noisy(1.05, 4));
    assert_eq!(four.goals[0].sensitivity, None);
    let six = judge(&plan, &noisy(1.05, 6));
    let ranks = six.goals[0].sensitivity.unwrap();
    assert!((ranks.hodges_lehmann - 0.05).abs() < 0.01, "{ranks:?}");
    assert!((ranks.wilcoxon_p - 0.03125).abs() < 1e-12, "{ranks:?}");
    assert!(!ranks.disagrees);
    // All agree, and one lies so far out that t sees nothing but noise.
    let mut wild = [1.01, 1.011, 1.009, 1.012, 1.008, 1.01, 1.011, 1.6];
    let hidden = judge(&plan, &search_pairs(&wild));
    assert!(hidden.goals[0].sensitivity.unwrap().disagrees, "{hidden:?}");
    wild[7] = 1.009;
    let agreed = judge(&plan, &search_pairs(&wild));
    assert!(!agreed.goals[0].sensitivity.unwrap().disagrees);
}

#[test]
fn shares_are_compared_by_their_difference() {
    let plan = ExperimentPlan {
        stopping: StoppingPlan::Fixed { pairs: 6 },
        goals: vec![GoalPlan::new(GoalMetric::Loss)],
        ..experiment(&[])
    };
    let state = |comparison: [f64; 6]| {
        let pairs = (1..).zip(comparison).flat_map(|(pair, lost)| {
            let run = |variant: &str, value| {
                let place = (RunStage::Search, pair, variant);
                synthetic::run("e", place, &[(GoalMetric::Loss, value)])
            };
            [run("baseline", 0.0), run("comparison", lost)]
        });
        judge(&plan, &pairs.collect::<Vec<_>>())
    };
    let none = state([0.0; 6]);
    assert_eq!(none.verdict, Verdict::Equivalent);
    let some = state([0.01, 0.011, 0.009, 0.01, 0.011, 0.009]);
    assert_eq!(some.verdict, Verdict::Regressed);
    let change = some.goals[0].change.unwrap();
    assert!((change.estimate - 0.01).abs() < 1e-12, "{change:?}");
    assert_eq!(some.goals[0].baseline_mean, Some(0.0));
}

#[test]
fn a_tolerance_that_is_a_time_is_its_share_of_the_baseline() {
    let plan = |tolerance: &str| {
        let mut plan = stopping(StoppingPlan::Sequential { max_pairs: 8 });
        let goal = plan.goals.remove(0);
        let goal = goal.tolerating(tolerance.parse().unwrap()).unwrap();
        plan.goals.push(goal);
        plan
    };
    // The baseline takes 1000 ns.
    for (time, share, ratio) in [
        ("50ns", "5%", 1.0),
        ("50ns", "5%", 1.3),
        ("500ns", "50%", 1.3),
        ("10us", "99%", 1.3),
    ] {
        let of_time = judge(&plan(time), &noisy(ratio, 8));
        let of_share = judge(&plan(share), &noisy(ratio, 8));
        let [goal, same] = [&of_time, &of_share].map(|verdict| &verdict.goals[0]);
        assert_eq!(goal.verdict, same.verdict, "{time} {ratio}");
        assert!((goal.tolerance.share() - same.tolerance.share()).abs() < 1e-9);
        assert_eq!(goal.tolerance_time, Some(time.parse().unwrap()));
        assert_eq!(same.tolerance_time, None);
    }
    let verdict = |tolerance: &str| judge(&plan(tolerance), &noisy(1.3, 8)).verdict;
    assert_eq!(verdict("100ns"), Verdict::Regressed);
    assert_eq!(verdict("500ns"), Verdict::Equivalent);
    let throughput = GoalPlan::new(GoalMetric::IngressThroughput);
    let refused = throughput.tolerating("50us".parse().unwrap()).unwrap_err();
    assert!(refused.contains("is not a time"), "{refused}");
}

/// With three variants, runs of the baseline in pairs with any comparison count, each of them once.
#[test]
fn a_tolerance_that_is_a_time_is_a_share_of_the_baseline_of_every_comparison() {
    let mut plan = stopping(StoppingPlan::Sequential { max_pairs: 8 });
    plan.variants
        .push(VariantPlan::unchanged("third".to_owned()));
    let goal = plan.goals.remove(0);
    let goal = goal.tolerating("50ns".parse().unwrap()).unwrap();
    plan.goals.push(goal);
    // The baseline takes 1000 ns in the first four pairs, and 2000 ns in the last four.
    let of_all = 2e6_f64.sqrt();
    for (first, second, mean) in [
        (1..=8_u32, 1..=8_u32, of_all),
        (1..=4, 5..=8, of_all),
        (1..=8, 5..=8, of_all),
        (1..=4, 1..=4, 1000.0),
        (9..=9, 5..=8, 2000.0),
        // No pair is valid.
        (9..=9, 9..=9, of_all),
    ] {
        let runs = (1..=8).flat_map(|pair| {
            let cost = if pair <= 4 { 1000.0 } else { 2000.0 };
            let run = |variant: &str, is_valid: bool| {
                let place = (RunStage::Search, pair, variant);
                let mut run = synthetic::run("e", place, &[(CPU, cost)]);
                if !is_valid {
                    run.warnings = vec![crate::RunWarning::TargetRestarted];
                }
                run
            };
            [
                run("baseline", true),
                run("comparison", first.contains(&pair)),
                run("third", second.contains(&pair)),
            ]
        });
        let state = judge(&plan, &runs.collect::<Vec<_>>());
        for goal in &state.goals {
            let share = goal.tolerance.share();
            assert!(
                (share - 50.0 / mean).abs() < 1e-9,
                "{first:?} {second:?}: {share}"
            );
        }
    }
}
