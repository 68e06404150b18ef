//! The side that answers.

use super::block::{BodyLength, H2ResponseBlock, TrailerBlock};
use super::connection::{Head, StreamEvent};
use super::error::{H2ConnectionError, H2ErrorCode, H2StreamFailure, StreamEnded};
use super::fields::Fields;
use super::frame::Frame;
use super::head::RequestHead;
use super::side::{Side, Step};
use super::streams::Stream;
use super::{Limits, PREFACE};

/// One connection, as the server sees it.
///
/// Malformed requests, and those above the limit, are refused here: no event follows.
#[derive(Debug)]
pub struct Server {
    /// Received bytes of the client's preface.
    preface_bytes: usize,
    side: Side,
    requests: Requests,
}

/// Requests that do not reach the program.
#[derive(Debug, Default)]
struct Requests {
    /// Number of malformed requests since it was taken.
    malformed: u64,
    /// True if all are refused from now on.
    is_closing: bool,
}

/// The next event on a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ServerEvent<'a> {
    /// A request begins. It can be answered from here on.
    Head {
        /// The request.
        stream: Stream,
        /// Parts of its head.
        head: RequestHead<'a>,
    },
    /// The next part of its body; never empty.
    Body {
        /// The request.
        stream: Stream,
        /// As it arrived.
        bytes: &'a [u8],
    },
    /// A request is whole.
    End {
        /// The request.
        stream: Stream,
        /// The fields after the body, where there are any.
        trailers: Option<Fields<'a>>,
    },
    /// A request is over before it was whole, or before all of the answer was
    /// sent: nothing more comes and nothing more can be sent.
    Failed {
        /// The request.
        stream: Stream,
        /// Why.
        cause: H2StreamFailure,
    },
    /// More of an answer's body can be sent than could when it was tried last.
    Room {
        /// The request.
        stream: Stream,
    },
}

