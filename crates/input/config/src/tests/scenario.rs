//! Generators with `scenario`.

use std::path::Path;

use stillwell_plan::load::LoadProtocol;
use stillwell_plan::placement::Wanted;
use stillwell_plan::{GeneratorPlan, RateShape, RateUnit, TransportPlan};

use super::{InMemory, experiment, load_run_from};
use crate::RunOverrides;

/// Every key of `scenario`, of which some exclude others.
pub(super) const EVERY_KEY: &str = "\
- scenario: {file: f, url: 'http://a/', protocol: http2, timeout: 1s, connect_timeout: 1s, insecure: true, ca: c, users: 1, arrivals: 1/s,
  users_max: 2, variables: {a: b}, data: d, headers: {a: b}, flows: [{name: f, weight: 2, steps: []}],
  steps: [{name: a, method: GET, path: /, headers: {}, body: b, think: 1s, check: {status: 200, contains: a},
    take: {v: {json: /a, header: h, regex: r}}}]}
";

const SCENARIO: &str = "\
scenario:
  url: http://127.0.0.1:1/shop
  users: 3
  duration: 5s
  data: users.csv
  steps:
  - {name: log in, path: /login, body: '{{user}}'}
  - {name: list items, path: /items}
";

fn read(rest: &str, scenario: &str) -> Result<GeneratorPlan, String> {
    let text = format!("workload:\n  generators:\n    - {rest}\n");
    let files = InMemory::with([
        ("/suite/run.yaml", text.as_str()),
        ("/suite/shop.yaml", scenario),
        ("/suite/users.csv", "user\nann\nbob\n"),
    ]);
    let loaded = load_run_from(
        &files,
        Path::new("/suite/run.yaml"),
        &RunOverrides::default(),
    );
    let plan = loaded.map_err(|errors| errors.to_string())?.plan;
    Ok(plan.generators.into_iter().next().unwrap())
}

#[test]
fn users_of_a_scenario_file_are_the_connections_and_the_rate_of_a_generator() {
    let closed = read("scenario: shop.yaml", SCENARIO).unwrap();
    assert_eq!(closed.concurrency.connections(), 3);
    assert!(closed.rate.is_max());
    assert_eq!(closed.rate.unit, RateUnit::Events);
    let TransportPlan::Scenario(plan) = &closed.transport else {
        panic!("{closed:?}");
    };
    assert_eq!((plan.base.as_str(), plan.rows.len()), ("/shop", 2));
    assert_eq!(plan.routes().names(), ["log in", "list items"]);

    let http2 = read("scenario: {file: shop.yaml, protocol: http2}", SCENARIO).unwrap();
    let TransportPlan::Scenario(plan) = &http2.transport else {
        panic!("{http2:?}");
    };
    assert_eq!(plan.protocol, LoadProtocol::Http2);

    let open = SCENARIO.replace("users: 3", "arrivals: 50/s\n  users_max: 20");
    let open = read("scenario: {file: shop.yaml, timeout: 1s}", &open).unwrap();
    assert_eq!(open.concurrency.connections(), 20);
    let per_second = 50.0;
    assert_eq!(open.rate.shape, RateShape::Constant { per_second });

    let ramp = read(
        "{scenario: shop.yaml, rate: '1/s..9/s:5s', connections: 7, workers: 2}",
        SCENARIO,
    );
    let ramp = ramp.unwrap();
    let threads = (ramp.concurrency.connections(), ramp.concurrency.workers());
    assert_eq!(threads, (7, 2));
    assert!(matches!(ramp.rate.shape, RateShape::Ramp(_)));

    // A generator with `connections` does not use the users of the file.
    let many = SCENARIO.replace("users: 3", "users: 70000");
    let few = read("{scenario: shop.yaml, connections: 7}", &many).unwrap();
    assert_eq!(few.concurrency.connections(), 7);
    let many = SCENARIO.replace("users: 3", "users: 65535");
    let many = read("scenario: shop.yaml", &many).unwrap();
    assert_eq!(many.concurrency.connections(), u16::MAX);
}

