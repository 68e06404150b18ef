//! One connection that is served.

use std::future::{pending, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use stillwell_http::h2;
use stillwell_plan::Alpn;
use stillwell_scope::{Tasks, Token};
use stillwell_wire::{Connection, Stream};
use tokio::io::{AsyncReadExt as _, AsyncWrite as _, AsyncWriteExt as _};
use tokio::select;
use tokio::sync::mpsc::{Sender, channel};
use tokio::time::timeout;

use self::core::Core;
use super::call::Out;
use crate::service::site::Site;

mod core;

/// Calls at once: as many as there may be streams.
const CALLS_MAX: usize = 128;

/// Read in one go.
const BUFFER_BYTES: usize = 64 << 10;

/// Messages of all calls that wait for the connection; more block those who send
/// them.
const OUTS_MAX: usize = 64;

/// What may wait for the client to take it, in bytes.
const UNSENT_MAX: usize = 4 << 20;

/// So long TLS may take to be agreed on.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// What happened.
enum Event {
    Read(io::Result<usize>),
    /// The call on this stream can take a message.
    Room(h2::Stream),
    Out(Out),
    Ended,
    Close,
}

/// Answers the calls of `stream` until either side closes it, or all have ended
/// after `token` asked for that.
pub(crate) async fn serve(site: Rc<Site>, stream: Stream, token: Token) {
    let secured = select! {
        secured = timeout(HANDSHAKE_MAX, secure(&site, stream)) => secured.ok().flatten(),
        () = token.cancelled() => return,
    };
    if let Some(mut connection) = secured {
        converse(site, &mut connection, &token).await;
        // It may have gone already.
        connection.shutdown().await.unwrap_or_default();
    }
}

/// The connection over `stream`, once hands are shaken where TLS is spoken; `None`
/// where that failed.
async fn secure(site: &Site, stream: Stream) -> Option<Connection> {
    let Some(tls) = &site.tls else {
        return Some(stream.into());
    };
    let stream = tls.accept(stream).await.ok()?;
    let agreed = stream.shaken().and_then(|handshake| handshake.alpn);
    (agreed != Some(Alpn::Http1)).then(|| stream.into())
}

async fn converse(site: Rc<Site>, connection: &mut Connection, token: &Token) {
    let (out, mut outs) = channel(OUTS_MAX);
    let mut core = Core::new(site, out);
    // Dropped with the connection: a call without a client is given up.
    let mut tasks = Tasks::new(CALLS_MAX);
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut is_closing = false;
    loop {
        for task in core.begun() {
            tasks.spawn(task);
        }
        if send(&mut core, connection).await.is_err() || core.is_over(is_closing) {
            return;
        }
        let waiting = core.waiting();
        let (reads, writes) = (waiting.is_none(), core.unsent_bytes() < UNSENT_MAX);
        // All arms are cancel-safe.
        let event = select! {
            read = connection.read(&mut buffer), if reads => Event::Read(read),
            stream = room(waiting) => Event::Room(stream),
            Some(out) = outs.recv(), if writes => Event::Out(out),
            () = tasks.next_end(), if !tasks.is_empty() => Event::Ended,
            () = token.cancelled(), if !is_closing => Event::Close,
        };
        match event {
            Event::Read(Ok(0) | Err(_)) => return,
            Event::Read(Ok(length)) => core.take(&buffer[..length]),
            Event::Room(stream) => core.deliver(stream),
            Event::Out(out) => core.out(out),
            Event::Ended => {}
            Event::Close => {
                is_closing = true;
                core.close();
            }
        }
    }
}

/// Waits until the handler of a call can take a message, or takes no more of them.
async fn room(waiting: Option<(h2::Stream, Sender<Vec<u8>>)>) -> h2::Stream {
    let Some((stream, sender)) = waiting else {
        return pending().await;
    };
    drop(sender.reserve().await);
    stream
}

/// Sends all that is laid out.
async fn send(core: &mut Core, connection: &mut Connection) -> io::Result<()> {
    let mut has_sent = false;
    loop {
        core.pump();
        if core.unsent().is_empty() {
            return if has_sent {
                connection.flush().await
            } else {
                Ok(())
            };
        }
        has_sent = true;
        let write = |context: &mut std::task::Context<'_>| {
            Pin::new(&mut *connection).poll_write(context, core.unsent())
        };
        match poll_fn(write).await? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            length => core.sent(length),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use stillwell_http::Scheme;
    use stillwell_http::grpc::write_message;
    use stillwell_http::h2::{BodyLength, Client, Limits, RequestBlock};
    use stillwell_plan::{ServerIdentity, ServerTlsPlan, TlsSuites};
    use stillwell_wire::tls::ServerTls;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::service::bind::Role;
    use crate::service::executor::Place;
    use crate::service::store::Store;

    fn site(tls: Option<ServerTls>) -> Site {
        Site {
            role: Role::Distributor { tls: None },
            tls,
            token: Token::new(),
            place: Place::new(sync_channel(1).0),
            store: Store::default(),
        }
    }

    /// Messages that nobody took held up all other calls of the connection.
    #[tokio::test]
    async fn a_watch_that_is_sent_more_than_it_takes_holds_nothing_up() {
        let (out, _outs) = channel(OUTS_MAX);
        let mut core = Core::new(Rc::new(site(None)), out);
        let mut client = Client::new(Limits::default());
        let headers = [("content-type", "application/grpc"), ("te", "trailers")];
        let path = "/grpc.health.v1.Health/Watch";
        let request = RequestBlock::new("POST", Scheme::Http, "localhost", path, &headers);
        let stream = client.request(&request.unwrap(), BodyLength::Unknown);
        let mut body = Vec::new();
        for _ in 0..100 {
            write_message(b"", false, &mut body).unwrap();
        }
        client.send_body(stream.unwrap(), &body, false).unwrap();
        core.take(client.output());
        let (waiting, _) = core.waiting().unwrap();
        let mut watch = core.begun();
        // It takes the first one, answers, and goes on watching.
        poll_fn(|context| {
            assert!(watch[0].as_mut().poll(context).is_pending());
            std::task::Poll::Ready(())
        })
        .await;
        core.deliver(waiting);
        assert!(core.waiting().is_none());
    }

    /// It held a place among the connections for ever.
    #[tokio::test(start_paused = true)]
    async fn who_says_nothing_in_a_handshake_is_sent_away() {
        let plan = ServerTlsPlan {
            identity: ServerIdentity::SelfSigned {
                names: vec!["localhost".to_owned()],
            },
            alpn: vec![Alpn::Http2],
            client_roots: Vec::new(),
            resumption: true,
            suites: TlsSuites::default(),
        };
        let site = site(Some(ServerTls::new(&plan).unwrap()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let silent = TcpStream::connect(listener.local_addr().unwrap());
        let (silent, accepted) = tokio::join!(silent, listener.accept());
        let stream = Stream::from(accepted.unwrap().0);
        let served = serve(Rc::new(site), stream, Token::new());
        timeout(2 * HANDSHAKE_MAX, served).await.unwrap();
        drop(silent);
    }
}
