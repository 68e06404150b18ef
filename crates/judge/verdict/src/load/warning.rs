//! Reasons why the result of a load is unreliable.

use std::fmt;

use stillwell_metric::{ClockDrift, Remedy, Trouble};
use stillwell_units::Nanos;
use stillwell_units::human::{counted, nanos, percent};

/// A reason why the result of a load may be wrong.
#[derive(Clone, Debug, PartialEq)]
pub enum LoadWarning {
    /// Workers with a schedule were busy nearly all of the time: the wait for them counts as
    /// latency of the target.
    GeneratorSaturated {
        /// The largest share of its time that a worker ran.
        share: f64,
    },
    /// Workers without a schedule were busy nearly all of the time: the target may be faster
    /// than this.
    GeneratorLimit {
        /// The largest share of its time that a worker ran.
        share: f64,
    },
    /// Requests were sent late although a connection was free.
    GeneratorLate {
        /// The 99th percentile of that.
        p99: Nanos,
    },
    /// Requests were sent late although a connection was free, by too little to distort
    /// latencies: gaps between sends were not those of the schedule.
    SendsBunched {
        /// The 99th percentile of the lateness.
        p99: Nanos,
    },
    /// Workers waited for a CPU.
    CpuStarvation {
        /// The largest share of its time.
        share: f64,
    },
    /// The hypervisor gave CPU time to others.
    CpuSteal {
        /// The share of the host's CPU time.
        share: f64,
    },
    /// Fewer requests were sent than requested: the target or the generator was not as fast.
    RateNotReached {
        /// The share that was sent.
        share: f64,
        /// True if the generator was too slow.
        is_generator_slow: bool,
    },
    /// Due requests waited for the request source.
    SourceSlow {
        /// Number of waits.
        waits: u64,
        /// Share of a worker's time.
        share: f64,
    },
    /// The request source failed.
    SourceFailed {
        /// Requests that it had supplied by then.
        requests: u64,
        /// Its error.
        why: String,
    },
    /// The load ended within its warm-up.
    AllWarmup,
    /// No request was due, or none could be sent.
    NoRequest {
        /// Requests that were due.
        requested: u64,
        /// Error of the first connection, if that is the cause.
        why: Option<Trouble>,
    },
    /// No request was answered.
    NoAnswer {
        /// Error of the first connection, if that is the cause.
        why: Option<Trouble>,
    },
    /// Some responses broke the protocol.
    Malformed {
        /// Number of such responses.
        count: u64,
        /// Error in the first of them.
        why: Trouble,
    },
    /// A metrics receiver or log did not get everything.
    ExportFailed {
        /// The receiver, and the error.
        what: String,
    },
    /// A generator of several has no result.
    GeneratorMissing {
        /// Its index.
        index: u16,
        /// The reason.
        why: String,
    },
    /// The clock of a generator was faster or slower than that of the controller.
    ClockDrift {
        /// Its drift.
        drift: ClockDrift,
    },
    /// A warning about one generator of several.
    OfGenerator {
        /// Its index.
        index: u16,
        /// Name of its node.
        node: String,
        /// The warning.
        warning: Box<Self>,
    },
}

impl LoadWarning {
    /// Returns the code in JSON.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::GeneratorSaturated { .. } => "generator_saturated",
            Self::GeneratorLimit { .. } => "generator_limit",
            Self::GeneratorLate { .. } => "generator_late",
            Self::SendsBunched { .. } => "sends_bunched",
            Self::CpuStarvation { .. } => "cpu_starvation",
            Self::CpuSteal { .. } => "cpu_steal",
            Self::RateNotReached { .. } => "rate_not_reached",
            Self::SourceSlow { .. } => "source_slow",
            Self::SourceFailed { .. } => "source_failed",
            Self::AllWarmup => "all_warmup",
            Self::NoRequest { .. } => "no_request",
            Self::NoAnswer { .. } => "no_answer",
            Self::Malformed { .. } => "malformed",
            Self::ExportFailed { .. } => "export_failed",
            Self::GeneratorMissing { .. } => "generator_missing",
            Self::ClockDrift { .. } => "clock_drift",
            Self::OfGenerator { warning, .. } => warning.code(),
        }
    }

    /// Returns the warning without the generator that it is about.
    pub fn of_any_generator(&self) -> &Self {
        match self {
            Self::OfGenerator { warning, .. } => warning,
            _ => self,
        }
    }

    /// Returns the option that may help. Each command prints its own flag for it, so
    /// [`Display`](fmt::Display) does not.
    #[must_use]
    pub fn remedy(&self) -> Option<Remedy> {
        match self.of_any_generator() {
            Self::NoRequest { why, .. } | Self::NoAnswer { why } => why.as_ref()?.remedy,
            Self::Malformed { why, .. } => why.remedy,
            _ => None,
        }
    }

    /// Returns true for a limit that was exceeded: without it the result counts.
    #[must_use]
    pub fn is_of_limit(&self) -> bool {
        matches!(
            self.of_any_generator(),
            Self::GeneratorSaturated { .. }
                | Self::GeneratorLimit { .. }
                | Self::GeneratorLate { .. }
                | Self::SendsBunched { .. }
                | Self::CpuStarvation { .. }
                | Self::CpuSteal { .. }
                | Self::ClockDrift { .. }
                | Self::SourceSlow { .. }
        )
    }

    /// Returns true if the result is unreliable with the usual limits.
    #[must_use]
    pub fn invalidates(&self) -> bool {
        matches!(
            self.of_any_generator(),
            Self::GeneratorSaturated { .. }
                | Self::GeneratorLate { .. }
                | Self::CpuStarvation { .. }
                | Self::SourceSlow { .. }
                | Self::AllWarmup
                | Self::NoRequest { .. }
                | Self::NoAnswer { .. }
                | Self::ClockDrift { .. }
                | Self::GeneratorMissing { .. }
        )
    }
}

