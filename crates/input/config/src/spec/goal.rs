//! `goals`.

use stillwell_plan::goal::{Direction, LatencyQuantile, Reduction, RouteGoal, TypedTolerance};
use stillwell_plan::{GoalMetric, GoalPlan};
use stillwell_text::{MapReader, Node, Reader, Span, Value, code, nearest};

use super::{ReadContext, series};
use crate::element::{Element, Shape, optional, required};

const PLAIN: Shape = Shape::Words(&[
    "ingress_throughput",
    "egress_throughput",
    "cpu_per_event",
    "instructions_per_event",
    "cpu",
    "memory",
    "memory_peak",
    "memory_slope",
    "latency_p50",
    "latency_p90",
    "latency_p99",
    "latency_p999",
    "service_time_p50",
    "service_time_p90",
    "service_time_p99",
    "service_time_p999",
    "first_byte_p50",
    "first_byte_p90",
    "first_byte_p99",
    "first_byte_p999",
    "error_share",
    "request_throughput",
    "loss",
    "duplicated",
    "event_latency_p50",
    "event_latency_p90",
    "event_latency_p99",
    "event_latency_p999",
]);

const METRICS: Shape = Shape::Any(&[PLAIN, Shape::Like("status_429")]);

const PRIMARY: &str =
    "`true`: this goal decides the exit code; the first one does if none is primary.";

const GOAL: Element = Element::new(
    "goal",
    "A metric by which variants are compared.",
    &[
        required(
            "metric",
            METRICS,
            "One number per run. `instructions_per_event` is skipped where the machine has no counter of \
             instructions. `status_429` is the share of the requests that were answered with \
             that status code.",
        ),
        optional(
            "route",
            Shape::Like("GET /search"),
            "Count only the requests of this method and path, without a query; for goals of \
             responses.",
        ),
        optional(
            "tolerance",
            Shape::Like("3%"),
            "Smallest change that matters: a share such as `3%`, or for a goal measured in time also a time such as \
             `50us`. By default 0.5% for cpu_per_event and instructions_per_event; 2% for \
             ingress_throughput, egress_throughput, request_throughput, cpu, latency_p50, \
             service_time_p50, first_byte_p50 and event_latency_p50; 3% for latency_p90, \
             service_time_p90, first_byte_p90 and event_latency_p90; 5% for memory, memory_peak, \
             latency_p99, service_time_p99, first_byte_p99 and event_latency_p99; 10% for \
             latency_p999, service_time_p999, first_byte_p999 and event_latency_p999. \
             For error_share, status codes, loss, duplicated and memory_slope it is an absolute difference, by default \
             0.1% of the requests for error_share and status codes, 0.1% of the events for loss and duplicated, 1% \
             of the memory each minute for memory_slope.",
        ),
        optional("primary", Shape::Boolean, PRIMARY),
    ],
);

const SERIES_GOAL: Element = Element::new(
    "series goal",
    "Any recorded or scraped series as a goal.",
    &[
        required(
            "series",
            Shape::Like("target/queue_length"),
            "`name` or `name['id']`; a scraped series is called `target/NAME`.",
        ),
        required(
            "reduce",
            Shape::Words(&["mean", "peak", "per_event", "rate"]),
            "Reduction of its samples to one number per run: mean or peak of a gauge, growth of a counter per event or per second.",
        ),
        required(
            "better",
            Shape::Words(&["lower", "higher"]),
            "The better direction.",
        ),
        optional(
            "tolerance",
            Shape::Like("5%"),
            "Smallest relative change that matters; 5% by default.",
        ),
        optional("primary", Shape::Boolean, PRIMARY),
    ],
);

/// A goal, or just its metric.
pub(super) const SHAPE: Shape = Shape::Any(&[
    PLAIN,
    Shape::Like("status_429"),
    Shape::Element(&GOAL),
    Shape::Element(&SERIES_GOAL),
]);

/// The words of `better`.
const BETTER: [(&str, Direction); 2] = [
    (Direction::LowerIsBetter.better(), Direction::LowerIsBetter),
    (
        Direction::HigherIsBetter.better(),
        Direction::HigherIsBetter,
    ),
];

/// A goal of a file and its place.
#[derive(Debug)]
pub(super) struct PlacedGoal {
    pub(super) plan: GoalPlan,
    pub(super) span: Span,
    /// Place of `primary`.
    primary: Option<Span>,
}

