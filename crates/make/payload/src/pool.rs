//! Random characters, drawn once and used over and over.

use stillwell_units::Seed;

use crate::random::Random;

/// Number of bytes that are copied at once.
const CHUNK: usize = 32;

/// Printable characters from which pieces are taken anywhere.
pub(crate) struct Pool {
    bytes: Box<[u8]>,
    /// A piece may begin at any place up to this one.
    mask: u64,
    len_max: usize,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}

impl Pool {
    /// 2^`size_bits` places, at each of which begins a piece of up to
    /// `len_max` characters out of `alphabet`.
    pub(crate) fn new(seed: Seed, alphabet: &[u8], size_bits: u32, len_max: usize) -> Self {
        let mut random = Random::new(seed);
        let size = (1_usize << size_bits) + len_max.next_multiple_of(CHUNK) + CHUNK;
        let count = u16::try_from(alphabet.len()).expect("an alphabet has at most 256 letters");
        let bytes = (0..size).map(|_| alphabet[usize::from(random.below(count))]);
        Self {
            bytes: bytes.collect(),
            mask: (1 << size_bits) - 1,
            len_max,
        }
    }

    /// `len` characters, the place drawn from `word`.
    #[inline(always)]
    pub(crate) fn piece(&self, word: u64, len: usize) -> Piece<'_> {
        let len = len.min(self.len_max);
        let start = crate::mix::index(word & self.mask);
        Piece {
            bytes: &self.bytes[start..],
            len,
        }
    }
}

/// Some characters, with others behind them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'p> {
    bytes: &'p [u8],
    pub(crate) len: usize,
}

impl<'p> Piece<'p> {
    /// The characters alone.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &'p [u8] {
        &self.bytes[..self.len]
    }
}

/// Text being written into a room that is large enough for all of it and one
/// chunk more; writing beyond panics.
#[derive(Debug)]
pub(crate) struct TextWriter<'r> {
    room: &'r mut [u8],
    at: usize,
}

/// Bytes that a room needs beyond what is written into it.
pub(crate) const SLACK: usize = CHUNK;

impl<'r> TextWriter<'r> {
    #[inline(always)]
    pub(crate) const fn new(room: &'r mut [u8]) -> Self {
        Self { room, at: 0 }
    }

    /// Bytes written since.
    #[inline(always)]
    pub(crate) const fn len(&self) -> usize {
        self.at
    }

    /// Forgets what lies beyond the first `len` bytes.
    #[inline(always)]
    pub(crate) const fn cut(&mut self, len: usize) {
        self.at = len;
    }

    #[inline(always)]
    pub(crate) fn fixed<const N: usize>(&mut self, bytes: &[u8; N]) {
        self.room[self.at..][..N].copy_from_slice(bytes);
        self.at += N;
    }

    #[inline(always)]
    pub(crate) fn text(&mut self, text: &[u8]) {
        self.room[self.at..][..text.len()].copy_from_slice(text);
        self.at += text.len();
    }

    /// Copied in whole chunks, of which only `len` bytes count.
    #[inline(always)]
    pub(crate) fn piece(&mut self, piece: Piece<'_>) {
        let whole = piece.len.next_multiple_of(CHUNK);
        let mut room = &mut self.room[self.at..][..whole];
        let mut bytes = &piece.bytes[..whole];
        // Not `zip`: without LTO, its constructor became a call for each piece.
        while let (Some((to, room_rest)), Some((from, bytes_rest))) = (
            room.split_first_chunk_mut::<CHUNK>(),
            bytes.split_first_chunk::<CHUNK>(),
        ) {
            *to = *from;
            (room, bytes) = (room_rest, bytes_rest);
        }
        self.at += piece.len;
    }

    /// Puts `byte` where one was written before.
    #[inline(always)]
    pub(crate) fn replace(&mut self, at: usize, byte: u8) {
        self.room[at] = byte;
    }

    /// Swaps what lies between `first` and `second` with what lies behind.
    pub(crate) fn rotate(&mut self, first: usize, second: usize) {
        self.room[first..self.at].rotate_left(second - first);
    }

    /// `value` in decimal digits.
    #[inline(always)]
    pub(crate) fn decimal(&mut self, value: i64) {
        if value < 0 {
            self.fixed(b"-");
        }
        self.unsigned(value.unsigned_abs());
    }

    /// `value` in decimal digits.
    #[inline(always)]
    pub(crate) fn unsigned(&mut self, mut value: u64) {
        let mut digits = [b'0'; 20];
        let mut start = 20;
        while value >= 100 {
            start -= 2;
            let pair = &crate::text::PAIRS[crate::mix::index(value % 100)];
            digits[start..start + 2].copy_from_slice(pair);
            value /= 100;
        }
        start -= 2;
        digits[start..start + 2].copy_from_slice(&crate::text::PAIRS[crate::mix::index(value)]);
        start += usize::from(value < 10);
        self.text(&digits[start..]);
    }

    /// `value` below 1000 in three digits.
    #[inline(always)]
    pub(crate) fn three_digits(&mut self, value: u16) {
        self.fixed(&crate::text::TRIPLES[usize::from(value)].padded);
    }

    /// Returns the written bytes.
    #[inline(always)]
    pub(crate) fn finish(self) -> &'r [u8] {
        &self.room[..self.at]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn for_all_numbers_and_pieces_what_is_written_is_there(
            number: i64, second_number: u64, word: u64, len in 0_usize..70,
        ) {
            let pool = Pool::new(Seed::from_number(1), b"abc", 8, 64);
            let mut room = [0; 256];
            let mut out = TextWriter::new(&mut room);
            out.decimal(number);
            out.fixed(b" ");
            out.unsigned(second_number);
            out.fixed(b" ");
            out.piece(pool.piece(word, len));
            out.fixed(b"!");
            let text = String::from_utf8(out.finish().to_vec()).unwrap();
            let mut parts = text.split(' ');
            prop_assert_eq!(parts.next().map(str::to_owned), Some(number.to_string()));
            prop_assert_eq!(parts.next().map(str::to_owned), Some(second_number.to_string()));
            let piece = parts.next().and_then(|piece| piece.strip_suffix('!')).unwrap();
            prop_assert_eq!(piece.len(), len.min(64));
            prop_assert!(piece.chars().all(|c| "abc".contains(c)));
        }
    }
}
