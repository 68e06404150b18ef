//! A connection slot: connects, sends requests, reconnects.

use std::collections::VecDeque;
use std::rc::Rc;

use stillwell_metric::{Outcome, Trouble};
use stillwell_plan::load::LoadProtocol;
use stillwell_plan::tls::Alpn;
use stillwell_scope::{clock, explain};
use stillwell_units::Nanos;
use stillwell_wire::quic::{QuicClient, QuicConnection, QuicRefused};
use stillwell_wire::tls::{Handshake, HandshakeError, TlsStream};
use stillwell_wire::{DialError, dial};
use stillwell_worker::{Backoff, Marks};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::alarm::Alarm;
use super::pool::{Offer, Pool};
use super::recorder::{Take, Ticket};
use super::tunnel::{Tunnel, TunnelError};
use super::worker::{ConnectionTimes, Worker};

const BUFFER_BYTES: usize = 64 << 10;

/// The end of a connection. Requests in hand that were not begun stay in hand.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ConnectionEnd {
    /// There is nothing more to send.
    Ended,
    /// Closed between two requests.
    Agreed,
    /// Closed in the middle of a request.
    Lost,
    /// Closed by the peer before the first request.
    Unused(Outcome),
}

/// State that consecutive connections of one slot share.
pub(super) struct ConnectionSlot {
    pub(super) worker: Rc<Worker>,
    pub(super) pool: Rc<Pool>,
    pub(super) slot: usize,
    pub(super) buffer: Box<[u8]>,
    pub(super) alarm: Alarm,
    pub(super) backoff: Backoff,
    /// Requests that wait for the next connection.
    pub(super) in_hand: VecDeque<Ticket>,
    /// Stamps of events, one for each concurrent request.
    pub(super) marks: Vec<Marks>,
    /// Buffer for the head of a block.
    pub(super) head: Vec<u8>,
    /// True if the last attempt to connect failed.
    is_down: bool,
}

/// An open connection.
enum OpenConnection {
    Direct(EndpointStream<TcpStream>),
    /// Through a proxy.
    Proxied(EndpointStream<Tunnel>),
    Quic(Box<QuicConnection>),
}

/// A stream to the endpoint over `S`.
enum EndpointStream<S> {
    Plain(S),
    Tls(Box<TlsStream<S>>),
}

/// Connects, sends and reads until no request is left.
pub(super) async fn run(worker: Rc<Worker>, pool: Rc<Pool>, slot: usize) {
    let mut connection = ConnectionSlot::new(worker, pool, slot);
    let mut early = None;
    let turn = connection
        .worker
        .opens_after(connection.pool.endpoint, slot);
    let is_early = connection.worker.client.connecting.prefetch && turn == Nanos::ZERO;
    if is_early && connection.worker.blocks().is_none() {
        early = connection.dial().await.ok();
    }
    if connection.worker.started().await.is_none() {
        return;
    }
    if turn > Nanos::ZERO {
        let turn = sleep(turn.as_duration());
        connection.worker.end.run_until_cancelled(turn).await;
    }
    loop {
        // What is in hand has begun.
        if connection.worker.is_ending() && connection.in_hand.is_empty() {
            return;
        }
        let dialled = match early.take() {
            Some(dialled) => dialled,
            None => match connection.connect().await {
                Some(dialled) => dialled,
                None if connection.is_over() => return,
                None => continue,
            },
        };
        let end = match dialled {
            OpenConnection::Direct(way) => connection.run_session(way).await,
            OpenConnection::Proxied(way) => connection.run_session(way).await,
            OpenConnection::Quic(quic) => connection.multiplex_quic(*quic).await,
        };
        connection
            .worker
            .disconnected(connection.pool.endpoint, connection.slot);
        match end {
            // What the last connection was not let to carry goes over another.
            ConnectionEnd::Ended if connection.in_hand.is_empty() => return,
            ConnectionEnd::Unused(outcome) => connection.back_off(outcome).await,
            ConnectionEnd::Lost if connection.worker.blocks().is_some() => connection.pause().await,
            ConnectionEnd::Ended | ConnectionEnd::Agreed | ConnectionEnd::Lost => {}
        }
    }
}

