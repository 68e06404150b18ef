use std::collections::BTreeSet;

use proptest::prelude::*;
use stillwell_plan::payload::BlockShape;
use stillwell_plan::{PayloadFormat, PayloadPlan, RateShape};
use stillwell_units::{ByteSize, Nanos};

use super::*;

const SECOND: u64 = 1_000_000_000;

fn set() -> BlockSet {
    let plan = PayloadPlan {
        format: PayloadFormat::Ascii,
        blocks: BlockShape::UpTo {
            maximum: ByteSize::new(2000),
        },
        cache: ByteSize::new(50_000),
        repeats: false,
    };
    BlockSet::build(&plan, plan.cache, Seed::from_number(1), None).unwrap()
}

fn model(shape: Shape) -> Model {
    Model::new(set(), shape, RateUnit::Bytes, &Seed::from_number(9))
}

fn rate(per_second: f64) -> RatePlan {
    RatePlan {
        unit: RateUnit::Bytes,
        shape: RateShape::Constant { per_second },
    }
}

const SHAPE: Shape = Shape {
    logs: 3,
    depth_max: 3,
    rotations: 2,
    bytes_max: 10_000,
};

/// Every file, with its path.
fn files(model: &Model) -> Vec<(String, u64)> {
    let mut result = Vec::new();
    let mut folders = vec![(String::new(), ROOT)];
    while let Some((path, node)) = folders.pop() {
        for entry in model.entries(node).unwrap() {
            let below = format!("{path}/{}", entry.name);
            assert_eq!(
                entry.is_folder,
                model.node(entry.node) == Some(LogNode::Folder)
            );
            if [".", ".."].contains(&entry.name.as_str()) {
                continue;
            }
            assert_eq!(model.lookup(node, &entry.name), Some(entry.node));
            if entry.is_folder {
                folders.push((below, entry.node));
            } else {
                result.push((below, entry.node));
            }
        }
    }
    result.sort_unstable();
    result
}

fn content(model: &mut Model, node: u64) -> Vec<u8> {
    let mut out = Vec::new();
    model.read(node, 0, u32::MAX, &mut out);
    out
}

#[test]
fn logs_are_there_before_load_begins_and_are_empty() {
    let mut model = model(SHAPE);
    model.advance(Moment::new(SECOND));
    let result = files(&model);
    assert_eq!(result.len(), 3);
    for (path, node) in result {
        assert!(path.ends_with(".log"), "{path}");
        assert_eq!(content(&mut model, node), b"");
    }
    for name in ["", ".log", "x.log", ".log.1", "a.log.01", "a.log.-1"] {
        assert_eq!(model.lookup(ROOT, name), None, "{name}");
    }
}

#[test]
fn logs_lie_at_every_depth_up_to_the_maximum() {
    for depth_max in [0, 1, 3] {
        let model = model(Shape {
            logs: 30,
            depth_max,
            ..SHAPE
        });
        let paths = files(&model).into_iter();
        let depths = paths.map(|(path, _)| path.matches('/').count() - 1);
        let depths: BTreeSet<usize> = depths.collect();
        let expected: BTreeSet<usize> = (0..=usize::from(depth_max)).collect();
        assert_eq!(depths, expected);
    }
}

#[test]
fn a_log_grows_by_the_clock_and_not_by_requests() {
    let (mut often, mut once) = (model(SHAPE), model(SHAPE));
    let start = Moment::new(SECOND);
    for model in [&mut often, &mut once] {
        model.begin(&rate(30_000.0), start);
    }
    for tenth in 0..100 {
        often.advance(start + Nanos::from_millis(tenth * 100));
    }
    once.advance(start + Nanos::from_millis(9900));
    assert_eq!(often.totals(), once.totals());
    let shown = |model: &mut Model| {
        let result = files(model).into_iter();
        result
            .map(|(path, node)| (path, content(model, node)))
            .collect::<Vec<_>>()
    };
    assert!(shown(&mut often) == shown(&mut once));
    let bytes = once.totals().bytes;
    // A block of each log may be ahead of the schedule.
    assert!((297_000..297_000 + 3 * 2000).contains(&bytes), "{bytes}");
    let requested = once.requested_until(start + Nanos::from_millis(9900));
    assert!((requested - 297_000.0).abs() < 1.0, "{requested}");
    once.stop(start + Nanos::from_secs(10));
    let stopped = once.totals();
    once.advance(start + Nanos::from_secs(20));
    assert_eq!(once.totals(), stopped);
}

