//! One record in ArcSight's common event format a line.

use stillwell_plan::PayloadFormat;
use stillwell_plan::payload::CefHeader;

use super::syslog3164::header;
use crate::SlotUse;
use crate::contract::{Event, Recipe, Writer};
use crate::random::Random;
use crate::text::{Clock, EventBuffer, Fragment, Messages, PieceWriter, Vocabulary, address, path};

/// No record whose message has one character is longer, with its syslog header
/// and line feed.
pub(crate) const FLOOR: usize = 512;

pub(crate) fn writer(recipe: &Recipe<'_>) -> Box<dyn Writer> {
    let has_header = match recipe.format {
        PayloadFormat::Cef { header } => *header == CefHeader::Syslog,
        _ => true,
    };
    let mut random = Random::new(recipe.seed.derive("values", 0));
    let messages = Messages::new(recipe.seed);
    Box::new(Cef {
        clock: Clock::new(&mut random),
        random,
        hosts: messages.vocabulary.short_hosts(),
        messages,
        event_buffer: EventBuffer::new(),
        has_header,
        event_max: recipe.event_max,
        slots: recipe.slots,
    })
}

/// `CEF:0|VENDOR|PRODUCT|VERSION|SIGNATURE|NAME|SEVERITY|KEY=VALUE …`
#[derive(Debug)]
struct Cef {
    random: Random,
    clock: Clock,
    hosts: Box<[Fragment; 256]>,
    messages: Messages,
    event_buffer: EventBuffer,
    has_header: bool,
    event_max: usize,
    slots: SlotUse,
}

impl Writer for Cef {
    fn next(&mut self) -> Option<Event<'_>> {
        let (mut random, mut out) = (self.random.clone(), self.event_buffer.begin());
        self.clock.advance(&mut random);
        if self.has_header {
            header(&mut out, &mut random, &self.clock, &self.hosts);
        }
        out.fixed(b"CEF:0|");
        out.fragment(random.choose(&PRODUCTS));
        out.number(1 + random.bits(3));
        out.fixed(b".");
        out.number(random.bits(5));
        out.fixed(b"|");
        out.number(100 + random.below(900));
        out.fixed(b"|");
        out.fragment(random.choose(&NAMES));
        out.fixed(b"|");
        out.number(random.below(11));
        out.fixed(b"|");
        extension(
            &mut out,
            &mut random,
            &self.clock,
            &self.messages.vocabulary,
        );
        out.fixed(b" msg=");
        let room = self.event_max - out.len() - 1;
        let slot = self
            .messages
            .sentence(&mut out, &mut random, room, self.slots);
        out.fixed(b"\n");
        self.random = random;
        Some(out.event(slot))
    }
}

/// No value holds what must be escaped: `=`, `\` or a line feed.
#[inline(always)]
fn extension(
    out: &mut PieceWriter<'_>,
    random: &mut Random,
    clock: &Clock,
    vocabulary: &Vocabulary,
) {
    out.fixed(b"rt=");
    clock.epoch_milliseconds(out);
    out.fixed(b" src=");
    address(out, random);
    out.fixed(b" spt=");
    port(out, random);
    out.fixed(b" dst=");
    address(out, random);
    out.fixed(b" dpt=");
    port(out, random);
    out.fragment(random.choose(&PROTOCOLS));
    out.fragment(random.choose(&ACTIONS));
    out.fixed(b" suser=");
    out.fragment(vocabulary.user(random));
    out.fixed(b" in=");
    out.random_number(random);
    out.fixed(b" request=");
    path(out, random);
}

/// 1000 to 64999.
#[inline(always)]
fn port(out: &mut PieceWriter<'_>, random: &mut Random) {
    out.number(1 + random.below(64));
    out.number_3(random.below(1000));
}

#[rustfmt::skip]
static PRODUCTS: [Fragment; 8] = Fragment::all([
    "Alder|Gatehouse|", "Alder|Sentinel|", "Birchwood|Perimeter|", "Birchwood|Watchtower|",
    "Corner Stone|Proxy|", "Driftline|Mail Guard|", "Elmfield|Endpoint|", "Fernhill|Directory|",
]);

#[rustfmt::skip]
static NAMES: [Fragment; 16] = Fragment::all([
    "connection accepted", "connection refused", "login succeeded", "login failed",
    "file quarantined", "policy changed", "port scan seen", "certificate rejected",
    "account locked", "privilege raised", "malware found", "rule matched",
    "session closed", "password changed", "mail rejected", "tunnel opened",
]);

static PROTOCOLS: [Fragment; 4] =
    Fragment::all([" proto=TCP", " proto=TCP", " proto=UDP", " proto=ICMP"]);

static ACTIONS: [Fragment; 4] =
    Fragment::all([" act=allow", " act=allow", " act=deny", " act=monitor"]);
