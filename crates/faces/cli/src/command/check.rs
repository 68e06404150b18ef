//! `stillwell check`.

use std::path::{Path, PathBuf};

use stillwell_config::rules::check_designs;
use stillwell_config::{Diagnostics, Loaded, RunOverrides, SuiteOverrides, TargetsOverrides};
use stillwell_plan::{RunPlan, SuitePlan, TargetsPlan};

use crate::arguments::{CheckArguments, SelectArguments};
use crate::command::run::targets;
use crate::command::{counters, programs, select};
use crate::exit::{CommandError, Exit};
use crate::formats::loader;
use crate::paint::Paint;

pub(super) mod describe;

const EXPERIMENT: &str = "experiment.yaml";

pub(crate) fn run(arguments: &CheckArguments, paint: &Paint) -> Result<Exit, CommandError> {
    let overrides = PlanOverrides::of(arguments)?;
    let loaded = LoadedPlans::read(&arguments.paths, &overrides);
    let loaded = loaded.map_err(|diagnostics| select::refused(&diagnostics, paint))?;
    select::warn(loaded.warnings(), paint);
    for line in loaded.missing() {
        Paint::print_message(&format!("warning: {line}"));
    }
    let text = match arguments.plan {
        true => loaded.json()?,
        false => loaded.describe(),
    };
    Paint::data(&text).map_err(|error| CommandError::new(Exit::CouldNotRun, error))?;
    Ok(Exit::Held)
}

/// Returns true for a file of one run: that of another tool, or a native one without variants and `targets`.
fn is_single_run(path: &Path, overrides: &SuiteOverrides) -> bool {
    let is_named_file = path.file_name().is_some_and(|name| name != EXPERIMENT);
    let is_file = is_named_file && path.exists() && !path.is_dir();
    is_file && !loader().is_experiment(path, overrides)
}

/// Returns a description of what `paths` would run, and the warnings.
pub(crate) fn examine(paths: &[PathBuf]) -> Result<(String, Diagnostics), Diagnostics> {
    let loaded = LoadedPlans::read(paths, &PlanOverrides::default())?;
    Ok((loaded.describe(), loaded.warnings().clone()))
}

/// Flags that change a single run.
const RUN_FLAGS: [&str; 3] = ["--measure", "--seed", "--warmup"];

/// Overrides from flags, for each kind of configuration file.
#[derive(Debug, Default)]
struct PlanOverrides {
    run: RunOverrides,
    targets: TargetsOverrides,
    suite: SuiteOverrides,
}

impl PlanOverrides {
    /// Returns the overrides for the kind of the files; a flag without effect on that kind is an error.
    fn of(arguments: &CheckArguments) -> Result<Self, CommandError> {
        let select = &arguments.select;
        let mut overrides = Self {
            suite: select::overrides(select),
            ..Self::default()
        };
        match arguments.paths.as_slice() {
            [file] if is_single_run(file, &overrides.suite) => {
                overrides.run = run_overrides(select, file)?;
            }
            paths if loader().has_targets(paths, &overrides.suite.only) => {
                overrides.targets = targets::overrides(select, &[], None)?;
            }
            _ => {}
        }
        Ok(overrides)
    }
}

/// Overrides of the single run in `file`.
fn run_overrides(select: &SelectArguments, file: &Path) -> Result<RunOverrides, CommandError> {
    let mut given = select::given_flags(select).into_iter();
    if let Some(flag) = given.find(|flag| !RUN_FLAGS.contains(flag)) {
        let file = file.display();
        let error = anyhow::anyhow!("`{flag}` is for experiments, and {file} is a single run");
        return Err(CommandError::new(Exit::Usage, error).hint(format!(
            "leave it out; an experiment has `variants` or `targets`, or its file is named `{EXPERIMENT}`"
        )));
    }
    let course = &select.changes.course;
    Ok(RunOverrides {
        warmup: course.warmup,
        measure: course.measure,
        seed: select.changes.seed,
        ..RunOverrides::default()
    })
}

