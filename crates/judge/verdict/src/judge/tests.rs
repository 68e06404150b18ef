mod confirmation;
mod health;
mod ranking;
mod sequential;
mod simulated;
mod skipped;

use proptest::prelude::*;
use stillwell_capture::RunOutcome;
use stillwell_metric::{Labels, catalogue};
use stillwell_plan::check::{Aggregation, SeriesSelector};
use stillwell_plan::{CheckPlan, GoalMetric, Phase, VariantPlan};

use super::*;
use crate::budget::apply_error_budget;
use crate::fixture::{TestRun, experiment, generator};
use crate::gate::{GatePolicy, exit_code};

const CPU: GoalMetric = GoalMetric::CpuPerEvent;

/// Runs whose CPU seconds for each second are these: (baseline, comparison).
fn runs(pairs: &[(f64, f64)]) -> Vec<RunSummary> {
    runs_with(pairs, |test_run, cpu| {
        test_run.with(catalogue::TARGET_CPU, Labels::none(), cpu * 1e9)
    })
}

fn runs_with(pairs: &[(f64, f64)], change: impl Fn(TestRun, f64) -> TestRun) -> Vec<RunSummary> {
    let run = |variant: &str, pair: usize, value: f64| {
        let pair = u32::try_from(pair + 1).unwrap();
        change(TestRun::healthy().placed(variant, pair), value).summary()
    };
    let both = pairs.iter().enumerate().flat_map(|(pair, (left, right))| {
        [
            run("baseline", pair, *left),
            run("comparison", pair, *right),
        ]
    });
    both.collect()
}

/// Six pairs around this ratio, with noise of about half a percent.
fn around(ratio: f64) -> Vec<(f64, f64)> {
    [0.995, 1.0, 1.005, 0.998, 1.002, 1.001]
        .map(|noise| (0.5, 0.5 * ratio * noise))
        .to_vec()
}

fn verdict(runs: &[RunSummary]) -> ExperimentVerdict {
    judge(&experiment(&[CPU]), runs)
}

fn died(mut test_run: TestRun) -> RunSummary {
    test_run.manifest.outcome = RunOutcome::TargetDied {
        phase: Phase::Measure,
    };
    test_run.summary()
}

#[test]
fn known_changes_have_known_verdicts() {
    for (ratio, expected, gate, code) in [
        (1.05, Verdict::Regressed, Gate::Regressed, 1),
        (1.0, Verdict::Equivalent, Gate::Held, 0),
        (1.01, Verdict::Equivalent, Gate::Held, 0),
        (1.027, Verdict::Different, Gate::Held, 0),
        (0.95, Verdict::Improved, Gate::Held, 0),
    ] {
        let judged = verdict(&runs(&around(ratio)));
        assert_eq!(judged.verdict, expected, "{:?}", judged.goals);
        assert_eq!(judged.gate, gate);
        assert_eq!(exit_code(&[judged], GatePolicy::Strict), code);
    }
}

#[test]
fn noise_is_inconclusive_and_reports_the_visible_change() {
    let pairs = [0.8, 1.2, 0.9, 1.1, 1.3, 0.75].map(|noise| (0.5, 0.5 * noise));
    let judged = verdict(&runs(&pairs));
    assert_eq!(judged.verdict, Verdict::Inconclusive);
    let goal = &judged.goals[0];
    assert!(goal.smallest_visible.unwrap() > 0.1);
    assert!(goal.pairs_needed.unwrap() > 100);
    assert_eq!(goal.reason, None);
    let all = [judged];
    assert_eq!(exit_code(&all, GatePolicy::Normal), 0);
    assert_eq!(exit_code(&all, GatePolicy::Strict), 4);
}

#[test]
fn more_throughput_is_better() {
    let plan = experiment(&[GoalMetric::IngressThroughput]);
    let state = |ratio: f64| {
        let runs = runs_with(&around(ratio), |test_run, share| {
            test_run.with(catalogue::BYTES_WRITTEN, generator(), share * 1e6)
        });
        judge(&plan, &runs).verdict
    };
    assert_eq!(state(0.95), Verdict::Regressed);
    assert_eq!(state(1.05), Verdict::Improved);
    assert_eq!(state(1.0), Verdict::Equivalent);
}

#[test]
fn three_pairs_are_too_few() {
    let judged = verdict(&runs(&around(1.5)[..3]));
    assert_eq!(judged.verdict, Verdict::Inconclusive);
    assert_eq!(
        judged.goals[0].reason.as_deref(),
        Some("3 valid pairs, 4 are needed")
    );
    assert_eq!(verdict(&[]).verdict, Verdict::Inconclusive);
}

