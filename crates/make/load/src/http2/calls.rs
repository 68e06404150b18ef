//! Calls on a connection: several at once, each with messages of its own.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use stillwell_http::h2::{BodyLength, Fields, Stream};
use stillwell_metric::{CallEnd, CallMessages, LoadTime, Outcome};
use stillwell_scope::clock;
use stillwell_units::{Moment, Nanos};
use tokio::time::{Sleep, sleep};

use super::{Http2InFlight, Http2Session};
use crate::calls::{CallResponse, CallUpload};
use crate::recorder::Ticket;
use crate::trace::request_traced;
use crate::worker::Worker;

/// The calls under way on one connection.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// By the stream's slot.
    all: Vec<Option<(CallUpload, CallResponse)>>,
    /// When the first message is due that waits for its time.
    next_due: Option<Moment>,
    /// For when it is set, and that.
    set_for: Option<Moment>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Calls {
    fn begin(&mut self, slot: usize) {
        if self.all.len() <= slot {
            self.all.resize(slot + 1, None);
        }
        self.all[slot] = Some(<(CallUpload, CallResponse)>::default());
    }

    /// Received part of the call on `stream`, if it is one.
    fn response(&mut self, stream: Stream) -> Option<&mut CallResponse> {
        let call = self.all.get_mut(stream.slot())?.as_mut()?;
        Some(&mut call.1)
    }

    /// It is over.
    pub(super) fn end(&mut self, stream: Stream) -> Option<CallResponse> {
        let call = self.all.get_mut(stream.slot())?.take()?;
        Some(call.1)
    }

    pub(super) fn head(&mut self, stream: Stream, fields: Fields<'_>) {
        if let Some(response) = self.response(stream) {
            response.head(fields);
        }
    }

    pub(super) fn trailers(&mut self, stream: Stream, fields: Option<Fields<'_>>) {
        if let (Some(response), Some(fields)) = (self.response(stream), fields) {
            response.trailers(fields);
        }
    }

    /// Takes a part of the body of what answers `flight`, which came `now`.
    pub(super) fn body(
        &mut self,
        flight: &Http2InFlight,
        bytes: &[u8],
        now: Moment,
        worker: &Worker,
    ) {
        let Some(response) = self.response(flight.stream) else {
            return;
        };
        let (came, compressed) = response.body(bytes, now);
        count(worker, flight.ticket, CallMessages::Received, came);
        count(worker, flight.ticket, CallMessages::Compressed, compressed);
    }

    /// Waits until a message is due; there may be none.
    pub(super) fn poll_due(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(due) = self.next_due else {
            return Poll::Pending;
        };
        if self.set_for != Some(due) {
            let left = sleep(due.since(clock::now()).as_duration());
            match &mut self.sleep {
                Some(sleep) => sleep.set(left),
                none => *none = Some(Box::pin(left)),
            }
            self.set_for = Some(due);
        }
        let Some(sleep) = &mut self.sleep else {
            return Poll::Pending;
        };
        let is_over = Future::poll(sleep.as_mut(), context).is_ready();
        // The runtime's clock is coarser than ours.
        if is_over && clock::now() < due {
            self.set_for = None;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if is_over {
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

fn count(worker: &Worker, ticket: Ticket, which: CallMessages, messages: u64) {
    if messages > 0 {
        worker.recorder.borrow().messages(ticket, which, messages);
    }
}

impl Http2Session {
    /// Begins a call.
    pub(super) fn send_call(&mut self, mut ticket: Ticket, now: Moment) {
        let worker = Rc::clone(&self.worker);
        let request = worker.request(self.pool.endpoint, ticket);
        let trace = worker.next_trace();
        let (client, length) = (&mut self.client, BodyLength::Unknown);
        let block = request.http2_head();
        let sent = block.map(|block| request_traced(client, block, trace.as_ref(), length));
        let Some(Ok(stream)) = sent else {
            return worker.end_request(ticket, Outcome::SendFailed);
        };
        worker.sent(&mut ticket, now, 0);
        self.launch(stream, ticket, now, (0, trace));
        self.calls.begin(stream.slot());
        self.send_messages(stream, now);
    }

    /// Sends what is due of the messages of a call and finds room.
    pub(super) fn send_messages(&mut self, stream: Stream, now: Moment) {
        let worker = Rc::clone(&self.worker);
        let Some(Some(flight)) = self.requests.get(stream.slot()) else {
            return;
        };
        let request = worker.request(self.pool.endpoint, flight.ticket);
        let (Some(shape), Some(Some((outflow, _)))) =
            (request.call(), self.calls.all.get_mut(stream.slot()))
        else {
            return;
        };
        let (client, before) = (&mut self.client, outflow.sent);
        outflow.send(
            shape,
            request.bytes(),
            (flight.sent, now),
            |bytes, is_last| client.send_body(stream, bytes, is_last).ok(),
        );
        let (sent, due) = (outflow.sent - before, outflow.due);
        count(&worker, flight.ticket, CallMessages::Sent, sent);
        if let Some(due) = due {
            let next = &mut self.calls.next_due;
            *next = Some(next.map_or(due, |next| next.min(due)));
        }
    }

    /// Sends messages that have waited for their time.
    pub(super) fn send_due(&mut self, now: Moment) {
        self.calls.next_due = None;
        for slot in 0..self.calls.all.len() {
            let Some((outflow, _)) = &self.calls.all[slot] else {
                continue;
            };
            // A connection without a due request waits for room, and is woken by it.
            if let (Some(_), Some(Some(flight))) = (outflow.due, self.requests.get(slot)) {
                self.send_messages(flight.stream, now);
            }
        }
    }

    /// The call of `flight` is answered wholly. Gives the status of HTTP that says
    /// as much; none where the answer breaks gRPC, and the request has failed.
    pub(super) fn conclude(&self, flight: &Http2InFlight, response: &CallResponse) -> Option<u16> {
        let worker = Rc::clone(&self.worker);
        let request = worker.request(self.pool.endpoint, flight.ticket);
        let call = request.call();
        let server_streams = call.is_none_or(|call| call.server_streams);
        let concluded = response.conclude(flight.status, server_streams);
        let mut recorder = worker.recorder.borrow_mut();
        let trouble = match concluded {
            Ok((end, status)) => {
                recorder.call_ended(flight.ticket, end);
                let first = response.first_message.filter(|_| server_streams);
                if let Some(first) = first {
                    let sent = flight.ticket.sent.unwrap_or(flight.sent);
                    recorder.time(flight.ticket, LoadTime::FirstMessage, first.since(sent));
                }
                return Some(status);
            }
            Err(trouble) => trouble,
        };
        recorder.call_ended(flight.ticket, trouble.0);
        drop(recorder);
        let outcome = worker.malformed(&trouble);
        worker.end_request(flight.ticket, outcome);
        self.lose(flight, outcome);
        None
    }

    /// Time left for the request of `flight`.
    pub(super) fn limit(&self, flight: &Http2InFlight) -> Nanos {
        let timeout = self.worker.client.timeout;
        self.deadline(flight)
            .map_or(timeout, |deadline| deadline.min(timeout))
    }

    /// The request of `flight` was given up, or its stream was ended, at `now`: where
    /// that is its deadline's doing, it counts so.
    pub(super) fn count_deadline(&self, flight: &Http2InFlight, now: Moment) {
        if let Some(deadline) = self.deadline(flight)
            && flight.sent + deadline <= now
        {
            let recorder = self.worker.recorder.borrow();
            recorder.call_ended(flight.ticket, CallEnd::DeadlineExceeded);
        }
    }

    fn deadline(&self, flight: &Http2InFlight) -> Option<Nanos> {
        let request = self.worker.request(self.pool.endpoint, flight.ticket);
        request.call()?.deadline
    }
}
