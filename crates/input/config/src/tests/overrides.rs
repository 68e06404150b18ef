//! Flags over files: what they change, and where they would have no effect.

use std::path::Path;

use stillwell_plan::experiment::BinarySource;
use stillwell_plan::{ExperimentPlan, RateShape, RateUnit};

use super::golden::LEAST;
use super::{InMemory, experiment_with, load_suite_from};
use crate::{ProgramOverride, RunOverrides, SuiteOverrides, TargetOverride, VariantArgument};

/// The least with a revision as its comparison.
fn with_revision() -> String {
    LEAST.replace(
        "{arguments: [--slow]}",
        "{git: {revision: main, build: ninja, output: out/y}}",
    )
}

/// A target that is a URL.
const AT_URL: &str = "\
target: {url: 'http://127.0.0.1:1/'}
variants: {baseline: {}, comparison: {url: 'http://127.0.0.1:2/'}}
workload: {generators: [{requests: {}, rate: 10/s}]}
goals: [latency_p50]
";

fn read(text: &str, overrides: &SuiteOverrides) -> Result<ExperimentPlan, String> {
    let loaded = experiment_with(text, overrides);
    let loaded = loaded.map_err(|diagnostics| diagnostics.to_string())?;
    Ok(loaded.plan.experiments.into_iter().next().unwrap())
}

fn variant(text: &str) -> Option<VariantArgument> {
    Some(text.parse().unwrap())
}

#[test]
fn flags_about_builds_change_the_revisions_of_the_file() {
    let none = SuiteOverrides::default;
    for (overrides, repository, build, output) in [
        (none(), "/suite/one", "ninja", "out/y"),
        (
            SuiteOverrides {
                repository: Some("/src".into()),
                ..none()
            },
            "/src",
            "ninja",
            "out/y",
        ),
        (
            SuiteOverrides {
                build: Some("make".to_owned()),
                ..none()
            },
            "/suite/one",
            "make",
            "out/y",
        ),
        (
            SuiteOverrides {
                build_output: Some("out/x".into()),
                ..none()
            },
            "/suite/one",
            "ninja",
            "out/x",
        ),
    ] {
        let plan = read(&with_revision(), &overrides).unwrap();
        let BinarySource::Git(source) = &plan.variants[1].binary else {
            panic!("built from a revision");
        };
        assert_eq!(source.revision, "main");
        assert_eq!(source.repository, Path::new(repository));
        assert_eq!(source.build, build);
        assert_eq!(source.output, Path::new(output));
    }
}

#[test]
fn flags_about_builds_need_a_revision() {
    let none = SuiteOverrides::default;
    for (flag, overrides) in [
        (
            "--repo",
            SuiteOverrides {
                repository: Some("/src".into()),
                ..none()
            },
        ),
        (
            "--build",
            SuiteOverrides {
                build: Some("make".to_owned()),
                ..none()
            },
        ),
        (
            "--build-output",
            SuiteOverrides {
                build_output: Some("out/x".into()),
                ..none()
            },
        ),
    ] {
        let error = read(LEAST, &overrides).unwrap_err();
        let message = format!("`{flag}` has no effect: no variant comes from a revision");
        assert!(error.contains(&message), "{error}");
        // It may be for an experiment that is left out.
        let selected = SuiteOverrides {
            only: vec!["one".to_owned()],
            ..overrides
        };
        let loaded = experiment_with(LEAST, &selected).unwrap();
        let warnings = loaded.warnings.to_string();
        assert!(warnings.contains(&message), "{warnings}");
    }
}

