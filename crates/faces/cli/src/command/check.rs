//! `stillwell check`.

use std::path::{Path, PathBuf};

use stillwell_config::{Diagnostics, Loaded, RunOverrides, SuiteOverrides, TargetsOverrides};
use stillwell_plan::{RunPlan, SuitePlan, TargetsPlan};

use crate::arguments::CheckArguments;
use crate::command::{counters, programs, select};
use crate::exit::{CommandError, Exit};
use crate::formats::loader;
use crate::paint::Paint;

pub(super) mod describe;

const EXPERIMENT: &str = "experiment.yaml";

pub(crate) fn run(arguments: &CheckArguments, paint: &Paint) -> Result<Exit, CommandError> {
    let overrides = select::overrides(&arguments.select);
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

/// A file that is no experiment is one for `run`.
fn is_single_run(path: &Path) -> bool {
    path.exists() && !path.is_dir() && path.file_name().is_some_and(|name| name != EXPERIMENT)
}

/// Returns a description of what `paths` would run, and the warnings.
pub(crate) fn examine(paths: &[PathBuf]) -> Result<(String, Diagnostics), Diagnostics> {
    let loaded = LoadedPlans::read(paths, &SuiteOverrides::default())?;
    Ok((loaded.describe(), loaded.warnings().clone()))
}

/// Plans of configuration files, by their kind.
enum LoadedPlans {
    Run(PathBuf, Box<Loaded<RunPlan>>),
    Targets(Loaded<Vec<TargetsPlan>>),
    Suite(Loaded<SuitePlan>),
}

impl LoadedPlans {
    fn read(paths: &[PathBuf], overrides: &SuiteOverrides) -> Result<Self, Diagnostics> {
        Ok(match paths {
            [file] if is_single_run(file) => {
                let loaded = loader().run_plan(file, &RunOverrides::default())?;
                Self::Run(file.clone(), Box::new(loaded))
            }
            paths if loader().has_targets(paths) => {
                Self::Targets(loader().targets(paths, &TargetsOverrides::default())?)
            }
            paths => Self::Suite(loader().suite(paths, overrides)?),
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

fn json(plan: &impl serde::Serialize) -> Result<String, CommandError> {
    serde_json::to_string_pretty(plan)
        .map(|text| text + "\n")
        .map_err(|error| CommandError::new(Exit::CouldNotRun, error))
}
