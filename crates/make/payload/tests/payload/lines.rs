use std::path::PathBuf;

use proptest::prelude::*;
use stillwell_payload::{BlockSet, BuildError, SlotUse};
use stillwell_plan::payload::BlockShape;
use stillwell_plan::{PayloadFormat, PayloadPlan};
use stillwell_units::Seed;

use crate::{events, plan, up_to};

fn lines(blocks: BlockShape, cache: u64) -> PayloadPlan {
    let path = PathBuf::from("/logs/example.log");
    plan(PayloadFormat::Lines { path }, blocks, cache)
}

fn build(plan: &PayloadPlan, source: &[u8]) -> Result<BlockSet, BuildError> {
    BlockSet::build(plan, plan.cache, Seed::from_number(1), Some(source))
}

proptest! {
    /// For all files: the set is the file, whole, as often as it fits.
    #[test]
    fn a_set_is_the_file_over_and_over(
        source in prop::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 1..3000),
        maximum in 1_u64..4000,
        cache in 0_u64..10_000,
    ) {
        let plan = lines(up_to(maximum), cache);
        let set = build(&plan, &source).unwrap();
        let mut pass = source;
        if !pass.ends_with(b"\n") {
            pass.push(b'\n');
        }
        let passes = (plan.cache.as_usize() / pass.len()).max(1);
        prop_assert_eq!(set.bytes(), pass.repeat(passes));
        for event in events(&set) {
            let feeds = event.iter().filter(|byte| **byte == b'\n').count();
            prop_assert!(feeds == 1 && event.ends_with(b"\n"));
        }
        for index in 0..set.len() {
            let counts = set.block(index).counts();
            prop_assert!(counts.bytes <= maximum || counts.events == 1);
        }
    }
}

#[test]
fn a_long_line_is_not_cut() {
    let source = [vec![b'a'; 100_000], b"\nshort".to_vec()].concat();
    let set = build(&lines(up_to(8192), 1000), &source).unwrap();
    assert_eq!(set.len(), 2);
    assert_eq!(set.largest_block(), 100_001);
    assert_eq!(set.block(1).bytes, b"short\n");
}

#[test]
fn a_file_without_lines_and_a_stamp_in_one_are_refused() {
    let plan = lines(up_to(8192), 1000);
    assert_eq!(build(&plan, b"").unwrap_err(), BuildError::SourceEmpty);
    let seed = Seed::from_number(1);
    assert_eq!(
        BlockSet::build(&plan, plan.cache, seed, None).unwrap_err(),
        BuildError::SourceMissing
    );
    let stamped = BlockSet::build_with(
        &plan,
        plan.cache,
        seed,
        Some(b"line\n".as_slice()),
        SlotUse::Every,
    );
    assert_eq!(stamped.unwrap_err(), BuildError::Unstampable);
}
