//! Looks, confirmation, repeats, designs, warm-up, error budget.

use std::fs;
use std::path::Path;

use serde_json::Value;
use stillwell_capture::RunStage::{self, Confirm, Search};
use stillwell_experiment::{SuiteError, SuiteOutcome, SuiteProgress, order_within, run_suite};
use stillwell_plan::stopping::{DesignPlan, WarmupPlan};
use stillwell_plan::{ExperimentPlan, StoppingPlan, SuitePlan, VariantPlan};
use stillwell_run::Interrupt;
use stillwell_units::Nanos;
use stillwell_verdict::{Gate, StopReason, Verdict};

use crate::mock::{World, experiment, in_world, interrupted_at, options, run, sequential, suite};

/// The result of one experiment: the outcome, its pairs, and `verdict.json`.
struct Came {
    outcome: SuiteOutcome,
    pairs: Vec<(RunStage, u32)>,
    record: Value,
}

impl Came {
    fn of(experiment: ExperimentPlan, world: World) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut mock = in_world(world);
        let plan = suite([experiment]);
        let outcome = run(&plan, &options(folder.path(), false), &mut mock).unwrap();
        Self {
            outcome,
            pairs: mock.pairs(),
            record: record(folder.path()),
        }
    }

    fn stopped(&self) -> (Verdict, Gate, Option<StopReason>) {
        let verdict = &self.outcome.verdicts[0];
        (verdict.verdict, verdict.gate, verdict.stopped)
    }
}

/// A world in which a few pairs are inconclusive.
fn noisy() -> World {
    World {
        seed: 3,
        ..World::with(0.0, 0.10)
    }
}

