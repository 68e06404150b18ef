//! Labs, and the command line over them.

use std::path::Path;

use stillwell_plan::{
    BinarySource, GoalMetric, OperatingPoint, RateShape, StoppingPlan, TargetKind, VariantPlan,
};
use stillwell_units::{Nanos, Seed};

use super::golden::LEAST;
use super::{Memory, experiment, experiment_with, load_lab_from, load_rig_from};
use crate::{LabOverrides, RigOverrides, StoppingOverride};

fn lab() -> Memory {
    Memory::with([
        ("/suite/cases/one/experiment.yaml", LEAST),
        ("/suite/native/experiment.yaml", LEAST),
        ("/suite/native/README.md", "# Native\n\nWhat it measures.\n"),
        ("/suite/native/lading.yaml", "generator: []\n"),
        ("/suite/soaks/two/lading/lading.yaml", "generator: []\n"),
        ("/suite/target/deep/experiment.yaml", "never: read"),
    ])
}

#[test]
fn without_other_formats_only_native_experiments_are_found() {
    let loaded = load_lab_from(&lab(), &["/suite".into()], &LabOverrides::default()).unwrap();
    let experiments = &loaded.plan.experiments;
    let names: Vec<&str> = experiments.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(
        (names.as_slice(), loaded.format),
        (&["one", "native"][..], "native")
    );
    assert_eq!(experiments[1].summary.as_deref(), Some("What it measures."));
    let none = load_lab_from(&lab(), &["/suite/soaks".into()], &LabOverrides::default());
    let none = none.unwrap_err().to_string();
    assert!(
        none.trim_end()
            .ends_with("is a folder with an `experiment.yaml`"),
        "{none}"
    );
    let rig = load_rig_from(&lab(), Path::new("/suite/native"), &RigOverrides::default());
    let TargetKind::Child(child) = rig.unwrap().plan.target.kind else {
        panic!("a program");
    };
    assert_eq!(child.arguments, ["--in", "127.0.0.1:9100"]);
}

fn overridden(overrides: &LabOverrides) -> stillwell_plan::ExperimentPlan {
    let loaded = experiment_with(LEAST, overrides).unwrap_or_else(|found| panic!("{found}"));
    loaded.plan.experiments.into_iter().next().unwrap()
}

#[test]
fn the_command_line_wins() {
    let plan = overridden(&LabOverrides {
        stopping: Some(StoppingOverride::FixedPairs(9)),
        warmup: Some(Nanos::from_secs(1)),
        measure: Some(Nanos::from_secs(2)),
        seed: Some(Seed::from_number(7)),
        goal: Some("memory:10%".to_owned()),
        rate: Some("5 MB/s".to_owned()),
        ..LabOverrides::default()
    });
    assert_eq!(plan.stopping, StoppingPlan::Fixed { pairs: 9 });
    assert_eq!(plan.rig.phases.warmup, Nanos::from_secs(1));
    assert_eq!(plan.rig.phases.measure, Nanos::from_secs(2));
    assert_eq!(plan.rig.seed, Seed::from_number(7));
    assert_eq!(
        plan.rig.generators[0].seed,
        Seed::from_number(7).derive("payload", 0)
    );
    assert_eq!(plan.goals[0].metric, GoalMetric::Memory);
    assert_eq!(plan.goals[0].tolerance.to_string(), "10%");
    assert_eq!(plan.goals.len(), 3);
    assert_eq!(plan.operating_point, OperatingPoint::Stated);
    let shape = plan.rig.generators[0].rate.shape;
    assert_eq!(shape, RateShape::Constant { per_second: 5e6 });
}

#[test]
fn variants_of_the_command_line_change_one_thing() {
    let git = LabOverrides {
        baseline: Some("git:v1".parse().unwrap()),
        comparison: Some("git:v2".parse().unwrap()),
        repository: Some("/src".into()),
        build: Some("make".to_owned()),
        build_output: Some("out/x".into()),
        ..LabOverrides::default()
    };
    let plan = overridden(&git);
    let BinarySource::Git(source) = &plan.variants[1].binary else {
        panic!("built from a revision");
    };
    assert_eq!(
        (source.revision.as_str(), source.build.as_str()),
        ("v2", "make")
    );
    assert_eq!(source.repository, Path::new("/src"));
    // What the file says beside the executable stays.
    assert_eq!(plan.variants[1].arguments, ["--slow"]);
    let same = overridden(&LabOverrides {
        comparison: Some("same".parse().unwrap()),
        ..LabOverrides::default()
    });
    assert_eq!(
        same.variants[1],
        VariantPlan::unchanged("comparison".to_owned())
    );
}

#[test]
fn variants_may_come_from_the_command_line_alone() {
    let text = LEAST.replace(
        "variants: {baseline: {}, comparison: {arguments: [--slow]}}\n",
        "",
    );
    let found = experiment(&text).unwrap_err();
    assert!(found.to_string().contains("needs `variants`"));
    let overrides = LabOverrides {
        comparison: Some("args:--slow".parse().unwrap()),
        ..LabOverrides::default()
    };
    let plan = experiment_with(&text, &overrides).unwrap().plan;
    assert_eq!(plan.experiments[0].variants.len(), 2);
}

#[test]
fn wrong_flags_are_errors() {
    for (overrides, said) in [
        (
            LabOverrides {
                goal: Some("speed".to_owned()),
                ..LabOverrides::default()
            },
            "unknown goal",
        ),
        (
            LabOverrides {
                rate: Some("5".to_owned()),
                ..LabOverrides::default()
            },
            "`5/s`",
        ),
        (
            LabOverrides {
                rate: Some("probe:2".to_owned()),
                ..LabOverrides::default()
            },
            "probe:60%",
        ),
        (
            LabOverrides {
                stopping: Some(StoppingOverride::FixedPairs(0)),
                ..LabOverrides::default()
            },
            "compares nothing",
        ),
        (
            LabOverrides {
                measure: Some(Nanos::ZERO),
                ..LabOverrides::default()
            },
            "nothing would",
        ),
        (
            LabOverrides {
                baseline: Some("git:a".parse().unwrap()),
                ..LabOverrides::default()
            },
            "build command",
        ),
    ] {
        let found = experiment_with(LEAST, &overrides).unwrap_err().to_string();
        assert!(found.contains(said), "{found}");
    }
}
