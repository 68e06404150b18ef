//! The results folder.

mod pairs;
mod problems;
mod table;

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use stillwell_capture::{RunStage, SUMMARY, make_private};
use stillwell_plan::SuitePlan;
use stillwell_units::Secrets;

use self::pairs::stage_prefix;
use crate::files::{read_json, sha256, write_json};
use crate::fingerprint::{fingerprint, first_difference};
use crate::health::{HealthRule, health_rules};
use crate::upgrade::upgrade;
use crate::{BinaryIdentity, SuiteError, SuiteOptions};

pub(crate) use self::pairs::PairLeft;
pub use self::problems::{PROBLEMS_SCHEMA, ProblemsRecord, SavedProblem};

/// A results folder that is this process's alone.
#[derive(Debug)]
pub(crate) struct Lock {
    folder: File,
    path: PathBuf,
}

impl Drop for Lock {
    /// An empty folder is removed; a folder with results stays. The lock is released at once: a child process that is just being started
    /// has a copy of the descriptor, which would keep it until the child executes its program.
    fn drop(&mut self) {
        fs::remove_dir(&self.path).unwrap_or_default();
        self.folder.unlock().unwrap_or_default();
    }
}

/// Names the shape of [`SuiteRecord`]; keys are added within a version and never
/// removed.
pub const SUITE_SCHEMA: &str = "stillwell/suite/v1";

const SUITE: &str = "suite.json";
const TARGETS: &str = "targets.json";

/// The request: `suite.json`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct SuiteRecord {
    /// [`SUITE_SCHEMA`].
    pub schema: String,
    /// Version of Stillwell.
    pub version: String,
    /// The command line, as it was typed.
    pub command: Vec<String>,
    /// Wall clock at the start: milliseconds since 1970.
    pub started_wall_millis: u64,
    /// SHA-256 of `plan`.
    pub fingerprint: String,
    /// The executable of each variant.
    pub binaries: Vec<BinaryIdentity>,
    /// The plan.
    pub plan: SuitePlan,
    /// The limits of validity, written before the first run.
    #[serde(default)]
    pub health: Vec<HealthRule>,
}

/// Paths of a results folder.
#[derive(Clone, Debug)]
pub struct Results {
    root: PathBuf,
}

impl Results {
    /// The results in `root`, which need not be there.
    #[must_use]
    pub const fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// The folder itself.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Path of the request: a [`SuiteRecord`].
    #[must_use]
    pub fn suite(&self) -> PathBuf {
        self.root.join(SUITE)
    }

    /// Record of the requested runs of several targets: a
    /// [`TargetsRecord`](crate::TargetsRecord).
    #[must_use]
    pub fn targets(&self) -> PathBuf {
        self.root.join(TARGETS)
    }

    /// All results of an experiment.
    #[must_use]
    pub fn experiment(&self, experiment: &str) -> PathBuf {
        self.root.join(folder_name(experiment))
    }

    /// The capture of the probe.
    #[must_use]
    pub fn probe(&self, experiment: &str) -> PathBuf {
        self.experiment(experiment).join("probe")
    }

    /// At which rate: an [`OperatingPointFound`](crate::OperatingPointFound).
    #[must_use]
    pub fn operating_point(&self, experiment: &str) -> PathBuf {
        self.experiment(experiment).join("operating_point.json")
    }

    /// The runs of a pair of a stage, counted from 1.
    #[must_use]
    pub fn pair(&self, experiment: &str, stage: RunStage, pair: u32) -> PathBuf {
        let stage = stage_prefix(stage);
        self.experiment(experiment)
            .join(format!("{stage}-{pair:03}"))
    }

    /// The capture of one run of the search.
    #[must_use]
    pub fn run(&self, experiment: &str, pair: u32, variant: &str) -> PathBuf {
        self.run_of(experiment, RunStage::Search, pair, variant)
    }

