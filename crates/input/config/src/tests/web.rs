//! `requests`.

use stillwell_plan::{BodyPlan, EventsDefault, RateUnit, RequestPlan, TransportPlan};

use super::rig;

/// Every key of `requests`, of which some exclude others.
pub(super) const EVERY_KEY: &str = "\
- requests: {url: 'http://a/', method: GET, headers: {a: b}, body: x, file: r, har: h, protocol: http2}
- mix: [{path: /a, method: POST, headers: {a: c}, body: y, weight: 2}]
";

fn workload(requests: &str) -> String {
    format!("workload:\n  generators:\n    - requests: {requests}\n")
}

fn requests(text: &str) -> Vec<RequestPlan> {
    let loaded = rig(&workload(text)).unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
    match &loaded.plan.generators[0].transport {
        TransportPlan::Requests(plan) => plan.load.endpoints[0].requests.clone(),
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
fn a_url_alone_is_one_get_request_and_a_rate_counts_requests() {
    let sent = requests("'http://127.0.0.1:1/'");
    assert_eq!((sent.len(), sent[0].method.as_str()), (1, "GET"));
    let loaded = rig(&workload("'http://127.0.0.1:1/'")).unwrap();
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
        ("{url: 'http://a:1/', mix: []}", "a mix without requests"),
        ("{url: 'http://a:1/', file: none.txt}", "there is no file"),
        ("{url: 'http://a:1/', body: '@none'}", "none"),
        ("{url: 'http://a:1/', streams: 2}", "HTTP/1.1"),
        (
            "{url: 'http://a:1/', mix: [{}, {body: 'payload:json'}]}",
            "use it alone",
        ),
    ] {
        let error = rig(&workload(text)).unwrap_err().to_string();
        assert!(error.contains(message), "{text}: {error}");
        assert!(!error.contains("`payload` is missing"), "{text}: {error}");
    }
}