#[test]
fn parts_hold_whole_blocks_and_follow_each_other_in_the_payload() {
    let mut model = model(Shape {
        logs: 1,
        rotations: 200,
        ..SHAPE
    });
    model.begin(&rate(100_000.0), Moment::new(0));
    model.advance(Moment::new(SECOND));
    let mut result = files(&model);
    assert!(result.len() > 5);
    // The oldest part first.
    let age = |path: &str| {
        path.rsplit_once(".log.")
            .map_or(0, |(_, age)| age.parse::<u32>().unwrap())
    };
    result.sort_by_key(|(path, _)| std::cmp::Reverse(age(path)));
    let mut whole = Vec::new();
    for (_, node) in &result {
        let part = content(&mut model, *node);
        assert!(part.is_empty() || part.ends_with(b"\n"));
        whole.extend(part);
    }
    assert_eq!(whole.len() as u64, model.totals().bytes);
    let bytes = model.set.bytes();
    let cycle: Vec<u8> = bytes.iter().chain(bytes).copied().collect();
    let first = &whole[..bytes.len()];
    let at = cycle
        .windows(first.len())
        .position(|window| window == first)
        .unwrap();
    let expected = bytes.iter().cycle().skip(at).take(whole.len());
    assert!(whole.iter().eq(expected));
}

#[test]
fn what_goes_unread_is_missed_and_what_is_held_open_is_not_gone() {
    let mut model = model(Shape {
        logs: 1,
        rotations: 0,
        ..SHAPE
    });
    model.begin(&rate(20_000.0), Moment::new(0));
    model.advance(Moment::new(SECOND / 4));
    let (_, first) = files(&model)[0].clone();
    let mut out = Vec::new();
    model.read(first, 100, 50, &mut out);
    assert_eq!(out.len(), 50);
    assert!(model.open(first));
    model.advance(Moment::new(SECOND));
    let Some(LogNode::File { size, .. }) = model.node(first) else {
        panic!();
    };
    assert!(model.totals().deleted >= 1);
    assert_ne!(files(&model)[0].1, first);
    // An open descriptor still reads it.
    out.clear();
    model.read(first, size - 10, 50, &mut out);
    assert_eq!(out.len(), 10);
    let before = model.totals().missed;
    model.release(first);
    assert_eq!(model.totals().missed - before, size - 60);
    assert_eq!(model.node(first), None);
    assert!(!model.open(first));
}

/// Actions of a reader and of the clock.
#[derive(Clone, Debug)]
enum Happening {
    Pass(u64),
    Read(usize, u64, u32),
    Open(usize),
    Release(usize),
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        (0_u64..SECOND).prop_map(Happening::Pass),
        (0_usize..40, 0_u64..15_000, 0_u32..20_000).prop_map(|(f, o, s)| Happening::Read(f, o, s)),
        (0_usize..40).prop_map(Happening::Open),
        (0_usize..40).prop_map(Happening::Release),
    ]
}

proptest! {
    #[test]
    fn every_byte_is_read_missed_or_still_there(
        events in prop::collection::vec(happening(), 0..80),
        rotations in 0_u8..4,
        bytes_per_second in 1_000.0..80_000.0_f64,
    ) {
        let mut model = model(Shape { rotations, ..SHAPE });
        let mut now = Moment::new(0);
        model.begin(&rate(bytes_per_second), now);
        let mut open: Vec<u64> = Vec::new();
        for happening in events {
            match happening {
                Happening::Pass(length) => {
                    now = now + Nanos::new(length);
                    model.advance(now);
                }
                Happening::Read(at, offset, size) => {
                    let result = files(&model);
                    let (_, node) = result[at % result.len()].clone();
                    let (mut single, mut again) = (Vec::new(), Vec::new());
                    model.read(node, offset, size, &mut single);
                    model.read(node, offset, size, &mut again);
                    prop_assert_eq!(single, again);
                }
                Happening::Open(at) => {
                    let result = files(&model);
                    let node = result[at % result.len()].1;
                    prop_assert!(model.open(node));
                    open.push(node);
                }
                Happening::Release(at) => {
                    if !open.is_empty() {
                        let node = open.remove(at % open.len());
                        model.release(node);
                    }
                }
            }
            let totals = model.totals();
            prop_assert!(totals.unique_read + totals.missed <= totals.bytes);
            let result = files(&model);
            prop_assert!(result.len() <= 3 * (usize::from(rotations) + 1));
            let sizes = model.files.values().map(|file| file.size).sum::<u64>();
            prop_assert!(totals.unread() <= sizes);
            // An open file can be read, also after its name is gone.
            for node in &open {
                prop_assert!(model.node(*node).is_some());
            }
        }
        // Nothing but what can be read is unread: after one who reads all, nothing is.
        let all: Vec<u64> = model.files.keys().copied().collect();
        for node in all {
            content(&mut model, node);
        }
        prop_assert_eq!(model.totals().unread(), 0);
        prop_assert_eq!(model.totals().unique_read + model.totals().missed, model.totals().bytes);
    }
}
