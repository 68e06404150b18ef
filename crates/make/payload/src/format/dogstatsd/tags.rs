//! Tags: a number of distinct ones, reused as often as requested.

use stillwell_plan::payload::Between;
use stillwell_units::{Seed, floor_to_u64};

use crate::mix::{Draw, index, key, share};
use crate::names::DIGITS;
use crate::pool::{Pool, TextWriter};

/// Characters of tags.
const ALPHABET: &[u8; 66] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-/";

/// From how many distinct tags on a larger pool is worth its memory.
const MANY: u64 = 1_000_000;

/// The texts of tags.
#[derive(Debug)]
pub(super) struct Tags {
    pool: Pool,
    keys: Vec<String>,
    values: Vec<String>,
    length: Between<u64>,
    /// Tags that distinguish contexts, the first ones of each.
    pub(super) identity: Identity,
    key: u64,
    /// Distinct tags for each tag, of 2^32.
    unique: u64,
    /// Distinct tags in all, at least one.
    distinct: u64,
}

/// The form of tags that distinguish contexts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Identity {
    /// Number of such tags.
    pub(super) tags: u64,
    /// Values that each of them may have.
    pub(super) radix: u64,
    /// Digits of a drawn value.
    pub(super) digits: usize,
}

impl Tags {
    /// Texts for `slots` tags in all, of which `unique_ratio` are distinct.
    pub(super) fn new(
        seed: &Seed,
        length: Between<u16>,
        lists: (Vec<String>, Vec<String>),
        identity: Identity,
        unique_ratio: f64,
        slots: u64,
    ) -> Self {
        let unique = floor_to_u64(unique_ratio * 4_294_967_296.0);
        let distinct = scale(slots, unique).max(1);
        let bits = if distinct > MANY { 20 } else { 18 };
        let (keys, values) = lists;
        Self {
            pool: Pool::new(
                seed.derive("pool", 0),
                ALPHABET,
                bits,
                usize::from(length.high),
            ),
            keys,
            values,
            length: Between::new(u64::from(length.low), u64::from(length.high)),
            identity,
            key: key(seed),
            unique,
            distinct,
        }
    }

    /// Writes the tag in `slot`, the number of tags before it in all contexts:
    /// a new one where the distinct ones so far are too few, else any.
    #[inline(always)]
    pub(super) fn write(&self, out: &mut TextWriter<'_>, slot: u64, context: u64, word: u64) {
        let before = scale(slot, self.unique);
        let tag = if scale(slot + 1, self.unique) > before {
            before
        } else {
            share(word, self.distinct)
        };
        self.text(out, tag, context);
    }

    /// Writes any tag.
    #[inline(always)]
    pub(super) fn write_any(&self, out: &mut TextWriter<'_>, word: u64) {
        self.text(out, share(word, self.distinct), 0);
    }

    /// Writes the tag number `position` of those that distinguish contexts.
    pub(super) fn write_identity(&self, out: &mut TextWriter<'_>, position: u64, context: u64) {
        let mut number = context;
        for _ in 0..position {
            number /= self.identity.radix;
        }
        number %= self.identity.radix;
        if let Some(key) = self.keys.get(index(position)) {
            out.text(key.as_bytes());
        } else {
            out.fixed(&[b"abcdefghijklmnopqrstuvwxyz"[index(position % 26)]]);
        }
        out.fixed(b":");
        if let Some(value) = self.values.get(index(number)) {
            out.text(value.as_bytes());
            return;
        }
        for _ in 0..self.identity.digits {
            out.fixed(&[DIGITS[index(number % 36)]]);
            number /= 36;
        }
    }

    /// Returns the text of tag `tag`. Where tags distinguish contexts, no other tag has the key of
    /// one of them.
    #[inline(always)]
    fn text(&self, out: &mut TextWriter<'_>, tag: u64, context: u64) {
        let mut draw = Draw::new(self.key, tag);
        if self.keys.is_empty() && self.values.is_empty() && self.identity.tags == 0 {
            self.drawn(out, &mut draw);
        } else {
            self.mixed(out, &mut draw, context);
        }
    }

    /// A key and a value out of the pool in one piece.
    #[inline(always)]
    fn drawn(&self, out: &mut TextWriter<'_>, draw: &mut Draw) {
        let (place, shape) = (draw.word(), draw.word());
        let width = self.length.high - self.length.low + 1;
        let len = self.length.low + (((shape & 0xffff_ffff) * width) >> 32);
        let start = out.len();
        out.piece(self.pool.piece(place, index(len)));
        let letter = ((place >> 56) * 26) >> 8;
        out.replace(start, b"abcdefghijklmnopqrstuvwxyz"[index(letter)]);
        if len > 2 {
            let colon = 1 + (((shape >> 32) * (len - 2)) >> 32);
            out.replace(start + index(colon), b':');
        }
    }

    /// A key, from the list or drawn, and a value, from the list or drawn.
    fn mixed(&self, out: &mut TextWriter<'_>, draw: &mut Draw, context: u64) {
        let identity = self.identity.tags;
        let keys = self.keys.len() as u64;
        let len = draw.between(self.length);
        let start = out.len();
        let (free_keys, key_len) = (keys.saturating_sub(identity), 2.max(len / 2));
        if keys > 0 && free_keys > 0 {
            let key = identity + draw.below(free_keys);
            out.text(self.keys[index(key)].as_bytes());
        } else if keys == 0 && (identity == 0 || len > 3) {
            out.piece(self.pool.piece(draw.word(), index(key_len)));
            out.replace(start, b"abcdefghijklmnopqrstuvwxyz"[index(draw.below(26))]);
        } else {
            // Every key distinguishes contexts: write one of those tags again.
            return self.write_identity(out, draw.below(identity), context);
        }
        out.fixed(b":");
        if self.values.is_empty() {
            let used = (out.len() - start) as u64;
            let rest = len.saturating_sub(used).max(1);
            out.piece(self.pool.piece(draw.word(), index(rest)));
        } else {
            let value = draw.below(self.values.len() as u64);
            out.text(self.values[index(value)].as_bytes());
        }
    }
}

/// `count` times `part` of 2^32, where `count` has 32 bits and `part` is at most
/// a whole.
#[inline(always)]
const fn scale(count: u64, part: u64) -> u64 {
    (count * part) >> 32
}
