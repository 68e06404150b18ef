//! Faults on purpose, to test what detects them.

use std::num::NonZeroU64;
use std::str::FromStr;

use bytes::Bytes;
use stillwell_units::{ParseError, parse_count};

/// Distance of the flipped byte from the end of an event. In a log line it is in the text,
/// which continues behind it.
const FLIPPED_FROM_END: usize = 16;

/// The faults and their rates. They are made one after the other, in the order of these
/// fields. Each counts the events that the fault before it left, so nothing is random.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct FaultOptions {
    /// An event is taken in and not sent on.
    pub drop: Option<OneIn>,
    /// One bit of the sixteenth byte from the end is changed; of the first where
    /// there are fewer. An event without bytes stays as it is.
    pub flip: Option<OneIn>,
    /// An event changes places with the one behind it.
    pub swap: Option<OneIn>,
    /// An event is sent on twice.
    pub double: Option<OneIn>,
    /// A request over HTTP or of Splunk's collector is answered with 503, and not
    /// taken in.
    pub refuse: Option<OneIn>,
}

/// The last of so many. Typed as `1/10000`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct OneIn(NonZeroU64);

impl OneIn {
    /// The last of each `events`; none of none.
    #[must_use]
    pub const fn new(events: u64) -> Option<Self> {
        match NonZeroU64::new(events) {
            Some(events) => Some(Self(events)),
            None => None,
        }
    }
}

impl FromStr for OneIn {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let events = text.trim().strip_prefix("1/").and_then(parse_count);
        let events = events.and_then(|events| events.try_into().ok());
        events.map(Self).ok_or_else(|| ParseError::Shape {
            input: text.to_owned(),
            kind: "fault",
            accepted: "a share of the events, such as `1/10000`",
        })
    }
}

/// Counts of the faults that were made.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Planted {
    pub(crate) dropped: u64,
    pub(crate) flipped: u64,
    pub(crate) swapped: u64,
    pub(crate) duplicated: u64,
    /// Events of requests that were refused.
    pub(crate) refused: u64,
}

/// The result for one event.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) enum Passed {
    /// Nothing: it is dropped, or waits for the one with which it changes places.
    #[default]
    Nothing,
    /// It goes on.
    One(Bytes),
    /// These go on, in this order, the second because of a mistake.
    Two(Bytes, Bytes),
    /// These go on, in this order, those after the first because of mistakes.
    Many(Vec<Bytes>),
}

/// Makes mistakes.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    drop: Turn,
    flip: Turn,
    swap: Turn,
    double: Turn,
    refuse: Turn,
    /// Waits for the event behind it.
    held: Option<Bytes>,
    pub(crate) planted: Planted,
}

impl Faults {
    pub(crate) fn new(options: &FaultOptions) -> Self {
        Self {
            drop: Turn::new(options.drop),
            flip: Turn::new(options.flip),
            swap: Turn::new(options.swap),
            double: Turn::new(options.double),
            refuse: Turn::new(options.refuse),
            ..Self::default()
        }
    }

    /// Passes `event` on, with or without a fault.
    pub(crate) fn pass(&mut self, mut event: Bytes) -> Passed {
        if self.drop.comes() {
            self.planted.dropped += 1;
            return Passed::Nothing;
        }
        if self.flip.comes() && !event.is_empty() {
            self.planted.flipped += 1;
            event = flipped(&event);
        }
        let swaps = self.swap.comes();
        let Some(held) = self.held.take() else {
            if swaps {
                self.held = Some(event);
                return Passed::Nothing;
            }
            return self.go_on(event);
        };
        self.planted.swapped += 1;
        match (self.go_on(event), self.go_on(held)) {
            (Passed::One(first), Passed::One(second)) => Passed::Two(first, second),
            (first, second) => Passed::Many(first.into_iter().chain(second).collect()),
        }
    }

    /// Returns true if a request of `events` events is refused.
    pub(crate) fn refuses(&mut self, events: u64) -> bool {
        let refuses = self.refuse.comes();
        self.planted.refused += if refuses { events } else { 0 };
        refuses
    }

    /// Nothing more comes: what waits for another goes on alone.
    pub(crate) fn finish(&mut self) -> Passed {
        let held = self.held.take();
        held.map_or(Passed::Nothing, |held| self.go_on(held))
    }

    fn go_on(&mut self, event: Bytes) -> Passed {
        if self.double.comes() {
            self.planted.duplicated += 1;
            return Passed::Two(event.clone(), event);
        }
        Passed::One(event)
    }
}

impl IntoIterator for Passed {
    type Item = Bytes;
    type IntoIter = std::vec::IntoIter<Bytes>;

    fn into_iter(self) -> Self::IntoIter {
        let events = match self {
            Self::Nothing => Vec::new(),
            Self::One(event) => vec![event],
            Self::Two(first, second) => vec![first, second],
            Self::Many(events) => events,
        };
        events.into_iter()
    }
}

