use proptest::prelude::*;
use prost_reflect::prost::encoding;
use serde_json::json;
use stillwell_units::Nanos;

use super::compiled::files;
use super::*;
use crate::{
    CommandLineOptions, Counter, MessageError, Output, Percentile, Protocol, Quantity,
    RequestMethod, RequestOptions, Statistic, WorkerResult,
};

/// Written by Python's protobuf, from the same files.
const REQUEST: &str = "0a600a5e0a0308e8071a0808011080cab5ee0132030a0132620e080312080a060a01611201621a\
                       0092010b0a09687474703a2f2f612fc201170a1262656e63686d61726b2e687474705f35787810\
                       ac02e2010178ca06060880a0f8fa05da06020801";
const RESPONSE: &str = "0a4d1a390a06676c6f62616c122308031201691a041080897a2a1411000000000000e03f180221\
                        0000000000002e4060001a0a0a016e1080808080802022100a021001120a0a080a016b12031a01\
                        763a06080d12026e6f42026964";

fn bytes(hex: &str) -> Vec<u8> {
    let digits = (0..hex.len()).step_by(2);
    digits
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect()
}

fn options() -> CommandLineOptions {
    CommandLineOptions {
        requests_per_second: Some(1000),
        duration: Some(Nanos::from_millis(1500)),
        protocol: Some(Protocol::Http2),
        concurrency: Some("2".to_owned()),
        request_options: Some(RequestOptions {
            request_method: Some(RequestMethod::Post),
            request_headers: vec![("a".to_owned(), "b".to_owned())],
            request_body_size: Some(0),
            json_body: String::new(),
        }),
        uri: Some("http://a/".to_owned()),
        failure_predicates: [("benchmark.http_5xx".to_owned(), 300)].into(),
        labels: vec!["x".to_owned()],
        scheduled_start: Some(Nanos::from_secs(1_600_000_000)),
        ..CommandLineOptions::default()
    }
}

fn response() -> ExecutionResponse {
    let statistic = Statistic {
        count: 3,
        id: "i".to_owned(),
        mean: Some(Quantity::Time(Nanos::from_millis(2))),
        min: Some(Quantity::Raw(0.0)),
        percentiles: vec![Percentile {
            percentile: 0.5,
            count: 2,
            value: Some(Quantity::Raw(15.0)),
        }],
        ..Statistic::default()
    };
    let result = WorkerResult {
        name: "global".to_owned(),
        statistics: vec![statistic],
        counters: vec![Counter {
            name: "n".to_owned(),
            value: 1 << 40,
        }],
        ..WorkerResult::default()
    };
    ExecutionResponse {
        output: Some(Output {
            results: vec![result],
            version: Some(json!({
                "version": { "minor_number": 1 },
                "metadata": { "k": "v" },
            })),
            ..Output::default()
        }),
        error_detail: Some(Status {
            code: 13,
            message: "no".to_owned(),
        }),
        execution_id: "id".to_owned(),
    }
}

#[test]
fn what_another_library_writes_is_read() {
    let request = decode_request(&bytes(REQUEST)).unwrap();
    assert_eq!(request, ExecutionRequest::Start(Box::new(options())));
    assert_eq!(decode_response(&bytes(RESPONSE)).unwrap(), response());
}

#[test]
fn what_is_written_is_read_again() {
    let start = ExecutionRequest::Start(Box::new(options()));
    for request in [
        start,
        ExecutionRequest::Update,
        ExecutionRequest::Cancel,
        ExecutionRequest::Nothing,
    ] {
        let bytes = encode_request(&request).unwrap();
        assert_eq!(decode_request(&bytes).unwrap(), request);
    }
    let bytes = encode_response(&response()).unwrap();
    assert_eq!(decode_response(&bytes).unwrap(), response());
}

#[test]
fn every_file_is_read_and_described() {
    let schema = Schema::shared();
    let services = schema.services();
    assert!(services.contains(&"nighthawk.client.NighthawkService".to_owned()));
    for path in files() {
        // Its imports are included.
        assert!(schema.describe_file(&path).is_some(), "{path}");
    }
    let symbol = "nighthawk.client.CommandLineOptions.TunnelOptions";
    let described = schema.describe_symbol(symbol).unwrap();
    assert!(
        described[0]
            .windows(13)
            .any(|window| window == b"TunnelOptions")
    );
    for method in ["", ".ExecutionStream"] {
        let symbol = format!("nighthawk.client.NighthawkService{method}");
        assert!(schema.describe_symbol(&symbol).is_some(), "{symbol}");
    }
    assert_eq!(schema.describe_symbol("nighthawk.client.Nothing"), None);
    for version in ["v1", "v1alpha"] {
        let symbol = format!("grpc.reflection.{version}.ServerReflection");
        assert!(services.contains(&symbol), "{services:?}");
    }
}

