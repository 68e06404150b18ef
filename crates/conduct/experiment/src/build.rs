//! Executables from revisions.
//!
//! Each revision is built once, in a worktree of its own, and kept in a cache:
//!
//! ```text
//! builds/KEY/bin/NAME     the executable, under its own name
//! builds/KEY/source.json  what it was built from
//! builds/KEY/build.log    what the build said
//! builds/KEY.tmp-PID/     a build that goes on
//! builds/KEY.lock         held by whoever builds
//! builds/KEY.failed.log   what the last build said, if it failed
//! ```
//!
//! `KEY` is a hash of the repository, the full commit, the build command, its
//! output, its seed, if it has one, and the variables of compilers that are set.
//! A build becomes visible by one rename, so none is ever half.

pub(crate) mod command;
mod environment;

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use stillwell_plan::experiment::GitSource;
use stillwell_run::Interrupt;

use self::command::{CommandEnd, Commands};
use self::environment::environment_hash;
use crate::files::{remove_folder, sha256, sha256_of_file, write_json};
use crate::{SuiteError, SuiteProgress};

/// Folder of the worktree in that of a build.
const TREE: &str = "tree";
/// The number of bytes of a failed build's log are shown.
const LOG_TAIL_MAX: usize = 2048;

/// An executable that was built, now or earlier.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Built {
    /// The executable.
    pub binary: PathBuf,
    /// The commit, in full.
    pub revision: String,
}

/// Builds revisions, each once.
#[derive(Debug)]
pub(crate) struct Builds<'a> {
    folder: PathBuf,
    commands: Commands<'a>,
    /// Hash of the variables that builds depend on; empty if none is set.
    environment: String,
    built: BTreeMap<(GitSource, Option<u32>), Built>,
}

/// The ingredients of a build.
#[derive(Debug, Serialize)]
struct Origin<'a> {
    repository: &'a Path,
    revision: &'a str,
    build: &'a str,
    output: &'a Path,
    seed: Option<u32>,
    sha256: Option<String>,
}

impl<'a> Builds<'a> {
    /// Builds are kept in the folder `builds` of `cache`.
    pub(crate) fn new(cache: &Path, interrupt: &'a Interrupt) -> Result<Self, SuiteError> {
        Ok(Self {
            folder: cache.join("builds"),
            commands: Commands::new(interrupt)?,
            environment: environment_hash(std::env::vars_os()),
            built: BTreeMap::new(),
        })
    }

    /// The executable of `source`, whose build gets `seed` in its environment; `None` if the
    /// build was interrupted.
    pub(crate) fn build(
        &mut self,
        source: &GitSource,
        seed: Option<u32>,
        progress: &mut dyn FnMut(SuiteProgress<'_>),
    ) -> Result<Option<Built>, SuiteError> {
        let key = (source.clone(), seed);
        if let Some(built) = self.built.get(&key) {
            return Ok(Some(built.clone()));
        }
        let Some(revision) = self.resolve(source)? else {
            return Ok(None);
        };
        let job = Job::new(&self.folder, (source, seed), revision, &self.environment)?;
        let cached = job.built();
        progress(SuiteProgress::Building {
            source,
            revision: &job.revision,
            seed,
            cached: cached.is_some(),
        });
        let built = match cached {
            Some(built) => built,
            None => match job.make(&self.commands)? {
                Some(built) => built,
                None => return Ok(None),
            },
        };
        progress(SuiteProgress::Built {
            source,
            built: &built,
        });
        self.built.insert(key, built.clone());
        Ok(Some(built))
    }

    /// The full name of the commit.
    fn resolve(&self, source: &GitSource) -> Result<Option<String>, SuiteError> {
        let refuse = |reason: String| SuiteError::Revision {
            repository: source.repository.clone(),
            revision: source.revision.clone(),
            reason,
        };
        if source.revision.starts_with('-') {
            return Err(refuse("a revision does not begin with `-`".to_owned()));
        }
        let commit = format!("{}^{{commit}}", source.revision);
        let arguments = ["rev-parse", "--verify", commit.as_str()];
        let Some(output) = self.commands.git(&source.repository, arguments)? else {
            return Ok(None);
        };
        output.map(Some).map_err(refuse)
    }
}

/// One build.
#[derive(Debug)]
struct Job<'a> {
    source: &'a GitSource,
    seed: Option<u32>,
    repository: PathBuf,
    revision: String,
    /// `builds/KEY`.
    entry: PathBuf,
    key: String,
}

