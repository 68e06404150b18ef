//! Lines that look as they should, out of what comes in parts.

use std::sync::Arc;

use memchr::memchr;
use stillwell_plan::sink::LinesPlan;

/// A line that is longer is skipped.
const LINE_BYTES_MAX: usize = 8 << 20;

/// Finds the lines of one connection that look as they should.
#[derive(Debug)]
pub(crate) struct Fitting {
    plan: Arc<LinesPlan>,
    /// The received part of a line that has not ended.
    begun: Vec<u8>,
    is_too_long: bool,
}

impl Fitting {
    pub(crate) const fn new(plan: Arc<LinesPlan>) -> Self {
        Self {
            plan,
            begun: Vec::new(),
            is_too_long: false,
        }
    }

    /// Takes the next read; `tell` gets each line that ends in it and fits, with its
    /// end.
    pub(crate) fn take(&mut self, mut read: &[u8], mut enter: impl FnMut(&[u8])) {
        while let Some(end) = memchr(b'\n', read) {
            let (line, rest) = read.split_at(end + 1);
            read = rest;
            if self.begun.is_empty() && !self.is_too_long {
                self.look(line, &mut enter);
                continue;
            }
            let mut begun = std::mem::take(&mut self.begun);
            if !self.is_too_long {
                begun.extend_from_slice(line);
                self.look(&begun, &mut enter);
            }
            begun.clear();
            self.begun = begun;
            self.is_too_long = false;
        }
        self.is_too_long |= self.begun.len() + read.len() > LINE_BYTES_MAX;
        if self.is_too_long {
            self.begun.clear();
        } else {
            self.begun.extend_from_slice(read);
        }
    }

    /// The begun line is complete, such as at the end of a body.
    pub(crate) fn finish(&mut self, mut enter: impl FnMut(&[u8])) {
        let begun = std::mem::take(&mut self.begun);
        if !begun.is_empty() {
            self.look(&begun, &mut enter);
        }
        self.is_too_long = false;
    }

    /// `tell` gets each line of a message that fits; what was begun stays as it is.
    pub(crate) fn whole(&self, message: &[u8], mut enter: impl FnMut(&[u8])) {
        for line in message.split_inclusive(|byte| *byte == b'\n') {
            self.look(line, &mut enter);
        }
    }

    fn look(&self, line: &[u8], enter: &mut impl FnMut(&[u8])) {
        if self.plan.fits(line.strip_suffix(b"\n").unwrap_or(line)) {
            enter(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_fit_are_found_however_they_are_cut() {
        let text = b"{a}\n{b\nc}\n{}\n\n{d}{e}\n{f}";
        for part_bytes in 1..=text.len() {
            let plan = LinesPlan {
                begins: "{".to_owned(),
                ends: "}".to_owned(),
                holds: Vec::new(),
            };
            let mut fitting = Fitting::new(Arc::new(plan));
            let mut fitted = Vec::new();
            for part in text.chunks(part_bytes) {
                fitting.take(part, |line| fitted.extend_from_slice(line));
            }
            assert_eq!(fitted, b"{a}\n{}\n{d}{e}\n", "{part_bytes}");
            fitting.finish(|line| assert_eq!(line, b"{f}"));
        }
    }

    #[test]
    fn a_line_must_hold_all_that_is_required() {
        let plan = LinesPlan {
            holds: vec!["a:".to_owned(), ":b".to_owned()],
            ..LinesPlan::default()
        };
        let mut fitting = Fitting::new(Arc::new(plan));
        let mut fitted = Vec::new();
        fitting.take(b"a:\nx:b\na::b\n:ba:\n", |line| {
            fitted.extend_from_slice(line)
        });
        assert_eq!(fitted, b"a::b\n:ba:\n");
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over_alone() {
        let mut fitting = Fitting::new(Arc::new(LinesPlan::default()));
        let mut fitted = Vec::new();
        let long = vec![b'x'; LINE_BYTES_MAX];
        for part in [b"a\nbegun".as_slice(), &long, b"end\nb\n"] {
            fitting.take(part, |line| fitted.extend_from_slice(line));
        }
        assert_eq!(fitted, b"a\nb\n");
    }
}
