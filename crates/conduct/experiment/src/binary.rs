//! The executables that a suite compares.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use serde::{Deserialize, Serialize};
use stillwell_capture::RunStage;
use stillwell_config::rules::builds_problem;
use stillwell_plan::experiment::{BinarySource, builds_of_stages};
use stillwell_plan::target::Places;
use stillwell_plan::{ExperimentPlan, SuitePlan, TargetKind, TargetPlan, VariantPlan};
use stillwell_units::count;

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

/// The targets of every variant of one experiment.
#[derive(Debug)]
pub(crate) struct VariantTargets {
    /// In the plan's order: one for each build.
    of_variants: Vec<Vec<TargetPlan>>,
    /// True if a change is confirmed on new pairs.
    is_confirmed: bool,
}

impl VariantTargets {
    /// Returns the target of the variant at `place` in this pair. Builds are used in turn; those of
    /// a confirmation are others than those of the search, if there are several.
    pub(crate) fn of_pair(&self, place: usize, stage: RunStage, pair: u32) -> Option<&TargetPlan> {
        let builds = self.of_variants.get(place)?;
        let build = build_of_pair(count(builds.len()), self.is_confirmed, stage, pair);
        builds.get(usize::try_from(build).ok()?)
    }
}

/// Returns the place of the build for a pair.
const fn build_of_pair(builds: u32, is_confirmed: bool, stage: RunStage, pair: u32) -> u32 {
    let [search, confirm] = builds_of_stages(builds, is_confirmed);
    let turn = pair.saturating_sub(1);
    match stage {
        RunStage::Confirm if builds > 1 && confirm > 0 => search + turn % confirm,
        RunStage::Search | RunStage::Confirm => turn % search,
    }
}

/// All that has to be there before the first run.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    /// One for each experiment, in the plan's order.
    pub(crate) targets: Vec<VariantTargets>,
    /// One for each build of each variant of each experiment.
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
        let mut targets = Vec::new();
        for (place, variant) in experiment.variants.iter().enumerate() {
            let mut of_variant = Vec::new();
            for seed in seeds(experiment, place) {
                let Some(executable) = executable(experiment, variant, seed, builds, progress)?
                else {
                    return Ok(None);
                };
                let target = experiment.target_of(variant, executable.path.as_deref());
                let path = program(&target, experiment, variant, options);
                prepared.binaries.push(BinaryIdentity {
                    experiment: experiment.name.clone(),
                    variant: variant.name.clone(),
                    sha256: path.as_deref().and_then(|path| hashes.of(path)),
                    path,
                    revision: executable.revision,
                });
                of_variant.push(target);
            }
            targets.push(of_variant);
        }
        check_builds(experiment, &prepared.binaries)?;
        prepared.targets.push(VariantTargets {
            of_variants: targets,
            is_confirmed: experiment.confirm,
        });
    }
    Ok(Some(prepared))
}

/// Returns the seeds of the builds of the variant at `place`; a single build has none. Every variant
/// has seeds of its own: two builds of one source differ as well.
fn seeds(experiment: &ExperimentPlan, place: usize) -> Vec<Option<u32>> {
    let is_built = matches!(experiment.variants[place].binary, BinarySource::Git(_));
    if !is_built || experiment.builds < 2 {
        return vec![None];
    }
    let variants = count(experiment.variants.len());
    let place = count(place);
    let seeds = (0..experiment.builds).map(|number| Some(number * variants + place + 1));
    seeds.collect()
}

/// An executable in place of the planned one, and the commit that it was built from.
#[derive(Default)]
struct Executable {
    path: Option<PathBuf>,
    revision: Option<String>,
}

/// Returns the executable of a variant, built if it has to be; `None` if the build was interrupted.
fn executable(
    experiment: &ExperimentPlan,
    variant: &VariantPlan,
    seed: Option<u32>,
    builds: &mut Builds<'_>,
    progress: &mut dyn FnMut(SuiteProgress<'_>),
) -> Result<Option<Executable>, SuiteError> {
    match &variant.binary {
        BinarySource::AsPlanned => Ok(Some(Executable::default())),
        BinarySource::Path(path) => {
            check_executable(experiment, variant, path)?;
            Ok(Some(Executable {
                path: Some(path.clone()),
                revision: None,
            }))
        }
        BinarySource::Git(source) => {
            let built = builds.build(source, seed, progress)?;
            Ok(built.map(|built| Executable {
                path: Some(built.binary),
                revision: Some(built.revision),
            }))
        }
    }
}

/// Refuses several builds that are one: the build command does not use its seed, or nothing is
/// built.
fn check_builds(
    experiment: &ExperimentPlan,
    binaries: &[BinaryIdentity],
) -> Result<(), SuiteError> {
    if experiment.builds < 2 {
        return Ok(());
    }
    let of_experiment = || {
        let here = binaries.iter();
        here.filter(|binary| binary.experiment == experiment.name)
    };
    let refuse = |reason: String| SuiteError::Builds {
        experiment: experiment.name.clone(),
        builds: experiment.builds,
        reason,
    };
    if let Some(reason) = builds_problem(experiment) {
        return Err(refuse(reason.to_owned()));
    }
    let is_built = |variant: &&VariantPlan| matches!(variant.binary, BinarySource::Git(_));
    for variant in experiment.variants.iter().filter(is_built) {
        let hashes = of_experiment().filter(|binary| binary.variant == variant.name);
        let hashes: BTreeSet<_> = hashes.map(|binary| &binary.sha256).collect();
        if hashes.len() == 1 {
            return Err(refuse(format!(
                "all builds of `{}` are the same file: let the build command use \
                 STILLWELL_BUILD_SEED, see docs/experiments.md",
                variant.name
            )));
        }
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The builds of the first four pairs of a stage.
    fn names(builds: u32, is_confirmed: bool, stage: RunStage) -> String {
        let name = |pair| build_of_pair(builds, is_confirmed, stage, pair).to_string();
        (1..=4).map(name).collect::<Vec<_>>().join(" ")
    }

    /// A confirmation with the builds of the search would confirm their layout.
    #[test]
    fn the_confirmation_has_other_builds_than_the_search() {
        for (builds, search, confirm) in [
            (1, "0 0 0 0", "0 0 0 0"),
            (2, "0 0 0 0", "1 1 1 1"),
            (5, "0 1 2 0", "3 4 3 4"),
            (10, "0 1 2 3", "5 6 7 8"),
        ] {
            assert_eq!(names(builds, true, RunStage::Search), search, "{builds}");
            assert_eq!(names(builds, true, RunStage::Confirm), confirm, "{builds}");
        }
    }

    /// Half of the builds were made and never used.
    #[test]
    fn the_search_has_all_builds_if_nothing_is_confirmed() {
        for (builds, search) in [(1, "0 0 0 0"), (2, "0 1 0 1"), (5, "0 1 2 3")] {
            assert_eq!(names(builds, false, RunStage::Search), search, "{builds}");
        }
    }
}
