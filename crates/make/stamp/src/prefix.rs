//! Time alone in front of an event: eight bytes, big-endian, nanoseconds, as
//! `ingest-ns` pre- and postprocessors read and write them.
//!
//! It has no magic, no sequence and no checksum: it is found only where the framing says that an
//! event begins, it gives a latency, and it says nothing about loss. Any eight bytes are a prefix,
//! so a time is trusted only within the bounds that the caller knows: see [`Plausible`].

use memchr::memchr;
use stillwell_units::{Moment, Nanos, as_usize};

/// Bytes of the prefix.
pub const PREFIX_WIDTH: usize = 8;

/// Bytes of the length before it, where there is one.
pub const LENGTH_WIDTH: usize = 8;

/// No event is longer than that, its prefix included: a larger length is none.
const EVENT_BYTES_MAX: u64 = 64 << 20;

/// The prefix for an event that is meant to be sent at `intended`. The receiver
/// has to read the same clock.
#[must_use]
pub const fn write(intended: Moment) -> [u8; PREFIX_WIDTH] {
    intended.as_u64().to_be_bytes()
}

/// The framing of events.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Framing {
    /// Each ends with a line feed; those among the bytes of a prefix do not count.
    Lines,
    /// Each has the length of prefix and event before it, in eight bytes,
    /// big-endian, as `length-prefixed` writes it.
    Lengths,
}

impl Framing {
    /// Length of the framing and prefix before an event.
    const fn head_bytes(self) -> usize {
        match self {
            Self::Lines => PREFIX_WIDTH,
            Self::Lengths => LENGTH_WIDTH + PREFIX_WIDTH,
        }
    }
}

/// A result of a [`PrefixReader`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Prefixed {
    /// A whole event, and the time before it.
    Event(Moment),
    /// The end came within an event.
    Cut,
    /// An invalid length: the next beginning of an event is unknown.
    Unframed,
}

/// Reads the times before the events of one connection or datagram, cut anywhere.
#[derive(Clone, Copy, Debug)]
pub struct PrefixReader {
    framing: Framing,
    state: State,
    /// The received bytes of the framing and prefix.
    head: [u8; LENGTH_WIDTH + PREFIX_WIDTH],
    head_bytes: usize,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Within the framing and prefix of an event.
    Head,
    /// Within a line that has this time.
    Line(Moment),
    /// Within an event that has this time, so many bytes before its end.
    Body(Moment, u64),
    Unframed,
}

impl PrefixReader {
    /// Before the first event.
    #[must_use]
    pub const fn new(framing: Framing) -> Self {
        Self {
            framing,
            state: State::Head,
            head: [0; LENGTH_WIDTH + PREFIX_WIDTH],
            head_bytes: 0,
        }
    }

    /// Takes the next read and visits each event that ends in it, in order.
    pub fn take(&mut self, mut read: &[u8], mut visit: impl FnMut(Prefixed)) {
        while !read.is_empty() {
            read = match self.state {
                State::Head => self.take_head(read, &mut visit),
                State::Line(time) => match memchr(b'\n', read) {
                    Some(end) => {
                        self.ended(time, &mut visit);
                        &read[end + 1..]
                    }
                    None => return,
                },
                State::Body(time, left) => {
                    let here = as_usize(left).min(read.len());
                    self.begin_body(time, left - here as u64, &mut visit);
                    &read[here..]
                }
                State::Unframed => return,
            };
        }
    }

    /// Ends the input: an event that has begun ends here, if it is a line. The next read begins a
    /// new input.
    pub fn finish(&mut self, mut visit: impl FnMut(Prefixed)) {
        match self.state {
            State::Head if self.head_bytes > 0 => visit(Prefixed::Cut),
            State::Line(time) => visit(Prefixed::Event(time)),
            State::Body(..) => visit(Prefixed::Cut),
            State::Head | State::Unframed => {}
        }
        *self = Self::new(self.framing);
    }

    /// Returns true if an event has begun and not ended.
    #[must_use]
    pub const fn is_within_event(&self) -> bool {
        match self.state {
            State::Head => self.head_bytes > 0,
            State::Line(_) | State::Body(..) => true,
            State::Unframed => false,
        }
    }

    /// Returns the part of `read` behind the head; nothing while the head is incomplete.
    fn take_head<'r>(&mut self, read: &'r [u8], visit: &mut impl FnMut(Prefixed)) -> &'r [u8] {
        let whole = self.framing.head_bytes();
        let here = (whole - self.head_bytes).min(read.len());
        let (new, rest) = read.split_at(here);
        self.head[self.head_bytes..][..here].copy_from_slice(new);
        self.head_bytes += here;
        if self.head_bytes == whole {
            self.head_bytes = 0;
            self.begin(visit);
        }
        rest
    }

    /// The framing and prefix of an event are complete.
    fn begin(&mut self, visit: &mut impl FnMut(Prefixed)) {
        let (words, _) = self.head.as_chunks::<8>();
        let [first, second] = [words[0], words[1]].map(u64::from_be_bytes);
        match self.framing {
            Framing::Lines => self.state = State::Line(Moment::new(first)),
            Framing::Lengths => match first.checked_sub(PREFIX_WIDTH as u64) {
                Some(left) if first <= EVENT_BYTES_MAX => {
                    self.begin_body(Moment::new(second), left, visit);
                }
                _ => {
                    self.state = State::Unframed;
                    visit(Prefixed::Unframed);
                }
            },
        }
    }

    fn begin_body(&mut self, time: Moment, left: u64, visit: &mut impl FnMut(Prefixed)) {
        if left == 0 {
            self.ended(time, visit);
        } else {
            self.state = State::Body(time, left);
        }
    }

    fn ended(&mut self, time: Moment, visit: &mut impl FnMut(Prefixed)) {
        self.state = State::Head;
        visit(Prefixed::Event(time));
    }
}

