//! `goals`.

use stillwell_legacy::{Node, Reader, Span, Value, code};
use stillwell_plan::{GoalMetric, GoalPlan};
use stillwell_units::Tolerance;

use super::Door;
use crate::schema::{Element, Shape, optional, required};

const METRICS: Shape = Shape::Words(&[
    "ingress_throughput",
    "egress_throughput",
    "cpu_per_event",
    "cpu",
    "memory",
]);

pub(super) const GOAL: Element = Element {
    name: "goal",
    about: "What variants are compared by.",
    fields: &[
        required("metric", METRICS, "One number a run."),
        optional(
            "tolerance",
            Shape::Like("3%"),
            "How large a change must be to matter.",
        ),
    ],
    one_of: &[],
};

/// A goal, or just its metric.
pub(super) const SHAPE: Shape = Shape::Any(&[METRICS, Shape::Element(&GOAL)]);

/// `metric` with the tolerance that it has where none is given.
pub(crate) fn goal_of(metric: GoalMetric) -> GoalPlan {
    let tolerance = Tolerance::try_new(metric.default_tolerance_share());
    GoalPlan {
        metric,
        tolerance: tolerance.expect("default tolerances lie between 0 and 1"),
    }
}

/// The goals where none are given.
pub(crate) fn default_goals(has_generators: bool) -> Vec<GoalPlan> {
    let metrics: &[GoalMetric] = if has_generators {
        &[
            GoalMetric::CpuPerEvent,
            GoalMetric::IngressThroughput,
            GoalMetric::Memory,
        ]
    } else {
        &[GoalMetric::Memory, GoalMetric::Cpu]
    };
    metrics.iter().copied().map(goal_of).collect()
}

/// `METRIC` or `METRIC:TOLERANCE`, as typed on a command line.
pub(crate) fn parse_goal(text: &str) -> Result<GoalPlan, String> {
    let (name, tolerance) = match text.split_once(':') {
        Some((name, tolerance)) => (name, Some(tolerance)),
        None => (text, None),
    };
    let metric = GoalMetric::ALL
        .into_iter()
        .find(|metric| metric.name() == name);
    let Some(metric) = metric else {
        let names = GoalMetric::ALL.map(GoalMetric::name).join(", ");
        return Err(format!("unknown goal `{name}`; accepted: {names}"));
    };
    let mut goal = goal_of(metric);
    if let Some(tolerance) = tolerance {
        goal.tolerance = tolerance
            .parse()
            .map_err(|error: stillwell_units::ParseError| error.to_string())?;
    }
    Ok(goal)
}

/// The goals of a file, each with its place.
pub(super) fn read_goals(door: &Door<'_>, node: &Node) -> Vec<(GoalPlan, Span)> {
    let reader = door.reader;
    let items = reader.list(node).unwrap_or_default();
    if items.is_empty() && matches!(node.value, Value::List(_)) {
        let error = reader.error(code::WRONG_SHAPE, node.span, "an empty list of goals");
        reader.report(error.label("at least one goal belongs here"));
    }
    let mut goals: Vec<(GoalPlan, Span)> = Vec::new();
    for item in items {
        let Some(goal) = read_goal(reader, item) else {
            continue;
        };
        if let Some((_, first)) = goals.iter().find(|(other, _)| other.metric == goal.metric) {
            let message = format!("goal `{}` stands twice", goal.metric.name());
            reader.report(
                reader
                    .error(code::SAME_NAME, item.span, message)
                    .label("the second")
                    .context(reader.place(*first), "the first"),
            );
        }
        goals.push((goal, item.span));
    }
    goals
}

fn read_goal(reader: &Reader, node: &Node) -> Option<GoalPlan> {
    let words = GoalMetric::ALL.map(|metric| (metric.name(), metric));
    if matches!(node.value, Value::Scalar { .. }) {
        return reader.word(node, "goal", &words).map(goal_of);
    }
    let map = reader.map(node, &GOAL.keys())?;
    let metric = map
        .required("metric")
        .and_then(|node| reader.word(node, "goal", &words));
    let tolerance = map.take("tolerance").map(|node| reader.parsed(node));
    let mut goal = goal_of(metric?);
    if let Some(tolerance) = tolerance {
        goal.tolerance = tolerance?;
    }
    Some(goal)
}

/// Reports goals that this workload can never reach.
pub(super) fn check_goals(
    reader: &Reader,
    goals: &[(GoalPlan, Span)],
    has_generators: bool,
    has_sinks: bool,
) {
    for (goal, span) in goals {
        let missing = match goal.metric {
            GoalMetric::CpuPerEvent | GoalMetric::IngressThroughput if !has_generators => {
                "generator"
            }
            GoalMetric::EgressThroughput if !has_sinks => "sink",
            _ => continue,
        };
        let message = format!("`{}` can never be measured here", goal.metric.name());
        let error = reader.error(code::GOAL_WITHOUT_LOAD, *span, message);
        reader.report(error.label(format!("the workload has no {missing}")));
    }
}
