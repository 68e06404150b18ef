//! Elements of a JSON array, cut anywhere.

use memchr::memchr2;

use crate::json_classes::{BLOCK_BYTES, JsonClasses};

/// Counts the elements of a JSON array by its brackets, commas and strings. What
/// is no JSON gives some number.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct JsonArray {
    elements: u64,
    /// Open brackets and braces, the array's own included.
    depth: u64,
    within_string: bool,
    /// True if the last byte was a backslash in a string.
    escaped: bool,
    /// True if an element has begun since the last comma.
    within_element: bool,
    /// True if the array was closed: what follows does not count.
    closed: bool,
}

impl JsonArray {
    /// Takes in the next part; the first one begins with `[`.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        if self.closed {
            return;
        }
        let (blocks, rest) = bytes.as_chunks();
        JsonClasses::of_each(blocks, |block, classes| {
            if !self.take_block(block, classes) {
                self.take_slowly(block);
            }
            !self.closed
        });
        self.take_slowly(rest);
    }

    /// Returns the number of elements that have begun.
    pub(crate) const fn elements(&self) -> u64 {
        self.elements
    }

    /// Takes in a block with these bytes of each class, or returns false if it has to be taken slowly.
    #[inline]
    fn take_block(&mut self, block: &[u8; BLOCK_BYTES], classes: &JsonClasses) -> bool {
        let Some((escaped, ends_escaped)) = self.escaped_bytes(classes.backslashes) else {
            return false;
        };
        // A bit for each byte within a string, with its first quote and without its last.
        let before = if self.within_string { u64::MAX } else { 0 };
        let strings = parities(classes.quotes & !escaped) ^ before;
        if classes.backslashes & !strings != 0 {
            // Outside of strings a backslash escapes nothing.
            return false;
        }
        self.within_string = strings >> 63 != 0;
        self.escaped = ends_escaped;
        let opens = classes.opens & !strings;
        let closes = classes.closes & !strings;
        self.take_brackets(block, (opens, closes), strings);
        true
    }

    /// Returns a bit for each byte after a backslash that is not escaped itself, and true if the byte after the
    /// block is such a byte. `None` if there are so many that looking at each byte is as fast.
    fn escaped_bytes(&self, mut backslashes: u64) -> Option<(u64, bool)> {
        let mut escaped = u64::from(self.escaped);
        backslashes &= !escaped;
        if backslashes.count_ones() > 8 {
            return None;
        }
        while backslashes != 0 {
            let at = backslashes & backslashes.wrapping_neg();
            let next = at << 1;
            if next == 0 {
                return Some((escaped, true));
            }
            escaped |= next;
            backslashes &= !(at | next);
        }
        Some((escaped, false))
    }

    /// Follows the brackets of a block. Only next to the array's own level are there elements to count.
    fn take_brackets(&mut self, block: &[u8; BLOCK_BYTES], brackets: (u64, u64), strings: u64) {
        let (opens, closes) = brackets;
        let closing = u64::from(closes.count_ones());
        if self.depth > 1 + closing {
            self.depth = self.depth + u64::from(opens.count_ones()) - closing;
            return;
        }
        let mut at = 0;
        while at < BLOCK_BYTES && !self.closed {
            if self.depth < 2 {
                if strings >> at & 1 == 0 {
                    self.take_byte(block[at]);
                } else {
                    self.begin_element();
                }
                at += 1;
                continue;
            }
            let next = (opens | closes) >> at;
            if next == 0 {
                return;
            }
            let place = usize_of(next.trailing_zeros()) + at;
            match opens >> place & 1 {
                0 => self.depth -= 1,
                _ => self.depth += 1,
            }
            at = place + 1;
        }
    }

    /// Takes in bytes one by one.
    fn take_slowly(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() && !self.closed {
            rest = if self.within_string {
                self.pass_string(rest)
            } else {
                self.pass_structure(rest)
            };
        }
    }

    /// Returns the bytes after the string that `bytes` are within.
    fn pass_string<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        if self.escaped {
            self.escaped = false;
            return &bytes[1..];
        }
        let Some(at) = memchr2(b'"', b'\\', bytes) else {
            return &[];
        };
        if bytes[at] == b'"' {
            self.within_string = false;
        } else {
            self.escaped = true;
        }
        &bytes[at + 1..]
    }

    /// Returns the bytes after the next quote, or the array's end.
    fn pass_structure<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        for (at, byte) in bytes.iter().enumerate() {
            self.take_byte(*byte);
            self.within_string = *byte == b'"';
            if self.within_string || self.closed {
                return &bytes[at + 1..];
            }
        }
        &[]
    }

    /// Takes in a byte that is not within a string, or is a quote.
    fn take_byte(&mut self, byte: u8) {
        match byte {
            b',' if self.depth == 1 => self.within_element = false,
            b']' | b'}' => {
                self.depth = self.depth.saturating_sub(1);
                self.closed = self.depth == 0;
            }
            byte if is_space(byte) => {}
            byte => {
                self.begin_element();
                self.depth += u64::from(matches!(byte, b'[' | b'{'));
            }
        }
    }

    /// At any byte of an element, or at the array's first.
    fn begin_element(&mut self) {
        if self.depth == 1 && !self.within_element {
            self.within_element = true;
            self.elements += 1;
        }
    }
}

/// Returns for each bit whether the number of set bits up to it, itself included, is odd.
const fn parities(bits: u64) -> u64 {
    let mut odd = bits;
    odd ^= odd << 1;
    odd ^= odd << 2;
    odd ^= odd << 4;
    odd ^= odd << 8;
    odd ^= odd << 16;
    odd ^= odd << 32;
    odd
}

/// Returns the place of a bit in 64.
const fn usize_of(place: u32) -> usize {
    (place & 63) as usize
}

/// Returns true for white space of JSON.
pub(crate) const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}
