//! One connection of a test server.

use std::future::{pending, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use stillwell_scope::{Stopping, clock};
use stillwell_units::Moment;
use stillwell_wire::server::ServerWorker;
use stillwell_wire::{Connection, Stream, Timer};
use tokio::io::{AsyncWrite as _, AsyncWriteExt as _};
use tokio::select;
use tokio::time::timeout;

use crate::outbox::End;
use crate::service::Service;
use crate::talk::Talk;

/// So long a client may go on sending on a connection that is closed early, so
/// that it reads the end rather than a reset.
const LINGER_MAX: Duration = Duration::from_millis(100);

/// Answers the requests of `stream` until either side closes it or the worker
/// ends.
pub(crate) async fn serve(worker: Rc<ServerWorker>, service: Rc<Service>, stream: Stream) {
    // A handshake that is given up is of no use: nothing is lost.
    let secured = select! {
        secured = secure(&service, stream) => secured,
        () = worker.token.cancelled() => return,
    };
    if let Some(connection) = secured {
        converse(&worker, &service, connection).await;
    }
}

/// The connection over `stream`, once hands are shaken where the listener speaks
/// TLS; `None` where that failed.
async fn secure(service: &Service, stream: Stream) -> Option<Connection> {
    let Some(tls) = &service.site.tls else {
        return Some(stream.into());
    };
    let shard = &service.shard;
    match tls.accept(stream).await {
        Ok(stream) => {
            shard.handshakes.add(1);
            let resumed = stream.shaken().is_some_and(|handshake| handshake.resumed);
            shard.resumed.add(u64::from(resumed));
            Some(stream.into())
        }
        Err(_) => {
            shard.handshakes_failed.add(1);
            None
        }
    }
}

async fn converse(worker: &ServerWorker, service: &Rc<Service>, mut stream: Connection) {
    let alpn = stream.handshake().and_then(|handshake| handshake.alpn);
    let mut talk = Talk::new(service, alpn);
    let mut stopping = worker.stopping_stream();
    let mut timer = None;
    let end = loop {
        if send(&mut talk, &mut stream).await.is_err() {
            return;
        }
        if let Some(end) = talk.end() {
            break end;
        }
        let (due, is_full) = (talk.due(), talk.is_full());
        let receive = async {
            if is_full {
                return pending().await;
            }
            let take = |bytes: &[u8]| talk.take(bytes, clock::now());
            worker.receive(&mut stream, &mut stopping, take).await
        };
        // All arms are cancel-safe.
        let received = match due {
            None => receive.await,
            Some(due) => select! {
                biased;
                waited = until(&mut timer, due) => match waited {
                    Ok(()) => continue,
                    Err(_) => return,
                },
                received = receive => received,
                () = worker.token.cancelled(), if is_full => return,
            },
        };
        match received {
            Some(Ok(1..)) => {}
            Some(Ok(0) | Err(_)) => return talk.finish(),
            None => return,
        }
    };
    match end {
        End::Close => {}
        End::CloseEarly => linger(worker, &mut stream, &mut stopping).await,
        End::Reset => stream.reset(),
        End::Silence => {
            while let Some(Ok(1..)) = worker.receive(&mut stream, &mut stopping, |_| {}).await {}
        }
    }
}

/// Sends all that is due.
async fn send(talk: &mut Talk, stream: &mut Connection) -> io::Result<()> {
    let mut has_sent = false;
    loop {
        if talk.wants_filling() {
            talk.fill(clock::now());
        }
        if talk.unsent().is_empty() {
            return if has_sent {
                stream.flush().await
            } else {
                Ok(())
            };
        }
        has_sent = true;
        let write = |context: &mut std::task::Context<'_>| {
            Pin::new(&mut *stream).poll_write(context, talk.unsent())
        };
        match poll_fn(write).await? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            length => talk.advance(length),
        }
    }
}

async fn until(timer: &mut Option<Timer>, due: Moment) -> io::Result<()> {
    let own = match timer.take() {
        Some(timer) => timer,
        None => Timer::new()?,
    };
    timer.insert(own).until(due).await;
    Ok(())
}

/// Closes our side and reads on until the peer has closed its own, so that what
/// it still sends does not destroy the answer.
async fn linger(worker: &ServerWorker, stream: &mut Connection, stopping: &mut Stopping) {
    if stream.shutdown().await.is_err() {
        return;
    }
    let read_all =
        async { while let Some(Ok(1..)) = worker.receive(stream, stopping, |_| {}).await {} };
    timeout(LINGER_MAX, read_all).await.unwrap_or_default();
}
