//! 65,536 sequence numbers: which of them arrived.
//!
//! A window that is filled in order is two numbers. One with gaps is bits while
//! it is young, and a list of what is missing, or of what is there, when it is
//! old; a short list lies in the window itself. One whose list was given up is two
//! counts. A run of hours keeps one of them for every 65,536 events, so they are
//! small.

use super::bytes::{LedgerReader, LedgerWriter};
use super::error::LedgerReadError;
use super::few::Few;
use super::store::{Store, Words};
use stillwell_units::count;

/// Sequence numbers in a window.
pub(super) const WINDOW: u64 = 1 << 16;

/// A list of more than this many numbers takes more room than bits.
const LIST_LIMIT: u32 = 4095;

/// A list that grows is kept short: entering into it moves what follows.
const PRESENT_LIMIT: usize = 1024;

/// Kinds of windows in bytes.
const RUN: u8 = 0;
const BITS: u8 = 1;
const MISSING: u8 = 2;
const PRESENT: u8 = 3;
const BOUNDED: u8 = 4;

/// The result of entering a sequence number.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Entry {
    /// It had not arrived.
    New,
    /// It had arrived.
    Known,
    /// New or repeated.
    Unclear,
}

/// The sequence numbers of a window that arrived.
#[derive(Clone, Debug)]
pub(super) enum Window {
    /// `length` numbers from `first` on.
    Run { first: u16, length: u32 },
    /// Those whose bit is set, which are `count`.
    Bits { words: Box<Words>, count: u32 },
    /// All but these few.
    Gaps(Few),
    /// All but these.
    Missing(Box<List>),
    /// Only these.
    Present(Box<List>),
    /// `known` different ones; then `unclear` arrivals, each of which may be new.
    Bounded { known: u32, unclear: u64 },
}

/// Numbers in rising order. Behind a box, because a window is to be small.
#[derive(Clone, Debug)]
pub(super) struct List(Vec<u16>);

// Each window of a long run is kept.
const _: () = assert!(size_of::<Window>() == 16);

impl Window {
    pub(super) const FULL: Self = Self::Run {
        first: 0,
        length: 1 << 16,
    };

    /// Returns the number of sequence numbers that are known to have arrived.
    pub(super) fn known(&self) -> u32 {
        match self {
            Self::Run { length, .. } => *length,
            Self::Bits { count, .. } => *count,
            Self::Gaps(few) => (1 << 16) - of(few.numbers()),
            Self::Missing(list) => (1 << 16) - of(&list.0),
            Self::Present(list) => of(&list.0),
            Self::Bounded { known, .. } => *known,
        }
    }

    /// Returns the number of arrivals that may be new or repeated.
    pub(super) fn unclear(&self) -> u64 {
        match self {
            Self::Bounded { unclear, .. } => *unclear,
            _ => 0,
        }
    }

    /// Returns true if each sequence number is known as arrived or missing.
    pub(super) fn is_exact(&self) -> bool {
        self.unclear() == 0 && (!matches!(self, Self::Bounded { .. }) || self.is_full())
    }

    pub(super) fn is_full(&self) -> bool {
        u64::from(self.known()) == WINDOW
    }

    /// Bytes beside the window's own.
    pub(super) fn heap(&self) -> usize {
        match self {
            Self::Bits { .. } => size_of::<Words>(),
            Self::Missing(list) | Self::Present(list) => list.heap(),
            Self::Run { .. } | Self::Gaps(_) | Self::Bounded { .. } => 0,
        }
    }

    /// Enters a number if that changes nothing about how the window is kept.
    #[inline(always)]
    pub(super) fn touch(&mut self, offset: u16) -> Option<Entry> {
        match self {
            Self::Run { first, length } => {
                let place = u32::from(offset).wrapping_sub(u32::from(*first));
                if place == *length {
                    *length += 1;
                    return Some(Entry::New);
                }
                (place < *length).then_some(Entry::Known)
            }
            Self::Bits { words, count } => {
                let (word, bit) = locate(offset);
                let was = words.0[word];
                words.0[word] = was | bit;
                if was & bit != 0 {
                    return Some(Entry::Known);
                }
                *count += 1;
                Some(Entry::New)
            }
            _ => None,
        }
    }

