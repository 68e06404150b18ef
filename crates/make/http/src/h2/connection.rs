//! State and rules that both sides of a connection share.

mod receive;
mod send;
mod settings;

use std::collections::VecDeque;

pub(super) use send::Head;

use super::error::{H2ConnectionError, H2ErrorCode, H2StreamFailure};
use super::flood::Flood;
use super::limits::{Limits, WINDOW_BYTES_DEFAULT};
use super::output::Output;
use super::streams::{ReceiveWindow, Stream, Streams};

/// The state of a connection, without its readers.
#[derive(Debug)]
pub(super) struct H2Connection {
    pub(super) limits: Limits,
    pub(super) streams: Streams,
    pub(super) output: Output,
    pub(super) flood: Flood,
    pub(super) peer: Peer,
    /// The highest stream that was ever opened.
    pub(super) highest_stream: u32,
    is_server: bool,
    /// Send window of the connection, in bytes.
    send_window: i64,
    receive_window: ReceiveWindow,
    /// Streams that had too little room, and may now have some.
    queue: VecDeque<Stream>,
    /// Streams that we have reset of late: the peer may not know yet.
    reset_of_late: VecDeque<u32>,
    /// Streams up to this one may have been reset by us: they are no longer remembered one by one.
    reset_until: u32,
    /// The stream whose last event is due, and whether trailers came with it.
    ending: Option<(Stream, bool)>,
    failure: Option<H2ConnectionError>,
    /// Streams above this one will never be answered.
    pub(super) refused_above: u32,
    /// A header block in the making.
    scratch: Vec<u8>,
}

/// Settings of the peer.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) has_settings: bool,
    pub(super) has_acknowledged: bool,
    pub(super) concurrent_streams_max: u32,
    /// True if it takes `CONNECT` with a `:protocol`.
    pub(super) connect_protocol: bool,
    initial_window_bytes: u32,
    frame_bytes_max: u32,
    /// True if the next header block must say that it uses no table.
    is_table_reset_pending: bool,
    has_empty_table: bool,
}

/// An event of a stream.
#[derive(Clone, Copy, Debug)]
pub(super) enum StreamEvent<'i> {
    Head(Stream),
    Body(Stream, &'i [u8]),
    End { stream: Stream, has_trailers: bool },
    Failed(Stream, H2StreamFailure),
    Room(Stream),
}

impl H2Connection {
    pub(super) fn new(limits: &Limits, is_server: bool) -> Self {
        Self {
            limits: *limits,
            streams: Streams::default(),
            output: Output::default(),
            flood: Flood::new(limits),
            peer: Peer {
                has_settings: false,
                has_acknowledged: false,
                concurrent_streams_max: u32::MAX,
                connect_protocol: false,
                initial_window_bytes: WINDOW_BYTES_DEFAULT,
                frame_bytes_max: super::frame::FRAME_BYTES_DEFAULT,
                is_table_reset_pending: false,
                has_empty_table: false,
            },
            highest_stream: 0,
            is_server,
            send_window: i64::from(WINDOW_BYTES_DEFAULT),
            receive_window: ReceiveWindow::new(limits.connection_window_bytes),
            queue: VecDeque::new(),
            reset_of_late: VecDeque::new(),
            reset_until: 0,
            ending: None,
            failure: None,
            refused_above: u32::MAX,
            scratch: Vec::new(),
        }
    }

    pub(super) const fn failure(&self) -> Option<H2ConnectionError> {
        self.failure
    }

    /// Ends the connection, and sends the reason to the peer.
    pub(super) fn fail(&mut self, error: H2ConnectionError) {
        if self.failure.is_some() {
            return;
        }
        self.failure = Some(error);
        if error != H2ConnectionError::Truncated {
            self.write_go_away(error.code());
        }
    }

