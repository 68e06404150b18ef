use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use stillwell_config::files::{EntryKind, Files};
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
    Loader::new(files, FORMATS).suite(paths, overrides)
}

fn load_run_from(
    files: &Memory,
    path: &Path,
    overrides: &RunOverrides,
) -> Result<Loaded<RunPlan>, Diagnostics> {
    Loader::new(files, FORMATS).run_plan(path, overrides)
}
