use proptest::prelude::*;
use stillwell_metric::Outcome;
use stillwell_plan::load::LoadPlanParts;

use super::*;
use crate::load::folder::tests::capture;

fn plan(generators: u16, workers: u16) -> LoadPlan {
    let mut parts: LoadPlanParts = capture().manifest.plan.into();
    parts.workers = generators * workers;
    parts.client.connecting.connections = u32::from(parts.workers);
    LoadPlan::try_new(parts).unwrap()
}

fn result(index: usize) -> GeneratorResult {
    GeneratorResult {
        attempt: format!("a{index}"),
        node: format!("n{index}"),
        boot: format!("b{}", index % 2),
        began: Nanos::ZERO,
        ended: Nanos::SECOND,
        start_delay: Nanos::new(index as u64),
        workers: 1,
        evidence: Default::default(),
    }
}

/// A capture of one worker that recorded `samples`: latency, and number of an outcome.
fn part(samples: &[(u64, usize)]) -> LoadCapture {
    let mut part = capture();
    part.manifest.workers.truncate(1);
    part.times.truncate(1);
    part.route_times.truncate(1);
    let mut histogram = empty_histogram();
    let worker = &mut part.manifest.workers[0];
    worker.counts.outcomes = [0; Outcome::ALL.len()];
    for (latency, outcome) in samples {
        histogram.record(*latency).unwrap();
        worker.counts.outcomes[outcome % Outcome::ALL.len()] += 1;
        *worker.counts.statuses.entry(200).or_default() += 1;
    }
    let second = |chunk: &[(u64, usize)]| {
        let mut times = empty_histogram();
        for (latency, _) in chunk {
            times.record(*latency).unwrap();
        }
        LoadSecond {
            length: Nanos::SECOND,
            sent: chunk.len() as u64,
            service: PackedHistogram::new(&times),
            ..LoadSecond::default()
        }
    };
    part.seconds = samples.chunks(7).map(second).collect();
    part.times[0] = LoadTime::all().map(|_| Some(histogram.clone())).collect();
    part
}

fn sum(capture: &LoadCapture, time: LoadTime) -> Histogram<u64> {
    let mut all = empty_histogram();
    for worker in capture.workers() {
        add_histogram(&mut all, worker.times(time));
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]
    /// Percentiles of parts were averaged by other tools.
    #[test]
    fn for_all_splits_the_merge_of_the_parts_is_the_whole(
        samples in prop::collection::vec((1_u64..3_000_000_000_000, 0_usize..20), 1..300),
        generators in prop::sample::select(vec![1_u16, 2, 3, 7, 70]),
    ) {
        let of = usize::from(generators);
        let mut merge = LoadMerge::new(plan(generators, 1), "local", generators);
        let mut order: Vec<usize> = (0..of).collect();
        order.rotate_left(of / 2);
        for index in order {
            let samples: Vec<_> = samples.iter().copied().skip(index).step_by(of).collect();
            merge.add(index, result(index), part(&samples)).unwrap();
        }
        let merged = merge.finish().unwrap();
        let whole = part(&samples);
        let time = LoadTime::Service(Outcome::Ok);
        prop_assert_eq!(sum(&merged, time), sum(&whole, time));
        for outcome in Outcome::ALL {
            let count = |capture: &LoadCapture| capture.sum(|counts| counts.ended(outcome));
            prop_assert_eq!(count(&merged), count(&whole));
        }
        let mut seconds = empty_histogram();
        for second in &merged.seconds {
            add_histogram(&mut seconds, &second.service.unpack());
        }
        prop_assert_eq!(seconds, sum(&whole, time));
        let sent: u64 = merged.seconds.iter().map(|second| second.sent).sum();
        prop_assert_eq!(sent, samples.len() as u64);
        let routes = |capture: &LoadCapture| -> u64 {
            let workers = capture.manifest.workers.iter();
            workers.flat_map(|worker| &worker.routes).map(|route| route.outcomes[0]).sum()
        };
        prop_assert_eq!(routes(&merged), routes(&whole) * u64::from(generators));
        prop_assert_eq!(merged.manifest.workers.len(), of);
        prop_assert!(merged.manifest.missing_generators().next().is_none());
    }
}

#[test]
fn a_generator_counts_once_and_a_missing_one_is_named() {
    let mut merge = LoadMerge::new(plan(3, 1), "local", 3);
    merge.add(1, result(1), part(&[(5, 0)])).unwrap();
    let again = merge.add(1, result(1), part(&[(5, 0)]));
    assert_eq!(again, Err(MergeError::Generator { index: 1, of: 3 }));
    let unknown = merge.add(3, result(1), part(&[(5, 0)]));
    assert_eq!(unknown, Err(MergeError::Generator { index: 3, of: 3 }));
    let foreign = merge.add(0, result(0), capture());
    assert!(
        matches!(foreign, Err(MergeError::Foreign { index: 0, .. })),
        "{foreign:?}"
    );
    merge.miss(0, "killed".to_owned());
    merge.miss(1, "it has a result".to_owned());
    let merged = merge.finish().unwrap();
    let missing: Vec<_> = merged.manifest.missing_generators().collect();
    assert_eq!(missing, [(0, "killed"), (2, "no result arrived")]);
    assert!(
        matches!(&merged.manifest.end, LoadEnd::PartFailed(why) if why.contains("generator 0")),
        "{:?}",
        merged.manifest.end
    );
    let evidence = merged.evidence();
    assert_eq!(evidence.generators.len(), 3);
    assert_eq!(evidence.generators[0].evidence, Err("killed".to_owned()));
    let text = serde_json::to_string(&merged.manifest).unwrap();
    assert_eq!(
        serde_json::from_str::<LoadManifest>(&text).unwrap(),
        merged.manifest
    );
}

#[test]
fn without_any_result_there_is_no_capture() {
    let mut merge = LoadMerge::new(plan(2, 1), "local", 2);
    merge.miss(0, "refused".to_owned());
    let nothing = merge.finish().map(|_| ());
    assert_eq!(
        nothing,
        Err(MergeError::Nothing {
            why: "refused".to_owned()
        })
    );
}

#[test]
fn machines_that_generators_share_are_counted_once() {
    let mut merge = LoadMerge::new(plan(3, 1), "local", 3);
    for index in 0..3 {
        let mut part = part(&[(9, 0)]);
        part.manifest.host = Some(HostCpu {
            busy: Nanos::SECOND,
            steal: Nanos::ZERO,
            cpus: 4,
        });
        merge.add(index, result(index), part).unwrap();
    }
    let merged = merge.finish().unwrap();
    assert_eq!(merged.manifest.host.unwrap().cpus, 8);
    let fleet = merged.manifest.fleet.unwrap();
    assert_eq!((fleet.machines(), fleet.held()), (2, Nanos::from_secs(3)));
    assert_eq!(fleet.start_delay_max(), Nanos::new(2));
}
