//! Lines over a stream.

use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::Poll;

use stillwell_wire::{DialError, Stream, dial};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::select;

use super::backoff::Backoff;
use super::batch::Batch;
use crate::core::Core;
use crate::endpoint::Endpoint;

/// Maximum size of a write, unless one event is longer.
const WRITE_BYTES_MAX: usize = 64 << 10;
const READ_BYTES: usize = 16 << 10;
/// Limit on bytes of the peer that are discarded before a write. A peer that has ended its side has
/// sent less than that: the kernel holds no more.
const DISCARDED_BYTES_MAX: usize = 16 << 20;

/// Sends events on to `endpoint`, a stream, and discards what its peer sends. A peer that has
/// closed its writing side is connected to again before the next event.
pub(super) async fn send_on(core: &Core, endpoint: &Endpoint) {
    let mut backoff = Backoff::new();
    // Before there is anything to send, so the first event does not wait.
    let mut connection = connect_early(core, endpoint, &mut backoff).await;
    let mut batch = Batch::default();
    let mut room = vec![0; READ_BYTES];
    while batch.fill(core, u64::MAX, WRITE_BYTES_MAX).await {
        let mut written = 0;
        while written < batch.bytes.len() {
            let stream = match &mut connection {
                Some(stream) => stream,
                None => connection.insert(connect(endpoint, &mut backoff).await),
            };
            match write(stream, &batch.bytes[written..], &mut room).await {
                Ok(length @ 1..) => {
                    written += length;
                    // The relay may end in the middle of the batch.
                    batch.count(core, written);
                    backoff.reset();
                }
                Ok(0) | Err(_) => {
                    connection = None;
                    written = batch.begun_event(written);
                    backoff.wait().await;
                }
            }
        }
    }
    if let Some(stream) = connection {
        end(stream, &mut room).await;
    }
}

/// Writes a part of `bytes`, and discards what the peer sends before and meanwhile. Returns the
/// number of bytes written.
async fn write(stream: &mut Stream, bytes: &[u8], room: &mut [u8]) -> io::Result<usize> {
    let mut discarded = 0;
    poll_fn(|context| -> Poll<io::Result<usize>> {
        loop {
            let mut arrived = ReadBuf::new(&mut *room);
            let read = Pin::new(&mut *stream).poll_read(context, &mut arrived)?;
            let length = arrived.filled().len();
            if read.is_ready() && length == 0 {
                return Poll::Ready(Err(ErrorKind::UnexpectedEof.into()));
            }
            discarded += length;
            if read.is_ready() && discarded < DISCARDED_BYTES_MAX {
                continue;
            }
            let written = Pin::new(&mut *stream).poll_write(context, bytes);
            if read.is_pending() || written.is_ready() {
                return written;
            }
        }
    })
    .await
}

/// Ends the stream and reads until the peer ends its own, or the relay's time is over. A connection
/// that is closed while bytes of the peer are unread is reset, and the peer loses what is on the
/// way.
async fn end(mut stream: Stream, room: &mut [u8]) {
    if stream.shutdown().await.is_ok() {
        while let Ok(1..) = stream.read(room).await {}
    }
}

/// Dials until that succeeds or the relay is to end. An attempt is never given
/// up, for the other side may have accepted it.
async fn connect_early(core: &Core, endpoint: &Endpoint, backoff: &mut Backoff) -> Option<Stream> {
    loop {
        if let Ok(stream) = dial_stream(endpoint).await {
            return Some(stream);
        }
        select! {
            () = backoff.wait() => {}
            () = core.token.cancelled() => return None,
        }
    }
}

/// Dials until that succeeds.
async fn connect(endpoint: &Endpoint, backoff: &mut Backoff) -> Stream {
    loop {
        match dial_stream(endpoint).await {
            Ok(stream) => return stream,
            Err(_) => backoff.wait().await,
        }
    }
}

async fn dial_stream(endpoint: &Endpoint) -> Result<Stream, DialError> {
    match endpoint {
        Endpoint::UnixStream(path) => dial::unix_stream(path).await.map(Stream::from),
        Endpoint::Tcp(address) => dial::tcp(address).await.map(Stream::from),
        _ => unreachable!("only streams come here"),
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::UnixStream;

    use super::*;

    #[tokio::test]
    async fn nothing_is_written_to_a_peer_that_has_ended_its_side() {
        let mut room = vec![0; READ_BYTES];
        for last_words in [&b""[..], b"goodbye", &[b'x'; 3 * READ_BYTES]] {
            let (mut peer, stream) = UnixStream::pair().unwrap();
            peer.write_all(last_words).await.unwrap();
            peer.shutdown().await.unwrap();
            stream.readable().await.unwrap();
            let mut stream = Stream::from(stream);
            let written = write(&mut stream, b"event\n", &mut room).await;
            assert_eq!(written.unwrap_err().kind(), ErrorKind::UnexpectedEof);
        }
    }
}
