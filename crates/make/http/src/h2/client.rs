//! Clients.

use super::block::{BodyLength, H2RequestBlock};
use super::connection::{Head, StreamEvent};
use super::error::{H2ConnectionError, H2ErrorCode, H2StreamFailure, StreamEnded};
use super::fields::Fields;
use super::frame::Frame;
use super::head::ResponseHead;
use super::side::{Side, Step};
use super::streams::Stream;
use super::{Limits, PREFACE};
use stillwell_units::as_usize;

/// The highest number that a stream can have.
const STREAM_MAX: u32 = (1 << 31) - 1;

/// Requests under way at once until the server's first settings say its limit. Servers are to
/// permit no fewer (RFC 9113, 6.5.2), and refuse those beyond their limit.
const STREAMS_BEFORE_SETTINGS: u32 = 100;

/// One connection, as the client sees it.
///
/// Every request ends in exactly one [`ClientEvent::End`] or
/// [`ClientEvent::Failed`], unless the caller ends it by [`Self::reset`].
#[derive(Debug)]
pub struct Client {
    side: Side,
    next_stream: u32,
    going_away: Option<H2ErrorCode>,
}

/// The next event on a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ClientEvent<'a> {
    /// A final response begins. Interim ones are skipped.
    Head {
        /// The request that it answers.
        stream: Stream,
        /// Parts of its head.
        head: ResponseHead<'a>,
    },
    /// The next part of a body; never empty.
    Body {
        /// The request that it answers.
        stream: Stream,
        /// As it arrived.
        bytes: &'a [u8],
    },
    /// A response is whole.
    End {
        /// The request that it answers.
        stream: Stream,
        /// The fields after the body, where there are any.
        trailers: Option<Fields<'a>>,
    },
    /// A request has no whole answer and will have none.
    Failed {
        /// The request.
        stream: Stream,
        /// Why.
        cause: H2StreamFailure,
    },
    /// More of a request's body can be sent than could when it was tried last.
    Room {
        /// The request.
        stream: Stream,
    },
}

/// Reasons for which a request was not sent on this connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum RequestRefused {
    /// As many are under way as either side allows.
    #[error("the connection has its maximum number of requests in flight")]
    Busy,
    /// The server takes no more requests on this connection.
    #[error("the server accepts no more requests on this connection: {code}")]
    GoingAway {
        /// The server's reason.
        code: H2ErrorCode,
    },
    /// The connection has had as many requests as it can have.
    #[error("the connection has used all its stream IDs")]
    Exhausted,
    /// The connection has failed.
    #[error("the connection has failed")]
    Failed,
}

