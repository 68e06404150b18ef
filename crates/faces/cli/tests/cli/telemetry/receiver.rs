//! Receivers that keep exported metrics and spans.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener as StdTcpListener, UdpSocket};
use std::sync::mpsc::{Receiver as Queue, SyncSender, sync_channel};
use std::time::Duration;

use stillwell_http::h2::{BodyLength, H2ResponseBlock, Limits, Server, ServerEvent};
use stillwell_http::{H1RequestEvent, RequestParser, write_response};
use stillwell_scope::{Place, Scope, Tasks, Token};
use stillwell_units::Nanos;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// More than any load here exports.
const REQUESTS_MAX: usize = 100_000;

/// One request as it came.
#[derive(Clone, Debug)]
pub(super) struct ReceivedRequest {
    pub(super) target: String,
    /// Names in lower case.
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Vec<u8>,
}

/// A server that answers every request alike and keeps it.
pub(super) struct HttpReceiver {
    scope: Scope,
    pub(super) address: SocketAddr,
    received: Queue<ReceivedRequest>,
}

impl HttpReceiver {
    /// Over HTTP/1.1.
    pub(super) fn start(status: u16) -> Self {
        Self::serving(async move |stream, keep| serve_one(stream, status, &keep).await)
    }

    /// Over HTTP/2 without TLS.
    pub(super) fn start_http2() -> Self {
        Self::serving(async |stream, keep| serve_http2(stream, &keep).await)
    }

    fn serving(
        serve_one: impl AsyncFn(TcpStream, SyncSender<ReceivedRequest>) -> std::io::Result<()>
        + Clone
        + Send
        + 'static,
    ) -> Self {
        let listener = StdTcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, output) = sync_channel(REQUESTS_MAX);
        let mut scope = Scope::new(&Token::new());
        let serve = async move |token: Token| {
            let listener = TcpListener::from_std(listener)?;
            let mut tasks = Tasks::new(100);
            loop {
                // All arms are cancel-safe.
                let stream = tokio::select! {
                    biased;
                    () = token.cancelled() => return Ok(()),
                    () = tasks.next_end(), if !tasks.is_empty() => continue,
                    accepted = listener.accept(), if tasks.has_room() => accepted?.0,
                };
                let (sender, serve_one) = (sender.clone(), serve_one.clone());
                tasks.spawn(async move {
                    // However a connection ends, that is its peer's doing.
                    drop(serve_one(stream, sender).await);
                });
            }
        };
        scope.worker(Place::default(), "receiver", serve).unwrap();
        Self {
            scope,
            address,
            received: output,
        }
    }

    /// Ends it and returns all requests, in order.
    pub(super) fn stop(self) -> Vec<ReceivedRequest> {
        let ends = self.scope.close(Nanos::from_secs(20));
        assert!(ends.iter().all(|end| end.result.is_ok()), "{ends:?}");
        self.received.try_iter().collect()
    }
}

async fn serve_one(
    mut stream: TcpStream,
    status: u16,
    keep: &SyncSender<ReceivedRequest>,
) -> std::io::Result<()> {
    let mut parser = RequestParser::new();
    let mut buffer = vec![0; 64 << 10];
    let mut output = None;
    loop {
        let length = stream.read(&mut buffer).await?;
        if length == 0 {
            return Ok(());
        }
        let mut read = 0;
        loop {
            let (taken, event) = parser.advance(&buffer[read..length]).unwrap();
            read += taken;
            match event {
                None => break,
                Some(H1RequestEvent::Head(head)) => {
                    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                    let headers = head.headers();
                    let headers = headers.map(|(k, v)| (text(k).to_ascii_lowercase(), text(v)));
                    output = Some(ReceivedRequest {
                        target: head.target.to_owned(),
                        headers: headers.collect(),
                        body: Vec::new(),
                    });
                }
                Some(H1RequestEvent::Body(part)) => {
                    output.as_mut().unwrap().body.extend_from_slice(part);
                }
                Some(H1RequestEvent::End) => {
                    keep.send(output.take().unwrap()).unwrap();
                    let mut answer = Vec::new();
                    write_response(status, &[], b"", &mut answer).unwrap();
                    stream.write_all(&answer).await?;
                }
            }
        }
    }
}

async fn serve_http2(
    mut stream: TcpStream,
    keep: &SyncSender<ReceivedRequest>,
) -> std::io::Result<()> {
    let mut server = Server::new(Limits::default());
    let answer = H2ResponseBlock::new(200, &[]).unwrap();
    let mut buffer = vec![0; 64 << 10];
    loop {
        while !server.output().is_empty() {
            let written = stream.write(server.output()).await?;
            server.sent(written);
        }
        let length = stream.read(&mut buffer).await?;
        if length == 0 {
            return Ok(());
        }
        let mut read = 0;
        loop {
            let (taken, event) = server.advance(&buffer[read..length]).unwrap();
            read += taken;
            match event {
                None => break,
                Some(ServerEvent::Head { head, .. }) => {
                    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                    let headers = head.fields.iter().map(|(k, v)| (text(k), text(v)));
                    let printed = ReceivedRequest {
                        target: head.path.to_owned(),
                        headers: headers.collect(),
                        body: Vec::new(),
                    };
                    keep.send(printed).unwrap();
                }
                Some(ServerEvent::End { stream, .. }) => {
                    server.respond(stream, &answer, BodyLength::None).unwrap();
                }
                Some(_) => {}
            }
        }
    }
}

/// A socket that keeps datagrams.
pub(super) struct DatagramReceiver {
    socket: UdpSocket,
}

impl DatagramReceiver {
    pub(super) fn start() -> (Self, SocketAddr) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        (Self { socket }, address)
    }

    /// All that waits: the kernel keeps it until then.
    pub(super) fn lines(&self) -> Vec<String> {
        self.socket
            .set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        let mut buffer = vec![0; 64 << 10];
        let mut lines = Vec::new();
        while let Ok(length) = self.socket.recv(&mut buffer) {
            let text = std::str::from_utf8(&buffer[..length]).unwrap();
            lines.extend(text.lines().map(str::to_owned));
        }
        lines
    }
}
