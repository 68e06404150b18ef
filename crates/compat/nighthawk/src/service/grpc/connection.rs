//! One connection that is served.

use std::future::pending;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use stillwell_plan::tls::Alpn;
use stillwell_scope::Token;
use stillwell_wire::server::{Activity, PlainReader, Reader, busy, drive};
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

/// Answers the calls of `stream` until a side closes it, or its peer is gone without a close. After
/// `token` is cancelled, calls in progress may end. The connection is not idle while a load of one
/// of its calls is in progress.
pub(crate) async fn serve(
    methods: Rc<dyn Methods>,
    tls: Option<ServerTls>,
    (stream, activity): (Stream, Activity),
    caller: Caller,
    token: Token,
) {
    stream.set_keepalive();
    let secured = select! {
        secured = timeout(HANDSHAKE_MAX, secure(tls.as_ref(), stream)) => secured.ok().flatten(),
        () = token.cancelled() => return,
    };
    let Some(mut connection) = secured else {
        return;
    };
    let signals = Rc::new(Signals::default());
    let mut calls = Calls::new(methods, caller, Rc::clone(&signals));
    let reader = CallReader {
        signals,
        token,
        activity,
    };
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
    activity: Activity,
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
        let reading = PlainReader.read(buffer, stream, take);
        // A load that begins or ends wakes the connection, which comes here again.
        if self.signals.loads.is_empty() {
            reading.await
        } else {
            busy(&self.activity, reading).await
        }
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
    use std::os::fd::AsFd as _;
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::mpsc::sync_channel;
    use std::task::Poll;

    use rustix::net::sockopt::socket_keepalive;
    use stillwell_http::Scheme;
    use stillwell_http::grpc::{message_head, status, write_message};
    use stillwell_http::h2::{
        BodyLength, Client, ClientEvent, H2ErrorCode, H2RequestBlock, Limits, Stream as CallStream,
    };
    use stillwell_plan::tls::{ServerIdentity, ServerTlsPlan, TlsSuites};
    use stillwell_scope::clock;
    use stillwell_wire::server::{Output as _, Protocol as _, watched};
    use tokio::io::duplex;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::CommandLineOptions;
    use crate::service::executor::LoadSlot;
    use crate::service::grpc::StatusCode;
    use crate::service::methods::ServiceMethods;
    use crate::service::role::Role;
    use crate::service::state::ServiceState;
    use crate::service::store::Store;
    use crate::wire::{ExecutionRequest, encode_request};

    const CALLER: Caller = Caller {
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
    };

    fn methods() -> Rc<dyn Methods> {
        let role = Role::Distributor {
            tls: None,
            token: None,
        };
        methods_of(role, LoadSlot::new(sync_channel(1).0))
    }

    fn methods_of(role: Role, place: LoadSlot) -> Rc<dyn Methods> {
        Rc::new(ServiceMethods(Rc::new(ServiceState {
            role,
            token: Token::new(),
            place,
            store: Store::default(),
            access: Arc::default(),
        })))
    }

    /// Begins a call of the method at `path`.
    fn begin(client: &mut Client, path: &str) -> CallStream {
        let headers = [("content-type", "application/grpc"), ("te", "trailers")];
        let request = H2RequestBlock::new("POST", Scheme::Http, "localhost", path, &headers);
        let stream = client.request(&request.unwrap(), BodyLength::Unknown);
        stream.unwrap()
    }

    /// Passes the output of each side to the other, until both are silent. Returns the statuses of
    /// the calls that ended.
    fn exchange(client: &mut Client, calls: &mut Calls) -> Vec<Option<u32>> {
        let mut statuses = Vec::new();
        loop {
            let output = client.output().to_vec();
            client.sent(output.len());
            calls.read(&output);
            let answered = calls.unsent().to_vec();
            calls.advance(answered.len());
            let mut input = answered.as_slice();
            while let (bytes, Some(event)) = client.advance(input).unwrap() {
                input = &input[bytes..];
                if let ClientEvent::End { trailers, .. } = event {
                    statuses.push(trailers.and_then(status));
                }
            }
            if output.is_empty() && answered.is_empty() {
                return statuses;
            }
        }
    }

    /// Sends as much of `body` as the server permits, and removes that.
    fn send(client: &mut Client, calls: &mut Calls, stream: CallStream, body: &mut Vec<u8>) {
        loop {
            exchange(client, calls);
            if body.is_empty() {
                return;
            }
            let sent = client.send_body(stream, body, false).unwrap();
            body.drain(..sent);
            if sent == 0 {
                return;
            }
        }
    }

    /// A watch whose client has more messages than the server takes before the watch reads any:
    /// the client, the calls, the stream of the watch and the messages that are not sent.
    fn crowded_watch() -> (Client, Calls, CallStream, Vec<u8>) {
        let mut client = Client::new(Limits::default());
        let mut calls = Calls::new(methods(), CALLER, Rc::default());
        let stream = begin(&mut client, "/grpc.health.v1.Health/Watch");
        let mut body = Vec::new();
        write_message(b"", false, &mut body).unwrap();
        for _ in 0..1024 {
            write_message(&[0; 4 << 10], false, &mut body).unwrap();
        }
        send(&mut client, &mut calls, stream, &mut body);
        (client, calls, stream, body)
    }

    #[tokio::test]
    async fn a_call_with_messages_that_its_handler_does_not_take_holds_up_no_other_call() {
        let (mut client, mut calls, stream, mut body) = crowded_watch();
        assert!(!body.is_empty(), "its client is not held back");
        assert!(!calls.is_full());
        begin(&mut client, "/grpc.health.v1.Health/Check");
        exchange(&mut client, &mut calls);
        assert_eq!(calls.begun.len(), 2);
        let mut watch = calls.begun.remove(0);
        // The watch takes the first message, responds and continues.
        poll_fn(|context| {
            assert!(watch.as_mut().poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
        calls.deliver_all();
        send(&mut client, &mut calls, stream, &mut body);
        assert!(body.is_empty(), "its client is still held back");
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_its_client_gives_up_ends_although_its_messages_wait() {
        let (mut client, mut calls, stream, _) = crowded_watch();
        client.reset(stream, H2ErrorCode::CANCEL);
        exchange(&mut client, &mut calls);
        let watch = calls.begun.remove(0);
        timeout(HANDSHAKE_MAX, watch).await.unwrap();
    }

    /// All callers may send one, without a token.
    #[tokio::test(start_paused = true)]
    async fn a_health_check_with_a_long_message_ends_at_once_and_holds_nothing() {
        let signals = Rc::new(Signals::default());
        let mut client = Client::new(Limits::default());
        let mut calls = Calls::new(methods(), CALLER, Rc::clone(&signals));
        let stream = begin(&mut client, "/grpc.health.v1.Health/Check");
        // The message itself does not come.
        let head = message_head(1 << 20, false);
        client.send_body(stream, &head, false).unwrap();
        let statuses = exchange(&mut client, &mut calls);
        assert_eq!(statuses, [Some(StatusCode::InvalidArgument.number())]);
        timeout(HANDSHAKE_MAX, calls.begun.remove(0)).await.unwrap();
        // A connection that is closing ends with its last call.
        signals.is_closing.set(true);
        assert!(calls.end().is_some());
    }

    /// Waits for a message that the client does not send; returns true if the connection is idle
    /// then.
    async fn becomes_idle(signals: &Rc<Signals>) -> bool {
        let reader = CallReader {
            signals: Rc::clone(signals),
            token: Token::new(),
            activity: Activity::default(),
        };
        let (_client, mut stream) = duplex(64);
        let mut buffer = reader.begin();
        let reading = reader.read(&mut buffer, &mut stream, |_| {});
        let mut reading = pin!(watched(Rc::clone(&reader.activity), reading));
        poll_fn(|context| {
            assert!(reading.as_mut().poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
        reader.activity.get() <= clock::now()
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_not_idle_while_a_load_of_one_of_its_calls_is_in_progress() {
        // The load waits for an executor that does not begin it.
        let (sender, jobs) = sync_channel(1);
        let methods = methods_of(Role::TrafficGenerator, LoadSlot::new(sender));
        let signals = Rc::new(Signals::default());
        let mut client = Client::new(Limits::default());
        let mut calls = Calls::new(methods, CALLER, Rc::clone(&signals));
        let method = "/nighthawk.client.NighthawkService/ExecutionStream";
        let stream = begin(&mut client, method);
        let options = CommandLineOptions {
            uri: Some("http://127.0.0.1/".to_owned()),
            ..CommandLineOptions::default()
        };
        let (start, mut body) = (ExecutionRequest::Start(Box::new(options)), Vec::new());
        write_message(&encode_request(&start).unwrap(), false, &mut body).unwrap();
        send(&mut client, &mut calls, stream, &mut body);
        assert!(body.is_empty());
        assert!(becomes_idle(&signals).await);
        let mut load = calls.begun.remove(0);
        poll_fn(|context| {
            assert!(load.as_mut().poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
        // The connection is woken, as it may wait for its client.
        let woken = timeout(HANDSHAKE_MAX, signals.wake.notified());
        woken.await.unwrap();
        assert!(!becomes_idle(&signals).await);
        drop(load);
        let woken = timeout(HANDSHAKE_MAX, signals.wake.notified());
        woken.await.unwrap();
        assert!(becomes_idle(&signals).await);
        drop(jobs);
    }

    /// A host that fails closes no connection, and its load would keep the only slot.
    #[tokio::test]
    async fn a_served_connection_has_keepalive() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap());
        let (client, accepted) = tokio::join!(client, listener.accept());
        let accepted = accepted.unwrap().0;
        // Options belong to the socket, which both descriptors share.
        let socket = accepted.as_fd().try_clone_to_owned().unwrap();
        assert!(!socket_keepalive(&socket).unwrap());
        drop(client);
        let stream = (Stream::from(accepted), Activity::default());
        let served = serve(methods(), None, stream, CALLER, Token::new());
        timeout(HANDSHAKE_MAX, served).await.unwrap();
        assert!(socket_keepalive(&socket).unwrap());
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
        let stream = (stream, Activity::default());
        let served = serve(methods(), Some(tls), stream, CALLER, Token::new());
        timeout(2 * HANDSHAKE_MAX, served).await.unwrap();
        drop(silent);
    }
}
