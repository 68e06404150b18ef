use proptest::prelude::*;
use stillwell_capture::{LedgerRecord, Restart};
use stillwell_metric::{Labels, Metric, catalogue};
use stillwell_plan::goal::LatencyQuantile;
use stillwell_plan::targets::ComparedTargetPlan;
use stillwell_plan::{GoalMetric, PlacementPlan};
use stillwell_units::{Moment, Nanos, Seed};

use super::*;
use crate::fixture::{TestRun, generator, lost_of_100, run_plan, sink};

fn target(name: &str, durability: Option<Durability>) -> ComparedTargetPlan {
    ComparedTargetPlan {
        name: name.to_owned(),
        target: run_plan().target,
        program: None,
        version: None,
        files: Vec::new(),
        durability,
        delivery: None,
    }
}

fn plan(targets: Vec<ComparedTargetPlan>, runs: u32) -> TargetsPlan {
    let run_plan = stillwell_plan::RunPlan {
        placement: PlacementPlan::default(),
        ..run_plan()
    };
    TargetsPlan {
        name: "e".to_owned(),
        summary: None,
        folder: "/e".into(),
        run_plan,
        targets,
        runs,
        seed: Seed::from_number(1),
    }
}

/// A healthy run with so many CPU nanoseconds a second, bytes a second taken and
/// sent to storage.
fn run(name: &str, block: u32, cpu: f64, taken: f64, written: f64) -> RunSummary {
    TestRun::healthy()
        .placed(name, block)
        .with(catalogue::TARGET_CPU, Labels::none(), cpu)
        .with(catalogue::BYTES_WRITTEN, generator(), taken)
        .with(catalogue::BYTES_RECEIVED, sink(), taken)
        .with(catalogue::TARGET_WRITE_BYTES, Labels::none(), written)
        .with(catalogue::HOST_DISK_FLUSHES, Labels::none(), 0.0)
        .summary()
}

fn cell_of(verdict: &TargetsVerdict, metric: TargetsMetric, column: usize) -> &TargetsCell {
    let row = verdict
        .rows
        .iter()
        .find(|row| row.metric == metric)
        .unwrap();
    &row.cells[column]
}

fn place_of(verdict: &TargetsVerdict, metric: TargetsMetric, column: usize) -> Place {
    match cell_of(verdict, metric, column) {
        TargetsCell::Value { place, .. } => *place,
        right => panic!("{right:?}"),
    }
}

/// Some runs of `a` and `b`, `b` with `factor` times the CPU.
fn two(blocks: u32, factor: f64, taken: [f64; 2]) -> (TargetsPlan, Vec<RunSummary>) {
    let plan = plan(vec![target("a", None), target("b", None)], blocks);
    let runs = (1..=blocks).flat_map(|block| {
        let drift = 1.0 + 0.1 * f64::from(block) + 0.001 * f64::from(block * block % 7);
        [
            run("a", block, 0.3e9 * drift, taken[0], 0.0),
            run(
                "b",
                block,
                0.3e9 * factor * (1.0 + 0.1 * f64::from(block)),
                taken[1],
                0.0,
            ),
        ]
    });
    (plan, runs.collect())
}

#[test]
fn a_certain_difference_has_a_winner_although_blocks_drift() {
    let (plan, runs) = two(6, 1.3, [100_000.0; 2]);
    let verdict = judge_targets(&plan, &runs);
    assert_eq!(
        place_of(&verdict, TargetsMetric::CpuPerGib, 0),
        Place::Winner
    );
    assert_eq!(
        place_of(&verdict, TargetsMetric::CpuPerGib, 1),
        Place::Behind
    );
}

#[test]
fn what_is_not_certain_is_a_tie() {
    let (plan, runs) = two(6, 1.0, [100_000.0; 2]);
    let verdict = judge_targets(&plan, &runs);
    for column in [0, 1] {
        assert_eq!(
            place_of(&verdict, TargetsMetric::Delivered, column),
            Place::Tied
        );
        assert_eq!(
            place_of(&verdict, TargetsMetric::MemoryPeak, column),
            Place::Tied
        );
    }
}

