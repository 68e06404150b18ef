//! The experiments of a calibration: the baseline beside itself.

use std::path::Path;

use stillwell_plan::experiment::BinarySource;
use stillwell_plan::{ExperimentPlan, GoalMetric, SuitePlan, TargetKind, VariantPlan};
use stillwell_units::Seed;
use stillwell_verdict::calibration::{Slowdown, Trial};

/// The way to make the primary goal of `experiment` worse, or the reason why there is none.
pub(super) fn slowdown_kind(experiment: &ExperimentPlan) -> Result<Slowdown, String> {
    let TargetKind::Child(_) = experiment.run_plan.target.kind else {
        return Err("the target is not started by Stillwell".to_owned());
    };
    let primary = experiment.goals.first().map(|goal| &goal.metric);
    match primary {
        Some(GoalMetric::Cpu | GoalMetric::CpuPerEvent) => Ok(Slowdown::Burn),
        Some(
            GoalMetric::IngressThroughput
            | GoalMetric::EgressThroughput
            | GoalMetric::RequestThroughput
            | GoalMetric::Latency(_)
            | GoalMetric::ServiceTime(_),
        ) => Ok(Slowdown::Pause),
        Some(metric) => Err(format!("there is no known slowdown for {}", metric.name())),
        None => Err("there is no goal".to_owned()),
    }
}

/// The change of the primary goal that `share` causes, if it is known: a target that is stopped for
/// a share of the time does that much less. The effect on latencies is not known.
pub(super) fn truth(experiment: &ExperimentPlan, share: f64) -> Option<f64> {
    match experiment.goals.first()?.metric {
        GoalMetric::Cpu | GoalMetric::CpuPerEvent => Some(share),
        GoalMetric::IngressThroughput | GoalMetric::EgressThroughput => Some(-share),
        _ => None,
    }
}

/// The suite of one trial: `experiment` with its baseline and, beside it, the same.
pub(super) fn self_comparison(experiment: &ExperimentPlan, seed: Seed) -> SuitePlan {
    let baseline = experiment.variants.first();
    let itself = baseline.map(|baseline| VariantPlan {
        name: Trial::SelfComparison.name().to_owned(),
        ..baseline.clone()
    });
    suite(experiment, itself, seed)
}

/// The same with the target made worse by `percent`, such as `5%`. `binary` is what the baseline
/// was built as, and `stillwell` the running executable.
pub(super) fn worse(
    experiment: &ExperimentPlan,
    seed: Seed,
    binary: Option<&Path>,
    (how, percent): (Slowdown, &str),
) -> SuitePlan {
    let slowed = experiment.variants.first().and_then(|baseline| {
        let target = experiment.target_of(baseline, binary);
        let TargetKind::Child(child) = target.kind else {
            return None;
        };
        let flag = match how {
            Slowdown::Burn => "--burn",
            Slowdown::Pause => "--pause",
        };
        let mut command = ["{self}", "disturb", flag, percent, "--"]
            .map(str::to_owned)
            .to_vec();
        command.push(child.program.to_string_lossy().into_owned());
        command.extend(child.arguments);
        Some(VariantPlan {
            name: Trial::Worse.name().to_owned(),
            binary: BinarySource::AsPlanned,
            command: Some(command),
            // They are in the command already.
            arguments: Vec::new(),
            ..baseline.clone()
        })
    });
    suite(experiment, slowed, seed)
}

fn suite(experiment: &ExperimentPlan, comparison: Option<VariantPlan>, seed: Seed) -> SuitePlan {
    let mut experiment_plan = experiment.clone();
    experiment_plan.variants.truncate(1);
    experiment_plan.variants.extend(comparison);
    // Bounds are for judging variants; here the measurement is judged.
    experiment_plan.run_plan.checks.clear();
    experiment_plan.run_plan.seed = experiment_plan
        .run_plan
        .seed
        .derive("calibrate", 0)
        .derive("rig", seed_number(&seed));
    for generator in &mut experiment_plan.run_plan.generators {
        generator.seed = generator.seed.derive("calibrate", seed_number(&seed));
    }
    SuitePlan {
        experiments: vec![experiment_plan],
        seed,
    }
}

/// Some of its bytes: seeds that differ there are distinguished.
fn seed_number(seed: &Seed) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = *seed.bytes();
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}
