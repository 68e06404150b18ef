//! Suites, and the command line over them.

use std::path::Path;

use stillwell_plan::experiment::{BinarySource, OperatingPoint};
use stillwell_plan::{GoalMetric, RateShape, StoppingPlan, TargetKind, VariantPlan};
use stillwell_units::{Nanos, Seed};

use super::golden::LEAST;
use super::{InMemory, experiment, experiment_with, load_run_from, load_suite_from};
use crate::{Loader, RunOverrides, StoppingOverride, SuiteOverrides};

fn suite() -> InMemory {
    InMemory::with([
        ("/suite/cases/one/experiment.yaml", LEAST),
        ("/suite/native/experiment.yaml", LEAST),
        ("/suite/native/README.md", "# Native\n\nWhat it measures.\n"),
        ("/suite/native/lading.yaml", "generator: []\n"),
        ("/suite/soaks/two/lading/lading.yaml", "generator: []\n"),
        ("/suite/target/deep/experiment.yaml", "never: read"),
    ])
}

#[test]
fn a_search_for_experiments_is_bounded() {
    let files = (0..=50_000).map(|number| (format!("/many/{number}").into(), String::new()));
    let files = InMemory(files.collect());
    let paths = ["/many".into()];
    let error = load_suite_from(&files, &paths, &SuiteOverrides::default());
    let error = error.unwrap_err().to_string();
    assert!(error.contains("/many has more than 50000 files"), "{error}");
    assert!(
        error.contains("name the folder that holds the experiments"),
        "{error}"
    );
}

#[test]
fn without_other_formats_only_native_experiments_are_found() {
    let loaded = load_suite_from(&suite(), &["/suite".into()], &SuiteOverrides::default()).unwrap();
    let experiments = &loaded.plan.experiments;
    let names: Vec<&str> = experiments
        .iter()
        .map(|experiment| experiment.name.as_str())
        .collect();
    assert_eq!(
        (names.as_slice(), loaded.format),
        (&["one", "native"][..], "native")
    );
    assert_eq!(experiments[1].summary.as_deref(), Some("What it measures."));
    let none = load_suite_from(
        &suite(),
        &["/suite/soaks".into()],
        &SuiteOverrides::default(),
    );
    let none = none.unwrap_err().to_string();
    assert!(
        none.trim_end()
            .ends_with("is a folder with an `experiment.yaml`"),
        "{none}"
    );
    let run_plan = load_run_from(
        &suite(),
        Path::new("/suite/native"),
        &RunOverrides::default(),
    );
    let TargetKind::Child(child) = run_plan.unwrap().plan.target.kind else {
        panic!("a program");
    };
    assert_eq!(child.arguments, ["--in", "127.0.0.1:9100"]);
}

fn overridden(overrides: &SuiteOverrides) -> stillwell_plan::ExperimentPlan {
    let loaded =
        experiment_with(LEAST, overrides).unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
    loaded.plan.experiments.into_iter().next().unwrap()
}

#[test]
fn the_command_line_wins() {
    let plan = overridden(&SuiteOverrides {
        stopping: Some(StoppingOverride::FixedPairs(9)),
        warmup: Some(Nanos::from_secs(1)),
        measure: Some(Nanos::from_secs(2)),
        seed: Some(Seed::from_number(7)),
        goal: Some("memory:10%".to_owned()),
        rate: Some("5 MB/s".to_owned()),
        ..SuiteOverrides::default()
    });
    assert_eq!(plan.stopping, StoppingPlan::Fixed { pairs: 9 });
    assert_eq!(plan.run_plan.phases.warmup, Nanos::from_secs(1));
    assert_eq!(plan.run_plan.phases.measure, Nanos::from_secs(2));
    assert_eq!(plan.run_plan.seed, Seed::from_number(7));
    assert_eq!(
        plan.run_plan.generators[0].seed,
        Seed::from_number(7).derive("payload", 0)
    );
    assert_eq!(plan.goals[0].metric, GoalMetric::Memory);
    assert_eq!(plan.goals[0].tolerance.to_string(), "10%");
    assert_eq!(plan.goals.len(), 3);
    assert_eq!(plan.operating_point, OperatingPoint::Stated);
    let shape = &plan.run_plan.generators[0].rate.shape;
    assert_eq!(*shape, RateShape::Constant { per_second: 5e6 });
}