    /// Enters a number.
    pub(super) fn enter(&mut self, offset: u16, store: &mut Store) -> Entry {
        if let Some(entry) = self.touch(offset) {
            return entry;
        }
        match self {
            Self::Gaps(few) => {
                if !few.remove(offset) {
                    return Entry::Known;
                }
                if few.numbers().is_empty() {
                    *self = Self::FULL;
                }
                Entry::New
            }
            Self::Missing(list) => {
                let Ok(index) = list.0.binary_search(&offset) else {
                    return Entry::Known;
                };
                list.0.remove(index);
                // As small as if the others had never been missing.
                if let Some(few) = Few::new(&list.0) {
                    *self = Self::Gaps(few);
                }
                Entry::New
            }
            Self::Present(list) if list.0.len() < PRESENT_LIMIT => {
                match list.0.binary_search(&offset) {
                    Ok(_) => Entry::Known,
                    Err(index) => {
                        list.0.insert(index, offset);
                        Entry::New
                    }
                }
            }
            Self::Bounded { unclear, known } => {
                if u64::from(*known) == WINDOW {
                    return Entry::Known;
                }
                *unclear += 1;
                Entry::Unclear
            }
            Self::Run { .. } | Self::Bits { .. } | Self::Present(_) => {
                self.open(store);
                self.touch(offset).unwrap_or(Entry::Unclear)
            }
        }
    }

    /// Keeps an exact window as bits from now on.
    fn open(&mut self, store: &mut Store) {
        let mut words = store.words();
        self.add_to(&mut words);
        let count = self.known();
        *self = Self::Bits { words, count };
    }

    /// Keeps bits in the smallest form.
    pub(super) fn close(&mut self, store: &mut Store) {
        let Self::Bits { words, count } = self else {
            return;
        };
        let Some(closed) = compact(words, *count) else {
            return;
        };
        if let Self::Bits { words, .. } = std::mem::replace(self, closed) {
            store.give_back(words);
        }
    }

    /// Gives up which numbers arrived and keeps how many.
    pub(super) fn bound(&mut self, store: &mut Store) {
        let bounded = Self::Bounded {
            known: self.known(),
            unclear: self.unclear(),
        };
        if let Self::Bits { words, .. } = std::mem::replace(self, bounded) {
            store.give_back(words);
        }
    }

    /// A window of these bits, as small as it can be.
    pub(super) fn from_words(words: &Words) -> Self {
        let count = words.0.iter().map(|word| word.count_ones()).sum();
        compact(words, count).unwrap_or_else(|| Self::Bits {
            words: Box::new(words.clone()),
            count,
        })
    }

    /// Sets the bits of all numbers that are known by name.
    pub(super) fn add_to(&self, words: &mut Words) {
        match self {
            Self::Run { first, length } => set_run(words, u32::from(*first), *length),
            Self::Bits { words: bits, .. } => {
                for (word, bits) in words.0.iter_mut().zip(&bits.0) {
                    *word |= bits;
                }
            }
            Self::Gaps(few) => set_all_but(words, few.numbers()),
            Self::Missing(list) => set_all_but(words, &list.0),
            Self::Present(list) => {
                for offset in &list.0 {
                    let (word, bit) = locate(*offset);
                    words.0[word] |= bit;
                }
            }
            Self::Bounded { .. } if self.is_full() => set_run(words, 0, 1 << 16),
            Self::Bounded { .. } => {}
        }
    }

    /// Writes it in its smallest form.
    pub(super) fn write(&self, to: &mut LedgerWriter) {
        match self {
            Self::Run { first, length } => {
                to.byte(RUN);
                to.number(u64::from(*first));
                to.number(u64::from(*length));
            }
            Self::Bits { words, count } => match compact(words, *count) {
                Some(closed) => closed.write(to),
                None => {
                    to.byte(BITS);
                    for word in &words.0 {
                        to.bytes(&word.to_le_bytes());
                    }
                }
            },
            Self::Gaps(few) => {
                to.byte(MISSING);
                to.rising(few.numbers());
            }
            Self::Missing(list) => {
                to.byte(MISSING);
                to.rising(&list.0);
            }
            Self::Present(list) => {
                to.byte(PRESENT);
                to.rising(&list.0);
            }
            Self::Bounded { known, unclear } => {
                to.byte(BOUNDED);
                to.number(u64::from(*known));
                to.number(*unclear);
            }
        }
    }

