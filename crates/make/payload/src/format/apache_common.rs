//! One line of an Apache common log.

use crate::SlotUse;
use crate::contract::{Event, Recipe, Writer};
use crate::random::Random;
use crate::text::{Clock, Fragment, Paper, Pen, Vocabulary, address, path};

/// No line whose path is one slash is longer, with its line feed.
pub(crate) const FLOOR: usize = 128;

pub(crate) fn writer(recipe: &Recipe<'_>) -> Box<dyn Writer> {
    let mut random = Random::new(recipe.seed.derive("values", 0));
    Box::new(ApacheCommon {
        clock: Clock::new(&mut random),
        random,
        vocabulary: Vocabulary::new(recipe.seed.derive("names", 0)),
        paper: Paper::new(),
        event_max: recipe.event_max,
        slots: recipe.slots,
    })
}

/// `HOST IDENT USER [TIME] "METHOD PATH PROTOCOL" STATUS BYTES`
#[derive(Debug)]
struct ApacheCommon {
    random: Random,
    clock: Clock,
    vocabulary: Vocabulary,
    paper: Paper,
    event_max: usize,
    slots: SlotUse,
}

/// Bytes after the path, at most: protocol, status, size and line feed.
const TAIL_MAX: usize = r#" HTTP/1.1" 200 123456789"#.len() + 1;

impl Writer for ApacheCommon {
    fn next(&mut self) -> Option<Event<'_>> {
        let (mut random, mut pen) = (self.random.clone(), self.paper.pen());
        let (vocabulary, clock) = (&self.vocabulary, &mut self.clock);
        clock.advance(&mut random);
        address(&mut pen, &mut random);
        pen.fixed(b" - ");
        let user = vocabulary.user(&mut random);
        pen.fragment(if random.seldom(1) { &ANONYMOUS } else { user });
        pen.fixed(b" [");
        clock.common_log(&mut pen);
        pen.fixed(br#"] ""#);
        pen.fragment(random.choose(&METHODS));
        pen.fixed(b" ");
        let slot = target(&mut pen, &mut random, self.event_max - TAIL_MAX, self.slots);
        pen.fragment(random.choose(&PROTOCOLS));
        pen.fragment(random.choose(&STATUSES));
        pen.random_number(&mut random);
        pen.fixed(b"\n");
        self.random = random;
        Some(pen.event(slot))
    }
}

/// Writes the requested path, cut at `end`; a slot is its first segment.
#[inline(always)]
fn target(pen: &mut Pen<'_>, random: &mut Random, end: usize, slots: SlotUse) -> Option<usize> {
    let slot = match slots {
        SlotUse::None | SlotUse::Before(_) => None,
        SlotUse::Every => {
            pen.fixed(b"/");
            let slot = pen.slot(slots);
            pen.cut(pen.len() - 1);
            slot
        }
    };
    path(pen, random);
    if random.seldom(2) {
        pen.fixed(b"?page=");
        pen.random_number(random);
    }
    pen.cut(end);
    slot
}

static ANONYMOUS: Fragment = Fragment::new("-");

#[rustfmt::skip]
static METHODS: [Fragment; 16] = Fragment::all([
    "GET", "GET", "GET", "GET", "GET", "GET", "GET", "GET",
    "POST", "POST", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS",
]);

#[rustfmt::skip]
static PROTOCOLS: [Fragment; 4] = Fragment::all([
    " HTTP/1.1\" ", " HTTP/1.1\" ", " HTTP/1.0\" ", " HTTP/2.0\" ",
]);

#[rustfmt::skip]
static STATUSES: [Fragment; 32] = Fragment::all([
    "200 ", "200 ", "200 ", "200 ", "200 ", "200 ", "200 ", "200 ",
    "200 ", "200 ", "200 ", "200 ", "201 ", "201 ", "202 ", "206 ",
    "301 ", "302 ", "304 ", "304 ", "307 ", "400 ", "401 ", "403 ",
    "404 ", "404 ", "409 ", "422 ", "429 ", "500 ", "502 ", "503 ",
]);
