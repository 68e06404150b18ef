//! Responses from servers.

use std::mem::MaybeUninit;

use super::ParseError;
use super::body::{Body, BodyEvent, Chunks};
use super::head::{FramingHeaders, HEADERS_MAX, HeadBuffer, whole};
use crate::INTERIM_MAX;

/// Size of a status among the headers, in bytes.
const STATUS_BYTES: usize = ":status200".len();

/// Reads the responses of one connection, one after another.
///
/// Call [`Self::advance`] with received bytes until it gives no event, and [`Self::finish`]
/// once when the connection has ended. Interim (1xx) responses are skipped, 100
/// of them at most. Responses to
/// `CONNECT`, which are framed otherwise, are not for this parser; [`Self::answers_head`]
/// announces those to `HEAD`.
#[derive(Debug, Default)]
pub struct ResponseParser {
    head: HeadBuffer,
    state: ResponseParserState,
    /// True if the next final response answers `HEAD`.
    answers_head: bool,
    /// Interim responses since the last final one.
    interim: u8,
    /// True after the first byte of the connection.
    has_begun: bool,
}

#[derive(Debug, Default)]
enum ResponseParserState {
    #[default]
    Head,
    Body(Body),
    Failed(ParseError),
}

/// The next event of a response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum H1ResponseEvent<'i> {
    /// A final response begins.
    Head(H1ResponseHead),
    /// The next part of its body, without framing; never empty.
    Body(&'i [u8]),
    /// It is whole; the next may follow.
    End,
}

/// Parts of a response's head that matter for framing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct H1ResponseHead {
    /// The status code, such as 200.
    pub status: u16,
    /// True if another request may follow on this connection.
    pub keep_alive: bool,
    /// The body's length in bytes, where the head says it.
    pub content_length: Option<u64>,
    /// The names and values of its headers in bytes, `:status` counted as if it
    /// were one: the same measure as over HTTP/2.
    pub header_bytes: usize,
}

impl ResponseParser {
    /// At the start of a connection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Announces that the next final response answers `HEAD`: it has no body, even if its
    /// head gives a length. Call this before each such head is read.
    pub const fn answers_head(&mut self) {
        self.answers_head = true;
    }