#[test]
fn options_that_are_not_known_are_refused_and_results_are_not() {
    // Field 130 of the options, and of the output.
    let unknown = [0x92, 0x08, 0x01, b'x'];
    let within = |outer: &[u8], inner: &[u8]| {
        let mut bytes = outer.to_vec();
        bytes.push(u8::try_from(inner.len()).unwrap());
        bytes.extend_from_slice(inner);
        bytes
    };
    let request = within(&[0x0a], &within(&[0x0a], &unknown));
    let error = decode_request(&request).unwrap_err();
    assert_eq!(
        error,
        ExecutionMessageError::Wire(WireError::Unknown {
            message: "nighthawk.client.CommandLineOptions".to_owned(),
            number: 130,
        })
    );
    let response = decode_response(&within(&[0x0a], &unknown)).unwrap();
    assert_eq!(response.output, Some(Output::default()));
}

#[test]
fn pieces_of_a_message_are_one_and_of_a_choice_the_last_counts() {
    let schema = Schema::shared();
    let decode =
        |name: &str, bytes: &[u8]| schema.decode(name, bytes, UnknownFields::Skip).unwrap();
    // version: {major_number: 1} version: {patch: 2}
    let twice = [0x0a, 2, 0x08, 1, 0x0a, 2, 0x18, 2];
    let build = decode("envoy.config.core.v3.BuildVersion", &twice);
    assert_eq!(
        build,
        json!({ "version": { "major_number": 1, "patch": 2 } })
    );
    // mean: 1 s, raw_mean: 0
    let mean = [0x1a, 2, 0x08, 1, 0x41, 0, 0, 0, 0, 0, 0, 0, 0];
    let statistic = decode("nighthawk.client.Statistic", &mean);
    assert_eq!(statistic, json!({ "raw_mean": 0.0 }));
    // Numbers may be packed.
    let packed = [0x0a, 1, b'a', 0x12, 3, 1, 0x96, 0x01];
    let numbers = decode("grpc.reflection.v1.ExtensionNumberResponse", &packed);
    assert_eq!(
        numbers,
        json!({ "base_type_name": "a", "extension_number": [1, 150] })
    );
}

#[test]
fn the_mean_of_no_samples_is_received_as_zero() {
    // raw_mean: NaN, in a statistic of a result of an output.
    let mut bytes = vec![0x41];
    bytes.extend(f64::NAN.to_le_bytes());
    for tag in [0x12, 0x1a, 0x0a] {
        bytes.insert(0, u8::try_from(bytes.len()).unwrap());
        bytes.insert(0, tag);
    }
    let output = decode_response(&bytes).unwrap().output.unwrap();
    let statistic = &output.results[0].statistics[0];
    assert_eq!(statistic.mean, Some(Quantity::Raw(0.0)));
}

#[test]
fn messages_of_any_type_are_opened_where_it_is_known() {
    let schema = Schema::shared();
    let name = "envoy.config.core.v3.TypedExtensionConfig";
    for value in [
        json!({ "name": "a", "typed_config": {
            "@type": "type.googleapis.com/nighthawk.rate_limiter.LinearRampingRateLimiterConfig",
            "ramp_time": "5.500s",
        } }),
        json!({ "typed_config": { "@type": "a.b/not.Known", "value": "AAEC" } }),
        json!({ "typed_config": { "@type": "a.b/google.protobuf.Duration", "value": "1s" } }),
        json!({ "typed_config": {
            "@type": "a.b/google.protobuf.Struct",
            "value": { "@type": [null, 1.5, true, { "a": "b" }] },
        } }),
        json!({ "typed_config": {} }),
    ] {
        let bytes = schema.encode(name, &value).unwrap();
        assert_eq!(
            schema.decode(name, &bytes, UnknownFields::Refuse),
            Ok(value)
        );
    }
}

#[test]
fn times_that_are_negative_are_refused() {
    // duration: {seconds: -1}
    let mut options = vec![0x1a, 11, 0x08];
    options.extend([0xff; 9]);
    options.push(1);
    let request = [vec![0x0a, 15, 0x0a, 13], options].concat();
    let error = decode_request(&request).unwrap_err().to_string();
    assert!(error.contains("a time that is not negative"), "{error}");
}

