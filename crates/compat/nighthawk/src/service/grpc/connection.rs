//! One connection that is served.

use std::future::pending;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use stillwell_plan::Alpn;
use stillwell_scope::Token;
use stillwell_wire::server::{PlainReader, Reader, drive};
use stillwell_wire::tls::ServerTls;
use stillwell_wire::{Connection, Stream};
use tokio::io::{AsyncRead, AsyncWriteExt as _};
use tokio::select;
use tokio::time::timeout;

use self::calls::{Calls, Signals};
use super::call::Methods;

mod calls;

/// Read in one go.
const BUFFER_BYTES: usize = 64 << 10;

/// So long TLS may take to be agreed on.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// Answers the calls of `stream` until either side closes it, or all have ended
/// after `token` asked for that.
pub(crate) async fn serve(
    methods: Rc<dyn Methods>,
    tls: Option<ServerTls>,
    stream: Stream,
    token: Token,
) {
    let secured = select! {
        secured = timeout(HANDSHAKE_MAX, secure(tls.as_ref(), stream)) => secured.ok().flatten(),
        () = token.cancelled() => return,
    };
    let Some(mut connection) = secured else {
        return;
    };
    let signals = Rc::new(Signals::default());
    let mut calls = Calls::new(methods, Rc::clone(&signals));
    let reader = CallReader { signals, token };
    let mut buffer = reader.begin();
    drive(&mut calls, &reader, &mut buffer, &mut connection).await;
    // It may have gone already.
    connection.shutdown().await.unwrap_or_default();
}

/// The connection over `stream`, once hands are shaken where TLS is spoken; `None`
/// where that failed.
async fn secure(tls: Option<&ServerTls>, stream: Stream) -> Option<Connection> {
    let Some(tls) = tls else {
        return Some(stream.into());
    };
    let stream = tls.accept(stream).await.ok()?;
    let agreed = stream.shaken().and_then(|handshake| handshake.alpn);
    (agreed != Some(Alpn::Http1)).then(|| stream.into())
}

/// Reads until the connection ends, and wakes it for its calls.
struct CallReader {
    signals: Rc<Signals>,
    /// Cancelled when the service is to end.
    token: Token,
}

impl Reader for CallReader {
    type State = Vec<u8>;

    fn begin(&self) -> Vec<u8> {
        vec![0; BUFFER_BYTES]
    }

    async fn read(
        &self,
        buffer: &mut Vec<u8>,
        stream: &mut (impl AsyncRead + Unpin),
        take: impl FnMut(&[u8]),
    ) -> Option<io::Result<usize>> {
        PlainReader.read(buffer, stream, take).await
    }

    /// Calls in progress may end.
    async fn stopped(&self) {
        pending().await
    }

    fn is_steered(&self) -> bool {
        true
    }

    async fn changed(&self, _version: u64) {
        let is_closing = &self.signals.is_closing;
        select! {
            () = self.signals.wake.notified() => {}
            () = self.token.cancelled(), if !is_closing.get() => is_closing.set(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::mpsc::sync_channel;

    use stillwell_http::Scheme;
    use stillwell_http::grpc::write_message;
    use stillwell_http::h2::{BodyLength, Client, Limits, RequestBlock};
    use stillwell_plan::{ServerIdentity, ServerTlsPlan, TlsSuites};
    use stillwell_wire::server::Protocol as _;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::service::executor::Place;
    use crate::service::methods::SiteMethods;
    use crate::service::role::Role;
    use crate::service::site::Site;
    use crate::service::store::Store;

    fn methods() -> Rc<dyn Methods> {
        Rc::new(SiteMethods(Rc::new(Site {
            role: Role::Distributor { tls: None },
            token: Token::new(),
            place: Place::new(sync_channel(1).0),
            store: Store::default(),
        })))
    }

    /// Messages that nobody took held up all other calls of the connection.
    #[tokio::test]
    async fn a_watch_that_is_sent_more_than_it_takes_holds_nothing_up() {
        let mut calls = Calls::new(methods(), Rc::default());
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
        calls.read(client.output());
        assert!(calls.is_full());
        let mut watch = std::mem::take(&mut calls.begun);
        // It takes the first one, answers, and goes on watching.
        poll_fn(|context| {
            assert!(watch[0].as_mut().poll(context).is_pending());
            std::task::Poll::Ready(())
        })
        .await;
        calls.deliver_all();
        assert!(!calls.is_full());
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
        let tls = ServerTls::new(&plan).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let silent = TcpStream::connect(listener.local_addr().unwrap());
        let (silent, accepted) = tokio::join!(silent, listener.accept());
        let stream = Stream::from(accepted.unwrap().0);
        let served = serve(methods(), Some(tls), stream, Token::new());
        timeout(2 * HANDSHAKE_MAX, served).await.unwrap();
        drop(silent);
    }
}
