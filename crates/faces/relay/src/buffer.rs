//! The bounded buffer between input and output.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use bytes::Bytes;
use tokio::sync::Notify;

/// Events that wait to be sent on. Room is reserved before it is filled, so
/// events that belong together get in together.
#[derive(Debug)]
pub(crate) struct Buffer {
    events: RefCell<VecDeque<Bytes>>,
    capacity: usize,
    reserved: Cell<usize>,
    longest: Cell<usize>,
    closed: Cell<bool>,
    filled: Notify,
    freed: Notify,
}

impl Buffer {
    /// Holds up to `capacity` events, at least one.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            events: RefCell::default(),
            capacity: capacity.max(1),
            reserved: Cell::new(0),
            longest: Cell::new(0),
            closed: Cell::new(false),
            filled: Notify::new(),
            freed: Notify::new(),
        }
    }

    pub(crate) const fn capacity(&self) -> usize {
        self.capacity
    }

    /// The events in it.
    pub(crate) fn len(&self) -> usize {
        self.events.borrow().len()
    }

    /// The most events that were ever in it.
    pub(crate) const fn longest(&self) -> usize {
        self.longest.get()
    }

    /// Reserves room for `events` more, if there is that much.
    pub(crate) fn try_reserve(&self, events: usize) -> bool {
        let taken = self.len() + self.reserved.get();
        let fits = events <= self.capacity.saturating_sub(taken);
        if fits {
            self.reserved.set(self.reserved.get() + events);
        }
        fits
    }

    /// Waits for room for `events` more, which must be within the capacity, and
    /// reserves it. Cancel-safe.
    pub(crate) async fn reserve(&self, events: usize) {
        while !self.try_reserve(events) {
            self.freed.notified().await;
        }
    }

    /// Puts an event where room was reserved for it.
    pub(crate) fn push(&self, event: Bytes) {
        self.release(1);
        self.push_beyond(event);
    }

    /// Gives up the room that was reserved for `events`.
    pub(crate) fn release(&self, events: usize) {
        let left = self.reserved.get().saturating_sub(events);
        self.reserved.set(left);
        self.freed.notify_waiters();
    }

    /// Puts an event for which no room was reserved, be the buffer full or not.
    pub(crate) fn push_beyond(&self, event: Bytes) {
        let mut events = self.events.borrow_mut();
        events.push_back(event);
        if events.len() == 1 {
            self.filled.notify_one();
        }
        self.longest.set(self.longest.get().max(events.len()));
    }

    /// Nothing more will come.
    pub(crate) fn close(&self) {
        self.closed.set(true);
        self.filled.notify_one();
    }

    /// Waits until something is in it; false once nothing is and nothing more
    /// will come. Cancel-safe; for one waiter.
    pub(crate) async fn wait(&self) -> bool {
        loop {
            if self.len() > 0 {
                return true;
            }
            if self.closed.get() {
                return false;
            }
            self.filled.notified().await;
        }
    }

    /// Takes events from the front for as long as `take` wants them.
    pub(crate) fn take_while(&self, mut take: impl FnMut(&Bytes) -> bool) {
        let mut events = self.events.borrow_mut();
        while events.front().is_some_and(&mut take) {
            events.pop_front();
        }
        self.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_never_given_twice() {
        let buffer = Buffer::new(3);
        assert!(buffer.try_reserve(2));
        assert!(!buffer.try_reserve(2));
        buffer.push(Bytes::from_static(b"a"));
        assert!(!buffer.try_reserve(2));
        assert!(buffer.try_reserve(1));
        buffer.push(Bytes::from_static(b"b"));
        buffer.push(Bytes::from_static(b"c"));
        assert!(!buffer.try_reserve(1));
        assert_eq!((buffer.len(), buffer.longest()), (3, 3));
        let mut taken = 0;
        buffer.take_while(|_| {
            taken += 1;
            taken <= 2
        });
        assert_eq!((buffer.len(), buffer.longest()), (1, 3));
        assert!(buffer.try_reserve(2));
    }
}
