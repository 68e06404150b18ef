//! One connection of a test server.

use std::rc::Rc;
use std::time::Duration;

use stillwell_plan::serve::ChainClients;
use stillwell_scope::clock;
use stillwell_wire::server::{
    Activity, Protocol as _, Reader as _, ServerWorker, drive_watched, linger,
};
use stillwell_wire::tls::{Greeting, HandshakeError, TlsStream, read_greeting};
use stillwell_wire::{Connection, Stream};
use tokio::select;
use tokio::time::timeout;

use crate::detect::http;
use crate::outbox::End;
use crate::service::Service;

/// Longest handshake: as long as the head of a request may take.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// The services of a listener.
#[derive(Debug)]
pub(crate) struct ListenerServices {
    /// Serves all clients, if there are no chains.
    pub(crate) fallback: Rc<Service>,
    pub(crate) chains: Vec<(ChainClients, Rc<Service>)>,
}

/// A connection that is ready for requests.
struct Accepted {
    service: Rc<Service>,
    connection: Connection,
    /// The byte that was read to choose the chain.
    first: Option<u8>,
}

/// Answers the requests of `stream` until either side closes it or the worker
/// ends. The connection is not idle while a response is due.
pub(crate) async fn serve(
    worker: Rc<ServerWorker>,
    services: Rc<ListenerServices>,
    stream: Stream,
    activity: Activity,
) {
    // A handshake that is given up is of no use: nothing is lost.
    let accepted = select! {
        accepted = timeout(HANDSHAKE_MAX, accept(&services, stream)) => accepted.unwrap_or_else(|_| {
            services.fallback.shard.handshakes_failed.add(1);
            None
        }),
        () = worker.token.cancelled() => return,
    };
    if let Some(accepted) = accepted {
        run_session(&worker, accepted, &activity).await;
    }
}

/// The connection over `stream`, once the handshake is complete where it is over TLS; `None`
/// where that failed or no chain serves the client.
async fn accept(services: &ListenerServices, stream: Stream) -> Option<Accepted> {
    let accepted = |service: &Rc<Service>, connection, first| Accepted {
        service: Rc::clone(service),
        connection,
        first,
    };
    if services.chains.is_empty() {
        let service = &services.fallback;
        let connection = match &service.site.tls {
            None => stream.into(),
            Some(tls) => secured(service, tls.accept(stream).await)?,
        };
        return Some(accepted(service, connection, None));
    }
    let refuse = || {
        services.fallback.shard.handshakes_failed.add(1);
        None
    };
    match read_greeting(stream).await {
        Ok(Greeting::Plain { first, stream }) => {
            let service = services.chain(false, None)?;
            if service.site.tls.is_some() {
                return refuse();
            }
            Some(accepted(service, stream.into(), Some(first)))
        }
        Ok(Greeting::Tls(greeting)) => {
            let service = services.chain(true, greeting.server_name().as_deref());
            let Some((service, tls)) =
                service.and_then(|service| Some((service, service.site.tls.as_ref()?)))
            else {
                return refuse();
            };
            let connection = secured(service, tls.accept_greeted(*greeting).await)?;
            Some(accepted(service, connection, None))
        }
        Err(_) => refuse(),
    }
}

impl ListenerServices {
    /// Returns the chain that serves a client best; the first of several that are equal.
    fn chain(&self, is_tls: bool, server_name: Option<&str>) -> Option<&Rc<Service>> {
        let mut best: Option<(usize, &Rc<Service>)> = None;
        for (clients, service) in &self.chains {
            if let Some(rank) = clients.rank(is_tls, server_name)
                && best.is_none_or(|(most, _)| rank > most)
            {
                best = Some((rank, service));
            }
        }
        best.map(|(_, service)| service)
    }
}

fn secured(service: &Service, stream: Result<TlsStream, HandshakeError>) -> Option<Connection> {
    let shard = &service.shard;
    match stream {
        Ok(stream) => {
            shard.handshakes.add(1);
            shard.resumed.add(u64::from(stream.handshake().resumed));
            Some(stream.into())
        }
        Err(_) => {
            shard.handshakes_failed.add(1);
            None
        }
    }
}

