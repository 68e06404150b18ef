//! Probes that were loads.

use stillwell_metric::Histogram;
use stillwell_plan::Validity;
use stillwell_plan::capacity::{CapacityBound, CapacityFigure};
use stillwell_stats::capacity::Observed;
use stillwell_units::{Nanos, float_from_u64, floor_to_u64};

use super::{CapacityProbe, LatencyGrowth, ProbeEvidence, figures, judge_probe};
use crate::load::LoadWarning;

/// Reason why a probe without one request says nothing.
const NOTHING_DUE: &str = "no request was due in that time: use longer probes (--probe)";

/// The result of a probe that was a load, as it is judged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadProbeCounts {
    /// Latencies of requests that were answered well; `None` for none.
    pub times: Option<Histogram<u64>>,
    /// Requests that were due, begun or not.
    pub requested: u64,
    /// Requests that were answered with an error.
    pub errors: u64,
    /// Requests that were answered at all.
    pub answered: u64,
    /// Requests begun, as a share of the requested ones.
    pub reached: f64,
    /// Requests answered well each second.
    pub per_second: f64,
    /// True if there is a rate to reach.
    pub has_rate: bool,
    /// 99th percentile of the lateness that the generator alone caused.
    pub lateness_p99: Nanos,
    /// Requests that it sent late by
    /// [`PROBE_BUNCHED`](crate::limits::PROBE_BUNCHED) and more.
    pub bunched: u64,
    /// Growth of latency within the probe, if a queue filled.
    pub growth: Option<LatencyGrowth>,
}

/// Judges a probe that was a load with these `warnings`.
#[must_use]
pub fn judge_load_probe(
    counts: &LoadProbeCounts,
    (validity, warnings): (Validity, &[LoadWarning]),
    bounds: &[CapacityBound],
) -> CapacityProbe {
    let figures = figures(bounds, |figure| counts.figure(figure));
    let counted = warnings.iter().filter(|_| !validity.is_off());
    let limit = { counted }.find(|warning| {
        matches!(
            warning,
            LoadWarning::GeneratorSaturated { .. }
                | LoadWarning::GeneratorLimit { .. }
                | LoadWarning::GeneratorLate { .. }
                | LoadWarning::CpuStarvation { .. }
        )
    });
    let evidence = ProbeEvidence {
        figures: &figures,
        reached: counts.reached,
        has_rate: counts.has_rate,
        generator_limit: limit.map(ToString::to_string),
        generator_lateness: counts.lateness_p99,
        late_share: float_from_u64(counts.bunched) / float_from_u64(counts.requested.max(1)),
        growth: counts.growth,
        validity,
    };
    let (observed, why) = if counts.requested == 0 {
        (Observed::Unclear, Some(NOTHING_DUE.to_owned()))
    } else {
        judge_probe(bounds, &evidence)
    };
    CapacityProbe {
        purpose: None,
        rate: None,
        connections: None,
        reached: counts.per_second,
        observed,
        why,
        figures,
    }
}

impl LoadProbeCounts {
    fn figure(&self, figure: CapacityFigure) -> Option<f64> {
        let requested = float_from_u64(self.requested);
        let share = |count: u64| (self.requested > 0).then(|| float_from_u64(count) / requested);
        let times = self.times.as_ref().filter(|times| !times.is_empty());
        match figure {
            CapacityFigure::Latency(share) => self.quantile(share),
            CapacityFigure::LatencyMean => times.map(Histogram::mean),
            CapacityFigure::LatencyMax => times.map(|times| float_from_u64(times.max())),
            CapacityFigure::Errors => share(self.unanswered() + self.errors),
            CapacityFigure::Loss => share(self.unanswered()),
            CapacityFigure::Throughput => Some(self.reached),
        }
    }

    const fn unanswered(&self) -> u64 {
        self.requested.saturating_sub(self.answered)
    }

