//! The side that connects.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::{Future as _, poll_fn};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{
    ClientConfig, ConnectionEvent, DatagramEvent, Endpoint, EndpointConfig,
    RandomConnectionIdGenerator, Transmit,
};
use rustls::pki_types::ServerName;
use stillwell_plan::tls::Alpn;
use stillwell_scope::clock;
use stillwell_units::{Moment, Nanos};
use tokio::net::lookup_host;
use tokio::task::unconstrained;
use tokio::time::{Sleep, sleep_until};

use super::arrival::Look;
use super::buffers::{Buffers, Received};
use super::line::{Line, QuicEvent};
use super::noted::{Noted, initial_suite};
use super::path::{Datagrams, Path};
use super::refused::{QuicEnd, QuicRefused};
use super::socket::Socket;
use super::times::Times;
use super::transport;
use crate::tls::{ClientTls, Handshake, TlsError, name_of_signature, suite_name};

/// Opens connections of one worker.
#[derive(Clone, Debug)]
pub struct QuicClient {
    config: ClientConfig,
    endpoint: Arc<EndpointConfig>,
    buffers: Rc<RefCell<Buffers>>,
    times: Times,
}

/// Address of the peer where [`Datagrams`] carry the connection: the library needs one for
/// its bookkeeping.
const LED_TO: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 443);

/// One connection and what carries it.
#[derive(Debug)]
pub struct QuicConnection {
    line: Line,
    endpoint: Endpoint,
    path: Path,
    buffers: Rc<RefCell<Buffers>>,
    /// Received datagrams that are not processed yet, each with its arrival time.
    arrived: VecDeque<(Moment, ConnectionEvent)>,
    /// When the last one that was looked at came.
    came: Moment,
    /// When the socket was found empty.
    empty: Moment,
    /// The transmission under way, and its bytes.
    unsent: Option<Transmit>,
    bytes: Vec<u8>,
    /// Goes off no later than the connection is due.
    sleep: Pin<Box<Sleep>>,
    armed: Option<Instant>,
    begun: Moment,
    /// True once the carrier of the datagrams has ended.
    is_cut: bool,
    /// Notes on its handshake, until it has ended.
    noted: Option<Box<Noted>>,
    address: String,
    peer: String,
}

impl QuicClient {
    /// Speaks TLS as `tls` says, which was made to offer [`Alpn::Http3`]. To be called
    /// on the worker's own thread.
    ///
    /// # Errors
    /// [`TlsError::NoTls13`] where TLS 1.3 is not among what may be spoken.
    pub fn new(tls: &ClientTls) -> Result<Self, TlsError> {
        let initial = initial_suite().ok_or(TlsError::NoTls13)?;
        let crypto = QuicClientConfig::with_initial(tls.config(), initial);
        let crypto = crypto.map_err(|_| TlsError::NoTls13)?;
        let mut config = ClientConfig::new(Arc::new(crypto));
        config.transport_config(transport::client_settings());
        let mut endpoint = EndpointConfig::default();
        // Each connection has a socket of its own: its packets need no name.
        endpoint.cid_generator(|| Box::new(RandomConnectionIdGenerator::new(0)));
        Ok(Self {
            config,
            endpoint: Arc::new(endpoint),
            buffers: Rc::new(RefCell::new(Buffers::new())),
            times: Times::new(),
        })
    }

    /// A connection to `host:port` in `address`, from the local address `source` where
    /// there is one, with the server of this `name`; nothing is sent before
    /// [`QuicConnection::handshake`].
    ///
    /// # Errors
    /// [`QuicRefused`] where there is no such address or no socket is available.
    pub async fn open(
        &self,
        source: Option<SocketAddr>,
        address: &str,
        name: &ServerName<'static>,
    ) -> Result<QuicConnection, QuicRefused> {
        let failed = |error| QuicRefused::connect(address, error);
        let (socket, peer) = connect(source, address).await.map_err(failed)?;
        let socket = Socket::new(socket).map_err(failed)?;
        let allows_large = !socket.may_fragment();
        self.begin(Path::Socket(socket), allows_large, peer, address, name)
    }

    /// The same over `datagrams`, which lead to `address`.
    ///
    /// # Errors
    /// [`QuicRefused`] where the name is none.
    pub fn open_over(
        &self,
        datagrams: Box<dyn Datagrams>,
        address: &str,
        name: &ServerName<'static>,
    ) -> Result<QuicConnection, QuicRefused> {
        // The limit of the carrier is unknown, so no datagram is longer than any path takes.
        self.begin(Path::Led(datagrams), false, LED_TO, address, name)
    }

