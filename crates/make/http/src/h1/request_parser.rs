//! Requests from clients.

use std::mem::MaybeUninit;

use super::ParseError;
use super::body::{Body, BodyEvent, Chunks};
use super::head::{FramingHeaders, HEADERS_MAX, HeadBuffer, whole};

/// Reads the requests of one connection, one after another.
///
/// [`Self::advance`] is called with what was read until it gives no event, and
/// [`Self::finish`] once when the connection has ended.
#[derive(Debug, Default)]
pub struct RequestParser {
    head: HeadBuffer,
    state: RequestParserState,
    /// Heads that were read whole.
    heads: u64,
}

#[derive(Debug, Default)]
enum RequestParserState {
    #[default]
    Head,
    Body(Body),
    Failed(ParseError),
}

/// The next event of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum H1RequestEvent<'a> {
    /// A request begins.
    Head(H1RequestHead<'a>),
    /// The next part of its body, without framing; never empty.
    Body(&'a [u8]),
    /// It is whole and can be answered; the next may follow.
    End,
}

/// Parts of a request's head that matter for framing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct H1RequestHead<'a> {
    /// The method, such as `POST`; case matters.
    pub method: &'a str,
    /// The target as it was sent: path and query, as a rule.
    pub target: &'a str,
    /// The body's length in bytes, where the head says it; neither this nor
    /// `chunked` means no body.
    pub content_length: Option<u64>,
    /// True if the body comes in chunks.
    pub chunked: bool,
    /// True if the client waits for [`CONTINUE`](super::CONTINUE) before it sends the body.
    pub expect_continue: bool,
    /// `Content-Type`, as it was sent.
    pub content_type: Option<&'a str>,
    /// `Content-Encoding`, as it was sent; the body is passed on encoded.
    pub content_encoding: Option<&'a str>,
    /// True if another request may follow on this connection.
    pub keep_alive: bool,
    /// The whole head, checked to follow the grammar.
    bytes: &'a [u8],
}

impl RequestParser {
    /// At the start of a connection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of bytes taken from `input`, and the event that they completed.
    /// Without an event all of `input` was taken; `End` may take none.
    ///
    /// # Errors
    /// [`ParseError`] where the request cannot be framed, and ever after: answer
    /// 400 and close.
    pub fn advance<'a>(
        &'a mut self,
        input: &'a [u8],
    ) -> Result<(usize, Option<H1RequestEvent<'a>>), ParseError> {
        let step = match &mut self.state {
            RequestParserState::Head => {
                advance_head(&mut self.head, input).map(|(consumed, parsed)| {
                    let event = parsed.map(|(head, body)| {
                        self.heads += 1;
                        self.state = RequestParserState::Body(body);
                        H1RequestEvent::Head(head)
                    });
                    (consumed, event)
                })
            }
            RequestParserState::Body(body) => match body.advance(input) {
                Ok((consumed, Some(BodyEvent::End))) => {
                    self.state = RequestParserState::Head;
                    Ok((consumed, Some(H1RequestEvent::End)))
                }
                Ok((consumed, Some(BodyEvent::Part(part)))) => {
                    Ok((consumed, Some(H1RequestEvent::Body(part))))
                }
                Ok((consumed, None)) => Ok((consumed, None)),
                Err(error) => Err(error),
            },
            RequestParserState::Failed(error) => Err(*error),
        };
        if let Err(error) = &step {
            self.state = RequestParserState::Failed(*error);
        }
        step
    }

    /// The connection has ended.
    ///
    /// # Errors
    /// [`ParseError::Truncated`] within a request.
    pub fn finish(&mut self) -> Result<(), ParseError> {
        match self.state {
            RequestParserState::Failed(error) => Err(error),
            _ if self.is_idle() => Ok(()),
            RequestParserState::Head | RequestParserState::Body(_) => {
                self.state = RequestParserState::Failed(ParseError::Truncated);
                Err(ParseError::Truncated)
            }
        }
    }

    /// Returns the number of heads before one that has begun and is not whole; `None` where no
    /// head is in progress.
    #[must_use]
    pub fn open_head(&self) -> Option<u64> {
        let is_open = matches!(self.state, RequestParserState::Head) && !self.head.is_idle();
        is_open.then_some(self.heads)
    }

    /// Returns true between requests.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        matches!(self.state, RequestParserState::Head) && self.head.is_idle()
    }
}

