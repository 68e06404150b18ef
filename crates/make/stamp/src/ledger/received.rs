//! A set of sequence numbers that may be very many.

use std::collections::VecDeque;

use super::bytes::{LedgerReader, LedgerWriter};
use super::error::LedgerReadError;
use super::figures::Bounds;
use super::store::{Store, Words};
use super::window::{Entry, WINDOW, Window};
use crate::stamp::SEQUENCE_LIMIT;

/// Windows at the end that stay open, so events displaced by a few hundred
/// thousand places are entered at full speed.
const OPEN: usize = 4;

/// Number of windows of all sequence numbers.
const WINDOWS_MAX: u64 = SEQUENCE_LIMIT / WINDOW;

/// Bytes that a window takes in the queue, of which up to half is kept free.
const WINDOW_BYTES: usize = 2 * size_of::<Indexed>();

/// The sequence numbers that arrived: a prefix of windows of which only counts
/// are kept, and then windows in rising order. Windows that are not there are
/// empty. As long as nothing was given up, the prefix is complete, and its end
/// the watermark.
#[derive(Clone, Debug, Default)]
pub(super) struct Received {
    prefix: Prefix,
    windows: VecDeque<Indexed>,
    /// Bytes in windows.
    heap: usize,
}

/// All windows before `end`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prefix {
    /// The index of the first window that is not in it.
    pub(super) end: u64,
    /// Number of its sequence numbers that arrived.
    pub(super) known: u64,
    /// Later arrivals that may be new or repeated.
    pub(super) unclear: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Indexed {
    pub(super) index: u64,
    pub(super) window: Window,
}

impl Received {
    /// Enters a sequence number.
    #[inline(always)]
    pub(super) fn enter(&mut self, sequence: u64, store: &mut Store) -> Entry {
        let (index, offset) = split(sequence);
        if let Some(last) = self.windows.back_mut()
            && last.index == index
            && let Some(entry) = last.window.touch(offset)
        {
            return entry;
        }
        self.enter_slowly(index, offset, store)
    }

    #[inline(never)]
    fn enter_slowly(&mut self, index: u64, offset: u16, store: &mut Store) -> Entry {
        if index < self.prefix.end {
            return self.prefix.enter();
        }
        match self.find(index) {
            Ok(at) => {
                let window = &mut self.windows[at].window;
                let before = window.heap();
                let entry = window.enter(offset, store);
                let after = window.heap();
                self.account(before, after, store);
                if at == 0 {
                    self.advance(store);
                }
                entry
            }
            Err(at) => {
                let window = Window::Run {
                    first: offset,
                    length: 1,
                };
                self.insert(at, index, window, store);
                Entry::New
            }
        }
    }

    /// Puts a window where there was none, and closes one that grew old by it.
    fn insert(&mut self, at: usize, index: u64, window: Window, store: &mut Store) {
        self.account(0, window.heap() + WINDOW_BYTES, store);
        self.windows.insert(at, Indexed { index, window });
        if let Some(old) = self.windows.len().checked_sub(OPEN + 1) {
            self.close(old, store);
        }
        self.advance(store);
    }

    /// Returns the position of a window, or the position to insert it.
    fn find(&self, index: u64) -> Result<usize, usize> {
        match self.windows.back() {
            None => Err(0),
            Some(last) if last.index < index => Err(self.windows.len()),
            Some(_) => self
                .windows
                .binary_search_by_key(&index, |entry| entry.index),
        }
    }

    fn close(&mut self, at: usize, store: &mut Store) {
        let window = &mut self.windows[at].window;
        let before = window.heap();
        window.close(store);
        let after = window.heap();
        self.account(before, after, store);
    }

    /// Takes full windows into the prefix, as long as it stays complete.
    fn advance(&mut self, store: &mut Store) {
        while self.prefix.is_complete()
            && let Some(first) = self.windows.front_mut()
            && first.index == self.prefix.end
            && first.window.is_full()
            // The last one stays: events still come for it.
            && self.windows.len() > 1
        {
            if let Some(mut full) = self.windows.pop_front() {
                let before = full.window.heap() + WINDOW_BYTES;
                full.window.bound(store);
                self.account(before, 0, store);
            }
            self.prefix.end += 1;
            self.prefix.known += WINDOW;
        }
        self.give_room_back();
    }

    /// Keeps no more room than is accounted for, or little more.
    fn give_room_back(&mut self) {
        let windows = self.windows.len();
        if self.windows.capacity() > 4 * windows + 64 {
            self.windows.shrink_to(2 * windows);
        }
    }

