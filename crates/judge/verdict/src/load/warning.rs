//! Reasons why the result of a load is unreliable.

use std::fmt;

use stillwell_metric::{Remedy, Trouble};
use stillwell_units::Nanos;

/// A reason why the result of a load may be wrong.
#[derive(Clone, Debug, PartialEq)]
pub enum LoadWarning {
    /// Workers with a schedule used nearly all of their CPU: what waited for them
    /// looks like latency of the target.
    Saturated {
        /// The largest share of its time that a worker ran.
        share: f64,
    },
    /// Workers without a schedule used nearly all of their CPU: the target may be
    /// faster than this.
    Limit {
        /// The largest share of its time that a worker ran.
        share: f64,
    },
    /// Requests left late although a connection was free.
    Late {
        /// The 99th percentile of that.
        p99: Nanos,
    },
    /// Workers wanted to run and had no CPU.
    NoCpu {
        /// The largest share of its time.
        share: f64,
    },
    /// The hypervisor gave CPU time to others.
    Steal {
        /// The share of the host's CPU time.
        share: f64,
    },
    /// Fewer requests were begun than asked for: the target was not as fast.
    NotAchieved {
        /// The share that was sent.
        share: f64,
    },
    /// Requests that were due waited until somebody handed them out.
    SourceSlow {
        /// How often.
        waits: u64,
        /// How long, as a share of a worker's time.
        share: f64,
    },
    /// Whoever hands requests out broke off.
    SourceFailed {
        /// How many requests he had handed out by then.
        requests: u64,
        /// Why.
        why: String,
    },
    /// It ended within its warm-up.
    AllWarmup,
    /// Nothing was due, or could be begun.
    NoRequest {
        /// How many were due.
        asked: u64,
        /// Why the first connection could not be had, if that is why.
        why: Option<Trouble>,
    },
    /// Nothing was answered.
    NoAnswer {
        /// Why the first connection could not be had, if that is why.
        why: Option<Trouble>,
    },
    /// Some answers broke the protocol.
    Malformed {
        /// How many.
        count: u64,
        /// What was wrong with the first of them.
        why: Trouble,
    },
    /// Somebody was not told all that was to be told while it went on.
    Untold {
        /// Who, and why.
        what: String,
    },
}

impl LoadWarning {
    /// A word for programs.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Saturated { .. } => "saturated",
            Self::Limit { .. } => "generator_limit",
            Self::Late { .. } => "late",
            Self::NoCpu { .. } => "no_cpu",
            Self::Steal { .. } => "steal",
            Self::NotAchieved { .. } => "not_achieved",
            Self::SourceSlow { .. } => "source_slow",
            Self::SourceFailed { .. } => "source_failed",
            Self::AllWarmup => "all_warmup",
            Self::NoRequest { .. } => "no_request",
            Self::NoAnswer { .. } => "no_answer",
            Self::Malformed { .. } => "malformed",
            Self::Untold { .. } => "untold",
        }
    }

    /// What can be asked for that may help, if anything: each command has its own words
    /// for it, and [`Display`](fmt::Display) none.
    #[must_use]
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::NoRequest { why, .. } | Self::NoAnswer { why } => why.as_ref()?.remedy,
            Self::Malformed { why, .. } => why.remedy,
            _ => None,
        }
    }

    /// Whether the result must not be taken for the target's.
    #[must_use]
    pub const fn invalidates(&self) -> bool {
        matches!(
            self,
            Self::Saturated { .. }
                | Self::Late { .. }
                | Self::NoCpu { .. }
                | Self::SourceSlow { .. }
                | Self::AllWarmup
                | Self::NoRequest { .. }
                | Self::NoAnswer { .. }
        )
    }
}

impl fmt::Display for LoadWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| (share * 1000.0).round() / 10.0;
        match self {
            Self::Saturated { share } => write!(
                f,
                "the generator was busy {} % of the time and may have kept answers waiting: \
                 use more workers (--concurrency) or a lower rate",
                percent(*share)
            ),
            Self::Limit { share } => write!(
                f,
                "the generator was busy {} % of the time: the target may be faster than this",
                percent(*share)
            ),
            Self::Late { p99 } => write!(
                f,
                "the generator itself sent late by {p99} and more in 1 % of all requests: \
                 latencies include that"
            ),
            Self::NoCpu { share } => write!(
                f,
                "a worker had no CPU for {} % of the time although it wanted to run",
                percent(*share)
            ),
            Self::Steal { share } => write!(
                f,
                "the hypervisor gave {} % of the host's CPU time to others",
                percent(*share)
            ),
            Self::NotAchieved { share } => write!(
                f,
                "{} % of the asked rate was sent: connections waited for the target",
                percent(*share)
            ),
            Self::SourceSlow { .. } | Self::SourceFailed { .. } => self.tell_source(f),
            Self::AllWarmup => f.write_str(
                "it ended before its warm-up was over, and nothing was measured: use a shorter \
                 --warmup, or more requests",
            ),
            Self::NoRequest { asked: 0, why: None } => f.write_str(
                "not one request was due in that time: let it last longer, or ask for a higher rate",
            ),
            Self::NoRequest { asked, why: None } => write!(
                f,
                "of {asked} requests that were due not one was begun: no connection was free, or \
                 the generator had no CPU"
            ),
            Self::NoRequest {
                why: Some(Trouble { why, .. }),
                ..
            } => write!(f, "not one request was begun: {why}"),
            Self::NoAnswer { why: None } => f.write_str("not one request was answered"),
            Self::NoAnswer {
                why: Some(Trouble { why, .. }),
            } => write!(f, "not one request was answered: {why}"),
            Self::Malformed {
                count: 1,
                why: Trouble { why, .. },
            } => write!(f, "one answer is not HTTP as it should be: {why}"),
            Self::Malformed {
                count,
                why: Trouble { why, .. },
            } => write!(
                f,
                "{count} answers are not HTTP as it should be; the first of them: {why}"
            ),
            Self::Untold { what } => f.write_str(what),
        }
    }
}

impl LoadWarning {
    /// What is told of whoever hands requests out.
    fn tell_source(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SourceSlow { waits, share } => write!(
                f,
                "requests that were due waited {waits} times for whoever hands them out, {} % of \
                 the time: latencies from the intended time include that",
                (share * 1000.0).round() / 10.0
            ),
            Self::SourceFailed { requests, why } => write!(
                f,
                "whoever hands requests out broke off after {requests} of them: {why}"
            ),
            _ => Ok(()),
        }
    }
}
