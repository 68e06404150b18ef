use std::fs;

use super::*;
use crate::files::Disk;

fn flags() -> ScenarioFlags {
    ScenarioFlags {
        url: Some("http://127.0.0.1:80/shop/".to_owned()),
        warmup: Nanos::ZERO,
        duration: None,
        threads: 1,
        protocol: LoadProtocol::Http1,
        timeout: Nanos::SECOND,
        connect_timeout: Nanos::SECOND,
        tls: TlsSpec::default(),
        seed: Seed::from_number(1),
    }
}

fn read(text: &str) -> Result<ScenarioLoadPlan, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scenario.yaml");
    fs::write(&path, text).unwrap();
    fs::write(folder.path().join("users.csv"), "user,word\nann,1\nbob,2\n").unwrap();
    let loaded = load_scenario(&Disk, &path, flags());
    loaded
        .map(|loaded| loaded.plan)
        .map_err(|errors| errors.render(false))
}

#[test]
fn a_scenario_has_steps_data_and_values_of_responses() {
    let plan = read(
        "scenario:
  arrivals: 5/s
  data: users.csv
  steps:
  - name: log in
    path: /login
    body: 'user={{user}}'
    take: { token: { json: /token } }
    think: 10ms..20ms
  - name: items
    path: '/items?u={{ user }}'
    headers: { authorization: 'Bearer {{token}}' }
    check: { status: 200, contains: [a, b] }
",
    )
    .unwrap();
    assert!(matches!(plan.users, UsersPlan::Arriving { per_second, .. } if per_second > 4.9));
    let plan = plan.scenario;
    assert_eq!(plan.rows.len(), 2);
    let [login, items] = plan.flows[0].steps.as_slice() else {
        panic!("{plan:?}")
    };
    assert_eq!(login.method, "POST");
    assert_eq!(
        login.think,
        (Nanos::from_millis(10), Nanos::from_millis(20))
    );
    let name = |index: &usize| plan.variables[*index].name.as_str();
    assert_eq!(name(&login.takes[0].variable), "token");
    assert_eq!(plan.base, "/shop");
    assert_eq!(items.path.0[0], TextPart::Text("/items?u=".to_owned()));
    assert!(matches!(&items.headers[0].1.0[1], TextPart::Variable(at) if name(at) == "token"));
    assert_eq!((items.status, items.contains.len()), (Some(200), 2));
}

/// A thread without users was idle, and its share of arrivals was refused.
#[test]
fn threads_are_at_most_as_many_as_users() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scenario.yaml");
    let step = "steps: [{name: a, path: /}]";
    for (users, threads) in [
        ("users: 2", 2),
        ("users: 9", 4),
        ("arrivals: 5/s\n  users_max: 3", 3),
    ] {
        fs::write(&path, format!("scenario:\n  {users}\n  {step}\n")).unwrap();
        let flags = ScenarioFlags {
            threads: 4,
            ..flags()
        };
        let loaded = load_scenario(&Disk, &path, flags);
        let plan = loaded.map_err(|errors| errors.render(false)).unwrap().plan;
        assert_eq!(plan.threads, threads, "{users}");
    }
}

#[test]
fn a_base_url_has_no_query() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scenario.yaml");
    for (typed, in_file, has_query) in [
        (None, "http://a:1/b?c=d", true),
        (Some("http://a:1/b?c=d"), "http://a:1/", true),
        (Some("http://a:1/b#c?d"), "http://a:1/?e", false),
    ] {
        let steps = "steps: [{name: a, path: /}]";
        let text = format!("scenario:\n  url: '{in_file}'\n  {steps}\n");
        fs::write(&path, text).unwrap();
        let flags = ScenarioFlags {
            url: typed.map(str::to_owned),
            ..flags()
        };
        let read = load_scenario(&Disk, &path, flags).map_err(|errors| errors.render(false));
        match read {
            Ok(loaded) => {
                assert!(!has_query, "{typed:?}");
                assert_eq!(loaded.plan.scenario.base, "/b");
            }
            Err(error) => assert!(
                has_query && error.contains("`http://a:1/b`, has a query"),
                "{error}"
            ),
        }
    }
}

#[test]
fn flags_of_tls_need_an_https_url() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scenario.yaml");
    fs::write(&path, "scenario: {steps: [{name: a, path: /}]}\n").unwrap();
    type Setter = fn(&mut TlsSpec);
    let settings: [(&str, Setter); 6] = [
        ("--insecure", |tls| tls.insecure = true),
        ("--ca", |tls| tls.ca.push("a.pem".into())),
        ("--certificate", |tls| {
            tls.certificate = Some("a.pem".into());
            tls.key = Some("a.key".into());
        }),
        ("--sni", |tls| tls.sni = Some("b".into())),
        ("--no-session-resumption", |tls| tls.no_resumption = true),
        ("--cipher-suite", |tls| tls.cipher_suites.push("c".into())),
    ];
    for (flag, set) in settings {
        for (url, has_effect) in [("http://a/", false), ("https://a/", true)] {
            let mut flags = ScenarioFlags {
                url: Some(url.to_owned()),
                ..flags()
            };
            set(&mut flags.tls);
            let read = load_scenario(&Disk, &path, flags).map_err(|errors| errors.render(false));
            let error = read.err().unwrap_or_default();
            assert_eq!(error.is_empty(), has_effect, "{flag} {url}: {error}");
            let is_named = error.contains(&format!("{flag} has no effect"));
            assert_eq!(is_named, !has_effect, "{flag} {url}: {error}");
        }
    }
}

#[test]
fn mistakes_are_named_with_what_is_right() {
    let step = |rest: &str| format!("scenario:\n  steps:\n  - name: a\n{rest}");
    for (text, part) in [
        (
            step("    path: /{{usr}}\n    take: { user: { json: /a } }\n"),
            "did you mean `user`?",
        ),
        (step("    path: a\n"), "write `/a`"),
        (
            step("    path: /\n    take: { a: { json: b } }\n"),
            "write `/b`",
        ),
        (
            step("    path: /\n    take: { a: { regex: '(' } }\n"),
            "unclosed group",
        ),
        (
            step("    path: /\n    think: 2s..1s\n"),
            "the end of this range is below its start",
        ),
        (
            step("    path: /\n  - name: a\n    path: /\n"),
            "two steps are named `a`",
        ),
        (
            "scenario: { arrivals: max, steps: [] }".to_owned(),
            "arrivals have one constant rate",
        ),
        ("scenario: { data: no.csv, steps: [] }".to_owned(), "no.csv"),
        (step("    pat: /\n"), "did you mean `path`?"),
        (
            "scenario: { users_max: 3, steps: [{name: a, path: /}] }".to_owned(),
            "leave it out: `users` is the number of users without `arrivals`",
        ),
    ] {
        let error = read(&text).unwrap_err();
        assert!(error.contains(part), "{text}\n{error}");
    }
}
