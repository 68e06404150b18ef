//! Probes that are loads.

use stillwell_metric::{Histogram, LoadCounts, LoadTime, Outcome, Trouble, empty_histogram};
use stillwell_plan::capacity::{CapacityBound, CapacityFigure};
use stillwell_plan::load::{LoadPace, LoadPacing, LoadPlanError, LoadPlanParts, Overflow};
use stillwell_plan::{LoadPlan, RateShape};
use stillwell_run::{
    AddressFamily, Interrupt, LoadCapture, LoadEnd, LoadError, LoadSnapshot, conduct_load,
};
use stillwell_scope::Place;
use stillwell_units::{Nanos, count, float_from_u64};
use stillwell_verdict::capacity::{
    CapacityProbe, LoadProbeCounts, judge_load_probe, latency_growth,
};
use stillwell_verdict::limits::PROBE_BUNCHED;
use stillwell_verdict::{LoadRules, LoadWarning, load_warnings};

/// Requests beyond a quantile that make it one.
const BEYOND: f64 = 3.0;
/// Fewest requests of a probe that say something.
const REQUESTS_MIN: f64 = 20.0;
/// A probe is made longer by this factor at most.
const LONGER_MAX: u64 = 10;
/// Reason why nothing was answered if no connection was opened and no attempt has failed.
const NO_CONNECTION: &str = "no connection was open before the end of the probe";

/// A probe that was a load.
#[derive(Debug)]
pub struct LoadProbe {
    /// The probe.
    pub probe: CapacityProbe,
    /// The reason why nothing was answered, if nothing was.
    pub no_answer: Option<LoadWarning>,
}

/// The reason why a load could not be a probe.
#[derive(Debug, thiserror::Error)]
pub enum LoadProbeError {
    /// A load that could not begin.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A worker that failed.
    #[error("{what}")]
    PartFailed {
        /// The failed part, and the reason.
        what: String,
    },
}

/// Length of a probe at this rate, so its quantiles have enough samples.
#[must_use]
pub fn probe_length(rate: f64, bounds: &[CapacityBound], probe: Nanos) -> Nanos {
    let beyond = |bound: &CapacityBound| match bound.figure {
        CapacityFigure::Latency(share) => BEYOND / (1.0 - share) / rate,
        _ => 0.0,
    };
    let needed = bounds
        .iter()
        .map(beyond)
        .fold(REQUESTS_MIN / rate, f64::max);
    let most = Nanos::new(probe.as_u64().saturating_mul(LONGER_MAX));
    Nanos::from_secs_f64(needed).clamp(probe, most)
}

/// Returns `plan` at this rate, of this warm-up and measured time.
///
/// # Errors
/// The first rule of plans that is broken.
pub fn load_at_rate(
    plan: &LoadPlanParts,
    rate: f64,
    lengths: (Nanos, Nanos),
) -> Result<LoadPlan, LoadPlanError> {
    let mut plan = plan.clone();
    if let LoadPace::Open {
        curve, overflow, ..
    } = &mut plan.pace
    {
        *curve = RateShape::Constant { per_second: rate };
        *overflow = Overflow::Wait;
    }
    lasting(plan, lengths)
}

/// Returns `plan` over so many connections, of this warm-up and measured time.
///
/// # Errors
/// The first rule of plans that is broken.
pub fn load_at_connections(
    plan: &LoadPlanParts,
    connections: u32,
    lengths: (Nanos, Nanos),
) -> Result<LoadPlan, LoadPlanError> {
    let mut plan = plan.clone();
    let endpoints = count(plan.endpoints.len()).max(1);
    plan.client.connecting.connections = connections;
    let fed = u16::try_from(connections / endpoints).unwrap_or(u16::MAX);
    plan.workers = plan.workers.min(fed.max(1));
    lasting(plan, lengths)
}

fn lasting(
    mut plan: LoadPlanParts,
    (warmup, measure): (Nanos, Nanos),
) -> Result<LoadPlan, LoadPlanError> {
    plan.warmup = warmup;
    plan.until.duration = Some(warmup + measure);
    plan.until.requests = None;
    LoadPlan::try_new(plan.with_timeout_as_grace())
}

