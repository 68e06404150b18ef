//! The block of each request.

use std::rc::Rc;

use stillwell_payload::BlockSet;
use stillwell_worker::Slice;

/// Blocks that were taken and whose requests have not ended. Each has a place, by
/// which its ticket names it; a set is kept for as long as any block of it is here.
/// Places are used again, so nothing is allocated once all are warm.
#[derive(Debug, Default)]
pub(super) struct TakenBlocks {
    places: Vec<Option<(Rc<BlockSet>, Slice)>>,
    free: Vec<usize>,
}

impl TakenBlocks {
    /// The place that the next one will have.
    pub(super) fn next(&self) -> usize {
        self.free.last().copied().unwrap_or(self.places.len())
    }

    /// Keeps a block of `set`; gives its place.
    pub(super) fn put(&mut self, set: Rc<BlockSet>, slice: Slice) -> usize {
        let block = Some((set, slice));
        if let Some(place) = self.free.pop() {
            self.places[place] = block;
            return place;
        }
        self.places.push(block);
        self.places.len() - 1
    }

    /// The block at `place`; `None` once its request has ended.
    pub(super) fn at(&self, place: usize) -> Option<(Rc<BlockSet>, Slice)> {
        self.places.get(place)?.clone()
    }

    /// The request of the block at `place` has ended.
    pub(super) fn end(&mut self, place: usize) {
        if let Some(block) = self.places.get_mut(place)
            && block.take().is_some()
        {
            self.free.push(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use stillwell_plan::payload::BlockShape;
    use stillwell_plan::{PayloadFormat, PayloadPlan};
    use stillwell_units::{ByteSize, Moment, Seed};

    use super::*;

    fn set() -> Rc<BlockSet> {
        let payload = PayloadPlan {
            format: PayloadFormat::Ascii,
            blocks: BlockShape::UpTo {
                maximum: ByteSize::new(512),
            },
            cache: ByteSize::kib(2),
            repeats: false,
        };
        let set = BlockSet::build(&payload, payload.cache, Seed::from_number(1), None);
        Rc::new(set.unwrap())
    }

    proptest! {
        /// A block is found at its place from its beginning to its end, and places
        /// are no more than there were blocks at once.
        #[test]
        fn for_all_orders_each_block_is_at_its_place_until_it_ends(
            steps in prop::collection::vec(prop::option::of(any::<prop::sample::Index>()), 0..80),
        ) {
            let (set, mut taken) = (set(), TakenBlocks::default());
            let (mut kept, mut most) = (BTreeMap::new(), 0);
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    None => {
                        let slice = Slice {
                            first: number,
                            last: number + 1,
                            intended: Moment::default(),
                            intended_last: Moment::default(),
                        };
                        let place = taken.next();
                        prop_assert_eq!(taken.put(Rc::clone(&set), slice), place);
                        prop_assert!(kept.insert(place, number).is_none());
                    }
                    Some(index) if !kept.is_empty() => {
                        let places: Vec<usize> = kept.keys().copied().collect();
                        let place = *index.get(&places);
                        kept.remove(&place);
                        taken.end(place);
                        prop_assert!(taken.at(place).is_none());
                    }
                    Some(_) => {}
                }
                most = most.max(kept.len());
                for (place, number) in &kept {
                    prop_assert_eq!(taken.at(*place).map(|(_, slice)| slice.first), Some(*number));
                }
            }
            prop_assert!(taken.places.len() <= most);
            prop_assert_eq!(Rc::strong_count(&set), 1 + kept.len());
        }
    }
}
