//! Counting the events of one request body, cut anywhere.

use memchr::memchr2;

use crate::lines::Lines;

/// Counts the events of one body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum BodyEvents {
    /// It is encoded, so what is in it cannot be seen.
    Unseen,
    /// Lines.
    Lines { ended: u64, lines: Lines },
    /// JSON, or a body without a type, of which no byte was seen yet but space.
    Start {
        ended: u64,
        lines: Lines,
        is_json: bool,
    },
    /// A body without a type of which `[` was seen: an array if an object follows.
    Bracket { ended: u64, lines: Lines },
    /// Elements of a JSON array.
    JsonArray(JsonArray),
}

impl BodyEvents {
    /// For a body with these headers, as they were sent.
    pub(crate) fn new(content_type: Option<&str>, content_encoding: Option<&str>) -> Self {
        let is_encoded =
            content_encoding.is_some_and(|coding| !coding.trim().eq_ignore_ascii_case("identity"));
        let kind = content_type.and_then(|value| value.split(';').next());
        let kind = kind.unwrap_or_default().trim();
        let is_json = kind.eq_ignore_ascii_case("application/json");
        let (ended, lines) = (0, Lines::default());
        if is_encoded {
            Self::Unseen
        } else if is_json || kind.is_empty() {
            Self::Start {
                ended,
                lines,
                is_json,
            }
        } else {
            Self::Lines { ended, lines }
        }
    }

    /// Takes in the next part.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        match self {
            Self::Unseen => {}
            Self::Lines { ended, lines } => *ended += lines.take(bytes),
            Self::JsonArray(array) => array.take(bytes),
            Self::Start {
                ended,
                lines,
                is_json,
            } => {
                let start = bytes.iter().position(|byte| !is_space(*byte));
                match start.map(|start| bytes.split_at(start)) {
                    Some((_, array @ [b'[', ..])) if *is_json => *self = Self::array(&[array]),
                    Some((spaces, [b'[', rest @ ..])) => {
                        *ended += lines.take(spaces) + lines.take(b"[");
                        let (ended, lines) = (*ended, *lines);
                        *self = Self::Bracket { ended, lines };
                        self.take(rest);
                    }
                    Some(_) => {
                        *ended += lines.take(bytes);
                        let (ended, lines) = (*ended, *lines);
                        *self = Self::Lines { ended, lines };
                    }
                    None => *ended += lines.take(bytes),
                }
            }
            Self::Bracket { ended, lines } => {
                let start = bytes.iter().position(|byte| !is_space(*byte));
                match start.map(|start| &bytes[start..]) {
                    Some(objects @ [b'{', ..]) => *self = Self::array(&[b"[", objects]),
                    Some(_) => {
                        *ended += lines.take(bytes);
                        let (ended, lines) = (*ended, *lines);
                        *self = Self::Lines { ended, lines };
                    }
                    None => *ended += lines.take(bytes),
                }
            }
        }
    }

    /// An array of which `parts` were seen, the first of which begins with `[`.
    fn array(parts: &[&[u8]]) -> Self {
        let mut array = JsonArray::default();
        for part in parts {
            array.take(part);
        }
        Self::JsonArray(array)
    }

    /// Returns the number of items.
    pub(crate) const fn finish(self) -> u64 {
        match self {
            Self::Unseen => 0,
            Self::Lines { ended, lines }
            | Self::Start { ended, lines, .. }
            | Self::Bracket { ended, lines } => ended + lines.finish(),
            Self::JsonArray(array) => array.elements,
        }
    }
}

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
    fn take(&mut self, bytes: &[u8]) {
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
            match byte {
                b',' if self.depth == 1 => self.within_element = false,
                b']' | b'}' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.closed = self.depth == 0;
                }
                byte if is_space(*byte) => {}
                byte => {
                    self.begin_element();
                    self.depth += u64::from(matches!(byte, b'[' | b'{'));
                    self.within_string = *byte == b'"';
                }
            }
            if self.within_string || self.closed {
                return &bytes[at + 1..];
            }
        }
        &[]
    }

    /// At any byte of an element, or at the array's first.
    fn begin_element(&mut self) {
        if self.depth == 1 && !self.within_element {
            self.within_element = true;
            self.elements += 1;
        }
    }
}

const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

#[cfg(test)]
mod tests;
