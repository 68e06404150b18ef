//! `MessagePack`, written from the front.

use crate::pool::{Piece, TextWriter};

/// Writes the head of a map of `len` entries.
#[inline(always)]
pub(crate) fn map(out: &mut TextWriter<'_>, len: usize) {
    match u16::try_from(len) {
        Ok(len @ 0..16) => out.fixed(&[0x80 | len.to_le_bytes()[0]]),
        Ok(len) => {
            let [high, low] = len.to_be_bytes();
            out.fixed(&[0xde, high, low]);
        }
        Err(_) => {
            let len = u32::try_from(len).expect("no map has 2^32 entries");
            out.fixed(&[0xdf]);
            out.fixed(&len.to_be_bytes());
        }
    }
}

/// Writes the head of a text of `len` bytes.
#[inline(always)]
pub(crate) fn text_head(out: &mut TextWriter<'_>, len: usize) {
    match u16::try_from(len) {
        Ok(len @ 0..32) => out.fixed(&[0xa0 | len.to_le_bytes()[0]]),
        Ok(len @ 32..256) => out.fixed(&[0xd9, len.to_le_bytes()[0]]),
        Ok(len) => {
            let [high, low] = len.to_be_bytes();
            out.fixed(&[0xda, high, low]);
        }
        Err(_) => {
            let len = u32::try_from(len).expect("no text has 2^32 bytes");
            out.fixed(&[0xdb]);
            out.fixed(&len.to_be_bytes());
        }
    }
}

#[inline(always)]
pub(crate) fn text(out: &mut TextWriter<'_>, text: &[u8]) {
    text_head(out, text.len());
    out.text(text);
}

#[inline(always)]
pub(crate) fn piece(out: &mut TextWriter<'_>, piece: Piece<'_>) {
    text_head(out, piece.len);
    out.piece(piece);
}

/// Writes a number in 64 bits.
#[inline(always)]
pub(crate) fn wide(out: &mut TextWriter<'_>, value: u64) {
    out.fixed(&[0xcf]);
    out.fixed(&value.to_be_bytes());
}

/// Writes a number in 32 bits.
#[inline(always)]
pub(crate) fn word(out: &mut TextWriter<'_>, value: u32) {
    out.fixed(&[0xce]);
    out.fixed(&value.to_be_bytes());
}

/// Writes a number of eight bits in as few bytes as it takes.
#[inline(always)]
pub(crate) fn small(out: &mut TextWriter<'_>, value: u8) {
    if value >= 0x80 {
        out.fixed(&[0xcc]);
    }
    out.fixed(&[value]);
}

/// Writes a double.
#[inline(always)]
pub(crate) fn double(out: &mut TextWriter<'_>, value: f64) {
    out.fixed(&[0xcb]);
    out.fixed(&value.to_be_bytes());
}
