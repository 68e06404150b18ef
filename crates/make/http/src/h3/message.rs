//! Messages: the content of a request's stream, either way.

use super::error::{ErrorCode, MessageError, StreamFailure};
use super::frame::{FrameHead, Partial, kind};
use super::sections::Sections;
use crate::h2::head::check_trailers;
use crate::h2::{Fields, RequestHead, ResponseHead};

/// Reads one message. [`Connection::read_request`] or [`Connection::read_response`] feeds it;
/// [`Self::finish`] ends its stream.
///
/// [`Connection::read_request`]: super::Connection::read_request
/// [`Connection::read_response`]: super::Connection::read_response
#[derive(Debug)]
pub struct MessageReader {
    side: Side,
    phase: Phase,
    partial: Partial,
    payload: Option<Payload>,
    /// A section that arrives in parts.
    section: Vec<u8>,
    /// Missing bytes of the body, if the head gave its length.
    body_left: Option<u64>,
}

/// The next event of a response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ResponseEvent<'a> {
    /// It begins. Interim ones are skipped.
    Head(ResponseHead<'a>),
    /// The next part of its body; never empty.
    Body(&'a [u8]),
    /// The fields after its body.
    Trailers(Fields<'a>),
}

/// The next event of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RequestEvent<'a> {
    /// It begins.
    Head(RequestHead<'a>),
    /// The next part of its body; never empty.
    Body(&'a [u8]),
    /// The fields after its body.
    Trailers(Fields<'a>),
}

/// The next event, without the content of sections.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Note<'i> {
    Head,
    Body(&'i [u8]),
    Trailers,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Side {
    Request,
    Response {
        is_bodiless: bool,
    },
    /// The answer to `CONNECT`.
    Led,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    BeforeHead,
    Body,
    AfterTrailers,
}

/// The frame that is being read, and what is left of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Payload {
    Data(u64),
    Section(u64),
    Skipped(u64),
}

impl MessageReader {
    /// For a request.
    #[must_use]
    pub const fn request() -> Self {
        Self::new(Side::Request)
    }

    /// For the answer to a request, which has no body where `is_head`.
    #[must_use]
    pub const fn response(is_head: bool) -> Self {
        Self::new(Side::Response {
            is_bodiless: is_head,
        })
    }

    /// For the answer to `CONNECT`: of one from 200 to 299 the bodies are what the
    /// other end says, however long its head says that they are (RFC 9110, 9.3.6).
    #[must_use]
    pub const fn led() -> Self {
        Self::new(Side::Led)
    }

    const fn new(side: Side) -> Self {
        Self {
            side,
            phase: Phase::BeforeHead,
            partial: Partial::EMPTY,
            payload: None,
            section: Vec::new(),
            body_left: None,
        }
    }

    /// The stream has ended in good order.
    ///
    /// # Errors
    /// [`MessageError`] where the message has not.
    pub fn finish(&self) -> Result<(), MessageError> {
        if self.payload.is_some() || !self.partial.is_empty() {
            return Err(MessageError::connection(
                ErrorCode::FRAME_ERROR,
                "a stream that ends within a frame",
            ));
        }
        if self.phase == Phase::BeforeHead {
            return Err(match self.side {
                Side::Request => StreamFailure::Incomplete,
                Side::Response { .. } | Side::Led => StreamFailure::Malformed {
                    what: "a response without a head",
                },
            }
            .into());
        }
        self.check_body(self.body_left.is_some_and(|left| left > 0))
    }

    /// Returns the number of bytes taken from `input`, and the note that they completed;
    /// without a note all of it was taken.
    pub(super) fn advance<'i>(
        &mut self,
        sections: &mut Sections,
        input: &'i [u8],
    ) -> Result<(usize, Option<Note<'i>>), MessageError> {
        let mut taken = 0;
        loop {
            let rest = &input[taken..];
            let Some(payload) = self.payload else {
                if rest.is_empty() {
                    return Ok((taken, None));
                }
                let (read, head) = self.partial.head(rest);
                taken += read;
                if let Some(head) = head {
                    self.payload = Some(self.begin(head, sections.bytes_max())?);
                }
                continue;
            };
            let (left, is_section) = match payload {
                Payload::Data(left) | Payload::Skipped(left) => (left, false),
                Payload::Section(left) => (left, true),
            };
            if rest.is_empty() && left > 0 {
                return Ok((taken, None));
            }
            let length = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
            let (part, left) = (&rest[..length], left - length as u64);
            taken += length;
            self.payload = match payload {
                _ if left == 0 => None,
                Payload::Data(_) => Some(Payload::Data(left)),
                Payload::Skipped(_) => Some(Payload::Skipped(left)),
                Payload::Section(_) => Some(Payload::Section(left)),
            };
            let note = if is_section {
                self.take_section(sections, part, left == 0)?
            } else if matches!(payload, Payload::Data(_)) && !part.is_empty() {
                Some(Note::Body(part))
            } else {
                None
            };
            if note.is_some() {
                return Ok((taken, note));
            }
        }
    }

    /// A frame begins.
    fn begin(
        &mut self,
        head: FrameHead,
        section_bytes_max: usize,
    ) -> Result<Payload, MessageError> {
        let unexpected = |what| MessageError::connection(ErrorCode::FRAME_UNEXPECTED, what);
        match head.kind {
            kind::DATA => {
                if self.phase != Phase::Body {
                    return Err(unexpected("a body before its head or after its trailers"));
                }
                if let Some(left) = &mut self.body_left {
                    let after = left.checked_sub(head.length);
                    *left = after.unwrap_or(0);
                    self.check_body(after.is_none())?;
                }
                Ok(Payload::Data(head.length))
            }
            kind::HEADERS => {
                if self.phase == Phase::AfterTrailers {
                    return Err(unexpected("headers after trailers"));
                }
                if head.length > section_bytes_max as u64 {
                    return Err(StreamFailure::HeadersTooLarge.into());
                }
                Ok(Payload::Section(head.length))
            }
            kind::PUSH_PROMISE if self.side != Side::Request => Err(MessageError::connection(
                ErrorCode::ID_ERROR,
                "a promise, although none was allowed",
            )),
            kind::SETTINGS
            | kind::GOAWAY
            | kind::CANCEL_PUSH
            | kind::MAX_PUSH_ID
            | kind::PUSH_PROMISE => Err(unexpected("a frame of the connection in a request")),
            other if kind::OF_HTTP2.contains(&other) => Err(unexpected("a frame of HTTP/2")),
            _ => Ok(Payload::Skipped(head.length)),
        }
    }

    fn take_section<'i>(
        &mut self,
        sections: &mut Sections,
        part: &[u8],
        is_last: bool,
    ) -> Result<Option<Note<'i>>, MessageError> {
        if !is_last {
            self.section.extend_from_slice(part);
            return Ok(None);
        }
        if self.section.is_empty() {
            sections.decode(part)?;
        } else {
            self.section.extend_from_slice(part);
            sections.decode(&self.section)?;
            self.section = Vec::new();
        }
        let malformed = |what| StreamFailure::Malformed { what };
        if self.phase == Phase::Body {
            check_trailers(sections.last.fields()).map_err(malformed)?;
            self.phase = Phase::AfterTrailers;
            return Ok(Some(Note::Trailers));
        }
        match self.side {
            Side::Request => {
                self.body_left = sections.last.request().map_err(malformed)?.content_length;
            }
            Side::Response { .. } | Side::Led => {
                let parts = sections.last.response().map_err(malformed)?;
                if parts.status < 200 {
                    return Ok(None);
                }
                self.body_left = match self.side {
                    Side::Led if parts.status < 300 => None,
                    Side::Response { is_bodiless: true } => Some(0),
                    _ if matches!(parts.status, 204 | 304) => Some(0),
                    _ => parts.content_length,
                };
            }
        }
        self.phase = Phase::Body;
        Ok(Some(Note::Head))
    }

    fn check_body(&self, is_wrong: bool) -> Result<(), MessageError> {
        let what = "a body that is not as long as its head says";
        match is_wrong {
            true => Err(StreamFailure::Malformed { what }.into()),
            false => Ok(()),
        }
    }
}
