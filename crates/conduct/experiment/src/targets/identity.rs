//! The programs that are compared.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stillwell_plan::target::Places;
use stillwell_plan::targets::ComparedTargetPlan;
use stillwell_plan::{TargetKind, TargetsPlan};
use stillwell_run::{Interrupt, find_program};

use crate::build::command::Commands;
use crate::files::sha256_of_file;
use crate::{SuiteError, SuiteOptions};

/// The longest time that a program may take to say its version.
const VERSION_MAX: Duration = Duration::from_secs(10);
/// Longest version that is kept, in characters.
const VERSION_LENGTH_MAX: usize = 120;

/// The program of a target, as it was before its first run.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct TargetIdentity {
    /// The first line of its version.
    pub version: Option<String>,
    /// Its executable.
    pub program: FileIdentity,
    /// Its configuration.
    pub files: Vec<FileIdentity>,
}

/// A file, identified by its bytes.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct FileIdentity {
    /// Path of the file.
    pub path: PathBuf,
    /// SHA-256, in hexadecimal digits; `None` where it could not be read.
    pub sha256: Option<String>,
}

impl FileIdentity {
    fn of(path: &Path) -> Self {
        Self {
            path: path.to_path_buf(),
            sha256: sha256_of_file(path).ok(),
        }
    }
}

/// A target whose program is not on this host.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NotInstalled {
    /// The target.
    pub name: String,
    /// The missing program.
    pub reason: String,
}

/// The targets of `plan` whose programs are not there; `stillwell` is `{self}`.
#[must_use]
pub fn not_installed(plan: &TargetsPlan, stillwell: &Path) -> Vec<NotInstalled> {
    let places = places(plan, stillwell);
    let targets = plan.targets.iter();
    targets
        .filter_map(|target| {
            let wanted = [started_by(target, &places), program_of(target, &places)];
            let mut wanted = wanted.iter().flatten();
            let error = wanted.find_map(|program| find_program(program).err())?;
            Some(NotInstalled {
                name: target.name.clone(),
                reason: error.to_string(),
            })
        })
        .collect()
}

/// The programs of `plans`. A name means one program in all of them.
pub(super) fn identities(
    plans: &[TargetsPlan],
    options: &SuiteOptions,
    interrupt: &Interrupt,
) -> Result<BTreeMap<String, TargetIdentity>, SuiteError> {
    let commands = Commands::new(interrupt)?;
    let mut identities: BTreeMap<String, TargetIdentity> = BTreeMap::new();
    for plan in plans {
        let places = places(plan, &options.stillwell);
        for target in &plan.targets {
            let files = target.files.iter().map(|path| FileIdentity::of(path));
            if let Some(known) = identities.get_mut(&target.name) {
                known.files.extend(files);
                continue;
            }
            let program = program_of(target, &places)
                .map(|program| find_program(&program).unwrap_or(program));
            let version = target.version.as_ref().and_then(|words| {
                let words: Vec<String> = words.iter().map(|word| places.fill(word)).collect();
                commands.first_line(&words, VERSION_MAX)
            });
            let version = version.map(|line| line.chars().take(VERSION_LENGTH_MAX).collect());
            identities.insert(
                target.name.clone(),
                TargetIdentity {
                    version,
                    program: program
                        .map(|path: PathBuf| FileIdentity::of(&path))
                        .unwrap_or_default(),
                    files: files.collect(),
                },
            );
        }
    }
    Ok(identities)
}

fn places(plan: &TargetsPlan, stillwell: &Path) -> Places {
    Places {
        stillwell: stillwell.to_path_buf(),
        state: PathBuf::new(),
        files: None,
        experiment: plan.folder.clone(),
    }
}

/// The program that is measured.
fn program_of(target: &ComparedTargetPlan, places: &Places) -> Option<PathBuf> {
    match &target.program {
        Some(program) => Some(places.fill(&program.to_string_lossy()).into()),
        None => started_by(target, places),
    }
}

/// The program that is started: it may be one that starts what is measured.
fn started_by(target: &ComparedTargetPlan, places: &Places) -> Option<PathBuf> {
    match &target.target.kind {
        TargetKind::Child(child) => Some(places.fill(&child.program.to_string_lossy()).into()),
        TargetKind::Container(_) | TargetKind::Pid(_) | TargetKind::Url(_) | TargetKind::None => {
            None
        }
    }
}
