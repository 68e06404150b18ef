//! `requests`.

use stillwell_plan::generator::{EventsDefault, RequestsPlan};
use stillwell_plan::load::{BodyPlan, GrpcMessages, LoadProtocol, RequestPlan, Spacing};
use stillwell_plan::placement::Wanted;
use stillwell_plan::target::ReadyProbe;
use stillwell_plan::{RateUnit, TransportPlan};
use stillwell_units::Nanos;

use super::{experiment, run_plan};
use crate::descriptors::tests::described;
use crate::requests::{
    Reflection, ReflectionFailure, ReflectionFailureKind, ReflectionRequest, described_calls,
};

/// Every key of `requests`, of which some exclude others.
pub(super) const EVERY_KEY: &str = "\
- requests: {url: 'http://a/', method: GET, headers: {a: b}, body: x, file: r, har: h, protocol: http2, poisson: true, burst_size: 2,
  grpc: {method: a.B/C, descriptors: d, json: '{}', streaming: none, deadline: 1s, messages: 2, message_rate: 5/s}}
- mix: [{path: /a, method: POST, headers: {a: c}, body: y, weight: 2}]
";

fn workload(requests: &str) -> String {
    format!("workload:\n  generators:\n    - requests: {requests}\n")
}

fn requests(text: &str) -> Vec<RequestPlan> {
    let loaded = run_plan(&workload(text)).unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
    match &loaded.plan.generators[0].transport {
        TransportPlan::Requests(plan) => plan.endpoint().requests.clone(),
        transport => panic!("{transport:?}"),
    }
}

#[test]
fn requests_of_a_mix_come_in_turn_by_weight_with_common_headers() {
    let sent = requests(
        "{url: 'http://127.0.0.1:1/x?y', headers: {a: '1', b: '2'}, \
         mix: [{weight: 6}, {path: /b, weight: 2, headers: {A: '3'}, body: hello}]}",
    );
    let paths: Vec<&str> = sent.iter().map(|request| request.path.as_str()).collect();
    assert_eq!(paths, ["/x?y", "/x?y", "/b", "/x?y"]);
    let methods: Vec<&str> = sent.iter().map(|request| request.method.as_str()).collect();
    assert_eq!(methods, ["GET", "GET", "POST", "GET"]);
    assert_eq!(sent[2].body, BodyPlan::Bytes(b"hello".to_vec()));
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(sent[0].headers, [header("a", "1"), header("b", "2")]);
    assert_eq!(sent[2].headers, [header("A", "3"), header("b", "2")]);
    assert_eq!(sent[2].authority, "127.0.0.1:1");
}

#[test]
fn a_host_header_replaces_the_host_of_the_url() {
    for (text, authorities) in [
        (
            "{url: 'http://127.0.0.1:1/', headers: {Host: a.example}}",
            &["a.example"][..],
        ),
        (
            "{url: 'http://127.0.0.1:1/', headers: {Host: a.example}, \
             mix: [{}, {path: /b, headers: {host: 'b.example:8080'}}]}",
            &["a.example", "b.example:8080"],
        ),
        (
            "{url: 'http://127.0.0.1:1/', mix: [{path: /c, headers: {Host: c.example}}, {}]}",
            &["c.example", "127.0.0.1:1"],
        ),
    ] {
        let sent = requests(text);
        let read: Vec<&str> = sent.iter().map(|request| &*request.authority).collect();
        assert_eq!(read, authorities, "{text}");
        assert!(sent.iter().all(|request| request.headers.is_empty()));
    }
}

#[test]
fn a_url_alone_is_one_get_request_and_a_rate_counts_requests() {
    let sent = requests("'http://127.0.0.1:1/'");
    assert_eq!((sent.len(), sent[0].method.as_str()), (1, "GET"));
    let loaded = run_plan(&workload("'http://127.0.0.1:1/'")).unwrap();
    let generator = &loaded.plan.generators[0];
    assert_eq!(generator.rate.unit, RateUnit::Events);
    let properties = generator.transport.properties();
    assert!(!properties.sends_payload);
    assert_eq!(properties.events_default, EventsDefault::Count(1));
}

