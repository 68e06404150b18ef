//! The streams that are open.

/// One exchange on one connection.
///
/// Its slot is below the most streams that were ever open at once, and no two
/// open streams share one: [`StreamTable`](super::StreamTable) holds what belongs to them.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Stream {
    number: u32,
    slot: u32,
}

impl Stream {
    /// Number of the stream in the protocol: odd, and growing.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.number
    }

    /// Its place among the open ones. Free again after the event that ends it.
    #[must_use]
    pub const fn slot(self) -> usize {
        self.slot as usize
    }
}

/// State of an open stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamState {
    /// 0 where the slot is free.
    number: u32,
    /// Send window in bytes; settings can make it negative.
    pub(super) send_window: i64,
    pub(super) receive_window: ReceiveWindow,
    /// Missing bytes of the peer's body, if its head gave a length.
    pub(super) body_left: Option<u64>,
    /// True if the peer's head has arrived.
    pub(super) has_head: bool,
    /// Interim responses before that head.
    pub(super) interim: u8,
    /// True if the answer has no body, even if its head gives a length.
    pub(super) is_bodiless: bool,
    /// True if it began by `CONNECT`, after which heads say nothing of bodies.
    pub(super) is_connect: bool,
    /// True if the peer has sent all.
    pub(super) remote_done: bool,
    /// True if this side has sent all.
    pub(super) local_done: bool,
    /// True if this side's head was sent.
    pub(super) sent_head: bool,
    /// True if more is to be sent than the windows allowed.
    pub(super) is_blocked: bool,
    /// True if it waits for its event about room.
    pub(super) is_queued: bool,
}

impl StreamState {
    pub(super) const fn new(send_window: i64, receive_window: ReceiveWindow) -> Self {
        Self {
            number: 0,
            send_window,
            receive_window,
            body_left: None,
            has_head: false,
            interim: 0,
            is_bodiless: false,
            is_connect: false,
            remote_done: false,
            local_done: false,
            sent_head: false,
            is_blocked: false,
            is_queued: false,
        }
    }
}

/// Flow-control window of the peer. Received bytes count as consumed at once, and are given
/// back in steps of half a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiveWindow {
    bytes: u32,
    /// Below zero where the window shrank after the peer had used it.
    left: i64,
    /// Nothing is given back.
    is_held: bool,
}

impl ReceiveWindow {
    pub(super) fn new(bytes: u32) -> Self {
        Self {
            bytes,
            left: i64::from(bytes),
            is_held: false,
        }
    }

    /// Counts what has arrived. Gives back how much is to be announced, nothing
    /// being 0; `None` where it was more than allowed.
    pub(super) fn charge(&mut self, bytes: u32) -> Option<u32> {
        self.left -= i64::from(bytes);
        (self.left >= 0 || bytes == 0).then(|| self.refill())
    }

    /// The peer has learnt of another size. Gives back as [`Self::charge`].
    pub(super) fn resize(&mut self, bytes: u32) -> u32 {
        self.left += i64::from(bytes) - i64::from(self.bytes);
        self.bytes = bytes;
        self.refill()
    }

    /// Nothing is given back until [`Self::release`].
    pub(super) const fn hold(&mut self) {
        self.is_held = true;
    }

    /// It is again. Gives back as [`Self::charge`].
    pub(super) fn release(&mut self) -> u32 {
        self.is_held = false;
        self.refill()
    }

    fn refill(&mut self) -> u32 {
        if self.is_held || self.left > i64::from(self.bytes / 2) {
            return 0;
        }
        let used = i64::from(self.bytes) - self.left;
        self.left += used;
        u32::try_from(used).unwrap_or(0)
    }
}

/// Open streams by number and by slot. Grows to the most that were open at once
/// and allocates nothing after that.
#[derive(Debug, Default)]
pub(super) struct Streams {
    slots: Vec<StreamState>,
    free: Vec<u32>,
    /// By number: the slot plus one, or 0. Open addressing; numbers grow by two,
    /// so hardly any two meet. Its length is a power of two.
    index: Vec<u32>,
}

impl Streams {
    pub(super) const fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The slot that the next one gets.
    pub(super) fn next_slot(&self) -> usize {
        let free = self.free.last().map(|slot| *slot as usize);
        free.unwrap_or(self.slots.len())
    }

