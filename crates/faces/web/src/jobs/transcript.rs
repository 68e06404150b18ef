//! Output of a command: the last lines, each with a bound.

use std::collections::VecDeque;

use stillwell_report::document::escape::is_steering;

use super::course::LINE;

/// Maximum number of lines.
const LINES_MAX: usize = 300;
/// Maximum length of a line, in bytes.
const LENGTH_MAX: usize = 1_000;

/// The last lines of an output.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Transcript {
    lines: VecDeque<String>,
    /// Lines that were dropped.
    dropped: u64,
    /// The line that has no end yet.
    open: Vec<u8>,
}

impl Transcript {
    /// Adds bytes of the output. Lines with figures go to `figures` instead.
    pub(crate) fn add(&mut self, bytes: &[u8], mut figures: impl FnMut(&[u8])) {
        for &byte in bytes {
            match byte {
                b'\n' if self.open.starts_with(LINE) => {
                    figures(&self.open);
                    self.open.clear();
                }
                b'\n' => self.end_line(),
                // The rest of a line that is too long is dropped.
                _ if self.open.len() < LENGTH_MAX => self.open.push(byte),
                _ => {}
            }
        }
    }

    /// Adds the line that has no end.
    pub(crate) fn finish(&mut self) {
        if !self.open.is_empty() {
            self.end_line();
        }
    }

    /// Returns the lines as text.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        if self.dropped > 0 {
            text.push_str(&format!("… {} earlier lines\n", self.dropped));
        }
        for line in &self.lines {
            text.push_str(line);
            text.push('\n');
        }
        text
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    fn end_line(&mut self) {
        let line = String::from_utf8_lossy(&self.open);
        let visible = |c: &char| !is_steering(*c);
        self.lines.push_back(line.chars().filter(visible).collect());
        self.open.clear();
        if self.lines.len() > LINES_MAX {
            self.lines.pop_front();
            self.dropped += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_keeps_its_last_lines() {
        let mut transcript = Transcript::default();
        transcript.add(b"one\ntw", |_| {});
        transcript.add(b"o\x1b\xff\nthree", |_| {});
        assert_eq!(transcript.text(), "one\ntwo\u{fffd}\n");
        transcript.finish();
        transcript.finish();
        assert_eq!(transcript.text(), "one\ntwo\u{fffd}\nthree\n");
        transcript.add(&[b'x'; 5 * LENGTH_MAX], |_| {});
        transcript.add(b"\n", |_| {});
        assert_eq!(transcript.text().lines().last().unwrap().len(), LENGTH_MAX);
        transcript.add("line\n".repeat(LINES_MAX + 6).as_bytes(), |_| {});
        let text = transcript.text();
        assert!(text.starts_with("… 10 earlier lines\nline\n"), "{text}");
        assert_eq!(text.lines().count(), LINES_MAX + 1);
    }
}
