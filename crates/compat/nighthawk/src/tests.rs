use proptest::prelude::*;
use serde_json::json;
use stillwell_units::Nanos;

use super::*;

/// Shaped as Nighthawk's own test data.
const GOLD: &str = r#"{
 "options": {
  "termination_predicates": {},
  "failure_predicates": {},
  "labels": [],
  "stats_sinks": [],
  "user_defined_plugin_configs": [],
  "connections": 0,
  "duration": "1s"
 },
 "results": [
  {
   "name": "worker_0",
   "statistics": [
    {
     "count": "3",
     "id": "stat_id",
     "percentiles": [],
     "mean": "0.002s",
     "pstdev": "0.000816497s",
     "min": "0.001s",
     "max": "0.003s"
    },
    {
     "count": "4",
     "id": "foo_size",
     "percentiles": [
      {
       "percentile": 0,
       "count": "1",
       "raw_value": 14
      },
      {
       "percentile": 0.75,
       "count": "3",
       "raw_value": 16
      }
     ],
     "raw_mean": 15.5,
     "raw_pstdev": 1.118033988749895,
     "raw_min": "14",
     "raw_max": "17"
    }
   ],
   "counters": [
    {
     "name": "foo",
     "value": "1"
    }
   ],
   "user_defined_outputs": [],
   "execution_duration": "1s",
   "execution_start": "2009-02-13T23:31:30.000000001Z"
  }
 ],
 "timestamp": "2009-02-13T23:31:31.567Z"
}
"#;

#[test]
fn the_tools_own_text_is_written_again() {
    let output = read_json(GOLD).unwrap();
    assert_eq!(write_json(&output), GOLD);
    let statistic = output
        .global()
        .and_then(|result| result.statistic("stat_id"));
    let mean = statistic.and_then(|statistic| statistic.mean);
    assert_eq!(mean, Some(Quantity::Time(Nanos::from_millis(2))));
    assert_eq!(
        output.timestamp,
        Some(Nanos::new(1_234_567_891_567_000_000))
    );
    assert_eq!(output.results[0].counter("foo"), 1);
    assert_eq!(output.results[0].counter("bar"), 0);
}

#[test]
fn yaml_is_read_and_written() {
    let output = read_json(GOLD).unwrap();
    let yaml = write_yaml(&output);
    insta::assert_snapshot!(yaml);
    assert_eq!(read_yaml(&yaml).unwrap(), output);
}

#[test]
fn names_may_be_in_camel_case_and_numbers_plain() {
    let text = r#"{"options":{"requestsPerSecond":5,"requestOptions":{"requestMethod":1,
        "requestHeaders":[{"header":{"key":"a","value":"b"},"append":false}]},
        "protocol":{"value":"HTTP2"},"verbosity":{},"timeout":null,
        "failurePredicates":{"benchmark.http_4xx":0},
        "transportSocket":{"name":"envoy.transport_sockets.tls"}},
        "results":[{"name":"global","counters":[{"name":"x","value":7}],
        "executionDuration":"0.5s","statistics":[{"id":"s","count":2,"rawMin":1.0}]}]}"#;
    let output = read_json(text).unwrap();
    let options = &output.options;
    assert_eq!(options.requests_per_second, Some(5));
    assert_eq!(options.protocol, Some(Protocol::Http2));
    assert_eq!(options.verbosity, Some(Verbosity::Default));
    assert_eq!(options.timeout, None);
    assert_eq!(options.failure_predicates["benchmark.http_4xx"], 0);
    let socket = json!({ "name": "envoy.transport_sockets.tls" });
    assert_eq!(options.raw_fields.get("transport_socket"), Some(&socket));
    let request = options.request_options.clone().unwrap();
    assert_eq!(request.request_method, Some(RequestMethod::Get));
    assert_eq!(request.request_headers, [("a".to_owned(), "b".to_owned())]);
    let global = output.global().unwrap();
    assert_eq!(global.counter("x"), 7);
    assert_eq!(global.execution_duration, Some(Nanos::from_millis(500)));
    assert_eq!(global.statistics[0].min, Some(Quantity::Raw(1.0)));
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let cases = [
        (
            "{",
            "it is not complete JSON: EOF while parsing an object at line 1 column 1",
        ),
        ("[]", "`the text` must be a message"),
        (
            r#"{"reslts":[]}"#,
            "`reslts` is not a field of this message",
        ),
        (
            r#"{"results":[{"nmae":"x"}]}"#,
            "`results[0].nmae` is not a field of this message",
        ),
        (
            r#"{"results":[{},{"statistics":[{"mean":"fast"}]}]}"#,
            "`results[1].statistics[0].mean` must be a time such as \"1.5s\"",
        ),
        (
            r#"{"results":[{"statistics":[{"count":-1}]}]}"#,
            "`results[0].statistics[0].count` must be a whole number",
        ),
        (
            r#"{"options":{"protocol":{"value":"HTTP9"}}}"#,
            "`options.protocol.value` must be one of the values of its enum",
        ),
        (
            r#"{"timestamp":"yesterday"}"#,
            "`timestamp` must be a point in time such as \"2020-10-21T21:28:12.690578Z\"",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(read_json(text).unwrap_err().to_string(), expected, "{text}");
    }
    let error = read_yaml("results: [").unwrap_err();
    assert!(matches!(error, MessageError::Yaml { .. }), "{error}");
}

