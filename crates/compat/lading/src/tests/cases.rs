//! Folders of cases, some of them SMP's, and files of lading's.

use std::path::Path;

use stillwell_config::{ProgramOverride, RunOverrides, SuiteOverrides, TargetOverride};
use stillwell_plan::TargetKind;
use stillwell_plan::experiment::BinarySource;
use stillwell_text::Diagnostics;

use super::{InMemory, load_run_from, load_suite_from};

/// The least that is an experiment.
const LEAST: &str = "\
target: {command: ./relay --in 127.0.0.1:9100}
variants: {baseline: {}, comparison: {arguments: [--slow]}}
workload:
  generators: [{tcp: 127.0.0.1:9100, payload: ascii}]
";

const LADING: &str = "
generator:
  - tcp:
      seed: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31]
      addr: 0.0.0.0:8282
      variant: syslog5424
      bytes_per_second: 62 MB
      maximum_prebuild_cache_size_bytes: 32 MB
blackhole:
  - tcp: {binding_addr: 127.0.0.1:8080}
";

const SMP: &str = "
optimization_goal: egress_throughput
target: {name: vector, command: /usr/bin/vector, cpu_allotment: 6, memory_allotment: 8GiB, environment: {A: 1}}
config_only: {baseline: {B: 1}, comparison: {B: 2}}
";

fn suite_files() -> InMemory {
    InMemory::with([
        ("/lab/readme.md", ""),
        ("/lab/native/experiment.yaml", LEAST),
        ("/lab/native/README.md", "# Native\n\nWhat it measures.\n"),
        ("/lab/cases/smp/experiment.yaml", SMP),
        ("/lab/cases/smp/lading/lading.yaml", LADING),
        ("/lab/cases/smp/vector/vector.yaml", ""),
        ("/lab/cases/smp/data/big.bin", ""),
        ("/lab/target/deep/experiment.yaml", "never: read"),
        ("/lab/.git/experiment.yaml", "never: read"),
    ])
}

fn names(files: &InMemory, paths: &[&str], only: &[&str]) -> Result<Vec<String>, Diagnostics> {
    let paths: Vec<_> = paths.iter().map(Into::into).collect();
    let overrides = SuiteOverrides {
        only: only.iter().map(|name| (*name).to_owned()).collect(),
        ..SuiteOverrides::default()
    };
    let loaded = load_suite_from(files, &paths, &overrides)?;
    let experiments = loaded.plan.experiments.into_iter();
    Ok(experiments.map(|experiment| experiment.name).collect())
}

#[test]
fn experiments_are_found_below_a_suite() {
    let files = suite_files();
    assert_eq!(names(&files, &["/lab"], &[]).unwrap(), ["smp", "native"]);
    assert_eq!(names(&files, &["/lab"], &["nat*"]).unwrap(), ["native"]);
    for path in ["/lab/native", "/lab/native/experiment.yaml"] {
        assert_eq!(names(&files, &[path], &[]).unwrap(), ["native"]);
    }
    let twice = ["/lab/native", "/lab"];
    assert_eq!(names(&files, &twice, &[]).unwrap(), ["native", "smp"]);
}

#[test]
fn paths_that_mean_nothing_are_errors() {
    let files = suite_files();
    insta::assert_snapshot!(names(&files, &["/lab"], &["natve"]).unwrap_err());
    for path in [
        "/gone",
        "/lab/cases/smp/data",
        "/lab/cases/smp/lading/lading.yaml",
    ] {
        assert!(names(&files, &[path], &[]).is_err(), "{path}");
    }
    assert!(names(&files, &[], &[]).is_err());
    let mut files = suite_files();
    files
        .0
        .insert("/two/native/experiment.yaml".into(), LEAST.to_owned());
    let result = names(&files, &["/lab", "/two"], &[]).unwrap_err();
    assert!(
        result
            .to_string()
            .contains("two experiments are called `native`")
    );
}

// compat: SMP and soaks | cases/NAME/experiment.yaml with lading/lading.yaml | works
#[test]
fn an_smp_case_becomes_a_plan() {
    let loaded = load_suite_from(
        &suite_files(),
        &["/lab/cases/smp".into()],
        &SuiteOverrides::default(),
    );
    let loaded = loaded.unwrap_or_else(|result| panic!("{result}"));
    assert_eq!(loaded.format, "smp");
    insta::assert_snapshot!(serde_json::to_string_pretty(&loaded.plan).unwrap());
}