/// The goals where none are given.
pub fn default_goals(has_generators: bool) -> Vec<GoalPlan> {
    let metrics = if has_generators {
        vec![
            GoalMetric::CpuPerEvent,
            GoalMetric::IngressThroughput,
            GoalMetric::Memory,
        ]
    } else {
        vec![GoalMetric::Memory, GoalMetric::Cpu]
    };
    metrics.into_iter().map(GoalPlan::new).collect()
}

/// The goals of a target that is a URL, where none are given.
pub(super) fn default_goals_of_url() -> Vec<GoalPlan> {
    let metrics = [
        GoalMetric::Latency(LatencyQuantile::P50),
        GoalMetric::Latency(LatencyQuantile::P99),
        GoalMetric::ErrorShare,
        GoalMetric::RequestThroughput,
    ];
    metrics.into_iter().map(GoalPlan::new).collect()
}

/// The goals of a file, the primary one first.
pub(super) fn read_goals(context: &ReadContext<'_>, node: &Node) -> Vec<PlacedGoal> {
    let reader = context.reader;
    let items = reader.list(node).unwrap_or_default();
    if items.is_empty() && matches!(node.value, Value::List(_)) {
        let error = reader.error(code::WRONG_SHAPE, node.span, "an empty list of goals");
        reader.report(error.label("expected at least one goal"));
    }
    let mut goals: Vec<PlacedGoal> = Vec::new();
    for item in items {
        let Some(goal) = read_goal(reader, item) else {
            continue;
        };
        let metric = &goal.plan.metric;
        if let Some(first) = goals.iter().find(|earlier| earlier.plan.metric == *metric) {
            let message = format!("goal `{metric}` occurs twice");
            reader.report(
                reader
                    .error(code::SAME_NAME, item.span, message)
                    .label("the second")
                    .context(reader.place(first.span), "the first"),
            );
        }
        goals.push(goal);
    }
    check_primary(reader, &goals);
    // A stable sort: all others keep their order.
    goals.sort_by_key(|goal| goal.primary.is_none());
    goals
}

fn check_primary(reader: &Reader, goals: &[PlacedGoal]) {
    let mut primaries = goals.iter().filter_map(|goal| goal.primary);
    let Some(first) = primaries.next() else {
        return;
    };
    for second in primaries {
        reader.report(
            reader
                .error(code::SAME_NAME, second, "two goals are primary")
                .label("only one goal can be primary")
                .context(reader.place(first), "the first"),
        );
    }
}

fn read_goal(reader: &Reader, node: &Node) -> Option<PlacedGoal> {
    if matches!(node.value, Value::Scalar { .. }) {
        return Some(PlacedGoal {
            plan: GoalPlan::new(read_metric(reader, node)?),
            span: node.span,
            primary: None,
        });
    }
    let has = |key: &&str| node.entry(key).is_some();
    let is_series = !has(&"metric") && ["series", "reduce", "better"].iter().any(has);
    let element = if is_series { &SERIES_GOAL } else { &GOAL };
    let map = reader.map(node, &element.keys())?;
    let plan = if is_series {
        read_series_goal(reader, &map)
    } else {
        let metric = map.required("metric");
        let metric = metric.and_then(|node| read_metric(reader, node));
        let route = map.take("route").map(|node| (node, reader.text(node)));
        match (metric, route) {
            (Some(metric), Some((node, route))) => {
                of_route(reader, node, metric, route?).map(GoalPlan::new)
            }
            (metric, _) => metric.map(GoalPlan::new),
        }
    };
    let tolerance = map.take("tolerance");
    let tolerance = tolerance.map(|node| (node, reader.parsed::<TypedTolerance>(node)));
    let primary = map.take("primary");
    let primary = primary.filter(|node| reader.boolean(node) == Some(true));
    let mut plan = plan?;
    if let Some((node, tolerance)) = tolerance {
        plan = match plan.tolerating(tolerance?) {
            Ok(plan) => plan,
            Err(message) => {
                reader.report(reader.error(code::BAD_VALUE, node.span, message));
                return None;
            }
        };
    }
    Some(PlacedGoal {
        plan,
        span: node.span,
        primary: primary.map(|node| node.span),
    })
}

