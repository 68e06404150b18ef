//! One record in ArcSight's common event format a line.

use stillwell_plan::PayloadFormat;
use stillwell_plan::payload::CefHeader;

use super::syslog3164::header;
use crate::SlotUse;
use crate::contract::{Event, Recipe, Writer};
use crate::random::Random;
use crate::text::{Clock, Fragment, Messages, Paper, Pen, Vocabulary, address, path};

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
        paper: Paper::new(),
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
    paper: Paper,
    has_header: bool,
    event_max: usize,
    slots: SlotUse,
}

impl Writer for Cef {
    fn next(&mut self) -> Option<Event<'_>> {
        let (mut random, mut pen) = (self.random.clone(), self.paper.pen());
        self.clock.advance(&mut random);
        if self.has_header {
            header(&mut pen, &mut random, &self.clock, &self.hosts);
        }
        pen.fixed(b"CEF:0|");
        pen.fragment(random.choose(&PRODUCTS));
        pen.number(1 + random.bits(3));
        pen.fixed(b".");
        pen.number(random.bits(5));
        pen.fixed(b"|");
        pen.number(100 + random.below(900));
        pen.fixed(b"|");
        pen.fragment(random.choose(&NAMES));
        pen.fixed(b"|");
        pen.number(random.below(11));
        pen.fixed(b"|");
        extension(
            &mut pen,
            &mut random,
            &self.clock,
            &self.messages.vocabulary,
        );
        pen.fixed(b" msg=");
        let room = self.event_max - pen.len() - 1;
        let slot = self
            .messages
            .sentence(&mut pen, &mut random, room, self.slots);
        pen.fixed(b"\n");
        self.random = random;
        Some(pen.event(slot))
    }
}

/// No value holds what must be escaped: `=`, `\` or a line feed.
#[inline(always)]
fn extension(pen: &mut Pen<'_>, random: &mut Random, clock: &Clock, vocabulary: &Vocabulary) {
    pen.fixed(b"rt=");
    clock.epoch_milliseconds(pen);
    pen.fixed(b" src=");
    address(pen, random);
    pen.fixed(b" spt=");
    port(pen, random);
    pen.fixed(b" dst=");
    address(pen, random);
    pen.fixed(b" dpt=");
    port(pen, random);
    pen.fragment(random.choose(&PROTOCOLS));
    pen.fragment(random.choose(&ACTIONS));
    pen.fixed(b" suser=");
    pen.fragment(vocabulary.user(random));
    pen.fixed(b" in=");
    pen.random_number(random);
    pen.fixed(b" request=");
    path(pen, random);
}

/// 1000 to 64999.
#[inline(always)]
fn port(pen: &mut Pen<'_>, random: &mut Random) {
    pen.number(1 + random.below(64));
    pen.number_3(random.below(1000));
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