#[test]
fn a_command_for_all_variants_has_an_effect_on_one_at_least() {
    let with_command = LEAST.replace("{arguments: [--slow]}", "{command: [./other]}");
    let all_with_command = with_command.replace("baseline: {}", "baseline: {command: [./old]}");
    let (with_command, all_with_command) = (with_command.as_str(), all_with_command.as_str());
    let command = SuiteOverrides {
        target_command: Some("./new --flag".parse().unwrap()),
        ..SuiteOverrides::default()
    };
    let typed = SuiteOverrides {
        comparison: variant("cmd:./other"),
        ..command.clone()
    };
    let all_typed = SuiteOverrides {
        baseline: variant("cmd:./old"),
        ..typed.clone()
    };
    // Perhaps it is for the experiments that are left out.
    let only = SuiteOverrides {
        only: vec!["two".to_owned()],
        ..command.clone()
    };
    let on_url = "two: `--target-command` has no effect: the target is a URL";
    let on_none = "no effect: each variant has a command of its own";
    let on_baseline = "no effect on variant `baseline`, which has a `command`";
    let on_comparison = "no effect on variant `comparison`, which has a `command`";
    for (texts, overrides, warning, error) in [
        ([LEAST, LEAST], &command, None, None),
        ([LEAST, LEAST], &typed, None, None),
        ([with_command, LEAST], &typed, None, None),
        ([with_command, LEAST], &command, Some(on_comparison), None),
        ([AT_URL, LEAST], &command, Some(on_url), None),
        (
            [all_with_command, AT_URL],
            &command,
            None,
            Some(on_baseline),
        ),
        ([AT_URL, AT_URL], &command, None, Some(on_url)),
        ([AT_URL, AT_URL], &only, Some(on_url), None),
        ([LEAST, LEAST], &all_typed, None, Some(on_none)),
    ] {
        let files = InMemory::with([
            ("/suite/two/experiment.yaml", texts[0]),
            ("/suite/three/experiment.yaml", texts[1]),
        ]);
        let loaded = load_suite_from(&files, &["/suite".into()], overrides);
        match (loaded, error) {
            (Ok(loaded), None) => {
                let warnings = loaded.warnings.to_string();
                let has_effect = !warnings.contains("no effect");
                assert_eq!(has_effect, warning.is_none(), "{texts:?}: {warnings}");
                assert!(warnings.contains(warning.unwrap_or_default()), "{warnings}");
            }
            (Err(errors), Some(expected)) => {
                let errors = errors.to_string();
                assert!(errors.contains(expected), "{expected}: {errors}");
            }
            (result, expected) => panic!("{texts:?}: {expected:?} {result:?}"),
        }
    }
}

/// A generator of each kind whose rate has a rule.
const FILE_TREE: &str = "{file_tree: {root: /tmp/tree}, rate: 5/s}";
const MOUNTED: &str =
    "{file_gen: {mount: /srv/logs, file_max: 2 MiB}, payload: ascii, rate: 1 MiB/s}";
const REQUESTS: &str = "{requests: {url: 'http://127.0.0.1:1/'}, rate: 5/s}";
const USERS: &str =
    "{scenario: {url: 'http://127.0.0.1:1/', users: 2, steps: [{name: a, path: /}]}}";
const ARRIVALS: &str =
    "{scenario: {url: 'http://127.0.0.1:1/', arrivals: 5/s, steps: [{name: a, path: /}]}}";

fn rated(generator: &str, rate: &str) -> Result<ExperimentPlan, String> {
    let text = format!(
        "target: {{command: ./x}}\nvariants: {{baseline: {{}}, comparison: {{arguments: [a]}}}}\n\
         workload:\n  generators:\n    - {generator}\n"
    );
    let overrides = SuiteOverrides {
        rate: Some(rate.to_owned()),
        ..SuiteOverrides::default()
    };
    read(&text, &overrides)
}

#[test]
fn a_rate_of_the_command_line_keeps_the_rules_of_rates_in_files() {
    let paced = "there is no payload whose bytes could be counted";
    let mounted = "which needs a rate";
    let arrivals = "users arrive at a rate";
    for (generator, rate, expected) in [
        (FILE_TREE, "9/s", None),
        (FILE_TREE, "max", None),
        (FILE_TREE, "1 MiB/s", Some(paced)),
        (REQUESTS, "1 MiB/s", Some(paced)),
        (MOUNTED, "2 MiB/s", None),
        (MOUNTED, "max", Some(mounted)),
        (MOUNTED, "probe", Some(mounted)),
        (USERS, "9/s", None),
        (USERS, "1 MiB/s", Some(paced)),
        (ARRIVALS, "9/s", None),
        (ARRIVALS, "1 MiB/s", Some(paced)),
        (ARRIVALS, "max", Some(arrivals)),
        (ARRIVALS, "probe:50%", Some(arrivals)),
    ] {
        match (rated(generator, rate), expected) {
            (Ok(_), None) => {}
            (Err(error), Some(expected)) => {
                assert!(error.contains(expected), "{error}");
                assert!(error.contains(&format!("`--rate {rate}`")), "{error}");
            }
            (result, expected) => panic!("{generator} {rate}: {expected:?} {result:?}"),
        }
    }
}