#[test]
fn pairs_with_an_unreliable_run_are_left_out_whole() {
    let mut all = runs(&around(1.05));
    all[3] = died(TestRun::healthy().placed("comparison", 2));
    let judged = verdict(&all);
    // Four pairs do not show a change that no fresh pairs confirm.
    assert_eq!(judged.verdict, Verdict::Inconclusive);
    assert!(judged.goals[0].change.unwrap().lower > 0.0);
    assert_eq!((judged.pairs_used, judged.pairs_discarded), (4, 1));
    assert_eq!(judged.not_used.len(), 1);
    assert_eq!(judged.not_used[0].variant, "comparison");
    for pair in [3, 4] {
        all[2 * pair + 1] =
            died(TestRun::healthy().placed("comparison", u32::try_from(pair).unwrap() + 1));
    }
    let judged = verdict(&all);
    assert_eq!(
        (judged.verdict, judged.gate),
        (Verdict::Invalid, Gate::Invalid)
    );
    assert_eq!(
        judged.goals[0].reason.as_deref(),
        Some(
            "3 valid pairs, 4 are needed: 3 runs of comparison discarded (target died in phase \
             measure)"
        )
    );
    assert_eq!(exit_code(&[judged], GatePolicy::Normal), 4);
}

#[test]
fn a_goal_that_was_never_measured_is_invalid() {
    let runs = runs_with(&around(1.0), |test_run, _| {
        test_run.without(catalogue::TARGET_RSS)
    });
    let judged = judge(&experiment(&[GoalMetric::Memory]), &runs);
    assert_eq!(judged.verdict, Verdict::Invalid);
    let reason = judged.goals[0].reason.as_deref().unwrap();
    assert!(reason.contains("memory is missing"), "{reason}");
}

#[test]
fn a_delay_of_the_target_spoils_throughput_and_leaves_cpu_alone() {
    let runs = runs_with(&around(1.05), |test_run, cpu| {
        test_run
            .with(catalogue::TARGET_CPU, Labels::none(), cpu * 1e9)
            .with(catalogue::TARGET_RUN_DELAY, Labels::none(), 0.3e9)
            .with(catalogue::HOST_CPU_FOREIGN, Labels::none(), 0.3e9)
    });
    let judged = judge(&experiment(&[CPU, GoalMetric::EgressThroughput]), &runs);
    let verdicts: Vec<Verdict> = judged.goals.iter().map(|goal| goal.verdict).collect();
    assert_eq!(verdicts, [Verdict::Regressed, Verdict::Invalid]);
    assert_eq!(judged.gate, Gate::Regressed);
    assert_eq!(judged.pairs_discarded, 0);
    assert_eq!(judged.goals[0].unreliable, None);
    let estimate = judged.goals[1].unreliable.unwrap();
    assert_eq!(estimate.pairs, 6);
    assert!(estimate.change.unwrap().estimate.abs() < 1e-9);
    assert!((estimate.baseline_mean.unwrap() - 90_000.0).abs() < 1e-6);
    let spoiled = &judged.not_used[0];
    assert_eq!(spoiled.values.len(), 2, "{spoiled:?}");
}

#[test]
fn a_light_load_can_hide_a_change_and_cannot_make_one() {
    for (change, verdict) in [
        (1.5, Verdict::Regressed),
        (0.5, Verdict::Improved),
        (1.0, Verdict::Inconclusive),
    ] {
        let light: Vec<(f64, f64)> = around(change)
            .iter()
            .map(|(b, c)| (b / 4.0, c / 4.0))
            .collect();
        let judged = judge(&experiment(&[CPU, GoalMetric::Cpu]), &runs(&light));
        let goal = &judged.goals[0];
        assert_eq!(goal.verdict, verdict, "{change}");
        assert!(goal.change.is_some());
        let is_light = |reason: &str| reason.starts_with("light load: ");
        let is_named = goal.reason.as_deref().is_some_and(is_light);
        assert_eq!(
            is_named,
            verdict == Verdict::Inconclusive,
            "{:?}",
            goal.reason
        );
        assert_ne!(judged.goals[1].verdict, Verdict::Inconclusive);
    }
}

