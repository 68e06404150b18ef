//! Datagrams through a proxy that is asked over HTTP/2 (RFC 9298): capsules in the
//! bodies of one stream.

use std::io;
use std::task::{Context, Poll, ready};

use stillwell_http::capsule::{CapsuleReader, write_datagram};
use stillwell_wire::Connection;
use stillwell_wire::quic;

use super::http2::Framed;

/// An open way for datagrams to an endpoint.
#[derive(Debug)]
pub(in crate::load) struct Datagrams {
    connection: Connection,
    framed: Box<Framed>,
    reader: CapsuleReader,
    /// What has arrived and was not read.
    early: Vec<u8>,
    /// What is still to be sent: a few capsules.
    out: Vec<u8>,
}

impl Datagrams {
    pub(super) fn new(connection: Connection, framed: Box<Framed>, early: Vec<u8>) -> Self {
        Self {
            connection,
            framed,
            reader: CapsuleReader::new(),
            early,
            out: Vec::new(),
        }
    }

    /// Sends what there is room for; pending where that is not all.
    fn poll_out(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
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
    fn poll_send(&mut self, context: &mut Context<'_>, datagram: &[u8]) -> Poll<io::Result<()>> {
        ready!(self.poll_out(context))?;
        write_datagram(datagram, &mut self.out);
        // The rest goes when there is room.
        match self.poll_out(context) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Ready(Ok(())),
        }
    }

    fn poll_receive(
        &mut self,
        context: &mut Context<'_>,
        take: &mut dyn FnMut(&[u8]),
    ) -> Poll<io::Result<()>> {
        if let Poll::Ready(sent) = self.poll_out(context) {
            sent?;
        }
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
                ..
            } = self;
            ready!(framed.poll_read(connection, early, context))?;
            if early.is_empty() {
                let what = "the proxy ended it";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, what)));
            }
        }
    }
}
