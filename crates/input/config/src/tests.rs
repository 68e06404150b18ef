use std::path::{Path, PathBuf};

use stillwell_plan::{RunPlan, SuitePlan};
use stillwell_text::Diagnostics;

use crate::files::InMemory;
use crate::{Loaded, Loader, RunOverrides, SuiteOverrides};

/// Keeps what is said about a text that is wrong.
macro_rules! snapshot {
    ($text:expr) => {
        insta::with_settings!({ omit_expression => true }, {
            insta::assert_snapshot!($crate::tests::mistakes::rendered_diagnostics($text));
        });
    };
}

mod bench;
mod binary_payloads;
mod brokers;
mod course;
mod disks;
mod faults;
mod goals;
mod golden;
mod kubernetes;
mod matrix;
mod mistakes;
mod overrides;
mod payloads;
mod random;
mod reference;
mod scenario;
mod schema;
mod suite;
mod targets;
mod web;

fn load_suite_from(
    files: &InMemory,
    paths: &[PathBuf],
    overrides: &SuiteOverrides,
) -> Result<Loaded<SuitePlan>, Diagnostics> {
    Loader::new(files, &[]).suite(paths, overrides)
}

fn load_run_from(
    files: &InMemory,
    path: &Path,
    overrides: &RunOverrides,
) -> Result<Loaded<RunPlan>, Diagnostics> {
    Loader::new(files, &[]).run_plan(path, overrides)
}

/// Loads `text` as the experiment called `one`, beside some files.
fn experiment(text: &str) -> Result<Loaded<SuitePlan>, Diagnostics> {
    experiment_with(text, &SuiteOverrides::default())
}

fn experiment_with(
    text: &str,
    overrides: &SuiteOverrides,
) -> Result<Loaded<SuitePlan>, Diagnostics> {
    let files = InMemory::with([
        ("/suite/one/experiment.yaml", text),
        ("/suite/one/conf/thing.toml", ""),
        ("/suite/one/x.log", "a\n"),
    ]);
    load_suite_from(&files, &["/suite/one".into()], overrides)
}

pub(crate) fn run_plan(text: &str) -> Result<Loaded<RunPlan>, Diagnostics> {
    run_with(text, &RunOverrides::default())
}

fn run_with(text: &str, overrides: &RunOverrides) -> Result<Loaded<RunPlan>, Diagnostics> {
    let files = InMemory::with([("/suite/run.yaml", text), ("/suite/x.log", "a\n")]);
    load_run_from(&files, Path::new("/suite/run.yaml"), overrides)
}

/// A plan as captures keep it, for snapshots.
fn json(plan: &SuitePlan) -> String {
    serde_json::to_string_pretty(plan).unwrap()
}