#[test]
fn mistakes_of_a_scenario_are_reported_where_they_are() {
    let inline = "{url: 'http://a:1/', steps: [{name: a, path: a}]}";
    let arrivals = SCENARIO.replace("users: 3", "arrivals: 5/s");
    for (generator, scenario, message) in [
        ("scenario: none.yaml", SCENARIO, "there is no file"),
        (&format!("scenario: {inline}"), SCENARIO, "write `/a`"),
        (
            "scenario: shop.yaml",
            &SCENARIO.replace("/login", "login"),
            "shop.yaml:7:",
        ),
        (
            "scenario: {file: shop.yaml, users: 2}",
            SCENARIO,
            "`file` and `users` exclude each other",
        ),
        (
            "{scenario: shop.yaml, rate: 5/s}",
            &arrivals,
            "the scenario has `arrivals`",
        ),
        (
            "{scenario: shop.yaml, payload: ascii}",
            SCENARIO,
            "no payload is sent",
        ),
        (
            "scenario: {file: shop.yaml, protocol: http3}",
            SCENARIO,
            "scenarios do not support HTTP/3",
        ),
        (
            "scenario: {file: shop.yaml, protocol: h2}",
            SCENARIO,
            "http1, http2",
        ),
        (
            "scenario: {steps: [{name: a, path: /}]}",
            SCENARIO,
            "a scenario needs `url`",
        ),
        (
            "scenario: shop.yaml",
            &SCENARIO.replace("users: 3", "users: 65536"),
            "`users` of the scenario (65536) is out of range",
        ),
        (
            "scenario: shop.yaml",
            &arrivals.replace("5/s", "5/s\n  users_max: 70000"),
            "`users_max` of the scenario (70000) is out of range",
        ),
        (
            "scenario: shop.yaml",
            &SCENARIO.replace("1/shop", "1/shop?a=b"),
            "`http://127.0.0.1:1/shop`, has a query",
        ),
    ] {
        let error = read(generator, scenario).unwrap_err();
        assert!(error.contains(message), "{generator}: {error}");
        assert!(!error.contains("`payload` is missing"), "{error}");
    }
}

/// A service that runs already; one variant has another URL.
const AT_URL: &str = "\
target: {name: shop, url: 'http://127.0.0.1:1/v1'}
variants:
  baseline: {}
  comparison: {url: 'https://other:2/v2'}
workload:
  generators:
    - scenario: {users: 2, steps: [{name: a, path: /a}, {name: b, path: /b}]}
";

#[test]
fn users_go_to_the_url_of_each_variant_and_steps_have_goals() {
    let with = |goal: &str| format!("{AT_URL}goals: [{{metric: latency_p99, route: {goal}}}]\n");
    let loaded = experiment(&with("b")).unwrap_or_else(|errors| panic!("{errors}"));
    let plan = &loaded.plan.experiments[0];
    assert_eq!(plan.run_plan.isolation.network, Wanted::No);
    for (variant, (address, tls_host, base)) in plan.variants.iter().zip([
        ("127.0.0.1:1", None, "/v1"),
        ("other:2", Some("other"), "/v2"),
    ]) {
        let run_plan = plan.run_plan.around(plan.target_of(variant, None));
        let TransportPlan::Scenario(users) = &run_plan.generators[0].transport else {
            panic!("{:?}", run_plan.generators[0].transport);
        };
        let read = (users.address.as_str(), users.tls_host.as_deref());
        assert_eq!((read, users.base.as_str()), ((address, tls_host), base));
    }
    let error = experiment(&with("c")).unwrap_err().to_string();
    assert!(error.contains("the routes are a, b"), "{error}");
}

#[test]
fn steps_are_below_no_url_with_a_query() {
    for url in ["http://127.0.0.1:1/v1", "https://other:2/v2"] {
        let text = AT_URL.replace(url, &format!("{url}?a=b"));
        let error = experiment(&text).unwrap_err().to_string();
        let message = format!("`{url}`, has a query");
        assert!(error.contains(&message), "{error}");
    }
    // The URL of the generator replaces both.
    let apart = AT_URL.replace("/v1", "/v1?a").replace("/v2", "/v2?b");
    let apart = apart.replace("scenario: {", "scenario: {url: 'http://127.0.0.1:3/', ");
    let apart = format!("{apart}goals: [latency_p99]\n");
    experiment(&apart).unwrap_or_else(|errors| panic!("{errors}"));
}