#[test]
fn a_schedule_that_was_not_kept_is_noted_beside_costs() {
    let runs = runs_with(&around(1.05), |test_run, cpu| {
        test_run
            .with(catalogue::TARGET_CPU, Labels::none(), cpu * 1e9)
            .with(catalogue::SENT_UNITS, generator(), 900.0)
            .with(catalogue::WORKER_BLOCKED, generator(), 0.5e9)
    });
    let judged = judge(&experiment(&[CPU, GoalMetric::Memory]), &runs);
    assert_eq!(judged.verdict, Verdict::Regressed);
    let note = judged.goals[0].note.as_deref().unwrap();
    assert!(note.contains("in 12 of 12 runs"), "{note}");
    assert_eq!(judged.goals[1].note, None);
    assert_eq!((judged.notes[0].runs, judged.notes[0].of), (12, 12));
    assert_eq!(judged.notes.len(), 1);
}

#[test]
fn losing_everything_is_a_regression() {
    let lost: Vec<(f64, f64)> = around(0.0);
    let runs = runs_with(&lost, |test_run, share| {
        test_run.with(
            catalogue::BYTES_RECEIVED,
            crate::fixture::sink(),
            share * 1e6,
        )
    });
    let judged = judge(&experiment(&[GoalMetric::EgressThroughput]), &runs);
    assert_eq!(judged.verdict, Verdict::Regressed);
    assert_eq!(judged.goals[0].comparison_mean, Some(0.0));
    let both = runs_with(&[(0.0, 0.0); 6], |test_run, share| {
        test_run.with(catalogue::BYTES_RECEIVED, crate::fixture::sink(), share)
    });
    let judged = judge(&experiment(&[GoalMetric::EgressThroughput]), &both);
    assert_eq!(judged.verdict, Verdict::Invalid);
}

#[test]
fn with_three_variants_each_is_compared_with_the_first() {
    let mut plan = experiment(&[CPU]);
    plan.variants
        .push(VariantPlan::unchanged("third".to_owned()));
    let mut all = runs(&around(1.0));
    for pair in 1..=6 {
        let test_run = TestRun::healthy().placed("third", pair);
        all.push(
            test_run
                .with(catalogue::TARGET_CPU, Labels::none(), 0.6e9)
                .summary(),
        );
    }
    let judged = judge(&plan, &all);
    let verdicts: Vec<(&str, Verdict)> = judged
        .goals
        .iter()
        .map(|goal| (goal.comparison.as_str(), goal.verdict))
        .collect();
    assert_eq!(
        verdicts,
        [
            ("comparison", Verdict::Equivalent),
            ("third", Verdict::Regressed)
        ]
    );
    assert_eq!((judged.verdict, judged.pairs_used), (Verdict::Regressed, 6));
}

fn with_check(metric: &str, upper: f64) -> ExperimentVerdict {
    let check = CheckPlan {
        name: "bound".to_owned(),
        description: None,
        series: SeriesSelector {
            metric: metric.to_owned(),
            id: None,
            aggregation: Aggregation::Mean,
        },
        upper: Some(upper),
        lower: None,
    };
    let mut plan = experiment(&[CPU]);
    plan.run_plan.checks = vec![check.clone()];
    let runs = runs_with(&around(1.0), |mut test_run, cpu| {
        test_run.manifest.plan.checks = vec![check.clone()];
        if test_run.manifest.identity.as_ref().unwrap().pair == 2 {
            test_run.set(catalogue::TARGET_RSS, Labels::none(), 80e6);
        }
        test_run.with(catalogue::TARGET_CPU, Labels::none(), cpu * 1e9)
    });
    judge(&plan, &runs)
}

#[test]
fn one_broken_bound_fails_the_gate() {
    let rss = catalogue::TARGET_RSS.name;
    let failed = with_check(rss, 60e6);
    assert_eq!(
        (failed.verdict, failed.gate),
        (Verdict::Equivalent, Gate::CheckFailed)
    );
    let check = &failed.checks[0];
    assert_eq!((check.passed, check.failed(), check.runs), (10, 2, 12));
    assert_eq!(check.worst_observed, Some(80e6));
    assert_eq!(check.failed_variants, ["baseline", "comparison"]);
    assert_eq!(exit_code(&[failed], GatePolicy::Normal), 1);
    assert_eq!(with_check(rss, 90e6).gate, Gate::Held);
    // A check that was not measured fails, too.
    assert_eq!(with_check("target/absent", 1.0).gate, Gate::CheckFailed);
}