/// Two that took the same had no winner, because a third that is not compared with them
/// took less.
#[test]
fn equal_work_is_required_of_compared_targets() {
    let claims = [
        None,
        None,
        Some(Durability::Memory),
        Some(Durability::Memory),
    ];
    let names = ["a", "b", "c", "d"];
    let targets = names.into_iter().zip(claims);
    let targets = targets.map(|(name, claim)| target(name, claim));
    let plan = plan(targets.collect(), 6);
    let taken = [100_000.0, 100_000.0, 100_000.0, 40_000.0];
    let runs: Vec<RunSummary> = (1..=6)
        .flat_map(|block| {
            let of = names.into_iter().zip(taken);
            of.map(move |(name, taken)| run(name, block, 0.3e9, taken, 0.0))
        })
        .collect();
    let verdict = judge_targets(&plan, &runs);
    let mut totals = verdict.rows.iter().filter(|row| {
        let values = |cell: &&TargetsCell| matches!(cell, TargetsCell::Value { .. });
        row.metric.ranking() == Ranking::LowerForEqualWork
            && row.cells.iter().filter(values).count() == 4
    });
    let row = totals.next().unwrap();
    assert_eq!(
        row.unranked,
        ["`d` received 40 % of the bytes that `c` received"]
    );
    let compared: Vec<_> = row
        .pairs
        .iter()
        .map(|pair| (pair.left, pair.right))
        .collect();
    assert_eq!(compared, [(0, 1)]);
}

#[test]
fn three_blocks_have_no_winner() {
    let (plan, runs) = two(3, 2.0, [100_000.0; 2]);
    let verdict = judge_targets(&plan, &runs);
    assert_eq!(place_of(&verdict, TargetsMetric::CpuPerGib, 0), Place::None);
    assert!(
        verdict.remarks[0].contains("at least 4"),
        "{:?}",
        verdict.remarks
    );
}

/// The slowest target of a table of totals used least of everything, and won it.
#[test]
fn a_target_with_less_work_does_not_win_by_using_less() {
    let (plan, runs) = two(6, 0.5, [100_000.0, 40_000.0]);
    let verdict = judge_targets(&plan, &runs);
    let totals = verdict
        .rows
        .iter()
        .filter(|row| row.metric.ranking() == Ranking::LowerForEqualWork);
    for row in totals {
        assert_eq!(
            row.unranked,
            ["`b` received 40 % of the bytes that `a` received"]
        );
        assert_eq!(row.pairs, []);
    }
    // For each GiB it is the other way round.
    assert_eq!(
        place_of(&verdict, TargetsMetric::CpuPerGib, 0),
        Place::Winner
    );
}

#[test]
fn a_claim_of_a_disk_is_held_against_what_was_written() {
    for (claim, written, invalid) in [
        (Durability::Memory, 0.0, None),
        (Durability::Disk, 90_000.0, None),
        (
            Durability::Disk,
            1_000.0,
            Some("claims `disk` but sent 0.01 bytes to storage"),
        ),
        (
            Durability::Synced,
            90_000.0,
            Some("claims `synced`, and no disk of the host"),
        ),
    ] {
        let plan = plan(vec![target("a", Some(claim))], 4);
        let runs: Vec<_> = (1..=4)
            .map(|block| run("a", block, 1e8, 100_000.0, written))
            .collect();
        let verdict = judge_targets(&plan, &runs);
        let result = verdict.columns[0].invalid.as_deref();
        match invalid {
            None => assert_eq!(result, None),
            Some(expected) => {
                assert!(
                    result.is_some_and(|why| why.contains(expected)),
                    "{result:?}"
                );
                let cell = cell_of(&verdict, TargetsMetric::Accepted, 0);
                assert!(matches!(cell, TargetsCell::Invalid { .. }), "{cell:?}");
                assert_eq!(targets_exit_code(&[verdict]), 4);
            }
        }
    }
}

/// Its claim passed as if it had been kept.
#[test]
fn a_claim_without_figures_is_not_checked() {
    let bare = |block, missing| {
        let test_run = TestRun::healthy().placed("a", block).with(
            catalogue::TARGET_WRITE_BYTES,
            Labels::none(),
            1e6,
        );
        test_run.without(missing).summary()
    };
    for (missing, claim, expected) in [
        (
            catalogue::TARGET_WRITE_BYTES,
            Durability::Disk,
            "its writes were not recorded",
        ),
        (
            catalogue::HOST_DISK_FLUSHES,
            Durability::Synced,
            "flushes of the host's disks",
        ),
        (
            catalogue::BYTES_WRITTEN,
            Durability::Disk,
            "nothing was sent to it",
        ),
    ] {
        let plan = plan(vec![target("a", Some(claim))], 4);
        let runs: Vec<_> = (1..=4).map(|block| bare(block, missing)).collect();
        let verdict = judge_targets(&plan, &runs);
        let column = &verdict.columns[0];
        let reported = column.unchecked.as_deref().unwrap_or_default();
        assert!(reported.contains(expected), "{reported}");
        assert_eq!(column.invalid, None);
    }
}