impl<'a> H1RequestHead<'a> {
    /// The value of the first header called `name`, in any case. Looked up in
    /// the head each time: not for what every request needs.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.headers()
            .find(|(known, _)| known.eq_ignore_ascii_case(name.as_bytes()))
            .map(|(_, value)| value)
    }

    /// Names and values of all headers, in order, without surrounding space.
    pub fn headers(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        self.bytes
            .split(|byte| *byte == b'\n')
            .map(<[u8]>::trim_ascii)
            .filter(|line| !line.is_empty())
            // The request line.
            .skip(1)
            .filter_map(|line| {
                let colon = line.iter().position(|byte| *byte == b':')?;
                Some((&line[..colon], line[colon + 1..].trim_ascii()))
            })
    }
}

fn advance_head<'a>(
    head: &'a mut HeadBuffer,
    input: &'a [u8],
) -> Result<(usize, Option<(H1RequestHead<'a>, Body)>), ParseError> {
    let (consumed, bytes) = head.take(input)?;
    let parsed = bytes.map(parse_head).transpose()?;
    Ok((consumed, parsed))
}

/// A whole head and the body that it announces.
fn parse_head(bytes: &[u8]) -> Result<(H1RequestHead<'_>, Body), ParseError> {
    // Not cleared first: that would cost more than parsing.
    let mut room = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut []);
    let config = httparse::ParserConfig::default();
    let parsed = config.parse_request_with_uninit_headers(&mut request, bytes, &mut room);
    whole(parsed, bytes)?;
    let malformed = ParseError::Malformed { part: "start line" };
    let mut head = H1RequestHead {
        method: request.method.ok_or(malformed)?,
        target: request.path.ok_or(malformed)?,
        content_length: None,
        chunked: false,
        expect_continue: false,
        content_type: None,
        content_encoding: None,
        keep_alive: false,
        bytes,
    };
    let mut framing = FramingHeaders::default();
    for header in request.headers.iter() {
        if !framing.read(header.name, header.value)? {
            read_header(&mut head, header.name, header.value)?;
        }
    }
    framing.check(request.version)?;
    head.content_length = framing.content_length;
    head.chunked = framing.chunked;
    // A client of HTTP/1.0 waits for the end of the connection unless the response says otherwise.
    head.keep_alive = request.version == Some(1) && framing.keeps_alive(request.version);
    let body = if framing.chunked {
        Body::Chunked(Chunks::new())
    } else {
        Body::Length(framing.content_length.unwrap_or(0))
    };
    Ok((head, body))
}

/// Takes in a header that has nothing to do with framing.
fn read_header<'a>(
    head: &mut H1RequestHead<'a>,
    name: &str,
    value: &'a [u8],
) -> Result<(), ParseError> {
    match name.len() {
        6 if name.eq_ignore_ascii_case("expect") => {
            head.expect_continue |= value.eq_ignore_ascii_case(b"100-continue");
        }
        12 if name.eq_ignore_ascii_case("content-type") => {
            set_text(&mut head.content_type, "content-type", value)?;
        }
        16 if name.eq_ignore_ascii_case("content-encoding") => {
            set_text(&mut head.content_encoding, "content-encoding", value)?;
        }
        _ => {}
    }
    Ok(())
}

fn set_text<'a>(
    slot: &mut Option<&'a str>,
    name: &'static str,
    value: &'a [u8],
) -> Result<(), ParseError> {
    let text = str::from_utf8(value).map_err(|_| ParseError::HeaderNotText { name })?;
    if slot.replace(text).is_some() {
        return Err(ParseError::HeaderRepeated { name });
    }
    Ok(())
}
