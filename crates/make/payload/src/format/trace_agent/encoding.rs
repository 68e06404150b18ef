//! Encodings of spans.

use crate::msgpack;
use crate::pool::Ink;

/// One of two ways to write maps, lists, texts and numbers.
pub(super) trait Notation: std::fmt::Debug + Send {
    /// Begins the list that is all that is written.
    fn open_list(&self, ink: &mut Ink<'_>);
    /// Ends it, once it is known that it has so many elements, at most 65,535.
    fn close_list(&self, ink: &mut Ink<'_>, len: usize);
    fn open_map(&self, ink: &mut Ink<'_>, len: usize);
    fn close_map(&self, ink: &mut Ink<'_>);
    /// Writes the separator between two entries or elements.
    fn between(&self, ink: &mut Ink<'_>);
    /// A key that needs no escape.
    fn key(&self, ink: &mut Ink<'_>, key: &[u8]);
    /// Writes the bytes before a key of `len` bytes.
    fn open_key(&self, ink: &mut Ink<'_>, len: usize);
    /// Writes the bytes after a key.
    fn close_key(&self, ink: &mut Ink<'_>);
    /// A text of at most 255 bytes that `write` writes and that needs no escape.
    fn text(&self, ink: &mut Ink<'_>, write: impl FnOnce(&mut Ink<'_>));
    fn number(&self, ink: &mut Ink<'_>, value: u64);
    /// A number with decimals made from a random word.
    fn double(&self, ink: &mut Ink<'_>, word: u64);
}

#[derive(Debug)]
pub(super) struct Msgpack;

impl Notation for Msgpack {
    fn open_list(&self, ink: &mut Ink<'_>) {
        ink.fixed(&[0xdc, 0, 0]);
    }

    fn close_list(&self, ink: &mut Ink<'_>, len: usize) {
        let len = u16::try_from(len).unwrap_or(u16::MAX);
        for (at, byte) in (1..).zip(len.to_be_bytes()) {
            ink.replace(at, byte);
        }
    }

    #[inline(always)]
    fn open_map(&self, ink: &mut Ink<'_>, len: usize) {
        msgpack::map(ink, len);
    }

    fn close_map(&self, _ink: &mut Ink<'_>) {}

    fn between(&self, _ink: &mut Ink<'_>) {}

    #[inline(always)]
    fn key(&self, ink: &mut Ink<'_>, key: &[u8]) {
        msgpack::text(ink, key);
    }

    #[inline(always)]
    fn open_key(&self, ink: &mut Ink<'_>, len: usize) {
        msgpack::text_head(ink, len);
    }

    fn close_key(&self, _ink: &mut Ink<'_>) {}

    /// The length is known only afterwards, and so always takes a byte of its
    /// own.
    #[inline(always)]
    fn text(&self, ink: &mut Ink<'_>, write: impl FnOnce(&mut Ink<'_>)) {
        ink.fixed(&[0xd9, 0]);
        let start = ink.len();
        write(ink);
        let len = ink.len() - start;
        ink.replace(start - 1, len.to_le_bytes()[0]);
    }

    #[inline(always)]
    fn number(&self, ink: &mut Ink<'_>, value: u64) {
        match u8::try_from(value) {
            Ok(value) => msgpack::small(ink, value),
            Err(_) => msgpack::wide(ink, value),
        }
    }

    #[inline(always)]
    fn double(&self, ink: &mut Ink<'_>, word: u64) {
        msgpack::double(ink, stillwell_units::float_from_u64(word >> 30) / 1024.0);
    }
}

#[derive(Debug)]
pub(super) struct JsonEncoding;

impl Notation for JsonEncoding {
    fn open_list(&self, ink: &mut Ink<'_>) {
        ink.fixed(b"[");
    }

    fn close_list(&self, ink: &mut Ink<'_>, _len: usize) {
        ink.fixed(b"]");
    }

    fn open_map(&self, ink: &mut Ink<'_>, _len: usize) {
        ink.fixed(b"{");
    }

    fn close_map(&self, ink: &mut Ink<'_>) {
        ink.fixed(b"}");
    }

    fn between(&self, ink: &mut Ink<'_>) {
        ink.fixed(b",");
    }

    fn key(&self, ink: &mut Ink<'_>, key: &[u8]) {
        ink.fixed(b"\"");
        ink.text(key);
        ink.fixed(b"\":");
    }

    fn open_key(&self, ink: &mut Ink<'_>, _len: usize) {
        ink.fixed(b"\"");
    }

    fn close_key(&self, ink: &mut Ink<'_>) {
        ink.fixed(b"\":");
    }

    fn text(&self, ink: &mut Ink<'_>, write: impl FnOnce(&mut Ink<'_>)) {
        ink.fixed(b"\"");
        write(ink);
        ink.fixed(b"\"");
    }

    fn number(&self, ink: &mut Ink<'_>, value: u64) {
        ink.unsigned(value);
    }

    fn double(&self, ink: &mut Ink<'_>, word: u64) {
        ink.unsigned(word >> 40);
        ink.fixed(b".");
        ink.three_digits(crate::mix::share(word << 24, 1000).try_into().unwrap_or(0));
    }
}
