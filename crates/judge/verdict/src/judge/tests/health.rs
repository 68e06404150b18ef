//! Causes of an unfit pair, experiment or machine.

use stillwell_plan::StoppingPlan;
use stillwell_plan::stopping::{DesignPlan, WarmupPlan};

use super::sequential::{search_pairs, stopping};
use super::*;
use crate::erratic::ErraticSign;
use crate::run_warning::RunWarning;
use crate::standing::{NextStep, StopReason};
use crate::summary::{BeatRates, Measured, TARGET_CPUS, WarmupFigures};
use crate::synthetic;

fn plan() -> ExperimentPlan {
    stopping(StoppingPlan::Sequential { max_pairs: 8 })
}

/// The run of `variant` in pair `pair`.
fn of<'r>(runs: &'r mut [RunSummary], pair: u32, variant: &str) -> &'r mut RunSummary {
    runs.iter_mut()
        .find(|run| {
            let identity = run.identity.as_ref().unwrap();
            (identity.pair, identity.variant.as_str()) == (pair, variant)
        })
        .unwrap()
}

/// Seven pairs of 30 s, four of them valid.
#[test]
fn lost_pairs_are_replaced_until_the_time_is_over() {
    let ratios = [1.02, 0.98, 1.02, 0.98, 1.021, 0.979, 1.02];
    let mut runs = search_pairs(&ratios);
    let plan = || ExperimentPlan {
        max_time: Nanos::from_secs(200),
        ..plan()
    };
    for (pair, unfit) in [(1, false), (2, false), (3, true)] {
        of(&mut runs, pair, "baseline").warnings = vec![RunWarning::CpuSteal {
            share: 0.2,
            limit: 0.05,
        }];
        let state = standing(&plan(), &runs);
        assert_eq!(state.verdict.pairs_discarded, pair);
        assert_eq!(
            state.next == NextStep::Stop(StopReason::Unfit),
            unfit,
            "{pair}"
        );
    }
    let state = standing(&plan(), &runs).verdict;
    // What the four valid pairs say holds, and why there are no more is said.
    assert_eq!(
        (state.verdict, state.pairs_used),
        (Verdict::Inconclusive, 4)
    );
    let longer = ExperimentPlan {
        max_time: Nanos::from_secs(211),
        ..plan()
    };
    assert!(matches!(
        standing(&longer, &runs).next,
        NextStep::Run { .. }
    ));
    let reason = state.goals[0].reason.as_deref().unwrap();
    assert!(
        reason.starts_with("too many pairs were discarded (3)"),
        "{reason}"
    );
    assert_eq!((state.discards[0].runs, state.discards[1].runs), (3, 0));
    assert_eq!(state.discards[0].target_failures, 0);
    assert!(!state.discards_unbalanced);
}

/// Pairs of runs that the target survived say nothing about those that it did not.
#[test]
fn a_target_that_fails_more_often_than_the_baseline_passes_nothing() {
    let gate = |failed: &[&str]| {
        let mut runs = search_pairs(&[1.001, 0.999, 1.001, 0.999, 1.001, 0.999, 1.0]);
        for variant in failed {
            of(&mut runs, 7, variant).warnings = vec![RunWarning::TargetRestarted];
        }
        let state = standing(&plan(), &runs).verdict;
        assert_eq!(state.verdict, Verdict::Equivalent);
        state.gate
    };
    assert_eq!(gate(&[]), Gate::Held);
    assert_eq!(gate(&["comparison"]), Gate::Invalid);
    assert_eq!(gate(&["baseline"]), Gate::Held);
    assert_eq!(gate(&["baseline", "comparison"]), Gate::Held);
}