    /// The capture of one run.
    #[must_use]
    pub fn run_of(&self, experiment: &str, stage: RunStage, pair: u32, variant: &str) -> PathBuf {
        self.pair(experiment, stage, pair)
            .join(folder_name(variant))
    }

    /// Path of the record of warm-up, if it was measured: a [`WarmupRecord`](crate::WarmupRecord).
    #[must_use]
    pub fn warmup(&self, experiment: &str) -> PathBuf {
        self.experiment(experiment).join("warmup.json")
    }

    /// Path of an experiment's verdict.
    #[must_use]
    pub fn verdict(&self, experiment: &str) -> PathBuf {
        self.experiment(experiment).join("verdict.json")
    }

    /// Returns the request, also from an older version.
    ///
    /// # Errors
    ///
    /// [`SuiteError::Read`] where it is missing or not readable.
    pub fn record(&self) -> Result<SuiteRecord, SuiteError> {
        let path = self.suite();
        serde_json::from_value(upgrade(read_json(&path)?)).map_err(|error| SuiteError::Read {
            path,
            source: error.into(),
        })
    }

    /// The record to go on with; `None` for a new suite.
    pub(crate) fn open(&self, resume: bool) -> Result<Option<Value>, SuiteError> {
        match (resume, self.suite().exists()) {
            (false, _) if self.has_results() => Err(SuiteError::AlreadyThere {
                results: self.root.clone(),
            }),
            (false, _) => Ok(None),
            (true, true) => read_json(&self.suite()).map(upgrade).map(Some),
            (true, false) => Err(SuiteError::NothingToResume {
                results: self.root.clone(),
            }),
        }
    }

    /// Returns true if the folder has results of any command: reports would overwrite each other.
    #[must_use]
    pub fn has_results(&self) -> bool {
        let mut files = [SUITE, TARGETS, "capacity.json", "bisect.json"].into_iter();
        files.any(|file| self.root.join(file).exists())
    }