    /// Returns the number of bytes taken from `input`, and the event that they completed.
    /// Without an event all of `input` was taken; `End` may take none.
    ///
    /// # Errors
    /// [`ParseError`] where the response cannot be framed, and ever after.
    pub fn advance<'i>(
        &mut self,
        input: &'i [u8],
    ) -> Result<(usize, Option<H1ResponseEvent<'i>>), ParseError> {
        self.advance_reading(input, |_, _| {})
    }

    /// As [`Self::advance`], and gives name and value of each header of a final response to
    /// `header`, before the event of its head.
    ///
    /// # Errors
    /// As [`Self::advance`].
    pub fn advance_reading<'i>(
        &mut self,
        input: &'i [u8],
        header: impl FnMut(&str, &[u8]),
    ) -> Result<(usize, Option<H1ResponseEvent<'i>>), ParseError> {
        let step = match &mut self.state {
            ResponseParserState::Head => self.advance_head(input, header),
            ResponseParserState::Body(body) => match body.advance(input) {
                Ok((consumed, Some(BodyEvent::End))) => {
                    self.state = ResponseParserState::Head;
                    Ok((consumed, Some(H1ResponseEvent::End)))
                }
                Ok((consumed, Some(BodyEvent::Part(part)))) => {
                    Ok((consumed, Some(H1ResponseEvent::Body(part))))
                }
                Ok((consumed, None)) => Ok((consumed, None)),
                Err(error) => Err(error),
            },
            ResponseParserState::Failed(error) => Err(*error),
        };
        if let Err(error) = step {
            self.state = ResponseParserState::Failed(error);
        }
        step
    }

    /// The connection has ended: `End` where that ends a response, nothing where
    /// none was under way.
    ///
    /// # Errors
    /// [`ParseError::Truncated`] within a response.
    pub fn finish(&mut self) -> Result<Option<H1ResponseEvent<'static>>, ParseError> {
        match &self.state {
            ResponseParserState::Head if self.head.is_idle() => Ok(None),
            ResponseParserState::Body(Body::UntilClose | Body::Length(0)) => {
                self.state = ResponseParserState::Head;
                Ok(Some(H1ResponseEvent::End))
            }
            ResponseParserState::Head | ResponseParserState::Body(_) => {
                self.state = ResponseParserState::Failed(ParseError::Truncated);
                Err(ParseError::Truncated)
            }
            ResponseParserState::Failed(error) => Err(*error),
        }
    }

    /// Returns true between responses.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        matches!(self.state, ResponseParserState::Head) && self.head.is_idle()
    }

    fn advance_head<'i>(
        &mut self,
        input: &'i [u8],
        mut header: impl FnMut(&str, &[u8]),
    ) -> Result<(usize, Option<H1ResponseEvent<'i>>), ParseError> {
        if let Some(first) = input.first().filter(|_| !self.has_begun) {
            self.has_begun = true;
            if let Some(protocol) = other_protocol(*first) {
                return Err(ParseError::OtherProtocol { protocol });
            }
        }
        let mut consumed = 0;
        loop {
            let (taken, bytes) = self.head.take(&input[consumed..])?;
            consumed += taken;
            let Some(bytes) = bytes else {
                return Ok((consumed, None));
            };
            if let Some((head, body)) = parse_head(bytes, self.answers_head, &mut header)? {
                (self.answers_head, self.interim) = (false, 0);
                self.state = ResponseParserState::Body(body);
                return Ok((consumed, Some(H1ResponseEvent::Head(head))));
            }
            self.interim += 1;
            if self.interim > INTERIM_MAX {
                return Err(ParseError::InterimFlood);
            }
        }
    }
}

/// Returns the protocol in which a message begins with this byte, if it is not HTTP/1.1.
const fn other_protocol(first: u8) -> Option<&'static str> {
    match first {
        // An alert record of TLS.
        0x15 => Some("TLS"),
        // The length of a short frame.
        0 => Some("HTTP/2"),
        _ => None,
    }
}

/// A whole head and the body that it announces; none for an interim response.
fn parse_head(
    bytes: &[u8],
    answers_head: bool,
    read: &mut impl FnMut(&str, &[u8]),
) -> Result<Option<(H1ResponseHead, Body)>, ParseError> {
    // Not cleared first: that would cost more than parsing.
    let mut room = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    let parsed = config.parse_response_with_uninit_headers(&mut response, bytes, &mut room);
    whole(parsed, bytes)?;
    let malformed = ParseError::Malformed { part: "status" };
    let status = response.code.ok_or(malformed)?;
    match status {
        101 => return Err(ParseError::Upgrade),
        100..200 => return Ok(None),
        200.. => {}
        _ => return Err(malformed),
    }
    let mut framing = FramingHeaders::default();
    let mut header_bytes = STATUS_BYTES;
    for header in response.headers.iter() {
        framing.read(header.name, header.value)?;
        read(header.name, header.value);
        header_bytes += header.name.len() + header.value.len();
    }
    framing.check(response.version)?;
    let body = match (status, framing.content_length) {
        (204 | 304, _) => Body::Length(0),
        _ if answers_head => Body::Length(0),
        _ if framing.chunked => Body::Chunked(Chunks::new()),
        (_, Some(length)) => Body::Length(length),
        (_, None) => Body::UntilClose,
    };
    let head = H1ResponseHead {
        status,
        keep_alive: framing.keeps_alive(response.version) && !matches!(body, Body::UntilClose),
        content_length: framing.content_length,
        header_bytes,
    };
    Ok(Some((head, body)))
}
