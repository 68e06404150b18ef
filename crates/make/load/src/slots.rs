//! Free connections of a pool and their assigned requests.

use std::collections::VecDeque;
use std::task::{Context, Waker};

use stillwell_metric::Outcome;
use stillwell_plan::load::Reuse;

use super::recorder::Ticket;

/// The connection slots of a pool, by number.
#[derive(Debug)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    /// Open slots that are free, in order; a slot appears once for each request that it can
    /// take.
    open: VecDeque<usize>,
    /// Closed slots that are free.
    closed: Vec<usize>,
    /// Number of slots that failed to connect and have not succeeded since.
    down: usize,
    /// Outcome of the last failed connect.
    failure: Outcome,
    reuse: Reuse,
    /// Waker of the pacer while it waits for a free slot.
    pacer: Option<Waker>,
}

#[derive(Debug)]
struct Slot {
    offers: VecDeque<Ticket>,
    waker: Option<Waker>,
}

impl Slots {
    /// `count` slots that carry up to `streams` concurrent requests each.
    pub(super) fn new(count: usize, streams: u32, reuse: Reuse) -> Self {
        let streams = usize::try_from(streams).unwrap_or(1);
        let slot = |_| Slot {
            offers: VecDeque::with_capacity(streams),
            waker: None,
        };
        Self {
            slots: (0..count).map(slot).collect(),
            open: VecDeque::with_capacity(count * streams),
            closed: Vec::with_capacity(count),
            down: 0,
            failure: Outcome::ConnectFailed,
            reuse,
            pacer: None,
        }
    }

    pub(super) fn is_any_free(&self) -> bool {
        !self.open.is_empty() || !self.closed.is_empty()
    }

    /// Outcome of the last failed connect, if no slot connects.
    pub(super) fn outage(&self) -> Option<Outcome> {
        (self.down == self.slots.len()).then_some(self.failure)
    }

    /// Marks `slot` as free.
    pub(super) fn free(&mut self, slot: usize, is_open: bool) {
        if is_open {
            self.open.push_back(slot);
        } else {
            self.closed.push(slot);
        }
        self.wake_pacer();
    }

    /// Marks `slot` as busy.
    pub(super) fn withdraw(&mut self, slot: usize) {
        self.open.retain(|kept| *kept != slot);
        self.closed.retain(|kept| *kept != slot);
    }

    /// Removes up to `count` free places of `slot`, which is open, and returns their number.
    /// Requests that were assigned before stay assigned.
    pub(super) fn withdraw_places(&mut self, slot: usize, count: usize) -> usize {
        let mut removed = 0;
        self.open.retain(|kept| {
            let is_removed = *kept == slot && removed < count;
            removed += usize::from(is_removed);
            !is_removed
        });
        removed
    }

    /// Returns true if `slot` is the next free one and has accepted all assigned requests.
    pub(super) fn is_next(&self, slot: usize) -> bool {
        let next = match self.reuse {
            Reuse::Mru => self.open.back(),
            Reuse::Lru => self.open.front(),
        };
        next == Some(&slot) && self.slots[slot].offers.is_empty()
    }

    /// Takes the next free open slot.
    pub(super) fn take_next(&mut self) -> Option<usize> {
        match self.reuse {
            Reuse::Mru => self.open.pop_back(),
            Reuse::Lru => self.open.pop_front(),
        }
    }

    /// Counts a slot that failed to connect.
    pub(super) fn go_down(&mut self, failure: Outcome) {
        self.failure = failure;
        self.down += 1;
        self.wake_pacer();
    }

    /// Counts a slot that connected again.
    pub(super) fn mark_up(&mut self) {
        self.down -= 1;
    }

    /// Assigns `ticket` to a free slot, if there is one.
    pub(super) fn offer(&mut self, ticket: Ticket) -> bool {
        let Some(number) = self.take_next().or_else(|| self.closed.pop()) else {
            return false;
        };
        let slot = &mut self.slots[number];
        slot.offers.push_back(ticket);
        if let Some(waker) = slot.waker.take() {
            waker.wake();
        }
        true
    }

    /// Returns the request assigned to `slot`, or registers it to be woken.
    pub(super) fn accept(&mut self, slot: usize, context: &Context<'_>) -> Option<Ticket> {
        let slot = &mut self.slots[slot];
        if slot.offers.is_empty() {
            note(&mut slot.waker, context);
        }
        slot.offers.pop_front()
    }

