use proptest::prelude::*;
use stillwell_payload::{BlockSet, BuildError, Counts, SlotUse};
use stillwell_plan::PayloadFormat;
use stillwell_plan::payload::BlockShape;
use stillwell_units::{ByteSize, Seed};

use crate::{SEEDED, any_plan, any_slots, build, plan, up_to};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// For all plans, seeds and slots: no block exceeds its maximum, each ends
    /// with an event, and the counts are those of what lies in it.
    #[test]
    fn blocks_keep_their_bounds(plan in any_plan(), seed: u64, slots in any_slots()) {
        let set = build(&plan, seed, slots);
        let maximum = plan.blocks.maximum().as_usize();
        let mut sum = Counts::default();
        let mut start = 0;
        for index in 0..set.len() {
            let block = set.block(index);
            prop_assert!(!block.bytes.is_empty() && block.bytes.len() <= maximum);
            prop_assert_eq!(block.bytes, &set.bytes()[start..start + block.bytes.len()]);
            start += block.bytes.len();

            let ends: Vec<usize> = block.event_ends().collect();
            prop_assert!(ends[0] > 0 && ends.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert_eq!(ends.last().copied(), Some(block.bytes.len()));

            let counts = block.counts();
            prop_assert_eq!(counts.events, ends.len() as u64);
            prop_assert_eq!(counts.units, counts.events);
            prop_assert_eq!(counts.bytes, block.bytes.len() as u64);
            sum.events += counts.events;
            sum.units += counts.units;
            sum.bytes += counts.bytes;
        }
        prop_assert_eq!(start, set.bytes().len());
        prop_assert_eq!(sum, set.total());
        prop_assert!(set.largest_block() <= maximum);
        if set.len() > 1 {
            prop_assert!(set.bytes().len() <= plan.cache.as_usize());
        }
    }

    /// For all plans with a fixed count: every block but one that would grow
    /// beyond its maximum has that many events.
    #[test]
    fn blocks_of_a_count_have_it(format in prop::sample::select(SEEDED.to_vec()), count in 1_u32..20, seed: u64) {
        let maximum = ByteSize::mib(1);
        let plan = plan(format, BlockShape::Events { count, maximum }, 400_000);
        let set = build(&plan, seed, SlotUse::None);
        for index in 0..set.len() {
            prop_assert_eq!(set.block(index).counts().events, u64::from(count));
        }
    }

    /// For all plans: the same seed gives the same bytes, another worker's seed
    /// others, and a larger cache more of the same.
    #[test]
    fn bytes_follow_from_the_seed(plan in any_plan(), seed: u64, slots in any_slots()) {
        let set = build(&plan, seed, slots);
        let again = build(&plan, seed, slots);
        prop_assert_eq!(set.bytes(), again.bytes());
        prop_assert_eq!(set.fingerprint(), again.fingerprint());

        let root = Seed::from_number(seed);
        let worker = |index| {
            let seed = root.derive("worker", index);
            BlockSet::build_with(&plan, plan.cache, seed, None, slots).unwrap()
        };
        let (first, two) = (worker(0), worker(1));
        // A line of one or two characters can be the same by chance.
        if first.bytes().len() > 16 {
            prop_assert_ne!(first.bytes(), two.bytes());
        }

        let mut larger = plan;
        larger.cache = ByteSize::new(larger.cache.bytes() * 2 + 100_000);
        let larger = build(&larger, seed, slots);
        // The only block of a set may be one that had to stop early.
        if set.len() > 1 {
            prop_assert!(larger.bytes().starts_with(set.bytes()));
        }
    }

    /// For all numbers of bytes: as many events lie within them as end there.
    #[test]
    fn events_within_are_those_that_end_there(plan in any_plan(), seed: u64, share in 0.0..1.2_f64) {
        let set = build(&plan, seed, SlotUse::None);
        let block = set.run(set.len() / 2, set.len());
        let length = u32::try_from(block.bytes.len()).unwrap();
        let bytes = stillwell_units::floor_to_u64(f64::from(length) * share);
        let bytes = usize::try_from(bytes).unwrap();
        let expected = block.event_ends().filter(|end| *end <= bytes).count();
        prop_assert_eq!(usize::try_from(block.events_within(bytes)).unwrap(), expected);
    }
}

/// Sizes are spread over the whole requested range.
#[test]
fn block_sizes_are_drawn_evenly() {
    let set = build(
        &plan(PayloadFormat::ApacheCommon, up_to(64 << 10), 32 << 20),
        1,
        SlotUse::None,
    );
    let mut eighths = [0_usize; 8];
    for index in 0..set.len() {
        eighths[(set.block(index).bytes.len() - 1) >> 13] += 1;
    }
    // Each of the upper seven eighths is drawn as often, within five deviations
    // of a count of about 130; up to one event is missing at each end.
    let share = set.len() / 7;
    for count in &eighths[1..] {
        assert!(count.abs_diff(share) < 60, "{eighths:?}");
    }
    assert!(eighths[0] < 10, "{eighths:?}");
}

#[test]
fn the_least_maximum_that_is_named_works_and_one_less_does_not() {
    for format in SEEDED {
        for slots in [SlotUse::None, SlotUse::Every] {
            let seed = Seed::from_number(1);
            let build_up_to = |maximum| {
                let plan = plan(format.clone(), up_to(maximum), 300_000);
                BlockSet::build_with(&plan, plan.cache, seed, None, slots)
            };
            let Err(BuildError::MaximumTooSmall { smallest, .. }) = build_up_to(1) else {
                panic!("a block of one byte holds no event of {format:?}");
            };
            let set = build_up_to(smallest.bytes()).unwrap();
            assert!(set.largest_block() <= smallest.as_usize());
            crate::formats::check(&format, &set);
            assert!(build_up_to(smallest.bytes() - 1).is_err());
        }
    }
}

#[test]
fn errors_name_what_to_do() {
    let seed = Seed::from_number(1);
    let small = plan(PayloadFormat::Syslog5424, up_to(20), 1000);
    assert_eq!(
        BlockSet::build(&small, small.cache, seed, None)
            .unwrap_err()
            .to_string(),
        "blocks of syslog5424 need a maximum of at least 112 bytes, not 20"
    );
    let large = plan(PayloadFormat::Ascii, up_to(20), 1000);
    assert_eq!(
        BlockSet::build(&large, ByteSize::mib(8192), seed, None)
            .unwrap_err()
            .to_string(),
        "8 GiB of payload exceed the maximum of 4 GiB for one worker"
    );
}
