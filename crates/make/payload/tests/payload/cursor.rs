use proptest::prelude::*;
use stillwell_payload::{Cursor, Limit, SlotUse};
use stillwell_plan::payload::BlockShape;
use stillwell_plan::{PayloadFormat, RateUnit};
use stillwell_units::ByteSize;

use crate::{any_plan, build, plan};

fn any_limit() -> impl Strategy<Value = Limit> {
    let unit = prop::sample::select(vec![RateUnit::Bytes, RateUnit::Events, RateUnit::Blocks]);
    (0_usize..200_000, 0_u64..50_000, unit).prop_map(|(bytes_max, units_max, unit)| Limit {
        bytes_max,
        units_max,
        unit,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// For all sets and limits: blocks come in order, over and over; none is
    /// taken beyond the limit save a first one; none is left that would fit.
    #[test]
    fn takes_all_blocks_in_order_and_forever(
        plan in any_plan(),
        seed: u64,
        limits in prop::collection::vec(any_limit(), 1..200),
    ) {
        let set = build(&plan, seed, SlotUse::None);
        let mut cursor = Cursor::new(&set);
        let mut next = 0;
        for limit in limits {
            prop_assert_eq!(cursor.peek_next(&set), set.block(next).counts());
            let taken = cursor.take(&set, limit);
            // The reference adds one block after the other.
            let mut end = next + 1;
            while end < set.len() && fits(&set.run(next, end + 1), end + 1 - next, limit) {
                end += 1;
            }
            prop_assert_eq!(taken.bytes, set.run(next, end).bytes);
            prop_assert_eq!(taken.counts(), set.run(next, end).counts());
            next = end % set.len();
        }
    }
}

fn fits(block: &stillwell_payload::Block<'_>, blocks: usize, limit: Limit) -> bool {
    let counts = block.counts();
    let units = match limit.unit {
        RateUnit::Bytes => counts.bytes,
        RateUnit::Events => counts.events,
        RateUnit::Blocks => blocks as u64,
    };
    block.bytes.len() <= limit.bytes_max && units <= limit.units_max
}

#[test]
fn takes_exactly_as_many_events_as_are_due() {
    let blocks = BlockShape::Events {
        count: 3,
        maximum: ByteSize::kib(64),
    };
    let plan = plan(PayloadFormat::Json, blocks, 100_000);
    let set = build(&plan, 7, SlotUse::None);
    let mut cursor = Cursor::new(&set);
    let mut due = |units_max| {
        let limit = Limit {
            bytes_max: usize::MAX,
            units_max,
            unit: RateUnit::Events,
        };
        cursor.take(&set, limit).counts().events
    };
    assert_eq!([due(3), due(8), due(9), due(0)], [3, 6, 9, 3]);

    let mut cursor = Cursor::new(&set);
    for _ in 0..set.len() {
        assert_eq!(cursor.take(&set, Limit::one_block()).counts().events, 3);
    }
    let first = cursor.take(&set, Limit::one_block());
    assert_eq!(first.bytes, set.block(0).bytes);
}
