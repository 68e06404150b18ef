//! One question, one answer.

use stillwell_units::ByteSize;

use super::{H1ResponseEvent, HeadError, ParseError, RequestTemplate, ResponseParser};
use crate::Target;

/// Collects the answer to one request on a connection of its own: a scrape or a
/// readiness probe. Not for the hot path.
#[derive(Debug)]
pub struct OneShot {
    parser: ResponseParser,
    status: u16,
    body: Vec<u8>,
    body_max: ByteSize,
}

/// A whole answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Response {
    /// The status code, such as 200.
    pub status: u16,
    /// The body without framing.
    pub body: Vec<u8>,
}

/// Reasons for which there is no answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum OneShotError {
    /// The bytes are no response, or only a part of one.
    #[error("failed to read the response")]
    Parse(#[source] ParseError),
    /// The connection ended before any response.
    #[error("the connection ended without a response")]
    NoResponse,
    /// The body is longer than was allowed.
    #[error("the body exceeds {body_max}")]
    BodyTooLarge {
        /// The limit.
        body_max: ByteSize,
    },
}

impl OneShotError {
    /// Returns true if the connection ended too early, false for wrong bytes.
    #[must_use]
    pub const fn is_end_of_connection(&self) -> bool {
        matches!(self, Self::NoResponse | Self::Parse(ParseError::Truncated))
    }
}

impl OneShot {
    /// Collects a body of at most `body_max`.
    #[must_use]
    pub fn new(body_max: ByteSize) -> Self {
        Self {
            parser: ResponseParser::new(),
            status: 0,
            body: Vec::new(),
            body_max,
        }
    }

    /// Returns the bytes of a `GET` for `target` that requests an uncompressed answer and the
    /// end of the connection. `headers` are added, such as `accept`.
    ///
    /// # Errors
    /// [`HeadError`] where a header would not arrive as given.
    pub fn request(target: &Target, headers: &[(&str, &str)]) -> Result<Vec<u8>, HeadError> {
        let fixed = [
            ("user-agent", "stillwell"),
            ("accept-encoding", "identity"),
            ("connection", "close"),
        ];
        let headers = [&fixed, headers].concat();
        let authority = target.authority();
        let template = RequestTemplate::new("GET", target.path_and_query(), &authority, &headers)?;
        let mut bytes = Vec::new();
        template.write_head(0, &mut bytes);
        Ok(bytes)
    }

    /// Takes in what was read, and gives the answer once it is whole. What
    /// follows it is dropped.
    ///
    /// # Errors
    /// [`OneShotError`] where it is no response, or too long.
    pub fn push(&mut self, input: &[u8]) -> Result<Option<Response>, OneShotError> {
        let mut read = 0;
        loop {
            let step = self.parser.advance(&input[read..]);
            let (consumed, event) = step.map_err(OneShotError::Parse)?;
            read += consumed;
            match event {
                Some(H1ResponseEvent::Head(head)) => self.status = head.status,
                Some(H1ResponseEvent::Body(part)) => self.collect(part)?,
                Some(H1ResponseEvent::End) => return Ok(Some(self.response())),
                None => return Ok(None),
            }
        }
    }

    /// The connection has ended, before [`Self::push`] gave an answer.
    ///
    /// # Errors
    /// [`OneShotError`] unless that ends the answer.
    pub fn finish(mut self) -> Result<Response, OneShotError> {
        match self.parser.finish().map_err(OneShotError::Parse)? {
            Some(_) => Ok(self.response()),
            None => Err(OneShotError::NoResponse),
        }
    }

    fn collect(&mut self, part: &[u8]) -> Result<(), OneShotError> {
        if part.len() > self.body_max.as_usize().saturating_sub(self.body.len()) {
            let body_max = self.body_max;
            return Err(OneShotError::BodyTooLarge { body_max });
        }
        self.body.extend_from_slice(part);
        Ok(())
    }

    fn response(&mut self) -> Response {
        Response {
            status: self.status,
            body: std::mem::take(&mut self.body),
        }
    }
}