    /// Over all but those that were answered with an error: what was never
    /// answered is later than all that was.
    fn quantile(&self, share: f64) -> Option<f64> {
        let all = self.requested.saturating_sub(self.errors);
        let place = floor_to_u64((share * float_from_u64(all)).ceil()).max(1);
        let recorded = self.times.as_ref().map_or(0, Histogram::len);
        if all == 0 {
            return None;
        }
        if place > recorded {
            return Some(f64::INFINITY);
        }
        let quantile = float_from_u64(place) / float_from_u64(recorded);
        let times = self.times.as_ref()?;
        Some(float_from_u64(times.value_at_quantile(quantile)))
    }
}

#[cfg(test)]
mod tests {
    use stillwell_metric::empty_histogram;

    use super::*;

    fn counts(
        times: std::ops::RangeInclusive<u64>,
        requested: u64,
        errors: u64,
    ) -> LoadProbeCounts {
        let mut recorded = empty_histogram();
        times.for_each(|time| recorded.record(time).unwrap());
        let answered = recorded.len() + errors;
        LoadProbeCounts {
            times: Some(recorded),
            requested,
            errors,
            answered,
            reached: 1.0,
            per_second: 0.0,
            has_rate: true,
            ..LoadProbeCounts::default()
        }
    }

    #[test]
    fn what_is_never_answered_is_late_for_ever() {
        let all = counts(1..=100, 100, 0);
        assert_eq!(all.figure(CapacityFigure::Latency(0.99)), Some(99.0));
        assert_eq!(all.figure(CapacityFigure::Latency(0.5)), Some(50.0));
        // Two of a hundred never came: the 99th percentile is one of them.
        let lost = counts(1..=98, 100, 0);
        assert_eq!(
            lost.figure(CapacityFigure::Latency(0.99)),
            Some(f64::INFINITY)
        );
        assert_eq!(lost.figure(CapacityFigure::Latency(0.98)), Some(98.0));
        assert_eq!(lost.figure(CapacityFigure::Loss), Some(0.02));
        // Refusals are errors, and do not make the rest look faster or slower.
        let refused = counts(1..=50, 100, 50);
        assert_eq!(refused.figure(CapacityFigure::Latency(0.5)), Some(25.0));
        assert_eq!(refused.figure(CapacityFigure::Errors), Some(0.5));
        assert_eq!(refused.figure(CapacityFigure::Loss), Some(0.0));
        assert_eq!(counts(1..=1, 0, 0).figure(CapacityFigure::Errors), None);
    }

    /// The generator was busy, and so what it reached is no capacity of the target.
    #[test]
    fn a_probe_is_judged_by_counts_and_warnings_alone() {
        let bounds = ["errors<1%".parse().unwrap()];
        let limit = [LoadWarning::GeneratorLimit { share: 0.95 }];
        let closed = LoadProbeCounts {
            has_rate: false,
            ..counts(1..=100, 100, 0)
        };
        for (counts, warnings, expected) in [
            (counts(1..=100, 100, 0), &[][..], Observed::Held),
            (counts(1..=90, 100, 10), &[][..], Observed::Failed),
            (counts(1..=1, 0, 0), &[][..], Observed::Unclear),
            (counts(1..=100, 100, 0), &limit[..], Observed::Held),
            (closed, &limit[..], Observed::Unclear),
        ] {
            let probe = judge_load_probe(&counts, (Validity::Normal, warnings), &bounds);
            assert_eq!(probe.observed, expected, "{:?}", probe.why);
        }
    }

    #[test]
    fn a_broken_latency_bound_is_unclear_if_the_generator_was_slow() {
        let bounds = ["p99<1us".parse().unwrap()];
        let slow = counts(2000..=2099, 100, 0);
        let judged_by =
            |validity, warning| judge_load_probe(&slow, (validity, &[warning]), &bounds).observed;
        let judged = |warning| judged_by(Validity::Normal, warning);
        let share = 0.95;
        let p99 = Nanos::from_millis(2);
        for warning in [
            LoadWarning::GeneratorSaturated { share },
            LoadWarning::GeneratorLimit { share },
            LoadWarning::GeneratorLate { p99 },
            LoadWarning::CpuStarvation { share },
        ] {
            assert_eq!(judged(warning.clone()), Observed::Unclear);
            assert_eq!(judged_by(Validity::Off, warning), Observed::Failed);
        }
        assert_eq!(judged(LoadWarning::CpuSteal { share }), Observed::Failed);
    }
}
