//! Paths and overrides become plans.

use std::path::{Path, PathBuf};

use stillwell_plan::{
    BinarySource, ChildPlan, ContainerOrigin, CpuChoice, EnvironmentPlan, ExperimentPlan, LabPlan,
    ReadyProbe, RigPlan, SubjectKind, SubjectPlan,
};
use stillwell_text::{Diagnostic, Diagnostics, code, ready_probe_of};

use crate::discover::{Case, CaseKind, discover, is_lading_text};
use crate::files::{Disk, EntryKind, Files};
use crate::matrix::Cell;
use crate::overrides::{LabOverrides, RigOverrides, TargetOverride};
use crate::smp;
use crate::spec::{ExperimentSpec, STOP_DEFAULT, name_of_program, no_subject};

mod apply;
mod lab;
mod lading;
mod native;
mod subjects;

use native::NativeFile;

pub(crate) use lab::load_lab_from;
#[cfg(test)]
pub(crate) use lading::load_lading_from;
pub use lading::{LadingRun, LadingSource, load_lading};
#[cfg(test)]
pub(crate) use subjects::load_subjects_from;
pub use subjects::{has_subjects, load_subjects};

/// A plan that may be run, and what was remarkable about it.
#[derive(Clone, Debug)]
pub struct Loaded<T> {
    /// The plan.
    pub plan: T,
    /// Warnings and notes, in the order of files.
    pub warnings: Diagnostics,
    /// What it was read from; of several experiments the first.
    pub kind: FileKind,
}

/// Whose format a file has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FileKind {
    /// A `lading.yaml`.
    Lading,
    /// Our own.
    Native,
    /// An SMP case.
    Smp,
}

/// Reads one observed run from `path`: a native rig or experiment (its first
/// variant), a `lading.yaml`, or the folder of an experiment.
///
/// # Errors
/// Every mistake in the files, with its place; or that they cannot be read.
pub fn load_rig(path: &Path, overrides: &RigOverrides) -> Result<Loaded<RigPlan>, Diagnostics> {
    load_rig_from(&Disk, &absolute(path), overrides)
}

/// Reads the experiments that `paths` stand for: files, folders of experiments,
/// or folders somewhere below which they stand.
///
/// # Errors
/// Every mistake in all files, with its place; names that are not unique; an
/// `only` that means none of them.
pub fn load_lab(
    paths: &[PathBuf],
    overrides: &LabOverrides,
) -> Result<Loaded<LabPlan>, Diagnostics> {
    let paths: Vec<PathBuf> = paths.iter().map(|path| absolute(path)).collect();
    load_lab_from(&Disk, &paths, overrides)
}

pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

/// [`load_rig`] on any files; `path` is absolute.
pub(crate) fn load_rig_from(
    files: &dyn Files,
    path: &Path,
    overrides: &RigOverrides,
) -> Result<Loaded<RigPlan>, Diagnostics> {
    let mut found = Diagnostics::new();
    let read = if files.kind(path) == Some(EntryKind::Folder) {
        rig_of_folder(files, path, overrides, &mut found)
    } else {
        rig_of_file(files, path, overrides, &mut found)
    };
    let plan = read.map(|(mut rig, kind)| {
        apply::to_rig(&mut rig, overrides, kind, &mut found);
        (rig, kind)
    });
    finish(plan, found)
}

/// The plan, unless something was an error.
fn finish<T>(plan: Option<(T, FileKind)>, found: Diagnostics) -> Result<Loaded<T>, Diagnostics> {
    let found = found.sorted();
    match plan {
        Some((plan, kind)) if !found.has_errors() => Ok(Loaded {
            plan,
            warnings: found,
            kind,
        }),
        _ => Err(found),
    }
}

fn rig_of_folder(
    files: &dyn Files,
    path: &Path,
    overrides: &RigOverrides,
    found: &mut Diagnostics,
) -> Option<(RigPlan, FileKind)> {
    let cases = match discover(files, path) {
        Ok(cases) => cases,
        Err(error) => {
            found.push(*error);
            return None;
        }
    };
    let [case] = cases.as_slice() else {
        let message = format!("{} holds {} experiments", path.display(), cases.len());
        let error = Diagnostic::error(code::NOTHING_FOUND, message);
        found.push(error.help("a rig is one of them: name its folder"));
        return None;
    };
    rig_of_case(files, case, overrides, found)
}

fn rig_of_case(
    files: &dyn Files,
    case: &Case,
    overrides: &RigOverrides,
    found: &mut Diagnostics,
) -> Option<(RigPlan, FileKind)> {
    if case.kind == CaseKind::Native {
        let rig = rig_of_native(files, case.file.as_deref()?, found)?;
        return Some((rig, FileKind::Native));
    }
    let smp = smp::read_case(files, case, found)?;
    if !smp.has_program && matches!(overrides.target, TargetOverride::FromFile) {
        let message = format!("{}: its target names no `command`", case.name);
        let error = Diagnostic::error(code::NO_SUBJECT, message);
        found.push(error.help("name the program on the command line"));
    }
    let baseline = smp.plan.variants.first()?;
    let subject = smp.plan.subject_of(baseline, None);
    let rig = RigPlan {
        subject,
        ..smp.plan.rig
    };
    Some((rig, FileKind::Smp))
}

