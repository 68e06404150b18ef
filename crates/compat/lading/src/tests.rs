use std::path::{Path, PathBuf};

use stillwell_config::files::InMemory;
use stillwell_config::{Loaded, Loader, RunOverrides, SuiteOverrides};
use stillwell_plan::{RunPlan, SuitePlan};
use stillwell_text::Diagnostics;

use crate::FORMATS;

mod cases;
mod keys;
mod layouts;
mod lint;
mod payloads;
mod runs;

fn load_suite_from(
    files: &InMemory,
    paths: &[PathBuf],
    overrides: &SuiteOverrides,
) -> Result<Loaded<SuitePlan>, Diagnostics> {
    Loader::new(files, FORMATS).suite(paths, overrides)
}

fn load_run_from(
    files: &InMemory,
    path: &Path,
    overrides: &RunOverrides,
) -> Result<Loaded<RunPlan>, Diagnostics> {
    Loader::new(files, FORMATS).run_plan(path, overrides)
}