    fn begin(
        &self,
        path: Path,
        allows_large: bool,
        peer: SocketAddr,
        address: &str,
        name: &ServerName<'static>,
    ) -> Result<QuicConnection, QuicRefused> {
        let mut endpoint = Endpoint::new(Arc::clone(&self.endpoint), None, allows_large, None);
        let begun = clock::now();
        let now = self.times.instant(begun);
        let server_name = name.to_str();
        drop(Noted::take());
        let connected = endpoint.connect(now, self.config.clone(), peer, &server_name);
        let (handle, connection) = connected.map_err(|error| {
            QuicRefused::connect(address, io::Error::new(io::ErrorKind::InvalidInput, error))
        })?;
        Ok(QuicConnection {
            line: Line {
                connection,
                handle,
                times: self.times,
                cut: None,
            },
            endpoint,
            path,
            buffers: Rc::clone(&self.buffers),
            arrived: VecDeque::new(),
            came: begun,
            empty: begun,
            unsent: None,
            bytes: Vec::new(),
            sleep: Box::pin(sleep_until(now.into())),
            armed: None,
            begun,
            is_cut: false,
            noted: Some(Box::new(Noted::take())),
            address: address.to_owned(),
            peer: server_name.into_owned(),
        })
    }
}

/// A UDP socket that sends to `address` alone; of the addresses of a name the first that is
/// available.
async fn connect(
    source: Option<SocketAddr>,
    address: &str,
) -> io::Result<(std::net::UdpSocket, SocketAddr)> {
    let fits = |peer: &SocketAddr| source.is_none_or(|local| local.is_ipv4() == peer.is_ipv4());
    let mut last = None;
    for peer in lookup_host(address).await?.filter(fits) {
        let local = source.unwrap_or_else(|| match peer {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        });
        let connected = std::net::UdpSocket::bind(local).and_then(|socket| {
            socket.set_nonblocking(true)?;
            socket.connect(peer)?;
            // For the unspecified address the kernel takes that of the loopback, from which answers come.
            let peer = socket.peer_addr()?;
            Ok((socket, peer))
        });
        match connected {
            Ok(connected) => return Ok(connected),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| {
        let message = "it has no address of the same family (IPv4 or IPv6) as the local address";
        io::Error::new(io::ErrorKind::AddrNotAvailable, message)
    }))
}

impl QuicConnection {
    /// Performs the handshake. Not to be called again.
    ///
    /// # Errors
    /// [`QuicRefused`] with what to do about it.
    pub async fn handshake(&mut self) -> Result<Handshake, QuicRefused> {
        loop {
            match poll_fn(|context| self.poll_event(context)).await {
                QuicEvent::Connected => {
                    // The peer's hands are shaken only by what we still have to send,
                    // and a connection that is closed sends nothing else.
                    poll_fn(|context| {
                        self.flush(context);
                        Poll::Ready(())
                    })
                    .await;
                    let noted = self.noted.take().unwrap_or_default();
                    return Ok(Handshake {
                        begun: self.begun,
                        ended: clock::now(),
                        resumed: !noted.is_full,
                        alpn: Some(Alpn::Http3),
                        version: "TLSv1.3",
                        suite: noted.suite.map_or("unknown", suite_name),
                        group: noted.group.and_then(|group| group.as_str()),
                        signature: noted.signature.and_then(name_of_signature),
                    });
                }
                QuicEvent::Lost(end) => {
                    let noted = self.noted.as_deref();
                    return Err(QuicRefused::of(&self.address, &self.peer, noted, end));
                }
                _ => {}
            }
        }
    }

    /// Its streams and events.
    pub const fn line(&mut self) -> &mut Line {
        &mut self.line
    }

    /// Arrival time of the last event, by the kernel's clock: before it was read. With
    /// [`Datagrams`], the time at which they gave it.
    #[must_use]
    pub const fn came(&self) -> Moment {
        self.came
    }

    /// Returns the next event, datagram by datagram.
    pub fn next_event(&mut self) -> Option<QuicEvent> {
        loop {
            if let Some(event) = self.line.next_event() {
                return Some(event);
            }
            let (came, event) = self.arrived.pop_front()?;
            self.came = came;
            self.line.connection.handle_event(event);
            if let Some(noted) = &mut self.noted {
                noted.update();
            }
        }
    }

    /// Sends what is due, receives, and waits for the next event. Take earlier events by
    /// [`Self::next_event`] first: their answers are sent here.
    pub fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<QuicEvent> {
        loop {
            if let Some(event) = self.next_event() {
                return Poll::Ready(event);
            }
            self.flush(context);
            let came = self.receive(context);
            if !self.is_due(context) && !came && self.line.cut.is_none() {
                return Poll::Pending;
            }
        }
    }

