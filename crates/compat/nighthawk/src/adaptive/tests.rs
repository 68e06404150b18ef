//! Sessions as they are written, and the search they request.

use proptest::prelude::*;

use super::control::{Controller, ControllerStep};
use super::*;
use crate::wire::Schema;
use crate::{Counter, Quantity, Statistic, WorkerResult};

const SPEC: &str = r#"
# What a session may say.
nighthawk_traffic_template {
  uri { value: "http://127.0.0.1:80/" }
  connections { value: 7 }
  request_options { request_method: GET request_body_size { value: 10 } }
  failure_predicates { key: "benchmark.http_5xx" value: 3 }
}
metric_thresholds {
  metric_spec { metric_name: "success-rate" }
  threshold_spec {
    scoring_function {
      name: "nighthawk.binary_scoring"
      typed_config {
        [type.googleapis.com/nighthawk.adaptive_load.BinaryScoringFunctionConfig] {
          lower_threshold { value: 0.95 }
        }
      }
    }
    weight { value: 2.0 }
  }
}
metric_thresholds: <
  metric_spec: < metric_name: "latency-ns-mean-plus-2stdev", metrics_plugin_name: 'nighthawk.builtin' >
  threshold_spec: < scoring_function: <
    name: "nighthawk.linear_scoring"
    typed_config: < [type.googleapis.com/nighthawk.adaptive_load.LinearScoringFunctionConfig]: < threshold: 1e6; scaling_constant: 0.5 > >
  > >
>
informational_metric_specs { metric_name: "achieved-rps" }
step_controller_config {
  name: "nighthawk.exponential_search"
  typed_config {
    [type.googleapis.com/nighthawk.adaptive_load.ExponentialSearchStepControllerConfig] {
      initial_value: 100
      input_variable_setter { name: "nighthawk.rps" }
    }
  }
}
measuring_period { seconds: 2 nanos: 500000000 }
benchmark_cooldown_duration { seconds: 1 }
"#;

fn output(requests: u64, good: u64) -> Output {
    let mut output = Output::default();
    output.options.requests_per_second = Some(100);
    let latency = Statistic {
        count: good,
        id: "benchmark_http_client.request_to_response".to_owned(),
        mean: Some(Quantity::Time(Nanos::new(1000))),
        pstdev: Some(Quantity::Time(Nanos::new(200))),
        ..Statistic::default()
    };
    let counter = |name: &str, value| Counter {
        name: name.to_owned(),
        value,
    };
    output.results.push(WorkerResult {
        name: "global".to_owned(),
        statistics: vec![latency],
        counters: vec![
            counter("upstream_rq_total", requests),
            counter("benchmark.http_2xx", good),
        ],
        execution_duration: Some(Nanos::from_millis(2500)),
        ..WorkerResult::default()
    });
    output
}

// compat: nighthawk_adaptive_load_client | nighthawk_traffic_template, metric_thresholds, informational_metric_specs | works
// compat: nighthawk_adaptive_load_client | step_controller_config: nighthawk.exponential_search | works
// compat: nighthawk_adaptive_load_client | measuring_period, convergence_deadline, testing_stage_duration | works
// compat: nighthawk_adaptive_load_client | benchmark_cooldown_duration | works
#[test]
fn a_session_is_read_from_text_proto() {
    let spec = read_session(SPEC).unwrap();
    assert_eq!(spec.template.uri.as_deref(), Some("http://127.0.0.1:80/"));
    assert_eq!(spec.template.connections, Some(7));
    assert_eq!(spec.template.failure_predicates["benchmark.http_5xx"], 3);
    let request = spec.template.request_options.as_ref().unwrap();
    assert_eq!(request.request_body_size, Some(10));
    assert_eq!(
        spec.thresholds[0].scoring,
        Scoring::Binary {
            lower: Some(0.95),
            upper: None
        }
    );
    assert_eq!(
        spec.thresholds[1].scoring,
        Scoring::Linear {
            threshold: 1e6,
            scale: 0.5
        }
    );
    assert_eq!(
        (spec.thresholds[0].weight, spec.thresholds[1].weight),
        (2.0, 1.0)
    );
    assert_eq!(spec.informational[0].id(), "nighthawk.builtin/achieved-rps");
    assert_eq!(
        spec.search,
        ExponentialSearch {
            initial: 100.0,
            factor: 2.0
        }
    );
    assert_eq!(spec.measuring_period, Nanos::from_millis(2500));
    assert_eq!(spec.convergence_deadline, Nanos::from_secs(300));
    assert_eq!(spec.testing_stage, Nanos::from_secs(30));
    assert_eq!(spec.cooldown, Nanos::from_secs(1));
}

