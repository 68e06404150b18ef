//! Which connections of a pool are free, and what they are handed.

use std::collections::VecDeque;
use std::task::{Context, Waker};

use stillwell_metric::Outcome;
use stillwell_plan::Reuse;

use super::ledger::Ticket;

/// The connections of a pool, open or not, by number.
#[derive(Debug)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    /// Free and open, in the order in which they became so; each as often as it
    /// takes requests.
    open: VecDeque<usize>,
    /// Free and to be opened.
    closed: Vec<usize>,
    /// How many have failed to connect and have not succeeded since.
    down: usize,
    /// Why the last of them did not connect.
    failure: Outcome,
    reuse: Reuse,
    /// The pacer, where it waits for any of them.
    pacer: Option<Waker>,
}

#[derive(Debug)]
struct Slot {
    offers: VecDeque<Ticket>,
    waker: Option<Waker>,
}

impl Slots {
    /// `count` connections that carry up to `streams` requests at once.
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

    /// Why none of them connects, where that is so.
    pub(super) fn outage(&self) -> Option<Outcome> {
        (self.down == self.slots.len()).then_some(self.failure)
    }

    /// `slot` may be handed a request.
    pub(super) fn free(&mut self, slot: usize, is_open: bool) {
        if is_open {
            self.open.push_back(slot);
        } else {
            self.closed.push(slot);
        }
        self.wake_pacer();
    }

    /// `slot` does something else meanwhile.
    pub(super) fn withdraw(&mut self, slot: usize) {
        self.open.retain(|other| *other != slot);
        self.closed.retain(|other| *other != slot);
    }

    /// Whether `slot` is open and may be handed a request.
    pub(super) fn is_free(&self, slot: usize) -> bool {
        self.open.contains(&slot)
    }

    /// `slot` takes one request fewer for now.
    pub(super) fn withdraw_one(&mut self, slot: usize) {
        if let Some(place) = self.open.iter().rposition(|other| *other == slot) {
            self.open.remove(place);
        }
    }

    /// One could not connect.
    pub(super) fn go_down(&mut self, failure: Outcome) {
        self.failure = failure;
        self.down += 1;
        self.wake_pacer();
    }

    /// It has a connection again.
    pub(super) fn come_up(&mut self) {
        self.down -= 1;
    }

    /// Hands `ticket` to a free one, if there is any.
    pub(super) fn offer(&mut self, ticket: Ticket) -> bool {
        let open = match self.reuse {
            Reuse::Mru => self.open.pop_back(),
            Reuse::Lru => self.open.pop_front(),
        };
        let Some(number) = open.or_else(|| self.closed.pop()) else {
            return false;
        };
        let slot = &mut self.slots[number];
        slot.offers.push_back(ticket);
        if let Some(waker) = slot.waker.take() {
            waker.wake();
        }
        true
    }

    /// What `slot` was handed; else it is woken once there is something.
    pub(super) fn accept(&mut self, slot: usize, context: &Context<'_>) -> Option<Ticket> {
        let slot = &mut self.slots[slot];
        if slot.offers.is_empty() {
            note(&mut slot.waker, context);
        }
        slot.offers.pop_front()
    }

    /// What `slot` was handed and has not accepted.
    pub(super) fn unaccepted(&mut self, slot: usize) -> Option<Ticket> {
        self.slots[slot].offers.pop_front()
    }

    /// Wakes the pacer once something changes.
    pub(super) fn watch(&mut self, context: &Context<'_>) {
        note(&mut self.pacer, context);
    }

    /// Wakes everyone who waits.
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

    /// Where answers kept many connections busy, what was due meanwhile waited for the
    /// pacer, who comes after all of them.
    #[test]
    fn whoever_has_the_word_takes_back_one_of_its_own_places() {
        let ticket = Ticket {
            request: 0,
            intended: Moment::default(),
            sent: None,
        };
        let mut slots = Slots::new(2, 2, Reuse::Lru);
        [0, 1, 0]
            .into_iter()
            .for_each(|slot| slots.free(slot, true));
        assert!(slots.is_free(0));
        slots.withdraw_one(0);
        let handed = |slots: &mut Slots, slot| slots.unaccepted(slot).is_some();
        for slot in [0, 1] {
            assert!(slots.offer(ticket));
            assert!(handed(&mut slots, slot), "{slot}");
        }
        assert!(!slots.offer(ticket));
        assert!(!slots.is_free(1), "it has no place left");
        slots.withdraw_one(1);
    }
}
