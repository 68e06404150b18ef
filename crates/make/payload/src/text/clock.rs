//! Times inside events. They follow from the seed and have nothing to do with
//! when a run takes place.

use jiff::Timestamp;
use jiff::tz::Offset;
use stillwell_units::Nanos;

use super::PieceWriter;
use super::digits::{PAIRS, TRIPLES};
use crate::random::Random;

/// 2021-01-01T00:00:00Z, in seconds since 1970.
const EARLIEST_SECONDS: u64 = 1_609_459_200;

/// Eight years. With the 2^32 events that a set can hold at most, 31 ms apart,
/// no time passes 2034, and where sets go on from one another none passes 2100
/// within 10^11 events: seconds keep ten digits and years four.
const SPREAD_SECONDS: u64 = 8 * 365 * 86_400;

#[rustfmt::skip]
const MONTHS: [[u8; 3]; 12] = [
    *b"Jan", *b"Feb", *b"Mar", *b"Apr", *b"May", *b"Jun",
    *b"Jul", *b"Aug", *b"Sep", *b"Oct", *b"Nov", *b"Dec",
];

/// A time that moves on by 0 to 31 ms from event to event, with its texts.
#[derive(Debug)]
pub(crate) struct Clock {
    seconds: u64,
    milliseconds: u16,
    /// `2021-02-03T04:05:06.`
    rfc3339: [u8; 20],
    /// `03/Feb/2021:04:05:06 +0000`
    common_log: [u8; 26],
    /// `1612325106`
    epoch: [u8; 10],
    /// `Feb  3 04:05:06`
    rfc3164: [u8; 15],
}

impl Clock {
    /// A time drawn from eight years.
    pub(crate) fn new(random: &mut Random) -> Self {
        let seconds = EARLIEST_SECONDS + random.between(0, SPREAD_SECONDS);
        Self::at(seconds)
    }

    pub(crate) fn at(seconds: u64) -> Self {
        let mut clock = Self {
            seconds,
            milliseconds: 0,
            rfc3339: *b"0000-00-00T00:00:00.",
            common_log: *b"00/Jan/0000:00:00:00 +0000",
            epoch: [b'0'; 10],
            rfc3164: *b"Jan 00 00:00:00",
        };
        clock.render();
        clock
    }

    /// A time since 1970, its milliseconds included.
    pub(crate) fn from_time(time: Nanos) -> Self {
        let milliseconds = time.as_u64() / 1_000_000;
        Self {
            milliseconds: u16::try_from(milliseconds % 1000).unwrap_or(0),
            ..Self::at(milliseconds / 1000)
        }
    }

    /// Since 1970.
    pub(crate) const fn time(&self) -> Nanos {
        Nanos::new((self.seconds * 1000 + self.milliseconds as u64) * 1_000_000)
    }

    /// Moves on to the next event.
    #[inline(always)]
    pub(crate) fn advance(&mut self, random: &mut Random) {
        self.milliseconds += random.bits(5);
        if self.milliseconds >= 1000 {
            self.milliseconds -= 1000;
            self.seconds += 1;
            self.render();
        }
    }

    /// `2021-02-03T04:05:06.789Z`
    #[inline(always)]
    pub(crate) fn rfc3339(&self, out: &mut PieceWriter<'_>) {
        out.fixed(&self.rfc3339);
        out.number_3(self.milliseconds);
        out.fixed(b"Z");
    }

    /// `03/Feb/2021:04:05:06 +0000`
    #[inline(always)]
    pub(crate) fn common_log(&self, out: &mut PieceWriter<'_>) {
        out.fixed(&self.common_log);
    }

    /// `1612325106789`
    #[inline(always)]
    pub(crate) fn epoch_milliseconds(&self, out: &mut PieceWriter<'_>) {
        out.fixed(&self.epoch);
        out.number_3(self.milliseconds);
    }

    /// `Feb  3 04:05:06`
    #[inline(always)]
    pub(crate) fn rfc3164(&self, out: &mut PieceWriter<'_>) {
        out.fixed(&self.rfc3164);
    }

    /// `1612325106`
    #[inline(always)]
    pub(crate) fn epoch_seconds(&self, out: &mut PieceWriter<'_>) {
        out.fixed(&self.epoch);
    }

    /// `1612325106.789`
    #[inline(always)]
    pub(crate) fn epoch_decimal(&self, out: &mut PieceWriter<'_>) {
        out.fixed(&self.epoch);
        out.fixed(b".");
        out.number_3(self.milliseconds);
    }

    /// `1612325106789000000`
    #[inline(always)]
    pub(crate) fn epoch_nanoseconds(&self, out: &mut PieceWriter<'_>) {
        self.epoch_milliseconds(out);
        out.fixed(b"000000");
    }

