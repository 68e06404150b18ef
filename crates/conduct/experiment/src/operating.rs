//! The rate of an experiment.
//!
//! A probe runs the baseline at full speed. The reached rate is the capacity of the whole run, regardless
//! of the limiting part; the experiment then runs at a share of that, where the target is busy and
//! not saturated.

use serde::{Deserialize, Serialize};
use stillwell_plan::stopping::DesignPlan;
use stillwell_plan::{ExperimentPlan, RatePlan, RateShape, RateUnit, WorkUnit};
use stillwell_units::Nanos;
use stillwell_verdict::limits::LIGHT_LOAD_SHARE;
use stillwell_verdict::{GeneratorFigures, RunSummary};

/// Names the shape of [`OperatingPointFound`].
pub const OPERATING_POINT_SCHEMA: &str = "stillwell/operating-point/v1";

/// Share of its CPUs from which on the target was the probe's limit.
const TARGET_LIMIT_SHARE: f64 = 0.85;
/// Factor by which an experiment stays above a light load: load varies around the chosen rate.
const LIGHT_LOAD_MARGIN: f64 = 1.2;
/// Share of a limit other than the target that an experiment may use for that.
const OTHER_LIMIT_SHARE: f64 = 0.8;
/// Longest warm-up of a probe.
const PROBE_WARMUP: Nanos = Nanos::SECOND;

/// Figures of a probe.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Id of each generator without a stated rate, and the units that it sent each second.
    pub generators: Vec<(String, f64)>,
    /// Unit of their work.
    pub work: WorkUnit,
    /// CPU seconds of the target for each second, if it was watched.
    pub target_cpu_share: Option<f64>,
    /// The same as a share of the CPUs that it may use, if these are known.
    pub target_core_share: Option<f64>,
}

/// The rate at which an experiment runs, and why.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct OperatingPointFound {
    /// [`OPERATING_POINT_SCHEMA`].
    pub schema: String,
    /// The requested share.
    pub share: f64,
    /// The share of what the probe reached at which the experiment runs.
    pub factor: f64,
    /// CPU seconds of the target for each second of the probe.
    pub target_cpu_share: Option<f64>,
    /// The same as a share of the CPUs that it may use.
    pub target_core_share: Option<f64>,
    /// One for each generator without a stated rate, in the plan's order.
    pub generators: Vec<GeneratorPoint>,
    /// The reason for the rate, in one sentence for readers.
    pub reason: String,
}

/// The rate at which one generator runs.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct GeneratorPoint {
    /// The generator.
    pub id: String,
    /// Events that it sent each second of the probe.
    pub achieved_per_second: f64,
    /// Events that it sends each second of a run.
    pub events_per_second: f64,
}

/// A probe did not find a rate.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum OperatingPointError {
    /// A generator sent nothing.
    #[error("generator `{id}` sent nothing in the probe")]
    NothingSent {
        /// The generator.
        id: String,
    },
}

impl Reading {
    /// Returns the figures of a probe of `experiment`, from its summary.
    #[must_use]
    pub fn of(probe: &RunSummary, experiment: &ExperimentPlan) -> Self {
        let is_probed = |id: &str| {
            let mut plans = experiment.run_plan.generators.iter();
            plans.any(|plan| plan.id == id && experiment.is_probed(plan))
        };
        let generators = probe.figures.generators.iter();
        let generators = generators.filter(|generator| is_probed(&generator.id));
        let units = generators.clone().map(|generator| generator.unit);
        let sent = |generator: &GeneratorFigures| {
            let per_second = generator.achieved_per_second.unwrap_or(0.0);
            (generator.id.clone(), per_second)
        };
        Self {
            work: WorkUnit::common(units),
            generators: generators.map(sent).collect(),
            target_cpu_share: probe.figures.target_cpu_share,
            target_core_share: probe.figures.target_core_share,
        }
    }
}

