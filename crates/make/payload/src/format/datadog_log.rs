//! Log objects as Datadog's intake takes them, one JSON array a block.

use crate::SlotUse;
use crate::contract::{Event, Recipe, Writer};
use crate::random::Random;
use crate::text::{Clock, Fragment, Messages, Paper, application};

/// No object whose message has one character is longer.
pub(crate) const FLOOR: usize = 256;

pub(crate) fn writer(recipe: &Recipe<'_>) -> Box<dyn Writer> {
    let mut random = Random::new(recipe.seed.derive("values", 0));
    Box::new(DatadogLog {
        clock: Clock::new(&mut random),
        random,
        messages: Messages::new(recipe.seed),
        paper: Paper::new(),
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
    paper: Paper,
    event_max: usize,
    slots: SlotUse,
}

impl Writer for DatadogLog {
    fn next(&mut self) -> Option<Event<'_>> {
        let (mut random, mut pen) = (self.random.clone(), self.paper.pen());
        let (messages, clock) = (&self.messages, &mut self.clock);
        clock.advance(&mut random);
        pen.fixed(br#"{"message":""#);
        let room = self.event_max - (FLOOR - 1);
        let slot = messages.write(&mut pen, &mut random, room, self.slots);
        pen.fixed(br#"","status":""#);
        pen.fragment(random.choose(&STATUSES));
        pen.fixed(br#"","timestamp":"#);
        clock.epoch_milliseconds(&mut pen);
        pen.fixed(br#","hostname":""#);
        pen.fragment(messages.vocabulary.host(&mut random));
        pen.fixed(br#"","service":""#);
        pen.fragment(application(&mut random));
        pen.fixed(br#"","ddsource":""#);
        pen.fragment(random.choose(&SOURCES));
        pen.fixed(br#"","ddtags":"env:"#);
        pen.fragment(random.choose(&ENVIRONMENTS));
        pen.fixed(b",team:");
        pen.fragment(random.choose(&TEAMS));
        pen.fixed(b",version:");
        pen.number(random.bits(4));
        pen.fixed(b".");
        pen.number(random.bits(6));
        pen.fixed(b".");
        pen.number(random.bits(8));
        pen.fixed(br#""}"#);
        self.random = random;
        Some(pen.event(slot))
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