fn rig_of_file(
    files: &dyn Files,
    path: &Path,
    overrides: &RigOverrides,
    found: &mut Diagnostics,
) -> Option<(RigPlan, FileKind)> {
    if files.read(path).is_ok_and(|text| is_lading_text(&text)) {
        let has_subject = overrides.target.is_something();
        let load = smp::read_load(files, path, has_subject, found)?;
        return Some((smp::rig_of(load, no_subject()), FileKind::Lading));
    }
    let is_experiment = path
        .file_name()
        .is_some_and(|name| name == "experiment.yaml");
    if is_experiment && let Ok(cases) = discover(files, path) {
        return rig_of_case(files, cases.first()?, overrides, found);
    }
    Some((rig_of_native(files, path, found)?, FileKind::Native))
}

/// Reads a native file as a rig: its first cell, its first variant.
fn rig_of_native(files: &dyn Files, path: &Path, found: &mut Diagnostics) -> Option<RigPlan> {
    let file = NativeFile::open(files, path, found)?;
    let none = Cell::default();
    let cells = file.cells().unwrap_or_else(|| std::slice::from_ref(&none));
    if cells.len() > 1 {
        let message = format!("the first of {} cells of its matrix is run", cells.len());
        found.push(Diagnostic::note(code::MATRIX, message));
    }
    let (spec, _) = file.read(files, cells.first()?, found)?;
    Some(rig_of_spec(spec, found))
}

/// The rig of a file: its first variant, if it has any.
fn rig_of_spec(mut spec: ExperimentSpec, found: &mut Diagnostics) -> RigPlan {
    if let Some(first) = spec.contenders.first() {
        let message = format!("the first of its subjects is run, `{}`", first.name);
        let note = Diagnostic::note(code::VARIANTS, message);
        found.push(note.help("`stillwell run` runs all of them, or those of `--subjects`"));
        spec.rig.subject = first.subject.clone();
        return spec.rig;
    }
    let variants = std::mem::take(&mut spec.variants);
    let Some(variant) = variants.into_iter().next() else {
        return spec.rig;
    };
    let binary = match &variant.binary {
        BinarySource::Path(path) => Some(path.clone()),
        BinarySource::AsPlanned => None,
        BinarySource::Git(_) => {
            let message = format!("variant `{}` must be built first", variant.name);
            let error = Diagnostic::error(code::BUILD_INCOMPLETE, message);
            found.push(error.help("`stillwell run` builds; a rig needs an executable"));
            None
        }
    };
    let plan = plan_of(spec, variant.name.clone(), PathBuf::new(), vec![variant]);
    let Some(variant) = plan.variants.first() else {
        return plan.rig;
    };
    RigPlan {
        subject: plan.subject_of(variant, binary.as_deref()),
        ..plan.rig
    }
}

fn plan_of(
    spec: ExperimentSpec,
    name: String,
    folder: PathBuf,
    variants: Vec<stillwell_plan::VariantPlan>,
) -> ExperimentPlan {
    ExperimentPlan {
        name,
        summary: spec.description,
        folder,
        rig: spec.rig,
        variants,
        goals: spec.goals,
        stopping: spec.stopping,
        design: spec.design,
        warmup: spec.warmup,
        confirm: spec.confirm,
        family: None,
        operating_point: spec.operating_point,
        report_links: spec.report_links,
        erratic: spec.erratic,
    }
}

/// The subject that a command line names.
fn subject_from_override(target: &TargetOverride, rig: &RigPlan) -> Option<SubjectPlan> {
    let (name, kind, ready) = match target {
        TargetOverride::FromFile => return None,
        TargetOverride::None => return Some(no_subject()),
        TargetOverride::Pid(pid) => (
            format!("pid {pid}"),
            SubjectKind::Pid(*pid),
            ReadyProbe::Immediately,
        ),
        TargetOverride::Container(container) => {
            let (name, ready) = match &container.origin {
                ContainerOrigin::Named(name) => (name, ReadyProbe::Immediately),
                ContainerOrigin::Image(image) => (&image.image, ready_probe_of(&rig.generators)),
            };
            let kind = SubjectKind::Container(Box::new(container.clone()));
            (name.clone(), kind, ready)
        }
        TargetOverride::Path(given) => {
            let program = given.program.to_string_lossy();
            let child = ChildPlan {
                program: given.program.clone(),
                arguments: given.arguments.clone(),
                environment: EnvironmentPlan {
                    inherit: given.inherit,
                    variables: given.environment.clone(),
                },
                directory: None,
                mounts: Vec::new(),
            };
            (
                name_of_program(&program, &given.arguments),
                SubjectKind::Child(child),
                ready_probe_of(&rig.generators),
            )
        }
    };
    Some(SubjectPlan {
        name,
        kind,
        ready,
        cpus: CpuChoice::Auto,
        memory: None,
        stop: STOP_DEFAULT,
    })
}