impl Server {
    /// At the start of a connection; what it says first is in the output.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let limits = limits.clamped();
        let mut side = Side::new(&limits, true);
        let mut settings = limits.settings();
        settings.concurrent_streams_max = Some(limits.concurrent_streams_max);
        settings.connect_protocol = limits.connect_protocol.then_some(true);
        side.connection.write_settings(&settings);
        Self {
            preface_bytes: 0,
            side,
            requests: Requests::default(),
        }
    }

    /// Answers with a head, and with nothing else unless `body` says that one
    /// follows.
    ///
    /// # Errors
    /// [`StreamEnded`] where the request is over or was answered.
    pub fn respond(
        &mut self,
        stream: Stream,
        response: &H2ResponseBlock,
        body: BodyLength,
    ) -> Result<(), StreamEnded> {
        self.respond_with(stream, response, &[], body)
    }

    /// As [`Self::respond`], with headers of this one time. Their names are in
    /// lower case and neither they nor their values are checked.
    ///
    /// # Errors
    /// As [`Self::respond`].
    pub fn respond_with(
        &mut self,
        stream: Stream,
        response: &H2ResponseBlock,
        extra: &[(&str, &[u8])],
        body: BodyLength,
    ) -> Result<(), StreamEnded> {
        let head = Head {
            block: response.block(),
            extra,
            body,
        };
        self.side.connection.send_head(stream, &head)
    }

    /// Lets a client that waits with `expect: 100-continue` send its body.
    ///
    /// # Errors
    /// [`StreamEnded`] where the request is over or was answered.
    pub fn send_continue(&mut self, stream: Stream) -> Result<(), StreamEnded> {
        self.side.connection.send_interim(stream, b"100")
    }

    /// Sends as much of `bytes`, the next part of an answer's body, as there is
    /// room for, and says how much that was. With the whole of it, `is_last`
    /// ends the answer; where it is not the whole, [`ServerEvent::Room`] will say
    /// when to go on with the rest.
    ///
    /// # Errors
    /// [`StreamEnded`] where the request is over, the answer was all sent or its
    /// head was not.
    pub fn send_body(
        &mut self,
        stream: Stream,
        bytes: &[u8],
        is_last: bool,
    ) -> Result<usize, StreamEnded> {
        self.side.connection.send_data(stream, bytes, is_last)
    }

    /// Ends an answer with trailers, once all of its body was taken.
    ///
    /// # Errors
    /// As [`Self::send_body`].
    pub fn send_trailers(
        &mut self,
        stream: Stream,
        trailers: &TrailerBlock,
    ) -> Result<(), StreamEnded> {
        self.side.connection.send_trailers(stream, trailers.block())
    }

    /// Lets the client send no more of this request's body than its window still
    /// permits, until [`Self::release`]. Nothing happens if it is over.
    pub fn hold(&mut self, stream: Stream) {
        self.side.connection.hold(stream);
    }

    /// Lets it send more again.
    pub fn release(&mut self, stream: Stream) {
        self.side.connection.release(stream);
    }

    /// Gives a request up; no event follows. Nothing happens if it is over.
    pub fn reset(&mut self, stream: Stream, code: H2ErrorCode) {
        self.side.reset(stream, code);
    }

    /// Takes no more requests. Those under way go on; the connection is to be
    /// closed after the last.
    pub fn close(&mut self) {
        if !self.requests.is_closing {
            self.requests.is_closing = true;
            self.side.connection.write_go_away(H2ErrorCode::NO_ERROR);
        }
    }

    /// Returns the number of bytes taken from `input`, and the event that they completed.
    /// Without an event all of `input` was taken; events may take none.
    ///
    /// # Errors
    /// [`H2ConnectionError`] once all requests under way have failed by it, and
    /// ever after: write the output and close.
    pub fn advance<'a>(
        &'a mut self,
        input: &'a [u8],
    ) -> Result<(usize, Option<ServerEvent<'a>>), H2ConnectionError> {
        let (preface_bytes, requests) = (&mut self.preface_bytes, &mut self.requests);
        let step = |side: &mut Side, input| {
            if *preface_bytes < PREFACE.len() {
                read_preface(preface_bytes, input)
            } else {
                requests.step(side, input)
            }
        };
        let (taken, note) = self.side.advance(input, step)?;
        Ok((taken, note.map(|note| self.event(note))))
    }

    /// The connection has ended. To be called until it gives no event.
    ///
    /// # Errors
    /// [`H2ConnectionError`] where that was in the middle, or it had failed
    /// before, once all requests under way have failed by it.
    pub fn finish(&mut self) -> Result<Option<ServerEvent<'_>>, H2ConnectionError> {
        let in_preface = (1..PREFACE.len()).contains(&self.preface_bytes);
        let note = self.side.finish(in_preface)?;
        Ok(note.map(|note| self.event(note)))
    }

    /// Returns the bytes to write to the socket.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        self.side.connection.output.pending()
    }

    /// So many bytes of the output were written.
    pub fn sent(&mut self, bytes: usize) {
        self.side.connection.sent(bytes);
    }

    /// Number of requests under way.
    #[must_use]
    pub const fn open_streams(&self) -> usize {
        self.side.connection.streams.len()
    }

    /// Returns the number of requests that were refused since the last call because they were
    /// malformed or their headers were above the limit. Those above the number that may be
    /// open at once are not among them.
    pub fn take_malformed_requests(&mut self) -> u64 {
        std::mem::take(&mut self.requests.malformed)
    }

    fn event<'a>(&'a self, note: StreamEvent<'a>) -> ServerEvent<'a> {
        match note {
            StreamEvent::Head(stream) => ServerEvent::Head {
                stream,
                head: self.side.sections.last.request_head(),
            },
            StreamEvent::Body(stream, bytes) => ServerEvent::Body { stream, bytes },
            StreamEvent::End {
                stream,
                has_trailers,
            } => ServerEvent::End {
                stream,
                trailers: has_trailers.then(|| self.side.sections.last.fields()),
            },
            StreamEvent::Failed(stream, cause) => ServerEvent::Failed { stream, cause },
            StreamEvent::Room(stream) => ServerEvent::Room { stream },
        }
    }
}