#[test]
fn messages_in_messages_end_somewhere() {
    // A value in a list in a value, and so on.
    let mut bytes = Vec::new();
    for _ in 0..DEEP {
        let mut list = Vec::new();
        encoding::bytes::encode(1, &bytes, &mut list);
        bytes = Vec::new();
        encoding::bytes::encode(6, &list, &mut bytes);
    }
    let schema = Schema::shared();
    let refused = schema.decode("google.protobuf.Value", &bytes, UnknownFields::Refuse);
    assert_eq!(refused, Err(WireError::Deep));
}

const DEEP: usize = 100;

proptest! {
    #[test]
    fn for_all_bytes_reading_ends_and_what_is_read_is_written(
        bytes in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        if let Ok(request) = decode_request(&bytes) {
            let again = encode_request(&request).unwrap();
            prop_assert_eq!(decode_request(&again).unwrap(), request);
        }
        drop(decode_response(&bytes));
    }

    #[test]
    fn for_all_changes_of_a_message_what_is_read_is_written(
        is_request: bool,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        more in prop::collection::vec(any::<u8>(), 0..6),
    ) {
        let mut bytes = bytes(if is_request { REQUEST } else { RESPONSE });
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        bytes.extend(more);
        if let Ok(request) = decode_request(&bytes) {
            let again = encode_request(&request).unwrap();
            prop_assert_eq!(decode_request(&again).unwrap(), request);
        }
        if let Ok(response) = decode_response(&bytes) {
            let again = encode_response(&response).unwrap();
            prop_assert_eq!(decode_response(&again).unwrap(), response);
        }
    }

    #[test]
    fn for_all_cuts_a_message_is_whole_or_refused(cut in 0_usize..110) {
        let whole = bytes(REQUEST);
        let cut = cut.min(whole.len());
        let read = decode_request(&whole[..cut]);
        if cut < whole.len() {
            prop_assert!(!matches!(read, Ok(ExecutionRequest::Start(_))));
        }
    }
}

