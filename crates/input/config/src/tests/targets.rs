//! Experiments with several targets.

use std::path::PathBuf;

use stillwell_plan::TargetsPlan;
use stillwell_plan::target::ReadyProbe;
use stillwell_plan::targets::{Delivery, Durability};
use stillwell_units::Nanos;

use super::InMemory;
use super::golden::LEAST;
use crate::{Loaded, Loader, TargetsOverrides};

/// Uses every key of `targets`, and a slow sink.
pub(super) const FINE: &str = "\
targets:
  relay:
    command: ['{self}', relay]
    durability: memory
  other:
    command: [./wrapper, other, -f, '{experiment}/other.conf']
    program: other
    version: other --version
    files: [other.conf]
    ready: {delay: 1s}
    durability: synced
    delivery: at_least_once
runs: 3
workload:
  generators: [{tcp: '127.0.0.1:9100', payload: ascii}]
  sinks: [{tcp: '127.0.0.1:9200', limit: 1 MiB/s}]
";

fn load(text: &str, overrides: &TargetsOverrides) -> Result<Loaded<Vec<TargetsPlan>>, String> {
    let files = InMemory::with([
        ("/suite/one/experiment.yaml", text),
        ("/suite/one/other.conf", ""),
    ]);
    Loader::new(&files, &[])
        .targets(&["/suite/one".into()], overrides)
        .map_err(|diagnostics| diagnostics.render(false))
}

#[test]
fn targets_are_read_with_their_guarantees() {
    let plans = load(FINE, &TargetsOverrides::default()).unwrap().plan;
    let [plan] = plans.as_slice() else {
        panic!("{plans:?}")
    };
    assert_eq!((plan.runs, plan.targets.len()), (3, 2));
    assert!(plan.run_plan.generators[0].rate.is_max());
    let [relay, second] = plan.targets.as_slice() else {
        panic!("{plan:?}")
    };
    let by_generator = ReadyProbe::Tcp {
        address: "127.0.0.1:9100".to_owned(),
    };
    assert_eq!(relay.target.ready, by_generator);
    assert_eq!(relay.durability, Some(Durability::Memory));
    assert_eq!(second.durability, Some(Durability::Synced));
    assert_eq!(second.delivery, Some(Delivery::AtLeastOnce));
    assert_eq!(second.program, Some(PathBuf::from("other")));
    assert_eq!(second.version.as_deref().unwrap(), ["other", "--version"]);
    assert_eq!(second.files, [PathBuf::from("/suite/one/other.conf")]);
}

#[test]
fn flags_select_targets_and_change_runs() {
    let overrides = TargetsOverrides {
        targets: vec!["other".to_owned()],
        runs: Some(2),
        measure: Some(Nanos::from_secs(7)),
        ..TargetsOverrides::default()
    };
    let plan = &load(FINE, &overrides).unwrap().plan[0];
    assert_eq!((plan.runs, plan.targets.len()), (2, 1));
    assert_eq!(plan.run_plan.phases.measure, Nanos::from_secs(7));
}

#[test]
fn keys_without_a_value_may_be_beside_targets() {
    for key in ["target", "variants"] {
        let text = format!("{FINE}{key}:\n");
        let loaded = load(&text, &TargetsOverrides::default());
        let loaded = loaded.unwrap_or_else(|error| panic!("{key}: {error}"));
        assert_eq!(loaded.plan.len(), 1, "{key}");
    }
}

#[test]
fn keys_that_only_variants_use_are_errors() {
    for (text, name) in [
        ("builds: 2", "`builds`"),
        (
            "checks: [{name: a, series: total_rss_bytes, upper_bound: 1 GiB}]",
            "`checks`",
        ),
        ("confirm: false", "`confirm`"),
        ("design: duet", "`design`"),
        ("erratic: true", "`erratic`"),
        ("goals: [memory]", "`goals`"),
        ("max_time: 1m", "`max_time`"),
        ("pairs: 4", "`pairs`"),
        (
            "report_links: [{text: a, link: 'http://a/'}]",
            "`report_links`",
        ),
        ("operating_point: probe", "`operating_point: probe`"),
        (
            "operating_point: {probe: {share: 50%}}",
            "`operating_point: probe`",
        ),
        ("phases: {warmup: auto}", "a measured warm-up"),
        ("phases: {warmup: {at_least: 2s}}", "a measured warm-up"),
    ] {
        let text = format!("{FINE}{text}\n");
        let error = load(&text, &TargetsOverrides::default()).unwrap_err();
        let message = format!("{name} has no effect with `targets`");
        assert!(error.contains(&message), "{text}: {error}");
        assert_eq!(error.matches("error[").count(), 1, "{text}: {error}");
    }
    for text in ["operating_point: max", "phases: {warmup: 2s}", "pairs:"] {
        let loaded = load(&format!("{FINE}{text}\n"), &TargetsOverrides::default());
        assert!(loaded.is_ok(), "{text}: {loaded:?}");
    }
}

