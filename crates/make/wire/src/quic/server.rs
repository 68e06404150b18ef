//! The side that is connected to.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::future::Future as _;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::{
    ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, Incoming, ServerConfig, Transmit,
};
use quinn_udp::RecvMeta;
use tokio::task::unconstrained;
use tokio::time::{Sleep, sleep_until};

use super::buffers::Buffers;
use super::line::Line;
use super::noted::{Noted, initial_suite};
use super::socket::Socket;
use super::times::Times;
use super::transport;
use crate::ListenError;
use crate::listen;
use crate::tls::{ServerTls, TlsError};

/// Nothing is looked at later than this, due or not: a moment that was put off leaves
/// its mark until then.
const LOOK_MAX: Duration = Duration::from_secs(1);

/// A socket that is bound, of one worker.
#[derive(Debug)]
pub struct BoundQuic {
    socket: std::net::UdpSocket,
    config: Arc<ServerConfig>,
}

/// Binds a socket for each of `workers` to `address`, which share what comes by
/// connection. Each client may have `streams_max` requests under way.
///
/// # Errors
/// [`BindQuicError`] where the address is not available, or the plan excludes TLS 1.3.
pub fn bind_quic(
    address: SocketAddr,
    workers: u16,
    tls: &ServerTls,
    streams_max: u32,
) -> Result<Vec<BoundQuic>, BindQuicError> {
    let initial = initial_suite().ok_or(TlsError::NoTls13)?;
    let crypto = QuicServerConfig::with_initial(tls.config(), initial);
    let crypto = crypto.map_err(|_| TlsError::NoTls13)?;
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(transport::server_settings(streams_max));
    config.migration(false);
    let config = Arc::new(config);
    let sockets = listen::udp_shared(address, workers)?;
    let bound = sockets.into_iter().map(|socket| BoundQuic {
        socket,
        config: Arc::clone(&config),
    });
    Ok(bound.collect())
}

/// Reasons for which nothing listens.
#[derive(Debug, thiserror::Error)]
pub enum BindQuicError {
    /// The address is not available.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// TLS of the version that QUIC takes is not to be spoken.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl BoundQuic {
    /// The address on which it listens.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.socket.local_addr().ok()
    }
}

/// An event for a server's worker.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Came {
    /// One has come, or something has happened on it.
    Line(usize),
    /// A handshake has failed.
    Failed,
}

/// All connections of one socket.
#[derive(Debug)]
pub struct QuicServer {
    socket: Socket,
    endpoint: Endpoint,
    /// By the numbers of their handles.
    lines: Vec<Option<Served>>,
    open: usize,
    open_max: usize,
    touched: VecDeque<usize>,
    failed: u64,
    /// Deadlines of connections. An entry that was postponed since is skipped.
    timers: BinaryHeap<Reverse<(Instant, usize)>>,
    sleep: Pin<Box<Sleep>>,
    asleep_until: Option<Instant>,
    arrived: Vec<(RecvMeta, BytesMut)>,
    buffers: Buffers,
    unsent: Option<Transmit>,
    bytes: Vec<u8>,
    /// Lines that have more to send than the kernel took.
    blocked: VecDeque<usize>,
    times: Times,
}

#[derive(Debug)]
struct Served {
    line: Line,
    noted: Noted,
    is_touched: bool,
    is_blocked: bool,
    armed: Option<Instant>,
}

impl QuicServer {
    /// Serves `open_max` connections at once; more are refused.
    ///
    /// # Errors
    /// The kernel's answer where the runtime cannot watch the socket.
    ///
    /// # Panics
    /// Outside of a worker: there is no runtime.
    pub fn new(bound: BoundQuic, open_max: usize) -> io::Result<Self> {
        let socket = Socket::new(bound.socket)?;
        let allows_large = !socket.may_fragment();
        let config = Arc::new(EndpointConfig::default());
        let times = Times::new();
        Ok(Self {
            endpoint: Endpoint::new(config, Some(bound.config), allows_large, None),
            socket,
            lines: Vec::new(),
            open: 0,
            open_max,
            touched: VecDeque::new(),
            failed: 0,
            timers: BinaryHeap::new(),
            sleep: Box::pin(sleep_until(times.now().into())),
            asleep_until: None,
            arrived: Vec::new(),
            buffers: Buffers::new(),
            unsent: None,
            bytes: Vec::new(),
            blocked: VecDeque::new(),
            times,
        })
    }