impl<'a> Job<'a> {
    fn new(
        folder: &Path,
        (source, seed): (&'a GitSource, Option<u32>),
        revision: String,
        environment: &str,
    ) -> Result<Self, SuiteError> {
        let repository = source
            .repository
            .canonicalize()
            .map_err(|error| SuiteError::Read {
                path: source.repository.clone(),
                source: error,
            })?;
        let mut identity = Vec::new();
        for part in [
            repository.as_os_str().as_encoded_bytes(),
            revision.as_bytes(),
            source.build.as_bytes(),
            source.output.as_os_str().as_encoded_bytes(),
        ] {
            identity.extend_from_slice(part);
            identity.push(0);
        }
        if let Some(seed) = seed {
            identity.extend_from_slice(&seed.to_le_bytes());
        }
        identity.extend_from_slice(environment.as_bytes());
        let key = sha256(&identity)[..32].to_owned();
        Ok(Self {
            source,
            seed,
            repository,
            revision,
            entry: folder.join(&key),
            key,
        })
    }

    fn built(&self) -> Option<Built> {
        let binary = self.binary_in(&self.entry);
        binary.is_file().then(|| Built {
            binary,
            revision: self.revision.clone(),
        })
    }

    fn binary_in(&self, entry: &Path) -> PathBuf {
        let name = self.source.output.file_name().unwrap_or_default();
        entry.join("bin").join(name)
    }

    /// Builds, unless another process did in the meantime.
    fn make(&self, commands: &Commands<'_>) -> Result<Option<Built>, SuiteError> {
        let folder = self.entry.parent().unwrap_or(&self.entry);
        fs::create_dir_all(folder).map_err(at(folder))?;
        let lock_path = self.beside("lock");
        let lock = File::create(&lock_path).map_err(at(&lock_path))?;
        while let Err(error) = lock.try_lock() {
            match error {
                TryLockError::WouldBlock if commands.pause() => {}
                TryLockError::WouldBlock => return Ok(None),
                TryLockError::Error(error) => return Err(at(&lock_path)(error)),
            }
        }
        if let Some(built) = self.built() {
            return Ok(Some(built));
        }
        self.remove_temporary(folder, commands)?;
        // An entry without its executable.
        remove_folder(&self.entry).map_err(at(&self.entry))?;
        let temporary = self.beside(&format!("tmp-{}", std::process::id()));
        fs::create_dir_all(&temporary).map_err(at(&temporary))?;
        let built = self.make_in(&temporary, commands);
        // On success the folder has its new name and stays.
        let cleaned = self.remove_temporary(folder, commands);
        let built = built?;
        cleaned?;
        Ok(built)
    }

    fn make_in(
        &self,
        temporary: &Path,
        commands: &Commands<'_>,
    ) -> Result<Option<Built>, SuiteError> {
        let tree = temporary.join(TREE);
        let Some(tree_text) = tree.to_str() else {
            return Err(self.refuse("the cache's path is not UTF-8".to_owned()));
        };
        let add = [
            "worktree",
            "add",
            "--quiet",
            "--force",
            "--detach",
            tree_text,
            &self.revision,
        ];
        match commands.git(&self.repository, add)? {
            None => return Ok(None),
            Some(Err(reason)) => return Err(self.refuse(reason)),
            Some(Ok(_)) => {}
        }
        let log = temporary.join("build.log");
        let ended = commands.build(&self.source.build, &tree, (&self.revision, self.seed), &log)?;
        let made = match ended {
            CommandEnd::Interrupted => Ok(None),
            CommandEnd::Failed(reason) => Err(self.failure(reason, &log)),
            CommandEnd::Well => self.keep(temporary, &tree, &log).map(Some),
        };
        if made.as_ref().is_ok_and(Option::is_some) {
            // If git refuses, the folder is removed here, and git's entry by the caller.
            commands.remove_worktree(&self.repository, tree_text);
            remove_folder(&tree).map_err(at(&tree))?;
            fs::rename(temporary, &self.entry).map_err(at(&self.entry))?;
            sync_folder(self.entry.parent().unwrap_or(&self.entry)).map_err(at(&self.entry))?;
        }
        made
    }

    /// Copies the executable out of the worktree.
    fn keep(&self, temporary: &Path, tree: &Path, log: &Path) -> Result<Built, SuiteError> {
        let output = tree.join(&self.source.output);
        if !output.is_file() {
            let reason = format!(
                "the build did not create the file {}",
                self.source.output.display()
            );
            return Err(self.failure(reason, log));
        }
        let binary = self.binary_in(temporary);
        let folder = binary.parent().unwrap_or(temporary);
        fs::create_dir_all(folder).map_err(at(folder))?;
        // Copies the permissions too.
        fs::copy(&output, &binary)
            .and_then(|_| File::open(&binary)?.sync_all())
            .and_then(|()| sync_folder(folder))
            .map_err(at(&binary))?;
        let origin = Origin {
            repository: &self.repository,
            revision: &self.revision,
            build: &self.source.build,
            output: &self.source.output,
            seed: self.seed,
            sha256: sha256_of_file(&binary).ok(),
        };
        write_json(&temporary.join("source.json"), &origin)?;
        Ok(Built {
            binary: self.binary_in(&self.entry),
            revision: self.revision.clone(),
        })
    }

    /// Removes the temporary folders and worktrees of this entry, also those that killed builders left. The lock
    /// is ours, so they are not in use. No other worktree of the repository is removed: that of a user stays
    /// if its folder cannot be seen from here, as on a disk that is not mounted.
    fn remove_temporary(&self, folder: &Path, commands: &Commands<'_>) -> Result<(), SuiteError> {
        let prefix = format!("{}.tmp-", self.key);
        for entry in fs::read_dir(folder).map_err(at(folder))? {
            let entry = entry.map_err(at(folder))?;
            if entry.file_name().to_string_lossy().starts_with(&prefix) {
                let path = entry.path();
                remove_folder(&path).map_err(at(&path))?;
            }
        }
        // Git lists real paths.
        let real = folder.canonicalize().map_err(at(folder))?;
        commands.remove_worktrees(&self.repository, &real.join(prefix));
        Ok(())
    }

    fn failure(&self, reason: String, log: &Path) -> SuiteError {
        let kept = self.beside("failed.log");
        let whole = fs::read(log).unwrap_or_default();
        let tail = &whole[whole.len().saturating_sub(LOG_TAIL_MAX)..];
        let log = match fs::copy(log, &kept) {
            Ok(_) => kept,
            Err(_) => log.to_path_buf(),
        };
        SuiteError::Build {
            revision: self.source.revision.clone(),
            reason,
            log_tail: String::from_utf8_lossy(tail).trim_end().to_owned(),
            log,
        }
    }

    fn refuse(&self, reason: String) -> SuiteError {
        SuiteError::Checkout {
            repository: self.repository.clone(),
            revision: self.source.revision.clone(),
            reason,
        }
    }

    /// `builds/KEY.suffix`.
    fn beside(&self, suffix: &str) -> PathBuf {
        self.entry.with_file_name(format!("{}.{suffix}", self.key))
    }
}

/// Makes the names in a folder outlive a power cut.
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> SuiteError + '_ {
    |source| SuiteError::Write {
        path: path.to_path_buf(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn key_of(seed: Option<u32>, environment: &str) -> String {
        let source = GitSource {
            repository: "/".into(),
            revision: "main".to_owned(),
            build: "make".to_owned(),
            output: "out".into(),
        };
        let revision = "abc".to_owned();
        let job = Job::new(Path::new("builds"), (&source, seed), revision, environment);
        job.unwrap().key
    }

    #[test]
    fn builds_with_other_variables_of_compilers_have_other_keys() {
        // Caches of earlier versions have these keys.
        assert_eq!(key_of(None, ""), "ecd330a3c3ab116e1f62a2760d818b6c");
        assert_eq!(key_of(Some(1), ""), "d24284a73e4633058c1086c29fd59896");
        let keys = [(None, ""), (None, "a"), (None, "b"), (Some(1), "a")];
        let keys: BTreeSet<String> = keys.map(|(seed, hash)| key_of(seed, hash)).into();
        assert_eq!(keys.len(), 4);
    }
}