    /// Makes the folder where it is not there, and keeps other processes away from it for
    /// as long as the lock lives. What is locked is the folder: files in it are replaced.
    pub(crate) fn lock(&self) -> Result<Lock, SuiteError> {
        let path = &self.root;
        make_private(path).map_err(|source| SuiteError::Write {
            path: path.clone(),
            source,
        })?;
        let failed = |source| SuiteError::Read {
            path: path.clone(),
            source,
        };
        let folder = File::open(path).map_err(failed)?;
        match folder.try_lock() {
            Ok(()) => Ok(Lock {
                folder,
                path: path.clone(),
            }),
            Err(TryLockError::WouldBlock) => Err(SuiteError::InUse {
                results: self.root.clone(),
            }),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// Refuses to go on with results of another plan.
    pub(crate) fn check_plan(&self, old: &Value, plan: &SuitePlan) -> Result<(), SuiteError> {
        // Results have secrets or not.
        let masked = |plan: Value| Secrets::Masked.json(plan);
        let new = masked(as_json(plan, &self.suite())?);
        self.check_same(&masked(old["plan"].clone()), &new, "/plan")
    }

    /// Refuses to go on with results of other executables. Where they lie does
    /// not matter.
    pub(crate) fn check_binaries(
        &self,
        old: &Value,
        binaries: &[BinaryIdentity],
    ) -> Result<(), SuiteError> {
        let mut old = old["binaries"].clone();
        let mut new = as_json(&binaries, &self.suite())?;
        for list in [&mut old, &mut new] {
            for binary in list.as_array_mut().into_iter().flatten() {
                binary["path"] = Value::Null;
            }
        }
        self.check_same(&old, &new, "/binaries")
    }

    fn check_same(&self, old: &Value, new: &Value, place: &str) -> Result<(), SuiteError> {
        first_difference(old, new).map_or(Ok(()), |pointer| {
            Err(SuiteError::PlanChanged {
                results: self.root.clone(),
                pointer: format!("{place}{pointer}"),
            })
        })
    }

    pub(crate) fn write_record(
        &self,
        plan: &SuitePlan,
        options: &SuiteOptions,
        started_wall_millis: u64,
        binaries: &[BinaryIdentity],
    ) -> Result<(), SuiteError> {
        let path = self.suite();
        let fingerprint = fingerprint(plan).map_err(|error| SuiteError::Write {
            path: path.clone(),
            source: error.into(),
        })?;
        let record = SuiteRecord {
            schema: SUITE_SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: options.command.clone(),
            started_wall_millis,
            fingerprint,
            binaries: binaries.to_vec(),
            plan: plan.clone(),
            health: health_rules(),
        };
        write_json(&path, &options.secrets.json(as_json(&record, &path)?))
    }
}

/// The results that were begun last among the folders in `results_root`; `None`
/// if there are none, or no such folder.
///
/// # Errors
/// [`SuiteError::Read`] where the folder cannot be looked into.
pub fn latest(results_root: &Path) -> Result<Option<PathBuf>, SuiteError> {
    #[derive(Deserialize)]
    struct Started {
        started_wall_millis: u64,
    }
    let unreadable = |source: io::Error| SuiteError::Read {
        path: results_root.to_path_buf(),
        source,
    };
    let entries = match fs::read_dir(results_root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    let mut latest = None;
    for entry in entries {
        let folder = entry.map_err(unreadable)?.path();
        // Folders of other kinds, and records of other versions, are skipped.
        let started = read_json::<Started>(&folder.join(SUITE))
            .or_else(|_| read_json::<Started>(&folder.join(TARGETS)));
        if let Ok(started) = started {
            let key = (started.started_wall_millis, folder);
            latest = latest.max(Some(key));
        }
    }
    Ok(latest.map(|(_, folder)| folder))
}

/// Path of the summary of the run whose capture is in `folder`.
pub(crate) fn summary_of(folder: &Path) -> PathBuf {
    folder.join(SUMMARY)
}

/// `name` as the name of one folder: unchanged if possible, else with a hash that makes it unique.
fn folder_name(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.+=@".contains(c);
    let usable = !name.is_empty()
        && name.len() <= 100
        && !name.starts_with('.')
        && ![SUITE, problems::FILE].contains(&name)
        && name.chars().all(plain);
    if usable {
        return name.to_owned();
    }
    let shown: String = name
        .chars()
        .take(60)
        .map(|c| if plain(c) && c != '.' { c } else { '_' })
        .collect();
    let hash = sha256(name.as_bytes());
    format!("{shown}-{}", &hash[..8])
}

pub(crate) fn as_json(value: &impl Serialize, path: &Path) -> Result<Value, SuiteError> {
    serde_json::to_value(value).map_err(|error| SuiteError::Write {
        path: path.to_path_buf(),
        source: error.into(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// For all names: one folder, not hidden, never outside.
        #[test]
        fn any_name_is_a_folder(name in ".{0,150}") {
            let folder = folder_name(&name);
            prop_assert!(!folder.is_empty() && folder.len() <= 110);
            prop_assert!(!folder.contains('/') && !folder.starts_with('.'));
        }
    }

    /// A child process that was being started kept the folder locked after its suite had ended.
    #[test]
    fn a_copy_of_the_descriptor_does_not_keep_the_lock() {
        let parent = tempfile::tempdir().unwrap();
        let results = Results::new(parent.path().join("results"));
        let lock = results.lock().unwrap();
        let of_child = lock.folder.try_clone().unwrap();
        assert!(matches!(results.lock(), Err(SuiteError::InUse { .. })));
        drop(lock);
        results.lock().unwrap();
        drop(of_child);
    }

    #[test]
    fn names_stay_apart() {
        assert_eq!(folder_name("tcp_to_blackhole.v2"), "tcp_to_blackhole.v2");
        assert_ne!(folder_name("a/b"), folder_name("a_b"));
        assert_ne!(folder_name("a/b"), folder_name("a?b"));
    }
}