/// Says when it is an event's turn.
#[derive(Debug, Default)]
struct Turn {
    one_in: Option<NonZeroU64>,
    seen: u64,
}

impl Turn {
    fn new(one_in: Option<OneIn>) -> Self {
        Self {
            one_in: one_in.map(|one_in| one_in.0),
            seen: 0,
        }
    }

    fn comes(&mut self) -> bool {
        let Some(one_in) = self.one_in else {
            return false;
        };
        self.seen += 1;
        self.seen.is_multiple_of(one_in.get())
    }
}

/// `event` with another byte at its place, which ends no line and no text in JSON.
fn flipped(event: &Bytes) -> Bytes {
    let mut bytes = event.to_vec();
    let at = bytes.len().saturating_sub(FLIPPED_FROM_END);
    if let Some(byte) = bytes.get_mut(at) {
        let plain = |byte: &u8| !byte.is_ascii_control() && !matches!(byte, b'"' | b'\\');
        let bits = [1, 2, 4, 8, 16, 32, 64].map(|bit| *byte ^ bit);
        *byte = bits.into_iter().find(plain).unwrap_or(*byte ^ 1);
    }
    bytes.into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn faults(drop: u64, flip: u64, swap: u64, double: u64) -> Faults {
        Faults::new(&FaultOptions {
            drop: OneIn::new(drop),
            flip: OneIn::new(flip),
            swap: OneIn::new(swap),
            double: OneIn::new(double),
            refuse: None,
        })
    }

    fn event(number: u64) -> Bytes {
        format!("event {number:06} with some text behind it").into()
    }

    fn passed(faults: &mut Faults, count: u64) -> Vec<Bytes> {
        let mut all: Vec<Bytes> = (1..=count)
            .flat_map(|number| faults.pass(event(number)))
            .collect();
        all.extend(faults.finish());
        all
    }

    #[test]
    fn without_faults_everything_passes() {
        let all = passed(&mut faults(0, 0, 0, 0), 9);
        assert_eq!(all, (1..=9).map(event).collect::<Vec<_>>());
    }

    #[test]
    fn each_fault_is_what_it_is_called() {
        let events = |numbers: &[u64]| numbers.iter().copied().map(event).collect::<Vec<_>>();
        assert_eq!(passed(&mut faults(3, 0, 0, 0), 7), events(&[1, 2, 4, 5, 7]));
        assert_eq!(
            passed(&mut faults(0, 0, 0, 3), 6),
            events(&[1, 2, 3, 3, 4, 5, 6, 6])
        );
        assert_eq!(
            passed(&mut faults(0, 0, 3, 0), 7),
            events(&[1, 2, 4, 3, 5, 7, 6])
        );
        // The last one has none behind it.
        let mut last = faults(0, 0, 3, 0);
        assert_eq!(passed(&mut last, 6), events(&[1, 2, 4, 3, 5, 6]));
        assert_eq!(last.planted.swapped, 1);
        let all = passed(&mut faults(0, 2, 0, 0), 2);
        let differ = all[1].iter().zip(event(2)).filter(|(a, b)| **a != *b);
        assert_eq!((all[0].clone(), differ.count()), (event(1), 1));
    }

    #[test]
    fn a_flipped_byte_leaves_lines_and_texts_whole() {
        for byte in 0..=u8::MAX {
            let out = flipped(&vec![byte; 20].into());
            assert_ne!(out[4], byte);
            assert!(!matches!(out[4], b'\n' | b'"' | b'\\'), "{byte}");
        }
        assert_eq!(flipped(&Bytes::from_static(b"x")), Bytes::from_static(b"y"));
    }

    #[test]
    fn faults_read_as_written() {
        assert_eq!("1/10000".parse(), Ok(OneIn::new(10_000).unwrap()));
        for text in ["", "10000", "1/0", "2/3", "1/", "1/x"] {
            assert!(text.parse::<OneIn>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn for_all_faults_what_goes_on_is_what_came_less_and_more_what_was_planted(
            rates in prop::array::uniform4(0_u64..12),
            count in 0_u64..200,
        ) {
            let [drop, flip, swap, double] = rates;
            let mut faults = faults(drop, flip, swap, double);
            let all = passed(&mut faults, count);
            let planted = faults.planted;
            let left = count - planted.dropped;
            let share = |of: u64, one_in: u64| of.checked_div(one_in).unwrap_or(0);
            prop_assert_eq!(planted.dropped, share(count, drop));
            prop_assert_eq!(planted.flipped, share(left, flip));
            prop_assert_eq!(planted.duplicated, share(left, double));
            prop_assert_eq!(all.len() as u64, left + planted.duplicated);
            if swap > 1 {
                let alone = u64::from(left > 0 && left.is_multiple_of(swap));
                prop_assert_eq!(planted.swapped, share(left, swap) - alone);
            }
        }
    }
}