    /// `number` is new and not 0.
    pub(super) fn insert(&mut self, number: u32, state: StreamState) -> Stream {
        let state = StreamState { number, ..state };
        let slot = if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = state;
            slot
        } else {
            self.slots.push(state);
            last_slot(self.slots.len())
        };
        if self.index.len() < 4 * self.slots.len() {
            self.rebuild();
        } else {
            self.enter(number, slot);
        }
        Stream { number, slot }
    }

    pub(super) fn find(&self, number: u32) -> Option<Stream> {
        let place = self.place(number)?;
        let slot = self.index[place] - 1;
        Some(Stream { number, slot })
    }

    /// The state of `stream` unless it has ended.
    pub(super) fn state(&mut self, stream: Stream) -> Option<&mut StreamState> {
        let state = self.slots.get_mut(stream.slot())?;
        (state.number == stream.number).then_some(state)
    }

    /// Any open stream above `number`.
    pub(super) fn any_above(&self, number: u32) -> Option<Stream> {
        let slot = self.slots.iter().position(|state| state.number > number)?;
        let number = self.slots[slot].number;
        let slot = last_slot(slot + 1);
        Some(Stream { number, slot })
    }

    /// All open streams.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (Stream, &mut StreamState)> {
        let numbered = (0_u32..).zip(&mut self.slots);
        numbered
            .filter(|(_, state)| state.number != 0)
            .map(|(slot, state)| {
                let number = state.number;
                (Stream { number, slot }, state)
            })
    }

    /// Forgets `stream`, which is open.
    pub(super) fn remove(&mut self, stream: Stream) {
        let Some(mut hole) = self.place(stream.number) else {
            return;
        };
        // An entry that it displaced moves up.
        let mut next = self.after(hole);
        while let Some(slot) = self.index[next].checked_sub(1) {
            let home = self.home(self.slots[slot as usize].number);
            let mask = self.index.len() - 1;
            if next.wrapping_sub(home) & mask >= next.wrapping_sub(hole) & mask {
                self.index[hole] = self.index[next];
                hole = next;
            }
            next = self.after(next);
        }
        self.index[hole] = 0;
        self.slots[stream.slot()].number = 0;
        self.free.push(stream.slot);
    }

    fn place(&self, number: u32) -> Option<usize> {
        if self.index.is_empty() {
            return None;
        }
        let mut place = self.home(number);
        loop {
            let slot = self.index[place].checked_sub(1)?;
            if self.slots[slot as usize].number == number {
                return Some(place);
            }
            place = self.after(place);
        }
    }

    fn enter(&mut self, number: u32, slot: u32) {
        let mut place = self.home(number);
        while self.index[place] != 0 {
            place = self.after(place);
        }
        self.index[place] = slot + 1;
    }

    fn rebuild(&mut self) {
        let length = (8 * self.slots.len()).next_power_of_two().max(64);
        self.index.clear();
        self.index.resize(length, 0);
        self.free.reserve(self.slots.len());
        for slot in 0..self.slots.len() {
            let number = self.slots[slot].number;
            if number != 0 {
                self.enter(number, last_slot(slot + 1));
            }
        }
    }

    const fn home(&self, number: u32) -> usize {
        (number >> 1) as usize & (self.index.len() - 1)
    }

    const fn after(&self, place: usize) -> usize {
        (place + 1) & (self.index.len() - 1)
    }
}

/// The last of `count` slots, of which there are at least one and below 2³².
fn last_slot(count: usize) -> u32 {
    stillwell_units::count(count - 1)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn for_all_orders_streams_are_found_until_they_end(
            steps in prop::collection::vec((any::<bool>(), 0_u32..3, any::<usize>()), 0..400),
        ) {
            let (mut streams, mut open) = (Streams::default(), HashMap::new());
            let (mut next, mut order) = (1, Vec::new());
            for (opens, gap, choice) in steps {
                if opens || order.is_empty() {
                    // Gaps make numbers meet in the index.
                    next += 2 + 128 * gap;
                    let state = StreamState::new(i64::from(next), ReceiveWindow::new(0));
                    let stream = streams.insert(next, state);
                    prop_assert!(open.values().all(|open_stream: &Stream| open_stream.slot != stream.slot));
                    open.insert(next, stream);
                    order.push(next);
                } else {
                    let number = order.swap_remove(choice % order.len());
                    let stream = open.remove(&number).unwrap();
                    streams.remove(stream);
                    prop_assert!(streams.state(stream).is_none());
                    prop_assert!(streams.find(number).is_none());
                }
                prop_assert_eq!(streams.len(), open.len());
                for (number, stream) in &open {
                    prop_assert_eq!(streams.find(*number), Some(*stream));
                    let state = streams.state(*stream).unwrap();
                    prop_assert_eq!(state.send_window, i64::from(*number));
                }
            }
        }
    }
}