fn record(folder: &Path) -> Value {
    let text = fs::read(folder.join("results/one/verdict.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

fn places(stage: RunStage, pairs: u32) -> Vec<(RunStage, u32)> {
    (1..=pairs).map(|pair| (stage, pair)).collect()
}

fn looks(record: &Value) -> Vec<u64> {
    let looks = record["looks"].as_array().unwrap().iter();
    looks.map(|look| look["pairs"].as_u64().unwrap()).collect()
}

#[test]
fn a_large_change_is_found_at_the_first_look_and_confirmed() {
    let came = Came::of(sequential("one", 20), World::with(0.10, 0.002));
    let expected = (
        Verdict::Regressed,
        Gate::Regressed,
        Some(StopReason::Confirmed),
    );
    assert_eq!(came.stopped(), expected);
    assert_eq!(came.pairs, [places(Search, 4), places(Confirm, 6)].concat());
    let looks = came.record["looks"].as_array().unwrap();
    assert_eq!(looks.len(), 2, "{looks:?}");
    assert_eq!(
        (&looks[0]["stage"], &looks[0]["pairs"]),
        (&"search".into(), &4.into())
    );
    assert_eq!(looks[0]["verdict"], "regressed");
    assert!(looks[0]["lower"].as_f64().unwrap() > 0.03);
    assert_eq!(
        (&looks[1]["stage"], &looks[1]["confirmed"]),
        (&"confirm".into(), &true.into())
    );
    assert_eq!(came.record["stopped"], "confirmed");
    assert_eq!(came.record["pairs"].as_array().unwrap().len(), 10);
    assert!(!came.record["health"].as_array().unwrap().is_empty());
    assert!(came.outcome.problems.is_empty());
}

#[test]
fn what_fresh_pairs_do_not_show_does_not_gate() {
    let world = World {
        effects: [("comparison", (0.10, 0.0))].into(),
        ..World::with(0.0, 0.002)
    };
    let came = Came::of(sequential("one", 20), world);
    let (verdict, gate, stopped) = came.stopped();
    assert_eq!(stopped, Some(StopReason::NotConfirmed));
    assert_ne!(verdict, Verdict::Regressed);
    assert_ne!(gate, Gate::Regressed);
    assert_eq!(came.pairs, [places(Search, 4), places(Confirm, 6)].concat());
    let last = came.record["looks"].as_array().unwrap().last().unwrap();
    assert_eq!(last["confirmed"], false);
}

#[test]
fn without_a_change_it_ends_when_that_is_certain_and_nothing_is_confirmed() {
    let came = Came::of(sequential("one", 20), World::with(0.0, 0.002));
    let expected = (Verdict::Equivalent, Gate::Held, Some(StopReason::Certain));
    assert_eq!(came.stopped(), expected);
    assert_eq!(came.pairs, places(Search, 6));
}

#[test]
fn noise_is_looked_at_to_the_last() {
    let came = Came::of(sequential("one", 9), noisy());
    let (verdict, _, stopped) = came.stopped();
    assert_eq!(
        (verdict, stopped),
        (Verdict::Inconclusive, Some(StopReason::LastLook))
    );
    assert_eq!(came.pairs, places(Search, 9));
    assert_eq!(looks(&came.record), [4, 6, 8, 9]);
}

#[test]
fn an_open_end_looks_after_every_pair() {
    let open = ExperimentPlan {
        stopping: StoppingPlan::Open { max_pairs: 7 },
        ..sequential("one", 7)
    };
    let came = Came::of(open, noisy());
    // Four pairs are inconclusive with an open end.
    assert_eq!(looks(&came.record), [5, 6, 7]);
}

#[test]
fn pairs_that_are_unreliable_are_repeated_as_a_whole() {
    let world = World {
        unreliable: vec![(Search, 2, "comparison"), (Confirm, 3, "baseline")],
        dying: vec![(Search, 4, "comparison")],
        ..World::with(0.10, 0.002)
    };
    let came = Came::of(sequential("one", 20), world);
    let (verdict, _, stopped) = came.stopped();
    assert_eq!(
        (verdict, stopped),
        (Verdict::Regressed, Some(StopReason::Confirmed))
    );
    assert_eq!(came.pairs, [places(Search, 6), places(Confirm, 7)].concat());
    let judged = &came.outcome.verdicts[0];
    assert_eq!((judged.pairs_used, judged.pairs_discarded), (4, 3));
    let discards = came.record["discards"].as_array().unwrap();
    let of = |name: &str| {
        discards
            .iter()
            .find(|item| item["variant"] == name)
            .unwrap()
    };
    assert_eq!(of("baseline")["runs"], 1);
    assert_eq!(of("comparison")["runs"], 2);
    assert_eq!(of("comparison")["target_failures"], 1);
    assert_eq!(came.record["not_used"].as_array().unwrap().len(), 3);
}

#[test]
fn the_reason_of_a_repeated_pair_is_reported_once() {
    let folder = tempfile::tempdir().unwrap();
    let world = World {
        unreliable: vec![(Search, 2, "baseline"), (Search, 2, "comparison")],
        dying: vec![(Search, 4, "comparison")],
        ..World::with(0.0, 0.002)
    };
    let mut reports = Vec::new();
    let mut listen = |progress: SuiteProgress<'_>| match progress {
        SuiteProgress::PairDiscarded { pair, why, .. } => reports.push((pair, why.to_owned())),
        SuiteProgress::PairEnded {
            pair,
            lost: Some(why),
            ..
        } => reports.push((pair, why.to_owned())),
        SuiteProgress::PairStarted {
            pair: 5, wanted, ..
        } => {
            assert_eq!((wanted.next_look, wanted.repeated), (6, 2));
        }
        _ => {}
    };
    let plan = suite([sequential("one", 20)]);
    let options = options(folder.path(), false);
    let mut mock = in_world(world);
    run_suite(&plan, &options, &mut mock, &Interrupt::new(), &mut listen).unwrap();
    assert_eq!(reports.len(), 2, "{reports:?}");
    assert!(
        reports[0].0 == 2 && reports[0].1.starts_with("baseline: "),
        "{reports:?}"
    );
    assert_eq!(reports[1], (4, "the target died in measure".to_owned()));
}

#[test]
fn beyond_a_quarter_of_repeats_the_machine_is_unfit() {
    let world = World {
        unreliable: (1..=99).map(|pair| (Search, pair, "baseline")).collect(),
        ..World::with(0.10, 0.002)
    };
    let came = Came::of(sequential("one", 8), world);
    let expected = (Verdict::Invalid, Gate::Invalid, Some(StopReason::Unfit));
    assert_eq!(came.stopped(), expected);
    // Two of eight may be repeated.
    assert_eq!(came.pairs, places(Search, 3));
}

/// Runs a suite that is interrupted at `place` and resumed. Returns its result and the pairs of its
/// two sessions.
fn resumed(
    plan: &SuitePlan,
    world: &World,
    place: (RunStage, u32, u32),
) -> (SuiteOutcome, Value, [Vec<(RunStage, u32)>; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let mut first = interrupted_at(world.clone(), place);
    let outcome = {
        let mut ignore = |_: SuiteProgress<'_>| {};
        let options = options(folder.path(), false);
        run_suite(plan, &options, &mut first, &Interrupt::new(), &mut ignore).unwrap()
    };
    assert_eq!(outcome.interrupted, Some(2));
    let mut second = in_world(world.clone());
    let outcome = run(plan, &options(folder.path(), true), &mut second).unwrap();
    let record = record(folder.path());
    (outcome, record, [first.pairs(), second.pairs()])
}

#[test]
fn a_suite_that_was_interrupted_in_either_stage_has_the_same_result() {
    let world = World {
        unreliable: vec![(Search, 2, "comparison")],
        dying: vec![(Search, 3, "baseline"), (Confirm, 2, "baseline")],
        ..World::with(0.10, 0.004)
    };
    let item = sequential("one", 12);
    let plan = suite([item.clone()]);
    let whole = Came::of(item, world.clone());
    assert_eq!(whole.stopped().2, Some(StopReason::Confirmed));
    for place in [
        (Search, 1, 1),
        (Search, 4, 0),
        (Search, 6, 1),
        (Confirm, 1, 0),
        (Confirm, 4, 1),
    ] {
        let (outcome, record, [before, after]) = resumed(&plan, &world, place);
        assert_eq!(before.last(), Some(&(place.0, place.1)), "{place:?}");
        assert_eq!(after.first(), Some(&(place.0, place.1)), "{place:?}");
        let all = [&before[..before.len() - 1], &after[..]].concat();
        assert_eq!(all, whole.pairs, "{place:?}");
        assert_eq!(record["looks"], whole.record["looks"], "{place:?}");
        assert_eq!(record["pairs"], whole.record["pairs"], "{place:?}");
        let verdict = &outcome.verdicts[0];
        let same = (verdict.verdict, verdict.gate, verdict.stopped);
        assert_eq!(same, whole.stopped(), "{place:?}");
    }
}

#[test]
fn both_runs_of_a_sliced_pair_are_one_call() {
    for design in [DesignPlan::Duet, DesignPlan::SLICED] {
        let folder = tempfile::tempdir().unwrap();
        let plan = suite([ExperimentPlan {
            design,
            ..sequential("one", 20)
        }]);
        let mut mock = in_world(World::with(0.10, 0.002));
        let outcome = run(&plan, &options(folder.path(), false), &mut mock).unwrap();
        assert_eq!(outcome.verdicts[0].stopped, Some(StopReason::Confirmed));
        assert_eq!(mock.designs.len(), 10);
        assert!(mock.designs.iter().all(|item| item.0 == design));
        for (index, (_, seed)) in mock.designs.iter().enumerate() {
            assert!(mock.designs[index + 1..].iter().all(|item| item.1 != *seed));
        }
        for pair in mock.requests.chunks(2) {
            let item = pair[0].identity.as_ref().unwrap();
            let order = order_within(&plan.seed, "one", item.stage, 2, item.pair);
            assert_eq!(item.variant, ["baseline", "comparison"][order[0]]);
            assert_eq!(item.position, 0);
            assert_eq!(pair[1].identity.as_ref().unwrap().position, 1);
            assert_ne!(pair[0].places.state, pair[1].places.state);
            assert_eq!(pair[0].plan.generators, pair[1].plan.generators);
        }
    }
}

#[test]
fn a_sliced_pair_is_lost_as_a_whole() {
    let world = World {
        dying: vec![(Search, 2, "comparison")],
        ..World::with(0.0, 0.002)
    };
    let item = ExperimentPlan {
        design: DesignPlan::SLICED,
        ..sequential("one", 20)
    };
    let came = Came::of(item, world);
    assert_eq!(came.pairs, places(Search, 7));
    assert_eq!(came.outcome.verdicts[0].pairs_discarded, 1);
}

#[test]
fn three_variants_cannot_share_a_pair_s_time() {
    let folder = tempfile::tempdir().unwrap();
    let mut item = ExperimentPlan {
        design: DesignPlan::Duet,
        ..experiment("one", 4)
    };
    item.variants
        .push(VariantPlan::unchanged("third".to_owned()));
    let mut mock = in_world(World::default());
    let error = run(&suite([item]), &options(folder.path(), false), &mut mock).unwrap_err();
    assert!(
        matches!(&error, SuiteError::Design { reason } if reason.contains("`one` has 3")),
        "{error}"
    );
    assert!(mock.requests.is_empty());
    assert!(!folder.path().join("results").exists());
}

#[test]
fn each_of_three_variants_is_judged_against_the_baseline() {
    let mut item = sequential("one", 20);
    item.variants
        .push(VariantPlan::unchanged("third".to_owned()));
    let world = World {
        effects: [("comparison", (0.0, 0.0)), ("third", (0.10, 0.10))].into(),
        ..World::with(0.0, 0.002)
    };
    let came = Came::of(item, world);
    let (verdict, gate, stopped) = came.stopped();
    assert_eq!((verdict, gate), (Verdict::Regressed, Gate::Regressed));
    assert_eq!(stopped, Some(StopReason::Confirmed));
    let goals = &came.outcome.verdicts[0].goals;
    let verdicts: Vec<Verdict> = goals.iter().map(|goal| goal.verdict).collect();
    assert_eq!(verdicts, [Verdict::Equivalent, Verdict::Regressed]);
    let orders = came.record["pairs"].as_array().unwrap().iter();
    for pair in orders {
        assert_eq!(pair["order"].as_array().unwrap().len(), 3);
    }
}

#[test]
fn seeds_of_the_stages_differ() {
    let folder = tempfile::tempdir().unwrap();
    let mut mock = in_world(World::with(0.10, 0.002));
    run(
        &suite([sequential("one", 20)]),
        &options(folder.path(), false),
        &mut mock,
    )
    .unwrap();
    let first_of = |stage| {
        let mut runs = mock.requests.iter();
        runs.find(|run| {
            run.identity
                .as_ref()
                .is_some_and(|item| item.stage == stage)
        })
        .unwrap()
    };
    let (search, confirm) = (first_of(Search), first_of(Confirm));
    assert_ne!(search.plan.seed, confirm.plan.seed);
    assert_ne!(
        search.plan.generators[0].seed,
        confirm.plan.generators[0].seed
    );
    assert_ne!(search.places.state, confirm.places.state);
}

#[test]
fn the_warm_up_that_was_found_holds_for_all_runs_and_is_written_down() {
    let folder = tempfile::tempdir().unwrap();
    let item = ExperimentPlan {
        warmup: WarmupPlan::Measured,
        ..experiment("one", 5)
    };
    let stated = item.run_plan.phases.warmup;
    let measured = stated + Nanos::from_secs(3);
    let plan = suite([item]);
    let world = World {
        steady_from: Some(measured),
        ..World::with(0.10, 0.002)
    };
    let mut mock = in_world(world.clone());
    let outcome = run(&plan, &options(folder.path(), false), &mut mock).unwrap();
    assert_eq!(outcome.verdicts[0].verdict, Verdict::Regressed);
    assert_eq!(outcome.verdicts[0].warmup, measured);
    // The first four at once, then each as it is there; none twice.
    assert_eq!(mock.summed_up.len(), 10);
    assert!(mock.summed_up.iter().all(|item| item.1 == measured));
    let text = fs::read(folder.path().join("results/one/warmup.json")).unwrap();
    let record: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(record["found_ns"], measured.as_u64());
    assert_eq!(record["stated_ns"], stated.as_u64());
    // Frozen: what is resumed does not look for it again.
    let mut mock = in_world(world);
    run(&plan, &options(folder.path(), true), &mut mock).unwrap();
    assert!(mock.requests.is_empty() && mock.summed_up.is_empty());
}

#[test]
fn regressions_that_nothing_confirms_share_one_error_budget() {
    // One at the edge of what is found, beside many that show nothing.
    let folder = tempfile::tempdir().unwrap();
    let names = [
        "one", "two", "three", "four", "five", "six", "seven", "eight",
    ];
    let plan = suite(names.map(|name| experiment(name, 6)));
    let alone = suite([experiment("one", 6)]);
    let world = |item: &stillwell_capture::RunIdentity, _: &Interrupt| {
        let scatter = [1.0, 1.08, 1.02, 1.04, 1.09, 1.05][item.pair as usize % 6];
        let cost = match (item.experiment.as_str(), item.variant.as_str()) {
            ("one", "comparison") => 100.0 * scatter,
            (_, "comparison") => 100.0 + f64::from(item.pair % 3) * 0.1,
            _ => 100.0,
        };
        (stillwell_capture::RunOutcome::Completed, cost)
    };
    let single = tempfile::tempdir().unwrap();
    let mut mock = crate::mock::Mock::new(world);
    let outcome = run(&alone, &options(single.path(), false), &mut mock).unwrap();
    assert_eq!(
        outcome.verdicts[0].verdict,
        Verdict::Regressed,
        "{:?}",
        outcome.verdicts[0].goals
    );
    let mut mock = crate::mock::Mock::new(world);
    let outcome = run(&plan, &options(folder.path(), false), &mut mock).unwrap();
    assert_eq!(outcome.budget.demoted, ["one"], "{:?}", outcome.budget);
    assert_ne!(outcome.verdicts[0].verdict, Verdict::Regressed);
    assert_ne!(outcome.verdicts[0].gate, Gate::Regressed);
    // What is kept says the same.
    assert_ne!(record(folder.path())["verdict"], "regressed");
}

#[test]
fn every_look_reports_what_is_known_and_how_long_it_may_take() {
    let folder = tempfile::tempdir().unwrap();
    let plan = suite([sequential("one", 8), sequential("two", 8)]);
    let mut reports = Vec::new();
    let mut listen = |progress: SuiteProgress<'_>| {
        if let SuiteProgress::Look {
            standing,
            left,
            left_in_all,
        } = progress
        {
            assert!(
                left.least <= left.likely && left.likely <= left.most,
                "{left:?}"
            );
            assert!(left.most <= left_in_all.most);
            reports.push((
                standing.verdict.name.clone(),
                standing.verdict.pairs_used,
                left.most,
            ));
        }
    };
    let options = options(folder.path(), false);
    let mut mock = in_world(noisy());
    run_suite(&plan, &options, &mut mock, &Interrupt::new(), &mut listen).unwrap();
    let looks: Vec<(&str, u32)> = reports
        .iter()
        .map(|item| (item.0.as_str(), item.1))
        .collect();
    let each = |name| [(name, 4), (name, 6), (name, 8)];
    assert_eq!(looks, [each("one"), each("two")].concat());
    assert_eq!(reports[2].2, Nanos::ZERO);
}
