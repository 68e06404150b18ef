//! One line of an Apache common log.

use crate::SlotUse;
use crate::contract::{Event, Recipe, Writer};
use crate::random::Random;
use crate::text::{Clock, EventBuffer, Fragment, PieceWriter, Vocabulary, address, path};

/// No line whose path is one slash is longer, with its line feed.
pub(crate) const FLOOR: usize = 128;

pub(crate) fn writer(recipe: &Recipe<'_>) -> Box<dyn Writer> {
    let mut random = Random::new(recipe.seed.derive("values", 0));
    Box::new(ApacheCommon {
        clock: Clock::new(&mut random),
        random,
        vocabulary: Vocabulary::new(recipe.seed.derive("names", 0)),
        event_buffer: EventBuffer::new(),
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
    event_buffer: EventBuffer,
    event_max: usize,
    slots: SlotUse,
}

/// Bytes after the path, at most: protocol, status, size and line feed.
const TAIL_MAX: usize = r#" HTTP/1.1" 200 123456789"#.len() + 1;

impl Writer for ApacheCommon {
    fn next(&mut self) -> Option<Event<'_>> {
        let (mut random, mut out) = (self.random.clone(), self.event_buffer.begin());
        let (vocabulary, clock) = (&self.vocabulary, &mut self.clock);
        clock.advance(&mut random);
        address(&mut out, &mut random);
        out.fixed(b" - ");
        let user = vocabulary.user(&mut random);
        out.fragment(if random.one_in_power_of_two(1) {
            &ANONYMOUS
        } else {
            user
        });
        out.fixed(b" [");
        clock.common_log(&mut out);
        out.fixed(br#"] ""#);
        out.fragment(random.choose(&METHODS));
        out.fixed(b" ");
        let slot = target(&mut out, &mut random, self.event_max - TAIL_MAX, self.slots);
        out.fragment(random.choose(&PROTOCOLS));
        out.fragment(random.choose(&STATUSES));
        out.random_number(&mut random);
        out.fixed(b"\n");
        self.random = random;
        Some(out.event(slot))
    }
}

/// Writes the requested path, cut at `end`; a slot is its first segment.
#[inline(always)]
fn target(
    out: &mut PieceWriter<'_>,
    random: &mut Random,
    end: usize,
    slots: SlotUse,
) -> Option<usize> {
    let slot = match slots {
        SlotUse::None | SlotUse::Before(_) => None,
        SlotUse::Every => {
            out.fixed(b"/");
            let slot = out.slot(slots);
            out.cut(out.len() - 1);
            slot
        }
    };
    path(out, random);
    if random.one_in_power_of_two(2) {
        out.fixed(b"?page=");
        out.random_number(random);
    }
    out.cut(end);
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
