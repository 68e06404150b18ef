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

use super::answer::{AnswerBody, ResponseReader, ResponseSummary};
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
                // This side closes a tunnel.
                if !request.answer_body.opens_tunnel(answer.whole.status) {
                    worker.recorder.borrow().shard.connections_ended.add(1);
                }
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
        let mut answer = PartialAnswer::new(reader, request.answer_body);
        let refused = self.write(stream, bytes, &mut answer).await?;
        match (self.read(stream, answer, sent).await, refused) {
            (Ok(answer), None) => Ok(answer),
            // It answered before it had read all, and wants no more.
            (Ok(mut answer), Some(_)) => {
                answer.whole.keep_alive = false;
                Ok(answer)
            }
            (Err(outcome), refused) => Err(refused.unwrap_or(outcome)),
        }
    }

    /// Writes all of it, unless the answer says that the peer wants no more. Gives an outcome
    /// where the kernel refused: there may still be an answer that says why.
    async fn write<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        stream: &mut S,
        mut bytes: &[u8],
        answer: &mut PartialAnswer<'_>,
    ) -> Result<Option<Outcome>, Outcome> {
        loop {
            let is_written = bytes.is_empty();
            let transfer = self.write_or_read(stream, answer, |stream, context| {
                if is_written {
                    // Nothing where there is no TLS.
                    stream.poll_flush(context).map_ok(|()| 0)
                } else {
                    stream.poll_write(context, bytes)
                }
            });
            match transfer.await? {
                Transfer::Written(Ok(_)) if is_written => {
                    answer.request_sent();
                    return Ok(None);
                }
                Transfer::Written(Ok(0)) => return Ok(Some(Outcome::SendFailed)),
                Transfer::Written(Ok(count)) => bytes = &bytes[count..],
                Transfer::Written(Err(error)) => return Ok(Some(self.broken(&error))),
                Transfer::Read(arrived) => {
                    if self.receive_early(arrived, answer)? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Waits for `write`, and reads meanwhile: some peers take no more of a request before a part
    /// of their answer is read.
    pub(super) async fn write_or_read<S: AsyncRead + Unpin>(
        &mut self,
        stream: &mut S,
        answer: &PartialAnswer<'_>,
        mut write: impl FnMut(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Result<Transfer, Outcome> {
        let (buffer, is_whole) = (&mut self.buffer, answer.whole.is_some());
        let transfer = self
            .alarm
            .wait(|context| match write(Pin::new(&mut *stream), context) {
                Poll::Ready(written) => Poll::Ready(Transfer::Written(written)),
                // Bytes behind an answer are looked at before the next request.
                Poll::Pending if is_whole => Poll::Pending,
                Poll::Pending => poll_read(stream, buffer, context).map(Transfer::Read),
            });
        transfer.await
    }

    /// Takes bytes that arrived before the request was written. Returns true if they complete an
    /// answer after which the peer wants no more of it: the connection ends with this answer.
    pub(super) fn receive_early(
        &self,
        arrived: io::Result<usize>,
        answer: &mut PartialAnswer<'_>,
    ) -> Result<bool, Outcome> {
        self.receive(arrived, answer)?;
        let Some((whole, _)) = &mut answer.whole else {
            return Ok(false);
        };
        // With a success, servers keep the connection and read the rest.
        whole.keep_alive &= whole.status < 300;
        Ok(!whole.keep_alive)
    }

    fn broken(&self, error: &io::Error) -> Outcome {
        self.worker.broken(self.pool.endpoint, error)
    }

    /// Reads the rest of one answer.
    pub(super) async fn read<S: AsyncRead + Unpin>(
        &mut self,
        stream: &mut S,
        mut answer: PartialAnswer<'_>,
        sent: Moment,
    ) -> Result<Answer, Outcome> {
        loop {
            if let Some((whole, end)) = answer.whole {
                return Ok(Answer {
                    whole,
                    sent,
                    first_byte: answer.first_byte.unwrap_or(end),
                    end,
                });
            }
            let buffer = &mut self.buffer;
            let arrived = self
                .alarm
                .wait(|context| poll_read(stream, buffer, context))
                .await?;
            self.receive(arrived, &mut answer)?;
        }
    }

    /// Takes bytes that arrived. Zero bytes are the end of the connection.
    fn receive(
        &self,
        arrived: io::Result<usize>,
        answer: &mut PartialAnswer<'_>,
    ) -> Result<(), Outcome> {
        let count = arrived.map_err(|error| self.broken(&error))?;
        let now = clock::now();
        let whole = if count == 0 {
            // The end of the connection may be the end of the answer.
            Some(answer.reader.finish().ok_or(Outcome::PeerClosed)?)
        } else {
            self.worker
                .recorder
                .borrow()
                .shard
                .bytes_received
                .add(count as u64);
            let mut memo = self.pool.memo.borrow_mut();
            answer
                .reader
                .take(&self.buffer[..count], answer.body, &mut memo)
                .map_err(|error| self.worker.malformed(&error))?
        };
        answer.first_byte.get_or_insert(now);
        answer.whole = whole.map(|whole| (whole, now));
        Ok(())
    }
}

/// Result of one step of sending a request.
pub(super) enum Transfer {
    /// Number of bytes written.
    Written(io::Result<usize>),
    /// Number of bytes read.
    Read(io::Result<usize>),
}

/// The answer to one request, as far as it was read.
pub(super) struct PartialAnswer<'r> {
    reader: &'r mut ResponseReader,
    body: AnswerBody,
    first_byte: Option<Moment>,
    /// The complete answer and the time of its last byte.
    whole: Option<(ResponseSummary, Moment)>,
}

impl<'r> PartialAnswer<'r> {
    /// Nothing of it was read yet.
    pub(super) const fn new(reader: &'r mut ResponseReader, body: AnswerBody) -> Self {
        Self {
            reader,
            body,
            first_byte: None,
            whole: None,
        }
    }

    /// Marks the request as sent. An answer that came earlier ends now: the connection is free
    /// from here on.
    pub(super) fn request_sent(&mut self) {
        if let Some((_, end)) = &mut self.whole {
            *end = clock::now();
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
