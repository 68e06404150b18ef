//! `MessagePack`, written from the front.

use crate::pool::{Ink, Piece};

/// Writes the head of a map of `len` entries.
#[inline(always)]
pub(crate) fn map(ink: &mut Ink<'_>, len: usize) {
    match u16::try_from(len) {
        Ok(len @ 0..16) => ink.fixed(&[0x80 | len.to_le_bytes()[0]]),
        Ok(len) => {
            let [high, low] = len.to_be_bytes();
            ink.fixed(&[0xde, high, low]);
        }
        Err(_) => {
            let len = u32::try_from(len).expect("no map has 2^32 entries");
            ink.fixed(&[0xdf]);
            ink.fixed(&len.to_be_bytes());
        }
    }
}

/// Writes the head of a text of `len` bytes.
#[inline(always)]
pub(crate) fn text_head(ink: &mut Ink<'_>, len: usize) {
    match u16::try_from(len) {
        Ok(len @ 0..32) => ink.fixed(&[0xa0 | len.to_le_bytes()[0]]),
        Ok(len @ 32..256) => ink.fixed(&[0xd9, len.to_le_bytes()[0]]),
        Ok(len) => {
            let [high, low] = len.to_be_bytes();
            ink.fixed(&[0xda, high, low]);
        }
        Err(_) => {
            let len = u32::try_from(len).expect("no text has 2^32 bytes");
            ink.fixed(&[0xdb]);
            ink.fixed(&len.to_be_bytes());
        }
    }
}

#[inline(always)]
pub(crate) fn text(ink: &mut Ink<'_>, text: &[u8]) {
    text_head(ink, text.len());
    ink.text(text);
}

#[inline(always)]
pub(crate) fn piece(ink: &mut Ink<'_>, piece: Piece<'_>) {
    text_head(ink, piece.len);
    ink.piece(piece);
}

/// Writes a number in 64 bits.
#[inline(always)]
pub(crate) fn wide(ink: &mut Ink<'_>, value: u64) {
    ink.fixed(&[0xcf]);
    ink.fixed(&value.to_be_bytes());
}

/// Writes a number in 32 bits.
#[inline(always)]
pub(crate) fn word(ink: &mut Ink<'_>, value: u32) {
    ink.fixed(&[0xce]);
    ink.fixed(&value.to_be_bytes());
}

/// Writes a number of eight bits in as few bytes as it takes.
#[inline(always)]
pub(crate) fn small(ink: &mut Ink<'_>, value: u8) {
    if value >= 0x80 {
        ink.fixed(&[0xcc]);
    }
    ink.fixed(&[value]);
}

/// Writes a double.
#[inline(always)]
pub(crate) fn double(ink: &mut Ink<'_>, value: f64) {
    ink.fixed(&[0xcb]);
    ink.fixed(&value.to_be_bytes());
}
