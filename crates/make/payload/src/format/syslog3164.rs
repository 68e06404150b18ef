//! One RFC 3164 syslog message a line.

use crate::SlotUse;
use crate::contract::{Event, Recipe, Writer};
use crate::random::Random;
use crate::text::{Clock, EventBuffer, Fragment, Messages, PieceWriter, application};

/// No header is longer, with a message of one character and the line feed.
pub(crate) const FLOOR: usize = 112;

/// Facilities times severities.
const PRIORITIES: u16 = 192;

pub(crate) fn writer(recipe: &Recipe<'_>) -> Box<dyn Writer> {
    let mut random = Random::new(recipe.seed.derive("values", 0));
    let messages = Messages::new(recipe.seed);
    Box::new(Syslog3164 {
        clock: Clock::new(&mut random),
        random,
        hosts: messages.vocabulary.short_hosts(),
        messages,
        event_buffer: EventBuffer::new(),
        event_max: recipe.event_max,
        slots: recipe.slots,
    })
}

/// `<PRI>TIMESTAMP HOSTNAME TAG[PID]: CONTENT`
#[derive(Debug)]
struct Syslog3164 {
    random: Random,
    clock: Clock,
    /// The RFC wants names without their domain.
    hosts: Box<[Fragment; 256]>,
    messages: Messages,
    event_buffer: EventBuffer,
    event_max: usize,
    slots: SlotUse,
}

impl Writer for Syslog3164 {
    fn next(&mut self) -> Option<Event<'_>> {
        let (mut random, mut out) = (self.random.clone(), self.event_buffer.begin());
        self.clock.advance(&mut random);
        header(&mut out, &mut random, &self.clock, &self.hosts);
        out.fragment(application(&mut random));
        out.fixed(b"[");
        out.number(1 + random.below(999));
        out.number_2(random.below(100));
        out.fixed(b"]: ");
        let room = self.event_max - out.len() - 1;
        let slot = self.messages.write(&mut out, &mut random, room, self.slots);
        out.fixed(b"\n");
        self.random = random;
        Some(out.event(slot))
    }
}

/// `<34>Oct 11 22:14:15 host ` of at most 54 bytes.
#[inline(always)]
pub(super) fn header(
    out: &mut PieceWriter<'_>,
    random: &mut Random,
    clock: &Clock,
    hosts: &[Fragment; 256],
) {
    out.fixed(b"<");
    out.number(random.below(PRIORITIES));
    out.fixed(b">");
    clock.rfc3164(out);
    out.fixed(b" ");
    out.fragment(random.choose(hosts));
    out.fixed(b" ");
}
