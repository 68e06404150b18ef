//! A clock that one part of a template has for itself.

use crate::random::Random;
use crate::text::Clock;

/// 2001-09-09T01:46:40Z, in seconds since 1970.
const EARLIEST_SECONDS: u64 = 1_000_000_000;

/// Up to 2033-05-18T03:33:20Z.
const SPREAD_SECONDS: u64 = 1_000_000_000;

const DAY_SECONDS: u64 = 86_400;

/// A time that advances by 1 to 1000 ms with each read.
#[derive(Debug)]
pub(super) struct AdvancingClock {
    /// Since 1970.
    milliseconds: u64,
    /// The second that `text` has, since 1970.
    second: u64,
    /// Its day.
    day: u64,
    /// `2021-02-03T04:05:06Z`
    text: [u8; 20],
}

impl AdvancingClock {
    pub(super) fn new(random: &mut Random) -> Self {
        let seconds = EARLIEST_SECONDS + random.between(0, SPREAD_SECONDS);
        Self {
            milliseconds: seconds * 1000,
            second: 0,
            day: 0,
            text: *b"1970-01-01T00:00:00Z",
        }
    }

    /// The next time.
    #[inline(always)]
    pub(super) fn tick(&mut self, random: &mut Random) -> &[u8; 20] {
        self.milliseconds += u64::from(1 + random.below(1000));
        let seconds = self.milliseconds / 1000;
        if seconds != self.second {
            self.second = seconds;
            self.render(seconds);
        }
        &self.text
    }

    fn render(&mut self, seconds: u64) {
        if seconds / DAY_SECONDS != self.day {
            self.day = seconds / DAY_SECONDS;
            let midnight = Clock::at(self.day * DAY_SECONDS);
            self.text[..11].copy_from_slice(&midnight.parts()[..11]);
        }
        let of_day = seconds % DAY_SECONDS;
        let parts = [of_day / 3600, of_day / 60 % 60, of_day % 60];
        for (place, part) in [11, 14, 17].into_iter().zip(parts) {
            let pair = &crate::text::PAIRS[usize::try_from(part).unwrap_or(0)];
            self.text[place..place + 2].copy_from_slice(pair);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stillwell_units::Seed;

    #[test]
    fn times_are_those_of_the_other_clock() {
        let mut random = Random::new(Seed::from_number(1));
        let mut clock = AdvancingClock::new(&mut random);
        // Across midnight, most likely, and a month, too.
        for _ in 0..20_000 {
            clock.milliseconds += 200_000;
            let text = *clock.tick(&mut random);
            let second_clock = Clock::at(clock.milliseconds / 1000);
            assert_eq!(text[..19], second_clock.parts()[..19]);
            assert_eq!(text[19], b'Z');
        }
    }
}
