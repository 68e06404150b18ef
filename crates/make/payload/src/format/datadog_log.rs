//! Log objects as Datadog's intake takes them, one JSON array a block.

use crate::SlotUse;
use crate::contract::{Event, Recipe, Writer};
use crate::random::Random;
use crate::text::{Clock, EventBuffer, Fragment, Messages, application};

/// No object whose message has one character is longer.
pub(crate) const FLOOR: usize = 256;

pub(crate) fn writer(recipe: &Recipe<'_>) -> Box<dyn Writer> {
    let mut random = Random::new(recipe.seed.derive("values", 0));
    Box::new(DatadogLog {
        clock: Clock::new(&mut random),
        random,
        messages: Messages::new(recipe.seed),
        event_buffer: EventBuffer::new(),
        event_max: recipe.event_max,
        slots: recipe.slots,
    })
}

/// `{"message":…,"status":…,"timestamp":…,"hostname":…,"service":…,"ddsource":…,"ddtags":…}`
///
/// What the other fields leave at the least is the room of the message.
#[derive(Debug)]
struct DatadogLog {
    random: Random,
    clock: Clock,
    messages: Messages,
    event_buffer: EventBuffer,
    event_max: usize,
    slots: SlotUse,
}

impl Writer for DatadogLog {
    fn next(&mut self) -> Option<Event<'_>> {
        let (mut random, mut out) = (self.random.clone(), self.event_buffer.begin());
        let (messages, clock) = (&self.messages, &mut self.clock);
        clock.advance(&mut random);
        out.fixed(br#"{"message":""#);
        let room = self.event_max - (FLOOR - 1);
        let slot = messages.write(&mut out, &mut random, room, self.slots);
        out.fixed(br#"","status":""#);
        out.fragment(random.choose(&STATUSES));
        out.fixed(br#"","timestamp":"#);
        clock.epoch_milliseconds(&mut out);
        out.fixed(br#","hostname":""#);
        out.fragment(messages.vocabulary.host(&mut random));
        out.fixed(br#"","service":""#);
        out.fragment(application(&mut random));
        out.fixed(br#"","ddsource":""#);
        out.fragment(random.choose(&SOURCES));
        out.fixed(br#"","ddtags":"env:"#);
        out.fragment(random.choose(&ENVIRONMENTS));
        out.fixed(b",team:");
        out.fragment(random.choose(&TEAMS));
        out.fixed(b",version:");
        out.number(random.bits(4));
        out.fixed(b".");
        out.number(random.bits(6));
        out.fixed(b".");
        out.number(random.bits(8));
        out.fixed(br#""}"#);
        self.random = random;
        Some(out.event(slot))
    }
}

#[rustfmt::skip]
static STATUSES: [Fragment; 16] = Fragment::all([
    "info", "info", "info", "info", "info", "info", "info", "debug",
    "debug", "debug", "notice", "warning", "warning", "error", "error", "critical",
]);

#[rustfmt::skip]
static SOURCES: [Fragment; 16] = Fragment::all([
    "apache", "consul", "csharp", "go", "haproxy", "java", "kafka", "mysql",
    "nginx", "nodejs", "postgresql", "python", "rabbitmq", "redis", "ruby", "rust",
]);

static ENVIRONMENTS: [Fragment; 4] = Fragment::all(["prod", "staging", "canary", "dev"]);

#[rustfmt::skip]
static TEAMS: [Fragment; 16] = Fragment::all([
    "access", "basin", "cobalt", "delivery", "evergreen", "finance", "growth", "harbour",
    "insight", "kiosk", "logistics", "mobile", "network", "platform", "retail", "storage",
]);