    /// Sends all that is due, as far as the kernel takes it.
    pub fn flush(&mut self, context: &mut Context<'_>) {
        let now = self.line.times.now();
        loop {
            if let Some(transmit) = &self.unsent {
                match self.path.poll_send(context, transmit, &self.bytes) {
                    Poll::Pending => break,
                    Poll::Ready(sent) => {
                        self.unsent = None;
                        self.look_at(sent.err().as_ref());
                    }
                }
            }
            self.bytes.clear();
            let segments = self.path.segments_max();
            let connection = &mut self.line.connection;
            self.unsent = connection.poll_transmit(now, segments, &mut self.bytes);
            if self.unsent.is_none() {
                break;
            }
        }
        while let Some(event) = self.line.connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(self.line.handle, event) {
                self.line.connection.handle_event(event);
            }
        }
    }

    /// Receives once; whether anything came.
    fn receive(&mut self, context: &mut Context<'_>) -> bool {
        let socket = match &mut self.path {
            Path::Socket(socket) => socket,
            Path::Led(_) => return self.receive_led(context),
        };
        match socket.poll_readable(context) {
            Poll::Pending => return false,
            Poll::Ready(Err(error)) => {
                self.look_at(Some(&error));
                return false;
            }
            Poll::Ready(Ok(())) => {}
        }
        let wall = clock::wall();
        let look = Look {
            wall,
            now: clock::now(),
            empty: self.empty,
        };
        let now = self.line.times.instant(look.now);
        let (endpoint, arrived) = (&mut self.endpoint, &mut self.arrived);
        let mut answer = Vec::new();
        let received = self.buffers.borrow_mut().receive(socket, |meta, bytes| {
            let ecn = meta.ecn.map(|ecn| ecn as u8);
            let ecn = ecn.and_then(quinn_proto::EcnCodepoint::from_bits);
            let event = endpoint.handle(now, meta.addr, meta.dst_ip, ecn, bytes, &mut answer);
            if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
                let seen = meta.timestamp.map(Nanos::from);
                arrived.push_back((look.arrival(seen), event));
            }
            answer.clear();
        });
        if matches!(received, Ok(Received::All)) {
            self.empty = look.now;
        }
        match received {
            Ok(_) => true,
            // Looked at again: the kernel says when.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => true,
            Err(error) => {
                self.look_at(Some(&error));
                true
            }
        }
    }

    /// The same from [`Datagrams`], which give no arrival time.
    fn receive_led(&mut self, context: &mut Context<'_>) -> bool {
        let Path::Led(datagrams) = &mut self.path else {
            return false;
        };
        let times = self.line.times;
        let (endpoint, arrived) = (&mut self.endpoint, &mut self.arrived);
        let mut answer = Vec::new();
        let received = datagrams.poll_receive(context, &mut |datagram| {
            let came = clock::now();
            let now = times.instant(came);
            let event = endpoint.handle(now, LED_TO, None, None, datagram.into(), &mut answer);
            if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
                arrived.push_back((came, event));
            }
            answer.clear();
        });
        match received {
            Poll::Pending => false,
            Poll::Ready(Ok(())) => true,
            Poll::Ready(Err(error)) => {
                self.look_at(Some(&error));
                false
            }
        }
    }

    /// Handles a timeout that is due and returns true; else the task is woken when it is. The
    /// runtime's timer is set again only for an earlier time.
    fn is_due(&mut self, context: &mut Context<'_>) -> bool {
        loop {
            let Some(due) = self.line.connection.poll_timeout() else {
                return false;
            };
            let now = self.line.times.now();
            if due <= now {
                self.line.connection.handle_timeout(now);
                if let Some(noted) = &mut self.noted {
                    noted.update();
                }
                return true;
            }
            if self.armed.is_none_or(|armed| due < armed) {
                self.sleep.as_mut().reset(due.into());
                self.armed = Some(due);
            }
            if pin!(unconstrained(self.sleep.as_mut()))
                .poll(context)
                .is_pending()
            {
                return false;
            }
            self.armed = None;
        }
    }

    /// Handles a failure of the path: a port without a listener, or the end of [`Datagrams`].
    /// Both end the connection.
    fn look_at(&mut self, error: Option<&io::Error>) {
        let Some(error) = error.filter(|_| !self.line.connection.is_closed()) else {
            return;
        };
        let is_refused = error.kind() == io::ErrorKind::ConnectionRefused;
        match self.path {
            Path::Socket(_) if !is_refused => {}
            Path::Socket(_) => self.line.cut = Some(QuicEnd::Unreachable),
            Path::Led(_) if self.is_cut => {}
            Path::Led(_) => {
                self.is_cut = true;
                self.line.cut = Some(QuicEnd::Cut(error.to_string()));
            }
        }
    }
}
