//! Spans to be exported together.

use stillwell_load::Span;
use stillwell_units::{Moment, Nanos};

/// Content of a span, about its request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct SpanRequest {
    /// Its method.
    pub(crate) method: String,
    /// Its whole URL.
    pub(crate) url: String,
    /// The host that it went to, without brackets.
    pub(crate) host: String,
    /// And the port there.
    pub(crate) port: u16,
}

/// Spans that are exported together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpanBatch<'a> {
    /// The time since 1970 at the epoch of the clock that gave the moments.
    pub(crate) epoch: Nanos,
    /// The requests of each endpoint.
    pub(crate) requests: &'a [Vec<SpanRequest>],
    /// The spans.
    pub(crate) spans: &'a [Span],
}

impl<'a> SpanBatch<'a> {
    pub(crate) fn request(&self, span: &Span) -> Option<&'a SpanRequest> {
        self.requests.get(span.endpoint)?.get(span.request)
    }

    pub(crate) fn since_1970(&self, moment: Moment) -> Nanos {
        self.epoch + Nanos::new(moment.as_u64())
    }
}
