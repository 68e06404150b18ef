//! Events for Splunk's HTTP event collector: pipelines
//! route by them and build keys from them.

use stillwell_plan::PayloadFormat;
use stillwell_plan::payload::HecEncoding;

use crate::SlotUse;
use crate::contract::{Event, Recipe, Writer};
use crate::random::Random;
use crate::text::{Clock, EventBuffer, Fragment, Messages, PieceWriter};

/// No event whose message has one character is longer, in either encoding, with
/// its line feed.
pub(crate) const FLOOR: usize = 448;

pub(crate) fn writer(recipe: &Recipe<'_>) -> Box<dyn Writer> {
    let mut random = Random::new(recipe.seed.derive("values", 0));
    let hec = SplunkHec {
        clock: Clock::new(&mut random),
        random,
        messages: Messages::new(recipe.seed),
        event_buffer: EventBuffer::new(),
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
    event_buffer: EventBuffer,
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
        let (mut random, mut out) = (hec.random.clone(), hec.event_buffer.begin());
        hec.clock.advance(&mut random);
        out.fixed(br#"{"event":{"timestamp":"#);
        hec.clock.epoch_decimal(&mut out);
        out.fixed(br#","message":""#);
        let slot = hec
            .messages
            .write(&mut out, &mut random, hec.message_max, hec.slots);
        out.fixed(br#"","attrs":"#);
        attributes(&mut out, &mut random);
        out.fixed(br#"},"time":"#);
        hec.clock.epoch_decimal(&mut out);
        out.fixed(br#","host":""#);
        out.fragment(random.choose(&SYSTEMS));
        out.fixed(br#"","index":""#);
        out.fragment(random.choose(&PARTITIONS));
        out.fixed(b"\"}\n");
        hec.random = random;
        Some(out.event(slot))
    }
}

impl Writer for HecText {
    fn next(&mut self) -> Option<Event<'_>> {
        let hec = &mut self.0;
        let (mut random, mut out) = (hec.random.clone(), hec.event_buffer.begin());
        hec.clock.advance(&mut random);
        hec.clock.epoch_decimal(&mut out);
        out.fixed(b" ");
        let slot = hec
            .messages
            .write(&mut out, &mut random, hec.message_max, hec.slots);
        out.fixed(b" ");
        attributes(&mut out, &mut random);
        out.fixed(b"\n");
        hec.random = random;
        Some(out.event(slot))
    }
}

#[inline(always)]
fn attributes(out: &mut PieceWriter<'_>, random: &mut Random) {
    out.fixed(br#"{"systemid":""#);
    out.fragment(random.choose(&SYSTEMS));
    out.fixed(br#"","stage":""#);
    out.fragment(random.choose(&STAGES));
    out.fixed(br#"","type":"service","c2cService":""#);
    out.fragment(random.choose(&SERVICES));
    out.fixed(br#"","c2cPartition":""#);
    out.fragment(random.choose(&PARTITIONS));
    out.fixed(br#"","c2cStage":""#);
    out.fragment(random.choose(&STAGES));
    out.fixed(br#"","c2cContainerType":"ingress","aws_account":"account-of-the-load"}"#);
}

// The number of values bounds the number of keys made of them.

static SYSTEMS: [Fragment; 4] = Fragment::all(["one", "two", "three", "four"]);

static STAGES: [Fragment; 4] = Fragment::all(["production", "performance", "noprod", "staging"]);

static PARTITIONS: [Fragment; 4] = Fragment::all(["eu", "eu2", "ap1", "us1"]);

#[rustfmt::skip]
static SERVICES: [Fragment; 8] = Fragment::all([
    "tablet", "phone", "phone2", "laptop", "desktop", "monitor", "watch", "speaker",
]);