/// A dead run's intake counted as work, and its writes did not.
#[test]
fn runs_that_did_not_end_count_neither_as_work_nor_as_written() {
    let mut plan = plan(
        vec![target("a", Some(Durability::Disk)), target("b", None)],
        4,
    );
    plan.targets[1].durability = Some(Durability::Disk);
    let died = |block| {
        let mut test_run = TestRun::healthy().placed("a", block);
        test_run.set(catalogue::BYTES_WRITTEN, generator(), 1e9);
        test_run.manifest.outcome = stillwell_capture::RunOutcome::TargetDied {
            phase: stillwell_plan::Phase::Measure,
        };
        test_run.summary()
    };
    let mut runs: Vec<_> = (1..=3)
        .flat_map(|block| ["a", "b"].map(|name| run(name, block, 1e8, 1e5, 1e5)))
        .collect();
    runs.extend([died(4), run("b", 4, 1e8, 1e5, 1e5)]);
    let verdict = judge_targets(&plan, &runs);
    let column = &verdict.columns[0];
    assert_eq!((&column.invalid, &column.unchecked), (&None, &None));
    assert!(verdict.rows.iter().all(|row| row.unranked.is_empty()));
    // A run less than planned is no whole result.
    assert_eq!(targets_exit_code(&[verdict]), 4);
}

#[test]
fn a_delivery_that_is_expected_and_unknown_is_no_success() {
    let (mut plan, runs) = two(4, 1.3, [100_000.0; 2]);
    assert_eq!(targets_exit_code(&[judge_targets(&plan, &runs)]), 0);
    plan.targets[0].delivery = Some(Delivery::AtLeastOnce);
    assert_eq!(targets_exit_code(&[judge_targets(&plan, &runs)]), 4);
}

/// A run whose events went astray was judged by its answers, beside arrivals.
#[test]
fn times_of_a_table_are_all_of_events_or_all_of_answers() {
    let answers = run("a", 1, 1e8, 1e5, 0.0);
    assert_eq!(Latencies::of([&answers].into_iter()), Latencies::Answers);
    let mut stamped = answers.clone();
    let goal = GoalMetric::EventLatency(LatencyQuantile::P50);
    stamped.values.insert(goal, crate::Measured::Value(1e6));
    let latencies = Latencies::of([&answers, &stamped].into_iter());
    assert_eq!(latencies, Latencies::Events);
    let value = |run| TargetsMetric::LatencyP50.value(run, latencies);
    assert_eq!(value(&stamped), Ok(1e-3));
    assert!(value(&answers).is_err());
}

#[test]
fn targets_that_keep_unlike_things_are_not_compared() {
    let all = vec![
        target("a", Some(Durability::Memory)),
        target("b", Some(Durability::Disk)),
        target("c", Some(Durability::Disk)),
    ];
    let plan = plan(all, 4);
    let runs: Vec<_> = (1..=4)
        .flat_map(|block| {
            [("a", 1e8, 0.0), ("b", 3e8, 1e5), ("c", 5e8, 1e5)]
                .map(|(name, cpu, written)| run(name, block, cpu + f64::from(block), 1e5, written))
        })
        .collect();
    let verdict = judge_targets(&plan, &runs);
    let places = [0, 1, 2].map(|at| place_of(&verdict, TargetsMetric::CpuPerGib, at));
    assert_eq!(places, [Place::None, Place::Winner, Place::Behind]);
}

/// Means then came from the rest, without a warning.
#[test]
fn unreliable_runs_that_are_left_out_are_reported() {
    let (plan, mut runs) = two(4, 1.5, [100_000.0; 2]);
    assert_eq!(judge_targets(&plan, &runs).remarks, [""; 0]);
    let stolen = |name, block| {
        let test_run = TestRun::healthy().placed(name, block);
        test_run
            .with(catalogue::HOST_CPU_STEAL, Labels::none(), 0.2e9)
            .summary()
    };
    runs[0] = stolen("a", 1);
    let remarks = judge_targets(&plan, &runs).remarks;
    assert_eq!(remarks.len(), 1, "{remarks:?}");
    assert!(
        remarks[0].starts_with("`a`: 1 of 4 runs left out of the comparison: CPU steal"),
        "{remarks:?}"
    );
    // Where none is left, each number says why.
    for (at, block) in [(0, 1), (2, 2), (4, 3), (6, 4)] {
        runs[at] = stolen("a", block);
    }
    let verdict = judge_targets(&plan, &runs);
    assert_eq!(verdict.remarks, [""; 0]);
    // What was not measured is not unreliable.
    let rows = verdict.rows.iter();
    let mut cells = rows
        .filter(|row| row.metric == TargetsMetric::Recovery)
        .flat_map(|row| &row.cells);
    assert!(cells.all(|cell| !matches!(cell, TargetsCell::Invalid { .. })));
}