/// Plans of configuration files, by their kind.
enum LoadedPlans {
    Run(PathBuf, Box<Loaded<RunPlan>>),
    Targets(Loaded<Vec<TargetsPlan>>),
    Suite(Loaded<SuitePlan>),
}

impl LoadedPlans {
    fn read(paths: &[PathBuf], overrides: &PlanOverrides) -> Result<Self, Diagnostics> {
        Ok(match paths {
            [file] if is_single_run(file, &overrides.suite) => {
                let loaded = loader().run_plan(file, &overrides.run)?;
                Self::Run(file.clone(), Box::new(loaded))
            }
            paths if loader().has_targets(paths, &overrides.suite.only) => {
                Self::Targets(loader().targets(paths, &overrides.targets)?)
            }
            paths => Self::Suite(load_suite(paths, &overrides.suite)?),
        })
    }

    const fn warnings(&self) -> &Diagnostics {
        match self {
            Self::Run(_, loaded) => &loaded.warnings,
            Self::Targets(loaded) => &loaded.warnings,
            Self::Suite(loaded) => &loaded.warnings,
        }
    }

    /// Sentences about what this machine lacks.
    fn missing(&self) -> Vec<String> {
        match self {
            Self::Run(_, loaded) => counters::of_run(&loaded.plan).into_iter().collect(),
            Self::Targets(_) => Vec::new(),
            Self::Suite(loaded) => {
                let mut lines = programs::missing(&loaded.plan);
                lines.extend(programs::missing_files(&loaded.plan));
                lines.extend(counters::of_suite(&loaded.plan));
                lines
            }
        }
    }

    fn json(&self) -> Result<String, CommandError> {
        match self {
            Self::Run(_, loaded) => json(&loaded.plan),
            Self::Targets(loaded) => json(&loaded.plan),
            Self::Suite(loaded) => json(&loaded.plan),
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Run(file, loaded) => {
                let mut text = format!("{}: no errors, one run\n", file.display());
                describe::run_plan(&loaded.plan, &mut text);
                text
            }
            Self::Targets(loaded) => describe::targets(&loaded.plan),
            Self::Suite(loaded) => describe::suite(&loaded.plan),
        }
    }
}

/// Loads experiments, each of which can run with its design.
fn load_suite(
    paths: &[PathBuf],
    overrides: &SuiteOverrides,
) -> Result<Loaded<SuitePlan>, Diagnostics> {
    let mut loaded = loader().suite(paths, overrides)?;
    loaded.warnings.append(check_designs(&loaded.plan));
    Loaded::checked(Some(loaded.plan), loaded.format, loaded.warnings)
}

fn json(plan: &impl serde::Serialize) -> Result<String, CommandError> {
    serde_json::to_string_pretty(plan)
        .map(|text| text + "\n")
        .map_err(|error| CommandError::new(Exit::CouldNotRun, error))
}

#[cfg(test)]
mod tests {
    use stillwell_units::Nanos;

    use super::*;

    fn checked(file: &Path, change: impl Fn(&mut SelectArguments)) -> CheckArguments {
        let mut select = SelectArguments::default();
        change(&mut select);
        CheckArguments {
            paths: vec![file.to_path_buf()],
            select,
            plan: false,
        }
    }

