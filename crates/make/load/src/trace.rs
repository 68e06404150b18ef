//! Requests that say which trace they belong to, and the spans of those that are
//! sampled.
//!
//! A request's headers are laid out with values of zeros, whose places are known, and
//! each connection has room for one request of its own, in which the values are written
//! over. A span goes to its exporter through a queue; where that is full it is dropped
//! and counted, so no worker waits.

mod context;
mod span;
mod values;

use std::sync::mpsc::SyncSender;

use stillwell_http::h2::{BodyLength, Client, H2RequestBlock, RequestRefused, Stream};
use stillwell_http::h3;
use stillwell_metric::{LoadShard, Outcome};
use stillwell_plan::load::{TraceHeaders, TracePlan};
use stillwell_scope::clock;
use stillwell_units::{Moment, RunId};

use super::build::{EncodedRequest, Request};
use super::recorder::{Answer, Ticket};
pub use context::TraceContext;
use context::TraceIds;
pub use span::Span;
use values::TraceValues;

/// Spans that may wait for the exporter, of all workers together.
pub(super) const SPANS_WAITING_MAX: usize = 1 << 15;

/// Tracing state of one worker.
#[derive(Debug)]
pub(super) struct Tracer {
    ids: TraceIds,
    headers: TraceHeaders,
    worker: u16,
    spans: Option<SyncSender<Span>>,
}

/// Trace context of one request.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestTrace {
    headers: TraceHeaders,
    context: TraceContext,
}

impl Tracer {
    /// Traces requests of worker number `worker`; spans go to `spans`, if anywhere.
    pub(super) fn new(
        plan: &TracePlan,
        run: RunId,
        worker: u16,
        spans: Option<SyncSender<Span>>,
    ) -> Self {
        Self {
            ids: TraceIds::new(run, worker.into(), plan.sample),
            headers: plan.headers,
            worker,
            spans,
        }
    }

    /// Trace context of the next request.
    pub(super) fn next_trace(&mut self) -> RequestTrace {
        RequestTrace {
            headers: self.headers,
            context: self.ids.next_context(),
        }
    }

    /// A request has ended: hands its span over, if one is wanted.
    pub(super) fn hand_over(&self, trace: &RequestTrace, ended: &TracedRequest, shard: &LoadShard) {
        let Some(spans) = self.spans.as_ref().filter(|_| trace.context.is_sampled) else {
            return;
        };
        shard.spans_sampled.add(1);
        let span = Span {
            context: trace.context,
            worker: self.worker,
            endpoint: ended.endpoint,
            request: ended.request,
            intended: ended.intended,
            sent: ended.sent,
            first_byte: ended.first_byte,
            end: ended.end,
            outcome: ended.outcome,
            status: ended.status,
        };
        if spans.try_send(span).is_err() {
            shard.spans_dropped.add(1);
        }
    }
}

/// End of a traced request.
#[derive(Clone, Copy, Debug)]
pub(super) struct TracedRequest {
    endpoint: usize,
    request: usize,
    intended: Moment,
    sent: Moment,
    first_byte: Option<Moment>,
    end: Moment,
    outcome: Outcome,
    status: u16,
}

impl TracedRequest {
    /// With an answer, or just now without one.
    pub(super) fn new(
        endpoint: usize,
        request: &Request,
        ticket: Ticket,
        sent: Moment,
        result: Result<&Answer, &Outcome>,
    ) -> Self {
        Self {
            endpoint,
            request: request.described,
            intended: ticket.intended,
            sent,
            first_byte: result.ok().map(|answer| answer.first_byte),
            end: result.map_or_else(|_| clock::now(), |answer| answer.end),
            outcome: result.map_or_else(|outcome| *outcome, Answer::outcome),
            status: result.map_or(0, |answer| answer.whole.status),
        }
    }
}

/// Headers for a request of HTTP/1.1, with values of zeros.
pub(super) fn blank_headers(headers: TraceHeaders) -> Vec<(&'static str, String)> {
    let context = TraceContext {
        trace: [0; 16],
        span: [0; 8],
        is_sampled: false,
    };
    TraceValues::new(headers, &context).texts()
}

/// Positions of the values of these headers in a request of HTTP/1.1.
pub(super) fn places(bytes: &[u8], headers: TraceHeaders) -> Box<[usize]> {
    let place = |name: &&str| {
        let line = format!("\r\n{name}: ");
        let mut windows = bytes.windows(line.len());
        let start = windows.position(|window| window == line.as_bytes())?;
        Some(start + line.len())
    };
    headers.names().iter().filter_map(place).collect()
}

/// Room for one request of HTTP/1.1 that says which trace it belongs to.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    bytes: Vec<u8>,
    /// Index among the endpoint's requests.
    which: Option<usize>,
}