#[test]
fn an_unfit_machine_with_too_few_pairs_is_invalid() {
    let mut runs = search_pairs(&[1.1, 1.1, 1.1]);
    for run in &mut runs {
        run.warnings = vec![RunWarning::TargetRestarted];
    }
    let state = standing(&plan(), &runs);
    assert_eq!(state.next, NextStep::Stop(StopReason::Unfit));
    assert_eq!(state.verdict.verdict, Verdict::Invalid);
    let fixed = ExperimentPlan {
        max_time: Nanos::from_secs(200),
        ..stopping(StoppingPlan::Fixed { pairs: 8 })
    };
    let mut runs = search_pairs(&[1.1, 1.101, 1.099, 1.1, 1.1, 1.1, 1.1]);
    for pair in 5..=7 {
        of(&mut runs, pair, "comparison").warnings = vec![RunWarning::TargetRestarted];
    }
    let state = standing(&fixed, &runs);
    // It ended for reasons that lie outside its numbers: judged once.
    assert_eq!(state.next, NextStep::Stop(StopReason::Unfit));
    assert_eq!(state.verdict.verdict, Verdict::Regressed);
}

#[test]
fn a_light_load_shows_no_equivalence_on_an_unfit_machine_either() {
    let fixed = ExperimentPlan {
        max_time: Nanos::from_secs(200),
        ..stopping(StoppingPlan::Fixed { pairs: 8 })
    };
    let noise = [0.0, 0.001, -0.001, 0.0, 0.001, -0.001, 0.0, 0.0, 0.0];
    for (share, ratio, verdict) in [
        (0.5, 1.0, Verdict::Equivalent),
        (0.1, 1.0, Verdict::Inconclusive),
        (0.1, 1.1, Verdict::Regressed),
    ] {
        let mut runs = search_pairs(&noise.map(|noise| ratio + noise));
        for run in &mut runs {
            run.figures.target_cpu_share = Some(share);
        }
        for pair in 7..=9 {
            of(&mut runs, pair, "comparison").warnings = vec![RunWarning::TargetRestarted];
        }
        let state = standing(&fixed, &runs);
        assert_eq!(state.next, NextStep::Stop(StopReason::Unfit));
        let goal = &state.verdict.goals[0];
        assert_eq!((goal.verdict, goal.pairs), (verdict, 6), "{share} {ratio}");
        let reason = goal.reason.as_deref().unwrap();
        let is_light = reason.starts_with("light load: ");
        assert_eq!(is_light, verdict == Verdict::Inconclusive, "{reason}");
    }
}

#[test]
fn crashes_of_one_variant_are_a_finding() {
    let mut runs = search_pairs(&[1.02, 0.98, 1.02, 0.98, 1.021]);
    for pair in 1..=5 {
        of(&mut runs, pair, "comparison").warnings = vec![RunWarning::OutOfMemory { kills: 1 }];
    }
    let state = judge(&plan(), &runs);
    assert!(state.discards_unbalanced);
    assert_eq!(state.discards[1].target_failures, 5);
    of(&mut runs, 1, "baseline").warnings = vec![RunWarning::OutOfMemory { kills: 1 }];
    assert!(!judge(&plan(), &runs).discards_unbalanced);
}

#[test]
fn a_goal_that_was_never_measured_is_not_waited_for() {
    let plan = ExperimentPlan {
        goals: vec![GoalPlan::new("series:target/nothing:rate".parse().unwrap())],
        ..plan()
    };
    let runs = search_pairs(&[1.0, 1.0]);
    assert!(matches!(
        standing(&plan, &runs[..2]).next,
        NextStep::Run { .. }
    ));
    let state = standing(&plan, &runs);
    assert_eq!(state.next, NextStep::Stop(StopReason::Unfit));
    assert_eq!(state.verdict.verdict, Verdict::Invalid);
    let reason = state.verdict.goals[0].reason.as_deref().unwrap();
    assert!(
        reason.contains("series:target/nothing:rate is missing"),
        "{reason}"
    );
}