impl Client {
    /// At the start of a connection; what it says first is in the output.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let limits = limits.clamped();
        let mut side = Side::new(&limits, false);
        side.connection.output.bytes().extend_from_slice(PREFACE);
        let mut settings = limits.settings();
        settings.push = Some(false);
        side.connection.write_settings(&settings);
        Self {
            side,
            next_stream: 1,
            going_away: None,
        }
    }

    /// Sends the head of a request, and with [`BodyLength::None`] all of it.
    ///
    /// # Errors
    /// [`RequestRefused`] where it cannot be sent on this connection (now).
    pub fn request(
        &mut self,
        request: &H2RequestBlock,
        body: BodyLength,
    ) -> Result<Stream, RequestRefused> {
        self.request_with(request, &[], body)
    }

    /// As [`Self::request`], with headers of this one time, such as one that
    /// traces it. Their names are in lower case and neither they nor their
    /// values are checked.
    ///
    /// # Errors
    /// As [`Self::request`].
    pub fn request_with(
        &mut self,
        request: &H2RequestBlock,
        extra: &[(&str, &[u8])],
        body: BodyLength,
    ) -> Result<Stream, RequestRefused> {
        self.check_request()?;
        let stream = self.side.connection.new_stream(self.next_stream);
        self.next_stream += 2;
        if let Some(state) = self.side.connection.streams.state(stream) {
            state.is_bodiless = request.is_head();
            state.is_connect = request.is_connect();
        }
        let head = Head {
            block: request.block(),
            extra,
            body,
        };
        let sent = self.side.connection.send_head(stream, &head);
        sent.map_err(|StreamEnded| RequestRefused::Failed)?;
        Ok(stream)
    }

    /// The slot of the stream that the next request gets.
    #[must_use]
    pub fn next_slot(&self) -> usize {
        self.side.connection.streams.next_slot()
    }

    /// Sends as much of `bytes`, the next part of a request's body, as there is
    /// room for, and says how much that was. With the whole of it, `is_last`
    /// ends the request; where it is not the whole, [`ClientEvent::Room`] will
    /// say when to go on with the rest.
    ///
    /// # Errors
    /// [`StreamEnded`] where the request is over or was all sent.
    pub fn send_body(
        &mut self,
        stream: Stream,
        bytes: &[u8],
        is_last: bool,
    ) -> Result<usize, StreamEnded> {
        self.side.connection.send_data(stream, bytes, is_last)
    }

    /// Gives a request up; no event follows. Nothing happens if it is over.
    pub fn reset(&mut self, stream: Stream, code: H2ErrorCode) {
        self.side.reset(stream, code);
    }

    /// Sends the server notice that no more requests come.
    pub fn close(&mut self) {
        self.side.connection.write_go_away(H2ErrorCode::NO_ERROR);
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
    ) -> Result<(usize, Option<ClientEvent<'a>>), H2ConnectionError> {
        let going_away = &mut self.going_away;
        let step = |side: &mut Side, input| step(side, going_away, input);
        let (taken, note) = self.side.advance(input, step)?;
        Ok((taken, note.map(|note| self.event(note))))
    }

    /// The connection has ended. To be called until it gives no event.
    ///
    /// # Errors
    /// [`H2ConnectionError`] where that was in the middle, or it had failed
    /// before, once all requests under way have failed by it.
    pub fn finish(&mut self) -> Result<Option<ClientEvent<'_>>, H2ConnectionError> {
        let note = self.side.finish(false)?;
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

    /// Number of requests that can be sent now.
    #[must_use]
    pub fn requests_available(&self) -> usize {
        if self.going_away.is_some() || self.side.connection.failure().is_some() {
            return 0;
        }
        self.concurrent_max().saturating_sub(self.open_streams())
    }

    /// Returns true if [`Self::advance`] has a [`ClientEvent::Room`] to give without input:
    /// enough of the output was sent.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.side.connection.has_room()
    }

    /// Number of requests under way.
    #[must_use]
    pub const fn open_streams(&self) -> usize {
        self.side.connection.streams.len()
    }

    /// Returns true once the server's settings have arrived.
    #[must_use]
    pub const fn is_ready(&self) -> bool {
        self.side.connection.peer.has_settings
    }

    /// Returns true if the server takes `CONNECT` with a `:protocol` (RFC 8441, 3), such as
    /// [`H2RequestBlock::connect_udp`]; `None` before its first settings. True stays true to
    /// the end.
    #[must_use]
    pub fn peer_connect_protocol(&self) -> Option<bool> {
        let peer = &self.side.connection.peer;
        peer.has_settings.then_some(peer.connect_protocol)
    }

    /// Returns the reason for which the server takes no more requests here, if it sent one:
    /// open another connection, and close this one after its last answer.
    #[must_use]
    pub const fn going_away(&self) -> Option<H2ErrorCode> {
        self.going_away
    }

    fn concurrent_max(&self) -> usize {
        let peer = &self.side.connection.peer;
        let peer_streams_max = match peer.has_settings {
            true => peer.concurrent_streams_max,
            false => STREAMS_BEFORE_SETTINGS,
        };
        let both = peer_streams_max.min(self.side.connection.limits.concurrent_streams_max);
        as_usize(both)
    }

    fn check_request(&self) -> Result<(), RequestRefused> {
        if self.side.connection.failure().is_some() {
            return Err(RequestRefused::Failed);
        }
        if let Some(code) = self.going_away {
            return Err(RequestRefused::GoingAway { code });
        }
        if self.next_stream > STREAM_MAX {
            return Err(RequestRefused::Exhausted);
        }
        if self.open_streams() >= self.concurrent_max() {
            return Err(RequestRefused::Busy);
        }
        Ok(())
    }

    fn event<'a>(&'a self, note: StreamEvent<'a>) -> ClientEvent<'a> {
        match note {
            StreamEvent::Head(stream) => ClientEvent::Head {
                stream,
                head: self.side.sections.last.response_head(),
            },
            StreamEvent::Body(stream, bytes) => ClientEvent::Body { stream, bytes },
            StreamEvent::End {
                stream,
                has_trailers,
            } => ClientEvent::End {
                stream,
                trailers: has_trailers.then(|| self.side.sections.last.fields()),
            },
            StreamEvent::Failed(stream, cause) => ClientEvent::Failed { stream, cause },
            StreamEvent::Room(stream) => ClientEvent::Room { stream },
        }
    }
}

