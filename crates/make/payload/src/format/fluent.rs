//! Fluentd's forward protocol (version 1) in `MessagePack`: messages of one
//! record, `[tag, time, record]`, and of several, `[tag, [[time, record], …]]`.

use stillwell_units::Seed;

use crate::SlotUse;
use crate::contract::{Event, Joint, Recipe, Writer};
use crate::event_time::EventTime;
use crate::msgpack;
use crate::pool::{Piece, Pool, SLACK, TextWriter};
use crate::random::Random;
use crate::text::{EventBuffer, Messages, PieceWriter};

/// Into this many bytes a message of one record always fits.
pub(crate) const FLOOR: usize = 512;

/// Records of a message at most.
const RECORDS_MAX: u16 = 32;

/// Fields of a record at most, beside `message` and `event`.
const FIELDS_MAX: u16 = 24;

/// Entries of a field that is a map, at most.
const ENTRIES_MAX: u16 = 16;

/// Characters of keys and texts at most.
const TEXT_MAX: u16 = 32;

/// Bytes of one field at most: a key and a map.
const FIELD_MAX: usize = 36 + 3 + 16 * (36 + 2);

/// Bytes of a record at most before its fields: time, heads and `event`.
const RECORD_MAX: usize = 64;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";

const TAGS: [&[u8]; 8] = [
    b"app.access",
    b"app.error",
    b"db.query",
    b"kube.events",
    b"kube.pods",
    b"queue.jobs",
    b"sys.auth",
    b"sys.kernel",
];

pub(crate) fn writer(recipe: &Recipe<'_>) -> Box<dyn Writer> {
    let seed: Seed = recipe.seed;
    let mut random = Random::new(seed.derive("values", 0));
    Box::new(Fluent {
        time: EventTime::new(&mut random),
        random,
        messages: Messages::new(seed),
        event_buffer: EventBuffer::new(),
        pool: Pool::new(seed.derive("texts", 0), ALPHABET, 18, usize::from(TEXT_MAX)),
        event_max: recipe.event_max,
        slots: recipe.slots,
        room: vec![0; recipe.event_max + FIELD_MAX + SLACK].into_boxed_slice(),
    })
}

#[derive(Debug)]
struct Fluent {
    random: Random,
    time: EventTime,
    messages: Messages,
    event_buffer: EventBuffer,
    pool: Pool,
    event_max: usize,
    slots: SlotUse,
    room: Box<[u8]>,
}

/// Bytes of a message at most, without its slot.
const TEXT_ROOM: usize = 256;

impl Writer for Fluent {
    fn next(&mut self) -> Option<Event<'_>> {
        let mut random = self.random.clone();
        let mut text_writer = TextWriter::new(&mut self.room);
        let is_one = random.one_in_power_of_two(1);
        let wanted = if is_one {
            1
        } else {
            1 + random.below(RECORDS_MAX)
        };
        text_writer.fixed(&[if is_one { 0x93 } else { 0x92 }]);
        msgpack::text(&mut text_writer, random.choose::<&[u8], 8>(&TAGS));
        let head = text_writer.len();
        if !is_one {
            text_writer.fixed(&[0xdc, 0, 0]);
        }
        let (mut slot, mut records) = (None, 0_u16);
        while records < wanted {
            let slots = if records == 0 {
                self.slots
            } else {
                SlotUse::None
            };
            if records > 0 && text_writer.len() + RECORD_MAX + TEXT_ROOM > self.event_max {
                break;
            }
            if !is_one {
                text_writer.fixed(&[0x92]);
            }
            let time = self.time.advance(&mut random);
            msgpack::word(&mut text_writer, EventTime { nanos: time }.seconds());
            let out = self.event_buffer.begin();
            let text = message(&self.messages, out, &mut random, slots);
            let start = write_record(
                &mut text_writer,
                &mut random,
                &self.pool,
                &text,
                !is_one,
                self.event_max,
            );
            slot = slot.or_else(|| text.slot.map(|at| start + at));
            records += 1;
        }
        if !is_one {
            replace_16(&mut text_writer, head + 1, records);
        }
        self.random = random;
        Some(Event {
            bytes: text_writer.finish(),
            slot,
            units: u32::from(records),
            joint: Joint::Frame,
        })
    }
}

/// The text of a record.
#[inline(always)]
fn message<'p>(
    messages: &Messages,
    mut out: PieceWriter<'p>,
    random: &mut Random,
    slots: SlotUse,
) -> Event<'p> {
    let stamp = match slots {
        SlotUse::None | SlotUse::Before(_) => 0,
        SlotUse::Every => crate::SLOT_WIDTH + 1,
    };
    let slot = messages.write(&mut out, random, TEXT_ROOM + stamp, slots);
    out.event(slot)
}

/// Writes a record with `text` as its message and gives where that begins.
#[inline(always)]
fn write_record(
    text_writer: &mut TextWriter<'_>,
    random: &mut Random,
    pool: &Pool,
    text: &Event<'_>,
    has_event: bool,
    event_max: usize,
) -> usize {
    let head = text_writer.len();
    text_writer.fixed(&[0xde, 0, 0]);
    msgpack::text(text_writer, b"message");
    text_writer.fixed(&[0xda]);
    text_writer.fixed(
        &u16::try_from(text.bytes.len())
            .unwrap_or(u16::MAX)
            .to_be_bytes(),
    );
    let start = text_writer.len();
    text_writer.text(text.bytes);
    let mut fields = 1;
    if has_event {
        msgpack::text(text_writer, b"event");
        msgpack::piece(text_writer, short(pool, random));
        fields += 1;
    }
    fields += write_fields(text_writer, random, pool, event_max);
    replace_16(text_writer, head + 1, fields);
    start
}

/// Puts `value` where two bytes were written before.
fn replace_16(text_writer: &mut TextWriter<'_>, at: usize, value: u16) {
    let [high, low] = value.to_be_bytes();
    text_writer.replace(at, high);
    text_writer.replace(at + 1, low);
}

/// Writes further fields, as many as drawn and as fit, and gives their number.
#[inline(always)]
fn write_fields(
    text_writer: &mut TextWriter<'_>,
    random: &mut Random,
    pool: &Pool,
    event_max: usize,
) -> u16 {
    let wanted = random.below(FIELDS_MAX + 1);
    for field in 0..wanted {
        let before = text_writer.len();
        write_key(text_writer, random, pool, field);
        match random.bits(2) {
            0 => {
                let entries = random.below(ENTRIES_MAX);
                msgpack::map(text_writer, usize::from(entries));
                for entry in 0..entries {
                    write_key(text_writer, random, pool, entry);
                    msgpack::small(text_writer, random.byte());
                }
            }
            1 => msgpack::wide(text_writer, random.word()),
            _ => msgpack::piece(text_writer, short(pool, random)),
        }
        if text_writer.len() > event_max {
            text_writer.cut(before);
            return field;
        }
    }
    wanted
}

/// Writes a key that no other `position` of its map has.
#[inline(always)]
fn write_key(text_writer: &mut TextWriter<'_>, random: &mut Random, pool: &Pool, position: u16) {
    let piece = short(pool, random);
    msgpack::text_head(text_writer, piece.len + 1);
    text_writer.fixed(&[b'a' + position.to_le_bytes()[0] % 26]);
    text_writer.piece(piece);
}

/// A short text.
#[inline(always)]
fn short<'p>(pool: &'p Pool, random: &mut Random) -> Piece<'p> {
    let len = 1 + usize::from(random.below(TEXT_MAX - 1));
    pool.piece(random.word(), len)
}
