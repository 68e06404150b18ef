//! Order, seeds, failures, operating point.

use std::fs;

use stillwell_capture::{RunOutcome, RunStage};
use stillwell_experiment::{
    OperatingPointFound, ProblemKind, Results, SuiteOutcome, SuiteProgress, TimeLeft, latest,
    order_within, run_suite,
};
use stillwell_plan::experiment::OperatingPoint;
use stillwell_plan::{GeneratorPlan, Phase, RatePlan, RateShape, SuitePlan, TargetKind};
use stillwell_run::Interrupt;
use stillwell_units::{ByteRate, Nanos};
use stillwell_verdict::Verdict;

use crate::mock::{Mock, costlier_comparison, experiment, options, run, suite};

#[test]
fn a_costlier_comparison_is_detected() {
    let folder = tempfile::tempdir().unwrap();
    let plan = suite([experiment("one", 6)]);
    let mut mock = Mock::new(costlier_comparison);
    let outcome = run(&plan, &options(folder.path(), false), &mut mock).unwrap();
    assert_eq!(outcome.interrupted, None);
    assert!(outcome.problems.is_empty(), "{:?}", outcome.problems);
    let verdict = &outcome.verdicts[0];
    assert_eq!(verdict.pairs_used, 6, "{verdict:?}");
    assert_eq!(verdict.verdict, Verdict::Regressed);
    let results = folder.path().join("results");
    let written = fs::read_to_string(results.join("one/verdict.json")).unwrap();
    assert!(written.contains("\"verdict\": \"regressed\""), "{written}");
    assert!(
        results
            .join("one/pair-006/comparison/summary.json")
            .is_file()
    );
    assert!(!folder.path().join("state").exists());
}

#[test]
fn variants_of_a_pair_run_in_its_order_with_its_seeds() {
    let folder = tempfile::tempdir().unwrap();
    let plan = suite([experiment("one", 6)]);
    let mut mock = Mock::new(costlier_comparison);
    run(&plan, &options(folder.path(), false), &mut mock).unwrap();
    let names = ["baseline", "comparison"];
    let expected: Vec<(String, u32, String)> = (1..=6)
        .flat_map(|pair| {
            let order = order_within(&plan.seed, "one", RunStage::Search, 2, pair);
            order
                .into_iter()
                .map(move |at| ("one".to_owned(), pair, names[at].to_owned()))
        })
        .collect();
    assert_eq!(mock.ran(), expected);
    let firsts = expected.iter().step_by(2).filter(|run| run.2 == "baseline");
    assert_eq!(firsts.count(), 3);

    for pair in mock.requests.chunks(2) {
        assert_eq!(pair[0].plan.seed, pair[1].plan.seed);
        assert_eq!(pair[0].plan.generators, pair[1].plan.generators);
        assert_ne!(pair[0].run, pair[1].run);
        assert_ne!(pair[0].places.state, pair[1].places.state);
    }
    let seeds: Vec<_> = mock
        .requests
        .iter()
        .step_by(2)
        .map(|run| run.plan.generators[0].seed)
        .collect();
    for (index, seed) in seeds.iter().enumerate() {
        assert!(!seeds[index + 1..].contains(seed));
    }
}

#[test]
fn environments_differ_in_size() {
    let folder = tempfile::tempdir().unwrap();
    let mut mock = Mock::new(costlier_comparison);
    run(
        &suite([experiment("one", 8)]),
        &options(folder.path(), false),
        &mut mock,
    )
    .unwrap();
    let lengths: Vec<usize> = mock
        .requests
        .iter()
        .map(|run| match &run.plan.target.kind {
            TargetKind::Child(child) => child.environment.variables["STILLWELL_PADDING"].len(),
            TargetKind::Container(_)
            | TargetKind::Pid(_)
            | TargetKind::Url(_)
            | TargetKind::None => {
                panic!("not a child")
            }
        })
        .collect();
    assert!(lengths.iter().all(|length| *length <= 4096));
    let mut distinct = lengths.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert!(distinct.len() > 8, "{lengths:?}");
}

fn died() -> RunOutcome {
    RunOutcome::TargetDied {
        phase: Phase::Measure,
    }
}

fn port_taken() -> RunOutcome {
    RunOutcome::CouldNotStart {
        reason: "port taken".to_owned(),
    }
}