/// Returns the goal `metric` of the requests of a route.
fn of_route(reader: &Reader, node: &Node, metric: GoalMetric, route: &str) -> Option<GoalMetric> {
    let name = metric.name().into_owned();
    let goal = RouteGoal::new(metric, route.to_owned());
    if goal.is_none() {
        let message = format!("`{name}` is not measured for each route");
        let error = reader.error(code::BAD_VALUE, node.span, message);
        let advice = "goals of latency, service time, first byte, errors, status codes and \
                      request throughput are";
        reader.report(error.label(advice));
    }
    goal.map(GoalMetric::Route)
}

fn read_metric(reader: &Reader, node: &Node) -> Option<GoalMetric> {
    let text = reader.text(node)?;
    let metric = text.parse::<GoalMetric>().ok();
    let metric = metric.filter(|metric| !matches!(metric, GoalMetric::Series(_)));
    if metric.is_none() {
        let names = GoalMetric::ALL.map(String::from);
        let words = names.iter().map(String::as_str);
        let words = words.chain(["status_429", "{series: NAME, reduce: …, better: …}"]);
        reader.unknown_word(node.span, "goal", text, words);
    }
    metric
}

fn read_series_goal(reader: &Reader, map: &MapReader<'_, '_>) -> Option<GoalPlan> {
    let series = map.required("series");
    let words = Reduction::ALL.map(|reduction| (reduction.name(), reduction));
    let reduction_node = map.required("reduce");
    let reduction = reduction_node.and_then(|node| reader.word(node, "reduction", &words));
    let better = map.required("better");
    let better = better.and_then(|node| reader.word(node, "direction", &BETTER));
    let goal = series.and_then(|node| series::read(reader, node, reduction?));
    let (goal, direction) = (goal?, better?);
    if let Some(node) = reduction_node {
        series::check_reduction(reader, &goal, node.span)?;
    }
    Some(GoalPlan {
        direction,
        ..GoalPlan::new(GoalMetric::Series(goal))
    })
}

/// Properties of a workload that goals need.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    pub(super) generators: bool,
    pub(super) sinks: bool,
    /// Generators that wait for answers.
    pub(super) answers: bool,
    /// Generators whose events are stamped.
    pub(super) stamps: bool,
    /// Generators whose stamps have numbers: a time before an event has none.
    pub(super) numbers: bool,
    /// Pages of the target's own metrics.
    pub(super) scrapes: bool,
    /// False if the target is a URL of another host.
    pub(super) is_process: bool,
    /// True if the file has no mistake so far, so each generator is known as it was meant.
    pub(super) are_all_known: bool,
    /// Names of the routes of all `requests` generators with several of them.
    pub(super) routes: Vec<String>,
}

/// The reason why a goal can never be measured.
#[derive(Clone, Debug)]
pub(crate) struct GoalProblem {
    pub(crate) message: String,
    pub(crate) advice: String,
}

/// Reports goals that this workload can never reach.
pub(super) fn check_goals(reader: &Reader, goals: &[PlacedGoal], workload: &Workload) {
    for goal in goals {
        if let Some(problem) = goal_problem(&goal.plan.metric, workload) {
            let error = reader.error(code::GOAL_WITHOUT_LOAD, goal.span, problem.message);
            reader.report(error.label(problem.advice));
        }
    }
}

/// Returns the reason if `workload` can never reach a goal of `metric`.
pub(crate) fn goal_problem(metric: &GoalMetric, workload: &Workload) -> Option<GoalProblem> {
    if let Some(missing) = missing(metric, workload) {
        return Some(GoalProblem {
            message: format!("`{metric}` can never be measured here"),
            advice: missing.to_owned(),
        });
    }
    match metric {
        GoalMetric::Route(of_route) => route_problem(of_route.route(), workload),
        _ => None,
    }
}

/// Returns the reason if `route` has no requests.
fn route_problem(route: &str, workload: &Workload) -> Option<GoalProblem> {
    let is_known = workload.routes.iter().any(|name| name == route);
    if is_known || !workload.answers || !workload.are_all_known {
        return None;
    }
    Some(GoalProblem {
        message: format!("no generator sends `{route}`"),
        advice: match workload.routes.as_slice() {
            [] => "leave out `route`, or give `requests` a `mix` of several routes".to_owned(),
            routes => format!("the routes are {}", routes.join(", ")),
        },
    })
}

