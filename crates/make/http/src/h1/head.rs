//! Finding the end of a head, and what its headers say about the body.

use memchr::memchr;

use super::ParseError;
use crate::decimal::parse_decimal;

/// The longest head that is read.
pub(super) const HEAD_BYTES_MAX: usize = 64 << 10;
/// The most headers that are read.
pub(super) const HEADERS_MAX: usize = 100;

/// Hands out whole heads: straight from the input where a head arrives in one
/// piece, else from a copy that grows until the head's end arrives.
#[derive(Debug, Default)]
pub(super) struct HeadBuffer {
    /// The received part of a head, or the last head that was handed out from here.
    bytes: Vec<u8>,
    handed_out: bool,
    scanner: Scanner,
}

impl HeadBuffer {
    /// The bytes taken from `input`, and the head once it is whole. All of
    /// `input` is taken where it is not.
    pub(super) fn take<'a>(
        &'a mut self,
        input: &'a [u8],
    ) -> Result<(usize, Option<&'a [u8]>), ParseError> {
        if self.handed_out {
            self.bytes.clear();
            self.handed_out = false;
        }
        if self.bytes.is_empty() {
            if let Some(end) = self.scanner.find_end(input)? {
                self.scanner = Scanner::default();
                return Ok((end, Some(&input[..end])));
            }
            self.bytes.extend_from_slice(input);
            return Ok((input.len(), None));
        }
        let before = self.bytes.len();
        let taken = input.len().min(HEAD_BYTES_MAX - before);
        self.bytes.extend_from_slice(&input[..taken]);
        let Some(end) = self.scanner.find_end(&self.bytes)? else {
            return Ok((taken, None));
        };
        self.bytes.truncate(end);
        self.scanner = Scanner::default();
        self.handed_out = true;
        Ok((end - before, Some(&self.bytes)))
    }

    /// Returns true if nothing has arrived but empty lines before a head.
    pub(super) fn is_idle(&self) -> bool {
        self.handed_out || self.bytes.iter().all(|byte| matches!(byte, b'\r' | b'\n'))
    }
}

/// Looks for the empty line that ends a head; never looks at a byte twice.
#[derive(Debug, Default)]
struct Scanner {
    line_start: usize,
    searched: usize,
    /// True after a line that is not empty: empty lines before the first are skipped (RFC
    /// 9112, 2.2).
    begun: bool,
}

impl Scanner {
    /// `bytes` begins where it began in the last call. Never looks beyond the
    /// limit, so the answer does not depend on how the input was cut.
    fn find_end(&mut self, bytes: &[u8]) -> Result<Option<usize>, ParseError> {
        let window = &bytes[..bytes.len().min(HEAD_BYTES_MAX)];
        while let Some(offset) = memchr(b'\n', &window[self.searched..]) {
            let end = self.searched + offset;
            let Some((b'\r', line)) = window[self.line_start..end].split_last() else {
                return Err(ParseError::BareLineFeed);
            };
            self.line_start = end + 1;
            self.searched = end + 1;
            if !line.is_empty() {
                self.begun = true;
            } else if self.begun {
                return Ok(Some(end + 1));
            }
        }
        self.searched = window.len();
        if window.len() == HEAD_BYTES_MAX {
            return Err(ParseError::HeadTooLarge);
        }
        Ok(None)
    }
}

/// Checks that `parsed` ended where the scanner saw the end of `head`.
pub(super) fn whole(parsed: httparse::Result<usize>, head: &[u8]) -> Result<(), ParseError> {
    let part = match parsed {
        Ok(httparse::Status::Complete(length)) if length == head.len() => return Ok(()),
        Ok(_) | Err(httparse::Error::NewLine) => "line end",
        Err(httparse::Error::TooManyHeaders) => return Err(ParseError::TooManyHeaders),
        Err(httparse::Error::HeaderName) => "header name",
        Err(httparse::Error::HeaderValue) => "header value",
        Err(httparse::Error::Status) => "status",
        Err(httparse::Error::Token) => "start line",
        Err(httparse::Error::Version) => "version",
    };
    Err(ParseError::Malformed { part })
}

/// Framing and connection handling that a head's headers give.
#[derive(Debug, Default)]
pub(super) struct FramingHeaders {
    pub(super) content_length: Option<u64>,
    pub(super) chunked: bool,
    close: bool,
    keep_alive: bool,
}

impl FramingHeaders {
    /// Takes in a header; false where it has nothing to do with framing.
    pub(super) fn read(&mut self, name: &str, value: &[u8]) -> Result<bool, ParseError> {
        match name.len() {
            10 if name.eq_ignore_ascii_case("connection") => self.read_connection(value),
            14 if name.eq_ignore_ascii_case("content-length") => {
                let length = parse_decimal(value).ok_or(ParseError::ContentLength)?;
                if self.content_length.is_some_and(|earlier| earlier != length) {
                    return Err(ParseError::ContentLengthsDiffer);
                }
                self.content_length = Some(length);
            }
            17 if name.eq_ignore_ascii_case("transfer-encoding") => {
                if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(ParseError::TransferEncoding);
                }
                self.chunked = true;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Refuses lengths that contradict each other: one reader could see a
    /// message where another sees a body.
    pub(super) const fn check(&self, version: Option<u8>) -> Result<(), ParseError> {
        if self.chunked && self.content_length.is_some() {
            return Err(ParseError::BothLengths);
        }
        if self.chunked && !matches!(version, Some(1)) {
            return Err(ParseError::TransferEncoding);
        }
        Ok(())
    }

    /// Returns true if the connection outlives the message, by its head.
    pub(super) const fn keeps_alive(&self, version: Option<u8>) -> bool {
        !self.close && (matches!(version, Some(1)) || self.keep_alive)
    }

    fn read_connection(&mut self, value: &[u8]) {
        for option in value.split(|byte| *byte == b',') {
            let option = option.trim_ascii();
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }
}
