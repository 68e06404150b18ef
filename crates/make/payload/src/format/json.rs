//! One JSON object a line: a number, a name, a seed and a list of bytes.

use crate::SlotUse;
use crate::contract::{Event, Recipe, Writer};
use crate::random::Random;
use crate::text::{Paper, Vocabulary};

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
        paper: Paper::new(),
        event_max: recipe.event_max,
        slots: recipe.slots,
    })
}

/// `{"id":…,"name":"…","seed":…,"byte_parade":[…]}`
#[derive(Debug)]
struct JsonWriter {
    random: Random,
    vocabulary: Vocabulary,
    paper: Paper,
    event_max: usize,
    slots: SlotUse,
}

impl Writer for JsonWriter {
    fn next(&mut self) -> Option<Event<'_>> {
        let (mut random, mut pen) = (self.random.clone(), self.paper.pen());
        let vocabulary = &self.vocabulary;
        pen.fixed(br#"{"id":"#);
        pen.random_number(&mut random);
        pen.fixed(br#","name":""#);
        let slot = pen.slot(self.slots);
        pen.fragment(vocabulary.user(&mut random));
        pen.fixed(b" ");
        pen.fragment(vocabulary.user(&mut random));
        pen.fixed(br#"","seed":"#);
        pen.random_number(&mut random);
        pen.fixed(br#","byte_parade":["#);
        let room = self.event_max - pen.len() - b"]}\n".len();
        let drawn = usize::from(1 + random.below(PARADE_MAX));
        for _ in 0..drawn.min(room / ENTRY_MAX) {
            pen.byte_and_comma(random.byte());
        }
        pen.cut(pen.len() - 1);
        pen.fixed(b"]}\n");
        self.random = random;
        Some(pen.event(slot))
    }
}