    fn account(&mut self, before: usize, after: usize, store: &mut Store) {
        if before != after {
            self.heap = (self.heap + after).saturating_sub(before);
            store.account(before, after);
        }
    }

    /// Bytes in windows.
    pub(super) const fn heap(&self) -> usize {
        self.heap
    }

    /// Keeps every window in as little room as it can without giving anything up.
    pub(super) fn compress(&mut self, store: &mut Store) {
        for at in 0..self.windows.len() {
            self.close(at, store);
        }
    }

    /// Gives up the numbers of the oldest windows that have some, about an eighth
    /// of them; where none has, the windows themselves. False if nothing is left
    /// to give up.
    pub(super) fn shrink(&mut self, store: &mut Store) -> bool {
        let listed = self
            .windows
            .iter()
            .filter(|entry| entry.window.heap() > 0)
            .count();
        let mut left = listed.div_ceil(8);
        if left == 0 {
            // The last one stays: events still come for it.
            let count = match self.windows.len() {
                0 | 1 => 0,
                windows => windows.div_ceil(8),
            };
            return self.raise_prefix(count, store);
        }
        for at in 0..self.windows.len() {
            let window = &mut self.windows[at].window;
            let before = window.heap();
            if before == 0 {
                continue;
            }
            window.bound(store);
            self.account(before, 0, store);
            left -= 1;
            if left == 0 {
                break;
            }
        }
        true
    }

    /// Takes the first `count` windows into the prefix.
    fn raise_prefix(&mut self, count: usize, store: &mut Store) -> bool {
        for _ in 0..count {
            let Some(mut first) = self.windows.pop_front() else {
                return false;
            };
            let before = first.window.heap() + WINDOW_BYTES;
            self.prefix.end = first.index + 1;
            self.prefix.known += u64::from(first.window.known());
            self.prefix.unclear += first.window.unclear();
            first.window.bound(store);
            self.account(before, 0, store);
        }
        self.give_room_back();
        count > 0
    }

    /// As [`Received::raise_prefix`], up to the window `end`.
    pub(super) fn raise_prefix_to(&mut self, end: u64, store: &mut Store) {
        let count = self.windows.partition_point(|entry| entry.index < end);
        self.raise_prefix(count, store);
        self.prefix.end = self.prefix.end.max(end);
    }

    pub(super) const fn prefix(&self) -> &Prefix {
        &self.prefix
    }

    pub(super) const fn prefix_mut(&mut self) -> &mut Prefix {
        &mut self.prefix
    }

    pub(super) const fn windows(&self) -> &VecDeque<Indexed> {
        &self.windows
    }

    /// Sets the bits of what arrived of a window. False if it is only bounded, by
    /// itself or by the prefix that it is in.
    pub(super) fn add_to(&self, index: u64, words: &mut Words) -> bool {
        if index < self.prefix.end {
            Window::FULL.add_to(words);
            return self.prefix.is_complete();
        }
        if let Ok(at) = self.find(index) {
            let window = &self.windows[at].window;
            window.add_to(words);
            return window.is_exact();
        }
        true
    }

    /// Returns the number of known sequence numbers of a window after the prefix, and of unclear
    /// arrivals.
    pub(super) fn counts(&self, index: u64) -> (u32, u64) {
        if index < self.prefix.end {
            return (1 << 16, 0);
        }
        self.find(index).map_or((0, 0), |at| {
            let window = &self.windows[at].window;
            (window.known(), window.unclear())
        })
    }

    /// Keeps `window` from now on; what is in the prefix stays there.
    pub(super) fn replace(&mut self, index: u64, window: Window, store: &mut Store) {
        if index < self.prefix.end || window.known() == 0 && window.unclear() == 0 {
            return;
        }
        match self.find(index) {
            Ok(at) => {
                let (before, after) = (self.windows[at].window.heap(), window.heap());
                self.windows[at].window.bound(store);
                self.windows[at].window = window;
                self.account(before, after, store);
                self.advance(store);
            }
            Err(at) => self.insert(at, index, window, store),
        }
    }

    /// Takes everything out, with no number left in it.
    pub(super) fn take(&mut self, store: &mut Store) -> Self {
        store.account(self.heap, 0);
        std::mem::take(self)
    }