#[test]
fn a_plain_number_that_is_not_finite_is_read_as_zero() {
    for (mean, pstdev) in [
        (r#""NaN""#, r#""NaN""#),
        (r#""Infinity""#, r#""-Infinity""#),
    ] {
        let text = format!(
            r#"{{"results":[{{"name":"global","statistics":[
                {{"id":"s","raw_mean":{mean},"raw_pstdev":{pstdev}}}]}}]}}"#
        );
        let output = read_json(&text).unwrap();
        let statistic = &output.results[0].statistics[0];
        assert_eq!(statistic.count, 0);
        assert_eq!(statistic.mean, Some(Quantity::Raw(0.0)));
        assert_eq!(statistic.pstdev, Some(Quantity::Raw(0.0)));
    }
    let yaml = "results:\n- name: global\n  statistics:\n  - id: s\n    raw_mean: NaN\n";
    let output = read_yaml(yaml).unwrap();
    let mean = output.results[0].statistics[0].mean;
    assert_eq!(mean, Some(Quantity::Raw(0.0)));
    let text = r#"{"results":[{"statistics":[{"raw_mean":"many"}]}]}"#;
    let error = read_json(text).unwrap_err().to_string();
    assert_eq!(
        error,
        "`results[0].statistics[0].raw_mean` must be a number"
    );
}

#[test]
fn fractions_of_times_have_groups_of_three_digits() {
    let cases = [
        (0, "0s"),
        (1, "0.000000001s"),
        (195_000, "0.000195s"),
        (2_000_000, "0.002s"),
        (5_000_000_000, "5s"),
        (90_500_000_000, "90.500s"),
    ];
    for (nanoseconds, text) in cases {
        assert_eq!(duration_text(Nanos::new(nanoseconds)), text);
    }
    for text in ["", "5", "s", "1.s", "-1s", "1.0000000001s", "1e3s", "1 s"] {
        assert_eq!(parse_duration(text), None, "{text}");
    }
}

#[test]
fn points_in_time_may_have_an_offset() {
    let day = Nanos::from_secs(951_782_400);
    let cases = [
        "2000-02-29T00:00:00Z",
        "2000-02-29T02:00:00+02:00",
        "2000-02-28T19:00:00.000-05:00",
    ];
    for text in cases {
        assert_eq!(parse_timestamp(text), Some(day), "{text}");
    }
    assert_eq!(timestamp_text(day), "2000-02-29T00:00:00Z");
    for text in [
        "",
        "2000-02-29",
        "1969-12-31T23:59:59Z",
        "2000-13-01T00:00:00Z",
        "2000-02-29T25:00:00Z",
    ] {
        assert_eq!(parse_timestamp(text), None, "{text}");
    }
}

/// Found by the property below: U+0086 is a control character that JSON leaves as
/// it is and YAML does not take.
#[test]
fn a_control_character_beyond_ascii_survives_both_formats() {
    let output = Output {
        options: CommandLineOptions {
            request_options: Some(RequestOptions {
                json_body: "\u{86}".to_owned(),
                request_method: Some(RequestMethod::Unspecified),
                ..RequestOptions::default()
            }),
            ..CommandLineOptions::default()
        },
        ..Output::default()
    };
    assert_eq!(read_yaml(&write_yaml(&output)), Ok(output.clone()));
    assert_eq!(read_json(&write_json(&output)), Ok(output));
}

fn quantity() -> impl Strategy<Value = Option<Quantity>> {
    // The smallest and largest are whole numbers, exact as floats up to here.
    prop_oneof![
        Just(None),
        any::<u64>().prop_map(|number| Some(Quantity::Time(Nanos::new(number)))),
        (0_u32..u32::MAX).prop_map(|number| Some(Quantity::Raw(number.into()))),
    ]
}

fn percentile() -> impl Strategy<Value = Percentile> {
    (0.0..=1.0, any::<u64>(), quantity()).prop_map(|(percentile, count, value)| Percentile {
        percentile,
        count,
        value,
    })
}

fn statistic() -> impl Strategy<Value = Statistic> {
    let moments = [quantity(), quantity(), quantity(), quantity()];
    (
        any::<u64>(),
        "\\PC{0,12}",
        prop::collection::vec(percentile(), 0..4),
        moments,
    )
        .prop_map(
            |(count, id, percentiles, [mean, pstdev, min, max])| Statistic {
                count,
                id,
                percentiles,
                mean,
                pstdev,
                min,
                max,
            },
        )
}

