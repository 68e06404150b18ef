//! Events for Splunk's HTTP event collector: pipelines
//! route by them and build keys from them.

use stillwell_plan::PayloadFormat;
use stillwell_plan::payload::HecEncoding;

use crate::SlotUse;
use crate::contract::{Event, Recipe, Writer};
use crate::random::Random;
use crate::text::{Clock, Fragment, Messages, Paper, Pen};

/// No event whose message has one character is longer, in either encoding, with
/// its line feed.
pub(crate) const FLOOR: usize = 448;

pub(crate) fn writer(recipe: &Recipe<'_>) -> Box<dyn Writer> {
    let mut random = Random::new(recipe.seed.derive("values", 0));
    let hec = SplunkHec {
        clock: Clock::new(&mut random),
        random,
        messages: Messages::new(recipe.seed),
        paper: Paper::new(),
        message_max: recipe.event_max - (FLOOR - 1),
        slots: recipe.slots,
    };
    match recipe.format {
        PayloadFormat::SplunkHec {
            encoding: HecEncoding::Text,
        } => Box::new(HecText(hec)),
        _ => Box::new(HecJson(hec)),
    }
}

#[derive(Debug)]
struct SplunkHec {
    random: Random,
    clock: Clock,
    messages: Messages,
    paper: Paper,
    message_max: usize,
    slots: SlotUse,
}

/// `{"event":{"timestamp":…,"message":…,"attrs":{…}},"time":…,"host":…,"index":…}`
#[derive(Debug)]
struct HecJson(SplunkHec);

/// `TIMESTAMP MESSAGE ATTRS`
#[derive(Debug)]
struct HecText(SplunkHec);

impl Writer for HecJson {
    fn next(&mut self) -> Option<Event<'_>> {
        let hec = &mut self.0;
        let (mut random, mut pen) = (hec.random.clone(), hec.paper.pen());
        hec.clock.advance(&mut random);
        pen.fixed(br#"{"event":{"timestamp":"#);
        hec.clock.epoch_decimal(&mut pen);
        pen.fixed(br#","message":""#);
        let slot = hec
            .messages
            .write(&mut pen, &mut random, hec.message_max, hec.slots);
        pen.fixed(br#"","attrs":"#);
        attributes(&mut pen, &mut random);
        pen.fixed(br#"},"time":"#);
        hec.clock.epoch_decimal(&mut pen);
        pen.fixed(br#","host":""#);
        pen.fragment(random.choose(&SYSTEMS));
        pen.fixed(br#"","index":""#);
        pen.fragment(random.choose(&PARTITIONS));
        pen.fixed(b"\"}\n");
        hec.random = random;
        Some(pen.event(slot))
    }
}

impl Writer for HecText {
    fn next(&mut self) -> Option<Event<'_>> {
        let hec = &mut self.0;
        let (mut random, mut pen) = (hec.random.clone(), hec.paper.pen());
        hec.clock.advance(&mut random);
        hec.clock.epoch_decimal(&mut pen);
        pen.fixed(b" ");
        let slot = hec
            .messages
            .write(&mut pen, &mut random, hec.message_max, hec.slots);
        pen.fixed(b" ");
        attributes(&mut pen, &mut random);
        pen.fixed(b"\n");
        hec.random = random;
        Some(pen.event(slot))
    }
}

#[inline(always)]
fn attributes(pen: &mut Pen<'_>, random: &mut Random) {
    pen.fixed(br#"{"systemid":""#);
    pen.fragment(random.choose(&SYSTEMS));
    pen.fixed(br#"","stage":""#);
    pen.fragment(random.choose(&STAGES));
    pen.fixed(br#"","type":"service","c2cService":""#);
    pen.fragment(random.choose(&SERVICES));
    pen.fixed(br#"","c2cPartition":""#);
    pen.fragment(random.choose(&PARTITIONS));
    pen.fixed(br#"","c2cStage":""#);
    pen.fragment(random.choose(&STAGES));
    pen.fixed(br#"","c2cContainerType":"ingress","aws_account":"account-of-the-load"}"#);
}

// The number of values bounds the number of keys made of them.

static SYSTEMS: [Fragment; 4] = Fragment::all(["one", "two", "three", "four"]);

static STAGES: [Fragment; 4] = Fragment::all(["production", "performance", "noprod", "staging"]);

static PARTITIONS: [Fragment; 4] = Fragment::all(["eu", "eu2", "ap1", "us1"]);

#[rustfmt::skip]
static SERVICES: [Fragment; 8] = Fragment::all([
    "tablet", "phone", "phone2", "laptop", "desktop", "monitor", "watch", "speaker",
]);