    /// Returns the number of arrivals that may be new or repeated, and how many of them may be new,
    /// where an event has `room` copies after this one.
    pub(super) fn unclear(&self, room: u64) -> (u64, u64) {
        let fresh = |unclear: u64, numbers: u64, known: u64| {
            let missing = numbers.saturating_sub(known);
            unclear.min(missing.saturating_add(numbers.saturating_mul(room)))
        };
        let prefix = &self.prefix;
        let numbers = prefix.end.saturating_mul(WINDOW);
        let first = (prefix.unclear, fresh(prefix.unclear, numbers, prefix.known));
        self.windows.iter().fold(first, |(all, new), entry| {
            let unclear = entry.window.unclear();
            let known = u64::from(entry.window.known());
            (all + unclear, new + fresh(unclear, WINDOW, known))
        })
    }

    /// Returns the number of different sequence numbers below `end` that arrived.
    pub(super) fn arrived_below(&self, end: u64) -> Bounds {
        let prefix = &self.prefix;
        let numbers = prefix.end.saturating_mul(WINDOW);
        let mut sum = bounds_within(prefix.known, prefix.unclear, numbers, end);
        for entry in &self.windows {
            let start = entry.index * WINDOW;
            if start >= end {
                break;
            }
            let known = u64::from(entry.window.known());
            let part = (end - start).min(WINDOW);
            sum = sum.plus(if part < WINDOW && entry.window.is_exact() {
                Bounds::exact(count_below(&entry.window, part))
            } else {
                bounds_within(known, entry.window.unclear(), WINDOW, part)
            });
        }
        sum
    }

    pub(super) fn write(&self, to: &mut LedgerWriter) {
        to.number(self.prefix.end);
        to.number(self.prefix.known);
        to.number(self.prefix.unclear);
        to.number(self.windows.len() as u64);
        let mut next = self.prefix.end;
        for entry in &self.windows {
            to.number(entry.index - next);
            entry.window.write(to);
            next = entry.index + 1;
        }
    }

    /// Reads what [`Received::write`] wrote, if its windows fit into `limit` of `store`.
    pub(super) fn read(
        from: &mut LedgerReader<'_>,
        store: &mut Store,
        limit: usize,
    ) -> Result<Self, LedgerReadError> {
        let prefix = Prefix {
            end: from.number(WINDOWS_MAX)?,
            known: from.count()?,
            unclear: from.count()?,
        };
        if prefix.known > prefix.end * WINDOW {
            return Err(LedgerReadError::damaged(
                "more arrivals than sequence numbers",
            ));
        }
        let mut set = Self {
            prefix,
            ..Self::default()
        };
        let mut next = prefix.end;
        for _ in 0..from.number(WINDOWS_MAX - next)? {
            let Some(gap_max) = (WINDOWS_MAX - 1).checked_sub(next) else {
                return Err(LedgerReadError::damaged(
                    "more windows than sequence numbers",
                ));
            };
            let index = next + from.number(gap_max)?;
            let window = Window::read(from)?;
            set.account(0, window.heap() + WINDOW_BYTES, store);
            if store.used > limit {
                return Err(LedgerReadError::Memory);
            }
            set.windows.push_back(Indexed { index, window });
            next = index + 1;
        }
        Ok(set)
    }
}

impl Prefix {
    /// Returns true if all of it arrived.
    pub(super) const fn is_complete(&self) -> bool {
        self.known == self.end.saturating_mul(WINDOW)
    }

    fn enter(&mut self) -> Entry {
        if self.is_complete() {
            return Entry::Known;
        }
        self.unclear += 1;
        Entry::Unclear
    }
}

/// The window of a sequence number, and its place there.
#[inline]
fn split(sequence: u64) -> (u64, u16) {
    let offset = u16::try_from(sequence % WINDOW).unwrap_or_default();
    (sequence / WINDOW, offset)
}

/// Bounds the number of arrivals among the first `part` of `numbers`, if `known` of all arrived and
/// up to `unclear` more.
fn bounds_within(known: u64, unclear: u64, numbers: u64, part: u64) -> Bounds {
    let part = part.min(numbers);
    Bounds {
        least: known.saturating_sub(numbers - part),
        most: known.saturating_add(unclear).min(part),
    }
}

fn count_below(window: &Window, part: u64) -> u64 {
    let mut words = Words([0; 1024]);
    window.add_to(&mut words);
    let mut count = 0;
    let mut left = part;
    for word in &words.0 {
        let taken = left.min(64);
        if taken > 0 {
            count += u64::from((word << (64 - taken)).count_ones());
        }
        left -= taken;
    }
    count
}