#[test]
fn variants_of_the_command_line_change_one_thing() {
    let git = SuiteOverrides {
        baseline: Some("git:v1".parse().unwrap()),
        comparison: Some("git:v2".parse().unwrap()),
        repository: Some("/src".into()),
        build: Some("make".to_owned()),
        build_output: Some("out/x".into()),
        ..SuiteOverrides::default()
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
    let same = overridden(&SuiteOverrides {
        comparison: Some("same".parse().unwrap()),
        ..SuiteOverrides::default()
    });
    assert_eq!(
        same.variants[1],
        VariantPlan::unchanged("comparison".to_owned())
    );
}

// compat: SMP and soaks | revisions alone, built as stillwell.yaml of the repository says | differs | the file is Stillwell's
#[test]
fn a_repository_defines_how_its_revisions_are_built_unless_the_command_line_does() {
    let build = "build: make\noutput: out/x\n";
    let files = InMemory::with([
        ("/suite/native/experiment.yaml", LEAST),
        ("/src/stillwell.yaml", build),
        ("/wrong/stillwell.yaml", "build: make\nresult: out/x\n"),
    ]);
    let load = |repository: &str, [build, output]: [Option<&str>; 2]| {
        let overrides = SuiteOverrides {
            baseline: Some("27381ec978e00553746372679c1692682328d4ec".parse().unwrap()),
            comparison: Some("2c9212e".parse().unwrap()),
            repository: Some(repository.into()),
            build: build.map(str::to_owned),
            build_output: output.map(Into::into),
            ..SuiteOverrides::default()
        };
        let loaded = load_suite_from(&files, &["/suite".into()], &overrides);
        let loaded = loaded.map_err(|diagnostics| diagnostics.to_string())?;
        match &loaded.plan.experiments[0].variants[1].binary {
            BinarySource::Git(source) => Ok(source.clone()),
            other => Err(format!("{other:?}")),
        }
    };
    let source = load("/src", [None; 2]).unwrap();
    assert_eq!(
        (source.revision.as_str(), source.build.as_str()),
        ("2c9212e", "make")
    );
    assert_eq!(source.output, Path::new("out/x"));
    assert_eq!(source.repository, Path::new("/src"));
    let typed = load("/src", [Some("ninja"), None]).unwrap();
    assert_eq!(typed.build, "ninja");
    assert_eq!(typed.output, Path::new("out/x"));
    let error = load("/nothing", [None; 2]).unwrap_err();
    assert!(error.contains("stillwell.yaml"), "{error}");
    for typed in [[None; 2], [Some("ninja"), None], [None, Some("out/y")]] {
        let error = load("/wrong", typed).unwrap_err();
        assert!(error.contains("/wrong/stillwell.yaml:2:1"), "{error}");
    }
    let typed = load("/wrong", [Some("ninja"), Some("out/y")]).unwrap();
    assert_eq!(typed.build, "ninja");
    assert_eq!(typed.output, Path::new("out/y"));
}

#[test]
fn variants_may_come_from_the_command_line_alone() {
    let text = LEAST.replace(
        "variants: {baseline: {}, comparison: {arguments: [--slow]}}\n",
        "",
    );
    let diagnostics = experiment(&text).unwrap_err();
    assert!(diagnostics.to_string().contains("needs `variants`"));
    let overrides = SuiteOverrides {
        comparison: Some("args:--slow".parse().unwrap()),
        ..SuiteOverrides::default()
    };
    let plan = experiment_with(&text, &overrides).unwrap().plan;
    assert_eq!(plan.experiments[0].variants.len(), 2);
}

#[test]
fn a_key_without_a_value_is_missing() {
    let target = LEAST.replace("target: {command: ./relay --in 127.0.0.1:9100}", "target:");
    let least = "variants: {baseline: {}, comparison: {arguments: [--slow]}}";
    let variants = LEAST.replace(least, "variants:");
    for (text, message) in [
        (&target, "an experiment needs a `target`"),
        (&variants, "an experiment needs `variants`"),
    ] {
        let error = experiment(text).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    let typed = SuiteOverrides {
        comparison: Some("args:--slow".parse().unwrap()),
        ..SuiteOverrides::default()
    };
    let plan = experiment_with(&variants, &typed).unwrap().plan;
    assert_eq!(plan.experiments[0].variants.len(), 2);
    let several = format!("{LEAST}targets:\n");
    let files = InMemory::with([("/suite/one/experiment.yaml", several.as_str())]);
    assert!(!Loader::new(&files, &[]).has_targets(&["/suite/one".into()], &[]));
    assert!(experiment(&several).is_ok());
}

#[test]
fn a_native_file_is_an_experiment_if_it_compares_something() {
    let none = SuiteOverrides::default();
    let named = SuiteOverrides {
        baseline: Some("args:--slow".parse().unwrap()),
        ..SuiteOverrides::default()
    };
    for (text, overrides, is_experiment) in [
        (LEAST, &none, true),
        ("targets: {a: {command: a}}\n", &none, true),
        ("variants: 3\n", &none, true),
        ("workload: {}\n", &none, false),
        ("variants:\ntargets:\n", &none, false),
        ("workload: {}\n", &named, true),
    ] {
        let files = InMemory::with([("/suite/any.yaml", text)]);
        let loader = Loader::new(&files, &[]);
        let path = Path::new("/suite/any.yaml");
        assert_eq!(
            loader.is_experiment(path, overrides),
            is_experiment,
            "{text}"
        );
    }
}

#[test]
fn wrong_flags_are_errors() {
    for (overrides, expected) in [
        (
            SuiteOverrides {
                goal: Some("speed".to_owned()),
                ..SuiteOverrides::default()
            },
            "unknown goal",
        ),
        (
            SuiteOverrides {
                rate: Some("5".to_owned()),
                ..SuiteOverrides::default()
            },
            "`5/s`",
        ),
        (
            SuiteOverrides {
                rate: Some("probe:2".to_owned()),
                ..SuiteOverrides::default()
            },
            "probe:60%",
        ),
        (
            SuiteOverrides {
                stopping: Some(StoppingOverride::FixedPairs(0)),
                ..SuiteOverrides::default()
            },
            "nothing would be compared",
        ),
        (
            SuiteOverrides {
                measure: Some(Nanos::ZERO),
                ..SuiteOverrides::default()
            },
            "nothing would",
        ),
        (
            SuiteOverrides {
                baseline: Some("git:a".parse().unwrap()),
                ..SuiteOverrides::default()
            },
            "build command",
        ),
    ] {
        let diagnostics = experiment_with(LEAST, &overrides).unwrap_err().to_string();
        assert!(diagnostics.contains(expected), "{diagnostics}");
    }
}
