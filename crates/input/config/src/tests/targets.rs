//! Experiments with several targets.

use std::path::PathBuf;

use stillwell_plan::TargetsPlan;
use stillwell_plan::target::ReadyProbe;
use stillwell_plan::targets::{Delivery, Durability};
use stillwell_units::Nanos;

use super::Memory;
use crate::{Loaded, Loader, TargetsOverrides};

/// Uses every key of `subjects`, and a slow sink.
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
    let files = Memory::with([
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
fn mistakes_are_reported_with_a_remedy() {
    let named = |name: &str| TargetsOverrides {
        targets: vec![name.to_owned()],
        ..TargetsOverrides::default()
    };
    let all = TargetsOverrides::default();
    let with = |more: &str| format!("{FINE}{more}");
    for (text, overrides, expected) in [
        (FINE.to_owned(), named("relays"), "did you mean `relay`?"),
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
