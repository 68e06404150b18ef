//! One connection that is served.

use std::future::pending;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use stillwell_plan::tls::Alpn;
use stillwell_scope::Token;
use stillwell_wire::server::{PlainReader, Reader, drive};
use stillwell_wire::tls::ServerTls;
use stillwell_wire::{Connection, Stream};
use tokio::io::{AsyncRead, AsyncWriteExt as _};
use tokio::select;
use tokio::time::timeout;

use self::calls::{Calls, Signals};
use super::call::Methods;
use crate::service::access::Caller;

mod calls;

/// Bytes of one read.
const BUFFER_BYTES: usize = 64 << 10;

/// Timeout of the TLS handshake.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// Answers the calls of `stream` until a side closes it. After `token` is cancelled, calls in
/// progress may end.
pub(crate) async fn serve(
    methods: Rc<dyn Methods>,
    tls: Option<ServerTls>,
    stream: Stream,
    caller: Caller,
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
    let mut calls = Calls::new(methods, caller, Rc::clone(&signals));
    let reader = CallReader { signals, token };
    let mut buffer = reader.begin();
    drive(&mut calls, &reader, &mut buffer, &mut connection).await;
    // It may have gone already.
    connection.shutdown().await.unwrap_or_default();
}

/// Returns the connection over `stream`, after its TLS handshake if TLS is configured; `None`
/// if that failed.
async fn secure(tls: Option<&ServerTls>, stream: Stream) -> Option<Connection> {
    let Some(tls) = tls else {
        return Some(stream.into());
    };
    let stream = tls.accept(stream).await.ok()?;
    let agreed = stream.handshake().alpn;
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
    use std::net::{IpAddr, Ipv4Addr};
    use std::sync::Arc;
    use std::sync::mpsc::sync_channel;

    use stillwell_http::Scheme;
    use stillwell_http::grpc::write_message;
    use stillwell_http::h2::{BodyLength, Client, H2RequestBlock, Limits};
    use stillwell_plan::tls::{ServerIdentity, ServerTlsPlan, TlsSuites};
    use stillwell_wire::server::Protocol as _;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::service::executor::LoadSlot;
    use crate::service::methods::ServiceMethods;
    use crate::service::role::Role;
    use crate::service::state::ServiceState;
    use crate::service::store::Store;

    const CALLER: Caller = Caller {
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
    };

    fn methods() -> Rc<dyn Methods> {
        Rc::new(ServiceMethods(Rc::new(ServiceState {
            role: Role::Distributor {
                tls: None,
                token: None,
            },
            token: Token::new(),
            place: LoadSlot::new(sync_channel(1).0),
            store: Store::default(),
            access: Arc::default(),
        })))
    }

    #[tokio::test]
    async fn a_watch_that_is_sent_more_than_it_takes_holds_nothing_up() {
        let mut calls = Calls::new(methods(), CALLER, Rc::default());
        let mut client = Client::new(Limits::default());
        let headers = [("content-type", "application/grpc"), ("te", "trailers")];
        let path = "/grpc.health.v1.Health/Watch";
        let request = H2RequestBlock::new("POST", Scheme::Http, "localhost", path, &headers);
        let stream = client.request(&request.unwrap(), BodyLength::Unknown);
        let mut body = Vec::new();
        for _ in 0..100 {
            write_message(b"", false, &mut body).unwrap();
        }
        client.send_body(stream.unwrap(), &body, false).unwrap();
        calls.read(client.output());
        assert!(calls.is_full());
        let mut watch = std::mem::take(&mut calls.begun);
        // The watch takes the first message, responds and continues.
        poll_fn(|context| {
            assert!(watch[0].as_mut().poll(context).is_pending());
            std::task::Poll::Ready(())
        })
        .await;
        calls.deliver_all();
        assert!(!calls.is_full());
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_sends_nothing_in_a_handshake_is_disconnected() {
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
        let served = serve(methods(), Some(tls), stream, CALLER, Token::new());
        timeout(2 * HANDSHAKE_MAX, served).await.unwrap();
        drop(silent);
    }
}
