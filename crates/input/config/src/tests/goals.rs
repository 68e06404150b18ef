//! Goals of files and of the command line.

use stillwell_plan::goal::Direction;
use stillwell_plan::{ExperimentPlan, GoalMetric, GoalPlan, PhasesPlan};

use super::golden::LEAST;
use super::mistakes::{codes, rendered_diagnostics};
use super::{experiment, experiment_with};
use crate::SuiteOverrides;

const PAGE: &str = "observe: {prometheus: [{url: 'http://127.0.0.1:9/'}]}\n";

fn plan(text: &str) -> ExperimentPlan {
    let loaded = experiment(text).unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
    loaded.plan.experiments.into_iter().next().unwrap()
}

fn goals(text: &str) -> Vec<GoalPlan> {
    plan(&format!("{LEAST}{PAGE}goals: {text}\n")).goals
}

fn names(goals: &[GoalPlan]) -> Vec<String> {
    goals.iter().map(|goal| goal.metric.to_string()).collect()
}

#[test]
fn the_first_goal_is_primary_unless_another_is_marked() {
    for (text, order) in [
        ("[memory, cpu]", ["memory", "cpu"]),
        ("[memory, {metric: cpu, primary: true}]", ["cpu", "memory"]),
        ("[memory, {metric: cpu, primary: false}]", ["memory", "cpu"]),
        (
            "[cpu, {series: target/q, reduce: peak, better: lower, primary: true}]",
            ["series:target/q:peak", "cpu"],
        ),
    ] {
        assert_eq!(names(&goals(text)), order, "{text}");
    }
}

#[test]
fn a_series_becomes_a_goal_with_its_direction() {
    let goals = goals(
        "[{series: 'target/hits[\"a b\"]', reduce: per_event, better: higher, tolerance: 0.5%}, \
         {series: total_rss_bytes, reduce: peak, better: lower}]",
    );
    assert_eq!(
        goals[0].metric.name(),
        "series:target/hits['a b']:per_event"
    );
    assert_eq!(goals[0].direction, Direction::HigherIsBetter);
    assert_eq!(goals[0].tolerance.to_string(), "0.5%");
    assert_eq!(goals[1].direction, Direction::LowerIsBetter);
    assert_eq!(goals[1].tolerance.to_string(), "5%");
}

#[test]
fn the_tolerance_of_a_time_may_be_a_time() {
    let goals = goals("[{metric: cpu_per_event, tolerance: 50us}, {metric: cpu, tolerance: 4%}]");
    let time = "50us".parse().unwrap();
    assert_eq!(goals[0].tolerance_time, Some(time));
    assert_eq!(goals[1].tolerance_time, None);
    let typed = with_goal("cpu_per_event:50us").unwrap();
    assert_eq!(typed.goals[0].tolerance_time, Some(time));
    let refused = "`cpu` is not a time: write a tolerance such as `3%`";
    let error = with_goal("cpu:50us").unwrap_err();
    assert!(error.contains(refused), "{error}");
    let goal = "goals: [{metric: cpu, tolerance: 50us}]";
    let error = experiment(&format!("{LEAST}{goal}\n")).unwrap_err();
    assert!(error.to_string().contains(refused), "{error}");
    for tolerance in ["0us", "50", "0%", "-1us"] {
        let text = format!("cpu_per_event:{tolerance}");
        assert!(with_goal(&text).is_err(), "{text}");
    }
}

#[test]
fn goals_without_a_tolerance_have_their_own() {
    for goal in goals("[memory_peak, memory_slope, {metric: cpu}]") {
        assert_eq!(goal, GoalPlan::new(goal.metric.clone()));
    }
}

#[test]
fn latency_needs_answers_and_loss_a_sink() {
    use stillwell_text::code::GOAL_WITHOUT_LOAD;
    let with = |goal: &str| codes(&format!("{LEAST}goals: [{goal}]\n"));
    for goal in [
        "latency_p99",
        "loss",
        "egress_throughput",
        "{series: target/x, reduce: rate, better: lower}",
    ] {
        assert_eq!(with(goal), [(GOAL_WITHOUT_LOAD, 5)], "{goal}");
    }
    let http = LEAST.replace("{tcp: 127.0.0.1:9100", "{http: 'http://127.0.0.1:9100/'");
    let http = format!("{http}  sinks: [{{tcp: '127.0.0.1:2'}}]\ngoals: [latency_p999, loss]\n");
    assert_eq!(names(&plan(&http).goals), ["latency_p999", "loss"]);
    // The kind of a misspelt generator is unknown: only that is reported.
    let unknown = format!("{LEAST}goals: [latency_p99]\n").replace("tcp:", "htp:");
    assert!(!rendered_diagnostics(&unknown).contains("never be measured"));
}

#[test]
fn a_mistake_in_a_generator_is_no_mistake_of_the_routes() {
    use stillwell_text::code::{GOAL_WITHOUT_LOAD, UNKNOWN_KEY};
    let text = |mix: &str| {
        let text = LEAST.replace(
            "{tcp: 127.0.0.1:9100, payload: ascii",
            &format!(
                "{{requests: {{url: 'http://127.0.0.1:9100/', {mix}: [{{path: /a}}, {{path: /b}}]}}"
            ),
        );
        format!("{text}goals: [{{metric: latency_p50, route: GET /c}}]\n")
    };
    let codes_of = |mix: &str| {
        codes(&text(mix))
            .into_iter()
            .map(|(code, _)| code)
            .collect::<Vec<_>>()
    };
    assert_eq!(codes_of("mix"), [GOAL_WITHOUT_LOAD]);
    assert_eq!(codes_of("mixx"), [UNKNOWN_KEY]);
}