#[test]
fn a_pair_with_half_a_run_is_not_discarded_yet() {
    let runs = search_pairs(&[1.0, 1.0]);
    let state = judge(&plan(), &runs[..3]);
    assert_eq!((state.pairs_valid, state.pairs_discarded), (1, 0));
}

#[test]
fn both_runs_of_a_pair_need_the_same_environment() {
    let mut runs = search_pairs(&[1.0; 4]);
    for run in &mut runs {
        run.environment
            .insert("governors".to_owned(), "performance".to_owned());
        run.environment
            .insert(TARGET_CPUS.to_owned(), "1".to_owned());
    }
    assert_eq!(judge(&plan(), &runs).pairs_valid, 4);
    let right = of(&mut runs, 2, "comparison");
    right
        .environment
        .insert("governors".to_owned(), "powersave".to_owned());
    let state = judge(&plan(), &runs);
    assert_eq!((state.pairs_valid, state.pairs_discarded), (3, 1));
    assert_eq!(
        state.not_used[0].warnings[0].to_string(),
        "environment differs within the pair: governors was performance for the baseline and \
         powersave for this run"
    );
    // Another machine for a whole pair is fine, and so are CPUs side by side.
    let base = of(&mut runs, 2, "baseline");
    base.environment
        .insert("governors".to_owned(), "powersave".to_owned());
    assert_eq!(judge(&plan(), &runs).pairs_valid, 4);
    of(&mut runs, 3, "comparison")
        .environment
        .insert(TARGET_CPUS.to_owned(), "2".to_owned());
    assert_eq!(judge(&plan(), &runs).pairs_valid, 3);
    let duet = ExperimentPlan {
        design: DesignPlan::Duet,
        ..plan()
    };
    assert_eq!(judge(&duet, &runs).pairs_valid, 4);
}

#[test]
fn the_measured_warmup_is_common_and_frozen() {
    let plan = ExperimentPlan {
        warmup: WarmupPlan::Measured,
        ..plan()
    };
    let mut runs = search_pairs(&[1.0; 3]);
    let result = |cut| {
        Some(WarmupFigures {
            series: "target_cpu".to_owned(),
            cut,
            beats: 40,
            apart: 0.0,
            drift: None,
        })
    };
    for run in &mut runs {
        run.figures.warmup = result(Some(Nanos::from_millis(2500)));
    }
    of(&mut runs, 2, "comparison").figures.warmup = result(Some(Nanos::from_millis(3500)));
    of(&mut runs, 3, "comparison").figures.warmup = result(Some(Nanos::from_secs(6)));
    assert_eq!(standing(&plan, &runs[..2]).warmup, Nanos::from_secs(2));
    let state = standing(&plan, &runs);
    assert_eq!(state.warmup, Nanos::from_millis(3500));
    assert_eq!(state.verdict.measure, Nanos::from_millis(8500));
    // Until they are summed up again they say nothing.
    assert_eq!(state.verdict.pairs_valid, 0);
    for run in &mut runs {
        run.warmup = state.warmup;
    }
    assert_eq!(judge(&plan, &runs).pairs_valid, 3);
    of(&mut runs, 1, "baseline").figures.warmup = result(None);
    // Half of the measured phase is the most that is taken.
    assert_eq!(standing(&plan, &runs).warmup, Nanos::from_secs(7));
    for run in &mut runs {
        run.figures.warmup = None;
    }
    let state = standing(&plan, &runs);
    assert_eq!(state.warmup, Nanos::from_secs(2));
    assert!(state.verdict.advice[0].contains("could not be measured"));
}