    /// Returns the assigned request that `slot` has not accepted.
    pub(super) fn unaccepted(&mut self, slot: usize) -> Option<Ticket> {
        self.slots[slot].offers.pop_front()
    }

    /// Registers the pacer to be woken by the next change.
    pub(super) fn watch(&mut self, context: &Context<'_>) {
        note(&mut self.pacer, context);
    }

    /// Wakes all waiting tasks.
    pub(super) fn wake_all(&mut self) {
        let wakers = self.slots.iter_mut().filter_map(|slot| slot.waker.take());
        wakers.for_each(Waker::wake);
        self.wake_pacer();
    }

    fn wake_pacer(&mut self) {
        if let Some(pacer) = self.pacer.take() {
            pacer.wake();
        }
    }
}

fn note(waker: &mut Option<Waker>, context: &Context<'_>) {
    match waker {
        Some(waker) => waker.clone_from(context.waker()),
        None => *waker = Some(context.waker().clone()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stillwell_units::Moment;

    use super::*;

    const TICKET: Ticket = Ticket {
        endpoint: 0,
        request: 0,
        intended: Moment::new(0),
        sent: None,
    };

    /// If answers kept many connections busy, due requests waited for the pacer, which comes
    /// after all of them. The current connection takes them, if it is its turn.
    #[test]
    fn the_current_connection_takes_only_requests_that_it_would_have_been_given() {
        for (reuse, first, last) in [(Reuse::Lru, 0, 1), (Reuse::Mru, 1, 0)] {
            let mut slots = Slots::new(2, 2, reuse);
            [0, 1].into_iter().for_each(|slot| slots.free(slot, true));
            assert!(slots.is_next(first) && !slots.is_next(last));
            assert_eq!(slots.take_next(), Some(first));
            assert!(slots.is_next(last));
            assert!(slots.offer(TICKET));
            assert!(!slots.is_next(last), "it has no place left");
            slots.free(last, true);
            assert!(!slots.is_next(last), "it was handed one before");
            assert!(slots.unaccepted(last).is_some());
            assert!(slots.is_next(last));
            assert_eq!(slots.take_next(), Some(last));
            assert!(!slots.offer(TICKET));
        }
    }

    /// Requests were assigned to a connection that could begin no more.
    #[test]
    fn requests_go_past_a_connection_that_has_withdrawn_its_places() {
        for (reuse, first, last) in [(Reuse::Lru, 0, 1), (Reuse::Mru, 1, 0)] {
            let mut slots = Slots::new(2, 2, reuse);
            for slot in [0, 1, 0, 1] {
                slots.free(slot, true);
            }
            assert!(slots.offer(TICKET));
            assert_eq!(slots.withdraw_places(first, 2), 1, "one has a request");
            assert_eq!(slots.withdraw_places(first, 2), 0);
            let offered = [0; 3].map(|_| slots.offer(TICKET));
            assert_eq!(offered, [true, true, false]);
            let mut assigned = |slot| std::iter::from_fn(|| slots.unaccepted(slot)).count();
            assert_eq!([assigned(first), assigned(last)], [1, 2]);
        }
    }

    proptest! {
        /// A session counts its places from these results alone.
        #[test]
        fn for_all_orders_a_place_is_free_or_has_a_request_until_it_is_withdrawn(
            is_lru: bool,
            steps in prop::collection::vec((0_u8..4, 0_usize..2, 0_usize..5), 0..60),
        ) {
            let reuse = if is_lru { Reuse::Lru } else { Reuse::Mru };
            let mut slots = Slots::new(2, 8, reuse);
            let mut declared = [0_usize; 2];
            for (step, slot, count) in steps {
                match step {
                    0 => {
                        slots.free(slot, true);
                        declared[slot] += 1;
                    }
                    1 => {
                        let is_any_free = slots.is_any_free();
                        prop_assert_eq!(slots.offer(TICKET), is_any_free);
                    }
                    2 => declared[slot] -= usize::from(slots.unaccepted(slot).is_some()),
                    _ => {
                        let free = slots.open.iter().filter(|open| **open == slot).count();
                        let removed = slots.withdraw_places(slot, count);
                        prop_assert_eq!(removed, count.min(free));
                        declared[slot] -= removed;
                    }
                }
                for (slot, declared) in declared.iter().enumerate() {
                    let free = slots.open.iter().filter(|open| **open == slot).count();
                    prop_assert_eq!(free + slots.slots[slot].offers.len(), *declared);
                }
            }
        }
    }
}