#[test]
fn a_field_that_holds_something_else_is_named() {
    let schema = Schema::shared();
    let name = "nighthawk.client.ExecutionResponse";
    for (value, expected) in [
        (
            json!({ "outputt": {} }),
            "unknown name `nighthawk.client.ExecutionResponse.outputt`",
        ),
        (
            json!({ "execution_id": 1 }),
            "`execution_id` of nighthawk.client.ExecutionResponse",
        ),
        (
            json!({ "output": { "results": {} } }),
            "`results` of nighthawk.client.Output",
        ),
        (json!([]), "must be a message"),
    ] {
        let error = schema.encode(name, &value).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let update = MessageError::Unknown {
        path: "x".to_owned(),
    };
    assert_eq!(response_of_json(json!({ "x": 1 })), Err(update));
}

#[test]
fn a_message_is_written_as_text_and_read_again() {
    let value = json!({
        "requests_per_second": 7,
        "duration": "1.500s",
        "uri": "http://a/\"\n\u{1}ä",
        "protocol": { "value": "HTTP2" },
        "termination_predicates": { "benchmark.http_2xx": "24" },
        "labels": ["a", "b"],
        "tunnel_options": { "tunnel_uri": "http://p" },
        "rate_limiter_plugin_config": {
            "name": "nighthawk.linear-ramping-rate-limiter-plugin",
            "typed_config": {
                "@type": "type.googleapis.com/nighthawk.rate_limiter.LinearRampingRateLimiterConfig",
                "ramp_time": "2s"
            }
        }
    });
    let name = "nighthawk.client.CommandLineOptions";
    let text = Schema::shared().write_text(name, &value).unwrap();
    for part in [
        "requests_per_second {\n  value: 7\n}\n",
        "duration {\n  seconds: 1\n  nanos: 500000000\n}\n",
        "  value: \"http://a/\\\"\\n\\001ä\"\n",
        "protocol {\n  value: HTTP2\n}\n",
        "termination_predicates {\n  key: \"benchmark.http_2xx\"\n  value: 24\n}\n",
        "labels: \"a\"\nlabels: \"b\"\n",
        "    [type.googleapis.com/nighthawk.rate_limiter.LinearRampingRateLimiterConfig] {\n",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert_eq!(Schema::shared().read_text(name, &text).unwrap(), value);
    // The type of a message may be in several lines.
    let in_lines = text.replace("type.googleapis.com/", "type.googleapis.com/\n      ");
    assert_eq!(Schema::shared().read_text(name, &in_lines).unwrap(), value);
    // Other spellings of the same.
    let text = "requests_per_second: < value: 0x7 >; labels: ['a', \"\\x62\"] # a comment\n";
    let read = Schema::shared().read_text(name, text).unwrap();
    assert_eq!(
        read,
        json!({ "requests_per_second": 7, "labels": ["a", "b"] })
    );
}

/// Pieces of texts, of which some fit each other.
fn text_pieces() -> impl Strategy<Value = String> {
    let pieces = [
        "requests_per_second { value: 7 }",
        "duration { seconds: 1 nanos: 5 }",
        "duration { seconds: 99999999999 }",
        "labels: \"a\\n\\377\"",
        "labels: ['a', \"b\" 'c']",
        "labels: []",
        "termination_predicates { key: 'a' value: 0x10 }",
        "protocol { value: HTTP2 }",
        "protocol { value: 9 }",
        "request_source_plugin_config { name: 'n' }",
        "typed_config",
        "[type.googleapis.com/nighthawk.client.Statistic]",
        "[google.protobuf.Duration]",
        "google.protobuf.Any",
        "raw_mean: nan",
        "raw_mean: -inf",
        "raw_mean: 1e400",
        "request_options",
        "request_headers { header { key: 'a' value: 'b' } append { value: true } }",
        "scheduled_start { seconds: 5 nanos: 999999999 }",
        "stats_sinks { name: 's' typed_config { type_url: 'x' value: '\\001' } }",
        "seconds: -1",
        "{",
        "}",
        "<",
        ">",
        ":",
        ";",
        ",",
        "# c",
        "\n",
        "\"",
        "[",
        "]",
    ];
    let piece = prop::sample::select(pieces.map(str::to_owned).to_vec());
    prop::collection::vec(piece, 0..7).prop_map(|all| all.join(" "))
}

proptest! {
    /// Results and sessions are files that are read again.
    #[test]
    fn for_all_texts_what_is_read_is_written_and_read_again(text in text_pieces()) {
        let schema = Schema::shared();
        for name in [
            "nighthawk.client.CommandLineOptions",
            "nighthawk.client.Statistic",
            "envoy.config.core.v3.TypedExtensionConfig",
        ] {
            let Ok(value) = schema.read_text(name, &text) else {
                continue;
            };
            let written = schema.write_text(name, &value).map_err(|error| {
                TestCaseError::fail(format!("{error}: {value}"))
            })?;
            let read = schema.read_text(name, &written).map_err(|error| {
                TestCaseError::fail(format!("{error}: {written}"))
            })?;
            prop_assert_eq!(schema.write_text(name, &read), Ok(written));
        }
    }
}

#[test]
fn a_text_that_is_no_message_is_refused_with_its_line() {
    for (text, expected) in [
        (
            "\nrequest_per_second { value: 7 }",
            "line 2: field 'request_per_second' not found for message 'nighthawk.client.CommandLineOptions'",
        ),
        (
            "requests_per_second: 7",
            "line 1: expected '{' or '<', but found '7'",
        ),
        (
            "requests_per_second { value: seven }",
            "expected an integer, but found 'seven'",
        ),
        (
            "requests_per_second { value: 5000000000 }",
            "the value 5000000000 is out of range",
        ),
        (
            "requests_per_second { value: -1 }",
            "the value -1 is out of range",
        ),
        (
            "h2 { value: yes }",
            "expected 'true' or 'false', but found 'yes'",
        ),
        ("labels \"a\"", "expected ':' or a message value"),
        ("labels: a", "expected a string, but found 'a'"),
        (
            "uri { value: \"a",
            "expected string terminator, but reached end of input",
        ),
        ("uri {\n value: \"\\q\" }", "line 2: invalid string escape"),
        (
            "uri {\n value: \"a\"\n",
            "line 2: expected '}' or a field name, but reached end of input",
        ),
        (
            "h2 { value: true } }",
            "expected a field name, but found '}'",
        ),
        (
            "h2 { value: true } h2 { value: true }",
            "'h2' is already set",
        ),
        (
            "h2 { value: true } protocol { value: HTTP1 }",
            "a value is already set for oneof 'oneof_protocol'",
        ),
        (
            "protocol { value: HTTP9 }",
            "value 'HTTP9' was not found for enum",
        ),
        ("duration { seconds: -1 }", "not negative"),
        (
            "request_source_plugin_config { typed_config { [a.b/C] {} } }",
            "message type 'C' not found",
        ),
        (
            "[google.protobuf.Duration] {}",
            "extension 'google.protobuf.Duration' not found",
        ),
    ] {
        let error = Schema::shared().read_text("nighthawk.client.CommandLineOptions", text);
        let error = error.unwrap_err().to_string();
        assert!(error.contains(expected), "{text}\n{error}");
    }
    let deep = "typed_config { [google.protobuf.Any] { ".repeat(100);
    let error = Schema::shared().read_text("envoy.config.core.v3.TypedExtensionConfig", &deep);
    assert!(error.is_err());
}