/// Makes the load of `plan`, reports each second to `progress`, and judges it by `bounds`.
///
/// # Errors
/// [`LoadProbeError`] where it could not begin, or a worker failed.
pub fn probe_load(
    plan: &LoadPlan,
    family: AddressFamily,
    places: &[Place],
    bounds: &[CapacityBound],
    interrupt: &Interrupt,
    progress: &mut dyn FnMut(&LoadSnapshot<'_>),
) -> Result<LoadProbe, LoadProbeError> {
    let capture = conduct_load(plan.clone(), family, places, interrupt, progress)?;
    if let LoadEnd::PartFailed(what) = capture.manifest.end {
        return Err(LoadProbeError::PartFailed { what });
    }
    let warnings = load_warnings(LoadRules::of(plan), &capture.evidence());
    let counts = counts(plan, &capture);
    let has_connected = capture.sum(|counts| counts.connections.total) > 0;
    Ok(LoadProbe {
        probe: judge_load_probe(&counts, (plan.validity, &warnings), bounds),
        no_answer: no_answer(&counts, has_connected, &warnings),
    })
}

/// Returns the reason why nothing was answered, if nothing was and the target is the cause.
fn no_answer(
    counts: &LoadProbeCounts,
    has_connected: bool,
    warnings: &[LoadWarning],
) -> Option<LoadWarning> {
    // Without a schedule, each connection has a request as soon as it is open.
    let is_due = counts.requested > 0 || !counts.has_rate;
    warnings.iter().find_map(|warning| match warning {
        LoadWarning::NoAnswer { .. } => Some(warning.clone()),
        // A probe may end before an attempt to connect fails: no request has begun by then.
        LoadWarning::NoRequest { why, .. } if !has_connected && (is_due || why.is_some()) => {
            let no_connection = || Trouble::plain(NO_CONNECTION.to_owned());
            let why = Some(why.clone().unwrap_or_else(no_connection));
            Some(LoadWarning::NoAnswer { why })
        }
        _ => None,
    })
}

/// Returns the figures of a load that these bounds limit.
#[must_use]
pub fn measure_bounds(
    plan: &LoadPlan,
    capture: &LoadCapture,
    bounds: &[CapacityBound],
) -> Vec<(CapacityFigure, Option<f64>)> {
    judge_load_probe(&counts(plan, capture), (plan.validity, &[]), bounds).figures
}

const GOOD: [Outcome; 2] = [Outcome::Ok, Outcome::Status3xx];

/// The counts of a load by which it is judged.
fn counts(plan: &LoadPlan, capture: &LoadCapture) -> LoadProbeCounts {
    // Without those of the warm-up, whose times are not recorded either.
    let ended = |outcome: Outcome| capture.sum(|counts| counts.ended(outcome));
    let sum = |outcomes: &[Outcome]| outcomes.iter().map(|class| ended(*class)).sum::<u64>();
    let good = sum(&GOOD);
    let answered = sum(&Outcome::ANSWERS);
    let begun = capture.sum(|counts| counts.begun);
    let has_rate = matches!(plan.pace, LoadPace::Open { .. });
    // Not the sum of the curve less the sends that began: random schedules have more or fewer of
    // them.
    let due = capture.sum(LoadCounts::due);
    // A closed loop begins a request when it can: none of its requests waits, and latency counts from the sent time.
    let is_open = LoadPacing::of(plan) == LoadPacing::Open;
    let never_begun = if is_open {
        due.saturating_sub(begun)
    } else {
        0
    };
    let kind = if is_open {
        LoadTime::Response
    } else {
        LoadTime::Service
    };
    let seconds = capture.manifest.measured.as_secs_f64().max(1e-9);
    let lateness = merged(capture, &[LoadTime::GeneratorLateness]);
    let pieces = capture.seconds.iter();
    let pieces: Vec<_> = pieces.map(|second| second.response.unpack()).collect();
    LoadProbeCounts {
        times: Some(merged(capture, &GOOD.map(kind))),
        requested: sum(&Outcome::ALL) + never_begun,
        never_begun,
        errors: answered - good,
        answered,
        reached: if has_rate && due > 0 {
            float_from_u64(begun) / float_from_u64(due)
        } else {
            1.0
        },
        per_second: float_from_u64(good) / seconds,
        has_rate,
        lateness_p99: Nanos::new(lateness.value_at_quantile(0.99)),
        bunched: lateness.count_between(PROBE_BUNCHED.as_u64(), u64::MAX),
        growth: latency_growth(&pieces, capture.manifest.measured),
    }
}

fn merged(capture: &LoadCapture, times: &[LoadTime]) -> Histogram<u64> {
    let mut all = empty_histogram();
    for worker in capture.workers() {
        for time in times {
            all.add(worker.times(*time))
                .unwrap_or_else(|_| unreachable!("both histograms have the same bounds"));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_is_as_long_as_its_quantile_needs() {
        let bounds = ["p99<20ms".parse().unwrap(), "errors<1%".parse().unwrap()];
        let probe = Nanos::from_secs(1);
        assert_eq!(probe_length(10_000.0, &bounds, probe), probe);
        assert_eq!(probe_length(100.0, &bounds, probe), Nanos::from_secs(3));
        assert_eq!(probe_length(0.1, &bounds, probe), Nanos::from_secs(10));
        // Without quantiles, too: errors are shares of something.
        assert_eq!(probe_length(5.0, &bounds[1..], probe), Nanos::from_secs(4));
    }

    #[test]
    fn a_target_that_opens_no_connection_does_not_answer() {
        let refused = || Some(Trouble::plain("refused".to_owned()));
        for (requested, has_rate, has_connected, why, expected) in [
            (20, true, false, None, Some(NO_CONNECTION)),
            (20, true, false, refused(), Some("refused")),
            (0, false, false, None, Some(NO_CONNECTION)),
            (0, false, false, refused(), Some("refused")),
            (0, true, false, refused(), Some("refused")),
            // No request was due.
            (0, true, false, None, None),
            // The generator had no CPU.
            (20, true, true, None, None),
            (0, false, true, None, None),
        ] {
            let counts = LoadProbeCounts {
                requested,
                has_rate,
                ..LoadProbeCounts::default()
            };
            let warnings = [LoadWarning::NoRequest { requested, why }];
            let expected = expected.map(|why| LoadWarning::NoAnswer {
                why: Some(Trouble::plain(why.to_owned())),
            });
            let result = no_answer(&counts, has_connected, &warnings);
            assert_eq!(result, expected, "{counts:?}");
        }
    }
}