#[test]
fn a_target_that_always_dies_is_invalid_and_the_others_stay() {
    let (mut plan, mut runs) = two(4, 1.5, [100_000.0; 2]);
    plan.targets.push(target("c", None));
    for block in 1..=4 {
        let mut test_run = TestRun::healthy().placed("c", block);
        test_run.manifest.outcome = stillwell_capture::RunOutcome::TargetDied {
            phase: stillwell_plan::Phase::Measure,
        };
        runs.push(test_run.summary());
    }
    let verdict = judge_targets(&plan, &runs);
    let why = verdict.columns[2].invalid.as_deref().unwrap();
    assert!(why.contains("died"), "{why}");
    assert_eq!(
        place_of(&verdict, TargetsMetric::CpuPerGib, 0),
        Place::Winner
    );
}

#[test]
fn what_is_seen_of_delivery_is_held_against_what_is_expected() {
    use Delivery::{AtLeastOnce, AtMostOnce, ExactlyOnce};
    let result = |lost, duplicated| DeliveryFound {
        runs: 1,
        sent: 10,
        lost,
        duplicated,
        ..DeliveryFound::default()
    };
    for (left, seen, kept) in [
        (result(0, 0), Some(ExactlyOnce), [true, true, true]),
        (result(0, 1), Some(AtLeastOnce), [false, true, false]),
        (result(1, 0), Some(AtMostOnce), [true, false, false]),
        (result(1, 1), None, [false, false, false]),
    ] {
        assert_eq!(left.seen(), seen);
        let keeps =
            [AtMostOnce, AtLeastOnce, ExactlyOnce].map(|expected| left.keeps(Some(expected)));
        assert_eq!(keeps, kept.map(Some), "{left:?}");
        assert_eq!(left.keeps(None), None);
    }
    let nothing = DeliveryFound::default();
    assert_eq!(
        (nothing.seen(), nothing.keeps(Some(AtMostOnce))),
        (None, None)
    );
    let open = DeliveryFound {
        unknown: Some("open".to_owned()),
        ..result(0, 0)
    };
    assert_eq!((open.seen(), open.keeps(Some(ExactlyOnce))), (None, None));
}

/// They counted as lost by the target.
#[test]
fn events_that_a_sink_may_have_missed_are_not_proven_lost() {
    let delivery = |missed: Option<Metric>, lost| {
        let mut test_run = TestRun::healthy();
        if let Some(metric) = missed {
            test_run.set(metric, sink(), 2.0);
        }
        test_run.manifest.ledger = Some(LedgerRecord {
            generators: vec![lost_of_100(lost)],
            quiet: true,
            ..LedgerRecord::default()
        });
        DeliveryFound::of(&[&test_run.summary()])
    };
    for metric in [catalogue::BODIES_MALFORMED, catalogue::DATAGRAMS_DROPPED] {
        let unproven = delivery(Some(metric), 3);
        assert_eq!((unproven.lost, unproven.seen()), (0, None));
        assert_eq!(unproven.keeps(Some(Delivery::AtLeastOnce)), None);
        let reason = unproven.unknown.unwrap();
        assert!(reason.contains("sink s"), "{reason}");
        let all_arrived = delivery(Some(metric), 0);
        assert_eq!(all_arrived.seen(), Some(Delivery::ExactlyOnce));
    }
    let proven = delivery(None, 3);
    assert_eq!((proven.lost, proven.unknown), (3, None));
}

