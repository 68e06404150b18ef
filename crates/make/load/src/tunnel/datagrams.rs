//! Datagrams through a proxy over HTTP/2 (RFC 9298): capsules in the
//! bodies of one stream.

use std::io;
use std::task::{Context, Poll, ready};

use stillwell_http::capsule::{CapsuleReader, write_datagram};
use stillwell_wire::Connection;
use stillwell_wire::quic;

use super::http2::Http2Tunnel;

/// An open way for datagrams to an endpoint.
#[derive(Debug)]
pub(crate) struct Datagrams {
    connection: Connection,
    framed: Box<Http2Tunnel>,
    reader: CapsuleReader,
    /// Bytes that arrived and were not read.
    early: Vec<u8>,
    /// Bytes to send: a capsule, and the part of another one that had no room.
    out: Vec<u8>,
    /// Reason if nothing more can be sent.
    failure: Option<io::Error>,
}

impl Datagrams {
    pub(super) fn new(connection: Connection, framed: Box<Http2Tunnel>, early: Vec<u8>) -> Self {
        Self {
            connection,
            framed,
            reader: CapsuleReader::new(),
            early,
            out: Vec::new(),
            failure: None,
        }
    }

    /// Sends what there is room for; pending where that is not all. What cannot be
    /// sent any more is lost.
    fn poll_out(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.failure.is_none() {
            match ready!(self.poll_sent(context)) {
                Ok(()) => return Poll::Ready(()),
                Err(error) => self.failure = Some(error),
            }
        }
        self.out.clear();
        Poll::Ready(())
    }

    fn poll_sent(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self {
            connection,
            framed,
            early,
            out,
            ..
        } = self;
        while !out.is_empty() {
            let sent = ready!(framed.poll_write(connection, early, context, out))?;
            out.drain(..sent);
        }
        framed.poll_out(connection, context)
    }
}

impl quic::Datagrams for Datagrams {
    fn poll_send(&mut self, context: &mut Context<'_>, datagram: &[u8]) -> Poll<()> {
        ready!(self.poll_out(context));
        write_datagram(datagram, &mut self.out);
        // The rest goes when there is room.
        let _is_sent = self.poll_out(context).is_ready();
        Poll::Ready(())
    }

    fn poll_receive(
        &mut self,
        context: &mut Context<'_>,
        take: &mut dyn FnMut(&[u8]),
    ) -> Poll<io::Result<()>> {
        let _is_sent = self.poll_out(context).is_ready();
        let mut has_come = false;
        loop {
            let mut read = 0;
            loop {
                let (taken, datagram) = self
                    .reader
                    .advance(&self.early[read..])
                    .map_err(io::Error::other)?;
                read += taken;
                match datagram {
                    Some(datagram) => {
                        has_come = true;
                        take(datagram);
                    }
                    None => break,
                }
            }
            self.early.clear();
            if has_come {
                return Poll::Ready(Ok(()));
            }
            let Self {
                connection,
                framed,
                early,
                failure,
                ..
            } = self;
            match framed.poll_read(connection, early, context) {
                Poll::Ready(read) => read?,
                // All that was sent to us before has come.
                Poll::Pending => {
                    return failure
                        .take()
                        .map_or(Poll::Pending, |error| Poll::Ready(Err(error)));
                }
            }
            if early.is_empty() {
                let what = "the proxy ended the tunnel";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, what)));
            }
        }
    }
}