fn full() -> RunOutcome {
    RunOutcome::StorageFailed {
        reason: "no space".to_owned(),
    }
}

/// Runs a suite of two experiments with four pairs each. The comparison's run in these pairs of the
/// first experiment ends with `outcome`.
fn failing(pairs: &[u32], outcome: &RunOutcome) -> (SuiteOutcome, Vec<(String, u32, String)>) {
    let folder = tempfile::tempdir().unwrap();
    let plan = suite([experiment("one", 4), experiment("two", 4)]);
    let mut mock = Mock::new(
        |item: &stillwell_capture::RunIdentity, interrupt: &Interrupt| {
            let fails = item.experiment == "one" && item.variant == "comparison";
            if fails && pairs.contains(&item.pair) {
                return (outcome.clone(), 1.0);
            }
            costlier_comparison(item, interrupt)
        },
    );
    let outcome = run(&plan, &options(folder.path(), false), &mut mock).unwrap();
    (outcome, mock.ran())
}

fn pairs_of(ran: &[(String, u32, String)], experiment: &str) -> Vec<u32> {
    let mut pairs: Vec<u32> = ran
        .iter()
        .filter(|run| run.0 == experiment)
        .map(|run| run.1)
        .collect();
    pairs.dedup();
    pairs
}

#[test]
fn failures_have_their_consequences() {
    let all = || vec![1, 2, 3, 4];
    for (pairs, outcome, kind, first_pairs, two) in [
        (vec![], port_taken(), None, all(), all()),
        (
            vec![1],
            port_taken(),
            Some(ProblemKind::CouldNotStart),
            vec![1],
            all(),
        ),
        // What is lost is repeated under the next number.
        (vec![2], port_taken(), None, vec![1, 2, 3, 4, 5], all()),
        (vec![1], died(), None, vec![1, 2, 3, 4, 5], all()),
        (
            vec![1, 2],
            died(),
            Some(ProblemKind::GivenUp),
            vec![1, 2],
            all(),
        ),
        // Beyond a quarter of the planned pairs, too, while time is left.
        (vec![1, 3], died(), None, vec![1, 2, 3, 4, 5, 6], all()),
        (
            vec![1],
            full(),
            Some(ProblemKind::StorageAtStart),
            vec![1],
            vec![],
        ),
        (
            vec![3],
            full(),
            Some(ProblemKind::Storage),
            vec![1, 2, 3],
            vec![],
        ),
    ] {
        let (result, ran) = failing(&pairs, &outcome);
        let message = format!("{pairs:?} {outcome:?}: {:?}", result.problems);
        assert_eq!(
            result.most_severe().map(|problem| problem.kind),
            kind,
            "{message}"
        );
        assert_eq!(pairs_of(&ran, "one"), first_pairs, "{message}");
        assert_eq!(pairs_of(&ran, "two"), two, "{message}");
    }
}

#[test]
fn a_lost_pair_is_reported_and_the_others_are_judged() {
    let (result, _) = failing(&[2], &died());
    let verdict = &result.verdicts[0];
    assert_eq!(
        (verdict.pairs_used, verdict.pairs_discarded),
        (4, 1),
        "{verdict:?}"
    );
}

#[test]
fn finished_pairs_outlive_a_full_disk() {
    let (result, _) = failing(&[4], &full());
    assert_eq!(result.verdicts[0].pairs_valid, 3);
    assert_eq!(
        result.problems[0].reason,
        "the capture could not be written: no space"
    );
}

#[test]
fn an_interrupt_ends_the_suite_and_keeps_finished_pairs() {
    let folder = tempfile::tempdir().unwrap();
    let plan = suite([experiment("one", 6), experiment("two", 6)]);
    let interrupt = Interrupt::new();
    let mut mock = Mock::new(
        |item: &stillwell_capture::RunIdentity, interrupt: &Interrupt| {
            if item.pair == 5 {
                interrupt.raise(15);
                return (RunOutcome::Interrupted { signal: 15 }, 1.0);
            }
            costlier_comparison(item, interrupt)
        },
    );
    let mut ignore = |_: SuiteProgress<'_>| {};
    let options = options(folder.path(), false);
    let outcome = run_suite(&plan, &options, &mut mock, &interrupt, &mut ignore).unwrap();
    assert_eq!(outcome.interrupted, Some(15));
    assert!(outcome.problems.is_empty());
    assert_eq!(mock.ran().len(), 9);
    assert_eq!(outcome.verdicts.len(), 1);
    // The only look that was planned has not come.
    assert_eq!(outcome.verdicts[0].pairs_valid, 4);
    assert_eq!(outcome.verdicts[0].verdict, Verdict::Inconclusive);
}