/// Returns the rate at which the target is busy for about `share` of its CPUs.
///
/// * A target that used 85 % of its CPUs or more was the limit: the rate is `share` of the reached
///   one.
/// * If another part was the limit, the rate is the same share: a program close to a limit of its
///   generators is late, and its runs are invalid.
/// * If the target then used less CPU than a verdict on CPU needs (a quarter of a core and a
///   margin), the rate rises until it does, but not above 80 % of the reached one.
/// * The two runs of a duet share the machine, so the capacity of each is at most half of the reached
///   rate: both shares are halved, or less is left of them if one CPU of the target stays idle.
///
/// # Errors
/// [`OperatingPointError`] for a generator that sent nothing.
pub fn choose_rate(
    share: f64,
    design: DesignPlan,
    reading: &Reading,
) -> Result<OperatingPointFound, OperatingPointError> {
    let (part, of_design) = match design {
        DesignPlan::Paired | DesignPlan::Sliced { .. } => (1.0, ""),
        DesignPlan::Duet => (duet_part(reading), "; two runs at once share the machine"),
    };
    let (factor, reason) = factor(share * part, OTHER_LIMIT_SHARE * part, reading);
    let generators = reading.generators.iter().map(|(id, achieved)| {
        if !(achieved.is_finite() && *achieved > 0.0) {
            return Err(OperatingPointError::NothingSent { id: id.clone() });
        }
        Ok(GeneratorPoint {
            id: id.clone(),
            achieved_per_second: *achieved,
            events_per_second: achieved * factor,
        })
    });
    let generators: Vec<GeneratorPoint> = generators.collect::<Result<_, _>>()?;
    let achieved: f64 = generators
        .iter()
        .map(|generator| generator.achieved_per_second)
        .sum();
    let rate: f64 = generators
        .iter()
        .map(|generator| generator.events_per_second)
        .sum();
    let reason = format!(
        "{}: {:.0} % of the {} that the probe reached, {reason}{of_design}",
        reading.work.rate(rate),
        factor * 100.0,
        reading.work.rate(achieved),
    );
    Ok(OperatingPointFound {
        schema: OPERATING_POINT_SCHEMA.to_owned(),
        share,
        factor,
        target_cpu_share: reading.target_cpu_share,
        target_core_share: reading.target_core_share,
        generators,
        reason,
    })
}

/// Part of the target's CPUs that each of the two runs of a duet has. With an odd number one stays
/// idle.
fn duet_part(reading: &Reading) -> f64 {
    let half = 0.5;
    let (Some(cpu), Some(core)) = (reading.target_cpu_share, reading.target_core_share) else {
        return half;
    };
    let cpus = (cpu / core).round();
    if cpus.is_finite() && cpus >= 2.0 {
        (cpus * half).floor() / cpus
    } else {
        half
    }
}

/// The share of what was reached, and why. Only a light load raises `share`, and not above
/// `raised_max`.
fn factor(share: f64, raised_max: f64, reading: &Reading) -> (f64, String) {
    let Some(core_share) = reading.target_core_share.or(reading.target_cpu_share) else {
        return (share, "where the target's CPU time is not known".to_owned());
    };
    let percent = core_share * 100.0;
    if core_share >= TARGET_LIMIT_SHARE {
        let reason =
            format!("where the target, busy for {percent:.0} % of its CPUs, was the limit");
        return (share, reason);
    }
    let used = reading.target_cpu_share.unwrap_or(core_share);
    let least = LIGHT_LOAD_SHARE * LIGHT_LOAD_MARGIN;
    if used > 0.0 && used * share < least {
        let raised = (least / used).min(raised_max).max(share);
        let reason = format!(
            "where the target was busy for {percent:.0} % of its CPUs and something else was the limit; \
             a lower rate would leave the target too idle to judge its CPU time"
        );
        return (raised, reason);
    }
    let reason = format!(
        "where the target was busy for {percent:.0} % of its CPUs and something else was the limit"
    );
    (share, reason)
}

/// The plan of a probe of `experiment`: generators without a stated rate send at full speed.
pub(crate) fn probing(experiment: &ExperimentPlan, length: Nanos) -> ExperimentPlan {
    let mut probing = experiment.clone();
    for generator in &mut probing.run_plan.generators {
        if experiment.is_probed(generator) {
            generator.rate.unit = RateUnit::Events;
        }
    }
    let phases = &mut probing.run_plan.phases;
    phases.warmup = phases.warmup.min(PROBE_WARMUP);
    phases.measure = length;
    // Steps and bounds are meant for the measured runs.
    probing.run_plan.timeline.clear();
    probing.run_plan.checks.clear();
    probing
}

/// `experiment` with no schedule limiting any generator. The unit of its rates stays, so the
/// reached rate has the unit of the file.
pub(crate) fn at_full_speed(experiment: &ExperimentPlan) -> ExperimentPlan {
    let mut fast = experiment.clone();
    for generator in &mut fast.run_plan.generators {
        generator.rate.shape = RateShape::Max;
    }
    fast
}

/// `experiment` at the chosen rate. Stated rates stay.
pub(crate) fn at(experiment: &ExperimentPlan, point: &OperatingPointFound) -> ExperimentPlan {
    let mut at_rate = experiment.clone();
    for generator in &mut at_rate.run_plan.generators {
        if experiment.is_probed(generator)
            && let Some(per_second) = rate_of(point, &generator.id)
        {
            generator.rate = RatePlan {
                unit: RateUnit::Events,
                shape: RateShape::Constant { per_second },
            };
        }
    }
    at_rate
}