    #[test]
    fn flags_change_a_single_run_or_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("run.yaml");
        std::fs::write(&file, "workload: {}\n").unwrap();
        let measured = checked(&file, |select| {
            select.changes.course.measure = Some(Nanos::SECOND);
        });
        let overrides = PlanOverrides::of(&measured).unwrap();
        assert_eq!(overrides.run.measure, Some(Nanos::SECOND));
        let rated = checked(&file, |select| {
            select.changes.rate = Some("1/s".to_owned());
        });
        let refused = PlanOverrides::of(&rated).unwrap_err();
        assert_eq!(refused.exit, Exit::Usage);
        let message = refused.to_string();
        assert!(
            message.starts_with("`--rate` is for experiments"),
            "{message}"
        );
    }

    #[test]
    fn flags_change_an_experiment_with_several_targets_or_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(EXPERIMENT);
        std::fs::write(&file, "targets: {a: {command: [a]}}\n").unwrap();
        let rated = checked(&file, |select| {
            select.changes.rate = Some("1/s".to_owned());
        });
        let overrides = PlanOverrides::of(&rated).unwrap();
        assert_eq!(overrides.targets.rate.as_deref(), Some("1/s"));
        let paired = checked(&file, |select| {
            select.changes.course.fixed_pairs = Some(4);
        });
        let refused = PlanOverrides::of(&paired).unwrap_err();
        assert_eq!(refused.exit, Exit::Usage);
        let message = refused.to_string();
        assert!(
            message.starts_with("`--pairs` is for variants"),
            "{message}"
        );
    }

    const WORKLOAD: &str = "workload: {generators: [{tcp: '127.0.0.1:9100', payload: ascii}]}\n";
    const VARIANTS: &str = "variants: {a: {}, b: {arguments: [x]}}\n";
    const TARGET: &str = "target: {command: [a]}\n";

    /// Reads `text` as a file with an unusual name.
    fn read(text: &str, baseline: Option<&str>) -> Result<LoadedPlans, Diagnostics> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("any.yaml");
        std::fs::write(&file, text).unwrap();
        let arguments = checked(&file, |select| {
            select.baseline = baseline.map(|text| text.parse().unwrap());
        });
        let overrides = PlanOverrides::of(&arguments).unwrap();
        LoadedPlans::read(&arguments.paths, &overrides)
    }

    #[test]
    fn the_content_of_a_native_file_decides_if_it_is_an_experiment() {
        let lading = "generator: []\nblackhole: [{tcp: {binding_addr: '127.0.0.1:1'}}]\n";
        for (text, baseline, kind) in [
            (format!("{TARGET}{WORKLOAD}"), None, "run"),
            (format!("{TARGET}{WORKLOAD}"), Some("args:x"), "experiment"),
            (format!("{TARGET}{VARIANTS}{WORKLOAD}"), None, "experiment"),
            (
                format!("targets: {{a: {{command: [a]}}}}\n{WORKLOAD}"),
                None,
                "targets",
            ),
            (lading.to_owned(), None, "run"),
        ] {
            let read = match read(&text, baseline) {
                Ok(LoadedPlans::Run(..)) => "run",
                Ok(LoadedPlans::Targets(_)) => "targets",
                Ok(LoadedPlans::Suite(_)) => "experiment",
                Err(diagnostics) => panic!("{text}: {diagnostics}"),
            };
            assert_eq!(read, kind, "{text}");
        }
    }

    #[test]
    fn the_selected_experiments_decide_their_kind() {
        let suite = tempfile::tempdir().unwrap();
        let targets = "targets: {a: {command: [a]}}\n";
        for (name, text) in [
            ("a", format!("{targets}{WORKLOAD}")),
            ("b", format!("{TARGET}{VARIANTS}{WORKLOAD}")),
        ] {
            let folder = suite.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join(EXPERIMENT), text).unwrap();
        }
        let read = |only: &str| {
            let arguments = checked(suite.path(), |select| {
                select.changes.only = vec![only.to_owned()];
            });
            let overrides = PlanOverrides::of(&arguments).unwrap();
            LoadedPlans::read(&arguments.paths, &overrides)
        };
        assert!(matches!(read("a"), Ok(LoadedPlans::Targets(_))));
        assert!(matches!(read("b"), Ok(LoadedPlans::Suite(_))));
        let error = read("*").err().unwrap().to_string();
        assert!(error.contains("by separate commands"), "{error}");
    }

    #[test]
    fn a_design_that_no_run_can_have_is_an_error() {
        let two = format!("{TARGET}{VARIANTS}{WORKLOAD}design: duet\n");
        assert!(read(&two, None).is_ok());
        let three = two.replace("{a: {}", "{c: {arguments: [y]}, a: {}");
        let error = read(&three, None).err().unwrap().to_string();
        assert!(error.contains("needs two variants"), "{error}");
    }
}