#[test]
fn mistakes_in_requests_are_reported_without_one_about_a_payload() {
    for (text, message) in [
        ("{url: 'http://a:1/', mix: [{path: a}]}", "write `/a`"),
        (
            "{url: 'http://a:1/', mix: [{path: 'http://a:1/b?c=d'}]}",
            "write `/b?c=d`",
        ),
        ("{url: 'http://a:1/', mix: []}", "a mix without requests"),
        ("{url: 'http://a:1/', file: none.txt}", "there is no file"),
        ("{url: 'http://a:1/', body: '@none'}", "there is no file"),
        (
            "{url: 'http://a:1/', mix: [{body: {name: 1}}]}",
            "write JSON in quotes",
        ),
        ("{url: 'http://a:1/', streams: 2}", "HTTP/1.1"),
        (
            "{url: 'http://a:1/', headers: {Host: a/b}}",
            "`a/b` is not a host",
        ),
        (
            "{url: 'http://a:1/', mix: [{}, {body: 'payload:json'}]}",
            "use it alone",
        ),
        (
            "{url: 'http://a:1/', poisson: true, burst_size: 2}",
            "exclude each other",
        ),
        (
            "{url: 'http://a:1/', body: abc, grpc: {method: a.B/C}}",
            "give `descriptors` or `streaming`",
        ),
        (
            "{url: 'http://a:1/', grpc: {method: a.B/C, json: '{'}}",
            "read `json`: EOF",
        ),
        (
            "{url: 'http://a:1/', grpc: {method: a.B/C, streaming: server, messages: 2}}",
            "`messages` needs a method with client streaming",
        ),
        (
            "{url: 'http://a:1/', grpc: {method: a.B/C, streaming: none, message_rate: 5/s}}",
            "`message_rate` needs a method with client streaming",
        ),
        (
            "{url: 'http://a:1/', grpc: {method: a.B/C, message_rate: often}}",
            "write messages a second, such as 10/s",
        ),
        (
            "{url: 'http://a:1/', mix: [{}], grpc: {method: a.B/C, streaming: none}}",
            "`grpc` and `mix` exclude each other",
        ),
        (
            "{url: 'https://a:1/', protocol: http3, grpc: {method: a.B/C, streaming: none}}",
            "`grpc` does not support HTTP/3",
        ),
    ] {
        let error = run_plan(&workload(text)).unwrap_err().to_string();
        assert!(error.contains(message), "{text}: {error}");
        assert!(!error.contains("`payload` is missing"), "{text}: {error}");
    }
}

/// Describes the service of a client of Nighthawk, or offers no reflection.
struct Describes(bool);

impl Reflection for Describes {
    fn files(&self, request: &ReflectionRequest) -> Result<Vec<Vec<u8>>, ReflectionFailure> {
        assert_eq!(request.address, "127.0.0.1:1");
        assert_eq!(request.service, "nighthawk.client.NighthawkService");
        let names: Vec<&str> = request.headers.iter().map(|header| &*header.0).collect();
        assert_eq!(names, ["x-token", "grpc-accept-encoding"]);
        match self.0 {
            true => Ok(described("api/client/service.proto")),
            false => Err(ReflectionFailure::new(
                ReflectionFailureKind::NotOffered,
                "the server offers no reflection",
            )),
        }
    }
}

