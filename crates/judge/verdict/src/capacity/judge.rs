//! Result of a probe: it kept its bounds, broke them, or says nothing.

use stillwell_plan::Validity;
use stillwell_plan::capacity::{CapacityBound, CapacityFigure};
use stillwell_stats::capacity::Observed;
use stillwell_units::human::{nanos, time};
use stillwell_units::{Nanos, float_from_u64};

use super::LatencyGrowth;
use crate::limits::{PROBE_LATENESS_OF_BOUND, PROBE_REACHED_SHARE};

/// The evidence by which a probe is judged.
#[derive(Debug)]
pub struct ProbeEvidence<'a> {
    /// The measured metric.
    pub figures: &'a [(CapacityFigure, Option<f64>)],
    /// Begun requests, as a share of the requested ones.
    pub reached: f64,
    /// True if there is a rate to reach: else the reached rate is the answer.
    pub has_rate: bool,
    /// Reason why the load generator was the limit, if it was.
    pub generator_limit: Option<String>,
    /// Lateness that the generator caused itself, in one of a hundred cases.
    pub generator_lateness: Nanos,
    /// The share of requests that it sent late by itself, by
    /// [`PROBE_BUNCHED`](crate::limits::PROBE_BUNCHED) and more:
    /// they left in a bunch, which a limiter may refuse.
    pub late_share: f64,
    /// The share of requests that it never began because it ran out of CPU: they are neither errors
    /// nor loss of the target.
    pub never_begun_share: f64,
    /// Growth of latency within the probe, if a queue filled.
    pub growth: Option<LatencyGrowth>,
    /// Strictness of the limits of the lateness of the generator.
    pub validity: Validity,
}

/// Returns the value of a figure with its unit, for readers.
#[must_use]
pub fn figure_text(figure: CapacityFigure, value: f64) -> String {
    if figure.is_time() && value.is_finite() {
        time(value)
    } else {
        figure.format_value(value)
    }
}

/// Judges a probe; the reason is given where it is not plain.
#[must_use]
pub fn judge_probe(
    bounds: &[CapacityBound],
    evidence: &ProbeEvidence<'_>,
) -> (Observed, Option<String>) {
    let value = |figure: CapacityFigure| {
        let item = evidence.figures.iter().find(|item| item.0 == figure);
        item.and_then(|item| item.1)
    };
    let broken: Vec<&CapacityBound> = bounds
        .iter()
        .filter(|bound| !bound.is_kept(value(bound.figure)))
        .collect();
    let Some(first) = broken.first() else {
        if evidence.reached < PROBE_REACHED_SHARE {
            let share = figure_text(CapacityFigure::Throughput, evidence.reached);
            let why = evidence.generator_limit.clone();
            let why = why.unwrap_or_else(|| "more connections may reach it".to_owned());
            let why = format!("only {share} of the rate was reached: {why}");
            return (Observed::Unclear, Some(why));
        }
        if let Some(why) = evidence
            .generator_limit
            .as_ref()
            .filter(|_| !evidence.has_rate)
        {
            return (Observed::Unclear, Some(why.clone()));
        }
        // What was late in spite of the sender kept its bounds all the same.
        return evidence.growth.map_or((Observed::Held, None), |growth| {
            judge_growth(growth, evidence)
        });
    };
    // Errors and loss are the target's, for any state of the generator, unless they are requests that
    // it never began, or no more requests failed than it sent in a bunch.
    let is_certain = |bound: &CapacityBound| {
        let of_target = value(bound.figure).map(|value| value - evidence.never_begun_share);
        match bound.figure {
            _ if evidence.validity.is_off() => true,
            CapacityFigure::Loss => !bound.is_kept(of_target),
            CapacityFigure::Errors => {
                !bound.is_kept(of_target) && of_target.unwrap_or(1.0) > evidence.late_share
            }
            _ => false,
        }
    };
    let reported = value(first.figure).map_or_else(
        || format!("{} was not measured", first.figure),
        |value| format!("{} {}", first.figure, figure_text(first.figure, value)),
    );
    if broken.iter().any(|bound| is_certain(bound)) {
        return (Observed::Failed, Some(reported));
    }
    if let Some(why) = &evidence.generator_limit {
        return (Observed::Unclear, Some(why.clone()));
    }
    let late = float_from_u64(evidence.generator_lateness.as_u64());
    let lateness_max = PROBE_LATENESS_OF_BOUND * evidence.validity.limit_factor();
    let is_caused_by_generator = |bound: &CapacityBound| match bound.figure {
        CapacityFigure::Errors => true,
        figure => figure.is_time() && late > lateness_max * bound.limit,
    };
    if broken.iter().all(|bound| is_caused_by_generator(bound)) {
        let why = format!(
            "{reported}, and the generator itself was late by {} or more in 1 % of all cases",
            nanos(evidence.generator_lateness)
        );
        return (Observed::Unclear, Some(why));
    }
    (Observed::Failed, Some(reported))
}

