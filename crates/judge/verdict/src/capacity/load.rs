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
    /// Those of them that were never begun.
    pub never_begun: u64,
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
    let mut counted = warnings.iter().filter(|_| !validity.is_off());
    let is_saturated =
        |warning: &LoadWarning| matches!(warning, LoadWarning::GeneratorSaturated { .. });
    // Without that, the target kept all connections busy.
    let never_begun = match counted.clone().any(is_saturated) {
        true => counts.never_begun,
        false => 0,
    };
    // Lateness is judged by the bound that broke, not by the limit of a warning.
    let limit = counted.find(|warning| {
        matches!(
            warning,
            LoadWarning::GeneratorSaturated { .. }
                | LoadWarning::GeneratorLimit { .. }
                | LoadWarning::CpuStarvation { .. }
        )
    });
    let of_requested = |count: u64| float_from_u64(count) / float_from_u64(counts.requested.max(1));
    let evidence = ProbeEvidence {
        figures: &figures,
        reached: counts.reached,
        has_rate: counts.has_rate,
        generator_limit: limit.map(ToString::to_string),
        generator_lateness: counts.lateness_p99,
        late_share: of_requested(counts.bunched),
        never_begun_share: of_requested(never_begun),
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

    /// They counted as errors of the target, and the search confirmed a capacity of the generator.
    #[test]
    fn requests_that_a_generator_without_cpu_never_began_decide_no_bound() {
        let saturated = LoadWarning::GeneratorSaturated { share: 0.95 };
        let starved = LoadWarning::CpuStarvation { share: 0.95 };
        let of_errors = |errors: u64| LoadProbeCounts {
            never_begun: 30,
            reached: 0.7,
            ..counts(1..=70 - errors, 100, errors)
        };
        for (bound, errors, warnings, expected) in [
            ("errors<1%", 0, vec![saturated.clone()], Observed::Unclear),
            ("loss<1%", 0, vec![saturated.clone()], Observed::Unclear),
            ("errors<1%", 0, vec![], Observed::Failed),
            ("loss<1%", 0, vec![], Observed::Failed),
            ("errors<1%", 0, vec![starved], Observed::Failed),
            // These were answered with an error.
            ("errors<1%", 2, vec![saturated.clone()], Observed::Failed),
            ("loss<1%", 2, vec![saturated.clone()], Observed::Unclear),
        ] {
            let counts = of_errors(errors);
            let judged_by = |validity| {
                let bounds = [bound.parse().unwrap()];
                judge_load_probe(&counts, (validity, &warnings), &bounds)
            };
            let probe = judged_by(Validity::Normal);
            assert_eq!(probe.observed, expected, "{bound} {warnings:?}");
            if expected == Observed::Unclear {
                assert_eq!(probe.why, Some(saturated.to_string()));
            }
            assert_eq!(judged_by(Validity::Off).observed, Observed::Failed);
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
        for warning in [
            LoadWarning::GeneratorSaturated { share },
            LoadWarning::GeneratorLimit { share },
            LoadWarning::CpuStarvation { share },
        ] {
            assert_eq!(judged(warning.clone()), Observed::Unclear);
            assert_eq!(judged_by(Validity::Off, warning), Observed::Failed);
        }
        assert_eq!(judged(LoadWarning::CpuSteal { share }), Observed::Failed);
    }

    /// Any lateness of a millisecond made a probe inconclusive, even one with a bound of a second.
    #[test]
    fn lateness_decides_by_its_share_of_the_broken_bound() {
        let p99 = Nanos::from_millis(2);
        let late = [LoadWarning::GeneratorLate { p99 }];
        for (bound, time, expected) in [
            ("p99<1us", 2_000, Observed::Unclear),
            ("p99<10ms", 11_000_000, Observed::Unclear),
            ("p99<1s", 1_100_000_000, Observed::Failed),
        ] {
            let slow = LoadProbeCounts {
                lateness_p99: p99,
                ..counts(time..=time + 99, 100, 0)
            };
            let bounds = [bound.parse().unwrap()];
            let probe = judge_load_probe(&slow, (Validity::Normal, &late), &bounds);
            assert_eq!(probe.observed, expected, "{bound}: {:?}", probe.why);
        }
    }
}
