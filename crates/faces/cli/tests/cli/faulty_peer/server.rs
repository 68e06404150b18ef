//! A server on another thread that handles each connection with a given function, over
//! TCP or behind an acceptor of TLS.

use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use stillwell_scope::{Place, Scope, Tasks, Token};
use stillwell_units::Nanos;
use stillwell_wire::Stream;
use stillwell_wire::tls::{ServerTls, TlsStream};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::interval;

/// More connections than any load here opens at once.
const CONNECTIONS_MAX: usize = 1000;

/// The server; its connections end with it.
pub(crate) struct Server {
    scope: Scope,
    pub(crate) address: SocketAddr,
    seen: Arc<AtomicU64>,
}

/// A stream of bytesover any transport.
pub(crate) trait Wire: AsyncRead + AsyncWrite + Unpin {
    /// Returns the transport.
    fn into_stream(self: Box<Self>) -> Stream;
}

impl Wire for TcpStream {
    fn into_stream(self: Box<Self>) -> Stream {
        Stream::from(*self)
    }
}

impl Wire for TlsStream {
    fn into_stream(self: Box<Self>) -> Stream {
        Self::into_stream(*self)
    }
}

/// One connection of it.
pub(crate) struct PeerSession {
    pub(crate) stream: Box<dyn Wire>,
    /// Requests that the server has seen, on all connections.
    seen: Arc<AtomicU64>,
}

impl Server {
    /// Has `handle` talk on each connection.
    pub(crate) fn start<F>(handle: impl Fn(PeerSession) -> F + Send + 'static) -> Self
    where
        F: Future<Output = std::io::Result<()>> + 'static,
    {
        Self::start_over(None, handle)
    }

    /// Has `handle` talk on each connection, once hands are shaken where it
    /// speaks `tls`.
    pub(crate) fn start_over<F>(
        tls: Option<ServerTls>,
        handle: impl Fn(PeerSession) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = std::io::Result<()>> + 'static,
    {
        let mut scope = Scope::new(&Token::new());
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&seen);
        let serve = async move |token: Token| {
            let listener = TcpListener::from_std(listener)?;
            let mut tasks = Tasks::new(CONNECTIONS_MAX);
            let handle = Rc::new(handle);
            loop {
                // All arms are cancel-safe.
                let stream = tokio::select! {
                    biased;
                    () = token.cancelled() => return Ok(()),
                    () = tasks.next_end(), if !tasks.is_empty() => continue,
                    accepted = listener.accept(), if tasks.has_room() => accepted?.0,
                };
                stream.set_nodelay(true)?;
                let (handle, seen) = (Rc::clone(&handle), Arc::clone(&counter));
                let tls = tls.clone();
                tasks.spawn(async move {
                    let stream: Box<dyn Wire> = match tls {
                        None => Box::new(stream),
                        Some(tls) => match tls.accept(Stream::from(stream)).await {
                            Ok(stream) => Box::new(stream),
                            Err(_) => return,
                        },
                    };
                    // However a connection ends, that is its peer's doing or ours.
                    drop(handle(PeerSession { stream, seen }).await);
                });
            }
        };
        scope.worker(Place::default(), "faulty", serve).unwrap();
        Self {
            scope,
            address,
            seen,
        }
    }

    /// Number of requests received so far.
    pub(crate) fn seen(&self) -> u64 {
        self.seen.load(Ordering::Relaxed)
    }

    /// Ends it; gives how many requests it has seen.
    pub(crate) fn stop(self) -> u64 {
        let ends = self.scope.close(Nanos::from_secs(20));
        assert!(ends.iter().all(|end| end.result.is_ok()), "{ends:?}");
        self.seen.load(Ordering::Relaxed)
    }
}

impl PeerSession {
    /// One more request has come whole.
    pub(crate) fn saw_request(&self) {
        self.seen.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends the connection by a reset.
    pub(crate) fn reset(self) -> std::io::Result<()> {
        self.stream.into_stream().reset();
        Ok(())
    }

    /// Sends what TLS has kept back of what was said.
    pub(crate) async fn flush(&mut self) -> std::io::Result<()> {
        self.stream.flush().await
    }

    /// Says the same again and again, 8 KiB or so a millisecond: enough for any
    /// limit, and little enough for a machine that does other things.
    pub(crate) async fn write_endlessly(&mut self, again: &[u8]) -> std::io::Result<()> {
        let many = again.repeat(8192 / again.len());
        let mut beat = interval(Duration::from_millis(1));
        loop {
            beat.tick().await;
            self.stream.write_all(&many).await?;
        }
    }

    /// Ends what it says, and reads on until the peer has gone. Were the
    /// connection dropped with something unread, or with something on its way to
    /// it (the answer to settings is), the kernel would send a reset instead.
    pub(crate) async fn close(mut self) -> std::io::Result<()> {
        self.stream.shutdown().await?;
        self.fall_silent().await
    }

    /// Reads on and says nothing, until the peer has gone.
    pub(crate) async fn fall_silent(mut self) -> std::io::Result<()> {
        self.flush().await?;
        let mut buffer = [0; 4096];
        while self.stream.read(&mut buffer).await? > 0 {}
        Ok(())
    }
}
