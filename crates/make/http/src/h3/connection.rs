//! One side of a connection.

use super::control::{Compression, Control, Instructions, opening};
use super::error::{H3ConnectionError, H3ErrorCode, H3MessageError};
use super::frame::Partial;
use super::message::{H3MessageReader, H3RequestEvent, H3ResponseEvent, MessageEvent};
use super::sections::FieldSections;

/// State of a connection, beyond its requests or answers.
#[derive(Debug)]
pub struct H3Connection {
    is_server: bool,
    sections: FieldSections,
    control: Control,
    has: Has,
}

/// Streams that the peer has opened; each at most once.
#[derive(Debug, Default)]
struct Has {
    control: bool,
    encoder: bool,
    decoder: bool,
}

/// A stream of one direction that the peer has opened.
#[derive(Debug, Default)]
pub struct UniStream {
    kind: UniKind,
}

#[derive(Debug)]
enum UniKind {
    /// It has not said.
    New(Partial),
    Control,
    Compression(Instructions),
    /// Of a kind that is not known.
    Unwanted,
}

impl Default for UniKind {
    fn default() -> Self {
        Self::New(Partial::EMPTY)
    }
}

impl H3Connection {
    /// A client, which takes heads of up to `section_bytes_max`.
    #[must_use]
    pub fn client(section_bytes_max: usize) -> Self {
        Self::new(section_bytes_max, false)
    }

    /// The side that answers, and takes heads of up to `section_bytes_max`.
    #[must_use]
    pub fn server(section_bytes_max: usize) -> Self {
        Self::new(section_bytes_max, true)
    }

    fn new(section_bytes_max: usize, is_server: bool) -> Self {
        Self {
            is_server,
            sections: FieldSections::new(section_bytes_max),
            control: Control::default(),
            has: Has::default(),
        }
    }

    /// Returns the first bytes to send, on a stream of one direction that stays open.
    #[must_use]
    pub fn opening(&self) -> Vec<u8> {
        opening(self.sections.bytes_max())
    }

    /// The peer takes no request from this stream number on, where it has said so;
    /// a client that says so means promises.
    #[must_use]
    pub const fn going_away(&self) -> Option<u64> {
        self.control.going_away
    }

    /// Takes the next part of a stream of one direction. Returns true if it is wanted: the
    /// content of other streams need not be read.
    ///
    /// # Errors
    /// [`H3ConnectionError`], by whose code the connection is to be closed.
    pub fn read_uni(
        &mut self,
        stream: &mut UniStream,
        mut input: &[u8],
    ) -> Result<bool, H3ConnectionError> {
        if let UniKind::New(partial) = &mut stream.kind {
            let (taken, kind) = partial.integer(input);
            let Some(kind) = kind else {
                return Ok(true);
            };
            input = &input[taken..];
            stream.kind = self.open(kind)?;
        }
        match &mut stream.kind {
            UniKind::Control => self.control.take(input, self.is_server)?,
            UniKind::Compression(instructions) => instructions.take(input)?,
            UniKind::New(_) => {}
            UniKind::Unwanted => return Ok(false),
        }
        Ok(true)
    }

    /// A stream of one direction has ended, or was reset.
    ///
    /// # Errors
    /// [`H3ConnectionError`] where it was to last.
    pub fn end_uni(&self, stream: &UniStream) -> Result<(), H3ConnectionError> {
        match stream.kind {
            UniKind::New(_) | UniKind::Unwanted => Ok(()),
            UniKind::Control | UniKind::Compression(_) => Err(H3ConnectionError::new(
                H3ErrorCode::CLOSED_CRITICAL_STREAM,
                "the end of a stream that must stay open",
            )),
        }
    }

    fn open(&mut self, kind: u64) -> Result<UniKind, H3ConnectionError> {
        let (has, opened) = match kind {
            0x0 => (&mut self.has.control, UniKind::Control),
            0x2 => {
                let instructions = Instructions::new(Compression::Encoder);
                (&mut self.has.encoder, UniKind::Compression(instructions))
            }
            0x3 => {
                let instructions = Instructions::new(Compression::Decoder);
                (&mut self.has.decoder, UniKind::Compression(instructions))
            }
            0x1 => {
                let code = if self.is_server {
                    H3ErrorCode::STREAM_CREATION_ERROR
                } else {
                    H3ErrorCode::ID_ERROR
                };
                let what = "a push promise, although push is not allowed";
                return Err(H3ConnectionError::new(code, what));
            }
            _ => return Ok(UniKind::Unwanted),
        };
        if std::mem::replace(has, true) {
            return Err(H3ConnectionError::new(
                H3ErrorCode::STREAM_CREATION_ERROR,
                "a second stream of a kind that is allowed once",
            ));
        }
        Ok(opened)
    }

    /// Returns the number of bytes taken from `input`, the next of a request's stream, and
    /// the event that they completed. Without an event all of it was taken.
    ///
    /// # Errors
    /// [`H3MessageError`]: the stream is to be given up, or the connection closed.
    pub fn read_request<'a>(
        &'a mut self,
        reader: &mut H3MessageReader,
        input: &'a [u8],
    ) -> Result<(usize, Option<H3RequestEvent<'a>>), H3MessageError> {
        let (taken, note) = reader.advance(&mut self.sections, input)?;
        let event = note.map(|note| match note {
            MessageEvent::Head => H3RequestEvent::Head(self.sections.last.request_head()),
            MessageEvent::Body(bytes) => H3RequestEvent::Body(bytes),
            MessageEvent::Trailers => H3RequestEvent::Trailers(self.sections.last.fields()),
        });
        Ok((taken, event))
    }

    /// As [`Self::read_request`], of an answer's stream.
    ///
    /// # Errors
    /// As [`Self::read_request`].
    pub fn read_response<'a>(
        &'a mut self,
        reader: &mut H3MessageReader,
        input: &'a [u8],
    ) -> Result<(usize, Option<H3ResponseEvent<'a>>), H3MessageError> {
        let (taken, note) = reader.advance(&mut self.sections, input)?;
        let event = note.map(|note| match note {
            MessageEvent::Head => H3ResponseEvent::Head(self.sections.last.response_head()),
            MessageEvent::Body(bytes) => H3ResponseEvent::Body(bytes),
            MessageEvent::Trailers => H3ResponseEvent::Trailers(self.sections.last.fields()),
        });
        Ok((taken, event))
    }
}
