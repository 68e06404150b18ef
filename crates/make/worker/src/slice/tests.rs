use proptest::prelude::*;
use stillwell_metric::{Labels, Recorder};
use stillwell_plan::payload::BlockShape;
use stillwell_plan::{PayloadFormat, PayloadPlan};
use stillwell_units::{ByteSize, Seed};

use super::*;

const UNITS: [RateUnit; 3] = [RateUnit::Bytes, RateUnit::Events, RateUnit::Blocks];

fn set(seed: u64) -> BlockSet {
    let plan = PayloadPlan {
        format: PayloadFormat::Json,
        blocks: BlockShape::UpTo {
            maximum: ByteSize::kib(4),
        },
        cache: ByteSize::kib(64),
        repeats: false,
    };
    BlockSet::build(&plan, plan.cache, Seed::from_number(seed), None).unwrap()
}

fn shard() -> GeneratorShard {
    let (_, lateness) = Recorder::pair();
    let (_, response) = Recorder::pair();
    let (_, service) = Recorder::pair();
    GeneratorShard::new(Labels::none(), lateness, response, service)
}

fn slice(first: usize, last: usize) -> Slice {
    let intended = Moment::new(0);
    Slice {
        first,
        last,
        intended,
        intended_last: intended,
    }
}

/// A block that a connection gave back is written again, and counts once.
#[test]
fn what_is_sent_again_is_not_counted_again() {
    let (set, shard) = (set(1), shard());
    let counts = || {
        [
            &shard.bytes,
            &shard.events,
            &shard.blocks,
            &shard.sent_units,
        ]
        .map(|cell| cell.total())
    };
    for unit in UNITS {
        let mut first = Sending::new(&set, &shard, unit, slice(0, 2));
        first.wrote(first.rest().len());
        let counted = counts();
        let mut again = Sending::new(&set, &shard, unit, slice(0, 2)).repeated();
        again.wrote(again.rest().len());
        assert!(again.rest().is_empty());
        assert_eq!(counts(), counted, "{unit:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn for_all_reaches_what_is_taken_is_due_and_fits_and_is_the_most(
        seed in 0_u64..4,
        first in any::<prop::sample::Index>(),
        bytes_max in 0_usize..100_000,
        due in prop_oneof![1_u64..2_000, 1_u64..100_000, Just(u64::MAX)],
    ) {
        let set = set(seed);
        let first = first.index(set.len());
        for unit in UNITS {
            let last = last_within(&set, first, Reach { most: bytes_max.into(), due, unit });
            let mut expected = first + 1;
            while expected < set.len()
                && set.run(first, expected + 1).bytes.len() <= bytes_max
                && units(&set, first, expected, unit) < due
            {
                expected += 1;
            }
            prop_assert_eq!(last, expected);
        }
    }

    #[test]
    fn for_all_cuts_what_is_counted_is_what_was_written(
        first in any::<prop::sample::Index>(),
        length in 1_usize..9,
        cuts in prop::collection::vec(1_usize..3_000, 0..12),
        unit in prop::sample::select(&UNITS),
    ) {
        let (set, shard) = (set(1), shard());
        let first = first.index(set.len());
        let last = (first + length).min(set.len());
        let mut sending = Sending::new(&set, &shard, unit, slice(first, last));
        let mut written = 0;
        for cut in cuts {
            let bytes = cut.min(sending.rest().len());
            sending.wrote(bytes);
            written += bytes;
            let run = set.run(first, last);
            let events = run.event_ends().filter(|end| *end <= written).count() as u64;
            let blocks = (first + 1..=last)
                .filter(|block| set.run(first, *block).bytes.len() <= written)
                .count() as u64;
            prop_assert_eq!(shard.bytes.total(), written as u64);
            prop_assert_eq!(shard.events.total(), events);
            prop_assert_eq!(shard.blocks.total(), blocks);
            let sent = match unit {
                RateUnit::Bytes => written as u64,
                RateUnit::Events => events,
                RateUnit::Blocks => blocks,
            };
            prop_assert_eq!(shard.sent_units.total(), sent);
        }
        // The rest is the end of the block under way, and then what is untouched.
        let untouched = sending.untouched();
        let whole = set.run(first, last).bytes.len();
        let after = untouched.map_or(0, |left| set.run(left.first, left.last).bytes.len());
        sending.stop_at_block_end();
        prop_assert_eq!(written + sending.rest().len() + after, whole);
        prop_assert_eq!(sending.untouched(), None);
        if let Some(left) = untouched {
            prop_assert_eq!(left.last, last);
            prop_assert_eq!(written == 0, left.first == first);
        }
        let blocks_left = untouched.map_or(0, |left| left.last - left.first);
        sending.wrote(sending.rest().len());
        prop_assert_eq!(shard.blocks.total(), (last - first - blocks_left) as u64);
        prop_assert!(sending.rest().is_empty());
    }
}

#[test]
fn the_walk_begins_again_after_the_last_block() {
    let set = set(1);
    let next = Cell::new(0);
    pass(&set, &next, 3);
    assert_eq!(next.get(), 3);
    pass(&set, &next, set.len());
    assert_eq!(next.get(), 0);
}
