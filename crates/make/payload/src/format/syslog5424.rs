//! One RFC 5424 syslog message a line.

use crate::SlotUse;
use crate::contract::{Event, Recipe, Writer};
use crate::random::Random;
use crate::text::{Clock, Messages, Paper, Pen, application};

/// No header without structured data is longer, with a message of one character
/// and the line feed.
pub(crate) const FLOOR: usize = 112;

/// Maximum length of structured data, besides the `-` for none.
const STRUCTURED_MAX: usize = 128;

/// Facilities times severities.
const PRIORITIES: u16 = 192;

pub(crate) fn writer(recipe: &Recipe<'_>) -> Box<dyn Writer> {
    let mut random = Random::new(recipe.seed.derive("values", 0));
    Box::new(Syslog5424 {
        clock: Clock::new(&mut random),
        random,
        messages: Messages::new(recipe.seed),
        paper: Paper::new(),
        event_max: recipe.event_max,
        slots: recipe.slots,
    })
}

/// `<PRI>1 TIMESTAMP HOSTNAME APP-NAME PROCID MSGID STRUCTURED-DATA MSG`
#[derive(Debug)]
struct Syslog5424 {
    random: Random,
    clock: Clock,
    messages: Messages,
    paper: Paper,
    event_max: usize,
    slots: SlotUse,
}

impl Writer for Syslog5424 {
    fn next(&mut self) -> Option<Event<'_>> {
        let (mut random, mut pen) = (self.random.clone(), self.paper.pen());
        let (messages, clock) = (&self.messages, &mut self.clock);
        clock.advance(&mut random);
        pen.fixed(b"<");
        pen.number(random.below(PRIORITIES));
        pen.fixed(b">1 ");
        clock.rfc3339(&mut pen);
        pen.fixed(b" ");
        pen.fragment(messages.vocabulary.host(&mut random));
        pen.fixed(b" ");
        pen.fragment(application(&mut random));
        pen.fixed(b" ");
        pen.number(1 + random.below(999));
        pen.number_2(random.below(100));
        pen.fixed(b" ID");
        pen.number_3(random.below(1000));
        let may_be_structured = self.event_max >= FLOOR + STRUCTURED_MAX + 128;
        if may_be_structured && random.seldom(1) {
            structured_data(messages, &mut pen, &mut random);
        } else {
            pen.fixed(b" - ");
        }
        let room = self.event_max - pen.len() - 1;
        let slot = messages.write(&mut pen, &mut random, room, self.slots);
        pen.fixed(b"\n");
        self.random = random;
        Some(pen.event(slot))
    }
}

/// One or two elements, under the enterprise number that is kept for examples.
#[inline(always)]
fn structured_data(messages: &Messages, pen: &mut Pen<'_>, random: &mut Random) {
    pen.fixed(br#" [trace@32473 id=""#);
    pen.random_hexadecimal(random);
    pen.random_hexadecimal(random);
    pen.fixed(br#"" shard=""#);
    pen.number(random.below(1000));
    pen.fixed(br#""]"#);
    if random.seldom(1) {
        pen.fixed(br#"[origin@32473 user=""#);
        pen.fragment(messages.vocabulary.user(random));
        pen.fixed(br#"" part=""#);
        pen.number_2(random.below(100));
        pen.fixed(br#""]"#);
    }
    pen.fixed(b" ");
}
