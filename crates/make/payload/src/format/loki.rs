//! Log lines in the JSON of Loki's push API, one document a block.
//!
//! Lines of one stream come in runs of up to 32, as a shipper batches them. Each stream
//! is one worker's, whose lines go on from set to set in the order of their times.

use std::fmt;

use stillwell_plan::PayloadFormat;
use stillwell_plan::payload::LokiPlan;
use stillwell_units::{Nanos, Seed};

use crate::contract::{Event, Joint, LOKI_OPENING_MAX, Recipe, Writer};
use crate::event_time::in_order;
use crate::mix::index;
use crate::random::Random;
use crate::text::{Clock, EventBuffer, Messages, Vocabulary, application};
use crate::{Part, SlotUse};

/// No entry whose line has one character is longer.
pub(crate) const FLOOR: usize = 32;

pub(crate) fn writer(recipe: &Recipe<'_>) -> Box<dyn Writer> {
    let plan = match recipe.format {
        PayloadFormat::Loki(plan) => *plan,
        _ => LokiPlan::default(),
    };
    Box::new(Loki {
        clock: Clock::from_time(in_order(recipe)),
        random: Random::new(recipe.seed.derive("values", 0)),
        streams: Streams::new(plan, recipe.common),
        part: recipe.part,
        messages: Messages::new(recipe.seed),
        event_buffer: EventBuffer::new(),
        stream: 0,
        left_in_run: 0,
        event_max: recipe.event_max,
        slots: recipe.slots,
    })
}

/// `["NANOSECONDS","LINE"]`
#[derive(Debug)]
struct Loki {
    random: Random,
    clock: Clock,
    messages: Messages,
    streams: Streams,
    part: Part,
    event_buffer: EventBuffer,
    stream: usize,
    left_in_run: u16,
    event_max: usize,
    slots: SlotUse,
}

impl Writer for Loki {
    fn next(&mut self) -> Option<Event<'_>> {
        let (mut random, mut out) = (self.random.clone(), self.event_buffer.begin());
        self.clock.advance(&mut random);
        let continues = self.left_in_run > 0;
        if continues {
            self.left_in_run -= 1;
        } else {
            self.left_in_run = random.bits(5);
            self.stream = self.streams.choose(&mut random, self.part);
        }
        out.fixed(br#"[""#);
        self.clock.epoch_nanoseconds(&mut out);
        out.fixed(br#"",""#);
        let room = self.event_max - out.len() - 2;
        let slot = self.messages.write(&mut out, &mut random, room, self.slots);
        out.fixed(br#""]"#);
        self.random = random;
        let (first, next) = self.streams.openings(self.stream);
        let next = if continues { b"," } else { next };
        Some(Event {
            joint: Joint::Separator { first, next },
            ..out.event(slot)
        })
    }

    fn time(&self) -> Option<Nanos> {
        Some(self.clock.time())
    }
}

/// The beginnings of documents and streams, for every set of labels.
struct Streams {
    /// `{"streams":[{"stream":{…},"values":[`
    first: Vec<Box<[u8]>>,
    /// `]},{"stream":{…},"values":[`
    next: Vec<Box<[u8]>>,
}

impl fmt::Debug for Streams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Streams({})", self.first.len())
    }
}

impl Streams {
    /// Builds the streams of `plan`, the same for all workers.
    fn new(plan: LokiPlan, seed: Seed) -> Self {
        let vocabulary = Vocabulary::new(seed.derive("names", 0));
        let mut random = Random::new(seed.derive("streams", 0));
        let mut streams = Self {
            first: Vec::new(),
            next: Vec::new(),
        };
        for number in 0..plan.streams.max(1) {
            let labels = format!(
                r#"{{"stream":{{"job":"{}","level":"{}","namespace":"{}","pod":"{}-{number:05}"}},"values":["#,
                application(&mut random).text(),
                random.choose(&LEVELS),
                random.choose(&NAMESPACES),
                vocabulary.user(&mut random).text(),
            );
            let first = format!(r#"{{"streams":[{labels}"#);
            debug_assert!(first.len() <= LOKI_OPENING_MAX);
            streams.first.push(first.into_bytes().into());
            streams
                .next
                .push(format!("]}},{labels}").into_bytes().into());
        }
        streams
    }

    fn choose(&self, random: &mut Random, part: Part) -> usize {
        let all = self.first.len() as u64;
        let drawn = random.between(0, part.count(all) - 1);
        index(part.number(drawn, all))
    }

    fn openings(&self, stream: usize) -> (&[u8], &[u8]) {
        (&self.first[stream], &self.next[stream])
    }
}

const LEVELS: [&str; 4] = ["debug", "info", "warn", "error"];

const NAMESPACES: [&str; 4] = ["default", "monitoring", "payments", "storefront"];
