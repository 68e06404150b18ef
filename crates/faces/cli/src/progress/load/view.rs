//! The displayed data of a running load.

use std::collections::VecDeque;

use stillwell_metric::{Histogram, LoadShard, LoadTime, Outcome, TimeState};
use stillwell_plan::LoadPlan;
use stillwell_plan::load::LoadPace;
use stillwell_run::{LoadPhase, LoadSnapshot};
use stillwell_units::{Nanos, float_from_u64};
use stillwell_verdict::{LoadRules, LoadWarning, strain_warnings};

use crate::progress::times::LatencyClasses;

/// Seconds that are kept for strips, as many as the widest shows.
const STRIP_MAX: usize = 120;

/// All that a view shows; plain data.
#[derive(Clone, Debug)]
pub(in crate::progress) struct View {
    /// Target of the requests.
    pub(super) target: String,
    /// Limits of the load.
    pub(super) limits: Limits,
    /// The running phase; `None` before the first second has passed.
    pub(super) phase: Option<LoadPhase>,
    /// Since the phase began; the time to drain is part of the measured time.
    pub(super) elapsed: Nanos,
    /// Requests that were begun, in all.
    pub(super) begun: u64,
    /// Outcomes of requests so far, in the order of [`Outcome::ALL`]: those of the warm-up
    /// while that lasts, then those that are measured.
    pub(super) ended: [u64; Outcome::ALL.len()],
    /// The same in the last second.
    pub(super) ended_last: [u64; Outcome::ALL.len()],
    /// Requests under way.
    pub(super) in_flight: u64,
    /// Requested a second, where there is a schedule.
    pub(super) requested_rate: Option<f64>,
    /// Bytes a second.
    pub(super) received: f64,
    /// Bytes a second.
    pub(super) sent: f64,
    /// The last seconds, the newest at the end.
    pub(super) strip: VecDeque<Second>,
    /// Use of the workers' time in the last second, in the order of [`TimeState::ALL`].
    pub(super) shares: [f64; TimeState::ALL.len()],
    /// Lateness of one of a hundred requests although nothing delayed them.
    pub(super) generator_lateness: Option<Nanos>,
    /// Current strain of the generator.
    pub(super) warning: Option<Strain>,
    /// Latencies of the measured time so far.
    pub(super) times: LatencyClasses,
    /// True once the user has requested the end.
    pub(super) is_ending: bool,
}

/// When a load is over, and how it goes about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Of the warm-up.
    pub(super) warmup: Nanos,
    /// Of the measured time.
    pub(super) measure: Option<Nanos>,
    /// Requests in all.
    pub(super) requests: Option<u64>,
    pub(super) has_schedule: bool,
    /// Requests per second of a schedule that never changes.
    pub(super) constant_rate: Option<f64>,
    pub(super) rules: LoadRules,
}

impl Limits {
    /// Returns the rate to show, in requests per second, where `counted` came due in a second.
    ///
    /// Workers count what is due a moment before a second ends, so a schedule of 500/s
    /// would be shown as 499/s. After the end nothing is due.
    pub(super) fn requested_rate(&self, counted: f64) -> Option<f64> {
        match self.constant_rate {
            Some(rate) if counted > 0.0 => Some(rate),
            _ => self.has_schedule.then_some(counted),
        }
    }
}

/// One second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Second {
    /// Requests that ended, a second.
    pub(super) rate: f64,
    /// True where some of them failed.
    pub(super) has_failures: bool,
    /// Median, 99th percentile and largest latency, where anything was answered.
    pub(super) latency: Option<[Nanos; 3]>,
}

/// Reason why the generator may limit the result.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Strain {
    /// It runs nearly all of its time.
    Busy,
    /// It sends late.
    Late,
}

impl Strain {
    /// Returns the strain that the progress line shows for a warning.
    const fn of(warning: &LoadWarning) -> Option<Self> {
        match warning {
            LoadWarning::GeneratorSaturated { .. } | LoadWarning::GeneratorLimit { .. } => {
                Some(Self::Busy)
            }
            LoadWarning::GeneratorLate { .. } => Some(Self::Late),
            _ => None,
        }
    }
}

