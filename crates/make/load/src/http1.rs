//! HTTP/1.1: one request, one answer.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use stillwell_metric::Outcome;
use stillwell_scope::clock;
use stillwell_units::Moment;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::answer::ResponseReader;
use super::build::Request;
use super::connection::{ConnectionEnd, ConnectionSlot};
use super::pool::Offer;
use super::recorder::{Answer, Take, Ticket};
use super::trace::{Outgoing, TracedRequest};

/// Message about a peer whose connections carry no request.
pub(super) const CLOSED_UNUSED: &str = "the peer closes connections before it answers a request";

impl ConnectionSlot {
    /// Sends request after request on one connection, those in hand first.
    pub(super) async fn run_exchanges<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        mut stream: S,
    ) -> ConnectionEnd {
        let worker = Rc::clone(&self.worker);
        let pool = Rc::clone(&self.pool);
        let reader = ResponseReader::new(worker.latency_header.as_deref());
        let mut reader = reader.keeping_headers(worker.forwards_headers());
        let mut outgoing = Outgoing::default();
        let mut left = worker.client.connecting.requests_max.unwrap_or(u64::MAX);
        let mut is_proven = false;
        let mut number = None;
        let mut now = clock::now();
        loop {
            let mut ticket = match self.in_hand.pop_front() {
                Some(ticket) => ticket,
                None => match self.next(&mut stream, &mut now).await {
                    Ok(ticket) => ticket,
                    Err(ConnectionEnd::Agreed) if !is_proven => {
                        return self.unused(Outcome::PeerClosed, CLOSED_UNUSED);
                    }
                    Err(end) => return end,
                },
            };
            // Servers close connections that were idle too long. On a connection
            // that never answered this is no such thing, but a failure.
            if is_proven && self.is_lost(&mut stream).await {
                worker.recorder.borrow().shard.connections_ended.add(1);
                self.in_hand.push_front(ticket);
                return ConnectionEnd::Agreed;
            }
            if worker.sends_blocks() {
                match self.post(&mut stream, &mut reader, ticket, &mut now).await {
                    Err(end) => return end,
                    Ok(()) if left == 1 => return ConnectionEnd::Agreed,
                    Ok(()) => (is_proven, left) = (true, left - 1),
                }
                continue;
            }
            let request = worker.request(pool.endpoint, ticket);
            let sent = worker.sent(&mut ticket, now, request.bytes().len());
            let trace = worker.next_trace();
            let bytes = outgoing.lay_out(&request, worker.planned(ticket), trace.as_ref());
            let exchange = self.exchange(&mut stream, &mut reader, &request, bytes, sent);
            let result = exchange.await;
            worker.hand_over(trace.as_ref(), || {
                TracedRequest::new(pool.endpoint, &request, ticket, sent, result.as_ref())
            });
            let answer = match result {
                Ok(answer) => answer,
                Err(outcome) => {
                    worker.end_request(ticket, outcome);
                    return ConnectionEnd::Lost;
                }
            };
            now = answer.end;
            worker.origin(ticket, reader.watched());
            worker.receive(answer.whole.status, reader.headers_kept());
            worker.complete(&mut number, answer.whole.status);
            worker.answered(ticket, &answer);
            self.backoff.reset();
            is_proven = true;
            left -= 1;
            if left == 0 {
                worker.recorder.borrow().shard.connections_used_up.add(1);
                return ConnectionEnd::Agreed;
            }
            if !answer.whole.keep_alive {
                return ConnectionEnd::Agreed;
            }
        }
    }

    /// The next request; `now` becomes the moment at which it can be sent.
    async fn next<S: AsyncRead + Unpin>(
        &mut self,
        stream: &mut S,
        now: &mut Moment,
    ) -> Result<Ticket, ConnectionEnd> {
        if self.worker.is_ending() {
            return Err(ConnectionEnd::Ended);
        }
        match self.pool.take_next(&self.worker, *now) {
            Take::Now(ticket) => return Ok(ticket),
            Take::Never => return Err(ConnectionEnd::Ended),
            Take::Later(_) | Take::Starved => {}
        }
        let buffer = &mut self.buffer;
        let is_lost = |context: &mut Context<'_>| poll_read(stream, buffer, context).is_ready();
        let offer = self.pool.wait(&self.worker, self.slot, true, is_lost);
        match offer.await {
            Offer::Ticket(ticket) => {
                *now = clock::now();
                Ok(ticket)
            }
            Offer::Lost => {
                self.worker.recorder.borrow().shard.connections_ended.add(1);
                Err(ConnectionEnd::Agreed)
            }
            Offer::Ended => Err(ConnectionEnd::Ended),
        }
    }

    /// Returns true if the peer has closed the connection or sent unexpected bytes.
    /// Costs no system call where it has not.
    async fn is_lost<S: AsyncRead + Unpin>(&mut self, stream: &mut S) -> bool {
        let buffer = &mut self.buffer;
        poll_fn(|context| Poll::Ready(poll_read(stream, buffer, context).is_ready())).await
    }

    /// Writes one request, which is `bytes`, and reads its answer.
    async fn exchange<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        stream: &mut S,
        reader: &mut ResponseReader,
        request: &Request,
        bytes: &[u8],
        sent: Moment,
    ) -> Result<Answer, Outcome> {
        self.alarm.deadline = sent + self.worker.client.timeout;
        let refused = self.write(stream, bytes).await?;
        match (self.read(stream, reader, request, sent).await, refused) {
            (Ok(answer), None) => Ok(answer),
            // It answered before it had read all, and wants no more.
            (Ok(mut answer), Some(_)) => {
                answer.whole.keep_alive = false;
                Ok(answer)
            }
            (Err(outcome), refused) => Err(refused.unwrap_or(outcome)),
        }
    }

    /// Writes all of it. Gives an outcome where the kernel refused: there may
    /// still be an answer that says why.
    async fn write<S: AsyncWrite + Unpin>(
        &mut self,
        stream: &mut S,
        mut bytes: &[u8],
    ) -> Result<Option<Outcome>, Outcome> {
        while !bytes.is_empty() {
            let written = self
                .alarm
                .wait(|context| Pin::new(&mut *stream).poll_write(context, bytes))
                .await?;
            match written {
                Ok(0) => return Ok(Some(Outcome::SendFailed)),
                Ok(count) => bytes = &bytes[count..],
                Err(error) => return Ok(Some(self.broken(&error))),
            }
        }
        // Nothing where there is no TLS.
        let flushed = self
            .alarm
            .wait(|context| Pin::new(&mut *stream).poll_flush(context))
            .await?;
        Ok(flushed.err().map(|error| self.broken(&error)))
    }

    fn broken(&self, error: &io::Error) -> Outcome {
        self.worker.broken(self.pool.endpoint, error)
    }

    /// Reads one answer.
    pub(super) async fn read<S: AsyncRead + Unpin>(
        &mut self,
        stream: &mut S,
        reader: &mut ResponseReader,
        request: &Request,
        sent: Moment,
    ) -> Result<Answer, Outcome> {
        let mut first_byte = None;
        loop {
            let buffer = &mut self.buffer;
            let arrived = self
                .alarm
                .wait(|context| poll_read(stream, buffer, context))
                .await?;
            let count = arrived.map_err(|error| self.broken(&error))?;
            let now = clock::now();
            let whole = if count == 0 {
                // The end of the connection may be the end of the answer.
                Some(reader.finish().ok_or(Outcome::PeerClosed)?)
            } else {
                self.worker
                    .recorder
                    .borrow()
                    .shard
                    .bytes_received
                    .add(count as u64);
                let mut memo = self.pool.memo.borrow_mut();
                reader
                    .take(&self.buffer[..count], request.answer_body, &mut memo)
                    .map_err(|error| self.worker.malformed(&error))?
            };
            let first_byte = *first_byte.get_or_insert(now);
            if let Some(whole) = whole {
                return Ok(Answer {
                    whole,
                    sent,
                    first_byte,
                    end: now,
                });
            }
        }
    }
}

pub(super) fn poll_read<S: AsyncRead + Unpin>(
    stream: &mut S,
    buffer: &mut [u8],
    context: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    let mut buffer = ReadBuf::new(buffer);
    Pin::new(stream)
        .poll_read(context, &mut buffer)
        .map_ok(|()| buffer.filled().len())
}