/// Takes what there is of the preface.
fn read_preface<'i>(
    preface_bytes: &mut usize,
    input: &[u8],
) -> Result<(usize, Step<'i>), H2ConnectionError> {
    let expected = &PREFACE[*preface_bytes..];
    let taken = expected.len().min(input.len());
    if input[..taken] != expected[..taken] {
        return Err(H2ConnectionError::Preface);
    }
    *preface_bytes += taken;
    if taken < expected.len() {
        return Ok((taken, Step::Starved));
    }
    Ok((taken, Step::Next))
}

impl Requests {
    /// Takes the next frame of `input`.
    fn step<'i>(
        &mut self,
        side: &mut Side,
        input: &'i [u8],
    ) -> Result<(usize, Step<'i>), H2ConnectionError> {
        let (taken, frame) = side.read_frame(input)?;
        let Some(frame) = frame else {
            return Ok((taken, Step::Starved));
        };
        let note = match frame {
            Frame::Headers { stream, end_stream } => {
                self.receive_headers(side, stream, end_stream)?
            }
            Frame::PushPromise { .. } => {
                return Err(H2ConnectionError::protocol("a push promise by a client"));
            }
            // Its requests are answered as before.
            Frame::GoAway { .. } => {
                side.connection.flood.nuisance("GOAWAY frames")?;
                None
            }
            frame => side.receive(frame)?,
        };
        Ok((taken, note.map_or(Step::Next, Step::Note)))
    }

    fn receive_headers(
        &mut self,
        side: &mut Side,
        number: u32,
        end_stream: bool,
    ) -> Result<Option<StreamEvent<'static>>, H2ConnectionError> {
        let decoded = side.sections.decode(side.frames.block());
        decoded.map_err(H2ConnectionError::Compression)?;
        let connection = &mut side.connection;
        if let Some(stream) = connection.streams.find(number) {
            if side.sections.last.is_overflowed() {
                return connection.headers_too_large(stream);
            }
            let fields = side.sections.last.fields();
            return connection.receive_trailers(stream, fields, end_stream);
        }
        if number.is_multiple_of(2) {
            return Err(H2ConnectionError::protocol("a request on an even stream"));
        }
        if number <= connection.highest_stream {
            connection.pass_over(number)?;
            connection.count_late()?;
            return Ok(None);
        }
        let open_max = connection.limits.concurrent_streams_max as usize;
        if self.is_closing || connection.streams.len() >= open_max {
            return self.refuse(side, number, H2ErrorCode::REFUSED_STREAM);
        }
        if side.sections.last.is_overflowed() {
            return self.refuse(side, number, H2ErrorCode::ENHANCE_YOUR_CALM);
        }
        let Ok(parts) = side.sections.last.request() else {
            return self.refuse(side, number, H2ErrorCode::PROTOCOL_ERROR);
        };
        if end_stream && !matches!(parts.content_length, None | Some(0)) {
            return self.refuse(side, number, H2ErrorCode::PROTOCOL_ERROR);
        }
        let stream = connection.new_stream(number);
        connection.receive_head(stream, parts.content_length, false, end_stream)
    }

    /// Refuses a request before its first event.
    fn refuse(
        &mut self,
        side: &mut Side,
        number: u32,
        code: H2ErrorCode,
    ) -> Result<Option<StreamEvent<'static>>, H2ConnectionError> {
        self.malformed += u64::from(code != H2ErrorCode::REFUSED_STREAM);
        side.connection.highest_stream = number;
        side.connection.write_reset(number, code);
        side.connection.flood.reset()?;
        Ok(None)
    }
}

#[cfg(test)]
impl Server {
    /// The open stream of that number.
    pub(super) fn connection_stream(&self, number: u32) -> Stream {
        self.side.connection.streams.find(number).unwrap()
    }
}
