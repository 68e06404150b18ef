//! Files that are sent as they are.

use std::path::PathBuf;

use proptest::prelude::*;
use stillwell_payload::{BlockSet, BuildError, SlotUse};
use stillwell_plan::PayloadFormat;
use stillwell_plan::payload::{TimePattern, TimestampedPlan};
use stillwell_units::Seed;

use crate::golden::compare;
use crate::{plan, up_to};

fn paths(count: usize) -> Vec<PathBuf> {
    (0..count)
        .map(|index| format!("/data/{index}").into())
        .collect()
}

fn timestamped(placeholder: bool, start_line: Option<u64>) -> PayloadFormat {
    PayloadFormat::StaticTimestamped(TimestampedPlan {
        path: "/data/log".into(),
        time: TimePattern::parse("%F %T").unwrap(),
        placeholder,
        start_line,
    })
}

fn build(
    format: PayloadFormat,
    maximum: u64,
    cache: u64,
    sources: &[Vec<u8>],
) -> Result<BlockSet, BuildError> {
    let plan = plan(format, up_to(maximum), cache);
    BlockSet::build(&plan, plan.cache, Seed::from_number(42), sources)
}

fn blocks(set: &BlockSet) -> Vec<&str> {
    let blocks = (0..set.len()).map(|index| std::str::from_utf8(set.block(index).bytes).unwrap());
    blocks.collect()
}

proptest! {
    /// For all files: each is one block, whole and unchanged, in order, as often
    /// as all of them fit, and its lines are its events.
    // compat: lading, payloads | static | differs | whole files; the first 8 KiB of each there
    #[test]
    fn a_static_file_is_a_block(
        sources in prop::collection::vec(prop::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 1..300), 1..5),
        maximum in 1_u64..400,
        cache in 0_u64..3000,
    ) {
        let format = PayloadFormat::Static { paths: paths(sources.len()) };
        let set = build(format, maximum, cache, &sources).unwrap();
        let all: usize = sources.iter().map(Vec::len).sum();
        let passes = (usize::try_from(cache).unwrap() / all).max(1);
        prop_assert_eq!(set.len(), passes * sources.len());
        for index in 0..set.len() {
            let (block, source) = (set.block(index), &sources[index % sources.len()]);
            prop_assert_eq!(block.bytes, source.as_slice());
            let lines = source.split_inclusive(|byte| *byte == b'\n').count();
            prop_assert_eq!(block.counts().events, lines as u64);
        }
    }

    /// For all files: their lines, all of them, in blocks none of which could
    /// have held one more.
    // compat: lading, payloads | static_chunks | works
    #[test]
    fn chunks_are_as_large_as_can_be(
        sources in prop::collection::vec("[a-z\n]{1,200}", 1..4),
        maximum in 20_u64..100,
    ) {
        let contents: Vec<Vec<u8>> = sources.iter().map(|text| text.clone().into_bytes()).collect();
        let format = PayloadFormat::StaticChunks { paths: paths(sources.len()) };
        let set = build(format, maximum, 0, &contents).unwrap();
        let lines = sources.iter().flat_map(|text| text.split_inclusive('\n'));
        let lines: Vec<String> = lines.map(|line| format!("{}\n", line.trim_end_matches('\n'))).collect();
        prop_assert_eq!(blocks(&set).concat(), lines.concat());
        for pair in blocks(&set).windows(2) {
            let first = pair[1].split_inclusive('\n').next().unwrap();
            prop_assert!((pair[0].len() + first.len()) as u64 > maximum);
        }
    }
}

const LOG: &[u8] =
    b"2024-02-29 23:59:59 one\r\n2024-02-29 23:59:59  two\n\n2024-03-01 00:00:02 three";

// compat: lading, payloads | static_timestamped | works
#[test]
fn seconds_of_a_log_are_blocks() {
    let of = |placeholder, start| {
        let format = timestamped(placeholder, Some(start));
        let set = build(format, 1000, 0, &[LOG.to_vec()]).unwrap();
        blocks(&set)
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(of(false, 0), ["one\n two\n", "three\n"]);
    assert_eq!(of(false, 1), ["one\n two\n", "three\n"]);
    assert_eq!(of(false, 5), ["three\n", "one\n two\n"]);
    assert_eq!(of(true, 0), ["one\n two\n", "\n", "\n", "three\n"]);
    // Without a line to begin with, one is drawn.
    let drawn = build(timestamped(false, None), 1000, 0, &[LOG.to_vec()]).unwrap();
    assert_eq!(drawn.total().events, 3);
}

#[test]
fn what_cannot_be_sent_is_refused() {
    let refused = |text: &str| {
        let source = [text.as_bytes().to_vec()];
        build(timestamped(true, None), 1000, 0, &source).unwrap_err()
    };
    assert_eq!(refused("\n \n"), BuildError::SourceEmpty);
    assert_eq!(
        refused("2024-02-29 23:59:59 a\nb\n"),
        BuildError::NoTime { line: 2 }
    );
    assert_eq!(
        refused("2024-02-29 23:59:59 a\n2024-02-29 23:59:58 b\n"),
        BuildError::TimeBackwards { line: 2 }
    );
    assert_eq!(
        refused("2024-02-29 23:59:59 a\n2034-02-28 23:59:58 b\n"),
        BuildError::TimeGap { line: 2 }
    );
    // None of the gaps is too long, all of them together are.
    let days: String = (1..=28)
        .map(|day| format!("2024-02-{day:02} 00:00:00 a\n"))
        .collect();
    assert_eq!(refused(&days), BuildError::TimeGap { line: 13 });
    let format = PayloadFormat::Static { paths: paths(1) };
    assert_eq!(
        build(format.clone(), 9, 0, &[]).unwrap_err(),
        BuildError::SourceMissing
    );
    assert_eq!(
        build(format.clone(), 9, 0, &[vec![]]).unwrap_err(),
        BuildError::SourceEmpty
    );
    let plan = plan(format, up_to(9), 0);
    let sources = [b"a\n".to_vec()];
    let stamped = BlockSet::build_with(
        &plan,
        plan.cache,
        Seed::from_number(1),
        &sources[..],
        SlotUse::Every,
    );
    assert_eq!(stamped.unwrap_err(), BuildError::Unstampable);
}

#[test]
fn fingerprints_are_those_in_the_tree() {
    let sources = [b"a line\nand another\n".to_vec(), b"a second file".to_vec()];
    for format in [
        PayloadFormat::Static { paths: paths(2) },
        PayloadFormat::StaticChunks { paths: paths(2) },
    ] {
        let name = format.name();
        compare(name, &build(format, 512, 64 << 10, &sources).unwrap());
    }
    let set = build(timestamped(true, None), 512, 64 << 10, &[LOG.to_vec()]).unwrap();
    compare("static_timestamped", &set);
}