/// Takes the next frame of `input`.
fn step<'i>(
    side: &mut Side,
    going_away: &mut Option<H2ErrorCode>,
    input: &'i [u8],
) -> Result<(usize, Step<'i>), H2ConnectionError> {
    let (taken, frame) = side.read_frame(input)?;
    let Some(frame) = frame else {
        return Ok((taken, Step::Starved));
    };
    let note = match frame {
        Frame::Headers { stream, end_stream } => receive_headers(side, stream, end_stream)?,
        Frame::PushPromise { promised, .. } => {
            refuse_promise(side, promised)?;
            None
        }
        Frame::GoAway { last_stream, code } => {
            side.connection.flood.nuisance("GOAWAY frames")?;
            *going_away = Some(code);
            let before = side.connection.refused_above;
            side.connection.refused_above = before.min(last_stream);
            None
        }
        frame => side.receive(frame)?,
    };
    Ok((taken, note.map_or(Step::Next, Step::Note)))
}

fn receive_headers(
    side: &mut Side,
    number: u32,
    end_stream: bool,
) -> Result<Option<StreamEvent<'static>>, H2ConnectionError> {
    let block = side.frames.block();
    let decoded = side.sections.decode(block);
    decoded.map_err(H2ConnectionError::Compression)?;
    let connection = &mut side.connection;
    let Some(stream) = connection.streams.find(number) else {
        connection.pass_over(number)?;
        return Ok(None);
    };
    if side.sections.last.is_overflowed() {
        return connection.headers_too_large(stream);
    }
    let state = connection.streams.state(stream);
    let (has_head, is_connect) = state.map_or((false, false), |stream| {
        (stream.has_head, stream.is_connect)
    });
    if has_head {
        let fields = side.sections.last.fields();
        return connection.receive_trailers(stream, fields, end_stream);
    }
    let parts = match side.sections.last.response() {
        Ok(parts) => parts,
        Err(what) => return connection.malformed(stream, what),
    };
    let state = connection.streams.state(stream);
    let counted = state.map_or(Ok(false), |state| parts.count_interim(&mut state.interim));
    match counted {
        Ok(true) if end_stream => {
            return connection.malformed(stream, "an interim response that ends the stream");
        }
        Ok(true) => return Ok(None),
        Ok(false) => {}
        Err(what) => return connection.malformed(stream, what),
    }
    if is_connect && parts.status < 300 {
        // What follows is the other end's, however long (RFC 9110, 9.3.6).
        return connection.receive_head(stream, None, false, end_stream);
    }
    let has_no_body = matches!(parts.status, 204 | 304);
    connection.receive_head(stream, parts.content_length, has_no_body, end_stream)
}

/// There are none after our settings: this is for those that were under way.
fn refuse_promise(side: &mut Side, promised: u32) -> Result<(), H2ConnectionError> {
    if side.connection.peer.has_acknowledged {
        let what = "a push promise, although push is disabled";
        return Err(H2ConnectionError::protocol(what));
    }
    let decoded = side.sections.decode(side.frames.block());
    decoded.map_err(H2ConnectionError::Compression)?;
    let code = H2ErrorCode::REFUSED_STREAM;
    side.connection.write_reset(promised, code);
    side.connection.flood.reset()
}
