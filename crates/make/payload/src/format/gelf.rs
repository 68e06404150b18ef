//! Graylog's extended log format, version 1.1.

use stillwell_plan::PayloadFormat;
use stillwell_plan::payload::GelfEnd;

use crate::SlotUse;
use crate::contract::{Event, Joint, Recipe, Writer};
use crate::random::Random;
use crate::text::{Clock, Messages, Paper, application};

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
        paper: Paper::new(),
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
    paper: Paper,
    end: GelfEnd,
    event_max: usize,
    slots: SlotUse,
}

impl Writer for Gelf {
    fn next(&mut self) -> Option<Event<'_>> {
        let (mut random, mut pen) = (self.random.clone(), self.paper.pen());
        self.clock.advance(&mut random);
        pen.fixed(br#"{"version":"1.1","host":""#);
        pen.fragment(self.messages.vocabulary.host(&mut random));
        pen.fixed(br#"","short_message":""#);
        let room = self.event_max - (FLOOR - 1);
        let slot = self.messages.write(&mut pen, &mut random, room, self.slots);
        pen.fixed(br#"","timestamp":"#);
        self.clock.epoch_decimal(&mut pen);
        pen.fixed(br#","level":"#);
        pen.number(random.bits(3));
        pen.fixed(br#","_service":""#);
        pen.fragment(application(&mut random));
        pen.fixed(br#"","_user":""#);
        pen.fragment(self.messages.vocabulary.user(&mut random));
        pen.fixed(br#"","_request_id":""#);
        pen.random_uuid(&mut random);
        pen.fixed(br#"","_bytes":"#);
        pen.random_number(&mut random);
        pen.fixed(b"}");
        match self.end {
            GelfEnd::Null => pen.fixed(b"\0"),
            GelfEnd::Newline => pen.fixed(b"\n"),
            GelfEnd::Nothing => {}
        }
        self.random = random;
        let joint = match self.end {
            GelfEnd::Nothing => Joint::Break,
            GelfEnd::Null | GelfEnd::Newline => Joint::Frame,
        };
        Some(Event {
            joint,
            ..pen.event(slot)
        })
    }
}
