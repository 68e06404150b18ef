//! The change of each event.

use std::collections::VecDeque;

use bytes::Bytes;
use serde_json::Value;

use crate::options::{Format, RelayOptions, Rewrite};
use crate::work::Work;

/// Without a leak, memory is kept for so many events.
const HOARDED_EVENTS_MAX: usize = 100_000;

/// The change of each event.
#[derive(Debug)]
pub(crate) struct Transform {
    format: Format,
    parse: bool,
    rewrite: Vec<Rewrite>,
    /// Bytes appended to lines.
    suffix: Vec<u8>,
    work: Work,
    retained: RetainedMemory,
}

/// An event that could not be parsed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct NotParsed;

impl Transform {
    pub(crate) fn new(options: &RelayOptions, work: Work) -> Self {
        let suffix = options
            .rewrite
            .iter()
            .map(|rewrite| format!(" {}={}", rewrite.field, rewrite.value))
            .collect::<String>()
            .into_bytes();
        Self {
            format: options.format,
            parse: options.parse,
            rewrite: options.rewrite.clone(),
            suffix,
            work,
            retained: RetainedMemory {
                event_bytes: options.hoard_per_event.as_usize(),
                leak: options.leak,
                kept: VecDeque::new(),
                bytes: 0,
            },
        }
    }

    /// Changes `event`, or leaves it as it is where it cannot be parsed.
    pub(crate) fn apply(&mut self, event: &mut Bytes) -> Result<(), NotParsed> {
        self.work.perform();
        self.retained.grow();
        match self.format {
            Format::Lines => self.apply_to_line(event),
            Format::Json => self.apply_to_json(event),
            Format::Requests => Ok(()),
        }
    }

    /// Memory taken and not given back, in bytes.
    pub(crate) const fn hoard_bytes(&self) -> u64 {
        self.retained.bytes
    }

    fn apply_to_line(&self, event: &mut Bytes) -> Result<(), NotParsed> {
        if self.parse && std::str::from_utf8(event).is_err() {
            return Err(NotParsed);
        }
        if !self.suffix.is_empty() {
            *event = [event, self.suffix.as_slice()].concat().into();
        }
        Ok(())
    }

    fn apply_to_json(&self, event: &mut Bytes) -> Result<(), NotParsed> {
        if !self.parse && self.rewrite.is_empty() {
            return Ok(());
        }
        let mut value: Value = serde_json::from_slice(event).map_err(|_| NotParsed)?;
        if self.rewrite.is_empty() {
            return Ok(());
        }
        let fields = value.as_object_mut().ok_or(NotParsed)?;
        for Rewrite { field, value } in &self.rewrite {
            fields.insert(field.clone(), Value::String(value.clone()));
        }
        *event = serde_json::to_vec(&value).map_err(|_| NotParsed)?.into();
        Ok(())
    }
}

/// Memory that is taken on purpose.
#[derive(Debug)]
struct RetainedMemory {
    event_bytes: usize,
    leak: bool,
    kept: VecDeque<Box<[u8]>>,
    bytes: u64,
}

impl RetainedMemory {
    /// Takes memory for one event, and gives the oldest back where it is due.
    fn grow(&mut self) {
        if self.event_bytes == 0 {
            return;
        }
        if !self.leak && self.kept.len() == HOARDED_EVENTS_MAX {
            self.kept.pop_front();
            self.bytes -= self.event_bytes as u64;
        }
        // Written to, or the kernel would not really give it.
        self.kept.push_back(vec![0x5a; self.event_bytes].into());
        self.bytes += self.event_bytes as u64;
    }
}

#[cfg(test)]
mod tests {
    use stillwell_units::ByteSize;

    use super::*;
    use crate::endpoint::Endpoint;
    use crate::work::WorkAmount;

    fn transform(change: impl FnOnce(&mut RelayOptions)) -> Transform {
        let mut options = RelayOptions::new(Endpoint::Discard, Endpoint::Discard);
        change(&mut options);
        Transform::new(&options, Work::new(WorkAmount::Rounds(0)))
    }

    fn check(transform: &mut Transform, event: &[u8], expected: &[u8], parsed: bool) {
        let mut bytes = Bytes::copy_from_slice(event);
        assert_eq!(transform.apply(&mut bytes).is_ok(), parsed);
        assert_eq!(bytes, expected);
    }

    #[test]
    fn lines_are_passed_on_checked_and_extended() {
        check(&mut transform(|_| {}), b"\xff", b"\xff", true);
        let mut parsing = transform(|options| options.parse = true);
        check(&mut parsing, b"a", b"a", true);
        check(&mut parsing, b"\xff", b"\xff", false);
        let mut rewriting = transform(|options| {
            options.rewrite = vec!["a=1".parse().unwrap(), "b=x y".parse().unwrap()];
        });
        check(&mut rewriting, b"line", b"line a=1 b=x y", true);
    }

    #[test]
    fn json_is_passed_on_checked_and_rewritten() {
        let json = |parse, rewrite: &[&str]| {
            transform(|options| {
                options.format = Format::Json;
                options.parse = parse;
                options.rewrite = rewrite.iter().map(|text| text.parse().unwrap()).collect();
            })
        };
        check(&mut json(false, &[]), b"{", b"{", true);
        check(&mut json(true, &[]), b"{", b"{", false);
        check(
            &mut json(true, &[]),
            b"{ \"b\":1, \"a\":2}",
            b"{ \"b\":1, \"a\":2}",
            true,
        );
        let mut rewriting = json(false, &["env=prod"]);
        check(
            &mut rewriting,
            b"{\"x\":1}",
            b"{\"env\":\"prod\",\"x\":1}",
            true,
        );
        check(&mut rewriting, b"{\"env\":1}", b"{\"env\":\"prod\"}", true);
        check(&mut rewriting, b"[1]", b"[1]", false);
        check(&mut rewriting, b"not json", b"not json", false);
    }

    #[test]
    fn a_hoard_grows_to_its_bound_and_a_leak_beyond() {
        for (leak, expected) in [(false, 100_000), (true, 100_500)] {
            let mut retaining = transform(|options| {
                options.hoard_per_event = ByteSize::new(3);
                options.leak = leak;
            });
            for _ in 0..100_500 {
                retaining.retained.grow();
            }
            assert_eq!(retaining.hoard_bytes(), 3 * expected);
            assert_eq!(retaining.retained.kept.len() as u64, expected);
        }
    }
}
