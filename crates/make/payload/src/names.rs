//! Names that differ from each other, made from their numbers.

use stillwell_plan::payload::Between;
use stillwell_units::Seed;

use crate::mix::{Draw, index, key};
use crate::pool::{Pool, TextWriter};

/// Digits that distinguish texts.
pub(crate) const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// Characters of names.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.";

/// The requested number of distinct names.
#[derive(Debug)]
pub(crate) struct Names {
    source: NameSource,
    key: u64,
}

#[derive(Debug)]
enum NameSource {
    Listed(Vec<String>),
    Drawn {
        pool: Pool,
        length: Between<u64>,
        /// Characters at the end that distinguish names.
        identity: usize,
        count: u64,
    },
}

impl Names {
    /// At most `wanted` names of `length`.
    pub(crate) fn drawn(seed: &Seed, length: Between<u16>, wanted: u64) -> Self {
        let (mut identity, mut count) = (1, 26_u64);
        while count < wanted && identity < usize::from(length.high) {
            identity += 1;
            count = count.saturating_mul(36);
        }
        let low = u64::from(length.low).max(identity as u64);
        Self {
            source: NameSource::Drawn {
                pool: Pool::new(
                    seed.derive("pool", 0),
                    ALPHABET,
                    16,
                    usize::from(length.high),
                ),
                length: Between::new(low, u64::from(length.high).max(low)),
                identity,
                count: count.min(wanted).max(1),
            },
            key: key(seed),
        }
    }

    /// The names in `list`, which has one at least.
    pub(crate) fn listed(list: Vec<String>) -> Self {
        Self {
            source: NameSource::Listed(list),
            key: 0,
        }
    }

    /// Returns the number of names.
    pub(crate) fn count(&self) -> u64 {
        match &self.source {
            NameSource::Listed(list) => list.len() as u64,
            NameSource::Drawn { count, .. } => *count,
        }
    }

    /// Writes name `number`, counted around.
    #[inline(always)]
    pub(crate) fn write(&self, out: &mut TextWriter<'_>, number: u64) {
        match &self.source {
            NameSource::Listed(list) => {
                out.text(list[index(number % list.len() as u64)].as_bytes());
            }
            NameSource::Drawn {
                pool,
                length,
                identity,
                count,
            } => {
                let number = number % count;
                let mut draw = Draw::new(self.key, number);
                let start = out.len();
                let len = index(draw.between(*length));
                out.piece(pool.piece(draw.word(), len));
                out.replace(start, b'a' + low_letter(draw.word()));
                write_identity(out, number, *identity);
            }
        }
    }
}

/// Puts the digits of `number` over the last `identity` characters, the first
/// of them a letter.
#[inline(always)]
fn write_identity(out: &mut TextWriter<'_>, mut number: u64, identity: usize) {
    let end = out.len();
    for back in 1..identity {
        out.replace(end - back, DIGITS[index(number % 36)]);
        number /= 36;
    }
    out.replace(end - identity, b'a' + low_letter_of(number % 26));
}

/// One of 0 to 25.
#[inline(always)]
fn low_letter(word: u64) -> u8 {
    low_letter_of(crate::mix::share(word, 26))
}

fn low_letter_of(number: u64) -> u8 {
    u8::try_from(number).expect("a letter's number is below 26")
}
