//! Programs that an experiment names and this host lacks.

use std::path::{Path, PathBuf};

use stillwell_plan::experiment::{BinarySource, VariantPlan};
use stillwell_plan::{ExperimentPlan, SuitePlan, TargetKind};
use stillwell_target::{ProgramError, find_program};

/// Returns a sentence for each program without a folder that `PATH` lacks. Paths are left out: a build may make them.
pub(crate) fn missing(plan: &SuitePlan) -> Vec<String> {
    let experiments = plan.experiments.iter();
    let programs = experiments.flat_map(|experiment| {
        let variants = experiment.variants.iter();
        let names = variants.filter_map(|variant| program_of(experiment, variant));
        names.map(|name| (experiment.name.as_str(), name))
    });
    let mut lines: Vec<String> = programs
        .filter(|(_, name)| matches!(find_program(name), Err(ProgramError::NotInPath { .. })))
        .map(|(experiment, name)| format!("{experiment}: no program `{}` in PATH", name.display()))
        .collect();
    lines.dedup();
    lines
}

/// Returns a sentence for each executable with an absolute path that is not there. It may still be built before the run.
pub(crate) fn missing_files(plan: &SuitePlan) -> Vec<String> {
    let experiments = plan.experiments.iter();
    let files = experiments.flat_map(|experiment| {
        let variants = experiment.variants.iter();
        variants
            .filter_map(move |variant| Some((experiment, variant, file_of(experiment, variant)?)))
    });
    let absent = files.filter(|(_, _, path)| !path.is_file());
    absent
        .map(|(experiment, variant, path)| {
            format!(
                "{}: no executable {} for variant `{}`: build it before the run",
                experiment.name,
                path.display(),
                variant.name
            )
        })
        .collect()
}

/// Returns the executable of a variant, if its absolute path is known.
fn file_of(experiment: &ExperimentPlan, variant: &VariantPlan) -> Option<PathBuf> {
    let path = match (&variant.binary, &experiment.run_plan.target.kind) {
        (BinarySource::Path(path), _) => path.clone(),
        (BinarySource::AsPlanned, TargetKind::Child(child)) => {
            let of_variant = variant.command.as_ref().and_then(|words| words.first());
            let program = of_variant.map_or_else(|| child.program.clone(), PathBuf::from);
            let folder = experiment.folder.to_string_lossy();
            PathBuf::from(program.to_string_lossy().replace("{experiment}", &folder))
        }
        (BinarySource::Git(_) | BinarySource::AsPlanned, _) => return None,
    };
    let is_known = path.is_absolute() && !path.to_string_lossy().contains('{');
    is_known.then_some(path)
}

/// Returns the program of a variant, if it is a bare name that is not built.
fn program_of(experiment: &ExperimentPlan, variant: &VariantPlan) -> Option<PathBuf> {
    if !matches!(variant.binary, BinarySource::AsPlanned) {
        return None;
    }
    let TargetKind::Child(child) = &experiment.run_plan.target.kind else {
        return None;
    };
    let sets_path = |name: &str| {
        child.environment.variables.contains_key(name) || variant.environment.contains_key(name)
    };
    let of_variant = variant.command.as_ref().and_then(|words| words.first());
    let program = of_variant.map_or_else(|| child.program.clone(), PathBuf::from);
    let is_bare = |program: &Path| {
        let text = program.to_string_lossy();
        !text.is_empty() && !text.contains(['/', '{'])
    };
    Some(program).filter(|program| is_bare(program) && !sets_path("PATH"))
}