    /// The next connection on which something may have happened, by a number that is
    /// its own until it is gone; it is to be flushed before the next call.
    ///
    /// # Errors
    /// What the kernel says of the socket.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Came>> {
        loop {
            if self.failed > 0 {
                self.failed -= 1;
                return Poll::Ready(Ok(Came::Failed));
            }
            while let Some(key) = self.touched.pop_front() {
                if let Some(served) = self.served(key) {
                    served.is_touched = false;
                    return Poll::Ready(Ok(Came::Line(key)));
                }
            }
            self.unblock(context);
            let came = self.receive(context)?;
            if !self.are_due(context) && !came {
                return Poll::Pending;
            }
        }
    }

    /// The connection of this number; `None` where it is gone.
    pub fn line(&mut self, key: usize) -> Option<&mut Line> {
        self.served(key).map(|served| &mut served.line)
    }

    /// Returns true if the handshake of a connection resumed a session.
    pub fn is_resumed(&mut self, key: usize) -> bool {
        self.served(key).is_some_and(|served| !served.noted.is_full)
    }

    /// Sends what is due on a connection. Whether it is still there.
    pub fn flush(&mut self, context: &mut Context<'_>, key: usize) -> bool {
        self.send(context, key);
        let Some(served) = self.lines.get_mut(key).and_then(Option::as_mut) else {
            return false;
        };
        let (handle, mut is_drained) = (served.line.handle, false);
        while let Some(event) = served.line.connection.poll_endpoint_events() {
            is_drained |= event.is_drained();
            if let Some(event) = self.endpoint.handle_event(handle, event) {
                served.line.connection.handle_event(event);
            }
        }
        if is_drained {
            self.lines[key] = None;
            self.open -= 1;
            return false;
        }
        self.arm(key);
        true
    }

    /// Ends all connections for this reason, and says so as far as the kernel takes it.
    pub fn close(&mut self, context: &mut Context<'_>, code: u64) {
        for key in 0..self.lines.len() {
            if let Some(line) = self.line(key) {
                line.close(code);
                self.send(context, key);
            }
        }
    }

    fn served(&mut self, key: usize) -> Option<&mut Served> {
        self.lines.get_mut(key).and_then(Option::as_mut)
    }

    fn touch(&mut self, key: usize) {
        if let Some(served) = self.lines.get_mut(key).and_then(Option::as_mut)
            && !std::mem::replace(&mut served.is_touched, true)
        {
            self.touched.push_back(key);
        }
    }

    /// Goes on with what the kernel did not take.
    fn unblock(&mut self, context: &mut Context<'_>) {
        while self.try_unsent(context)
            && let Some(key) = self.blocked.pop_front()
        {
            if let Some(served) = self.served(key) {
                served.is_blocked = false;
                self.flush(context, key);
            }
        }
    }

    /// Sends the rest of the transmission under way. Returns true once nothing of it is left.
    fn try_unsent(&mut self, context: &mut Context<'_>) -> bool {
        let Some(transmit) = &self.unsent else {
            return true;
        };
        // What cannot be sent is lost, as on any path.
        let sent = self.socket.poll_send(context, transmit, &self.bytes);
        if sent.is_ready() {
            self.unsent = None;
        }
        sent.is_ready()
    }

    fn send(&mut self, context: &mut Context<'_>, key: usize) {
        let now = self.times.now();
        let segments = self.socket.segments_max();
        loop {
            let is_free = self.try_unsent(context);
            let Some(served) = self.lines.get_mut(key).and_then(Option::as_mut) else {
                return;
            };
            if !is_free {
                if !std::mem::replace(&mut served.is_blocked, true) {
                    self.blocked.push_back(key);
                }
                return;
            }
            self.bytes.clear();
            let connection = &mut served.line.connection;
            self.unsent = connection.poll_transmit(now, segments, &mut self.bytes);
            if self.unsent.is_none() {
                return;
            }
        }
    }

    /// Receives once; whether anything came.
    fn receive(&mut self, context: &mut Context<'_>) -> io::Result<bool> {
        match self.socket.poll_readable(context) {
            Poll::Pending => return Ok(false),
            Poll::Ready(ready) => ready?,
        }
        let now = self.times.now();
        let mut arrived = std::mem::take(&mut self.arrived);
        let received = self.buffers.receive(&self.socket, |meta, bytes| {
            arrived.push((*meta, bytes));
        });
        for (meta, bytes) in arrived.drain(..) {
            self.handle(context, now, &meta, bytes);
        }
        self.arrived = arrived;
        match received {
            Ok(_) => Ok(true),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock
                | io::ErrorKind::ConnectionRefused
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::Interrupted => Ok(true),
                _ => Err(error),
            },
        }
    }

    fn handle(
        &mut self,
        context: &mut Context<'_>,
        now: Instant,
        meta: &RecvMeta,
        bytes: BytesMut,
    ) {
        let ecn = meta.ecn.map(|ecn| ecn as u8);
        let ecn = ecn.and_then(quinn_proto::EcnCodepoint::from_bits);
        let mut answer = Vec::new();
        drop(Noted::take());
        let event = self
            .endpoint
            .handle(now, meta.addr, meta.dst_ip, ecn, bytes, &mut answer);
        let transmit = match event {
            None => None,
            Some(DatagramEvent::ConnectionEvent(ConnectionHandle(key), event)) => {
                if let Some(served) = self.served(key) {
                    served.line.connection.handle_event(event);
                    served.noted.update();
                    self.touch(key);
                }
                None
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.accept(now, incoming, &mut answer),
            Some(DatagramEvent::Response(transmit)) => Some(transmit),
        };
        if let Some(transmit) = transmit {
            // An answer that cannot be sent at once is dropped: the client repeats its
            // request.
            drop(self.socket.poll_send(context, &transmit, &answer));
        }
    }

    fn accept(
        &mut self,
        now: Instant,
        incoming: Incoming,
        answer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        if self.open >= self.open_max {
            return Some(self.endpoint.refuse(incoming, answer));
        }
        match self.endpoint.accept(incoming, now, answer, None) {
            Ok((handle, connection)) => {
                let key = handle.0;
                if self.lines.len() <= key {
                    self.lines.resize_with(key + 1, || None);
                }
                let mut noted = Noted::default();
                noted.update();
                self.lines[key] = Some(Served {
                    line: Line {
                        connection,
                        handle,
                        times: self.times,
                        cut: None,
                    },
                    noted,
                    is_touched: false,
                    is_blocked: false,
                    armed: None,
                });
                self.open += 1;
                self.touch(key);
                None
            }
            Err(error) => {
                self.failed += 1;
                error.response
            }
        }
    }

    /// Puts a line among the timers, unless an earlier look at it is there already.
    fn arm(&mut self, key: usize) {
        let look = self.times.now() + LOOK_MAX;
        let Some(served) = self.lines.get_mut(key).and_then(Option::as_mut) else {
            return;
        };
        let Some(due) = served.line.connection.poll_timeout() else {
            return;
        };
        let due = due.min(look);
        if served.armed.is_none_or(|armed| due < armed) {
            served.armed = Some(due);
            self.timers.push(Reverse((due, key)));
        }
    }

    /// Handles all timeouts that are due and returns true if there was any; else the task is
    /// woken when one is.
    fn are_due(&mut self, context: &mut Context<'_>) -> bool {
        loop {
            let now = self.times.now();
            let mut is_any = false;
            while let Some(Reverse((due, key))) = self.timers.peek().copied()
                && due <= now
            {
                self.timers.pop();
                let Some(served) = self.lines.get_mut(key).and_then(Option::as_mut) else {
                    continue;
                };
                if served.armed != Some(due) {
                    continue;
                }
                served.armed = None;
                let connection = &mut served.line.connection;
                if connection.poll_timeout().is_some_and(|due| due <= now) {
                    connection.handle_timeout(now);
                    self.touch(key);
                    is_any = true;
                } else {
                    self.arm(key);
                }
            }
            if is_any {
                return true;
            }
            let Some(Reverse((due, _))) = self.timers.peek().copied() else {
                return false;
            };
            if self.asleep_until.is_none_or(|until| due < until) {
                self.sleep.as_mut().reset(due.into());
                self.asleep_until = Some(due);
            }
            if pin!(unconstrained(self.sleep.as_mut()))
                .poll(context)
                .is_pending()
            {
                return false;
            }
            self.asleep_until = None;
        }
    }
}