#[test]
fn the_server_describes_calls_without_descriptors_when_the_run_starts() {
    let plan = |call: &str| {
        let text = format!(
            "{{url: 'http://127.0.0.1:1/', headers: {{X-Token: a, te: trailers}}, grpc: {{method: \
             nighthawk.client.NighthawkService/{call}}}}}"
        );
        let loaded = run_plan(&workload(&text)).unwrap_or_else(|errors| panic!("{errors}"));
        match &loaded.plan.generators[0].transport {
            TransportPlan::Requests(plan) => RequestsPlan::clone(plan),
            transport => panic!("{transport:?}"),
        }
    };
    for (keys, messages, count, every) in [
        ("", 1, 1, None),
        (", json: '{} {}'", 2, 2, None),
        (
            ", json: '{} {}', messages: 5, message_rate: 10/s",
            2,
            5,
            Some(Nanos::from_millis(100)),
        ),
    ] {
        let plan = plan(&format!("ExecutionStream{keys}, deadline: 1s"));
        assert!(plan.undescribed_call().is_some());
        let described = described_calls(&plan, &Describes(true)).unwrap();
        assert!(described.undescribed_call().is_none());
        let BodyPlan::Grpc(call) = &described.endpoint().requests[0].body else {
            panic!("{described:?}");
        };
        assert_eq!(
            call.messages,
            GrpcMessages::Given(vec![Vec::new(); messages])
        );
        assert_eq!((call.count, call.every), (count, every));
        assert!(call.server_streams && call.deadline == Some(Nanos::SECOND));
    }
    for (call, offers, message) in [
        ("ExecutionStrem", true, "did you mean `ExecutionStream`?"),
        ("ExecutionStream, json: '{\"a\": 1}'", true, "read `json`: "),
        ("ExecutionStream", false, "give `descriptors`"),
    ] {
        let error = described_calls(&plan(call), &Describes(offers)).unwrap_err();
        let error = format!("{error:?}");
        assert!(error.contains(message), "{call}: {error}");
    }
}

#[test]
fn calls_go_over_http2_and_requests_have_a_spacing() {
    let transport = |text: &str| {
        let loaded = run_plan(&workload(text)).unwrap_or_else(|errors| panic!("{errors}"));
        let generators = loaded.plan.generators;
        generators.into_iter().next().unwrap().transport
    };
    let plan = transport(
        "{url: 'http://127.0.0.1:1/', streams: 3, body: abc, grpc: {method: a.B/C, \
         streaming: server, deadline: 1s}}",
    );
    let TransportPlan::Requests(plan) = &plan else {
        panic!("{plan:?}");
    };
    let connecting = &plan.client().connecting;
    assert_eq!(
        (connecting.protocol, connecting.streams),
        (LoadProtocol::Http2, 3)
    );
    let request = &plan.endpoint().requests[0];
    assert_eq!(request.path, "/a.B/C");
    let BodyPlan::Grpc(call) = &request.body else {
        panic!("{request:?}");
    };
    assert!(call.server_streams && call.deadline == Some(Nanos::SECOND));
    let spaced = [
        ("poisson: true", Spacing::Poisson),
        ("burst_size: 7", Spacing::Burst { size: 7 }),
    ];
    for (key, spacing) in spaced {
        let plan = transport(&format!("{{url: 'http://127.0.0.1:1/', {key}}}"));
        assert_eq!(plan.spacing(), spacing);
    }
}

#[test]
fn goals_of_routes_name_a_route_that_has_requests() {
    let goals = |goal: &str| experiment(&format!("{AT_URL}goals: [{goal}]\n"));
    for goal in [
        "{metric: latency_p99, route: GET /c}",
        "{metric: status_429, route: GET /a}",
        "status_503",
        "first_byte_p50",
    ] {
        goals(goal).unwrap_or_else(|errors| panic!("{goal}: {errors}"));
    }
    for (goal, message) in [
        (
            "{metric: latency_p99, route: /c}",
            "the routes are GET /a, GET /c",
        ),
        (
            "{metric: loss, route: GET /c}",
            "is not measured for each route",
        ),
        ("status_42", "unknown goal `status_42`"),
    ] {
        let error = goals(goal).unwrap_err().to_string();
        assert!(error.contains(message), "{goal}: {error}");
    }
}

/// A service that runs already; one variant has another URL.
const AT_URL: &str = "\
target: {name: shop, url: 'http://127.0.0.1:1/a'}
variants:
  baseline: {}
  comparison: {url: 'https://other:2/b'}
workload:
  generators:
    - requests: {mix: [{}, {path: /c}]}
      rate: 10/s
";

