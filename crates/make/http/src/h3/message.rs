//! Messages: the content of a request's stream, either way.

use super::error::{H3ErrorCode, H3MessageError, H3StreamFailure};
use super::frame::{H3FrameHead, Partial, kind};
use super::sections::FieldSections;
use crate::h2::head::check_trailers;
use crate::h2::{Fields, RequestHead, ResponseHead};
use stillwell_units::as_usize;

/// Reads one message. [`H3Connection::read_request`] or [`H3Connection::read_response`] feeds it;
/// [`Self::finish`] ends its stream.
///
/// [`H3Connection::read_request`]: super::H3Connection::read_request
/// [`H3Connection::read_response`]: super::H3Connection::read_response
#[derive(Debug)]
pub struct H3MessageReader {
    side: MessageKind,
    phase: Phase,
    partial: Partial,
    payload: Option<Payload>,
    /// A section that arrives in parts.
    section: Vec<u8>,
    /// Missing bytes of the body, if the head gave its length.
    body_left: Option<u64>,
    /// Interim responses before the head.
    interim: u8,
}

/// The next event of a response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum H3ResponseEvent<'a> {
    /// It begins. Interim ones are skipped.
    Head(ResponseHead<'a>),
    /// The next part of its body; never empty.
    Body(&'a [u8]),
    /// The fields after its body.
    Trailers(Fields<'a>),
}

/// The next event of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum H3RequestEvent<'a> {
    /// It begins.
    Head(RequestHead<'a>),
    /// The next part of its body; never empty.
    Body(&'a [u8]),
    /// The fields after its body.
    Trailers(Fields<'a>),
}

/// The next event, without the content of sections.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum MessageEvent<'i> {
    Head,
    Body(&'i [u8]),
    Trailers,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum MessageKind {
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

impl H3MessageReader {
    /// For a request.
    #[must_use]
    pub const fn request() -> Self {
        Self::new(MessageKind::Request)
    }

    /// For the answer to a request, which has no body where `is_head`.
    #[must_use]
    pub const fn response(is_head: bool) -> Self {
        Self::new(MessageKind::Response {
            is_bodiless: is_head,
        })
    }

    /// For the answer to `CONNECT`: of one from 200 to 299 the bodies are what the
    /// other end says, however long its head says that they are (RFC 9110, 9.3.6).
    #[must_use]
    pub const fn led() -> Self {
        Self::new(MessageKind::Led)
    }

    const fn new(side: MessageKind) -> Self {
        Self {
            side,
            phase: Phase::BeforeHead,
            partial: Partial::EMPTY,
            payload: None,
            section: Vec::new(),
            body_left: None,
            interim: 0,
        }
    }

    /// The stream has ended in good order.
    ///
    /// # Errors
    /// [`H3MessageError`] where the message has not.
    pub fn finish(&self) -> Result<(), H3MessageError> {
        if self.payload.is_some() || !self.partial.is_empty() {
            return Err(H3MessageError::connection(
                H3ErrorCode::FRAME_ERROR,
                "a stream that ends within a frame",
            ));
        }
        if self.phase == Phase::BeforeHead {
            return Err(match self.side {
                MessageKind::Request => H3StreamFailure::Incomplete,
                MessageKind::Response { .. } | MessageKind::Led => H3StreamFailure::Malformed {
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
        sections: &mut FieldSections,
        input: &'i [u8],
    ) -> Result<(usize, Option<MessageEvent<'i>>), H3MessageError> {
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
            let length = as_usize(left).min(rest.len());
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
                Some(MessageEvent::Body(part))
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
        head: H3FrameHead,
        section_bytes_max: usize,
    ) -> Result<Payload, H3MessageError> {
        let unexpected = |what| H3MessageError::connection(H3ErrorCode::FRAME_UNEXPECTED, what);
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
                    return Err(H3StreamFailure::HeadersTooLarge.into());
                }
                Ok(Payload::Section(head.length))
            }
            kind::PUSH_PROMISE if self.side != MessageKind::Request => {
                Err(H3MessageError::connection(
                    H3ErrorCode::ID_ERROR,
                    "a push promise, although push is not allowed",
                ))
            }
            kind::SETTINGS
            | kind::GOAWAY
            | kind::CANCEL_PUSH
            | kind::MAX_PUSH_ID
            | kind::PUSH_PROMISE => Err(unexpected("a connection frame on a request stream")),
            other if kind::OF_HTTP2.contains(&other) => Err(unexpected("a frame of HTTP/2")),
            _ => Ok(Payload::Skipped(head.length)),
        }
    }

    fn take_section<'i>(
        &mut self,
        sections: &mut FieldSections,
        part: &[u8],
        is_last: bool,
    ) -> Result<Option<MessageEvent<'i>>, H3MessageError> {
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
        let malformed = |what| H3StreamFailure::Malformed { what };
        if self.phase == Phase::Body {
            check_trailers(sections.last.fields()).map_err(malformed)?;
            self.phase = Phase::AfterTrailers;
            return Ok(Some(MessageEvent::Trailers));
        }
        match self.side {
            MessageKind::Request => {
                self.body_left = sections.last.request().map_err(malformed)?.content_length;
            }
            MessageKind::Response { .. } | MessageKind::Led => {
                let parts = sections.last.response().map_err(malformed)?;
                let counted = parts.count_interim(&mut self.interim);
                if counted.map_err(malformed)? {
                    return Ok(None);
                }
                self.body_left = match self.side {
                    MessageKind::Led if parts.status < 300 => None,
                    MessageKind::Response { is_bodiless: true } => Some(0),
                    _ if matches!(parts.status, 204 | 304) => Some(0),
                    _ => parts.content_length,
                };
            }
        }
        self.phase = Phase::Body;
        Ok(Some(MessageEvent::Head))
    }

    fn check_body(&self, is_wrong: bool) -> Result<(), H3MessageError> {
        let what = "a body whose length differs from its content-length";
        match is_wrong {
            true => Err(H3StreamFailure::Malformed { what }.into()),
            false => Ok(()),
        }
    }
}
