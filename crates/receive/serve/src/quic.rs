//! All connections of HTTP/3 that come to one socket.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::Poll;

use stillwell_http::h3::H3ErrorCode;
use stillwell_scope::{PartError, clock};
use stillwell_units::{Moment, Nanos, as_usize};
use stillwell_wire::Timer;
use stillwell_wire::quic::{BoundQuic, Came, QuicEvent, QuicServer};
use stillwell_wire::server::{ServerWorker, account_ticks};
use tokio::select;

use crate::http3::Http3;
use crate::service::Service;

/// Reason why a worker that serves HTTP/3 ended.
#[derive(Debug, thiserror::Error)]
#[error("receive on a socket of HTTP/3")]
struct ReceiveError {
    source: io::Error,
}

/// Answers all requests that come to `bound` until the worker is to end.
pub(crate) async fn serve(
    worker: Rc<ServerWorker>,
    service: Rc<Service>,
    bound: BoundQuic,
) -> Result<(), PartError> {
    let open_max = as_usize(service.site.plan.connections_max);
    let mut all = All {
        server: QuicServer::new(bound, open_max)?,
        worker: Rc::clone(&worker),
        service,
        sessions: Vec::new(),
        armed: Vec::new(),
        dues: BinaryHeap::new(),
    };
    let mut stopping = worker.stopping();
    let mut ticks = account_ticks();
    let mut timer = Timer::new()?;
    loop {
        all.answer_due(clock::now()).await;
        let due = all.dues.peek().map(|Reverse((at, _))| *at);
        let far = clock::now() + Nanos::SECOND;
        // All arms are cancel-safe.
        let came = select! {
            biased;
            _ = ticks.tick() => continue,
            () = timer.until(due.unwrap_or(far)), if due.is_some() => continue,
            came = stopping.next(|context| all.server.poll(context)) => came,
        };
        match came {
            Some(Ok(Came::Line(key))) => all.attend(key).await,
            Some(Ok(Came::Failed)) => all.service.shard.handshakes_failed.add(1),
            Some(Err(source)) => return Err(ReceiveError { source }.into()),
            None => break,
        }
    }
    poll_fn(|context| {
        all.server.close(context, H3ErrorCode::NO_ERROR.0);
        Poll::Ready(())
    })
    .await;
    Ok(())
}

struct All {
    server: QuicServer,
    worker: Rc<ServerWorker>,
    service: Rc<Service>,
    /// By the connections' numbers.
    sessions: Vec<QuicSession>,
    /// When each is looked at for answers that are due.
    armed: Vec<Option<Moment>>,
    /// The same in order. Entries that were postponed since are skipped.
    dues: BinaryHeap<Reverse<(Moment, usize)>>,
}

#[derive(Default)]
enum QuicSession {
    #[default]
    None,
    /// The handshake is in progress.
    Handshake(Box<Http3>),
    Open(Box<Http3>),
    /// It is closed once what was answered is sent.
    Ending(Box<Http3>),
    /// It has ended, except that the peer is not informed yet.
    Over,
}

impl All {
    /// Something has happened on a connection.
    async fn attend(&mut self, key: usize) {
        let now = clock::now();
        if self.sessions.len() <= key {
            self.sessions.resize_with(key + 1, QuicSession::default);
            self.armed.resize(key + 1, None);
        }
        if matches!(self.sessions[key], QuicSession::None) {
            self.worker.shard.connections.add(1);
            self.sessions[key] = QuicSession::Handshake(Box::new(Http3::new(&self.service)));
        }
        while let Some(event) = self.server.line(key).and_then(|line| line.next_event()) {
            self.handle_event(key, &event, now);
        }
        self.flush_and_arm(key).await;
    }

    fn handle_event(&mut self, key: usize, event: &QuicEvent, now: Moment) {
        let shard = &self.service.shard;
        if let QuicEvent::Connected = event {
            shard.handshakes.add(1);
            shard.resumed.add(u64::from(self.server.is_resumed(key)));
        }
        let goes_on = match (&mut self.sessions[key], self.server.line(key)) {
            (QuicSession::Handshake(session) | QuicSession::Open(session), Some(line)) => {
                session.handle_event(line, event, now)
            }
            _ => return,
        };
        self.sessions[key] = match (std::mem::take(&mut self.sessions[key]), event) {
            (QuicSession::Handshake(_), QuicEvent::Lost(_)) => {
                shard.handshakes_failed.add(1);
                QuicSession::Over
            }
            (_, QuicEvent::Lost(_)) => QuicSession::Over,
            (QuicSession::Handshake(session), QuicEvent::Connected) => QuicSession::Open(session),
            (session, _) if goes_on => session,
            (QuicSession::Handshake(session) | QuicSession::Open(session), _) => {
                QuicSession::Ending(session)
            }
            (session, _) => session,
        };
    }

    /// Answers what is due `now`.
    async fn answer_due(&mut self, now: Moment) {
        while let Some(Reverse((at, key))) = self.dues.peek().copied()
            && at <= now
        {
            self.dues.pop();
            if self.armed[key] != Some(at) {
                continue;
            }
            self.armed[key] = None;
            if let (QuicSession::Open(session), Some(line)) =
                (&mut self.sessions[key], self.server.line(key))
                && !session.fill(line, now)
                && let QuicSession::Open(session) = std::mem::take(&mut self.sessions[key])
            {
                self.sessions[key] = QuicSession::Ending(session);
            }
            self.flush_and_arm(key).await;
        }
    }

    /// Sends what is to be sent, and looks when something is due.
    async fn flush_and_arm(&mut self, key: usize) {
        let mut is_there = poll_fn(|context| Poll::Ready(self.server.flush(context, key))).await;
        if let QuicSession::Ending(session) = &self.sessions[key] {
            let code = session.end().unwrap_or(H3ErrorCode::NO_ERROR);
            if let Some(line) = self.server.line(key) {
                line.close(code.0);
            }
            self.sessions[key] = QuicSession::Over;
            is_there = poll_fn(|context| Poll::Ready(self.server.flush(context, key))).await;
        }
        if !is_there {
            self.sessions[key] = QuicSession::None;
            return;
        }
        if let QuicSession::Open(session) = &self.sessions[key]
            && let Some(due) = session.due()
            && self.armed[key].is_none_or(|at| due < at)
        {
            self.armed[key] = Some(due);
            self.dues.push(Reverse((due, key)));
        }
    }
}