#[test]
fn erratic_metrics_are_reported() {
    let wild = [1.3, 0.8, 1.25, 0.75];
    let state = judge(&plan(), &search_pairs(&wild));
    assert!(
        matches!(
            state.erratic_signs[..],
            [ErraticSign::TooNoisy { pairs: 8, .. }]
        ),
        "{state:?}"
    );
    let calm = judge(&plan(), &search_pairs(&[1.0, 1.001, 0.999, 1.0]));
    assert_eq!(calm.erratic_signs, []);
    let mut groups = search_pairs(&[1.0; 8]);
    for (place, run) in groups.iter_mut().enumerate() {
        let low = [1000.0, 1001.0, 1002.0, 999.0][place % 4];
        let value = if place % 4 < 2 { low } else { low * 1.3 };
        run.values.insert(CPU, Measured::Value(value));
    }
    let state = judge(&plan(), &groups);
    let named: Vec<String> = state
        .erratic_signs
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        named
            .iter()
            .filter(|sign| sign.starts_with("two groups"))
            .count(),
        2,
        "{named:?}"
    );
}

#[test]
fn other_lengths_of_run_are_proposed_where_they_would_decide_sooner() {
    // Runs of a minute differ by 3 % from each other, and their seconds by less.
    let mut runs = search_pairs(&[1.03, 0.97, 1.031, 0.969]);
    for (place, run) in (0_u32..).zip(&mut runs) {
        let level = run.values[&CPU].value().unwrap();
        let wave = |beat: u32| level * (1.0 + f64::from((beat * 7 + place * 3) % 11) / 1000.0);
        run.figures.beats.insert(
            CPU,
            BeatRates {
                beat: Nanos::from_secs(1),
                values: (0..60).map(wave).collect(),
            },
        );
        run.measured = Nanos::from_secs(60);
        run.length = Nanos::from_secs(65);
    }
    let state = judge(&plan(), &runs);
    let advice = state.advice.join(" ");
    assert!(advice.starts_with("runs of 2 s "), "{advice:?}");
    assert!(
        advice.contains("(now 60 s) would likely decide in about"),
        "{advice}"
    );
}

#[test]
fn pairs_whose_environments_differ_were_one_variants_fault() {
    let mut runs = search_pairs(&[1.02, 0.98, 1.02, 0.98, 1.021]);
    for pair in 1..=5 {
        let run = of(&mut runs, pair, "comparison");
        run.environment
            .insert("governor".to_owned(), "powersave".to_owned());
    }
    for pair in 1..=5 {
        let run = of(&mut runs, pair, "baseline");
        run.environment
            .insert("governor".to_owned(), "performance".to_owned());
    }
    let state = judge(&plan(), &runs);
    assert_eq!(state.pairs_discarded, 5);
    assert!(
        state.discards.iter().all(|item| item.runs == 0),
        "{:?}",
        state.discards
    );
    assert!(!state.discards_unbalanced);
}

#[test]
fn losses_of_next_to_nothing_fell_into_two_groups() {
    let plan = ExperimentPlan {
        goals: vec![GoalPlan::new(GoalMetric::Loss)],
        ..plan()
    };
    let groups = |high: f64| {
        let pairs = (1..=8).flat_map(|pair| {
            let loss = if pair % 2 == 0 {
                0.0
            } else {
                high * (1.0 + f64::from(pair) * 1e-3)
            };
            ["baseline", "comparison"].map(|variant| {
                synthetic::run(
                    "e",
                    (RunStage::Search, pair, variant),
                    &[(GoalMetric::Loss, loss)],
                )
            })
        });
        let state = judge(&plan, &pairs.collect::<Vec<_>>());
        let signs = state.erratic_signs.into_iter();
        let result = signs.filter_map(|sign| match sign {
            ErraticSign::TwoGroups { apart, .. } => Some(apart),
            ErraticSign::TooNoisy { .. } | ErraticSign::OneSided { .. } => None,
        });
        result.collect::<Vec<_>>()
    };
    assert_eq!(groups(1e-6), Vec::<f64>::new());
    let apart = groups(0.1);
    assert!(
        apart.iter().all(|apart| (0.09..0.11).contains(apart)),
        "{apart:?}"
    );
    assert_eq!(apart.len(), 2);
}
