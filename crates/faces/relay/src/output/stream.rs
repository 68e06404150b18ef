//! Lines over a stream.

use stillwell_wire::{DialError, Stream, dial};
use tokio::io::AsyncWriteExt;
use tokio::select;

use super::backoff::Backoff;
use super::batch::Batch;
use crate::core::Core;
use crate::endpoint::Endpoint;

/// Maximum size of a write, unless one event is longer.
const WRITE_BYTES_MAX: usize = 64 << 10;

/// Sends events on to `endpoint`, a stream.
pub(super) async fn send_on(core: &Core, endpoint: &Endpoint) {
    let mut backoff = Backoff::new();
    // Before there is anything to send, so the first event does not wait.
    let mut connection = connect_early(core, endpoint, &mut backoff).await;
    let mut batch = Batch::default();
    while batch.fill(core, u64::MAX, WRITE_BYTES_MAX).await {
        let mut written = 0;
        while written < batch.bytes.len() {
            let stream = match &mut connection {
                Some(stream) => stream,
                None => connection.insert(connect(endpoint, &mut backoff).await),
            };
            match stream.write(&batch.bytes[written..]).await {
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
    if let Some(stream) = &mut connection {
        // Says that this is all; a peer that has gone need not receive it.
        stream.shutdown().await.unwrap_or_default();
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
