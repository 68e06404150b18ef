//! The executables that a suite compares.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use serde::{Deserialize, Serialize};
use stillwell_plan::experiment::BinarySource;
use stillwell_plan::target::Places;
use stillwell_plan::{ExperimentPlan, SuitePlan, TargetKind, TargetPlan, VariantPlan};

use crate::build::Builds;
use crate::files::sha256_of_file;
use crate::{SuiteError, SuiteOptions, SuiteProgress};

/// The executable of a variant.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct BinaryIdentity {
    /// The experiment.
    pub experiment: String,
    /// The variant.
    pub variant: String,
    /// The executable, if the target is a child whose program was found.
    pub path: Option<PathBuf>,
    /// The commit that it was built from, in full, if it was.
    pub revision: Option<String>,
    /// SHA-256 of its bytes, in hexadecimal digits.
    pub sha256: Option<String>,
}

/// The target of every variant of one experiment, in the plan's order.
#[derive(Debug)]
pub(crate) struct VariantTargets(pub(crate) Vec<TargetPlan>);

/// All that has to be there before the first run.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    /// One for each experiment, in the plan's order.
    pub(crate) targets: Vec<VariantTargets>,
    /// One for each variant of each experiment.
    pub(crate) binaries: Vec<BinaryIdentity>,
}

/// The targets of all experiments, built where they have to be, and what they are; `None` if the
/// builds were interrupted.
pub(crate) fn prepare(
    plan: &SuitePlan,
    options: &SuiteOptions,
    builds: &mut Builds<'_>,
    progress: &mut dyn FnMut(SuiteProgress<'_>),
) -> Result<Option<Prepared>, SuiteError> {
    let mut hashes = Hashes::default();
    let mut prepared = Prepared::default();
    for experiment in &plan.experiments {
        let mut identities = Vec::new();
        for variant in &experiment.variants {
            let (binary, revision) = match &variant.binary {
                BinarySource::AsPlanned => (None, None),
                BinarySource::Path(path) => {
                    check_executable(experiment, variant, path)?;
                    (Some(path.clone()), None)
                }
                BinarySource::Git(source) => match builds.build(source, progress)? {
                    Some(built) => (Some(built.binary), Some(built.revision)),
                    None => return Ok(None),
                },
            };
            let target = experiment.target_of(variant, binary.as_deref());
            let path = program(&target, experiment, variant, options);
            prepared.binaries.push(BinaryIdentity {
                experiment: experiment.name.clone(),
                variant: variant.name.clone(),
                sha256: path.as_deref().and_then(|path| hashes.of(path)),
                path,
                revision,
            });
            identities.push(target);
        }
        prepared.targets.push(VariantTargets(identities));
    }
    Ok(Some(prepared))
}

fn check_executable(
    experiment: &ExperimentPlan,
    variant: &VariantPlan,
    path: &Path,
) -> Result<(), SuiteError> {
    let refuse = |reason: String| SuiteError::Binary {
        experiment: experiment.name.clone(),
        variant: variant.name.clone(),
        path: path.to_path_buf(),
        reason,
    };
    let about = fs::metadata(path).map_err(|error| refuse(error.to_string()))?;
    if !about.is_file() {
        return Err(refuse("it is not a file".to_owned()));
    }
    access(path, Access::EXEC_OK).map_err(|_| refuse("it is not executable".to_owned()))
}

/// The file that will be executed, if it is known beforehand. The run reports a missing one.
fn program(
    target: &TargetPlan,
    experiment: &ExperimentPlan,
    variant: &VariantPlan,
    options: &SuiteOptions,
) -> Option<PathBuf> {
    let places = Places {
        stillwell: options.stillwell.clone(),
        state: PathBuf::new(),
        files: variant.files.clone(),
        experiment: experiment.folder.clone(),
    };
    let TargetKind::Child(child) = target.filled(&places).kind else {
        return None;
    };
    if child.program.components().count() > 1 {
        return Some(child.program).filter(|path| path.is_file());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(&child.program))
        .find(|path| path.is_file() && access(path, Access::EXEC_OK).is_ok())
}

/// Hashes of files, each taken once.
#[derive(Debug, Default)]
struct Hashes(BTreeMap<PathBuf, Option<String>>);

impl Hashes {
    fn of(&mut self, path: &Path) -> Option<String> {
        if let Some(known) = self.0.get(path) {
            return known.clone();
        }
        let hash = sha256_of_file(path).ok();
        self.0.insert(path.to_path_buf(), hash.clone());
        hash
    }
}
