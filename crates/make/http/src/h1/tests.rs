//! One harness drives both parsers: events as data, input cut anywhere.

mod properties;
mod requests;
mod responses;
mod written;

use super::{H1RequestEvent, H1ResponseEvent, ParseError, RequestParser, ResponseParser};

/// An event of a parser. Parts of a body are joined: only their sum is fixed.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Seen {
    Head(String),
    Body(Vec<u8>),
    End,
    Failed(ParseError),
}

/// The common part of both parsers.
trait Side: Default {
    fn step(&mut self, input: &[u8]) -> Result<(usize, Option<Seen>), ParseError>;
    fn finish_side(&mut self) -> Result<Option<Seen>, ParseError>;
}

impl Side for RequestParser {
    fn step(&mut self, input: &[u8]) -> Result<(usize, Option<Seen>), ParseError> {
        let (consumed, event) = self.advance(input)?;
        let seen = event.map(|event| match event {
            H1RequestEvent::Head(head) => {
                let mut text = format!("{} {}", head.method, head.target);
                text += &head
                    .content_length
                    .map_or_else(String::new, |n| format!(" {n}B"));
                for (set, word) in [
                    (head.chunked, " chunked"),
                    (head.expect_continue, " expects"),
                    (!head.keep_alive, " close"),
                ] {
                    text += if set { word } else { "" };
                }
                for value in [head.content_type, head.content_encoding]
                    .into_iter()
                    .flatten()
                {
                    text += &format!(" {value}");
                }
                Seen::Head(text)
            }
            H1RequestEvent::Body(part) => Seen::Body(part.to_vec()),
            H1RequestEvent::End => Seen::End,
        });
        Ok((consumed, seen))
    }

    fn finish_side(&mut self) -> Result<Option<Seen>, ParseError> {
        self.finish().map(|()| None)
    }
}

impl Side for ResponseParser {
    fn step(&mut self, input: &[u8]) -> Result<(usize, Option<Seen>), ParseError> {
        let (consumed, event) = self.advance(input)?;
        Ok((consumed, event.map(seen_response)))
    }

    fn finish_side(&mut self) -> Result<Option<Seen>, ParseError> {
        Ok(self.finish()?.map(seen_response))
    }
}

fn seen_response(event: H1ResponseEvent<'_>) -> Seen {
    match event {
        H1ResponseEvent::Head(head) => {
            let close = if head.keep_alive { "" } else { " close" };
            let length = head
                .content_length
                .map_or_else(String::new, |n| format!(" {n}B"));
            Seen::Head(format!("{}{length}{close}", head.status))
        }
        H1ResponseEvent::Body(part) => Seen::Body(part.to_vec()),
        H1ResponseEvent::End => Seen::End,
    }
}

/// Everything that `S` reports about a connection that carried `bytes`, read in
/// pieces that end at `cuts`, and then ended.
fn read<S: Side>(bytes: &[u8], cuts: &[usize]) -> Vec<Seen> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    cuts.push(bytes.len());
    cuts.sort_unstable();
    let (mut side, mut seen, mut start) = (S::default(), Vec::new(), 0);
    for end in cuts {
        while start <= end {
            match side.step(&bytes[start..end]) {
                Ok((consumed, Some(event))) => {
                    start += consumed;
                    record(&mut seen, event);
                }
                Ok((consumed, None)) => {
                    assert_eq!(consumed, end - start, "input was left without an event");
                    start = end;
                    break;
                }
                Err(error) => {
                    assert_eq!(side.step(b"x"), Err(error), "a failure was forgotten");
                    assert_eq!(side.finish_side(), Err(error), "a failure was forgotten");
                    record(&mut seen, Seen::Failed(error));
                    return seen;
                }
            }
            assert!(seen.len() <= 4 * bytes.len() + 4, "no progress");
        }
    }
    match side.finish_side() {
        Ok(event) => seen.extend(event),
        Err(error) => seen.push(Seen::Failed(error)),
    }
    seen
}

fn record(seen: &mut Vec<Seen>, event: Seen) {
    match (seen.last_mut(), event) {
        (Some(Seen::Body(body)), Seen::Body(part)) => body.extend(part),
        (_, event) => seen.push(event),
    }
}

/// In whole, in single bytes: the same, and as written in the table.
fn check<S: Side>(bytes: &[u8], expected: &[Seen]) {
    let cuts: Vec<usize> = (0..bytes.len()).collect();
    let text = bytes.escape_ascii().to_string();
    assert_eq!(read::<S>(bytes, &[]), expected, "whole: {text:.300}");
    assert_eq!(read::<S>(bytes, &cuts), expected, "cut: {text:.300}");
}

fn head(text: &str) -> Seen {
    Seen::Head(text.to_owned())
}

fn body(text: &str) -> Seen {
    Seen::Body(text.as_bytes().to_vec())
}
