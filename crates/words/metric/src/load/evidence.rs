//! The part of a load's record that says whether its result is reliable.

use serde::{Deserialize, Serialize};
use stillwell_units::Nanos;

use super::Trouble;

/// Everything by which the result of a load is judged reliable or not. All counts
/// and shares are of the measured time, without the warm-up, where a field does not
/// say otherwise.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct LoadEvidence {
    /// Length of the measured time.
    pub measured: Nanos,
    /// True if a warm-up was configured.
    pub has_warmup: bool,
    /// Strain: distance of the generator from its limit.
    pub strain: LoadStrain,
    /// Largest share of its time that a worker waited for a CPU.
    pub cpu_wait_share: f64,
    /// Share of the host's CPU time that the hypervisor took; `None` where the host
    /// does not say.
    pub steal_share: Option<f64>,
    /// Requests that were due by the schedule.
    pub due: u64,
    /// Requests of the curve of the schedule.
    pub requested: u64,
    /// Requests begun.
    pub begun: u64,
    /// Requests given to a connection.
    pub sent: u64,
    /// Requests that were answered.
    pub answers: u64,
    /// The same with those of the warm-up.
    pub answers_with_warmup: u64,
    /// Answers that broke the protocol.
    pub malformed: u64,
    /// Fault of the first answer that broke the protocol.
    pub answer_trouble: Option<Trouble>,
    /// The first trouble of any kind: with a source of requests, a connection or an
    /// answer.
    pub first_trouble: Option<Trouble>,
    /// The source of requests, where others hand them out.
    pub source: LoadSourceEvidence,
    /// Failures of exporters, a sentence each.
    pub export_failures: Vec<String>,
    /// Headers of answers that were dropped instead of reported.
    pub headers_dropped: u64,
    /// Each generator by itself, where several made the load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<GeneratorEvidence>,
}

/// One of several generators of a load.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct GeneratorEvidence {
    /// Its index, counted from zero.
    pub index: u16,
    /// Name of its node.
    pub node: String,
    /// Its evidence, or the reason why it has none.
    pub evidence: Result<LoadEvidence, String>,
    /// Drift of its clock during the load, if it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<ClockDrift>,
}

/// Difference of rate between the clock of a generator and that of the controller.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ClockDrift {
    /// Parts per million; positive for a clock that is fast.
    pub ppm: i64,
    /// Bound on the error of it.
    pub error: u64,
}

impl ClockDrift {
    /// Returns the size that it certainly has.
    #[must_use]
    pub const fn at_least(self) -> u64 {
        self.ppm.unsigned_abs().saturating_sub(self.error)
    }

    /// Returns the largest size that is possible.
    #[must_use]
    pub const fn at_most(self) -> u64 {
        self.ppm.unsigned_abs().saturating_add(self.error)
    }
}

/// Distance of a generator from its limit, in any interval.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct LoadStrain {
    /// Largest share of its time that a worker ran.
    pub busy_share: f64,
    /// 99th percentile of the lateness that the generator alone caused.
    pub lateness_p99: Nanos,
    /// Requests from which that follows.
    pub lateness_count: u64,
    /// Median latency from the sent time.
    pub service_median: Nanos,
}

/// External source of the requests of a load; zeros without one.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct LoadSourceEvidence {
    /// Requests handed out, warm-up included.
    pub requests: u64,
    /// Times at which a request was due and none was there.
    pub waits: u64,
    /// The same with those of the warm-up.
    pub waits_with_warmup: u64,
    /// Largest share of its time that a worker waited so.
    pub wait_share: f64,
    /// The first failure.
    pub trouble: Option<String>,
}