impl ConnectionSlot {
    /// A slot without a connection.
    pub(super) fn new(worker: Rc<Worker>, pool: Rc<Pool>, slot: usize) -> Self {
        let blocks = worker.blocks();
        Self {
            marks: blocks.map_or_else(Vec::new, |blocks| {
                let orders = 0..worker.client.connecting.streams;
                orders.map_while(|_| blocks.marks()).collect()
            }),
            alarm: Alarm::new(worker.request_timeout(pool.endpoint)),
            worker,
            pool,
            slot,
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            backoff: Backoff::new(),
            in_hand: VecDeque::new(),
            head: Vec::new(),
            is_down: false,
        }
    }

    async fn run_session<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        way: EndpointStream<S>,
    ) -> ConnectionEnd {
        match (self.worker.client.connecting.protocol, way) {
            (LoadProtocol::Http1, EndpointStream::Plain(stream)) => {
                self.run_exchanges(stream).await
            }
            (LoadProtocol::Http1, EndpointStream::Tls(stream)) => self.run_exchanges(stream).await,
            (LoadProtocol::Http2, EndpointStream::Plain(stream)) => self.multiplex(stream).await,
            (LoadProtocol::Http2, EndpointStream::Tls(stream)) => self.multiplex(stream).await,
            // That goes over nothing that is a stream.
            (LoadProtocol::Http3, _) => ConnectionEnd::Lost,
        }
    }

    /// Connects for a request in hand or for a new one. Returns `None` if connecting fails,
    /// which counts as the outcome of these requests, or if the worker ends.
    async fn connect(&mut self) -> Option<OpenConnection> {
        if self.in_hand.is_empty() && !self.worker.client.connecting.prefetch {
            let first = self.first_ticket().await?;
            self.in_hand.push_back(first);
            self.worker
                .recorder
                .borrow()
                .shard
                .waited_for_connect
                .add(1);
        }
        let dialled = if self.in_hand.is_empty() {
            // No task waits for it once the worker ends.
            self.worker.end.run_until_cancelled(self.dial()).await?
        } else {
            self.dial().await
        };
        let failure = match dialled {
            Ok(dialled) => {
                self.mark_up();
                return Some(dialled);
            }
            Err(failure) => failure,
        };
        let is_load = self.worker.blocks().is_none();
        if is_load && self.in_hand.is_empty() && !self.worker.has_schedule {
            // No other part counts requests that do not get through.
            self.in_hand.extend(self.take_now());
        }
        self.back_off(failure).await;
        None
    }

    /// Ends the requests in hand with `failure`, marks the slot as down and waits before the
    /// next attempt.
    async fn back_off(&mut self, failure: Outcome) {
        if self.worker.blocks().is_some() {
            // Blocks wait for better times.
            return self.pause().await;
        }
        for ticket in self.in_hand.drain(..) {
            self.worker.end_request(ticket, failure);
        }
        self.mark_up();
        self.is_down = true;
        self.pool.slots.borrow_mut().go_down(failure);
        self.pause().await;
    }

    /// Marks the slot as connected. A slot that only retries does not make requests wait.
    fn mark_up(&mut self) {
        if std::mem::take(&mut self.is_down) {
            self.pool.slots.borrow_mut().mark_up();
        }
    }

    /// Waits before the next attempt.
    async fn pause(&mut self) {
        let pause = sleep(self.backoff.pause().as_duration());
        // Where the load ends meanwhile there is nothing left to wait for.
        self.worker.end.run_until_cancelled(pause).await;
    }

    /// Handles a connection that the peer closed unused: without a pause, connections would
    /// open in a tight loop.
    pub(super) fn unused(&self, outcome: Outcome, why: &str) -> ConnectionEnd {
        let recorder = self.worker.recorder.borrow();
        // The first one stays.
        let trouble = &recorder.shard.connect_trouble;
        trouble.get_or_init(|| Trouble::plain(why.to_owned()));
        ConnectionEnd::Unused(outcome)
    }

    /// Puts `returned` before the requests in hand: they were due earlier.
    pub(super) fn keep_returned(&mut self, returned: &mut Vec<Ticket>) {
        while let Some(ticket) = returned.pop() {
            self.in_hand.push_front(ticket);
        }
    }

    /// Assigns requests in hand to other connections that are free. This one begins no more and
    /// has withdrawn its places. The remaining requests wait for the next connection.
    pub(super) fn pass_on(&mut self) {
        // Slots that wait for their first request end then, and stay on the list of free ones.
        if self.worker.is_ending() {
            return;
        }
        while let Some(ticket) = self.in_hand.pop_front() {
            if !self.pool.slots.borrow_mut().offer(ticket) {
                return self.in_hand.push_front(ticket);
            }
        }
    }

    fn is_over(&self) -> bool {
        self.worker.is_ending() || self.pool.look(clock::now()) == Take::Never
    }

    pub(super) fn take_now(&self) -> Option<Ticket> {
        let Take::Now(ticket) = self.pool.take(clock::now()) else {
            return None;
        };
        self.worker.recorder.borrow_mut().begin(ticket.intended);
        Some(ticket)
    }

    /// Returns the request that needs the connection.
    async fn first_ticket(&self) -> Option<Ticket> {
        if let Some(ticket) = self.take_now() {
            return Some(ticket);
        }
        if self.is_over() {
            return None;
        }
        let offer = self.pool.wait(&self.worker, self.slot, false, |_| false);
        match offer.await {
            Offer::Ticket(ticket) => Some(ticket),
            Offer::Lost | Offer::Ended => None,
        }
    }

    async fn dial(&self) -> Result<OpenConnection, Outcome> {
        let worker = &self.worker;
        let limit = worker.client.connecting.timeout;
        let dialled = timeout(limit.as_duration(), self.open()).await;
        let late = || {
            let endpoint = &worker.endpoints[self.pool.endpoint];
            let handshake_note = match endpoint.tls_host {
                Some(_) => ", TLS handshake included",
                None => "",
            };
            let address = &endpoint.address;
            Trouble::plain(format!(
                "connect to {address}: no connection within {limit}{handshake_note}"
            ))
        };
        let dialled = dialled.unwrap_or_else(|_| Err((Outcome::ConnectTimedOut, late())));
        if let Some(blocks) = worker.blocks() {
            blocks.dialled(dialled.as_ref().err().map(|(outcome, _)| *outcome));
        }
        let (outcome, why) = match dialled {
            Ok((dialled, opened)) => {
                worker.connected(self.pool.endpoint, self.slot, opened);
                return Ok(dialled);
            }
            Err(failure) => failure,
        };
        let shard = &worker.recorder.borrow().shard;
        shard.connect_failures.add(1);
        let is_late = outcome == Outcome::ConnectTimedOut;
        shard.connect_timeouts.add(u64::from(is_late));
        // The first one stays.
        shard.connect_trouble.get_or_init(|| why);
        Err(outcome)
    }

    /// Connects, through a proxy if there is one, with a TLS handshake if the endpoint needs it.
    async fn open(&self) -> Result<(OpenConnection, ConnectionTimes), (Outcome, Trouble)> {
        let worker = &self.worker;
        let endpoint = &worker.endpoints[self.pool.endpoint];
        if worker.client.connecting.protocol == LoadProtocol::Http3 {
            return self.open_quic().await;
        }
        let source = worker.client.connecting.source;
        let begun = clock::now();
        if let Some((proxy, proxy_request)) =
            worker.proxy.as_ref().zip(endpoint.proxy_request.as_ref())
        {
            let refused = |error: TunnelError| (error.outcome(), error.trouble());
            let tunnel = proxy.lead(source, &worker.proxy_quic, proxy_request, &endpoint.address);
            let tunnel = tunnel.await.map_err(refused)?;
            let connect = clock::now().since(begun);
            let (way, handshake) = self.secure(tunnel).await?;
            return Ok((
                OpenConnection::Proxied(way),
                ConnectionTimes { connect, handshake },
            ));
        }
        let stream = match source {
            None => dial::tcp(&endpoint.address).await,
            Some(source) => dial::tcp_from(source, &endpoint.address).await,
        };
        let failed = |error: DialError| (error.outcome(), Trouble::plain(explain(&error)));
        let stream = stream.map_err(failed)?;
        let connect = clock::now().since(begun);
        let (way, handshake) = self.secure(stream).await?;
        Ok((
            OpenConnection::Direct(way),
            ConnectionTimes { connect, handshake },
        ))
    }

    /// Opens a QUIC connection. Its connect time is the name lookup and the way through a
    /// proxy; the rest is the handshake.
    async fn open_quic(&self) -> Result<(OpenConnection, ConnectionTimes), (Outcome, Trouble)> {
        let worker = &self.worker;
        let endpoint = &worker.endpoints[self.pool.endpoint];
        let refused = |why: String| (Outcome::HandshakeFailed, Trouble::plain(why));
        let (Some(host), Some(tls)) = (&endpoint.tls_host, &worker.tls) else {
            return Err(refused("HTTP/3 requires TLS".to_owned()));
        };
        let name = tls.server_name(host);
        let name = name.map_err(|error| refused(explain(&error)))?;
        let client = match worker.quic.get() {
            Some(client) => client,
            None => {
                let made = QuicClient::new(tls);
                let made = made.map_err(|error| refused(explain(&error)))?;
                worker.quic.get_or_init(|| made)
            }
        };
        let begun = clock::now();
        let source = worker.client.connecting.source;
        let failed = |error: QuicRefused| {
            let (why, remedy) = (explain(&error), error.remedy(false));
            (error.outcome(), Trouble { why, remedy })
        };
        let opened = match worker.proxy.as_ref().zip(endpoint.proxy_request.as_ref()) {
            None => client.open(source, &endpoint.address, &name).await,
            Some((proxy, proxy_request)) => {
                let tunnel =
                    proxy.lead(source, &worker.proxy_quic, proxy_request, &endpoint.address);
                let tunnel = tunnel
                    .await
                    .map_err(|error| (error.outcome(), error.trouble()))?;
                // They were requested.
                let datagrams = tunnel.datagrams().map(Box::new);
                let datagrams = datagrams.ok_or_else(|| refused("no datagrams".to_owned()))?;
                client.open_over(datagrams, &endpoint.address, &name)
            }
        };
        let mut quic = opened.map_err(failed)?;
        let connect = clock::now().since(begun);
        let handshake = Some(quic.handshake().await.map_err(failed)?);
        let opened = ConnectionTimes { connect, handshake };
        Ok((OpenConnection::Quic(Box::new(quic)), opened))
    }

    /// Adds TLS to `stream` if the endpoint needs it.
    async fn secure<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
    ) -> Result<(EndpointStream<S>, Option<Handshake>), (Outcome, Trouble)> {
        let worker = &self.worker;
        let endpoint = &worker.endpoints[self.pool.endpoint];
        let (Some(host), Some(tls)) = (&endpoint.tls_host, &worker.tls) else {
            return Ok((EndpointStream::Plain(stream), None));
        };
        let refused = |why: String| (Outcome::HandshakeFailed, Trouble::plain(why));
        let name = tls.server_name(host);
        let name = name.map_err(|error| refused(explain(&error)))?;
        let failed = |error: HandshakeError| {
            let (why, remedy) = (explain(&error), error.remedy(false));
            (Outcome::HandshakeFailed, Trouble { why, remedy })
        };
        let stream = tls.connect(stream, &name).await.map_err(failed)?;
        let handshake = stream.handshake();
        let is_http2_required = worker.client.connecting.protocol == LoadProtocol::Http2;
        let is_agreed = match handshake.alpn {
            None => worker.client.connecting.without_alpn,
            alpn => alpn == Some(Alpn::Http2),
        };
        if is_http2_required && !is_agreed {
            return Err(refused(format!("{host} does not speak HTTP/2 over TLS")));
        }
        Ok((EndpointStream::Tls(Box::new(stream)), Some(handshake)))
    }
}
