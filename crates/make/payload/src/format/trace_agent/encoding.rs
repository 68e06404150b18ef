//! Encodings of spans.

use crate::msgpack;
use crate::pool::TextWriter;

/// One of two ways to write maps, lists, texts and numbers.
pub(super) trait Notation: std::fmt::Debug + Send {
    /// Begins the list that is all that is written.
    fn open_list(&self, out: &mut TextWriter<'_>);
    /// Ends it, once it is known that it has so many elements, at most 65,535.
    fn close_list(&self, out: &mut TextWriter<'_>, len: usize);
    fn open_map(&self, out: &mut TextWriter<'_>, len: usize);
    fn close_map(&self, out: &mut TextWriter<'_>);
    /// Writes the separator between two entries or elements.
    fn between(&self, out: &mut TextWriter<'_>);
    /// A key that needs no escape.
    fn key(&self, out: &mut TextWriter<'_>, key: &[u8]);
    /// Writes the bytes before a key of `len` bytes.
    fn open_key(&self, out: &mut TextWriter<'_>, len: usize);
    /// Writes the bytes after a key.
    fn close_key(&self, out: &mut TextWriter<'_>);
    /// A text of at most 255 bytes that `write` writes and that needs no escape.
    fn text(&self, out: &mut TextWriter<'_>, write: impl FnOnce(&mut TextWriter<'_>));
    fn number(&self, out: &mut TextWriter<'_>, value: u64);
    /// A number with decimals made from a random word.
    fn double(&self, out: &mut TextWriter<'_>, word: u64);
}

#[derive(Debug)]
pub(super) struct Msgpack;

impl Notation for Msgpack {
    fn open_list(&self, out: &mut TextWriter<'_>) {
        out.fixed(&[0xdc, 0, 0]);
    }

    fn close_list(&self, out: &mut TextWriter<'_>, len: usize) {
        let len = u16::try_from(len).unwrap_or(u16::MAX);
        for (at, byte) in (1..).zip(len.to_be_bytes()) {
            out.replace(at, byte);
        }
    }

    #[inline(always)]
    fn open_map(&self, out: &mut TextWriter<'_>, len: usize) {
        msgpack::map(out, len);
    }

    fn close_map(&self, _out: &mut TextWriter<'_>) {}

    fn between(&self, _out: &mut TextWriter<'_>) {}

    #[inline(always)]
    fn key(&self, out: &mut TextWriter<'_>, key: &[u8]) {
        msgpack::text(out, key);
    }

    #[inline(always)]
    fn open_key(&self, out: &mut TextWriter<'_>, len: usize) {
        msgpack::text_head(out, len);
    }

    fn close_key(&self, _out: &mut TextWriter<'_>) {}

    /// The length is known only afterwards, and so always takes a byte of its
    /// own.
    #[inline(always)]
    fn text(&self, out: &mut TextWriter<'_>, write: impl FnOnce(&mut TextWriter<'_>)) {
        out.fixed(&[0xd9, 0]);
        let start = out.len();
        write(out);
        let len = out.len() - start;
        out.replace(start - 1, len.to_le_bytes()[0]);
    }

    #[inline(always)]
    fn number(&self, out: &mut TextWriter<'_>, value: u64) {
        match u8::try_from(value) {
            Ok(value) => msgpack::small(out, value),
            Err(_) => msgpack::wide(out, value),
        }
    }

    #[inline(always)]
    fn double(&self, out: &mut TextWriter<'_>, word: u64) {
        msgpack::double(out, stillwell_units::float_from_u64(word >> 30) / 1024.0);
    }
}

#[derive(Debug)]
pub(super) struct JsonEncoding;

impl Notation for JsonEncoding {
    fn open_list(&self, out: &mut TextWriter<'_>) {
        out.fixed(b"[");
    }

    fn close_list(&self, out: &mut TextWriter<'_>, _len: usize) {
        out.fixed(b"]");
    }

    fn open_map(&self, out: &mut TextWriter<'_>, _len: usize) {
        out.fixed(b"{");
    }

    fn close_map(&self, out: &mut TextWriter<'_>) {
        out.fixed(b"}");
    }

    fn between(&self, out: &mut TextWriter<'_>) {
        out.fixed(b",");
    }

    fn key(&self, out: &mut TextWriter<'_>, key: &[u8]) {
        out.fixed(b"\"");
        out.text(key);
        out.fixed(b"\":");
    }

    fn open_key(&self, out: &mut TextWriter<'_>, _len: usize) {
        out.fixed(b"\"");
    }

    fn close_key(&self, out: &mut TextWriter<'_>) {
        out.fixed(b"\":");
    }

    fn text(&self, out: &mut TextWriter<'_>, write: impl FnOnce(&mut TextWriter<'_>)) {
        out.fixed(b"\"");
        write(out);
        out.fixed(b"\"");
    }

    fn number(&self, out: &mut TextWriter<'_>, value: u64) {
        out.unsigned(value);
    }

    fn double(&self, out: &mut TextWriter<'_>, word: u64) {
        out.unsigned(word >> 40);
        out.fixed(b".");
        out.three_digits(crate::mix::share(word << 24, 1000).try_into().unwrap_or(0));
    }
}
