//! Layouts of folders that others have.

use std::path::{Path, PathBuf};

use stillwell_config::{ProgramOverride, RunOverrides, SuiteOverrides, TargetOverride};
use stillwell_plan::TargetKind;
use stillwell_plan::placement::CpuChoice;
use stillwell_plan::target::{ChildPlan, MountPlan};

use super::{InMemory, load_run_from, load_suite_from};

const SEED: &str = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31]";

/// The shape of 2021: maps.
fn load(generator: &str) -> String {
    format!("generator:\n  {generator}\nblackhole:\n  http: {{binding_addr: 127.0.0.1:8080}}\n")
}

fn http() -> String {
    load(&format!(
        "http: {{seed: {SEED}, headers: {{}}, target_uri: 'http://localhost:8282/', \
         bytes_per_second: 8 MB, parallel_connections: 1, method: {{post: {{variant: static, \
         static_path: /data/big.log, maximum_prebuild_cache_size_bytes: 8 MB}}}}}}"
    ))
    .replace(
        "variant: static, static_path",
        "variant: {static: {static_path",
    )
    .replace("big.log,", "big.log}},")
}

fn logs() -> String {
    load(&format!(
        "file_gen: {{logrotate_fs: {{seed: {SEED}, load_profile: {{constant: 1 MiB}}, concurrent_logs: 1, \
         maximum_bytes_per_log: 1 MiB, total_rotations: 1, max_depth: 0, variant: ascii, \
         maximum_prebuild_cache_size_bytes: 1 MiB, mount_point: /smp-shared}}}}"
    ))
}

fn files(list: &[(&str, &str)]) -> InMemory {
    let files = list
        .iter()
        .map(|(path, text)| (path.into(), (*text).to_owned()));
    InMemory(files.collect())
}

fn with_program() -> SuiteOverrides {
    SuiteOverrides {
        target_command: Some("vector --quiet".parse().unwrap()),
        ..SuiteOverrides::default()
    }
}

/// The child of the only experiment in `path`.
fn child(files: &InMemory, path: &str, overrides: &SuiteOverrides) -> ChildPlan {
    let loaded = load_suite_from(files, &[path.into()], overrides);
    let loaded = loaded.unwrap_or_else(|result| panic!("{result}"));
    let [experiment] = loaded.plan.experiments.as_slice() else {
        panic!("{:?}", loaded.plan.experiments);
    };
    match &experiment.run_plan.target.kind {
        TargetKind::Child(child) => child.clone(),
        other => panic!("{other:?}"),
    }
}

fn shown(mounts: &[MountPlan]) -> Vec<(String, String, bool)> {
    let text = |path: &PathBuf| path.to_string_lossy().into_owned();
    let single = |mount: &MountPlan| (text(&mount.source), text(&mount.at), mount.writable);
    mounts.iter().map(single).collect()
}

fn owned(expected: &[(&str, &str, bool)]) -> Vec<(String, String, bool)> {
    let single = |(source, at, writable): &(&str, &str, bool)| {
        ((*source).to_owned(), (*at).to_owned(), *writable)
    };
    expected.iter().map(single).collect()
}

#[test]
fn vectors_soaks_of_2021_are_cases_once_a_program_is_named() {
    let http = http();
    let files = files(&[
        ("/soaks/tests/one/lading.yaml", &http),
        ("/soaks/tests/one/vector.toml", ""),
        ("/soaks/tests/one/data/big.log", "a\nb\n"),
        ("/soaks/tests/one/README.md", "# One\n\nWhat it is for.\n"),
        ("/soaks/bin/soak.sh", ""),
    ]);
    let child = child(&files, "/soaks", &with_program());
    assert_eq!(
        (child.program.as_path(), child.arguments.as_slice()),
        (Path::new("vector"), &["--quiet".to_owned()][..])
    );
    let expected = owned(&[
        ("/soaks/tests/one/data", "/data", false),
        (
            "/soaks/tests/one/vector.toml",
            "/etc/vector/vector.toml",
            false,
        ),
        (
            "/soaks/tests/one/lading.yaml",
            "/etc/lading/lading.yaml",
            false,
        ),
        ("{state}/var-lib", "/var/lib/vector", true),
    ]);
    assert_eq!(shown(&child.mounts), expected);
    let result = load_suite_from(&files, &["/soaks".into()], &SuiteOverrides::default());
    let message = result.unwrap_err().to_string();
    assert!(message.contains("--target-command"), "{message}");
}

#[test]
fn vectors_soaks_of_2022_have_folders_and_no_experiment() {
    let http = http();
    let files = files(&[
        ("/soaks/tests/one/lading/lading.yaml", &http),
        ("/soaks/tests/one/vector/vector.toml", ""),
        ("/soaks/tests/one/data/big.log", "a\nb\n"),
    ]);
    let child = child(&files, "/soaks/tests", &with_program());
    let expected = owned(&[
        ("/soaks/tests/one/vector", "/etc/vector", false),
        ("/soaks/tests/one/lading", "/etc/lading", false),
        ("/soaks/tests/one/data", "/data", false),
        ("{state}/var-lib", "/var/lib/vector", true),
    ]);
    assert_eq!(shown(&child.mounts), expected);
}

