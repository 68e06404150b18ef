//! `stillwell check`.

use std::path::{Path, PathBuf};

use stillwell_config::{RunOverrides, SuiteOverrides, TargetsOverrides};

use crate::arguments::CheckArguments;
use crate::command::{programs, select};
use crate::exit::{CommandError, Exit};
use crate::formats::loader;
use crate::paint::Paint;

mod describe;

const EXPERIMENT: &str = "experiment.yaml";

pub(crate) fn run(arguments: &CheckArguments, paint: &Paint) -> Result<Exit, CommandError> {
    let text = match arguments.paths.as_slice() {
        [file] if is_single_run(file) => check_run(file, arguments.plan, paint)?,
        paths if loader().has_targets(paths) => {
            let overrides = TargetsOverrides::default();
            let loaded = loader()
                .targets(paths, &overrides)
                .map_err(|diagnostics| select::refused(&diagnostics, paint))?;
            select::warn(&loaded.warnings, paint);
            match arguments.plan {
                true => json(&loaded.plan)?,
                false => describe::targets(&loaded.plan),
            }
        }
        paths => {
            let overrides = select::overrides(&arguments.select);
            check_suite(paths, &overrides, arguments.plan, paint)?
        }
    };
    Paint::data(&text).map_err(|error| CommandError::new(Exit::CouldNotRun, error))?;
    Ok(Exit::Held)
}

/// A file that is no experiment is one for `run`.
fn is_single_run(path: &Path) -> bool {
    path.exists() && !path.is_dir() && path.file_name().is_some_and(|name| name != EXPERIMENT)
}

fn check_run(file: &Path, whole: bool, paint: &Paint) -> Result<String, CommandError> {
    let loaded = loader()
        .run_plan(file, &RunOverrides::default())
        .map_err(|diagnostics| select::refused(&diagnostics, paint))?;
    select::warn(&loaded.warnings, paint);
    if whole {
        return json(&loaded.plan);
    }
    let mut text = format!("{}: no errors, one run\n", file.display());
    describe::run_plan(&loaded.plan, &mut text);
    Ok(text)
}

fn check_suite(
    paths: &[PathBuf],
    overrides: &SuiteOverrides,
    whole: bool,
    paint: &Paint,
) -> Result<String, CommandError> {
    let loaded = loader()
        .suite(paths, overrides)
        .map_err(|diagnostics| select::refused(&diagnostics, paint))?;
    select::warn(&loaded.warnings, paint);
    for line in programs::missing(&loaded.plan) {
        Paint::say(&format!("warning: {line}"));
    }
    if whole {
        return json(&loaded.plan);
    }
    Ok(describe::suite(&loaded.plan))
}

fn json(plan: &impl serde::Serialize) -> Result<String, CommandError> {
    serde_json::to_string_pretty(plan)
        .map(|text| text + "\n")
        .map_err(|error| CommandError::new(Exit::CouldNotRun, error))
}
