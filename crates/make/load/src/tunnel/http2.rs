//! A way through a proxy that is one stream of HTTP/2.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use stillwell_http::h2::{
    BodyLength, Client, ClientEvent, H2ConnectionError, H2RequestBlock, Limits, Stream,
};
use stillwell_wire::Connection;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{EARLY_BYTES_MAX, ProxyResponse, TunnelEnd, TunnelFailure, TunnelStream, read_end};

/// Bytes that are read at once: a frame.
const INPUT_BYTES: usize = 16 << 10;

/// The frames of a connection whose one stream is the way to an endpoint.
#[derive(Debug)]
pub(super) struct Http2Tunnel {
    client: Client,
    /// The request; `None` before it is sent.
    stream: Option<Stream>,
    input: Box<[u8]>,
    /// The head's status, once there was one.
    status: Option<u16>,
    /// The endpoint, or the proxy, says no more; or it was cut.
    end: Option<TunnelEnd>,
}

/// Requests an endpoint and reads the answer; datagrams only once the proxy has announced
/// that it forwards them.
pub(super) async fn answer(
    mut connection: Connection,
    request: &H2RequestBlock,
    is_for_datagrams: bool,
) -> Result<ProxyResponse, TunnelFailure> {
    let client = Client::new(Limits {
        concurrent_streams_max: 1,
        ..Limits::default()
    });
    let mut framed = Box::new(Http2Tunnel {
        client,
        stream: None,
        input: vec![0; INPUT_BYTES].into_boxed_slice(),
        status: None,
        end: None,
    });
    let mut early = Vec::new();
    loop {
        let can_request = match framed.client.peer_connect_protocol() {
            _ if !is_for_datagrams => true,
            Some(false) => return Ok(ProxyResponse::NoDatagrams),
            can_request => can_request.is_some(),
        };
        if can_request && framed.stream.is_none() {
            // Nothing is under way yet: there is room.
            let Ok(stream) = framed.client.request(request, BodyLength::Unknown) else {
                return Ok(ProxyResponse::Closed);
            };
            framed.stream = Some(stream);
        }
        match framed.status {
            Some(status) if !(200..300).contains(&status) => {
                return Ok(ProxyResponse::Refused(status));
            }
            Some(_) => {
                let carrier = TunnelStream::Http2(connection, framed);
                return Ok(ProxyResponse::Open { early, carrier });
            }
            None if framed.end.is_some() => return Ok(ProxyResponse::Closed),
            None => {}
        }
        let taken = poll_fn(|context| {
            framed.poll_flushed(&mut connection, context)?;
            framed.poll_in(&mut connection, context)
        });
        match taken.await.map_err(TunnelFailure::Io)? {
            0 => return Ok(ProxyResponse::Closed),
            count => framed
                .digest(count, &mut early)
                .map_err(TunnelFailure::Frames)?,
        }
    }
}

impl Http2Tunnel {
    /// Reads until there is an event in `early`, or the end.
    pub(super) fn poll_read(
        &mut self,
        connection: &mut Connection,
        early: &mut Vec<u8>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            // Windows and answers to pings are ours to send.
            self.poll_flushed(connection, context)?;
            if let Some(end) = read_end(early, self.end) {
                return Poll::Ready(end);
            }
            let count = ready!(self.poll_in(connection, context)?);
            self.take(count, early)?;
        }
    }

    pub(super) fn poll_write(
        &mut self,
        connection: &mut Connection,
        early: &mut Vec<u8>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            self.poll_flushed(connection, context)?;
            let sent = self
                .stream
                .map(|stream| self.client.send_body(stream, bytes, false));
            let Some(Ok(sent)) = sent else {
                return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
            };
            if sent > 0 {
                self.poll_flushed(connection, context)?;
                return Poll::Ready(Ok(sent));
            }
            if early.len() > EARLY_BYTES_MAX {
                // A writer has to read first, as over a plain connection.
                return Poll::Pending;
            }
            let count = ready!(self.poll_in(connection, context)?);
            self.take(count, early)?;
            if count == 0 {
                // There will be no room any more.
                return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
            }
        }
    }

    /// Writes all that is laid out.
    pub(super) fn poll_out(
        &mut self,
        connection: &mut Connection,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while !self.client.output().is_empty() {
            let written = Pin::new(&mut *connection).poll_write(context, self.client.output());
            match ready!(written?) {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.client.sent(count),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Writes what the connection takes now; it wakes us when it takes more.
    fn poll_flushed(
        &mut self,
        connection: &mut Connection,
        context: &mut Context<'_>,
    ) -> io::Result<()> {
        let out = self.poll_out(connection, context);
        let out = match out {
            Poll::Ready(Ok(())) => Pin::new(connection).poll_flush(context),
            other => other,
        };
        match out {
            Poll::Ready(Err(error)) => Err(error),
            Poll::Ready(Ok(())) | Poll::Pending => Ok(()),
        }
    }

    /// So many bytes are in the input; none at the end.
    fn poll_in(
        &mut self,
        connection: &mut Connection,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(&mut self.input);
        let read = Pin::new(connection).poll_read(context, &mut buffer);
        read.map_ok(|()| buffer.filled().len())
    }

    fn take(&mut self, count: usize, early: &mut Vec<u8>) -> io::Result<()> {
        if count == 0 {
            // The proxy's end, not that of the stream.
            self.end.get_or_insert(TunnelEnd::Cut);
            return Ok(());
        }
        let digested = self.digest(count, early);
        digested.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    fn digest(&mut self, count: usize, early: &mut Vec<u8>) -> Result<(), H2ConnectionError> {
        let mut read = 0;
        loop {
            let (taken, event) = self.client.advance(&self.input[read..count])?;
            read += taken;
            match event {
                None => return Ok(()),
                Some(ClientEvent::Head { head, .. }) => self.status = Some(head.status),
                Some(ClientEvent::Body { bytes, .. }) => early.extend_from_slice(bytes),
                Some(ClientEvent::End { .. }) => {
                    self.end.get_or_insert(TunnelEnd::Complete);
                }
                // What was whole before stays so.
                Some(ClientEvent::Failed { .. }) => {
                    self.end.get_or_insert(TunnelEnd::Cut);
                }
                Some(ClientEvent::Room { .. }) => {}
            }
        }
    }
}
