use clap::Parser as _;
use stillwell_nighthawk::{CommandLineOptions, Protocol};
use stillwell_plan::RateShape;
use stillwell_plan::load::{BodyPlan, LoadPace, Overflow};

use super::*;

/// Reads a command line; text between quotes is one argument.
fn request(words: &str) -> Result<NighthawkRequest, String> {
    let mut line = vec!["nighthawk_client".to_owned()];
    for (number, part) in words.split('\'').enumerate() {
        if number % 2 == 1 {
            line.push(part.to_owned());
        } else {
            line.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    let arguments = NighthawkClientArguments::try_parse_from(line);
    let request = arguments.map(NighthawkRequest::from);
    request.map_err(|error| nighthawk_line::refusal(&error))
}

fn plan(words: &str) -> Result<LoadPlan, String> {
    let request = request(words)?;
    let checked = request.check().map_err(anyhow::Error::from);
    let plan = checked.and_then(|()| super::plan(&request));
    plan.map_err(|error| format!("{error:#}"))
}

fn options(words: &str) -> CommandLineOptions {
    request(words).unwrap().options().unwrap()
}

#[test]
fn the_command_of_its_documentation_is_understood() {
    let words = "--rps 1000 --connections 4 --concurrency 2 --prefetch-connections -v info \
                 http://127.0.0.1:10000/";
    let plan = plan(words).unwrap();
    assert_eq!((plan.workers, plan.client.connecting.connections), (2, 8));
    let LoadPace::Open {
        curve, overflow, ..
    } = &plan.pace
    else {
        panic!("no schedule");
    };
    assert_eq!(*curve, RateShape::Constant { per_second: 2000.0 });
    assert_eq!(*overflow, Overflow::Hold { waiting_max: 0 });
    assert_eq!(plan.until.failure.len(), 4 + 1);
    assert_eq!(plan.until.duration, Some(Nanos::from_secs(5)));
    let options = options(words);
    assert_eq!(options.requests_per_second, Some(1000));
    assert_eq!(options.concurrency.as_deref(), Some("2"));
    assert_eq!(options.protocol, Some(Protocol::Http1));
    assert_eq!(options.failure_predicates.len(), 5);
}

#[test]
fn streams_and_connections_of_http2_follow_from_what_may_be_active() {
    for (words, connections, streams) in [
        ("--h2", 1, 100),
        ("-p http2 --max-active-requests 10", 1, 10),
        ("--h2 --max-concurrent-streams 1", 100, 1),
        ("--h2 --max-concurrent-streams 1 --connections 2", 2, 1),
        ("--h2 --max-concurrent-streams 40 --connections 2", 2, 40),
        ("--h2 --max-concurrent-streams 40 --connections 9", 3, 40),
        (
            "--h2 --experimental-h2-use-multiple-connections --max-active-requests 5",
            5,
            1,
        ),
    ] {
        let connecting = plan(&format!("{words} a:80")).unwrap().client.connecting;
        assert_eq!(
            (connecting.connections, connecting.streams),
            (connections, streams)
        );
    }
}

#[test]
fn predicates_replace_the_default_ones_and_each_other() {
    let failure = |words: &str| {
        plan(&format!("{words} a:80"))
            .unwrap()
            .until
            .failure
            .clone()
    };
    let twice = "--failure-predicate benchmark.http_2xx:5 --failure-predicate benchmark.http_2xx:6";
    assert_eq!(failure(twice).len(), 1);
    assert_eq!(failure(twice)[0].threshold, 6);
    assert!(failure("--no-default-failure-predicates").is_empty());
}

#[test]
fn several_targets_have_one_path_and_no_uri() {
    let words =
        "--multi-target-endpoint a:1 --multi-target-endpoint [::1]:2 --multi-target-path /x";
    let plan = plan(words).unwrap();
    let addresses = plan
        .endpoints
        .iter()
        .map(|endpoint| endpoint.address.as_str());
    assert_eq!(addresses.collect::<Vec<_>>(), ["a:1", "[::1]:2"]);
    let authority = &plan.endpoints[0].requests[0].authority;
    assert_eq!(authority, "host-not-supported-in-multitarget-mode");
    let target = options(words).multi_target.unwrap();
    assert_eq!(target.endpoints[1].address.as_deref(), Some("::1"));
    assert_eq!(target.endpoints[1].port, Some(2));
}

#[test]
fn a_list_of_requests_takes_missing_values_from_the_flags() {
    let list = "{name: nighthawk.in-line-options-list-request-source-plugin, typed_config: \
                {num_requests: 4, options_list: {options: [\
                {request_headers: [{header: {key: \":path\", value: a/b}}, \
                {header: {key: host, value: other}}, {header: {key: x, value: \"2\"}}]}, \
                {request_method: PUT, json_body: '{}'}]}}}"
        .replace('\'', "\"");
    let plan = plan(&format!(
        "--concurrency 2 --request-method POST --request-body-size 3 --request-header 'x: 1' \
         --request-header 'y: 1' --request-source-plugin-config '{list}' a:80/p"
    ))
    .unwrap();
    assert_eq!(plan.until.requests, Some(8));
    let [first, second] = plan.endpoints[0].requests.as_slice() else {
        panic!("{:?}", plan.endpoints);
    };
    assert_eq!(
        (first.method.as_str(), first.path.as_str()),
        ("POST", "/a/b")
    );
    assert_eq!(first.authority, "other");
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(first.headers, [pair("y", "1"), pair("x", "2")]);
    assert_eq!(first.body, BodyPlan::Bytes(b"aaa".to_vec()));
    assert_eq!(
        (second.method.as_str(), second.path.as_str()),
        ("PUT", "/p")
    );
    assert_eq!(second.body, BodyPlan::Bytes(b"{}".to_vec()));
    assert!(
        second
            .headers
            .contains(&pair("content-type", "application/json"))
    );
}

#[test]
fn flags_that_contradict_each_other_are_refused_in_nighthawks_words() {
    for (words, expected) in [
        ("", "A URI or --multi-target-* options must be specified."),
        (
            "--multi-target-endpoint a:1 --multi-target-path /x b",
            "URI and --multi-target-* options cannot both be specified.",
        ),
        (
            "--multi-target-endpoint a:1",
            "--multi-target-path must be specified.",
        ),
        (
            "--duration 1 --no-duration a",
            "--duration and --no-duration are mutually exclusive",
        ),
        ("--duration 0 a", "--duration: write a time above zero"),
        (
            "--h2 -p http1 a",
            "--h2 and --protocol are mutually exclusive",
        ),
        (
            "--tls-context {} --transport-socket {} a",
            "--tls-context and --transport-socket cannot both be set.",
        ),
        (
            "--stats-flush-interval 1 a",
            "if --stats-flush-interval or --stats-flush-interval-duration is set, then \
             --stats-sinks must also be set",
        ),
        (
            "--request-source grpc://a:1 --request-source-plugin-config {} a",
            "--request-source and --request_source_plugin_config cannot both be set.",
        ),
        (
            "--burst-size 2 --rate-limiter-plugin-config {} a",
            "--burst-size and --rate-limiter-plugin-config are mutually exclusive",
        ),
        (
            "--tunnel-uri http://a a",
            "tunnel flags require --tunnel-protocol",
        ),
        (
            "--tunnel-protocol http1 a",
            "--tunnel-protocol requires --tunnel-uri",
        ),
        (
            "-p http3 --tunnel-protocol http1 --tunnel-uri http://b a",
            "--protocol HTTP3 over --tunnel-protocol HTTP1 is not supported",
        ),
        ("--nighthawk-service a:-1 a", "Bad service uri: a:-1"),
        ("a://b", "Invalid target URI: 'a://b'"),
    ] {
        let error = plan(words).unwrap_err();
        assert!(error.starts_with(expected), "{words}: {error}");
    }
}

#[test]
fn options_that_a_service_does_not_receive_are_refused_with_one() {
    for words in ["--request-body-file f", "--stats-sink-address h:1"] {
        let typed = request(&format!("{words} http://a/")).unwrap();
        assert!(typed.check().is_ok(), "{words}: {:?}", typed.check());
        let remote = request(&format!("--nighthawk-service b:1 {words} http://a/")).unwrap();
        let error = remote.check().unwrap_err().to_string();
        assert!(error.contains("--nighthawk-service"), "{words}: {error}");
        let flag = words.split(' ').next().unwrap();
        assert!(error.starts_with(flag), "{words}: {error}");
    }
}

#[test]
fn values_are_refused_with_their_flag() {
    for (words, expected) in [
        ("--foo a", "PARSE ERROR: Argument: --foo"),
        (
            "--rps 0 a",
            "Bad argument: Invalid value for --rps: value must be inside range [1, 1000000]",
        ),
        ("--rps -1 a", "Bad argument: Invalid value for --rps"),
        (
            "--duration -1 a",
            "Bad argument: Invalid value for --duration",
        ),
        (
            "--termination-predicate a:a a",
            "Bad argument: Termination predicate 'a:a' has an out of range threshold.",
        ),
        (
            "--concurrency x a",
            "Bad argument: Invalid value for --concurrency",
        ),
        (
            "--concurrency 0 a",
            "Bad argument: Value for --concurrency should be greater then 0.",
        ),
        (
            "--request-method GOT a",
            "PARSE ERROR: Argument: --request-method",
        ),
    ] {
        let error = request(words).unwrap_err();
        assert!(error.starts_with(expected), "{words}: {error}");
    }
}

#[test]
fn the_requested_name_comes_from_the_one_header_that_names_the_host() {
    let name = |words: &str| {
        plan(&format!("{words} https://a/")).map(|plan| plan.client.tls.server_name.clone())
    };
    let named = Ok(Some("sni.com".to_owned()));
    assert_eq!(name("--request-header Host:sni.com:1"), named);
    assert_eq!(name("--h2 --request-header ':authority: sni.com'"), named);
    assert_eq!(name(""), Ok(None));
    let both = "--request-header host:b --request-header :authority:c";
    assert_eq!(name(both), Ok(Some("b".to_owned())));
    assert_eq!(name(&format!("--h2 {both}")), Ok(None));
    assert_eq!(name("--request-header :authority:b"), Ok(None));
    assert_eq!(
        name("--request-header host:b --request-header Host:c"),
        Ok(None)
    );
}

/// From a command line to the message, and from there to the request and the message
/// again.
// compat: nighthawk_client | --uniform-distributed-jitter-range | works
// compat: nighthawk_client | --allow-envoy-deprecated-v2-api | differs | no effect: both versions are read
#[test]
fn every_option_survives_the_way_over_the_wire() {
    for words in [
        "http://a/",
        "--rps 7 --connections 3 --duration 9 --timeout 2 --concurrency auto --open-loop a:80",
        "--no-duration --h2 --max-active-requests 5 --max-concurrent-streams 2 [::1]:80",
        "-p http2 --max-requests-per-connection 9 --burst-size 4 --prefetch-connections a",
        "--uniform-distributed-jitter-range 10000 --allow-envoy-deprecated-v2-api a",
        "--jitter-uniform .00001s --simple-warmup --sequencer-idle-strategy poll a",
        "--experimental-h1-connection-reuse-strategy lru --address-family v6 a",
        "--termination-predicate benchmark.http_2xx:24 --failure-predicate \
         benchmark.http_5xx:1 --failure-predicate benchmark.http_4xx:2 a",
        "--no-default-failure-predicates --label x --label y -v trace a",
        "--multi-target-endpoint a:1 --multi-target-endpoint [::1]:2 --multi-target-path /x \
         --multi-target-use-https",
        "--request-method PUT --request-header 'host: b' --request-header ':path: /y' \
         --request-body-size 5 a",
        "--trace zipkin://a:1/api/v2/spans --latency-response-header-name x a",
        "--stats-sinks '{name:\"envoy.stat_sinks.statsd\",typed_config:{\"@type\":\
         \"type.googleapis.com/envoy.config.metrics.v3.StatsdSink\",address:{socket_address:\
         {protocol:\"UDP\",address:\"127.0.0.1\",port_value:8125}}}}' --stats-flush-interval 7 a",
        "--tunnel-protocol http2 --tunnel-uri https://proxy:8443 --tunnel-tls-context \
         {sni:\"p\",common_tls_context:{alpn_protocols:[\"h2\"]}} https://a",
        "-p http3 --http3-protocol-options {quic_protocol_options:{max_concurrent_streams:7}} \
         https://a",
        "--user-defined-plugin-config {name:\"nighthawk.log_response_headers_plugin\",\
         typed_config:{\"@type\":\"type.googleapis.com/nighthawk.LogResponseHeadersConfig\",\
         log_headers_with_name:[\"a\"],logging_mode:\"LM_LOG_ALL_RESPONSES\"}} a",
        "--request-source grpc://b:1 a",
        "--upstream-bind-config {source_address:{address:\"127.0.0.1\",port_value:0}} a",
        "--rate-limiter-plugin-config {name:\"nighthawk.linear-ramping-rate-limiter-plugin\",\
         typed_config:{\"@type\":\"type.googleapis.com/nighthawk.rate_limiter.\
         LinearRampingRateLimiterConfig\",ramp_time:\"1.500s\"}} a",
        "--request-source-plugin-config {name:\"nighthawk.in-line-options-list-request-source-\
         plugin\",typed_config:{\"@type\":\"type.googleapis.com/nighthawk.request_source.\
         InLineOptionsListRequestSourceConfig\",num_requests:4,options_list:{options:[\
         {request_method:\"PUT\",json_body:\"{}\"}]}}} a",
        "--transport-socket {name:\"envoy.transport_sockets.tls\",typed_config:{\"@type\":\
         \"type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext\",\
         sni:\"b\",common_tls_context:{tls_params:{cipher_suites:[\"ECDHE-RSA-AES128-SHA\"]}}}} \
         https://a",
    ] {
        let typed = request(&format!("--output-format json {words}")).unwrap();
        let options = typed.options().unwrap();
        let sent = NighthawkRequest::try_from(&wired(&options)).unwrap();
        assert!(sent.check().is_ok(), "{words}: {:?}", sent.check());
        assert_eq!(sent.options().unwrap(), options, "{words}");
    }
}

/// As it arrives over gRPC.
fn wired(options: &CommandLineOptions) -> CommandLineOptions {
    use stillwell_nighthawk::wire::{ExecutionRequest, decode_request, encode_request};
    let request = ExecutionRequest::Start(Box::new(options.clone()));
    let bytes = encode_request(&request).unwrap();
    match decode_request(&bytes).unwrap() {
        ExecutionRequest::Start(options) => *options,
        other => panic!("{other:?}"),
    }
}

// compat: nighthawk_client | warnings of accuracy | works
#[test]
fn workers_that_sent_clearly_fewer_requests_are_named() {
    let warning = uneven(&[1000, 850, 990]).unwrap();
    assert!(
        warning.contains("one sent 850 requests, another 1000"),
        "{warning}"
    );
    for even in [&[1000, 950][..], &[12, 3], &[7], &[]] {
        assert_eq!(uneven(even), None, "{even:?}");
    }
}
