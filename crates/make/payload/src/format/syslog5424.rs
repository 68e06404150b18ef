//! One RFC 5424 syslog message a line.

use crate::SlotUse;
use crate::contract::{Event, Recipe, Writer};
use crate::random::Random;
use crate::text::{Clock, EventBuffer, Messages, PieceWriter, application};

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
        event_buffer: EventBuffer::new(),
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
    event_buffer: EventBuffer,
    event_max: usize,
    slots: SlotUse,
}

impl Writer for Syslog5424 {
    fn next(&mut self) -> Option<Event<'_>> {
        let (mut random, mut out) = (self.random.clone(), self.event_buffer.begin());
        let (messages, clock) = (&self.messages, &mut self.clock);
        clock.advance(&mut random);
        out.fixed(b"<");
        out.number(random.below(PRIORITIES));
        out.fixed(b">1 ");
        clock.rfc3339(&mut out);
        out.fixed(b" ");
        out.fragment(messages.vocabulary.host(&mut random));
        out.fixed(b" ");
        out.fragment(application(&mut random));
        out.fixed(b" ");
        out.number(1 + random.below(999));
        out.number_2(random.below(100));
        out.fixed(b" ID");
        out.number_3(random.below(1000));
        let may_be_structured = self.event_max >= FLOOR + STRUCTURED_MAX + 128;
        if may_be_structured && random.one_in_power_of_two(1) {
            structured_data(messages, &mut out, &mut random);
        } else {
            out.fixed(b" - ");
        }
        let room = self.event_max - out.len() - 1;
        let slot = messages.write(&mut out, &mut random, room, self.slots);
        out.fixed(b"\n");
        self.random = random;
        Some(out.event(slot))
    }
}

/// One or two elements, under the enterprise number that is kept for examples.
#[inline(always)]
fn structured_data(messages: &Messages, out: &mut PieceWriter<'_>, random: &mut Random) {
    out.fixed(br#" [trace@32473 id=""#);
    out.random_hexadecimal(random);
    out.random_hexadecimal(random);
    out.fixed(br#"" shard=""#);
    out.number(random.below(1000));
    out.fixed(br#""]"#);
    if random.one_in_power_of_two(1) {
        out.fixed(br#"[origin@32473 user=""#);
        out.fragment(messages.vocabulary.user(random));
        out.fixed(br#"" part=""#);
        out.number_2(random.below(100));
        out.fixed(br#""]"#);
    }
    out.fixed(b" ");
}
