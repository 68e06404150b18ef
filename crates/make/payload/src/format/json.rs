//! One JSON object a line: a number, a name, a seed and a list of bytes.

use crate::SlotUse;
use crate::contract::{Event, Recipe, Writer};
use crate::random::Random;
use crate::text::{EventBuffer, Vocabulary};

/// No object whose list of bytes has one entry is longer, with its line feed.
pub(crate) const FLOOR: usize = 112;

/// Most entries in the list of bytes.
const PARADE_MAX: u16 = 63;

/// Most digits and comma that one entry takes.
const ENTRY_MAX: usize = 4;

pub(crate) fn writer(recipe: &Recipe<'_>) -> Box<dyn Writer> {
    Box::new(JsonWriter {
        random: Random::new(recipe.seed.derive("values", 0)),
        vocabulary: Vocabulary::new(recipe.seed.derive("names", 0)),
        event_buffer: EventBuffer::new(),
        event_max: recipe.event_max,
        slots: recipe.slots,
    })
}

/// `{"id":…,"name":"…","seed":…,"byte_parade":[…]}`
#[derive(Debug)]
struct JsonWriter {
    random: Random,
    vocabulary: Vocabulary,
    event_buffer: EventBuffer,
    event_max: usize,
    slots: SlotUse,
}

impl Writer for JsonWriter {
    fn next(&mut self) -> Option<Event<'_>> {
        let (mut random, mut out) = (self.random.clone(), self.event_buffer.begin());
        let vocabulary = &self.vocabulary;
        out.fixed(br#"{"id":"#);
        out.random_number(&mut random);
        out.fixed(br#","name":""#);
        let slot = out.slot(self.slots);
        out.fragment(vocabulary.user(&mut random));
        out.fixed(b" ");
        out.fragment(vocabulary.user(&mut random));
        out.fixed(br#"","seed":"#);
        out.random_number(&mut random);
        out.fixed(br#","byte_parade":["#);
        let room = self.event_max - out.len() - b"]}\n".len();
        let drawn = usize::from(1 + random.below(PARADE_MAX));
        for _ in 0..drawn.min(room / ENTRY_MAX) {
            out.byte_and_comma(random.byte());
        }
        out.cut(out.len() - 1);
        out.fixed(b"]}\n");
        self.random = random;
        Some(out.event(slot))
    }
}