impl fmt::Display for LoadWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GeneratorSaturated { share } => write!(
                f,
                "generator saturated: a worker was busy for {} of the time, so latency may be too \
                 high; use more workers or a lower rate",
                percent(*share)
            ),
            Self::GeneratorLimit { share } => write!(
                f,
                "generator limit: a worker was busy for {} of the time, so the target may be \
                 faster than this; use more workers",
                percent(*share)
            ),
            Self::GeneratorLate { p99 } => write!(
                f,
                "generator late: 1 % of the requests left {} or more after they were due, and \
                 latencies include that; free a CPU for the generator or lower the rate",
                nanos(*p99)
            ),
            Self::SendsBunched { p99 } => write!(
                f,
                "sends bunched: 1 % of the requests left {0} or more after they were due, so gaps \
                 between requests were up to {0} shorter than in the schedule, latencies include \
                 that, and a rate limiter may have refused requests; free a CPU for the generator or \
                 lower the rate",
                nanos(*p99)
            ),
            Self::CpuStarvation { share } => write!(
                f,
                "CPU starvation: a load-generator thread waited {} of the time for a CPU, so latency \
                 may be too high; stop other programs or reserve a CPU for the generator",
                percent(*share)
            ),
            Self::CpuSteal { share } => write!(
                f,
                "CPU steal: the hypervisor took {} of the host's CPU time, so latency may be too \
                 high; repeat the load at another time or on a dedicated machine",
                percent(*share)
            ),
            Self::SourceSlow { waits, share } => write!(
                f,
                "request source slow: due requests waited for it {}, {} of the time, and latencies from \
                 the intended time include that; use a faster source or a lower rate",
                counted(*waits, "time", "times"),
                percent(*share)
            ),
            Self::AllWarmup => f.write_str(
                "no measurement: the load ended within its warm-up; use a shorter --warmup or more \
                 requests",
            ),
            Self::ExportFailed { what } => write!(f, "export failed: {what}"),
            Self::GeneratorMissing { index, why } => write!(
                f,
                "generator missing: generator {index} has no result, so its part of the load is not \
                 in the numbers: {why}; run the load again"
            ),
            Self::ClockDrift { drift } => write_drift(f, *drift),
            Self::OfGenerator {
                index,
                node,
                warning,
            } => write!(f, "generator {index} on {node}: {warning}"),
            Self::NoRequest { .. }
            | Self::NoAnswer { .. }
            | Self::Malformed { .. }
            | Self::SourceFailed { .. }
            | Self::RateNotReached { .. } => self.write_failure(f),
        }
    }
}

impl LoadWarning {
    /// Writes what was not sent or not answered, and why.
    fn write_failure(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SourceFailed { requests, why } => {
                let requests = counted(*requests, "request", "requests");
                write!(f, "request source failed after {requests}: {why}")
            }
            Self::RateNotReached {
                share,
                is_generator_slow: true,
            } => write!(
                f,
                "rate not reached: {} of the requested rate was sent, because the generator was too \
                 slow or had no CPU; free a CPU for it or lower the rate",
                percent(*share)
            ),
            Self::RateNotReached {
                share,
                is_generator_slow: false,
            } => write!(
                f,
                "rate not reached: {} of the requested rate was sent, because connections waited for \
                 the target; use more connections or a lower rate",
                percent(*share)
            ),
            Self::NoRequest {
                why: Some(trouble), ..
            } => {
                write!(f, "no request was sent: {}", trouble.why)
            }
            Self::NoRequest {
                requested: 0,
                why: None,
            } => f.write_str(
                "no request was due in that time; use a longer duration or a higher rate",
            ),
            Self::NoRequest {
                requested,
                why: None,
            } => write!(
                f,
                "no request was sent: {} due, but no connection was free or the generator had no CPU",
                counted(*requested, "was", "were")
            ),
            Self::NoAnswer { why: None } => f.write_str("no request was answered"),
            Self::NoAnswer { why: Some(trouble) } => {
                write!(f, "no request was answered: {}", trouble.why)
            }
            Self::Malformed { count: 1, why } => {
                write!(f, "malformed response: one is not valid HTTP: {}", why.why)
            }
            Self::Malformed { count, why } => write!(
                f,
                "malformed responses: {count} are not valid HTTP; the first of them: {}",
                why.why
            ),
            _ => Ok(()),
        }
    }
}

fn write_drift(f: &mut fmt::Formatter<'_>, drift: ClockDrift) -> fmt::Result {
    write!(
        f,
        "clock drift: its clock ran {} ± {} ppm {} than that of the controller, so its latencies and \
         its rate are wrong by as much; let the machine follow a time server, and repeat the load",
        drift.ppm.unsigned_abs(),
        drift.error,
        if drift.ppm > 0 { "faster" } else { "slower" },
    )
}