#[test]
fn an_operating_point_of_max_keeps_the_rules_of_rates_of_max() {
    for (generator, expected) in [
        (FILE_TREE, None),
        (REQUESTS, None),
        (USERS, None),
        (MOUNTED, Some("which needs a rate")),
        (ARRIVALS, Some("users arrive at a rate")),
    ] {
        let text = format!(
            "target: {{command: ./x}}\nvariants: {{baseline: {{}}, comparison: {{arguments: [a]}}}}\n\
             workload: {{generators: [{generator}]}}\noperating_point: max\n"
        );
        match (read(&text, &SuiteOverrides::default()), expected) {
            (Ok(_), None) => {}
            (Err(error), Some(expected)) => {
                assert!(error.contains(expected), "{error}");
                assert!(error.contains("the operating point is `max`"), "{error}");
                assert!(!error.contains("are ignored"), "{error}");
            }
            (result, expected) => panic!("{generator}: {expected:?} {result:?}"),
        }
    }
}

#[test]
fn a_rate_of_the_command_line_replaces_that_of_arrivals() {
    let plan = rated(ARRIVALS, "9/s").unwrap();
    let by_flag = &plan.run_plan.generators[0].rate;
    let in_file = ARRIVALS.replace("5/s", "9/s");
    let text = format!("workload: {{generators: [{in_file}]}}\n");
    let loaded = super::run_plan(&text).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(*by_flag, loaded.plan.generators[0].rate);
}

#[test]
fn the_unit_of_max_is_the_same_in_files_and_flags() {
    for generator in [REQUESTS, USERS, FILE_TREE] {
        let plan = rated(generator, "max").unwrap();
        let by_flag = &plan.run_plan.generators[0].rate;
        assert_eq!(by_flag.shape, RateShape::Max);
        let in_file = generator.replace("rate: 5/s", "rate: max");
        let text = format!("workload: {{generators: [{in_file}]}}\n");
        let loaded = super::run_plan(&text).unwrap_or_else(|errors| panic!("{errors}"));
        assert_eq!(*by_flag, loaded.plan.generators[0].rate, "{generator}");
    }
    let plan = rated(REQUESTS, "max").unwrap();
    assert_eq!(plan.run_plan.generators[0].rate.unit, RateUnit::Events);
}

/// Transports of payloads, each without a `block` and with two.
fn payload_generators() -> impl Iterator<Item = (&'static str, &'static str)> {
    let transports = [
        "tcp: '127.0.0.1:9100'",
        "udp: '127.0.0.1:9100'",
        "http: 'http://127.0.0.1:9100/'",
        "kafka: {address: '127.0.0.1:9092', topic: a}",
    ];
    let blocks = ["", ", block: 4 KiB", ", block: {events: 3}"];
    transports
        .into_iter()
        .flat_map(move |transport| blocks.map(|block| (transport, block)))
}

#[test]
fn a_generator_at_a_rate_is_the_same_for_all_rates_of_files_and_flags() {
    let rates = ["5/s", "200k/s", "1 MiB/s", "max"];
    for (transport, block) in payload_generators() {
        let with = |rate: &str| format!("{{{transport}, payload: ascii{block}, rate: {rate}}}");
        for (stated, typed) in rates.iter().flat_map(|a| rates.map(|b| (a, b))) {
            let by_flag = rated(&with(stated), typed).unwrap();
            let text = format!("workload: {{generators: [{}]}}\n", with(typed));
            let in_file = super::run_plan(&text).unwrap_or_else(|errors| panic!("{errors}"));
            assert_eq!(
                by_flag.run_plan.generators, in_file.plan.generators,
                "{transport}{block} {stated} {typed}"
            );
        }
    }
}

