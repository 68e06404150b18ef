//! Tests of figures of a run while it goes on.

use std::cell::RefCell;

use proptest::prelude::*;
use stillwell_run::Interrupt;

use super::*;
use crate::store::{RetryBounds, Store};

const SECOND: u64 = 1_000_000_000;

fn start() -> Start {
    Start {
        at: clock::wall(),
        attempts: Vec::new(),
        clocks: Vec::new(),
        measured: Nanos::ZERO,
        boot: String::new(),
    }
}

/// A part that sends `rate` events each second, `millis` after the start.
fn totals(millis: u64, rate: u64) -> PartTotals {
    PartTotals {
        at: Nanos::from_millis(millis),
        totals: RunTotals {
            events_sent: millis * rate / 1_000,
            scheduled_units: [millis * rate / 1_000; 2],
            ..RunTotals::default()
        },
        latencies: Vec::new(),
    }
}

fn series(all: &[PartTotals]) -> PartSeries {
    let mut last = all.iter().rev().cloned();
    PartSeries {
        is_generator: true,
        next: 0,
        latest: last.next(),
        before: last.next(),
    }
}

fn figures(parts: Vec<PartSeries>) -> RunFigures {
    RunFigures {
        parts,
        ..RunFigures::new(&start(), std::iter::empty())
    }
}

fn events(beat: &Progress) -> (Moment, u64) {
    match beat {
        Progress::Beat { at, totals, .. } => (*at, totals.events_sent),
        other => panic!("{other:?}"),
    }
}

#[test]
fn signs_of_life_are_rarer_with_many_tasks_and_in_long_runs() {
    let every = |tasks, elapsed| beat_every(tasks, Nanos::from_secs(elapsed));
    assert_eq!(every(3, 10), Nanos::from_secs(2));
    assert_eq!(every(40, 10), Nanos::from_secs(5));
    assert_eq!(every(3, 200), Nanos::from_secs(4));
    assert_eq!(every(1_000, 36_000), Nanos::from_secs(10));
}

#[test]
fn a_part_reports_from_its_start_on_and_each_latency_once() {
    let part = PartFigures::default();
    let beat = |at: u64, events_sent| {
        let mut latencies = empty_histogram();
        latencies.record(1_000).unwrap();
        Progress::Beat {
            at: Moment::new(at * SECOND),
            totals: RunTotals {
                events_sent,
                ..RunTotals::default()
            },
            latencies: Some(Box::new(latencies)),
        }
    };
    part.take(beat(7, 0));
    part.begin(Moment::new(10 * SECOND));
    part.take(beat(9, 0));
    assert_eq!(part.totals(), None);
    part.take(beat(11, 500));
    part.take(beat(12, 1_000));
    let sign = part.totals().unwrap();
    assert_eq!(
        (sign.at, sign.totals.events_sent),
        (Nanos::from_secs(2), 1_000)
    );
    let latencies = |sign: &PartTotals| decode_histogram(&sign.latencies).map(|all| all.len());
    assert_eq!(latencies(&sign), Some(2));
    assert_eq!(latencies(&part.totals().unwrap()), None);
}

#[test]
fn figures_are_those_of_all_parts_at_one_time() {
    // One part gives its signs half a second later than the other.
    let mut run = figures(vec![
        series(&[totals(2_000, 100), totals(4_000, 100)]),
        series(&[totals(1_500, 200), totals(3_500, 200)]),
        PartSeries::default(),
    ]);
    assert!(run.beat(&|_| true).is_none(), "the target has given none");
    run.parts[2].latest = Some(PartTotals {
        at: Nanos::from_millis(4_000),
        totals: RunTotals {
            target_cpu: Some(Nanos::from_millis(70)),
            rss_bytes: Some(9),
            ..RunTotals::default()
        },
        latencies: Vec::new(),
    });
    let beat = run.beat(&|_| true).unwrap();
    let at = run.start + Nanos::from_millis(3_500);
    assert_eq!(events(&beat), (at, 350 + 700));
    assert!(run.beat(&|_| true).is_none(), "nothing is new");
    // A part that has ended is not waited for.
    run.parts[0] = series(&[totals(4_000, 100), totals(6_000, 100)]);
    run.parts[2].latest.as_mut().unwrap().at = Nanos::from_millis(6_000);
    let beat = run.beat(&|task| task != 1).unwrap();
    assert_eq!(events(&beat).1, 600 + 700);
}

#[test]
fn signs_in_a_store_become_phases_and_beats() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), true).unwrap();
    let store = JobStore::new(store, "a", RetryBounds::default()).unwrap();
    let write = |task, number, totals| {
        let sign = SignOfLife {
            requests: 0,
            length: Nanos::SECOND,
            totals,
        };
        let name = beat_name(task, number);
        store.create_json(&Interrupt::new(), &name, &sign).unwrap();
    };
    let mut run = RunFigures::new(&start(), [false, true].into_iter());
    let phases = PhasesPlan {
        warmup: Nanos::from_secs(3_600),
        ..PhasesPlan::default()
    };
    let shown = RefCell::new(Vec::new());
    let look = |run: &mut RunFigures| {
        run.next = clock::now();
        let show = |progress| shown.borrow_mut().push(progress);
        run.look(&store, &phases, &|_| true, &show);
        shown.take()
    };
    write(0, 0, None);
    write(0, 1, Some(totals(2_000, 100)));
    let begun = look(&mut run);
    let [Progress::Phase { phase, .. }] = begun.as_slice() else {
        panic!("{begun:?}");
    };
    assert_eq!(*phase, Phase::Warmup);
    write(1, 0, Some(totals(2_000, 300)));
    let beats = look(&mut run);
    assert_eq!(beats.iter().map(|beat| events(beat).1).sum::<u64>(), 800);
    assert!(look(&mut run).is_empty());
}

proptest! {
    /// Whenever each part gives its signs, the rate between two beats is that of all parts.
    #[test]
    fn times_of_signs_change_no_rate(
        rates in proptest::collection::vec(1_u64..1_000, 1..6),
        delays in proptest::collection::vec(0_u64..2_000, 6),
    ) {
        let sign = |task: usize, number: u64| {
            totals(number * 2_000 + delays[task], rates[task] * 1_000)
        };
        let mut run = figures(vec![PartSeries::default(); rates.len()]);
        let mut beats = Vec::new();
        for number in 1..6 {
            for task in 0..rates.len() {
                run.parts[task] = series(&[sign(task, number - 1), sign(task, number)]);
            }
            beats.extend(run.beat(&|_| true).as_ref().map(events));
        }
        prop_assert_eq!(beats.len(), 5);
        for pair in beats.windows(2) {
            let [(from, before), (to, after)] = pair else { unreachable!() };
            let seconds = to.since(*from).as_secs_f64();
            let rate = stillwell_units::float_from_u64(after - before) / seconds;
            let all: u64 = rates.iter().sum::<u64>() * 1_000;
            let all = stillwell_units::float_from_u64(all);
            prop_assert!((rate / all - 1.0).abs() < 1e-3, "{} of {}", rate, all);
        }
    }
}
