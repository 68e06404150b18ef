use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use stillwell_plan::{RunPlan, SuitePlan};
use stillwell_text::Diagnostics;

use crate::files::{EntryKind, Files};
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

/// Files that lie in memory.
#[derive(Debug, Default)]
struct Memory(BTreeMap<PathBuf, String>);

impl Memory {
    fn with<const N: usize>(files: [(&str, &str); N]) -> Self {
        Self(
            files
                .map(|(path, text)| (path.into(), text.to_owned()))
                .into(),
        )
    }
}

impl Files for Memory {
    fn read(&self, path: &Path) -> io::Result<String> {
        let text = self.0.get(path).cloned();
        text.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn read_bytes(&self, path: &Path, _limit: u64) -> io::Result<Vec<u8>> {
        self.read(path).map(String::into_bytes)
    }

    fn kind(&self, path: &Path) -> Option<EntryKind> {
        if self.0.contains_key(path) {
            return Some(EntryKind::File);
        }
        let mut below = self.0.keys().filter(|file| file.starts_with(path));
        below.next().map(|_| EntryKind::Folder)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let below = self.0.keys().filter_map(|file| {
            let rest = file.strip_prefix(folder).ok()?;
            Some(folder.join(rest.components().next()?))
        });
        let mut entries: Vec<PathBuf> = below.collect();
        entries.dedup();
        Ok(entries)
    }
}

fn load_suite_from(
    files: &Memory,
    paths: &[PathBuf],
    overrides: &SuiteOverrides,
) -> Result<Loaded<SuitePlan>, Diagnostics> {
    Loader::new(files, &[]).suite(paths, overrides)
}

fn load_run_from(
    files: &Memory,
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
    let files = Memory::with([
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
    let files = Memory::with([("/suite/run.yaml", text), ("/suite/x.log", "a\n")]);
    load_run_from(&files, Path::new("/suite/run.yaml"), overrides)
}

/// A plan as captures keep it, for snapshots.
fn json(plan: &SuitePlan) -> String {
    serde_json::to_string_pretty(plan).unwrap()
}
