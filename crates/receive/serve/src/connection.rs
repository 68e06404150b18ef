//! One connection of a test server.

use std::rc::Rc;

use stillwell_wire::server::{Reader as _, ServerWorker, drive, linger};
use stillwell_wire::{Connection, Stream};
use tokio::select;

use crate::detect::http;
use crate::outbox::End;
use crate::service::Service;

/// Answers the requests of `stream` until either side closes it or the worker
/// ends.
pub(crate) async fn serve(worker: Rc<ServerWorker>, service: Rc<Service>, stream: Stream) {
    // A handshake that is given up is of no use: nothing is lost.
    let secured = select! {
        secured = secure(&service, stream) => secured,
        () = worker.token.cancelled() => return,
    };
    if let Some(connection) = secured {
        run_session(&worker, &service, connection).await;
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

async fn run_session(worker: &ServerWorker, service: &Rc<Service>, mut stream: Connection) {
    let alpn = stream.handshake().and_then(|handshake| handshake.alpn);
    let (mut http, mut state) = (http(service, alpn), worker.begin());
    let Some(end) = drive(&mut http, worker, &mut state, &mut stream).await else {
        return;
    };
    let mut discard = async |stream: &mut Connection| {
        let read = worker.receive(stream, &mut state, |_| {}).await;
        matches!(read, Some(Ok(1..)))
    };
    match end {
        End::Close => {}
        End::CloseEarly => linger(&mut stream, discard).await,
        End::Reset => stream.reset(),
        End::Silence => while discard(&mut stream).await {},
    }
}
