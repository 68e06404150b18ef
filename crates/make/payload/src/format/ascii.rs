//! Lines of random printable ASCII.
//!
//! Lengths are drawn evenly from 2 to 6144 bytes with the line feed, about
//! 3 KiB on average; smaller blocks draw from 2 to their maximum. Characters are
//! drawn from the 95 printable ones.

use crate::SlotUse;
use crate::contract::{Event, Recipe, Writer};
use crate::random::Random;
use crate::text::EventBuffer;

/// One character and the line feed.
pub(crate) const FLOOR: usize = 2;

/// The longest line, with its line feed.
const LINE_MAX: usize = 6144;

pub(crate) fn writer(recipe: &Recipe<'_>) -> Box<dyn Writer> {
    Box::new(Ascii {
        random: Random::new(recipe.seed),
        event_buffer: EventBuffer::new(),
        event_max: recipe.event_max.min(LINE_MAX),
        slots: recipe.slots,
    })
}

#[derive(Debug)]
struct Ascii {
    random: Random,
    event_buffer: EventBuffer,
    event_max: usize,
    slots: SlotUse,
}

impl Writer for Ascii {
    fn next(&mut self) -> Option<Event<'_>> {
        let (mut random, mut out) = (self.random.clone(), self.event_buffer.begin());
        let slot = out.slot(self.slots);
        let room = self.event_max - out.len() - 1;
        let length = random.between(1, room as u64);
        let length = usize::try_from(length).unwrap_or(room);
        out.words(length, || printable(random.word()).to_le_bytes());
        out.fixed(b"\n");
        self.random = random;
        Some(out.event(slot))
    }
}

/// Eight random bytes as eight printable characters. Each byte becomes
/// 32 + byte × 95 / 256; four bytes share one multiplication, each in a lane of
/// 16 bits that it cannot leave.
const fn printable(word: u64) -> u64 {
    const LOW: u64 = 0x00ff_00ff_00ff_00ff;
    let even = (((word & LOW) * 95) >> 8) & LOW;
    let odd = (((word >> 8) & LOW) * 95) & !LOW;
    (even | odd) + 0x2020_2020_2020_2020
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_becomes_its_printable_character_in_every_vector_lane() {
        for byte in 0..=255_u8 {
            let expected = 32 + u8::try_from(u32::from(byte) * 95 / 256).unwrap();
            assert!((b' '..=b'~').contains(&expected));
            let word = printable(u64::from_le_bytes([byte; 8]));
            assert_eq!(word.to_le_bytes(), [expected; 8]);
        }
    }
}
