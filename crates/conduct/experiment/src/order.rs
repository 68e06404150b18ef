//! In which order the variants of a pair run.

use stillwell_capture::RunStage;
use stillwell_stats::{Orders, PairOrder};
use stillwell_units::{Seed, as_usize};

/// The variants of `pair` (from 1) of a stage, by their places in the plan, in the order in which
/// they run.
///
/// Random and balanced: in each block of four pairs each of two variants runs first twice; with more
/// variants the second pair of each two runs in the order opposite to the first's. A pair that is
/// repeated has a number of its own, so the blocks are of the pairs that were run. It depends on the
/// suite's seed, the experiment's name, the stage and the number of the pair alone, so a suite
/// that is resumed keeps its orders.
#[must_use]
pub fn order_within(
    suite: &Seed,
    experiment: &str,
    stage: RunStage,
    variants: usize,
    pair: u32,
) -> Vec<usize> {
    let seed = of_stage(suite.derive("order", 0).derive(experiment, 0), stage);
    let index = pair.saturating_sub(1);
    if variants == 2 {
        let place = as_usize(index);
        return match Orders::new(*seed.bytes()).nth(place) {
            Some(PairOrder::ComparisonFirst) => vec![1, 0],
            Some(PairOrder::BaselineFirst) | None => vec![0, 1],
        };
    }
    // With more variants, a shuffle for each block of two.
    let block = seed.derive("block", u64::from(index / 2));
    let mut keyed: Vec<([u8; 32], usize)> = (0u64..)
        .zip(0..variants)
        .map(|(key, variant)| (*block.derive("variant", key).bytes(), variant))
        .collect();
    keyed.sort_unstable();
    if !index.is_multiple_of(2) {
        keyed.reverse();
    }
    keyed.into_iter().map(|(_, variant)| variant).collect()
}

/// The seed of a stage: searching keeps it, so results from before there were stages stay valid.
pub(crate) fn of_stage(seed: Seed, stage: RunStage) -> Seed {
    match stage {
        RunStage::Search => seed,
        RunStage::Confirm => seed.derive("confirm", 0),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// For all seeds and numbers of variants: every pair holds each variant
        /// once, and each block is balanced.
        #[test]
        fn orders_are_balanced(
            seed: u64,
            confirm: bool,
            variants in 2_usize..6,
            block in 0_u32..20,
        ) {
            let seed = Seed::from_number(seed);
            let stage = if confirm { RunStage::Confirm } else { RunStage::Search };
            let order = |pair| order_within(&seed, "one", stage, variants, pair);
            if variants == 2 {
                let firsts = (1..=4).map(|pair| order(4 * block + pair)[0]);
                prop_assert_eq!(firsts.sum::<usize>(), 2);
                return Ok(());
            }
            let first = order(2 * block + 1);
            let mut second = order(2 * block + 2);
            second.reverse();
            prop_assert_eq!(&first, &second);
            second.sort_unstable();
            prop_assert_eq!(second, (0..variants).collect::<Vec<_>>());
        }
    }

    #[test]
    fn experiments_and_stages_have_orders_of_their_own() {
        let orders = |name: &str, stage| -> Vec<Vec<usize>> {
            (1..=64)
                .map(|pair| order_within(&Seed::from_number(1), name, stage, 2, pair))
                .collect()
        };
        let first = orders("one", RunStage::Search);
        assert_ne!(first, orders("two", RunStage::Search));
        assert_ne!(first, orders("one", RunStage::Confirm));
        assert_eq!(first, orders("one", RunStage::Search));
    }
}