/// The best mean came first, and who was certainly worse than the second was tied
/// with both.
#[test]
fn a_target_that_another_is_certainly_better_than_is_behind() {
    let ranked: Vec<Ranked> = [1.0, 2.0, 3.0]
        .into_iter()
        .enumerate()
        .map(|(column, mean)| Ranked {
            column,
            group: 0,
            by_block: vec![(1, mean)],
        })
        .collect();
    let group: Vec<&Ranked> = ranked.iter().collect();
    let pair = |left, right, change, p_value| PairFound {
        left,
        right,
        blocks: 6,
        change,
        p_value,
    };
    let places = |certain: [(f64, f64); 3]| {
        let [ab, ac, bc] = certain;
        let pairs = [
            pair(0, 1, ab.0, ab.1),
            pair(0, 2, ac.0, ac.1),
            pair(1, 2, bc.0, bc.1),
        ];
        let places = rank::places(&group, &pairs, false).into_iter();
        places.map(|(_, place)| place).collect::<Vec<_>>()
    };
    use Place::{Behind, Tied, Winner};
    let (certain, uncertain) = (0.001, 0.9);
    let second_beats_third = [(0.1, uncertain), (0.2, uncertain), (0.1, certain)];
    assert_eq!(places(second_beats_third), [Tied, Tied, Behind]);
    let second_beats_best = [(-0.1, certain), (0.2, uncertain), (0.1, certain)];
    assert_eq!(places(second_beats_best), [Behind, Winner, Behind]);
    let a_circle = [(0.1, certain), (-0.2, certain), (0.1, certain)];
    assert_eq!(places(a_circle), []);
}

proptest! {
    /// For all numbers: at most one winner, who is alone in front; else some that
    /// no target is certainly better than.
    #[test]
    fn one_winner_or_a_tie(
        values in proptest::collection::vec(
            proptest::collection::vec(1.0_f64..100.0, 6), 2..5),
        higher: bool,
    ) {
        let ranked: Vec<Ranked> = values.iter().enumerate().map(|(column, values)| Ranked {
            column,
            group: 0,
            by_block: (1..).zip(values.iter().copied()).collect(),
        }).collect();
        let pairs = rank::pairs(TargetsMetric::CpuPerGib, &ranked);
        let group: Vec<&Ranked> = ranked.iter().collect();
        let places = rank::places(&group, &pairs, higher);
        let count = |place| places.iter().filter(|(_, result)| *result == place).count();
        prop_assert_eq!(places.len(), ranked.len());
        match count(Place::Winner) {
            0 => prop_assert!(count(Place::Tied) >= 1),
            1 => prop_assert_eq!(count(Place::Tied), 0),
            more => prop_assert!(false, "{} winners", more),
        }
    }
}

#[test]
fn the_way_back_from_a_restart_is_a_row_where_a_step_ended_the_target() {
    let restart = |delivered: Option<u64>| Restart {
        moment: Moment::new(1_000),
        ended_after: Nanos::new(1),
        killed: false,
        started_after: Some(Nanos::new(2)),
        ready_after: Some(Nanos::new(3)),
        delivered_after: delivered.map(Nanos::from_millis),
    };
    let (plan, mut runs) = two(6, 1.0, [100_000.0; 2]);
    let verdict = judge_targets(&plan, &runs);
    let is_recovery = |row: &&TargetsRow| row.metric == TargetsMetric::Recovery;
    assert!(!verdict.rows.iter().any(|row| is_recovery(&row)));
    for (number, run) in (0..).zip(&mut runs) {
        let is_a = number % 2 == 0;
        // Of two the longest; what never delivered again has no number.
        run.figures.restarts = match is_a {
            true => vec![restart(Some(100)), restart(Some(900 + number % 3))],
            false => vec![restart(Some(5)), restart(None)],
        };
    }
    let verdict = judge_targets(&plan, &runs);
    let TargetsCell::Value { mean, runs, .. } = cell_of(&verdict, TargetsMetric::Recovery, 0)
    else {
        panic!("{:?}", verdict.rows);
    };
    assert!((0.900..0.903).contains(mean), "{mean}");
    assert_eq!(*runs, 6);
    let cell = cell_of(&verdict, TargetsMetric::Recovery, 1);
    assert!(
        matches!(cell, TargetsCell::Missing { reason } if reason.contains("nothing arrived")),
        "{cell:?}"
    );
}

#[test]
fn cpus_that_the_host_lacks_are_named_below_the_table() {
    let (plan, mut runs) = two(6, 1.0, [100_000.0; 2]);
    let lacks = RunNote::NotIsolated {
        what: "16 CPUs".to_owned(),
        why: "this process may use 2".to_owned(),
    };
    let text = "not isolated: 16 CPUs: this process may use 2";
    let remarks = |runs: &[RunSummary]| judge_targets(&plan, runs).remarks;
    assert_eq!(remarks(&runs), [""; 0]);
    for run in runs.iter_mut().step_by(2) {
        run.notes.push(lacks.clone());
    }
    assert_eq!(remarks(&runs), [format!("a: {text}")]);
    for run in runs.iter_mut().skip(1).step_by(2) {
        run.notes.push(lacks.clone());
    }
    assert_eq!(remarks(&runs), [text]);
}