impl Outgoing {
    /// The bytes of `request`, number `which` of its endpoint where it is one of the
    /// plan's. Allocates only where they are more than ever before.
    pub(super) fn lay_out<'a>(
        &'a mut self,
        request: &'a Request,
        which: Option<usize>,
        trace: Option<&RequestTrace>,
    ) -> &'a [u8] {
        let (Some(trace), EncodedRequest::Http1 { trace_at, .. }) = (trace, &request.encoded)
        else {
            return request.bytes();
        };
        if which.is_none() || self.which != which {
            self.bytes.clear();
            self.bytes.extend_from_slice(request.bytes());
            self.which = which;
        }
        let values = TraceValues::new(trace.headers, &trace.context);
        for ((_, value), place) in values.iter().zip(trace_at) {
            if let Some(room) = self.bytes.get_mut(*place..place + value.len()) {
                room.copy_from_slice(value);
            }
        }
        &self.bytes
    }
}

/// Appends the head of a request of HTTP/3 that says what `trace` does.
pub(super) fn write_traced(
    block: &h3::H3RequestBlock,
    trace: &RequestTrace,
    length: BodyLength,
    out: &mut Vec<u8>,
) {
    let values = TraceValues::new(trace.headers, &trace.context);
    let extra: Vec<(&str, &[u8])> = values.iter().collect();
    block.write(&extra, length, out);
}

/// Sends the head of a request of HTTP/2 that says what `trace` does, if anything.
pub(super) fn request_traced(
    client: &mut Client,
    block: &H2RequestBlock,
    trace: Option<&RequestTrace>,
    length: BodyLength,
) -> Result<Stream, RequestRefused> {
    let Some(trace) = trace else {
        return client.request(block, length);
    };
    let values = TraceValues::new(trace.headers, &trace.context);
    let mut extra: [(&str, &[u8]); 3] = [("", &[]); 3];
    let mut count = 0;
    for (room, header) in extra.iter_mut().zip(values.iter()) {
        *room = header;
        count += 1;
    }
    client.request_with(block, &extra[..count], length)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use stillwell_http::RequestTemplate;

    use super::super::answer::AnswerBody;
    use super::*;

    fn plan(headers: TraceHeaders) -> TracePlan {
        TracePlan {
            headers,
            sample: 1.0,
            export: None,
        }
    }

    fn request(headers: TraceHeaders, body: &str) -> Request {
        let blank = blank_headers(headers);
        let blank: Vec<(&str, &str)> = blank.iter().map(|(k, v)| (*k, v.as_str())).collect();
        let template = RequestTemplate::new("POST", "/a?b3: x", "host", &blank);
        // A path that could be taken for a header is refused anyhow.
        assert!(template.is_err());
        let template = RequestTemplate::new("POST", "/a", "host", &blank).unwrap();
        let mut bytes = Vec::new();
        template.write_head(body.len() as u64, &mut bytes);
        bytes.extend_from_slice(body.as_bytes());
        Request {
            encoded: EncodedRequest::Http1 {
                trace_at: places(&bytes, headers),
                bytes: bytes.into_boxed_slice(),
            },
            described: 0,
            answer_body: AnswerBody::Any,
        }
    }

    #[test]
    fn each_request_has_its_own_trace_of_the_same_length() {
        for headers in [TraceHeaders::W3c, TraceHeaders::B3, TraceHeaders::B3Multi] {
            let run = RunId::from_bytes([1; 16]);
            let mut tracer = Tracer::new(&plan(headers), run, 0, None);
            let requests = [request(headers, "one"), request(headers, "\r\nb3: no")];
            let mut outgoing = Outgoing::default();
            for number in 0..6 {
                let which = number % 2;
                let trace = tracer.next_trace();
                let bytes = outgoing.lay_out(&requests[which], Some(which), Some(&trace));
                let text = String::from_utf8(bytes.to_vec()).unwrap();
                for (name, value) in TraceValues::new(headers, &trace.context).texts() {
                    assert!(text.contains(&format!("\r\n{name}: {value}\r\n")), "{text}");
                }
                assert_eq!(text.len(), requests[which].bytes().len());
                let body = if which == 0 {
                    "\r\n\r\none"
                } else {
                    "\r\n\r\n\r\nb3: no"
                };
                assert!(text.ends_with(body), "{text}");
            }
        }
    }

    #[test]
    fn a_full_queue_drops_and_counts() {
        let (shard, _) = LoadShard::pair();
        let (sender, receiver) = sync_channel(2);
        let run = RunId::from_bytes([1; 16]);
        let mut tracer = Tracer::new(&plan(TraceHeaders::W3c), run, 7, Some(sender));
        let ticket = Ticket {
            endpoint: 0,
            sent: None,
            request: 0,
            intended: Moment::new(1),
        };
        let traced = request(TraceHeaders::W3c, "");
        for _ in 0..5 {
            let sent = Moment::new(2);
            let ended = TracedRequest::new(0, &traced, ticket, sent, Err(&Outcome::TimedOut));
            let trace = tracer.next_trace();
            tracer.hand_over(&trace, &ended, &shard);
        }
        assert_eq!(shard.spans_sampled.total(), 5);
        assert_eq!(shard.spans_dropped.total(), 3);
        let span = receiver.try_recv().unwrap();
        assert_eq!((span.worker, span.outcome), (7, Outcome::TimedOut));
    }
}