#[test]
fn targets_at_full_speed_have_the_same_blocks_for_all_stated_rates() {
    let payload = |rate: &str, point: &str| {
        let text = FINE.replace("payload: ascii", &format!("payload: ascii, rate: {rate}"));
        let loaded = load(&format!("{text}{point}"), &TargetsOverrides::default());
        let mut run_plan = loaded.unwrap().plan.remove(0).run_plan;
        run_plan.generators.remove(0).payload
    };
    let point = "operating_point: max\n";
    assert_eq!(payload("5/s", point), payload("max", ""));
}

#[test]
fn experiments_with_targets_and_with_variants_need_separate_commands() {
    let files = InMemory::with([
        ("/suite/one/experiment.yaml", FINE),
        ("/suite/one/other.conf", ""),
        ("/suite/two/experiment.yaml", LEAST),
    ]);
    let loader = Loader::new(&files, &[]);
    let only = |name: &str| TargetsOverrides {
        only: vec![name.to_owned()],
        ..TargetsOverrides::default()
    };
    for paths in [
        &["/suite"][..],
        &["/suite/one", "/suite/two"],
        &["/suite/two", "/suite/one"],
    ] {
        let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
        let error = loader.targets(&paths, &TargetsOverrides::default());
        let error = error.unwrap_err().to_string();
        assert!(error.contains("two: it has no `targets`"), "{error}");
        assert!(error.contains("by separate commands"), "{error}");
        let loaded = loader.targets(&paths, &only("one"));
        let loaded = loaded.unwrap_or_else(|errors| panic!("{errors}"));
        assert_eq!(loaded.plan.len(), 1);
        for (name, has_targets) in [("one", true), ("o*", true), ("two", false)] {
            let only = only(name).only;
            assert_eq!(loader.has_targets(&paths, &only), has_targets, "{name}");
        }
        assert!(loader.has_targets(&paths, &[]));
    }
}

#[test]
fn mistakes_are_reported_with_a_remedy() {
    let named = |name: &str| TargetsOverrides {
        targets: vec![name.to_owned()],
        ..TargetsOverrides::default()
    };
    let only = |pattern: &str| TargetsOverrides {
        only: vec!["one".to_owned(), pattern.to_owned()],
        ..TargetsOverrides::default()
    };
    let all = TargetsOverrides::default();
    let with = |more: &str| format!("{FINE}{more}");
    for (text, overrides, expected) in [
        (FINE.to_owned(), named("relays"), "did you mean `relay`?"),
        (
            FINE.to_owned(),
            only("on"),
            "`--only on` matches no experiment",
        ),
        (FINE.to_owned(), only("on"), "did you mean `one`?"),
        (
            with("variants: {a: {}, b: {}}\n"),
            all.clone(),
            "`variants` and `targets` exclude each other",
        ),
        (
            with("target: {command: x}\n"),
            all.clone(),
            "`target` and `targets` exclude each other",
        ),
        (
            FINE.replace("synced", "always"),
            all.clone(),
            "memory, disk",
        ),
        (
            FINE.replace("other.conf]", "no.conf]")
                .replace("{experiment}/no", "no"),
            all.clone(),
            "there is no file /suite/one/no.conf",
        ),
        (
            with("matrix: {a: [1, 2]}\n"),
            all.clone(),
            "a matrix and `targets` exclude each other",
        ),
        (
            with("phases: {ready: 1s}\n"),
            all.clone(),
            "its delay of 1s is not below the deadline of 1s",
        ),
        ("runs: 3\n".to_owned(), all, "no experiment with `targets`"),
    ] {
        let error = load(&text, &overrides).unwrap_err();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}
