//! The order within pairs: balanced, random, and the same ever after.

use proptest::prelude::*;
use stillwell_stats::{PairOrder, balanced_order};

/// Changing this changes the order of every experiment ever recorded. The
/// expected letters come from a second implementation of xoshiro256++.
#[test]
fn orders_of_known_seeds_never_change() {
    let letters = |seed| -> String {
        balanced_order(seed, 24)
            .into_iter()
            .map(|order| match order {
                PairOrder::BaselineFirst => 'b',
                PairOrder::ComparisonFirst => 'c',
            })
            .collect()
    };
    assert_eq!(letters([7; 32]), "bbcccbbcbccbbcbccbbcbbcc");
    let counted = std::array::from_fn(|index| u8::try_from(index).unwrap());
    assert_eq!(letters(counted), "bbcccbbcccbbccbbccbbbccb");
}

/// Over many seeds each half comes first half of the time, at each place, and blocks are
/// independent: 4000 fair coins stay within 4.4 deviations.
#[test]
fn coins_are_fair_and_independent_of_place() {
    let mut first_heads = 0;
    let mut same_order = 0;
    for number in 0..4000_u32 {
        let mut seed = [0; 32];
        seed[..4].copy_from_slice(&number.wrapping_mul(0x9e37_79b9).to_le_bytes());
        // Seeds that differ in four bytes only need some draws to diverge.
        let orders = balanced_order(seed, 64);
        first_heads += i32::from(orders[60] == PairOrder::BaselineFirst);
        same_order += i32::from(orders[59] == orders[60]);
    }
    assert!((first_heads - 2000).abs() < 140, "{first_heads}");
    assert!((same_order - 2000).abs() < 140, "{same_order}");
}

proptest! {
    /// For all seeds and lengths: each block of four pairs has each order twice.
    #[test]
    fn every_block_is_balanced(seed: [u8; 32], pairs in 0_usize..100) {
        let orders = balanced_order(seed, pairs);
        prop_assert_eq!(orders.len(), pairs);
        for block in orders.chunks_exact(4) {
            let first = block.iter().filter(|order| **order == PairOrder::BaselineFirst);
            prop_assert_eq!(first.count(), 2);
        }
    }

    /// For all seeds: an experiment that grows keeps the orders it had.
    #[test]
    fn longer_orders_begin_with_shorter_ones(seed: [u8; 32], pairs in 0_usize..50, more in 0_usize..50) {
        let longer = balanced_order(seed, pairs + more);
        prop_assert_eq!(&longer[..pairs], &balanced_order(seed, pairs)[..]);
    }
}