fn probing(pairs: u32) -> SuitePlan {
    let mut item = experiment("one", pairs);
    item.run_plan.generators[0].rate = RatePlan::MAX;
    item.operating_point = OperatingPoint::Probe {
        share: 0.6,
        length: Nanos::from_secs(3),
    };
    item.run_plan.timeline.push(stillwell_plan::StepPlan {
        at: Nanos::SECOND,
        action: stillwell_plan::step::StepAction::Note("half way".to_owned()),
    });
    suite([item])
}

#[test]
fn a_probe_sets_the_rate_of_both_variants() {
    let folder = tempfile::tempdir().unwrap();
    let mut mock = Mock::new(costlier_comparison);
    run(&probing(2), &options(folder.path(), false), &mut mock).unwrap();
    let probe = &mock.requests[0];
    assert_eq!(mock.ran()[0], ("one".to_owned(), 0, "baseline".to_owned()));
    assert!(probe.plan.generators[0].rate.is_max());
    assert!(probe.plan.timeline.is_empty());
    assert_eq!(probe.plan.phases.measure, Nanos::from_secs(3));
    assert_eq!(probe.plan.phases.warmup, Nanos::SECOND);
    assert_eq!(mock.requests.len(), 5);
    for run in &mock.requests[1..] {
        let shape = &run.plan.generators[0].rate.shape;
        assert_eq!(*shape, RateShape::Constant { per_second: 6000.0 });
        assert_eq!(run.plan.timeline.len(), 1);
    }
    let path = Results::new(folder.path().join("results")).operating_point("one");
    let point: OperatingPointFound = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    assert!(
        point.reason.starts_with("6,000 events/s: 60 %"),
        "{}",
        point.reason
    );
}

#[test]
fn a_probe_keeps_stated_rates() {
    let folder = tempfile::tempdir().unwrap();
    let mut plan = probing(1);
    let generators = &mut plan.experiments[0].run_plan.generators;
    let stated = GeneratorPlan {
        id: "steady".to_owned(),
        rate: RatePlan::bytes(ByteRate::try_new(100).unwrap()),
        ..generators[0].clone()
    };
    generators.insert(0, stated.clone());
    let mut mock = Mock::new(costlier_comparison);
    run(&plan, &options(folder.path(), false), &mut mock).unwrap();
    assert_eq!(mock.requests.len(), 3);
    for run in &mock.requests {
        assert_eq!(run.plan.generators[0].rate, stated.rate);
    }
    assert!(mock.requests[0].plan.generators[1].rate.is_max());
    let probed = RateShape::Constant { per_second: 6000.0 };
    assert_eq!(mock.requests[1].plan.generators[1].rate.shape, probed);
    let path = Results::new(folder.path().join("results")).operating_point("one");
    let point: OperatingPointFound = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    assert_eq!(point.generators.len(), 1);
}

#[test]
fn a_probe_keeps_a_stated_max() {
    let folder = tempfile::tempdir().unwrap();
    let mut plan = probing(1);
    let item = &mut plan.experiments[0];
    let stated = GeneratorPlan {
        id: "steady".to_owned(),
        ..item.run_plan.generators[0].clone()
    };
    item.stated_max.push(stated.id.clone());
    item.run_plan.generators.insert(0, stated);
    let mut mock = Mock::new(costlier_comparison);
    run(&plan, &options(folder.path(), false), &mut mock).unwrap();
    assert_eq!(mock.requests.len(), 3);
    for run in &mock.requests {
        assert_eq!(run.plan.generators[0].rate, RatePlan::MAX);
    }
    let probed = RateShape::Constant { per_second: 6000.0 };
    assert_eq!(mock.requests[1].plan.generators[1].rate.shape, probed);
}

