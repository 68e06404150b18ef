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
}