#[test]
fn a_goal_of_duplicates_needs_more_than_time_prefixes() {
    let text = |stamps: &str| {
        let text = LEAST.replace(
            "payload: ascii",
            &format!("payload: json, stamps: {stamps}"),
        );
        format!("{text}  sinks: [{{tcp: '127.0.0.1:2'}}]\ngoals: [duplicated, event_latency_p99]\n")
    };
    for stamps in ["all", "{every: 2}", "{form: text}"] {
        let goals = plan(&text(stamps)).goals;
        assert_eq!(
            names(&goals),
            ["duplicated", "event_latency_p99"],
            "{stamps}"
        );
    }
    let times = rendered_diagnostics(&text("{form: prefix}"));
    assert_eq!(times.matches("never be measured").count(), 1, "{times}");
    assert!(times.contains("do not identify them"), "{times}");
}

#[test]
fn mistakes_in_goals_are_shown_all_at_once() {
    snapshot!(&format!(
        "{LEAST}{PAGE}goals:
  - p99
  - {{metric: cpu, better: lower}}
  - {{series: target/x}}
  - {{serie: target/x, reduce: rate, better: lower}}
  - {{series: avg(total_rss_bytes), reduce: mean, better: lower}}
  - {{series: total_rss_byte, reduce: mean, better: lower}}
  - {{series: response_time, reduce: mean, better: lower}}
  - {{series: total_rss_bytes, reduce: rate, better: lower}}
  - {{metric: memory, primary: true}}
  - {{metric: memory_peak, primary: true}}
  - {{tolerance: 3%}}
"
    ));
}

fn with_goal(goal: &str) -> Result<ExperimentPlan, String> {
    let overrides = SuiteOverrides {
        goal: Some(goal.to_owned()),
        ..SuiteOverrides::default()
    };
    let text = format!(
        "{LEAST}{PAGE}goals: [memory, {{series: target/q, reduce: peak, better: lower, tolerance: 7%}}]\n"
    );
    let loaded =
        experiment_with(&text, &overrides).map_err(|diagnostics| diagnostics.to_string())?;
    Ok(loaded.plan.experiments.into_iter().next().unwrap())
}

#[test]
fn goals_of_the_command_line_come_first() {
    for (typed, name, direction, tolerance) in [
        ("cpu", "cpu", Direction::LowerIsBetter, "2%"),
        ("cpu:0.5%", "cpu", Direction::LowerIsBetter, "0.5%"),
        (
            "series:target/q:peak",
            "series:target/q:peak",
            Direction::LowerIsBetter,
            "7%",
        ),
        (
            "series:target/q:peak:higher:1%",
            "series:target/q:peak",
            Direction::HigherIsBetter,
            "1%",
        ),
        (
            "series:target/a:b['c:d']:rate:lower",
            "series:target/a:b['c:d']:rate",
            Direction::LowerIsBetter,
            "5%",
        ),
    ] {
        let plan = with_goal(typed).unwrap();
        let first = &plan.goals[0];
        assert_eq!(first.metric.name(), name);
        assert_eq!(first.direction, direction, "{typed}");
        assert_eq!(first.tolerance.to_string(), tolerance, "{typed}");
        let again = plan.goals[1..]
            .iter()
            .any(|goal| goal.metric == first.metric);
        assert!(!again, "{typed}");
    }
    for (typed, message) in [
        ("speed", "unknown goal `speed`"),
        ("cpu:lower", "fixed direction"),
        ("cpu:5", "needs a unit"),
        ("series:target/new:rate", "series:target/new:rate:lower"),
        ("series:target/new:sum:lower", "unknown goal"),
    ] {
        let error = with_goal(typed).unwrap_err();
        assert!(error.contains(message), "{typed}: {error}");
    }
}

#[test]
fn a_goal_of_the_command_line_keeps_the_rules_of_goals_in_files() {
    let routes = LEAST.replace(
        "{tcp: 127.0.0.1:9100, payload: ascii}",
        "{requests: {url: 'http://127.0.0.1:9100/', mix: [{path: /a}, {path: /b}]}}",
    );
    let never = "can never be measured here";
    for (text, goal, expected) in [
        (LEAST, "ingress_throughput", None),
        (LEAST, "latency_p99", Some(never)),
        (LEAST, "loss", Some(never)),
        (LEAST, "series:target/x:rate:lower", Some(never)),
        (&routes, "latency_p50['GET /a']", None),
        (
            &routes,
            "latency_p50['GET /c']",
            Some("the routes are GET /a, GET /b"),
        ),
    ] {
        let overrides = SuiteOverrides {
            goal: Some(goal.to_owned()),
            ..SuiteOverrides::default()
        };
        match (experiment_with(text, &overrides), expected) {
            (Ok(loaded), None) => {
                let first = &loaded.plan.experiments[0].goals[0];
                assert_eq!(first.metric.to_string(), goal);
            }
            (Err(errors), Some(expected)) => {
                let errors = errors.to_string();
                assert!(errors.contains(expected), "{goal}: {errors}");
                assert!(errors.contains(&format!("`--goal {goal}`")), "{errors}");
            }
            (result, expected) => panic!("{goal}: {expected:?} {result:?}"),
        }
    }
}

#[test]
fn the_default_goals_are_those_that_can_be_measured() {
    let idle = LEAST.replace(
        "workload:\n  generators: [{tcp: 127.0.0.1:9100, payload: ascii}]\n",
        "",
    );
    assert_eq!(names(&plan(&idle).goals), ["memory", "cpu"]);
    let names = names(&plan(LEAST).goals);
    assert_eq!(names, ["cpu_per_event", "ingress_throughput", "memory"]);
    assert_eq!(plan(LEAST).run_plan.phases, PhasesPlan::default());
    assert_eq!(plan(LEAST).goals[0].metric, GoalMetric::CpuPerEvent);
}