#[test]
fn the_json_form_has_the_same_content() {
    let text = r#"{
      "nighthawkTrafficTemplate": {"uri": "http://127.0.0.1:80/", "connections": 7},
      "metricThresholds": [{
        "metricSpec": {"metricName": "send-rate"},
        "thresholdSpec": {"scoringFunction": {"name": "nighthawk.binary_scoring",
          "typedConfig": {"@type": "type.googleapis.com/x", "lowerThreshold": 0.9}}}}],
      "stepControllerConfig": {"name": "nighthawk.exponential_search",
        "typedConfig": {"@type": "type.googleapis.com/y", "exponentialFactor": 1.5}},
      "measuringPeriod": "2s"
    }"#;
    let spec = read_session(text).unwrap();
    assert_eq!(
        spec.search,
        ExponentialSearch {
            initial: 1.0,
            factor: 1.5
        }
    );
    assert_eq!(spec.measuring_period, Nanos::from_secs(2));
    let (evaluations, holds) = spec.evaluate(&output(200, 200)).unwrap();
    // 80 of the 100 requests per second.
    assert!(!holds && (evaluations[0].value - 0.8).abs() < 1e-12);
}

#[test]
fn invalid_messages_of_a_session_are_refused_by_name() {
    for (from, to, expected) in [
        (
            "connections {",
            "connectoins {",
            "field 'connectoins' not found",
        ),
        (
            "\"success-rate\"",
            "\"success-rate",
            "invalid string character",
        ),
        ("nighthawk.linear_scoring", "mine", "scoring_function.name"),
        (
            "nighthawk.exponential_search",
            "mine",
            "step_controller_config.name",
        ),
        ("initial_value: 100", "initial_value: -1", "initial_value"),
        (
            "'nighthawk.builtin'",
            "'mine'",
            "there are no other plugins",
        ),
        (
            "connections { value: 7 }",
            "duration { seconds: 3 }",
            "measuring_period",
        ),
        ("measuring_period", "measuring_perod", "measuring_perod"),
        (
            "measuring_period {",
            "measuring_period",
            "expected ':' or a message value",
        ),
    ] {
        let text = SPEC.replacen(from, to, 1);
        assert_ne!(text, SPEC, "{from}");
        match read_session(&text) {
            Ok(_) => panic!("{to} is taken"),
            Err(error) => assert!(error.to_string().contains(expected), "{error}"),
        }
    }
    let without = SPEC.split("metric_thresholds").next().unwrap();
    let error = read_session(without).unwrap_err().to_string();
    assert!(error.contains("metric_thresholds"), "{error}");
}

/// Returns the error of a session in JSON with this request and this threshold.
fn refusal(request: &str, threshold: &str) -> Option<String> {
    let text = format!(
        r#"{{"nighthawk_traffic_template": {{"uri": "http://a/", "request_options": {request}}},
        "metric_thresholds": [{{"metric_spec": {{"metric_name": "send-rate"}},
            "threshold_spec": {threshold}}}],
        "step_controller_config": {{"name": "nighthawk.exponential_search"}}}}"#
    );
    read_session(&text).err().map(|error| error.to_string())
}