#[test]
fn a_regression_goes_before_what_is_invalid() {
    let regressed = verdict(&runs(&around(1.05)));
    let mut invalid = regressed.clone();
    invalid.gate = Gate::Invalid;
    let both = [invalid, regressed];
    assert_eq!(exit_code(&both, GatePolicy::Normal), 1);
    assert_eq!(exit_code(&both[..1], GatePolicy::Normal), 4);
    let mut erratic = both;
    erratic.iter_mut().for_each(|item| item.erratic = true);
    assert_eq!(exit_code(&erratic, GatePolicy::Strict), 0);
    assert_eq!(exit_code(&[], GatePolicy::Strict), 0);
}

#[test]
fn probes_and_foreign_requests_are_left_out() {
    let mut all = runs(&around(1.0));
    let expected = verdict(&all);
    all.push(TestRun::healthy().placed("baseline", 0).summary());
    all.push(TestRun::healthy().placed("stranger", 1).summary());
    all.push(TestRun::healthy().summary());
    assert_eq!(verdict(&all), expected);
}

fn cpu_pairs() -> impl Strategy<Value = Vec<(f64, f64)>> {
    prop::collection::vec((0.4_f64..0.6, 0.4_f64..0.6), 4..9)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// For all pairs whose change is not near the tolerance: exchanging the
    /// variants turns a regression into an improvement and back.
    #[test]
    fn exchanging_variants_turns_the_verdict(
        pairs in cpu_pairs(),
        ratio in prop_oneof![Just(0.85), Just(1.0), Just(1.2)],
    ) {
        let pairs: Vec<(f64, f64)> = pairs
            .iter()
            .map(|(left, right)| (0.5 + left / 100.0, 0.5 * ratio + right / 100.0))
            .collect();
        let exchanged: Vec<(f64, f64)> = pairs.iter().map(|(b, c)| (*c, *b)).collect();
        let turned = match verdict(&runs(&pairs)).verdict {
            Verdict::Regressed => Verdict::Improved,
            Verdict::Improved => Verdict::Regressed,
            right => right,
        };
        prop_assert_eq!(verdict(&runs(&exchanged)).verdict, turned);
    }

    /// For all pairs: twice the cost on both sides is the same change.
    #[test]
    fn scale_does_not_matter(pairs in cpu_pairs()) {
        let twice: Vec<(f64, f64)> = pairs.iter().map(|(b, c)| (b * 2.0, c * 2.0)).collect();
        let (left, right) = (verdict(&runs(&pairs)), verdict(&runs(&twice)));
        let (first, second) = (left.goals[0].change.unwrap(), right.goals[0].change.unwrap());
        prop_assert!((first.estimate - second.estimate).abs() < 1e-6);
        prop_assert!((first.upper - second.upper).abs() < 1e-6);
    }

    /// For all numbers of equal runs: equivalent, with no change at all.
    #[test]
    fn equal_runs_are_equivalent(cpu in 0.3_f64..0.9, pairs in 6_usize..9) {
        let judged = verdict(&runs(&vec![(cpu, cpu); pairs]));
        prop_assert_eq!(judged.verdict, Verdict::Equivalent);
        prop_assert!(judged.goals[0].change.unwrap().estimate.abs() < 1e-12);
    }

    /// For all orders in which runs come: the same verdict.
    #[test]
    fn order_does_not_matter(pairs in cpu_pairs(), seed in any::<prop::sample::Index>()) {
        let mut all = runs(&pairs);
        let expected = verdict(&all);
        let turn = seed.index(all.len());
        all.rotate_left(turn);
        all.reverse();
        prop_assert_eq!(verdict(&all), expected);
    }
}

/// A regression that has enough pairs gates, also where another comparison has none.
#[test]
fn a_comparison_without_valid_pairs_does_not_hide_a_regression() {
    let mut plan = experiment(&[CPU]);
    let third = VariantPlan {
        name: "other".to_owned(),
        ..plan.variants[1].clone()
    };
    plan.variants.push(third);
    let mut all = runs(&around(1.05));
    all.extend((1..=6).map(|pair| died(TestRun::healthy().placed("other", pair))));
    let judged = judge(&plan, &all);
    let verdicts: Vec<Verdict> = judged.goals.iter().map(|goal| goal.verdict).collect();
    assert_eq!(verdicts, [Verdict::Regressed, Verdict::Invalid]);
    assert_eq!(judged.gate, Gate::Regressed);
    let budget = apply_error_budget(&mut [judged], &[plan]);
    assert_eq!(budget.false_alarm_bound, None, "one was not judged");
}
