//! Counting the events of one request body, cut anywhere.

use crate::json_array::{JsonArray, is_space};
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
            Self::JsonArray(array) => array.elements(),
        }
    }
}

#[cfg(test)]
mod tests;