fn time() -> impl Strategy<Value = Option<Nanos>> {
    prop::option::of(any::<u64>().prop_map(Nanos::new))
}

fn result() -> impl Strategy<Value = WorkerResult> {
    let counter = ("\\PC{0,12}", any::<u64>()).prop_map(|(name, value)| Counter { name, value });
    let plugin = ("[a-z]{1,5}", prop::option::of(".{0,9}"), any::<bool>()).prop_map(
        |(plugin_name, error_message, typed)| UserDefinedOutput {
            plugin_name,
            typed_output: typed.then(|| json!({ "@type": "x/y.Z", "headersCalled": "25" })),
            error_message,
        },
    );
    (
        ".{0,12}",
        prop::collection::vec(statistic(), 0..3),
        prop::collection::vec(counter, 0..3),
        time(),
        time(),
        prop::collection::vec(plugin, 0..2),
    )
        .prop_map(
            |(name, statistics, counters, duration, start, plugins)| WorkerResult {
                name,
                statistics,
                counters,
                execution_duration: duration,
                execution_start: start,
                user_defined_outputs: plugins,
            },
        )
}

fn options() -> impl Strategy<Value = CommandLineOptions> {
    let short = || prop::option::of(any::<u32>());
    let boolean = || prop::option::of(any::<bool>());
    let headers = prop::collection::vec(("[a-z:]{1,6}", ".{0,6}"), 0..3);
    (
        (short(), short(), time(), boolean(), time()),
        (
            prop::sample::select(Protocol::ALL),
            prop::sample::select(IdleStrategy::ALL),
        ),
        prop::collection::btree_map("[a-z.]{1,9}", any::<u64>(), 0..3),
        prop::collection::vec(".{0,6}", 0..3),
        (prop::option::of(".{0,9}"), headers, ".{0,9}"),
        (prop::sample::select(RequestMethod::ALL), time()),
    )
        .prop_map(|(numbers, enums, predicates, labels, texts, rest)| {
            let (requests_per_second, connections, duration, open_loop, timeout) = numbers;
            let (uri, request_headers, json_body) = texts;
            CommandLineOptions {
                requests_per_second,
                connections,
                duration,
                open_loop,
                timeout,
                protocol: Some(enums.0),
                sequencer_idle_strategy: Some(enums.1),
                failure_predicates: predicates,
                labels,
                uri,
                request_options: Some(RequestOptions {
                    request_method: Some(rest.0),
                    request_headers,
                    request_body_size: requests_per_second,
                    json_body,
                }),
                scheduled_start: rest.1,
                multi_target: Some(MultiTarget {
                    use_https: open_loop,
                    endpoints: vec![Endpoint {
                        address: Some("::1".to_owned()),
                        port: connections,
                    }],
                    path: Some("/".to_owned()),
                }),
                raw_fields: [(
                    "tls_context".to_owned(),
                    json!({ "sni": "a", "x": [1, 2.5, null] }),
                )]
                .into_iter()
                .collect(),
                ..CommandLineOptions::default()
            }
        })
}

fn output() -> impl Strategy<Value = Output> {
    (options(), prop::collection::vec(result(), 0..3), time()).prop_map(
        |(options, results, timestamp)| Output {
            options,
            results,
            timestamp,
            version: Some(json!({ "version": { "major_number": 1, "patch": 0 } })),
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// For all messages: what is written is read back.
    #[test]
    fn json_reads_back(output in output()) {
        let again = read_json(&write_json(&output));
        prop_assert_eq!(again, Ok(output));
    }

    /// For all messages: the same in YAML.
    #[test]
    fn yaml_reads_back(output in output()) {
        let again = read_yaml(&write_yaml(&output));
        prop_assert_eq!(again, Ok(output));
    }

    /// For all texts: an answer, and never a panic.
    #[test]
    fn any_text_is_answered(text in ".{0,60}", name in "(results|options|timestamp|statistics)") {
        drop(read_json(&format!("{{\"{name}\":{text}}}")));
        drop(read_yaml(&format!("{name}: {text}")));
        prop_assert!(parse_timestamp(&text).is_none_or(|_| text.contains(":")));
        prop_assert!(parse_duration(&text).is_none_or(|_| text.ends_with("s")));
    }

    /// For all points in time to the end of the range.
    #[test]
    fn points_in_time_read_back(nanoseconds in any::<u64>()) {
        let time = Nanos::new(nanoseconds);
        prop_assert_eq!(parse_timestamp(&timestamp_text(time)), Some(time));
        prop_assert_eq!(parse_duration(&duration_text(time)), Some(time));
    }
}
