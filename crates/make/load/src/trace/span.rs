//! Spans of traced requests.

use stillwell_metric::Outcome;
use stillwell_units::Moment;

use super::context::TraceContext;

/// One sent request and its result.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Span {
    /// Trace context of the request.
    pub context: TraceContext,
    /// Index of the worker that sent it.
    pub worker: u16,
    /// To which endpoint.
    pub endpoint: usize,
    /// Index among the requests for it.
    pub request: usize,
    /// When it was due; without a schedule when it was taken.
    pub intended: Moment,
    /// When it was sent.
    pub sent: Moment,
    /// When the answer began, if it did.
    pub first_byte: Option<Moment>,
    /// When it was over.
    pub end: Moment,
    /// Its end.
    pub outcome: Outcome,
    /// The status of its answer; 0 without one.
    pub status: u16,
}

impl Span {
    /// True if it counts as a failure: no answer, or a status of 400 and more.
    #[must_use]
    pub const fn is_error(&self) -> bool {
        !matches!(self.outcome, Outcome::Ok | Outcome::Status3xx)
    }
}
