//! Graylog's extended log format, version 1.1.

use stillwell_plan::PayloadFormat;
use stillwell_plan::payload::GelfEnd;

use crate::SlotUse;
use crate::contract::{Event, Joint, Recipe, Writer};
use crate::random::Random;
use crate::text::{Clock, EventBuffer, Messages, application};

/// No message whose short message has one character is longer, with its end.
pub(crate) const FLOOR: usize = 384;

pub(crate) fn writer(recipe: &Recipe<'_>) -> Box<dyn Writer> {
    let end = match recipe.format {
        PayloadFormat::Gelf { end } => *end,
        _ => GelfEnd::default(),
    };
    let mut random = Random::new(recipe.seed.derive("values", 0));
    Box::new(Gelf {
        clock: Clock::new(&mut random),
        random,
        messages: Messages::new(recipe.seed),
        event_buffer: EventBuffer::new(),
        end,
        event_max: recipe.event_max,
        slots: recipe.slots,
    })
}

/// `{"version":"1.1","host":…,"short_message":…,"timestamp":…,"level":…,…}`
#[derive(Debug)]
struct Gelf {
    random: Random,
    clock: Clock,
    messages: Messages,
    event_buffer: EventBuffer,
    end: GelfEnd,
    event_max: usize,
    slots: SlotUse,
}

impl Writer for Gelf {
    fn next(&mut self) -> Option<Event<'_>> {
        let (mut random, mut out) = (self.random.clone(), self.event_buffer.begin());
        self.clock.advance(&mut random);
        out.fixed(br#"{"version":"1.1","host":""#);
        out.fragment(self.messages.vocabulary.host(&mut random));
        out.fixed(br#"","short_message":""#);
        let room = self.event_max - (FLOOR - 1);
        let slot = self.messages.write(&mut out, &mut random, room, self.slots);
        out.fixed(br#"","timestamp":"#);
        self.clock.epoch_decimal(&mut out);
        out.fixed(br#","level":"#);
        out.number(random.bits(3));
        out.fixed(br#","_service":""#);
        out.fragment(application(&mut random));
        out.fixed(br#"","_user":""#);
        out.fragment(self.messages.vocabulary.user(&mut random));
        out.fixed(br#"","_request_id":""#);
        out.random_uuid(&mut random);
        out.fixed(br#"","_bytes":"#);
        out.random_number(&mut random);
        out.fixed(b"}");
        match self.end {
            GelfEnd::Null => out.fixed(b"\0"),
            GelfEnd::Newline => out.fixed(b"\n"),
            GelfEnd::Nothing => {}
        }
        self.random = random;
        let joint = match self.end {
            GelfEnd::Nothing => Joint::Break,
            GelfEnd::Null | GelfEnd::Newline => Joint::Frame,
        };
        Some(Event {
            joint,
            ..out.event(slot)
        })
    }
}