/// A scoring function without its configuration was accepted, and its threshold held for each value.
#[test]
fn a_scoring_function_without_a_bound_is_refused() {
    let bounds = Some("lower_threshold or upper_threshold");
    let scale = Some("a scaling_constant that is not 0");
    for (kind, config, expected) in [
        ("binary", r#""typed_config": {"lower_threshold": 0}"#, None),
        ("linear", r#""typedConfig": {"scalingConstant": 1}"#, None),
        ("binary", r#""typed_config": {"@type": "a"}"#, bounds),
        ("linear", r#""typed_config": {"threshold": 5}"#, scale),
        ("binary", r#""typed_config": null"#, bounds),
        ("linear", r#""typed_config": null"#, scale),
        (
            "binary",
            r#""config": {"lower_threshold": 1}"#,
            Some("scoring_function.config` is not a field"),
        ),
        (
            "quadratic",
            r#""typed_config": {}"#,
            Some("metric_thresholds[0].threshold_spec.scoring_function.name"),
        ),
    ] {
        let name = format!(r#""name": "nighthawk.{kind}_scoring""#);
        let threshold = format!(r#"{{"scoring_function": {{{name}, {config}}}}}"#);
        let error = refusal("{}", &threshold);
        match (&error, expected) {
            (Some(error), Some(expected)) => assert!(error.contains(expected), "{error}"),
            _ => assert_eq!(error.as_deref(), expected, "{kind}: {config}"),
        }
    }
}

const UPPER: &str = r#""scoring_function": {"name": "nighthawk.binary_scoring",
    "typed_config": {"upper_threshold": 1}}"#;

/// A threshold of weight 0 decided like any of another weight.
#[test]
fn a_weight_is_above_zero() {
    for (weight, is_refused) in [("-1", true), ("0", true), ("0.5", false), ("null", false)] {
        let error = refusal("{}", &format!(r#"{{{UPPER}, "weight": {weight}}}"#));
        assert_eq!(error.is_some(), is_refused, "{weight}: {error:?}");
        let expected = "`metric_thresholds[0].threshold_spec.weight` must be above 0; list metrics \
                        that do not decide under informational_metric_specs";
        assert!(error.is_none_or(|error| error == expected), "{weight}");
    }
}

/// In JSON these fields were ignored.
#[test]
fn unknown_fields_of_a_request_are_refused_by_name() {
    for (request, unknown) in [
        (
            r#"{"requestMethod": "GET", "request_body_size": 1, "request_headers":
                [{"header": {"key": "a", "value": "b"}, "append": true}]}"#,
            None,
        ),
        (
            r#"{"request_body_siz": 1}"#,
            Some("`nighthawk_traffic_template.request_options.request_body_siz`"),
        ),
        (
            r#"{"requestHeaders": [{"header": {"key": "a", "valeu": "b"}}]}"#,
            Some(".request_headers[0].header.valeu`"),
        ),
        (
            r#"{"requestHeaders": [{"header": {"key": "a"}, "apend": true}]}"#,
            Some(".request_headers[0].apend`"),
        ),
    ] {
        let error = refusal(request, &format!("{{{UPPER}}}"));
        match (&error, unknown) {
            (Some(error), Some(unknown)) => assert!(error.contains(unknown), "{error}"),
            _ => assert_eq!(error.as_deref(), unknown, "{request}"),
        }
    }
}

#[test]
fn metrics_are_not_cut_to_whole_seconds() {
    let output = output(250, 200);
    for (name, expected) in [
        ("attempted-rps", 100.0),
        ("achieved-rps", 100.0),
        ("send-rate", 1.0),
        ("success-rate", 0.8),
        ("latency-ns-mean-plus-2stdev", 1400.0),
    ] {
        assert_eq!(metric(name, &output), Ok(expected), "{name}");
    }
    let nothing = self::output(10, 0);
    assert_eq!(metric("success-rate", &nothing), Ok(0.0));
    assert!(metric("latency-ns-mean", &nothing).is_err());
    let error = metric("p99", &output).unwrap_err().to_string();
    assert!(error.contains("the metrics are attempted-rps"), "{error}");
}

/// A load without one answer ended the session.
#[test]
fn a_latency_that_nothing_had_breaks_its_threshold() {
    let spec = SPEC.replacen("\"success-rate\"", "\"latency-ns-mean\"", 1);
    assert_ne!(spec, SPEC);
    let spec = read_session(&spec).unwrap();
    let (evaluations, holds) = spec.evaluate(&output(10, 0)).unwrap();
    assert!(!holds);
    assert_eq!(evaluations[0].score, Some(-1.0));
}

#[test]
fn a_session_is_written_with_its_thresholds() {
    let spec = read_session(SPEC).unwrap();
    let (evaluations, holds) = spec.evaluate(&output(250, 250)).unwrap();
    assert!(holds);
    let result = BenchmarkResult {
        output: output(250, 250),
        evaluations,
        started: Nanos::from_secs(1_700_000_000),
        ended: Nanos::from_secs(1_700_000_003),
    };
    let session = SessionOutput {
        adjusting: vec![result.clone()],
        testing: Some(result),
        thresholds: spec
            .thresholds
            .iter()
            .map(|threshold| threshold.message.clone())
            .collect(),
    };
    let value: Value = serde_json::from_str(&session_json(&session)).unwrap();
    let text = session_text(&session).unwrap();
    let name = "nighthawk.adaptive_load.AdaptiveLoadSessionOutput";
    let again = Schema::shared().read_text(name, &text).unwrap();
    let bytes = |value: &Value| Schema::shared().encode(name, value).unwrap();
    assert_eq!(bytes(&again), bytes(&value), "{text}");
    for part in [
        "\n  metric_evaluations {\n    metric_id: \"nighthawk.builtin/success-rate\"\n",
        "[type.googleapis.com/nighthawk.adaptive_load.BinaryScoringFunctionConfig] {\n",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let first = &value["adjusting_stage_results"][0];
    assert_eq!(
        first["metric_evaluations"][0]["metric_id"],
        "nighthawk.builtin/success-rate"
    );
    assert_eq!(first["metric_evaluations"][0]["threshold_score"], 1.0);
    assert!(first["metric_evaluations"][2]["weight"].is_null());
    assert!(
        first["start_time"]
            .as_str()
            .unwrap()
            .starts_with("2023-11-14T22:13:20")
    );
    let weight = &value["metric_thresholds"][0]["threshold_spec"]["weight"];
    assert_eq!(*weight, 2.0);
    // Nighthawk fills these in.
    let plugin = &value["metric_thresholds"][0]["metric_spec"]["metrics_plugin_name"];
    assert_eq!(plugin, "nighthawk.builtin");
    let weight = &value["metric_thresholds"][1]["threshold_spec"]["weight"];
    assert_eq!(*weight, 1.0);
    assert!(value["testing_stage_result"]["nighthawk_service_output"]["results"].is_array());
}

#[test]
fn a_first_rate_that_fails_is_the_end() {
    let mut controller = Controller::new(ExponentialSearch {
        initial: 10.0,
        factor: 2.0,
    });
    assert_eq!(controller.step(), ControllerStep::Load(10.0));
    controller.observe(false);
    assert_eq!(controller.step(), ControllerStep::FirstRateFailed);
}

proptest! {
    /// For all capacities: the answer held, and lies within a fiftieth below.
    #[test]
    fn the_search_ends_at_a_rate_that_held(capacity in 10.0_f64..1e6, factor in 1.1_f64..5.0) {
        let mut controller = Controller::new(ExponentialSearch { initial: 10.0, factor });
        let mut loads = 0;
        let converged = loop {
            match controller.step() {
                ControllerStep::Load(rate) => controller.observe(rate <= capacity),
                ControllerStep::Converged(rate) => break rate,
                ControllerStep::FirstRateFailed => panic!("10 holds"),
            }
            loads += 1;
            prop_assert!(loads < 200);
        };
        prop_assert!(converged <= capacity && converged >= capacity * 0.98, "{converged} of {capacity}");
    }

    /// For all texts: reading ends, with a message or without.
    #[test]
    fn no_text_is_too_wrong(text in "[a-z{}<>:\\[\\]\"# \n0-9.\\\\]{0,200}") {
        let _ended: bool = read_session(&text).is_ok();
    }
}
