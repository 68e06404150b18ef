//! A way through a proxy that is one stream of HTTP/3.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use stillwell_http::h3::{
    BodyLength, H3Connection, H3ErrorCode, H3MessageError, H3MessageReader, H3RequestBlock,
    H3ResponseEvent, UniStream, write_data_head,
};
use stillwell_wire::quic::{QuicConnection, QuicEvent, QuicStream, StreamRead};

use super::{EARLY_BYTES_MAX, ProxyResponse, TunnelEnd, TunnelFailure, TunnelStream, read_end};

/// The longest head of an answer that is taken.
const SECTION_BYTES_MAX: usize = 64 << 10;

/// Bytes that are framed at once.
const FRAME_BYTES_MAX: usize = 64 << 10;

/// A connection whose one stream is the way to an endpoint.
#[derive(Debug)]
pub(super) struct Http3Tunnel {
    quic: Box<QuicConnection>,
    http: H3Connection,
    reader: H3MessageReader,
    /// The request; `None` while the proxy allows none.
    stream: Option<QuicStream>,
    unis: Vec<(QuicStream, UniStream)>,
    /// Bytes of our control stream that are still to be sent.
    control: Option<(QuicStream, Bytes)>,
    /// Bytes of a frame or of a request that are still to be sent.
    rest: Bytes,
    /// Something has come of the stream that was not read.
    is_readable: bool,
    /// The head's status, once there was one.
    status: Option<u16>,
    /// The endpoint, or the proxy, says no more; or it was cut.
    end: Option<TunnelEnd>,
}

/// Requests an endpoint over `quic`, after its handshake, and reads the answer.
pub(super) async fn answer(
    mut quic: Box<QuicConnection>,
    request: &H3RequestBlock,
) -> Result<ProxyResponse, TunnelFailure> {
    let http = H3Connection::client(SECTION_BYTES_MAX);
    let opening = Bytes::from(http.opening());
    let control = quic.line().open_uni().map(|stream| (stream, opening));
    let mut head = Vec::with_capacity(request.bytes_max());
    request.write(&[], BodyLength::Unknown, &mut head);
    let mut streamed = Box::new(Http3Tunnel {
        quic,
        http,
        reader: H3MessageReader::led(),
        stream: None,
        unis: Vec::new(),
        control,
        rest: head.into(),
        is_readable: false,
        status: None,
        end: None,
    });
    let mut early = Vec::new();
    loop {
        // A proxy may allow a stream later.
        if streamed.stream.is_none() {
            streamed.stream = streamed.quic.line().open_bidi();
            streamed.send();
        }
        if streamed.is_readable {
            streamed.read(&mut early).map_err(TunnelFailure::Streams)?;
        }
        match streamed.status {
            Some(status) if !(200..300).contains(&status) => {
                return Ok(ProxyResponse::Refused(status));
            }
            Some(_) => {
                let carrier = TunnelStream::Http3(streamed);
                return Ok(ProxyResponse::Open { early, carrier });
            }
            None if streamed.end.is_some() => return Ok(ProxyResponse::Closed),
            None => {}
        }
        let event = poll_fn(|context| streamed.quic.poll_event(context)).await;
        streamed
            .handle_event(&event)
            .map_err(TunnelFailure::Streams)?;
    }
}