    /// Returns the event that is due before more is read, if there is one.
    pub(super) fn due(&mut self) -> Option<StreamEvent<'static>> {
        if let Some(note) = self.due_end() {
            return Some(note);
        }
        if self.failure.is_some() {
            return self.lose_above(0, H2StreamFailure::ConnectionLost);
        }
        if self.refused_above != u32::MAX
            && let Some(note) = self.lose_above(self.refused_above, H2StreamFailure::Refused)
        {
            return Some(note);
        }
        self.next_room().map(StreamEvent::Room)
    }

    /// The end of a message whose last part was handed out before.
    pub(super) fn due_end(&mut self) -> Option<StreamEvent<'static>> {
        let (stream, has_trailers) = self.ending.take()?;
        self.end_remote(stream).then_some(StreamEvent::End {
            stream,
            has_trailers,
        })
    }

    /// We end `stream` before its time.
    pub(super) fn reset(&mut self, stream: Stream, code: H2ErrorCode) {
        self.write_reset(stream.number(), code);
        self.forget(stream);
    }

    /// Ends `stream`, which is open, as a failure of the peer's.
    pub(super) fn fail_stream(
        &mut self,
        stream: Stream,
        code: H2ErrorCode,
        cause: H2StreamFailure,
    ) -> Result<Option<StreamEvent<'static>>, H2ConnectionError> {
        self.count_reset()?;
        self.reset(stream, code);
        Ok(Some(StreamEvent::Failed(stream, cause)))
    }

    /// Counts a frame on a stream that has ended. For a client they are late responses to what it requested.
    pub(super) fn count_late(&mut self) -> Result<(), H2ConnectionError> {
        match self.is_server {
            true => self.flood.nuisance("frames on streams that were reset"),
            false => Ok(()),
        }
    }

    /// Counts a stream that came to nothing. For a client each is a response to what it requested. On an error the
    /// stream stays, and is lost with the connection.
    fn count_reset(&mut self) -> Result<(), H2ConnectionError> {
        match self.is_server {
            true => self.flood.reset(),
            false => Ok(()),
        }
    }

    pub(super) fn malformed(
        &mut self,
        stream: Stream,
        what: &'static str,
    ) -> Result<Option<StreamEvent<'static>>, H2ConnectionError> {
        let cause = H2StreamFailure::Malformed { what };
        self.fail_stream(stream, H2ErrorCode::PROTOCOL_ERROR, cause)
    }

    /// So many bytes of the output were written.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.output.sent(bytes);
        let (sent, written) = self.output.totals();
        self.flood.output_was_sent(sent, written);
    }

    /// The event that ends the peer's part of `stream` is next.
    pub(super) fn end_next(&mut self, stream: Stream, has_trailers: bool) {
        if let Some(state) = self.streams.state(stream) {
            state.remote_done = true;
            self.ending = Some((stream, has_trailers));
        }
    }

    /// Resets a stream that never was opened here, or is not any more.
    pub(super) fn write_reset(&mut self, number: u32, code: H2ErrorCode) {
        super::frame::write_reset(number, code, self.output.bytes());
        let remembered = 2 * self.limits.concurrent_streams_max.max(64) as usize;
        if self.reset_of_late.len() >= remembered {
            // A peer that stalls learns of it at any later time (RFC 9113, 5.1).
            let earliest = self.reset_of_late.pop_front().unwrap_or_default();
            self.reset_until = self.reset_until.max(earliest);
        }
        self.reset_of_late.push_back(number);
    }

    pub(super) fn write_go_away(&mut self, code: H2ErrorCode) {
        let last = if self.is_server {
            self.highest_stream
        } else {
            0
        };
        super::frame::write_go_away(last, code, self.output.bytes());
    }

    /// Skips a frame on a stream that is not open, where the protocol permits that.
    ///
    /// # Errors
    /// [`H2ConnectionError`] where it cannot.
    pub(super) fn pass_over(&self, number: u32) -> Result<(), H2ConnectionError> {
        if self.reset_of_late.contains(&number) {
            return Ok(());
        }
        if number <= self.reset_until && !self.is_idle(number) {
            return Ok(());
        }
        if self.is_idle(number) {
            return Err(H2ConnectionError::protocol(
                "a frame on a stream that is idle",
            ));
        }
        Err(H2ConnectionError::Protocol {
            what: "a frame on a stream that has ended",
            code: H2ErrorCode::STREAM_CLOSED,
        })
    }

    pub(super) const fn is_idle(&self, number: u32) -> bool {
        number.is_multiple_of(2) || number > self.highest_stream
    }

    /// The peer has sent all of `stream`. False where it is gone by now.
    fn end_remote(&mut self, stream: Stream) -> bool {
        let Some(state) = self.streams.state(stream) else {
            return false;
        };
        if !self.is_server && !state.local_done {
            // It was answered before all was sent; the rest is not wanted.
            self.write_reset(stream.number(), H2ErrorCode::CANCEL);
        } else if self.is_server && !state.local_done {
            return true;
        }
        self.complete(stream);
        true
    }

    /// Both sides are done with `stream`.
    fn complete(&mut self, stream: Stream) {
        self.flood.relax();
        self.forget(stream);
    }

    fn forget(&mut self, stream: Stream) {
        if self
            .streams
            .state(stream)
            .is_some_and(|state| state.is_queued)
        {
            self.queue.retain(|queued| *queued != stream);
        }
        self.streams.remove(stream);
    }

    fn lose_above(&mut self, number: u32, cause: H2StreamFailure) -> Option<StreamEvent<'static>> {
        let stream = self.streams.any_above(number)?;
        self.forget(stream);
        Some(StreamEvent::Failed(stream, cause))
    }
}