impl View {
    pub(in crate::progress) fn new(target: String, plan: &LoadPlan) -> Self {
        let measure = plan.until.duration;
        Self {
            target,
            limits: Limits {
                warmup: plan.warmup,
                measure: measure.map(|whole| whole.saturating_sub(plan.warmup)),
                requests: plan.until.requests,
                has_schedule: matches!(plan.pace, LoadPace::Open { .. }),
                constant_rate: match &plan.pace {
                    LoadPace::Open { curve, .. } => curve.constant(),
                    LoadPace::Closed => None,
                },
                rules: LoadRules::of(plan),
            },
            phase: None,
            elapsed: Nanos::ZERO,
            begun: 0,
            ended: [0; Outcome::ALL.len()],
            ended_last: [0; Outcome::ALL.len()],
            in_flight: 0,
            requested_rate: None,
            received: 0.0,
            sent: 0.0,
            strip: VecDeque::with_capacity(STRIP_MAX),
            shares: [0.0; TimeState::ALL.len()],
            generator_lateness: None,
            warning: None,
            times: LatencyClasses::default(),
            is_ending: false,
        }
    }

    /// Goes on to the second that has just ended.
    pub(in crate::progress) fn update(&mut self, snapshot: &LoadSnapshot<'_>) {
        let second = snapshot.second;
        let length = second.length.as_secs_f64().max(1e-9);
        let per_second = |count: u64| float_from_u64(count) / length;
        if self.phase == Some(LoadPhase::Warmup) && snapshot.phase != LoadPhase::Warmup {
            self.strip.clear();
        }
        self.phase = Some(snapshot.phase);
        self.elapsed = snapshot.elapsed;
        self.begun = snapshot.sum(LoadShard::begun_in_all);
        let all_ended = snapshot.sum(LoadShard::ended_in_all);
        self.in_flight = self.begun.saturating_sub(all_ended);
        let is_warmup = snapshot.phase == LoadPhase::Warmup;
        for outcome in Outcome::ALL {
            self.ended[outcome.index()] = snapshot.sum(|shard| {
                if is_warmup {
                    shard.ended_ever(outcome)
                } else {
                    shard.ended(outcome)
                }
            });
        }
        self.ended_last = second.outcomes;
        self.requested_rate = self.limits.requested_rate(per_second(second.requested));
        [self.received, self.sent] = second.bytes.map(per_second);
        if self.strip.len() == STRIP_MAX {
            self.strip.pop_front();
        }
        self.strip.push_back(Second {
            rate: per_second(second.outcomes.iter().sum()),
            has_failures: failed(&second.outcomes) > 0,
            latency: quantiles(snapshot.latencies()),
        });
        if !is_warmup {
            self.times.add(snapshot.latencies());
        }
        self.generator(snapshot);
    }

    fn generator(&mut self, snapshot: &LoadSnapshot<'_>) {
        self.shares = shares(snapshot.accounts);
        let lateness = snapshot.times(LoadTime::GeneratorLateness);
        let lateness = lateness.filter(|times| !times.is_empty());
        self.generator_lateness = lateness.map(|times| Nanos::new(times.value_at_quantile(0.99)));
        let warnings = strain_warnings(self.limits.rules, &snapshot.strain()).into_iter();
        // The last is the more exact one.
        self.warning = warnings.rev().find_map(|warning| Strain::of(&warning));
    }

    /// Remaining time, as far as it is known.
    pub(super) fn left(&self) -> Option<Nanos> {
        let by_time = self
            .limits
            .measure
            .map(|measure| measure.saturating_sub(self.elapsed));
        let rate = self.strip.back().map_or(0.0, |second| second.rate);
        let by_requests = self.limits.requests.filter(|_| rate > 0.0).map(|requests| {
            let left = float_from_u64(requests.saturating_sub(self.begun));
            Nanos::from_secs_f64(left / rate)
        });
        match (by_time, by_requests) {
            (Some(time), Some(requests)) => Some(time.min(requests)),
            (time, requests) => time.or(requests),
        }
    }
}

/// Number of these that did not end as they should.
pub(super) fn failed(outcomes: &[u64; Outcome::ALL.len()]) -> u64 {
    let bad = Outcome::ALL.into_iter().zip(outcomes);
    bad.filter(|(outcome, _)| *outcome != Outcome::Ok)
        .map(|(_, count)| *count)
        .sum()
}

/// Median, 99th percentile and the largest.
pub(in crate::progress) fn quantiles(times: &Histogram<u64>) -> Option<[Nanos; 3]> {
    let at = |share: f64| Nanos::new(times.value_at_quantile(share));
    (!times.is_empty()).then(|| [at(0.5), at(0.99), Nanos::new(times.max())])
}

/// Parts of the whole time of all workers.
fn shares(accounts: &[[Nanos; TimeState::ALL.len()]]) -> [f64; TimeState::ALL.len()] {
    let mut sums = [0.0; TimeState::ALL.len()];
    for account in accounts {
        for (sum, time) in sums.iter_mut().zip(account) {
            *sum += time.as_secs_f64();
        }
    }
    let whole: f64 = sums.iter().sum();
    sums.map(|sum| if whole > 0.0 { sum / whole } else { 0.0 })
}