async fn run_session(worker: &ServerWorker, accepted: Accepted, activity: &Activity) {
    let mut stream = accepted.connection;
    let alpn = stream.handshake().and_then(|handshake| handshake.alpn);
    let (mut http, mut state) = (http(&accepted.service, alpn), worker.begin());
    if let Some(first) = accepted.first {
        http.take(&[first], clock::now());
    }
    let driven = drive_watched(&mut http, worker, &mut state, activity, &mut stream);
    let Some(end) = driven.await else {
        return;
    };
    let mut discard = async |stream: &mut Connection| {
        let read = worker.receive(stream, &mut state, |_| {}).await;
        matches!(read, Some(Ok(1..)))
    };
    match end {
        // A client over TLS reads an error unless the close is announced. TCP does not wait here.
        End::Close => linger(&mut stream, async |_: &mut Connection| false).await,
        End::CloseEarly => linger(&mut stream, discard).await,
        End::Reset => stream.reset(),
        End::Silence => while discard(&mut stream).await {},
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use stillwell_http::Scheme;
    use stillwell_http::h2::{
        BodyLength, Client, ClientEvent, H2ErrorCode, H2RequestBlock, Limits,
    };
    use stillwell_metric::{Labels, SinkShard};
    use stillwell_plan::serve::FaultsPlan;
    use stillwell_scope::Token;
    use stillwell_wire::server::{Output as _, watched};
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::UnixStream;
    use tokio::task::yield_now;

    use super::*;
    use crate::http2::Http2;

    /// A listener whose responses have a delay of ten minutes.
    fn delayed() -> ListenerServices {
        let faults = FaultsPlan {
            delay: Some("600s".parse().unwrap()),
            ..FaultsPlan::default()
        };
        ListenerServices {
            fallback: Rc::new(Service::with_faults(faults)),
            chains: Vec::new(),
        }
    }

    /// Such a connection was closed for a new one.
    #[tokio::test]
    async fn a_connection_that_waits_for_a_delayed_response_is_not_idle() {
        let shard = Arc::new(SinkShard::new(Labels::none()));
        let worker = Rc::new(ServerWorker::new(shard, Token::new()));
        let (mut client, stream) = UnixStream::pair().unwrap();
        let activity = Activity::default();
        let served = serve(
            worker,
            Rc::new(delayed()),
            stream.into(),
            Rc::clone(&activity),
        );
        let served = watched(Rc::clone(&activity), served);
        let request = async {
            let text = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";
            client.write_all(text).await.unwrap();
            while activity.get() <= clock::now() {
                yield_now().await;
            }
        };
        // All arms are polled as long as neither has ended.
        select! {
            () = served => unreachable!("the connection was closed"),
            is_busy = timeout(6 * HANDSHAKE_MAX, request) => is_busy.unwrap(),
        }
    }

    /// Passes the output of `client` to `http2`.
    fn send(client: &mut Client, http2: &mut Http2) {
        let output = client.output().to_vec();
        client.sent(output.len());
        http2.take(&output, clock::now());
    }

    #[test]
    fn a_request_that_its_client_cancels_is_not_due() {
        let mut http2 = Http2::new(&delayed().fallback);
        let mut client = Client::new(Limits::default());
        let block = H2RequestBlock::new("GET", Scheme::Http, "a", "/", &[]).unwrap();
        let streams = [(); 2].map(|()| client.request(&block, BodyLength::None).unwrap());
        let mut is_due_after = |client: &mut Client| {
            send(client, &mut http2);
            http2.due().is_some()
        };
        assert!(is_due_after(&mut client));
        for (stream, is_due) in streams.into_iter().zip([true, false]) {
            client.reset(stream, H2ErrorCode::CANCEL);
            assert_eq!(is_due_after(&mut client), is_due);
        }
    }

    /// Timeouts of a client are no flood.
    #[test]
    fn a_connection_whose_client_cancels_many_requests_goes_on() {
        const CANCELLED: u64 = 1_500;
        let services = delayed();
        let mut http2 = Http2::new(&services.fallback);
        let mut client = Client::new(Limits::default());
        let block = H2RequestBlock::new("GET", Scheme::Http, "a", "/", &[]).unwrap();
        for _ in 0..CANCELLED {
            let stream = client.request(&block, BodyLength::None).unwrap();
            send(&mut client, &mut http2);
            client.reset(stream, H2ErrorCode::CANCEL);
            send(&mut client, &mut http2);
        }
        client.request(&block, BodyLength::None).unwrap();
        send(&mut client, &mut http2);
        let due = http2.due().unwrap();
        http2.fill(due);
        let output = http2.unsent();
        let (mut read, mut statuses) = (0, Vec::new());
        while let (taken, Some(event)) = client.advance(&output[read..]).unwrap() {
            read += taken;
            if let ClientEvent::Head { head, .. } = event {
                statuses.push(head.status);
            }
        }
        assert_eq!(statuses, [200]);
        let shard = &services.fallback.shard;
        let counts = (shard.malformed.total(), shard.abandoned.total());
        assert_eq!(counts, (0, CANCELLED));
    }
}