/// The chosen rate of the generator `id`, in events each second.
fn rate_of(point: &OperatingPointFound, id: &str) -> Option<f64> {
    let mut generators = point.generators.iter();
    let generator = generators.find(|generator| generator.id == id)?;
    Some(generator.events_per_second)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reading(cpu: Option<f64>, core: Option<f64>) -> Reading {
        Reading {
            work: WorkUnit::Events,
            generators: vec![("a".to_owned(), 3000.0), ("b".to_owned(), 1000.0)],
            target_cpu_share: cpu,
            target_core_share: core,
        }
    }

    #[test]
    fn rates_follow_from_what_was_the_limit() {
        for (cpu, core, factor, expected) in [
            (Some(0.97), Some(0.97), 0.6, "was the limit"),
            (Some(0.85), Some(0.85), 0.6, "was the limit"),
            (Some(0.7), Some(0.7), 0.6, "something else was the limit"),
            // A fifth of a large machine: another part was the limit.
            (Some(1.6), Some(0.2), 0.6, "something else was the limit"),
            // 0.6 of it would be 0.24 of a core.
            (Some(0.4), Some(0.4), 0.75, "too idle"),
            (Some(0.1), Some(0.1), 0.8, "too idle"),
            (Some(0.0), Some(0.0), 0.6, "something else was the limit"),
            (None, None, 0.6, "not known"),
        ] {
            let point = choose_rate(0.6, DesignPlan::Paired, &reading(cpu, core)).unwrap();
            assert!((point.factor - factor).abs() < 1e-9, "{cpu:?}: {point:?}");
            assert!(point.reason.contains(expected), "{}", point.reason);
            let rates: Vec<f64> = point
                .generators
                .iter()
                .map(|generator| generator.events_per_second)
                .collect();
            assert!((rates[0] - 3000.0 * factor).abs() < 1e-6);
            assert!((rates[1] - 1000.0 * factor).abs() < 1e-6);
        }
    }

    #[test]
    fn each_run_of_a_duet_has_at_most_half_of_the_capacity() {
        for (cpu, core, factor) in [
            (Some(0.97), Some(0.97), 0.3),
            (Some(1.6), Some(0.2), 0.3),
            // 0.3 of it would be 0.24 of a core.
            (Some(0.8), Some(0.8), 0.375),
            (Some(0.1), Some(0.1), 0.4),
            // One of three CPUs each.
            (Some(2.91), Some(0.97), 0.2),
            (Some(0.0), Some(0.0), 0.3),
            (None, None, 0.3),
        ] {
            let point = choose_rate(0.6, DesignPlan::Duet, &reading(cpu, core)).unwrap();
            assert!((point.factor - factor).abs() < 1e-9, "{cpu:?}: {point:?}");
            let expected = "two runs at once share the machine";
            assert!(point.reason.ends_with(expected), "{}", point.reason);
        }
    }

    #[test]
    fn each_generator_has_its_own_rate() {
        let point = choose_rate(0.5, DesignPlan::Paired, &reading(Some(0.97), Some(0.97))).unwrap();
        assert_eq!(rate_of(&point, "a"), Some(1500.0));
        assert_eq!(rate_of(&point, "b"), Some(500.0));
        assert_eq!(rate_of(&point, "c"), None);
    }

    #[test]
    fn the_reason_reads_well() {
        let point = choose_rate(0.6, DesignPlan::Paired, &reading(Some(0.97), Some(0.97))).unwrap();
        assert_eq!(
            point.reason,
            "2,400 events/s: 60 % of the 4,000 events/s that the probe reached, where the target, \
             busy for 97 % of its CPUs, was the limit"
        );
    }

    #[test]
    fn a_generator_that_sent_nothing_has_no_rate() {
        let mut silent = reading(Some(0.9), Some(0.9));
        silent.generators[1].1 = 0.0;
        let error = choose_rate(0.6, DesignPlan::Paired, &silent).unwrap_err();
        assert_eq!(error.to_string(), "generator `b` sent nothing in the probe");
    }

    proptest! {
        /// For all readings: the rate is below the reached one, and never below the requested share
        /// unless the target exceeded its CPUs.
        #[test]
        fn rates_stay_within_what_was_reached(share in 0.01_f64..0.99, cpu in 0.0_f64..1.0) {
            let reading = reading(Some(cpu), Some(cpu));
            let point = choose_rate(share, DesignPlan::Paired, &reading).unwrap();
            prop_assert!(point.factor < 1.0);
            prop_assert!(point.factor >= share - 1e-12);
        }
    }
}