#[test]
fn requests_go_to_the_url_of_each_variant_in_the_network_of_the_host() {
    let loaded = experiment(AT_URL).unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
    let plan = &loaded.plan.experiments[0];
    assert_eq!(plan.run_plan.isolation.network, Wanted::No);
    let names: Vec<_> = plan.goals.iter().map(|goal| goal.metric.name()).collect();
    let expected = [
        "latency_p50",
        "latency_p99",
        "error_share",
        "request_throughput",
    ];
    assert_eq!(names, expected);
    for (variant, (address, tls_host, authority, path)) in plan.variants.iter().zip([
        ("127.0.0.1:1", None, "127.0.0.1:1", "/a"),
        ("other:2", Some("other"), "other:2", "/b"),
    ]) {
        let run_plan = plan.run_plan.around(plan.target_of(variant, None));
        let TransportPlan::Requests(requests) = &run_plan.generators[0].transport else {
            panic!("{:?}", run_plan.generators[0].transport);
        };
        let endpoint = requests.endpoint();
        assert_eq!(
            (endpoint.address.as_str(), endpoint.tls_host.as_deref()),
            (address, tls_host)
        );
        let paths: Vec<_> = endpoint
            .requests
            .iter()
            .map(|request| request.path.as_str())
            .collect();
        assert_eq!(paths, [path, "/c"]);
        assert!(
            endpoint
                .requests
                .iter()
                .all(|request| request.authority == authority)
        );
        let address = address.to_owned();
        assert_eq!(run_plan.target.ready, ReadyProbe::Tcp { address });
    }
}

#[test]
fn a_target_needs_a_tcp_port_only_if_requests_go_there_over_tcp() {
    let http3 = AT_URL.replace("http:", "https:");
    let http3 = http3.replace("mix:", "protocol: http3, mix:");
    let tcp = "    - id: tcp\n      requests: {mix: [{}]}\n      rate: 10/s\n";
    for (text, is_immediate) in [(http3.clone(), true), (format!("{http3}{tcp}"), false)] {
        let loaded = experiment(&text).unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
        let plan = &loaded.plan.experiments[0];
        for variant in &plan.variants {
            let run_plan = plan.run_plan.around(plan.target_of(variant, None));
            let ready = run_plan.target.ready;
            assert_eq!(ready == ReadyProbe::Immediately, is_immediate, "{text}");
        }
    }
    let started = workload("{url: 'https://127.0.0.1:1/', protocol: http3}");
    let started = run_plan(&format!("target: {{command: ./a}}\n{started}"));
    let started = started.unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
    let length = Nanos::SECOND;
    assert_eq!(started.plan.target.ready, ReadyProbe::Delay { length });
}

#[test]
fn a_host_header_is_the_same_for_each_variant() {
    let text = AT_URL.replace("mix:", "headers: {Host: '127.0.0.1:1'}, mix:");
    let loaded = experiment(&text).unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
    let plan = &loaded.plan.experiments[0];
    for variant in &plan.variants {
        let run_plan = plan.run_plan.around(plan.target_of(variant, None));
        let TransportPlan::Requests(requests) = &run_plan.generators[0].transport else {
            panic!("{:?}", run_plan.generators[0].transport);
        };
        let mut requests = requests.endpoint().requests.iter();
        assert!(requests.all(|request| request.authority == "127.0.0.1:1"));
    }
}

#[test]
fn mistakes_around_a_url_are_reported() {
    let with = |from: &str, to: &str| AT_URL.replace(from, to);
    for (text, message) in [
        (with("name: shop", "command: ./a"), "this target is a `url`"),
        (
            with("url: 'http://127.0.0.1:1/a'", "url: nothing"),
            "nothing",
        ),
        (
            with("name: shop, url: 'http://127.0.0.1:1/a'", "command: ./a"),
            "has no URL",
        ),
        (
            format!("{AT_URL}goals: [cpu_per_event]\n").replace("127.0.0.1:1", "example.org"),
            "no process is watched",
        ),
        (
            format!("{AT_URL}isolation: {{network: required}}\n"),
            "is not reachable",
        ),
        (
            with("mix:", "protocol: http3, mix:").replace("https://other", "http://other"),
            "HTTP/3 requires TLS",
        ),
    ] {
        let error = experiment(&text).unwrap_err().to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}