#[test]
fn full_speed_is_a_choice() {
    let folder = tempfile::tempdir().unwrap();
    let mut item = experiment("one", 1);
    item.operating_point = OperatingPoint::Max;
    let unit = item.run_plan.generators[0].rate.unit;
    let mut mock = Mock::new(costlier_comparison);
    run(&suite([item]), &options(folder.path(), false), &mut mock).unwrap();
    assert_eq!(mock.requests.len(), 2);
    for run in &mock.requests {
        assert!(run.plan.generators[0].rate.is_max());
        assert_eq!(run.plan.generators[0].rate.unit, unit);
    }
}

#[test]
fn an_experiment_whose_probe_fails_could_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let mut mock = Mock::new(|_: &stillwell_capture::RunIdentity, _: &Interrupt| (died(), 1.0));
    let outcome = run(&probing(2), &options(folder.path(), false), &mut mock).unwrap();
    assert_eq!(mock.requests.len(), 1);
    assert!(outcome.verdicts.is_empty());
    let problem = outcome.most_severe().unwrap();
    assert_eq!(problem.kind, ProblemKind::CouldNotStart);
    assert_eq!(
        problem.reason,
        "the probe failed: the target died in measure"
    );
}

#[test]
fn three_variants_run_in_every_pair() {
    let folder = tempfile::tempdir().unwrap();
    let mut item = experiment("one", 4);
    item.variants.push(stillwell_plan::VariantPlan::unchanged(
        "other/one".to_owned(),
    ));
    let mut mock = Mock::new(costlier_comparison);
    let outcome = run(&suite([item]), &options(folder.path(), false), &mut mock).unwrap();
    assert_eq!(mock.requests.len(), 12);
    assert_eq!(outcome.verdicts[0].pairs_used, 4);
}

/// The last pair, its run and the problem of the experiment had the same reason.
#[test]
fn the_reason_of_an_experiment_that_ends_early_is_reported_once() {
    for (outcome, pairs) in [(port_taken(), 0), (died(), 1)] {
        let folder = tempfile::tempdir().unwrap();
        let (mut ended, mut problems) = (0, 0);
        let mut listen = |message: SuiteProgress<'_>| match message {
            SuiteProgress::PairEnded { lost, .. } => ended += u32::from(lost.is_some()),
            SuiteProgress::Problem(_) => problems += 1,
            _ => {}
        };
        run_suite(
            &suite([experiment("one", 4)]),
            &options(folder.path(), false),
            &mut Mock::new(|_: &stillwell_capture::RunIdentity, _: &Interrupt| {
                (outcome.clone(), 1.0)
            }),
            &Interrupt::new(),
            &mut listen,
        )
        .unwrap();
        assert_eq!((ended, problems), (pairs, 1), "{outcome:?}");
    }
}

#[test]
fn the_time_left_shrinks_to_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let plan = suite([experiment("one", 2), experiment("two", 1)]);
    let mut left = Vec::new();
    let mut listen = |message: SuiteProgress<'_>| {
        if let SuiteProgress::RunStarted { left: now, .. }
        | SuiteProgress::PairEnded { left: now, .. } = message
        {
            left.push(now);
        }
    };
    let options = options(folder.path(), false);
    run_suite(
        &plan,
        &options,
        &mut Mock::new(costlier_comparison),
        &Interrupt::new(),
        &mut listen,
    )
    .unwrap();
    // Six runs of 25.5 s and a guess of 2 s for what comes besides.
    let all = Nanos::from_secs(6 * 27) + Nanos::from_secs(3);
    let whole = TimeLeft {
        least: all,
        likely: all,
        most: all,
    };
    assert_eq!(left[0], whole);
    assert_eq!(left.last(), Some(&TimeLeft::default()));
    let likely = left.iter().map(|left| left.likely);
    assert!(
        likely.is_sorted_by(|earlier, later| earlier >= later),
        "{left:?}"
    );
}

#[test]
fn the_latest_results_are_found() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(latest(&folder.path().join("nowhere")).unwrap(), None);
    assert_eq!(latest(folder.path()).unwrap(), None);
    for (name, started) in [("b", 5), ("a", 9), ("c", 7)] {
        fs::create_dir(folder.path().join(name)).unwrap();
        let text = format!("{{\"started_wall_millis\": {started}}}");
        fs::write(folder.path().join(name).join("suite.json"), text).unwrap();
    }
    fs::create_dir(folder.path().join("z")).unwrap();
    assert_eq!(
        latest(folder.path()).unwrap(),
        Some(folder.path().join("a"))
    );
}
