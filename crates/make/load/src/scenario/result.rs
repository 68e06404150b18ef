//! Results of a scenario, and reasons why there are none.

use std::collections::BTreeMap;

use stillwell_metric::{Histogram, add_histogram, empty_histogram};
use stillwell_units::{Moment, Nanos};
use stillwell_wire::tls::TlsError;

/// A scenario that cannot be prepared.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// TLS that cannot be configured.
    #[error("prepare TLS")]
    Tls(#[from] TlsError),
    /// A protocol that users do not speak.
    #[error("scenarios do not support HTTP/3: use HTTP/1.1 or HTTP/2")]
    Http3,
    /// An invalid regular expression.
    #[error("read a regular expression of step {step}")]
    Regex {
        /// Name of the step.
        step: String,
        /// Reason.
        source: regex::Error,
    },
}

/// Results of a scenario.
#[derive(Clone, Debug)]
pub struct ScenarioResult {
    /// Results of steps, in the order of flows and steps.
    pub steps: Vec<StepResult>,
    /// Requests that ended in the measured time, not in the grace after it.
    pub requests_in_time: u64,
    /// Those of them that did not fail.
    pub good_in_time: u64,
    /// Number of users.
    pub users: UserCounts,
    /// Length of the measured time.
    pub measured: Nanos,
    /// Start of each user less its arrival; empty in a closed loop.
    pub lateness: Histogram<u64>,
    /// Largest share of its time that a worker used a CPU.
    pub busy_share: f64,
    /// Largest share of its time that a worker waited for a CPU.
    pub cpu_wait_share: f64,
}

impl Default for ScenarioResult {
    fn default() -> Self {
        Self {
            steps: Vec::new(),
            requests_in_time: 0,
            good_in_time: 0,
            users: UserCounts::default(),
            measured: Nanos::ZERO,
            lateness: empty_histogram(),
            busy_share: 0.0,
            cpu_wait_share: 0.0,
        }
    }
}

/// Number of users by their end.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct UserCounts {
    /// Started.
    pub started: u64,
    /// Followed all steps.
    pub completed: u64,
    /// Ended by a step that failed.
    pub failed: u64,
    /// On their way at the end.
    pub unfinished: u64,
    /// Arrived while the maximum number of users was on its way.
    pub not_started: u64,
    /// Followed all steps and ended after the warm-up, also in the grace. Unlike the users of the
    /// counts above, they may have arrived in the warm-up.
    pub completed_after_warmup: u64,
}

impl UserCounts {
    /// Counts the end of a user of a load that is measured from `measure_from`.
    pub(super) fn count_end(
        &mut self,
        measure_from: Moment,
        (arrived, ended): (Moment, Moment),
        is_well: bool,
    ) {
        self.completed_after_warmup += u64::from(is_well && ended >= measure_from);
        if arrived < measure_from {
            return;
        }
        match is_well {
            true => self.completed += 1,
            false => self.failed += 1,
        }
    }
}

/// Results of one step.
#[derive(Clone, Debug)]
pub struct StepResult {
    /// Requests that ended.
    pub requests: u64,
    /// Failed requests by reason.
    pub failures: BTreeMap<StepFailure, u64>,
    /// Description of the first failure.
    pub first_failure: Option<String>,
    /// Responses by status code.
    pub statuses: BTreeMap<u16, u64>,
    /// Times of all requests that were answered.
    pub latency: Histogram<u64>,
    /// Times of those that did not fail.
    pub latency_of_good: Histogram<u64>,
}

/// Reasons why a step failed.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum StepFailure {
    /// No connection.
    Connect,
    /// No response in time.
    TimedOut,
    /// The connection broke.
    ConnectionLost,
    /// The response is not valid in the protocol, or too large.
    Malformed,
    /// Another status than accepted.
    Status,
    /// The body does not contain an expected text.
    Contains,
    /// A value is not in the response.
    Take,
    /// A value cannot be part of a request.
    Value,
}

impl StepFailure {
    /// Returns the name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect_failed",
            Self::TimedOut => "timed_out",
            Self::ConnectionLost => "connection_lost",
            Self::Malformed => "malformed",
            Self::Status => "status",
            Self::Contains => "contains",
            Self::Take => "take",
            Self::Value => "value",
        }
    }
}

impl ScenarioResult {
    pub(super) fn of(steps: usize) -> Self {
        Self {
            steps: (0..steps).map(|_| StepResult::new()).collect(),
            ..Self::default()
        }
    }

    /// Adds the result of another worker.
    pub fn add(&mut self, other: &Self) {
        for (step, more) in self.steps.iter_mut().zip(&other.steps) {
            step.add(more);
        }
        if self.steps.is_empty() {
            self.steps.clone_from(&other.steps);
        }
        self.requests_in_time += other.requests_in_time;
        self.good_in_time += other.good_in_time;
        let users = &mut self.users;
        users.started += other.users.started;
        users.completed += other.users.completed;
        users.failed += other.users.failed;
        users.unfinished += other.users.unfinished;
        users.not_started += other.users.not_started;
        users.completed_after_warmup += other.users.completed_after_warmup;
        self.measured = self.measured.max(other.measured);
        add_histogram(&mut self.lateness, &other.lateness);
        self.busy_share = self.busy_share.max(other.busy_share);
        self.cpu_wait_share = self.cpu_wait_share.max(other.cpu_wait_share);
    }
}

impl StepResult {
    fn new() -> Self {
        Self {
            requests: 0,
            failures: BTreeMap::new(),
            first_failure: None,
            statuses: BTreeMap::new(),
            latency: empty_histogram(),
            latency_of_good: empty_histogram(),
        }
    }

    fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        for (reason, count) in &other.failures {
            *self.failures.entry(*reason).or_default() += count;
        }
        for (status, count) in &other.statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
        if self.first_failure.is_none() {
            self.first_failure.clone_from(&other.first_failure);
        }
        add_histogram(&mut self.latency, &other.latency);
        add_histogram(&mut self.latency_of_good, &other.latency_of_good);
    }

    pub(super) fn record_failure(&mut self, reason: StepFailure, text: impl FnOnce() -> String) {
        *self.failures.entry(reason).or_default() += 1;
        self.first_failure.get_or_insert_with(text);
    }

    pub(super) fn record_answer(&mut self, status: u16, latency: Nanos, is_good: bool) {
        *self.statuses.entry(status).or_default() += 1;
        let nanos = latency.as_u64().max(1);
        self.latency.saturating_record(nanos);
        if is_good {
            self.latency_of_good.saturating_record(nanos);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_of_the_warm_up_that_complete_after_it_are_counted_apart() {
        let warmup = Nanos::from_secs(2);
        for (arrived, ended, is_well, (completed, failed, after_warmup)) in [
            (0, 1, true, (0, 0, 0)),
            (1, 2, true, (0, 0, 1)),
            (1, 3, false, (0, 0, 0)),
            (2, 3, true, (1, 0, 1)),
            (2, 3, false, (0, 1, 0)),
        ] {
            let at = |seconds| Moment::default() + Nanos::from_secs(seconds);
            let mut users = UserCounts::default();
            users.count_end(at(0) + warmup, (at(arrived), at(ended)), is_well);
            let expected = UserCounts {
                completed,
                failed,
                completed_after_warmup: after_warmup,
                ..UserCounts::default()
            };
            assert_eq!(users, expected, "{arrived} {ended} {is_well}");
        }
    }
}