impl Http3Tunnel {
    /// Reads until there is an event in `early`, or the end.
    pub(super) fn poll_read(
        &mut self,
        early: &mut Vec<u8>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            // Bytes that are not copied yet are limited by the windows.
            if early.is_empty() && self.is_readable {
                self.read(early).map_err(io::Error::other)?;
            }
            if let Some(end) = read_end(early, self.end) {
                return Poll::Ready(end);
            }
            let event = ready!(self.quic.poll_event(context));
            self.handle_event(&event).map_err(io::Error::other)?;
        }
    }

    pub(super) fn poll_write(
        &mut self,
        early: &mut Vec<u8>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_room(early, context))?;
        let count = bytes.len().min(FRAME_BYTES_MAX);
        // The head of a frame has two numbers of up to eight bytes.
        let mut frame = Vec::with_capacity(count + 16);
        write_data_head(count, &mut frame);
        frame.extend_from_slice(&bytes[..count]);
        self.rest = frame.into();
        self.flush(context);
        Poll::Ready(Ok(count))
    }

    /// Ends our side, behind all that was written.
    pub(super) fn poll_finish(
        &mut self,
        early: &mut Vec<u8>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_room(early, context))?;
        if let Some(stream) = self.stream {
            self.quic.line().finish(stream);
        }
        self.quic.flush(context);
        Poll::Ready(Ok(()))
    }

    /// Waits until all that was framed before has gone.
    fn poll_room(
        &mut self,
        early: &mut Vec<u8>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            if !self.send() {
                return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
            }
            if self.rest.is_empty() {
                return Poll::Ready(Ok(()));
            }
            if self.is_readable && early.len() <= EARLY_BYTES_MAX {
                self.read(early).map_err(io::Error::other)?;
                // The reader was not woken by the event that woke this task.
                context.waker().wake_by_ref();
            }
            if self.end.is_some() {
                // There will be no room any more.
                return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
            }
            let event = ready!(self.quic.poll_event(context));
            self.handle_event(&event).map_err(io::Error::other)?;
        }
    }

    /// Sends what there is room for; the rest goes when there is more.
    pub(super) fn flush(&mut self, context: &mut Context<'_>) {
        self.send();
        self.quic.flush(context);
    }

    /// True if the stream accepts bytes.
    fn send(&mut self) -> bool {
        let line = self.quic.line();
        if let Some((stream, rest)) = &mut self.control {
            line.write(*stream, rest);
        }
        self.stream
            .is_none_or(|stream| line.write(stream, &mut self.rest))
    }

    /// An error ends the connection.
    fn handle_event(&mut self, event: &QuicEvent) -> Result<(), H3MessageError> {
        match event {
            QuicEvent::Connected | QuicEvent::Available | QuicEvent::Stopped(..) => {}
            QuicEvent::Opened => {
                while let Some(stream) = self.quic.line().accept_uni() {
                    self.unis.push((stream, UniStream::default()));
                    self.read_uni(stream)?;
                }
            }
            QuicEvent::Readable(stream) if self.stream == Some(*stream) => self.is_readable = true,
            QuicEvent::Readable(stream) => self.read_uni(*stream)?,
            QuicEvent::Writable(_) => {
                self.send();
            }
            QuicEvent::Lost(_) => {
                self.end.get_or_insert(TunnelEnd::Cut);
            }
        }
        Ok(())
    }

    /// Takes all that has come of the stream. An error ends the connection.
    fn read(&mut self, early: &mut Vec<u8>) -> Result<(), H3MessageError> {
        self.is_readable = false;
        let Some(stream) = self.stream else {
            return Ok(());
        };
        let (http, reader, status) = (&mut self.http, &mut self.reader, &mut self.status);
        let mut digested = Ok(());
        let read = self.quic.line().read(stream, |input| {
            digested = digest(http, reader, input, status, early);
            digested.is_ok()
        });
        let end = match read {
            StreamRead::Open => None,
            StreamRead::Finished => Some(TunnelEnd::Complete),
            StreamRead::Reset(_) | StreamRead::Gone => Some(TunnelEnd::Cut),
        };
        if digested.is_ok() && end == Some(TunnelEnd::Complete) {
            digested = self.reader.finish();
        }
        self.end = self.end.or(end);
        self.close_on_error(digested)
    }

    fn read_uni(&mut self, stream: QuicStream) -> Result<(), H3MessageError> {
        let Some(place) = self.unis.iter().position(|(open, _)| *open == stream) else {
            return Ok(());
        };
        let (http, uni) = (&mut self.http, &mut self.unis[place].1);
        let mut read_result = Ok(true);
        let read = self.quic.line().read(stream, |input| {
            read_result = http.read_uni(uni, input);
            matches!(read_result, Ok(true))
        });
        let handled = match read_result {
            Ok(true) if read == StreamRead::Open => Ok(()),
            Ok(true) => self.http.end_uni(&self.unis.swap_remove(place).1),
            Ok(false) => {
                self.unis.swap_remove(place);
                let code = H3ErrorCode::STREAM_CREATION_ERROR.0;
                self.quic.line().stop(stream, code);
                Ok(())
            }
            Err(error) => Err(error),
        };
        self.close_on_error(handled.map_err(H3MessageError::from))
    }

    /// Sends the proxy an error before its connection ends.
    fn close_on_error(
        &mut self,
        handled: Result<(), H3MessageError>,
    ) -> Result<(), H3MessageError> {
        if let Err(error) = &handled {
            let code = match error {
                H3MessageError::Connection(error) => error.code(),
                H3MessageError::Stream(failure) => failure.code(),
            };
            self.quic.line().close(code.0);
        }
        handled
    }
}

impl Drop for Http3Tunnel {
    /// The proxy would wait for more until the connection counts as lost.
    fn drop(&mut self) {
        self.quic.line().close(H3ErrorCode::NO_ERROR.0);
        self.quic.flush(&mut Context::from_waker(Waker::noop()));
    }
}

fn digest(
    http: &mut H3Connection,
    reader: &mut H3MessageReader,
    input: &[u8],
    status: &mut Option<u16>,
    early: &mut Vec<u8>,
) -> Result<(), H3MessageError> {
    let mut read = 0;
    loop {
        let (taken, event) = http.read_response(reader, &input[read..])?;
        read += taken;
        match event {
            None => return Ok(()),
            Some(H3ResponseEvent::Head(head)) => *status = Some(head.status),
            Some(H3ResponseEvent::Body(bytes)) => early.extend_from_slice(bytes),
            Some(H3ResponseEvent::Trailers(_)) => {}
        }
    }
}
