use proptest::prelude::*;

use super::*;

fn any_series() -> impl Strategy<Value = SeriesGoal> {
    let id = proptest::option::of("[a-z0-9:'\\[\\]_. -]{0,12}");
    let reduction = proptest::sample::select(Reduction::ALL.to_vec());
    ("[a-zA-Z][a-zA-Z0-9_./:-]{0,20}", id, reduction).prop_map(|(metric, id, reduction)| {
        SeriesGoal {
            metric,
            id,
            reduction,
        }
    })
}

fn any_metric() -> impl Strategy<Value = GoalMetric> {
    prop_oneof![
        proptest::sample::select(GoalMetric::ALL.to_vec()),
        any_series().prop_map(GoalMetric::Series),
    ]
}

proptest! {
    #[test]
    fn names_read_back(metric in any_metric()) {
        prop_assert_eq!(metric.name().parse(), Ok(metric.clone()));
        prop_assert_eq!(metric.to_string(), metric.name());
        let json = serde_json::to_string(&metric).unwrap();
        prop_assert_eq!(serde_json::from_str::<GoalMetric>(&json).unwrap(), metric);
    }

    #[test]
    fn any_text_is_a_goal_of_that_name_or_none(text in "(series:)?\\PC{0,30}") {
        match text.parse::<GoalMetric>() {
            Ok(metric) => prop_assert_eq!(metric.name(), text),
            Err(error) => prop_assert_eq!(error.text, text),
        }
    }
}

#[test]
fn what_names_no_goal_is_refused() {
    for text in [
        "",
        "p99",
        "latency",
        "CPU",
        "series:",
        "series::rate",
        "series:a",
        "series:a:sum",
        "series:a']:rate",
    ] {
        assert!(text.parse::<GoalMetric>().is_err(), "{text}");
    }
}

#[test]
fn names_are_unique() {
    for (index, metric) in GoalMetric::ALL.iter().enumerate() {
        let mut later = GoalMetric::ALL[index + 1..].iter();
        assert!(later.all(|next| next.name() != metric.name()), "{metric}");
    }
}

#[test]
fn every_goal_has_a_tolerance_that_was_chosen() {
    let series = "series:x:rate".parse().unwrap();
    for metric in GoalMetric::ALL.into_iter().chain([series]) {
        let tolerance = metric.default_tolerance();
        assert!((0.001..=0.10).contains(&tolerance.share()), "{metric}");
        assert_eq!(GoalPlan::new(metric).tolerance, tolerance);
    }
}

/// Tails scatter more than middles, and what waits more than what the kernel
/// counts for the target alone.
#[test]
fn tolerances_grow_with_what_disturbs_a_goal() {
    let of = |name: &str| {
        let metric: GoalMetric = name.parse().unwrap();
        metric.default_tolerance().share()
    };
    let latencies = ["latency_p50", "latency_p90", "latency_p99", "latency_p999"].map(of);
    assert!(latencies.windows(2).all(|two| two[0] < two[1]));
    assert!(of("cpu_per_event") < of("ingress_throughput"));
}

#[test]
fn the_better_direction_of_a_series_must_be_configured() {
    for metric in GoalMetric::ALL {
        let goal = GoalPlan::new(metric.clone());
        assert_eq!(metric.direction(), Some(goal.direction));
        let is_throughput = metric.name().ends_with("throughput");
        assert_eq!(goal.direction == Direction::HigherIsBetter, is_throughput);
    }
    let series: GoalMetric = "series:x:mean".parse().unwrap();
    assert_eq!(series.direction(), None);
}

#[test]
fn numbers_that_may_be_zero_are_compared_by_their_difference() {
    let differences = GoalMetric::ALL
        .into_iter()
        .filter(|metric| metric.scale() == Scale::Difference);
    let names: Vec<String> = differences.map(String::from).collect();
    assert_eq!(names, ["memory_slope", "error_share", "loss", "duplicated"]);
}

#[test]
fn goals_of_routes_and_status_codes_read_back() {
    for name in [
        "status_429",
        "latency_p99['GET /search']",
        "status_503['POST /a']",
        "error_share['GET /a:1']",
    ] {
        let metric: GoalMetric = name.parse().unwrap();
        assert_eq!(metric.name(), name);
    }
    for name in [
        "status_99",
        "status_600",
        "status_+1",
        "loss['GET /']",
        "latency_p99['a']['b']",
    ] {
        assert!(name.parse::<GoalMetric>().is_err(), "{name}");
    }
    let direction = |name: &str| name.parse::<GoalMetric>().unwrap().direction();
    assert_eq!(direction("status_200"), Some(Direction::HigherIsBetter));
    assert_eq!(
        direction("status_404['GET /']"),
        Some(Direction::LowerIsBetter)
    );
}

#[test]
fn goals_that_wait_are_known() {
    let wait = GoalMetric::ALL
        .into_iter()
        .filter(GoalMetric::is_wall_based);
    assert_eq!(wait.count(), 22);
}