/// Bounds of times that are trusted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Plausible {
    earliest: Moment,
    ahead: Nanos,
}

impl Plausible {
    /// Accepts times from `earliest` until `ahead` after they were read: the sender's clock may be
    /// ahead by that.
    #[must_use]
    pub const fn new(earliest: Moment, ahead: Nanos) -> Self {
        Self { earliest, ahead }
    }

    /// Returns how long before `now` the time of a prefix is, 0 if it is ahead; `None` if it is out
    /// of bounds.
    #[must_use]
    pub fn latency(&self, time: Moment, now: Moment) -> Option<Nanos> {
        let is_plausible = self.earliest <= time && time <= now + self.ahead;
        is_plausible.then(|| now.since(time))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn framed(framing: Framing, events: &[(u64, Vec<u8>)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (time, event) in events {
            if framing == Framing::Lengths {
                let length = (PREFIX_WIDTH + event.len()) as u64;
                bytes.extend_from_slice(&length.to_be_bytes());
            }
            bytes.extend_from_slice(&write(Moment::new(*time)));
            bytes.extend_from_slice(event);
            if framing == Framing::Lines {
                bytes.push(b'\n');
            }
        }
        bytes
    }

    fn read<'b>(framing: Framing, parts: impl IntoIterator<Item = &'b [u8]>) -> Vec<Prefixed> {
        let (mut reader, mut prefixes) = (PrefixReader::new(framing), Vec::new());
        for part in parts {
            reader.take(part, |prefix| prefixes.push(prefix));
        }
        reader.finish(|prefix| prefixes.push(prefix));
        assert!(!reader.is_within_event());
        prefixes
    }

    proptest! {
        #[test]
        fn for_all_events_and_cuts_each_has_its_time(
            events in prop::collection::vec((any::<u64>(), "[ -~]{0,40}".prop_map(Vec::from)), 0..20),
            part_bytes in 1_usize..70,
            lines in any::<bool>(),
        ) {
            let framing = if lines { Framing::Lines } else { Framing::Lengths };
            let bytes = framed(framing, &events);
            let times = events.iter().map(|(time, _)| Prefixed::Event(Moment::new(*time)));
            let prefixes = read(framing, bytes.chunks(part_bytes));
            prop_assert_eq!(&prefixes, &times.collect::<Vec<_>>());
            // Any cut is reported, save a line feed.
            let cut = bytes.len().saturating_sub(1);
            let shorter = read(framing, [&bytes[..cut]]);
            prop_assert_eq!(shorter.len(), prefixes.len());
            prop_assert_eq!(shorter.contains(&Prefixed::Cut), !lines && !prefixes.is_empty());
        }

        #[test]
        fn for_all_bytes_reading_ends_and_does_not_depend_on_the_cuts(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            part_bytes in 1_usize..40,
            lines in any::<bool>(),
        ) {
            let framing = if lines { Framing::Lines } else { Framing::Lengths };
            prop_assert_eq!(read(framing, bytes.chunks(part_bytes)), read(framing, [&bytes[..]]));
        }

        #[test]
        fn for_all_times_only_those_within_the_bounds_are_accepted(
            earliest in 1_000_u64..2_000,
            time in 0_u64..5_000,
            now in 2_000_u64..4_000,
            ahead in 0_u64..100,
        ) {
            let bounds = Plausible::new(Moment::new(earliest), Nanos::new(ahead));
            let latency = bounds.latency(Moment::new(time), Moment::new(now));
            let expected = (earliest..=now + ahead).contains(&time);
            let expected = expected.then(|| Nanos::new(now.saturating_sub(time)));
            prop_assert_eq!(latency, expected);
        }
    }

    #[test]
    fn a_prefix_is_eight_bytes_in_the_order_of_the_network() {
        assert_eq!(write(Moment::new(0x0102)), [0, 0, 0, 0, 0, 0, 1, 2]);
        let lines = b"\0\0\0\0\0\0\0\x01one\n\0\0\0\0\0\0\0\ntwo";
        let times = [1, 10].map(|time| Prefixed::Event(Moment::new(time)));
        assert_eq!(read(Framing::Lines, [&lines[..]]), times);
    }

    #[test]
    fn what_is_no_length_ends_the_reading() {
        for length in [0, 7, EVENT_BYTES_MAX + 1, u64::from_be_bytes(*b"<13>1 20")] {
            let mut bytes = length.to_be_bytes().to_vec();
            bytes.extend_from_slice(&[0; 40]);
            let prefixes = read(Framing::Lengths, [&bytes[..]]);
            assert_eq!(prefixes, [Prefixed::Unframed], "{length}");
        }
    }
}
