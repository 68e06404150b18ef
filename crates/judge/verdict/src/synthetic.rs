//! Summaries made up for tests and benchmarks, here and in other crates: runs
//! that went well and differ only in their numbers.

use std::collections::BTreeMap;

use stillwell_capture::{RunIdentity, RunOutcome, RunStage};
use stillwell_plan::experiment::{MAX_TIME_DEFAULT, OperatingPoint};
use stillwell_plan::stopping::{DesignPlan, WarmupPlan};
use stillwell_plan::{
    ExperimentPlan, GoalMetric, GoalPlan, PhasesPlan, RunPlan, StoppingPlan, TargetPlan,
    VariantPlan,
};
use stillwell_units::{Nanos, RunId, Seed, float_from_u64};

use crate::summary::{Measured, RunFigures, RunSummary, SUMMARY_SCHEMA};

/// A valid run of `variant` in pair `pair` of `stage` of the experiment
/// `experiment`, with these numbers. It measured 10 s after 2 s of warm-up, and
/// its target used half a core.
#[must_use]
pub fn run(
    experiment: &str,
    (stage, pair, variant): (RunStage, u32, &str),
    values: &[(GoalMetric, f64)],
) -> RunSummary {
    let mut name = [0; 16];
    name[..4].copy_from_slice(&pair.to_be_bytes());
    let letters = variant.bytes().chain(experiment.bytes());
    for (place, letter) in (4..15).cycle().zip(letters) {
        name[place] = name[place].wrapping_mul(31).wrapping_add(letter);
    }
    name[15] = u8::from(stage == RunStage::Confirm);
    let values = values.iter();
    RunSummary {
        schema: SUMMARY_SCHEMA.to_owned(),
        run: RunId::from_bytes(name),
        target: "target".to_owned(),
        identity: Some(RunIdentity {
            experiment: experiment.to_owned(),
            variant: variant.to_owned(),
            stage,
            pair,
            position: 0,
        }),
        outcome: RunOutcome::Completed,
        measured: Nanos::from_secs(10),
        warmup: Nanos::from_secs(2),
        length: Nanos::from_secs(15),
        values: values
            .map(|(metric, value)| (metric.clone(), Measured::Value(*value)))
            .collect(),
        warnings: Vec::new(),
        notes: Vec::new(),
        figures: RunFigures {
            target_cpu_share: Some(0.5),
            ..RunFigures::default()
        },
        checks: Vec::new(),
        series: BTreeMap::new(),
        series_left_out: 0,
        environment: BTreeMap::new(),
    }
}

/// An experiment `name` of `baseline` and `comparison` with these goals, of up to
/// 20 pairs of runs like those of [`run`], without confirmation. Its plan is
/// empty: it is for judging, not for running.
#[must_use]
pub fn plan(name: &str, goals: Vec<GoalPlan>) -> ExperimentPlan {
    ExperimentPlan {
        name: name.to_owned(),
        summary: None,
        folder: name.into(),
        run_plan: run_plan(),
        variants: ["baseline", "comparison"]
            .map(|name| VariantPlan::unchanged(name.to_owned()))
            .to_vec(),
        goals,
        stopping: StoppingPlan::Sequential { max_pairs: 20 },
        design: DesignPlan::Paired,
        warmup: WarmupPlan::Stated,
        max_time: MAX_TIME_DEFAULT,
        confirm: false,
        builds: 1,
        family: None,
        operating_point: OperatingPoint::Stated,
        stated_max: Vec::new(),
        report_links: Vec::new(),
        erratic: false,
    }
}

pub(crate) fn run_plan() -> RunPlan {
    RunPlan {
        target: TargetPlan {
            name: "target".to_owned(),
            ..TargetPlan::none()
        },
        phases: PhasesPlan {
            warmup: Nanos::from_secs(2),
            measure: Nanos::from_secs(10),
            ..PhasesPlan::default()
        },
        ..RunPlan::idle(Seed::from_number(1))
    }
}

/// An experiment `name` whose first goal is 5 % dearer in the comparison, with
/// this many search pairs and this many series of noise in every run: what a
/// benchmark of [`judge`](crate::judge) is made of.
#[must_use]
pub fn crowded(name: &str, pairs: u32, series: u32) -> (ExperimentPlan, Vec<RunSummary>) {
    let goals = [
        GoalMetric::CpuPerEvent,
        GoalMetric::Memory,
        GoalMetric::IngressThroughput,
    ];
    let mut noise = noise(u64::from(pairs) ^ 0x5EED);
    let mut runs = Vec::new();
    for pair in 1..=pairs {
        for (variant, worse) in [("baseline", 1.0), ("comparison", 1.05)] {
            let values = goals.each_ref().map(|goal| {
                let is_first = *goal == GoalMetric::CpuPerEvent;
                let change = if is_first { worse } else { 1.0 };
                (goal.clone(), 1000.0 * change * (1.0 + 0.02 * noise()))
            });
            let mut run = run(name, (RunStage::Search, pair, variant), &values);
            run.series = (0..series)
                .map(|number| {
                    let value = 100.0 + noise();
                    (format!("target/series_{number:04}:per_event"), value)
                })
                .collect();
            runs.push(run);
        }
    }
    let goals = goals.map(GoalPlan::new);
    (plan(name, goals.to_vec()), runs)
}

/// Numbers from −0.5 to 0.5 that look random.
fn noise(mut state: u64) -> impl FnMut() -> f64 {
    move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        float_from_u64(state >> 11) / 9_007_199_254_740_992.0 - 0.5
    }
}
