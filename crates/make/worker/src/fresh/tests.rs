use std::collections::BTreeSet;

use proptest::prelude::*;
use stillwell_metric::{Labels, Recorder};
use stillwell_plan::PayloadFormat;
use stillwell_plan::payload::{BlockShape, EventTimes, NetflowPlan, RemoteWritePlan};
use stillwell_units::{Nanos, Seed};

use super::*;

fn recipe(cache: ByteSize) -> Recipe {
    let payload = PayloadPlan {
        format: PayloadFormat::Syslog5424,
        blocks: BlockShape::UpTo {
            maximum: ByteSize::kib(2),
        },
        cache,
        repeats: false,
    };
    let seeds = Seed::from_number(1).into();
    let first = BlockSet::build(&payload, cache, seeds, None).unwrap();
    Recipe::new(&payload, seeds, cache, &first).unwrap()
}

fn first(recipe: &Recipe) -> BlockSet {
    BlockSet::build(&recipe.payload, recipe.payload.cache, recipe.seeds, None).unwrap()
}

fn shard() -> GeneratorShard {
    let [lateness, response, service] = [(); 3].map(|()| Recorder::pair().1);
    GeneratorShard::new(Labels::none(), lateness, response, service)
}

/// Takes `blocks` blocks one at a time; gives their lines.
fn take(walk: &mut Walk, sets: &Sets, shard: &GeneratorShard, blocks: usize) -> Vec<Vec<u8>> {
    let mut lines = Vec::new();
    for _ in 0..blocks {
        let index = walk.next.get();
        let set = Rc::clone(&walk.set);
        let bytes = set.block(index).bytes;
        lines.extend(
            bytes
                .split_inclusive(|byte| *byte == b'\n')
                .map(<[u8]>::to_vec),
        );
        crate::slice::pass(&set, &walk.next, index + 1);
        walk.took(index, index + 1, sets, shard);
    }
    lines
}

#[test]
fn nothing_repeats_while_the_builder_keeps_up() {
    let mut recipe = recipe(ByteSize::kib(64));
    // A channel with room acts as a builder that is always ahead.
    let (sender, ready) = sync_channel(40);
    for pass in 1..=40 {
        sender.send(recipe.build(pass).unwrap()).unwrap();
    }
    let sets = Sets::new(first(&recipe), Some(ready));
    let (mut walk, shard) = (Walk::new(&sets), shard());
    let lines = take(&mut walk, &sets, &shard, 300);
    let distinct: BTreeSet<&Vec<u8>> = lines.iter().collect();
    assert_eq!(distinct.len(), lines.len());
    assert_eq!(shard.blocks_again.total(), 0);
}

#[test]
fn a_payload_that_repeats_has_no_later_sets() {
    let recipe = recipe(ByteSize::kib(16));
    let first = first(&recipe);
    let payload = PayloadPlan {
        repeats: true,
        ..recipe.payload
    };
    assert!(Recipe::new(&payload, recipe.seeds, payload.cache, &first).is_none());
}

#[test]
fn without_later_sets_the_first_goes_round() {
    let recipe = recipe(ByteSize::kib(16));
    let sets = Sets::new(first(&recipe), None);
    let (mut walk, shard) = (Walk::new(&sets), shard());
    let blocks = sets.first.len();
    let lines = take(&mut walk, &sets, &shard, 2 * blocks);
    let (once, again) = lines.split_at(lines.len() / 2);
    assert_eq!(once, again);
    assert_eq!(shard.blocks_again.total(), 0);
}

/// A store of metrics refuses what is older than what it has.
#[test]
fn times_of_a_series_went_back_from_set_to_set() {
    let payload = PayloadPlan {
        format: PayloadFormat::RemoteWrite(RemoteWritePlan::default()),
        blocks: BlockShape::UpTo {
            maximum: ByteSize::kib(32),
        },
        cache: ByteSize::kib(64),
        repeats: false,
    };
    let seeds = Seed::from_number(1).into();
    let first = BlockSet::build(&payload, payload.cache, seeds, None).unwrap();
    let mut recipe = Recipe::new(&payload, seeds, payload.cache, &first).unwrap();
    let later = (1..=3).map(|pass| recipe.build(pass).unwrap().ended().unwrap());
    let mut ends = vec![first.ended().unwrap()];
    ends.extend(later);
    assert!(ends.is_sorted_by(|a, b| a < b), "{ends:?}");
    // No jump of years either.
    assert!(ends[3].saturating_sub(ends[0]) < Nanos::from_secs(60));
}

/// A collector takes a number that goes back for a restart of the exporter.
#[test]
fn numbers_of_an_exporter_continue_from_set_to_set() {
    let payload = PayloadPlan {
        format: PayloadFormat::Netflow(NetflowPlan::default()),
        ..recipe(ByteSize::kib(64)).payload
    };
    let seeds = Seed::from_number(1).into();
    let first = BlockSet::build(&payload, payload.cache, seeds, None).unwrap();
    let mut recipe = Recipe::new(&payload, seeds, payload.cache, &first).unwrap();
    let mut flows = first.total().units;
    for pass in 1..=3 {
        let set = recipe.build(pass).unwrap();
        // The sequence number of version 5 is the number of flows before the packet.
        let number = u32::try_from(flows).unwrap().to_be_bytes();
        assert_eq!(set.block(0).bytes[16..20], number, "{pass}");
        flows += set.total().units;
    }
}

#[test]
fn sets_that_begin_now_keep_up_with_the_clock() {
    let options = RemoteWritePlan {
        times: EventTimes::Now,
        ..RemoteWritePlan::default()
    };
    let payload = PayloadPlan {
        format: PayloadFormat::RemoteWrite(options),
        ..recipe(ByteSize::kib(64)).payload
    };
    let seeds = Seeds {
        after: begin_of(&payload),
        ..Seed::from_number(1).into()
    };
    let first = BlockSet::build(&payload, payload.cache, seeds, None).unwrap();
    let mut recipe = Recipe::new(&payload, seeds, payload.cache, &first).unwrap();
    for pass in 1..=3 {
        let before = clock::wall();
        assert!(recipe.build(pass).unwrap().ended().unwrap() > before);
    }
}

proptest! {
    /// However the builder gets along, the first set comes round in order wherever
    /// nothing new is there, and what is new comes once and in order.
    #[test]
    fn for_all_builders_blocks_are_new_or_the_first_in_order(
        ready_after in prop::collection::vec(1_usize..60, 0..12),
    ) {
        let mut recipe = recipe(ByteSize::kib(32));
        let mut again = recipe.clone();
        let (sender, ready) = sync_channel(64);
        let sets = Sets::new(first(&recipe), Some(ready));
        let (mut walk, shard) = (Walk::new(&sets), shard());
        let set_of = |pass: u64| again.build(pass).unwrap().bytes().to_vec();
        let (mut later, mut old) = (Vec::new(), Vec::new());
        for (pass, blocks) in (1..).zip(ready_after.iter().chain([&60])) {
            for _ in 0..*blocks {
                let is_first = Rc::ptr_eq(&walk.set, &sets.first);
                let line = take(&mut walk, &sets, &shard, 1).concat();
                if is_first { old.extend(line) } else { later.extend(line) }
            }
            if pass <= ready_after.len() as u64 {
                sender.send(recipe.build(pass).unwrap()).unwrap();
            }
        }
        let whole = sets.first.bytes();
        for part in old.chunks(whole.len()) {
            prop_assert!(whole.starts_with(part));
        }
        let built: Vec<u8> = (1..=ready_after.len() as u64).flat_map(set_of).collect();
        prop_assert!(built.starts_with(&later));
    }
}