#[test]
fn generators_at_full_speed_have_the_same_blocks_for_all_stated_rates() {
    let none = SuiteOverrides::default();
    let probe = SuiteOverrides {
        rate: Some("probe".to_owned()),
        ..none.clone()
    };
    for (transport, block) in payload_generators() {
        let payload = |rate: &str, point: &str, overrides: &SuiteOverrides| {
            let text = format!(
                "target: {{command: ./x}}\nvariants: {{baseline: {{}}, comparison: {{arguments: [a]}}}}\n\
                 workload: {{generators: [{{{transport}, payload: ascii{block}{rate}}}]}}\n{point}"
            );
            let mut plan = read(&text, overrides).unwrap();
            plan.run_plan.generators.remove(0).payload
        };
        let expected = payload(", rate: max", "", &none);
        let max = payload(", rate: 5/s", "operating_point: max\n", &none);
        assert_eq!(max, expected, "{transport}{block}");
        let probed = payload(", rate: 5/s", "", &probe);
        assert_eq!(probed, payload("", "", &none), "{transport}{block}");
    }
}

#[test]
fn a_stated_max_is_kept_in_a_probe_unless_all_generators_state_a_rate() {
    let generator =
        |id: &str, rate: &str| format!("{{id: {id}, tcp: '127.0.0.1:9100', payload: ascii{rate}}}");
    let (free, max) = (generator("free", ""), generator("max", ", rate: max"));
    let steady = generator("steady", ", rate: 5/s");
    let users = USERS.to_owned();
    for (generators, point, typed, expected) in [
        ([&free, &max], "", None, vec!["max"]),
        ([&free, &max], "operating_point: probe", None, vec!["max"]),
        ([&free, &users], "", None, vec!["scenario"]),
        ([&free, &steady], "", None, vec![]),
        ([&steady, &max], "operating_point: probe", None, vec![]),
        ([&free, &max], "operating_point: max", None, vec![]),
        ([&free, &max], "", Some("probe"), vec![]),
    ] {
        let text = format!(
            "target: {{command: ./x}}\nvariants: {{baseline: {{}}, comparison: {{arguments: [a]}}}}\n\
             workload:\n  generators:\n    - {}\n    - {}\n{point}\n",
            generators[0], generators[1]
        );
        let overrides = SuiteOverrides {
            rate: typed.map(str::to_owned),
            ..SuiteOverrides::default()
        };
        let plan = read(&text, &overrides).unwrap();
        assert_eq!(plan.stated_max, expected, "{typed:?}\n{text}");
    }
}

#[test]
fn an_observed_run_is_at_full_speed_where_the_operating_point_is_max() {
    let compared =
        "target: {command: ./x}\nvariants: {baseline: {}, comparison: {arguments: [a]}}\n";
    for (transport, block) in payload_generators() {
        let observed = |rate: &str, more: &str| {
            let generator = format!("{{{transport}, payload: ascii{block}, rate: {rate}}}");
            let text = format!("workload: {{generators: [{generator}]}}\n{more}");
            let loaded = super::run_plan(&text).unwrap_or_else(|errors| panic!("{errors}"));
            loaded.plan.generators.into_iter().next().unwrap()
        };
        for more in ["", compared] {
            let expected = observed("max", more);
            let max = observed("5/s", &format!("{more}operating_point: max\n"));
            assert_eq!(max.rate.shape, RateShape::Max, "{transport}{block}");
            assert_eq!(max.payload, expected.payload, "{transport}{block}");
        }
    }
}

#[test]
fn a_variant_of_a_revision_is_observed_only_with_a_target_of_the_command_line() {
    let text = LEAST.replace(
        "baseline: {}",
        "baseline: {git: {revision: main, build: ninja, output: out/y}}",
    );
    let program = ProgramOverride {
        program: "./y".into(),
        ..ProgramOverride::default()
    };
    for (target, is_read) in [
        (TargetOverride::FromFile, false),
        (TargetOverride::Path(program), true),
        (TargetOverride::Pid(7), true),
        (TargetOverride::None, true),
    ] {
        let overrides = RunOverrides {
            target,
            ..RunOverrides::default()
        };
        match (super::run_with(&text, &overrides), is_read) {
            (Ok(_), true) => {}
            (Err(errors), false) => {
                let errors = errors.to_string();
                assert!(errors.contains("must be built first"), "{errors}");
            }
            (result, _) => panic!("{:?}: {result:?}", overrides.target),
        }
    }
}