#[test]
fn a_mistake_in_an_smp_target_is_not_reported_as_a_missing_command() {
    for (from, to) in [("name: ", "nam: "), ("command: ", "comand: ")] {
        let mut files = suite_files();
        let text = SMP.replacen(from, to, 1);
        assert_ne!(text, SMP);
        files
            .0
            .insert("/lab/cases/smp/experiment.yaml".into(), text);
        let result = load_suite_from(
            &files,
            &["/lab/cases/smp".into()],
            &SuiteOverrides::default(),
        );
        let result = result.unwrap_err();
        assert!(
            result.iter().any(|single| single.code == "W101"),
            "{result}"
        );
        assert!(
            result.iter().all(|single| single.code != "W210"),
            "{result}"
        );
    }
}

#[test]
fn an_smp_case_without_a_command_needs_one() {
    let mut files = suite_files();
    let text = SMP.replace("command: /usr/bin/vector, ", "");
    files
        .0
        .insert("/lab/cases/smp/experiment.yaml".into(), text);
    let load =
        |overrides: &SuiteOverrides| load_suite_from(&files, &["/lab/cases/smp".into()], overrides);
    let result = load(&SuiteOverrides::default()).unwrap_err();
    insta::assert_snapshot!(result);
    let overrides = SuiteOverrides {
        baseline: Some("bin:/a".parse().unwrap()),
        comparison: Some("cmd:/b --x".parse().unwrap()),
        ..SuiteOverrides::default()
    };
    let plan = load(&overrides).unwrap().plan;
    let variants = &plan.experiments[0].variants;
    assert_eq!(variants[0].binary, BinarySource::Path("/a".into()));
    assert_eq!(variants[1].command.as_ref().unwrap()[1], "--x");
    // What the case itself compares stays.
    assert_eq!(variants[1].environment["B"], "2");
    let run_plan = load_run_from(
        &files,
        Path::new("/lab/cases/smp"),
        &RunOverrides::default(),
    );
    assert!(run_plan.is_err());
}

#[test]
fn a_lading_file_is_a_run() {
    let load = |target| {
        let files = InMemory::with([("/lab/run.yaml", LADING), ("/lab/x.log", "a\n")]);
        let overrides = RunOverrides {
            target,
            ..RunOverrides::default()
        };
        load_run_from(&files, Path::new("/lab/run.yaml"), &overrides)
    };
    let loaded = load(TargetOverride::FromFile).unwrap();
    assert_eq!(loaded.format, "lading");
    assert!(loaded.warnings.to_string().contains("no program is given"));
    let program = ProgramOverride {
        program: "./relay".into(),
        arguments: vec!["--in".to_owned()],
        ..ProgramOverride::default()
    };
    let plan = load(TargetOverride::Path(program)).unwrap().plan;
    assert_eq!(plan.target.name, "relay");
    insta::assert_debug_snapshot!(plan.target.ready, @r#"
    Tcp {
        address: "127.0.0.1:8282",
    }
    "#);
    assert!(matches!(
        load(TargetOverride::Pid(7)).unwrap().plan.target.kind,
        TargetKind::Pid(7)
    ));
    assert!(load(TargetOverride::None).unwrap().warnings.is_empty());
}

#[test]
fn the_run_of_an_experiment_is_its_baseline() {
    let files = suite_files();
    for path in ["/lab/native", "/lab/native/experiment.yaml"] {
        let loaded = load_run_from(&files, Path::new(path), &RunOverrides::default()).unwrap();
        let TargetKind::Child(child) = loaded.plan.target.kind else {
            panic!("a program");
        };
        assert_eq!(child.program, Path::new("/lab/native/relay"));
        assert_eq!(child.arguments, ["--in", "127.0.0.1:9100"]);
    }
    let smp = load_run_from(
        &files,
        Path::new("/lab/cases/smp"),
        &RunOverrides::default(),
    )
    .unwrap();
    let TargetKind::Child(child) = smp.plan.target.kind else {
        panic!("a program");
    };
    assert_eq!(child.environment.variables["B"], "1");
    assert!(load_run_from(&files, Path::new("/lab"), &RunOverrides::default()).is_err());
}

// compat: SMP and soaks | README.md of a case | works
#[test]
fn the_readme_gives_the_summary() {
    let loaded = load_suite_from(
        &suite_files(),
        &["/lab/native".into()],
        &SuiteOverrides::default(),
    );
    let plan = loaded.unwrap().plan;
    assert_eq!(
        plan.experiments[0].summary.as_deref(),
        Some("What it measures.")
    );
}