/// Judges a probe that kept its bounds while a queue filled: a longer one breaks them.
fn judge_growth(growth: LatencyGrowth, evidence: &ProbeEvidence<'_>) -> (Observed, Option<String>) {
    if !evidence.has_rate {
        return (Observed::Held, None);
    }
    let (from, to) = (nanos(growth.from), nanos(growth.to));
    let grew = format!("latency grew from {from} to {to} within the probe: a queue is filling");
    let late = evidence.generator_lateness.as_secs_f64();
    let lateness_max = PROBE_LATENESS_OF_BOUND * evidence.validity.limit_factor();
    let is_caused_by_generator = late > lateness_max * growth.size().as_secs_f64();
    match &evidence.generator_limit {
        _ if evidence.validity.is_off() => (Observed::Failed, Some(grew)),
        Some(limit) => (Observed::Unclear, Some(format!("{grew}; {limit}"))),
        None if is_caused_by_generator => {
            let late = nanos(evidence.generator_lateness);
            let why = format!("{grew}, and the generator itself was late by {late}");
            (Observed::Unclear, Some(why))
        }
        None => (Observed::Failed, Some(grew)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F5: growth of latency is a part of the verdict of a probe with a rate.
    #[test]
    fn f5_a_probe_in_which_a_queue_fills_fails_unless_the_generator_may_be_why() {
        let growth = LatencyGrowth {
            from: Nanos::from_millis(2),
            to: Nanos::from_millis(12),
        };
        let judged = |growth, has_rate, limit: Option<&str>, late, validity| {
            let evidence = ProbeEvidence {
                figures: &[(CapacityFigure::Latency(0.99), Some(15e6))],
                reached: 1.0,
                has_rate,
                generator_limit: limit.map(str::to_owned),
                generator_lateness: Nanos::from_millis(late),
                late_share: 0.0,
                never_begun_share: 0.0,
                growth,
                validity,
            };
            judge_probe(&["p99<20ms".parse().unwrap()], &evidence)
        };
        let (normal, some) = (Validity::Normal, Some(growth));
        let (observed, why) = judged(some, true, None, 0, normal);
        assert_eq!(observed, Observed::Failed);
        assert_eq!(
            why.unwrap(),
            "latency grew from 2.00 ms to 12.0 ms within the probe: a queue is filling"
        );
        for (growth, has_rate, limit, late, validity, expected) in [
            (None, true, None, 0, normal, Observed::Held),
            (some, false, None, 0, normal, Observed::Held),
            (
                some,
                true,
                Some("it was busy"),
                0,
                normal,
                Observed::Unclear,
            ),
            (some, true, None, 5, normal, Observed::Unclear),
            (
                some,
                true,
                Some("it was busy"),
                5,
                Validity::Off,
                Observed::Failed,
            ),
        ] {
            let (observed, why) = judged(growth, has_rate, limit, late, validity);
            assert_eq!(observed, expected, "{why:?}");
        }
    }

    /// A busy generator's throughput was taken for the target's.
    #[test]
    fn without_a_rate_the_generators_limit_is_what_was_reached() {
        for (has_rate, expected) in [(true, Observed::Held), (false, Observed::Unclear)] {
            let evidence = ProbeEvidence {
                figures: &[(CapacityFigure::Errors, Some(0.0))],
                reached: 1.0,
                has_rate,
                generator_limit: Some("it was busy".to_owned()),
                generator_lateness: Nanos::ZERO,
                late_share: 0.0,
                never_begun_share: 0.0,
                growth: None,
                validity: Validity::Normal,
            };
            assert_eq!(
                judge_probe(&["errors<1%".parse().unwrap()], &evidence).0,
                expected
            );
        }
    }

    fn judged(
        bounds: &[&str],
        p99_ms: f64,
        errors: f64,
        reached: f64,
        limit: Option<&str>,
        generator_lateness: Nanos,
    ) -> (Observed, String) {
        // In a twentieth of all cases, where it was late at all.
        let late_share = if generator_lateness > crate::limits::PROBE_BUNCHED {
            0.05
        } else {
            0.0
        };
        let bounds: Vec<CapacityBound> = bounds.iter().map(|text| text.parse().unwrap()).collect();
        let evidence = ProbeEvidence {
            figures: &[
                (CapacityFigure::Latency(0.99), Some(p99_ms * 1e6)),
                (CapacityFigure::Errors, Some(errors)),
            ],
            reached,
            has_rate: true,
            generator_limit: limit.map(str::to_owned),
            generator_lateness,
            late_share,
            never_begun_share: 0.0,
            growth: None,
            validity: Validity::Normal,
        };
        let (observed, why) = judge_probe(&bounds, &evidence);
        (observed, why.unwrap_or_default())
    }

    #[test]
    fn the_generators_own_limits_are_no_capacity() {
        use Observed::{Failed, Held, Unclear};
        let (none, late) = (Nanos::ZERO, Nanos::from_millis(5));
        let both: &[&str] = &["p99<20ms", "errors<1%"];
        for (p99, errors, reached, limit, item, expected, expected_reason) in [
            (5.0, 0.0, 1.0, None, none, Held, ""),
            // Bounds that hold in spite of a late generator hold.
            (5.0, 0.0, 1.0, None, late, Held, ""),
            (50.0, 0.0, 1.0, None, none, Failed, "p99 50.0 ms"),
            (
                50.0,
                0.0,
                1.0,
                None,
                late,
                Unclear,
                "the generator itself was late by 5.00 ms",
            ),
            (
                50.0,
                0.0,
                0.7,
                Some("it was busy"),
                none,
                Unclear,
                "it was busy",
            ),
            (5.0, 0.0, 0.7, None, none, Unclear, "only 70 % of the rate"),
            (
                5.0,
                0.0,
                0.7,
                Some("it was busy"),
                none,
                Unclear,
                "it was busy",
            ),
            // Errors are the target's, for any state of the generator.
            (
                5.0,
                0.5,
                0.7,
                Some("it was busy"),
                late,
                Failed,
                "errors 50 %",
            ),
            // Not so if it sent that many in a bunch.
            (
                5.0,
                0.04,
                1.0,
                None,
                late,
                Unclear,
                "errors 4 %, and the generator",
            ),
            (5.0, 0.04, 1.0, None, none, Failed, "errors 4 %"),
            (f64::INFINITY, 0.0, 1.0, None, none, Failed, "p99 never"),
        ] {
            let (observed, why) = judged(both, p99, errors, reached, limit, item);
            assert_eq!(observed, expected, "{why}");
            assert!(why.contains(expected_reason), "{why}");
        }
    }

    #[test]
    fn values_that_were_not_measured_are_reported() {
        let (observed, why) = judged(&["loss<1%"], 1.0, 0.0, 1.0, None, Nanos::ZERO);
        assert_eq!(observed, Observed::Failed);
        assert_eq!(why, "loss was not measured");
    }
}