    /// `789`
    #[inline(always)]
    pub(crate) const fn milliseconds(&self) -> u16 {
        self.milliseconds
    }

    /// `2021-02-03T04:05:06.`, from which other texts are put together.
    #[inline(always)]
    pub(crate) const fn parts(&self) -> &[u8; 20] {
        &self.rfc3339
    }

    /// `Feb`
    #[inline(always)]
    pub(crate) const fn month_name(&self) -> [u8; 3] {
        [self.rfc3164[0], self.rfc3164[1], self.rfc3164[2]]
    }

    /// Writes the whole second into each text.
    #[cold]
    fn render(&mut self) {
        let seconds = i64::try_from(self.seconds).unwrap_or(i64::MAX);
        let time = Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX);
        let time = Offset::UTC.to_datetime(time);
        let part = |value: i8| pair(u64::from(value.unsigned_abs()));
        let (hour, minute, second) = (part(time.hour()), part(time.minute()), part(time.second()));
        let day = part(time.day());
        let month = u64::from(time.month().unsigned_abs());
        let year = u64::from(time.year().unsigned_abs());
        let (century, of_century) = (pair(year / 100), pair(year % 100));

        self.rfc3339[0..2].copy_from_slice(&century);
        self.rfc3339[2..4].copy_from_slice(&of_century);
        self.rfc3339[5..7].copy_from_slice(&pair(month));
        self.rfc3339[8..10].copy_from_slice(&day);
        self.rfc3339[11..13].copy_from_slice(&hour);
        self.rfc3339[14..16].copy_from_slice(&minute);
        self.rfc3339[17..19].copy_from_slice(&second);

        self.common_log[0..2].copy_from_slice(&day);
        self.common_log[3..6].copy_from_slice(&MONTHS[index((month + 11) % 12)]);
        self.common_log[7..9].copy_from_slice(&century);
        self.common_log[9..11].copy_from_slice(&of_century);
        self.common_log[12..14].copy_from_slice(&hour);
        self.common_log[15..17].copy_from_slice(&minute);
        self.common_log[18..20].copy_from_slice(&second);

        self.rfc3164[0..3].copy_from_slice(&MONTHS[index((month + 11) % 12)]);
        self.rfc3164[4..6].copy_from_slice(&day);
        if self.rfc3164[4] == b'0' {
            self.rfc3164[4] = b' ';
        }
        self.rfc3164[7..9].copy_from_slice(&hour);
        self.rfc3164[10..12].copy_from_slice(&minute);
        self.rfc3164[13..15].copy_from_slice(&second);

        self.epoch[0..1]
            .copy_from_slice(&TRIPLES[index(self.seconds / 1_000_000_000 % 10)].padded[2..]);
        self.epoch[1..4].copy_from_slice(&TRIPLES[index(self.seconds / 1_000_000 % 1000)].padded);
        self.epoch[4..7].copy_from_slice(&TRIPLES[index(self.seconds / 1000 % 1000)].padded);
        self.epoch[7..10].copy_from_slice(&TRIPLES[index(self.seconds % 1000)].padded);
    }
}

/// The lowest two decimal digits of `value`.
fn pair(value: u64) -> [u8; 2] {
    PAIRS[index(value % 100)]
}

/// A number below 1000 as an index.
fn index(value: u64) -> usize {
    usize::try_from(value).expect("callers keep it below 1000")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::EventBuffer;

    fn texts(seconds: u64) -> [String; 4] {
        let clock = Clock::at(seconds);
        let write = |text: fn(&Clock, &mut PieceWriter<'_>)| {
            let mut event_buffer = EventBuffer::new();
            let mut out = event_buffer.begin();
            text(&clock, &mut out);
            String::from_utf8(out.event(None).bytes.to_vec()).unwrap()
        };
        [
            write(Clock::rfc3339),
            write(Clock::common_log),
            write(Clock::epoch_milliseconds),
            write(Clock::rfc3164),
        ]
    }

    #[test]
    fn known_seconds_have_their_known_dates() {
        assert_eq!(
            texts(1_709_210_096),
            [
                "2024-02-29T12:34:56.000Z",
                "29/Feb/2024:12:34:56 +0000",
                "1709210096000",
                "Feb 29 12:34:56"
            ]
        );
        assert_eq!(texts(EARLIEST_SECONDS)[0], "2021-01-01T00:00:00.000Z");
        assert_eq!(texts(1_000_000_000)[1], "09/Sep/2001:01:46:40 +0000");
        assert_eq!(texts(1_000_000_000)[3], "Sep  9 01:46:40");
        assert_eq!(texts(951_868_800)[0], "2000-03-01T00:00:00.000Z");
    }
}
