use super::*;

fn read(text: &str) -> Result<ResponseOptions, String> {
    ResponseOptions::from_json(text.as_bytes()).map_err(|error| error.to_string())
}

#[test]
fn both_spellings_of_every_key_are_read() {
    let snake = read(
        r#"{"v3_response_headers":[{"header":{"key":"X-A","value":"1"},"append":true}],
            "response_body_size":"10","echo_request_headers":true,"static_delay":"0.05s",
            "emit_previous_request_delta_in_response_header":"X-Delta"}"#,
    );
    let camel = read(
        r#"{"v3ResponseHeaders":[{"header":{"key":"X-A","value":"1"},"append":true}],
            "responseBodySize":10,"echoRequestHeaders":true,"staticDelay":"0.050s",
            "emitPreviousRequestDeltaInResponseHeader":"X-Delta"}"#,
    );
    assert_eq!(snake, camel);
    let options = snake.unwrap();
    assert_eq!(options.body_bytes, Some(10));
    let delay = ResponseDelay::Static(Nanos::from_millis(50));
    assert_eq!(options.delay, Some(delay));
    assert_eq!(options.delta_header.as_deref(), Some("x-delta"));
}

#[test]
fn keys_need_no_quotes_as_in_nighthawks_documentation() {
    let quoted = r#"{"response_body_size":20,"static_delay":"0s","v3_response_headers":
        [{"header":{"key":"a","value":"{b: c, \"d"}}]}"#;
    for text in [
        r#"{response_body_size:20, static_delay: "0s", v3_response_headers:
            [{header:{key: "a", value: "{b: c, \"d"}}]}"#,
        r#"{ 'response_body_size' : 20, staticDelay:'0s', v3ResponseHeaders:
            [ { header : { key: 'a', value: '{b: c, "d' } } ] }"#,
    ] {
        assert_eq!(read(text), read(quoted), "{text}");
        assert!(read(text).is_ok());
    }
    for text in [
        "{a",
        "{'a",
        "{a:",
        "{response_body_size:20",
        "{\"a\\",
        "{,}",
    ] {
        assert!(read(text).is_err(), "{text}");
    }
}

#[test]
fn input_that_is_not_understood_is_refused_with_its_reason() {
    for (text, message) in [
        ("bad_json", "expected value at line 1 column 1"),
        (r#"{"body":1}"#, "unknown field `body`"),
        (r#"{"response_body_size":4194305}"#, "at most 4194304"),
        (r#"{"response_body_size":-1}"#, "a whole number from 0"),
        (r#"{"static_delay":"5"}"#, "seconds such as `0.05s`"),
        (
            r#"{"static_delay":"1s","concurrency_based_linear_delay":{}}"#,
            "exclude each other",
        ),
        (
            r#"{"response_headers":[{"header":{"key":"a"}}],
                "v3_response_headers":[{"header":{"key":"a"}}]}"#,
            "use the latter",
        ),
        (
            r#"{"response_headers":[{"header":{"key":":status","value":"99"}}]}"#,
            "from 200 to 599",
        ),
        (
            r#"{"response_headers":[{"header":{"key":"a b","value":"1"}}]}"#,
            "`a b` is not a header",
        ),
        (
            r#"{"response_headers":[{"header":{"key":"content-length","value":"1"}}]}"#,
            "`content-length` is not a header",
        ),
        (
            r#"{"response_headers":[{"header":{"key":"a","value":"1\r\nb: 2"}}]}"#,
            "`a` is not a header",
        ),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains(message), "{text}: {error}");
    }
}

#[test]
fn settings_of_a_request_override_the_configuration() {
    let request = read(
        r#"{"response_body_size":10,"static_delay":"1s",
            "response_headers":[{"header":{"key":"x-nh","value":"1"}}]}"#,
    )
    .unwrap();
    let over = read(
        r#"{"response_body_size":0,"concurrency_based_linear_delay":{"minimal_delay":"0.05s"},
            "response_headers":[{"header":{"key":":status","value":"503"}},
            {"header":{"key":"x-nh","value":"2"},"append":true}]}"#,
    )
    .unwrap();
    let merged = request.merged(over);
    assert_eq!(merged.body_bytes, Some(0), "0 resets");
    assert!(matches!(merged.delay, Some(ResponseDelay::Linear { .. })));
    let (status, headers) = merged.status_and_headers(true);
    assert_eq!(status, 503);
    let expected = [("content-type", "text/plain"), ("x-nh", "1"), ("x-nh", "2")];
    assert_eq!(headers, expected);
}

#[test]
fn a_header_that_does_not_append_replaces() {
    let options = read(
        r#"{"response_headers":[{"header":{"key":"Content-Type","value":"a/b"}},
            {"header":{"key":"x","value":"1"}},{"header":{"key":"x","value":"2"}}]}"#,
    )
    .unwrap();
    let (_, headers) = options.status_and_headers(false);
    assert_eq!(headers, [("content-type", "a/b"), ("x", "2")]);
}

#[test]
fn linear_delays_are_rounded_to_milliseconds() {
    let linear = |minimal, factor| ResponseDelay::Linear {
        minimal: Nanos::new(minimal),
        factor: Nanos::new(factor),
    };
    for (delay, active, milliseconds) in [
        (linear(0, 0), 7, 0),
        (linear(50_000_000, 50_000_000), 1, 100),
        (linear(50_000_000, 50_000_000), 3, 200),
        (linear(500_000, 0), 1, 1),
        (linear(499_999, 0), 1, 0),
        (linear(1, 400_000), 5, 2),
    ] {
        assert_eq!(delay.at(active), Nanos::from_millis(milliseconds));
    }
}
