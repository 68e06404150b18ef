//! Every test of this crate that needs only its public face.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "payload/blocks.rs"]
mod blocks;
#[path = "payload/dogstatsd.rs"]
mod dogstatsd;
#[path = "payload/flows.rs"]
mod flows;
#[path = "payload/formats.rs"]
mod formats;
#[path = "payload/golden.rs"]
mod golden;
#[path = "payload/lines.rs"]
mod lines;
#[path = "payload/messages.rs"]
mod messages;
#[path = "payload/order.rs"]
mod order;
#[path = "payload/otlp.rs"]
mod otlp;
#[path = "payload/readers.rs"]
mod readers;
#[path = "payload/slots.rs"]
mod slots;
#[path = "payload/text.rs"]
mod text;

use proptest::prelude::*;
use stillwell_payload::{BlockSet, SlotUse};
use stillwell_plan::payload::BlockShape;
use stillwell_plan::{PayloadFormat, PayloadPlan};
use stillwell_units::{ByteSize, Seed};

/// Every format whose events come from a seed.
const SEEDED: [PayloadFormat; 5] = [
    PayloadFormat::Ascii,
    PayloadFormat::Json,
    PayloadFormat::Syslog5424,
    PayloadFormat::ApacheCommon,
    PayloadFormat::DatadogLog,
];

fn plan(format: PayloadFormat, blocks: BlockShape, cache: u64) -> PayloadPlan {
    PayloadPlan {
        format,
        blocks,
        cache: ByteSize::new(cache),
        repeats: false,
    }
}

fn build(plan: &PayloadPlan, seed: u64, slots: SlotUse) -> BlockSet {
    let seed = Seed::from_number(seed);
    BlockSet::build_with(plan, plan.cache, seed, None, slots).unwrap()
}

fn up_to(maximum: u64) -> BlockShape {
    BlockShape::UpTo {
        maximum: ByteSize::new(maximum),
    }
}

fn any_slots() -> impl Strategy<Value = SlotUse> {
    prop_oneof![Just(SlotUse::None), Just(SlotUse::Every)]
}

/// Every plan that can be built: maxima from what each format needs with a
/// slot.
fn any_plan() -> impl Strategy<Value = PayloadPlan> {
    let maximum = prop_oneof![330_u64..1500, 1500_u64..70_000];
    let shape = (maximum, prop::option::of(1_u32..40)).prop_map(|(maximum, count)| {
        let maximum = ByteSize::new(maximum);
        match count {
            None => BlockShape::UpTo { maximum },
            Some(count) => BlockShape::Events { count, maximum },
        }
    });
    (prop::sample::select(SEEDED.to_vec()), shape, 0_u64..200_000)
        .prop_map(|(format, blocks, cache)| plan(format, blocks, cache))
}

/// The events of a set, each with what frames it.
fn events(set: &BlockSet) -> Vec<&[u8]> {
    let all = set.run(0, set.len());
    let mut start = 0;
    let mut events = Vec::new();
    for end in all.event_ends() {
        events.push(&all.bytes[start..end]);
        start = end;
    }
    events
}