    /// Reads what [`Window::write`] wrote. Something arrived in it.
    pub(super) fn read(from: &mut LedgerReader<'_>) -> Result<Self, LedgerReadError> {
        let window = match from.byte()? {
            RUN => {
                let first = from.offset()?;
                let room = (1 << 16) - u32::from(first);
                Self::Run {
                    first,
                    length: from.small(room)?,
                }
            }
            BITS => {
                let mut words = Words([0; 1024]);
                for word in &mut words.0 {
                    *word = u64::from_le_bytes(from.array()?);
                }
                Self::from_words(&words)
            }
            MISSING => {
                let missing = from.rising(LIST_LIMIT)?;
                match Few::new(&missing) {
                    _ if missing.is_empty() => Self::FULL,
                    Some(few) => Self::Gaps(few),
                    None => Self::Missing(List::boxed(missing)),
                }
            }
            PRESENT => Self::Present(List::boxed(from.rising(count(PRESENT_LIMIT))?)),
            BOUNDED => Self::Bounded {
                known: from.small(1 << 16)?,
                unclear: from.count()?,
            },
            _ => return Err(LedgerReadError::damaged("a window of unknown form")),
        };
        if window.known() == 0 && window.unclear() == 0 {
            return Err(LedgerReadError::damaged("a window without arrivals"));
        }
        Ok(window)
    }
}

impl List {
    fn boxed(numbers: Vec<u16>) -> Box<Self> {
        Box::new(Self(numbers))
    }

    /// Bytes of both its parts, and what the allocator keeps of each.
    fn heap(&self) -> usize {
        size_of::<Self>() + 2 * self.0.capacity() + 2 * 16
    }
}

fn of(numbers: &[u16]) -> u32 {
    count(numbers.len())
}

/// The word that holds a number's bit, and the bit.
#[inline]
fn locate(offset: u16) -> (usize, u64) {
    (usize::from(offset >> 6), 1 << (offset & 63))
}

/// Sets `length` bits from `first` on.
fn set_run(words: &mut Words, first: u32, length: u32) {
    let end = first + length;
    let mut at = first;
    while at < end {
        let within = at % 64;
        let count = (64 - within).min(end - at);
        let bits = u64::MAX >> (64 - count) << within;
        if let Some(word) = usize::try_from(at / 64)
            .ok()
            .and_then(|at| words.0.get_mut(at))
        {
            *word |= bits;
        }
        at += count;
    }
}

/// Sets the bits of all but `missing`, which are in rising order.
fn set_all_but(words: &mut Words, missing: &[u16]) {
    let mut from = 0;
    for offset in missing.iter().copied().map(u32::from) {
        set_run(words, from, offset - from);
        from = offset + 1;
    }
    set_run(words, from, (1 << 16) - from);
}

/// A list, where one takes less room than bits.
fn compact(words: &Words, count: u32) -> Option<Window> {
    let missing = (1 << 16) - count;
    if missing == 0 {
        return Some(Window::FULL);
    }
    if missing <= LIST_LIMIT {
        let missing = list(words, missing, |word| !word);
        let few = Few::new(&missing).map(Window::Gaps);
        return Some(few.unwrap_or_else(|| Window::Missing(List::boxed(missing))));
    }
    let short = usize::try_from(count).is_ok_and(|count| count <= PRESENT_LIMIT);
    short.then(|| Window::Present(List::boxed(list(words, count, |word| word))))
}

/// The numbers of all bits that are set once `look` looked at a word.
fn list(words: &Words, count: u32, look: impl Fn(u64) -> u64) -> Vec<u16> {
    let mut offsets = Vec::with_capacity(usize::try_from(count).unwrap_or_default());
    for (base, word) in (0_u16..=u16::MAX).step_by(64).zip(&words.0) {
        let mut bits = look(*word);
        while bits != 0 {
            let place = u16::try_from(bits.trailing_zeros()).unwrap_or_default();
            offsets.push(base + place);
            bits &= bits - 1;
        }
    }
    offsets
}