fn missing(metric: &GoalMetric, workload: &Workload) -> Option<&'static str> {
    const NO_GENERATOR: &str = "the workload has no generator";
    match metric {
        GoalMetric::Cpu
        | GoalMetric::CpuPerEvent
        | GoalMetric::InstructionsPerEvent
        | GoalMetric::Memory
        | GoalMetric::MemoryPeak
        | GoalMetric::MemorySlope
            if !workload.is_process =>
        {
            Some("the target is a URL of another host, so no process is watched")
        }
        GoalMetric::Cpu | GoalMetric::Memory | GoalMetric::MemoryPeak | GoalMetric::MemorySlope => {
            None
        }
        GoalMetric::CpuPerEvent
        | GoalMetric::InstructionsPerEvent
        | GoalMetric::IngressThroughput
        | GoalMetric::Duplicated
        | GoalMetric::EventLatency(_)
        | GoalMetric::Latency(_)
        | GoalMetric::FirstByte(_)
        | GoalMetric::Route(_)
        | GoalMetric::ServiceTime(_)
        | GoalMetric::Status(_)
        | GoalMetric::ErrorShare
        | GoalMetric::RequestThroughput
        | GoalMetric::Loss
            if !workload.generators =>
        {
            Some(NO_GENERATOR)
        }
        GoalMetric::Duplicated
        | GoalMetric::EgressThroughput
        | GoalMetric::EventLatency(_)
        | GoalMetric::Loss
            if !workload.sinks =>
        {
            Some("the workload has no sink")
        }
        GoalMetric::Duplicated | GoalMetric::EventLatency(_) if !workload.stamps => {
            Some("no generator stamps its events: give one `stamps: all`")
        }
        GoalMetric::Duplicated if !workload.numbers => Some(
            "time prefixes show the latency of events, but do not identify them: another `form` does",
        ),
        metric if metric.is_of_answers() && !workload.answers => {
            Some("no generator waits for responses: `requests` and `http` do")
        }
        GoalMetric::Series(series)
            if series.reduction == Reduction::PerEvent && !workload.generators =>
        {
            Some(NO_GENERATOR)
        }
        GoalMetric::Series(series) if series::is_scraped(&series.metric) && !workload.scrapes => {
            Some("nothing is scraped: `observe` has neither `prometheus` nor `expvar`")
        }
        _ => None,
    }
}

/// A goal as typed on a command line: `METRIC[:TOLERANCE]`, or
/// `series:NAME['ID']:REDUCTION[:lower|:higher][:TOLERANCE]`.
pub(crate) struct TypedGoal {
    pub(crate) metric: GoalMetric,
    pub(crate) direction: Option<Direction>,
    pub(crate) tolerance: Option<TypedTolerance>,
}

pub(crate) fn parse_goal(text: &str) -> Result<TypedGoal, String> {
    let mut rest = text;
    let (mut direction, mut tolerance) = (None, None);
    if let Some((before, last)) = rest.rsplit_once(':')
        && !last.ends_with("']")
        && last.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+'))
    {
        let parsed = last.parse::<TypedTolerance>();
        tolerance = Some(parsed.map_err(|error| error.to_string())?);
        rest = before;
    }
    if let Some((before, last)) = rest.rsplit_once(':')
        && let Some((_, typed)) = BETTER.iter().find(|(word, _)| *word == last)
    {
        (direction, rest) = (Some(*typed), before);
    }
    let metric = rest.parse::<GoalMetric>().map_err(|_| {
        let names = GoalMetric::ALL.map(String::from);
        let begins = |name: &&String| name.starts_with(rest);
        let near = nearest(rest, names.iter().map(String::as_str));
        let near = near.or_else(|| names.iter().find(begins).map(String::as_str));
        if let Some(near) = near.filter(|_| !rest.is_empty()) {
            return format!("unknown goal `{rest}`; did you mean `{near}`?");
        }
        format!(
            "unknown goal `{rest}`; accepted: {}, status_429, METRIC['GET /path'], \
             series:NAME:mean|peak|per_event|rate:lower|higher",
            names.join(", ")
        )
    })?;
    if metric.direction().is_some() && direction.is_some() {
        return Err(format!(
            "`{rest}` has a fixed direction: remove `:lower` or `:higher`"
        ));
    }
    Ok(TypedGoal {
        metric,
        direction,
        tolerance,
    })
}