#[test]
fn the_chosen_configuration_of_several_is_reported() {
    let http = http();
    let files = files(&[
        ("/tests/one/lading.yaml", &http),
        ("/tests/one/vector.toml", ""),
        ("/tests/one/agent.yaml", ""),
        ("/tests/one/data/big.log", "a\n"),
    ]);
    let loaded = load_suite_from(&files, &["/tests".into()], &with_program()).unwrap();
    let message = loaded.warnings.to_string();
    assert!(message.contains("`agent`, `vector`"), "{message}");
    assert!(message.contains("`agent` is used"), "{message}");
}

#[test]
fn logs_that_both_see_lie_where_the_run_keeps_its_own() {
    let logs = logs();
    let files = files(&[
        (
            "/cases/one/experiment.yaml",
            "target: {name: vector, command: vector}\n",
        ),
        ("/cases/one/lading/lading.yaml", &logs),
    ]);
    let child = child(&files, "/cases", &SuiteOverrides::default());
    let shared = shown(&child.mounts).pop();
    let expected = owned(&[("{state}/smp-shared", "/smp-shared", true)]);
    assert_eq!(shared, expected.first().cloned());
}

/// It was shown nothing of the case.
#[test]
fn a_program_of_the_command_line_is_shown_what_the_case_has() {
    let http = http();
    let files = files(&[
        (
            "/cases/one/experiment.yaml",
            "target: {name: vector, environment: {A: 1}, cpu_allotment: 2}\n",
        ),
        ("/cases/one/lading/lading.yaml", &http),
        ("/cases/one/data/big.log", "a\n"),
        ("/cases/one/vector/vector.yaml", ""),
    ]);
    let overrides = RunOverrides {
        target: TargetOverride::Path(ProgramOverride {
            program: "/opt/vector".into(),
            environment: [("B".to_owned(), "2".to_owned())].into(),
            ..ProgramOverride::default()
        }),
        ..RunOverrides::default()
    };
    let loaded = load_run_from(&files, Path::new("/cases/one"), &overrides).unwrap();
    let subject = loaded.plan.target;
    assert_eq!(subject.name, "vector");
    assert_eq!(subject.cpus, stillwell_plan::placement::CpuChoice::Count(2));
    let TargetKind::Child(child) = subject.kind else {
        panic!("a program");
    };
    assert_eq!(child.program, Path::new("/opt/vector"));
    assert_eq!(child.environment.variables.len(), 2);
    assert_eq!(shown(&child.mounts)[0].1, "/etc/vector");
}

// compat: SMP and soaks | config.yaml of a suite | works
// compat: SMP and soaks | environment and profiling_environment at the top | works
#[test]
fn the_settings_of_a_suite_complete_its_cases() {
    let files = files(&[
        (
            "/suite/config.yaml",
            "lading: {version: 0.33.0}\ntarget: {cpu_allotment: 2, environment: {A: suite, B: suite}}\n\
             report: {metrics_dashboard: 'https://example.com/{{ experiment }}', profiles: }\n",
        ),
        (
            "/suite/cases/one/experiment.yaml",
            "optimization_goal: cpu\nenvironment: {A: early}\nprofiling_environment: {C: x}\n\
             target: {name: vector, command: vector, environment: {D: case}}\n\
             checks: [{name: open, bounds: {series: connection.current, upper_bound: 5}},\n\
             {name: cpu, bounds: {series: total_cpu_usage_millicores, upper_bound: 5}},\n\
             {name: lost, bounds: {series: target_lost, upper_bound: 5}}]\n",
        ),
        ("/suite/cases/one/lading/lading.yaml", &http()),
        ("/suite/cases/one/data/big.log", "a line\n"),
    ]);
    let loaded = load_suite_from(&files, &["/suite/cases".into()], &SuiteOverrides::default());
    let loaded = loaded.unwrap_or_else(|result| panic!("{result}"));
    let experiment = &loaded.plan.experiments[0];
    let TargetKind::Child(child) = &experiment.run_plan.target.kind else {
        panic!("{:?}", experiment.run_plan.target.kind);
    };
    let variables = &child.environment.variables;
    let value = |name: &str| variables.get(name).map(String::as_str);
    assert_eq!(
        ["A", "B", "C", "D"].map(value),
        [Some("early"), Some("suite"), None, Some("case")]
    );
    assert_eq!(experiment.run_plan.target.cpus, CpuChoice::Count(2));
    assert_eq!(
        experiment.report_links[0].link,
        "https://example.com/{{ experiment }}"
    );
    let checks = &experiment.run_plan.checks;
    assert_eq!(checks[0].series.metric, "connections_open");
    assert!(experiment.run_plan.observer.kernel.processes);
    let warnings = loaded.warnings.to_string();
    assert!(
        warnings.contains("check `lost` of one cannot be measured"),
        "{warnings}"
    );
    assert!(!warnings.contains("check `open`"), "{warnings}");
    // A single run of the case records the same, and warns too.
    let case = Path::new("/suite/cases/one");
    let loaded = load_run_from(&files, case, &RunOverrides::default());
    let loaded = loaded.unwrap_or_else(|result| panic!("{result}"));
    assert!(loaded.plan.observer.kernel.processes);
    let warnings = loaded.warnings.to_string();
    assert!(
        warnings.contains("check `lost` cannot be measured"),
        "{warnings}"
    );
}
