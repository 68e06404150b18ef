//! One RFC 3164 syslog message a line.

use crate::SlotUse;
use crate::contract::{Event, Recipe, Writer};
use crate::random::Random;
use crate::text::{Clock, Fragment, Messages, Paper, Pen, application};

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
        paper: Paper::new(),
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
    paper: Paper,
    event_max: usize,
    slots: SlotUse,
}

impl Writer for Syslog3164 {
    fn next(&mut self) -> Option<Event<'_>> {
        let (mut random, mut pen) = (self.random.clone(), self.paper.pen());
        self.clock.advance(&mut random);
        header(&mut pen, &mut random, &self.clock, &self.hosts);
        pen.fragment(application(&mut random));
        pen.fixed(b"[");
        pen.number(1 + random.below(999));
        pen.number_2(random.below(100));
        pen.fixed(b"]: ");
        let room = self.event_max - pen.len() - 1;
        let slot = self.messages.write(&mut pen, &mut random, room, self.slots);
        pen.fixed(b"\n");
        self.random = random;
        Some(pen.event(slot))
    }
}

/// `<34>Oct 11 22:14:15 host ` of at most 54 bytes.
#[inline(always)]
pub(super) fn header(
    pen: &mut Pen<'_>,
    random: &mut Random,
    clock: &Clock,
    hosts: &[Fragment; 256],
) {
    pen.fixed(b"<");
    pen.number(random.below(PRIORITIES));
    pen.fixed(b">");
    clock.rfc3164(pen);
    pen.fixed(b" ");
    pen.fragment(random.choose(hosts));
    pen.fixed(b" ");
}
