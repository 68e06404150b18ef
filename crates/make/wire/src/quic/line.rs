//! A connection's streams and events.

use bytes::Bytes;
use quinn_proto::{
    ConnectionHandle, Dir, Event, ReadError, StreamEvent, StreamId, VarInt, WriteError,
};

use super::refused::QuicEnd;
use super::times::Times;

/// One connection, of either side.
#[derive(Debug)]
pub struct Line {
    pub(super) connection: quinn_proto::Connection,
    pub(super) handle: ConnectionHandle,
    pub(super) times: Times,
    /// It ended although the library does not know.
    pub(super) cut: Option<QuicEnd>,
}

/// A stream.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct QuicStream(StreamId);

/// An event on a connection.
#[derive(Clone, Debug)]
pub enum QuicEvent {
    /// Hands are shaken.
    Connected,
    /// The peer has opened streams: [`Line::accept_uni`] and [`Line::accept_bidi`]
    /// say which.
    Opened,
    /// A stream has something to read, or has ended.
    Readable(QuicStream),
    /// More of a stream can be sent than could when it was tried last.
    Writable(QuicStream),
    /// The peer takes no more of a stream.
    Stopped(QuicStream, u64),
    /// More streams can be opened than could when it was tried last.
    Available,
    /// It has ended.
    Lost(QuicEnd),
}

/// The state of a stream after a read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StreamRead {
    /// More may come.
    Open,
    /// It has ended, and all of it was read.
    Finished,
    /// The peer has given it up, for this reason.
    Reset(u64),
    /// It was given up, or read to its end, before.
    Gone,
}

impl QuicStream {
    /// Number of the stream in the protocol.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0.into()
    }
}

impl Line {
    /// A stream for a request; `None` where the peer allows no more now.
    pub fn open_bidi(&mut self) -> Option<QuicStream> {
        self.connection.streams().open(Dir::Bi).map(QuicStream)
    }

    /// A stream of one direction; `None` where the peer allows no more now.
    pub fn open_uni(&mut self) -> Option<QuicStream> {
        self.connection.streams().open(Dir::Uni).map(QuicStream)
    }

    /// The next request's stream that the peer has opened.
    pub fn accept_bidi(&mut self) -> Option<QuicStream> {
        self.connection.streams().accept(Dir::Bi).map(QuicStream)
    }

    /// The next stream of one direction that the peer has opened.
    pub fn accept_uni(&mut self) -> Option<QuicStream> {
        self.connection.streams().accept(Dir::Uni).map(QuicStream)
    }

    /// Sends as much of `bytes` as there is room for, and leaves the rest there;
    /// [`QuicEvent::Writable`] says when to go on. `false` where the stream takes
    /// nothing more.
    pub fn write(&mut self, stream: QuicStream, bytes: &mut Bytes) -> bool {
        while !bytes.is_empty() {
            let written = self
                .connection
                .send_stream(stream.0)
                .write_chunks(std::slice::from_mut(bytes));
            match written {
                Ok(_) => {}
                Err(WriteError::Blocked) => return true,
                Err(WriteError::Stopped(_) | WriteError::ClosedStream) => return false,
            }
        }
        true
    }

    /// Ends our part of `stream` behind what was sent.
    pub fn finish(&mut self, stream: QuicStream) {
        // One that was stopped has ended.
        self.connection
            .send_stream(stream.0)
            .finish()
            .unwrap_or_default();
    }

    /// Gives our part of `stream` up.
    pub fn reset(&mut self, stream: QuicStream, code: u64) {
        self.connection
            .send_stream(stream.0)
            .reset(number(code))
            .unwrap_or_default();
    }

    /// Wants no more of the peer's part of `stream`.
    pub fn stop(&mut self, stream: QuicStream, code: u64) {
        self.connection
            .recv_stream(stream.0)
            .stop(number(code))
            .unwrap_or_default();
    }

    /// Shows all that has come of `stream` to `take`, in order, until that gives
    /// `false`: what is left then is there no more.
    pub fn read(&mut self, stream: QuicStream, mut take: impl FnMut(&[u8]) -> bool) -> StreamRead {
        let mut received = self.connection.recv_stream(stream.0);
        let Ok(mut chunks) = received.read(true) else {
            return StreamRead::Gone;
        };
        let read = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => {
                    if !take(&chunk.bytes) {
                        break StreamRead::Open;
                    }
                }
                Ok(None) => break StreamRead::Finished,
                Err(ReadError::Blocked) => break StreamRead::Open,
                Err(ReadError::Reset(code)) => break StreamRead::Reset(code.into_inner()),
            }
        };
        // The caller that goes on with the connection sends all that is due anyway.
        drop(chunks);
        read
    }

    /// Returns the next event.
    pub fn next_event(&mut self) -> Option<QuicEvent> {
        loop {
            if let Some(end) = self.cut.take() {
                return Some(QuicEvent::Lost(end));
            }
            return Some(match self.connection.poll()? {
                Event::Connected => QuicEvent::Connected,
                Event::ConnectionLost { reason } => QuicEvent::Lost(QuicEnd::Ended(reason)),
                Event::Stream(event) => match event {
                    StreamEvent::Opened { .. } => QuicEvent::Opened,
                    StreamEvent::Readable { id } => QuicEvent::Readable(QuicStream(id)),
                    StreamEvent::Writable { id } => QuicEvent::Writable(QuicStream(id)),
                    StreamEvent::Stopped { id, error_code } => {
                        QuicEvent::Stopped(QuicStream(id), error_code.into_inner())
                    }
                    StreamEvent::Available { .. } => QuicEvent::Available,
                    StreamEvent::Finished { .. } => continue,
                },
                Event::HandshakeDataReady | Event::DatagramReceived | Event::DatagramsUnblocked => {
                    continue;
                }
            });
        }
    }

    /// Ends the connection for this reason; that is sent with what is sent next.
    pub fn close(&mut self, code: u64) {
        let now = self.times.now();
        self.connection.close(now, number(code), Bytes::new());
    }
}

/// Codes are below 2⁶².
fn number(code: u64) -> VarInt {
    VarInt::from_u64(code).unwrap_or(VarInt::MAX)
}
