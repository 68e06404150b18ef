//! Spans of traced requests.

use stillwell_metric::Outcome;
use stillwell_units::Moment;

use super::context::TraceContext;

/// One request that was sent, and what came of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Span {
    /// What the request said.
    pub context: TraceContext,
    /// Which worker sent it.
    pub worker: u16,
    /// To which endpoint.
    pub endpoint: usize,
    /// Which of the requests for that.
    pub request: usize,
    /// When it was due; without a schedule when it was taken.
    pub intended: Moment,
    /// When it was sent.
    pub sent: Moment,
    /// When the answer began, if it did.
    pub first_byte: Option<Moment>,
    /// When it was over.
    pub end: Moment,
    /// How it ended.
    pub outcome: Outcome,
    /// The status of its answer; 0 without one.
    pub status: u16,
}

impl Span {
    /// Whether it counts as a failure: no answer, or a status of 400 and more.
    #[must_use]
    pub const fn is_error(&self) -> bool {
        !matches!(self.outcome, Outcome::Ok | Outcome::Status3xx)
    }
}
