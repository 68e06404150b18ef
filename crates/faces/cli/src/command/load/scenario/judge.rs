//! Warnings and thresholds of a scenario, by the rules of loads.

use stillwell_metric::{
    Histogram, LoadEvidence, LoadStrain, Trouble, add_histogram, empty_histogram,
};
use stillwell_plan::Validity;
use stillwell_plan::capacity::CapacityBound;
use stillwell_plan::load::LoadPacing;
use stillwell_plan::scenario::{ScenarioLoadPlan, UsersPlan};
use stillwell_report::ScenarioThreshold;
use stillwell_report::load::BriefWarning;
use stillwell_run::ScenarioResult;
use stillwell_units::{Nanos, float_from_u64};
use stillwell_verdict::capacity::{LoadProbeCounts, figure_text, judge_load_probe};
use stillwell_verdict::{LoadRules, load_warnings};

/// Figures of all steps together.
pub(super) struct ScenarioFigures {
    pub(super) requests: u64,
    pub(super) errors: u64,
    pub(super) latency: Histogram<u64>,
    /// Times of requests that did not fail.
    pub(super) latency_of_good: Histogram<u64>,
}

pub(super) fn figures(result: &ScenarioResult) -> ScenarioFigures {
    let [mut latency, mut latency_of_good] = [empty_histogram(), empty_histogram()];
    for step in &result.steps {
        add_histogram(&mut latency, &step.latency);
        add_histogram(&mut latency_of_good, &step.latency_of_good);
    }
    let errors = result.steps.iter().flat_map(|step| step.failures.values());
    ScenarioFigures {
        requests: result.steps.iter().map(|step| step.requests).sum(),
        errors: errors.sum(),
        latency,
        latency_of_good,
    }
}

const fn is_open(plan: &ScenarioLoadPlan) -> bool {
    matches!(plan.users, UsersPlan::Arriving { .. })
}

/// Returns the warnings, and true if none of them makes the result unreliable.
pub(super) fn warnings(
    plan: &ScenarioLoadPlan,
    result: &ScenarioResult,
    figures: &ScenarioFigures,
    validity: Validity,
) -> (Vec<BriefWarning>, bool) {
    let users = &result.users;
    let mut failures = result
        .steps
        .iter()
        .filter_map(|step| step.first_failure.clone());
    let evidence = LoadEvidence {
        measured: result.measured,
        has_warmup: plan.warmup > Nanos::ZERO,
        strain: LoadStrain {
            busy_share: result.busy_share,
            lateness_p99: Nanos::new(result.lateness.value_at_quantile(0.99)),
            lateness_count: result.lateness.len(),
            service_median: Nanos::new(figures.latency.value_at_quantile(0.5)),
        },
        cpu_wait_share: result.cpu_wait_share,
        due: users.started + users.not_started,
        requested: users.started + users.not_started,
        begun: users.started,
        sent: users.started,
        answers: figures.latency.len(),
        answers_with_warmup: figures.latency.len(),
        first_trouble: failures.next().map(Trouble::plain),
        ..LoadEvidence::default()
    };
    let pacing = match is_open(plan) {
        true => LoadPacing::Open,
        false => LoadPacing::Closed,
    };
    let rules = LoadRules { pacing, validity };
    let warnings = load_warnings(rules, &evidence);
    let warnings: Vec<BriefWarning> = warnings
        .iter()
        .map(|warning| BriefWarning {
            code: warning.code().to_owned(),
            text: warning.to_string(),
            unreliable: rules.is_unreliable_by(warning),
        })
        .collect();
    let is_reliable = !warnings.iter().any(|warning| warning.unreliable);
    (warnings, is_reliable)
}

/// Returns each threshold with its figure.
pub(super) fn thresholds(
    plan: &ScenarioLoadPlan,
    result: &ScenarioResult,
    figures: &ScenarioFigures,
    bounds: &[CapacityBound],
) -> Vec<ScenarioThreshold> {
    let users = &result.users;
    let answered = figures.latency.len();
    let due = users.started + users.not_started;
    let seconds = result.measured.as_secs_f64().max(1e-9);
    let counts = LoadProbeCounts {
        requested: figures.requests,
        never_begun: 0,
        errors: figures.errors.saturating_sub(figures.requests - answered),
        answered,
        reached: float_from_u64(users.started) / float_from_u64(due.max(1)),
        per_second: float_from_u64(result.good_in_time) / seconds,
        has_rate: is_open(plan),
        lateness_p99: Nanos::new(result.lateness.value_at_quantile(0.99)),
        bunched: 0,
        growth: None,
        times: Some(figures.latency_of_good.clone()),
    };
    let measured = judge_load_probe(&counts, (Validity::default(), &[]), bounds).figures;
    let figure_of = |bound: &CapacityBound| {
        let figure = measured.iter().find(|(figure, _)| *figure == bound.figure);
        figure.and_then(|(_, value)| *value)
    };
    let bounds = bounds.iter().map(|bound| {
        let value = figure_of(bound);
        ScenarioThreshold {
            bound: bound.to_string(),
            measured: value.map_or_else(
                || "not measured".to_owned(),
                |value| figure_text(bound.figure, value),
            ),
            held: bound.is_kept(value),
        }
    });
    bounds.collect()
}
