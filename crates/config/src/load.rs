//! Paths and overrides become plans.

use std::path::{Path, PathBuf};

use stillwell_legacy::{Diagnostic, Diagnostics, Place, Reader, Span, code, ready_probe_of};
use stillwell_plan::{
    BinarySource, ChildPlan, CpuChoice, EnvironmentPlan, ExperimentPlan, LabPlan, ReadyProbe,
    RigPlan, SubjectKind, SubjectPlan,
};

use crate::discover::{Case, CaseKind, discover, first_prose, is_lading_text, matches};
use crate::files::{Disk, EntryKind, Files, read_source};
use crate::overrides::{LabOverrides, RigOverrides, TargetOverride};
use crate::smp;
use crate::spec::{
    Door, ExperimentSpec, STOP_DEFAULT, name_of_program, no_subject, read_experiment,
};

mod apply;

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

fn absolute(path: &Path) -> PathBuf {
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
        let (spec, _) = read_native(files, case.file.as_deref()?, found)?;
        return Some((rig_of_spec(spec, found), FileKind::Native));
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
        let has_subject = matches!(
            overrides.target,
            TargetOverride::Path(_) | TargetOverride::Pid(_)
        );
        let load = smp::read_load(files, path, has_subject, found)?;
        return Some((smp::rig_of(load, no_subject()), FileKind::Lading));
    }
    let is_experiment = path
        .file_name()
        .is_some_and(|name| name == "experiment.yaml");
    if is_experiment && let Ok(cases) = discover(files, path) {
        return rig_of_case(files, cases.first()?, overrides, found);
    }
    let (spec, _) = read_native(files, path, found)?;
    Some((rig_of_spec(spec, found), FileKind::Native))
}

/// Reads a native file.
fn read_native(
    files: &dyn Files,
    path: &Path,
    found: &mut Diagnostics,
) -> Option<(ExperimentSpec, Place)> {
    let source = match read_source(files, path) {
        Ok(source) => source,
        Err(error) => {
            found.push(*error);
            return None;
        }
    };
    let reader = Reader::new(source);
    let door = Door {
        reader: &reader,
        files,
        folder: path.parent().unwrap_or(path),
    };
    let root = reader.parse();
    let spec = root.and_then(|root| read_experiment(&door, &root));
    let place = reader.place(spec.as_ref().map_or_else(Span::default, |spec| spec.span));
    found.append(reader.finish());
    Some((spec?, place))
}

/// The rig of a file: its first variant, if it has any.
fn rig_of_spec(mut spec: ExperimentSpec, found: &mut Diagnostics) -> RigPlan {
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
        pairs: spec.pairs,
        operating_point: spec.operating_point,
        report_links: spec.report_links,
        erratic: spec.erratic,
    }
}

/// [`load_lab`] on any files; `paths` are absolute.
pub(crate) fn load_lab_from(
    files: &dyn Files,
    paths: &[PathBuf],
    overrides: &LabOverrides,
) -> Result<Loaded<LabPlan>, Diagnostics> {
    let mut found = Diagnostics::new();
    let mut cases: Vec<Case> = Vec::new();
    for path in paths {
        match discover(files, path) {
            Ok(more) => cases.extend(more),
            Err(error) => found.push(*error),
        }
    }
    check_names(&mut cases, &mut found);
    select(&mut cases, &overrides.only, &mut found);
    let mut experiments = Vec::new();
    for case in &cases {
        // Each case is judged by its own mistakes.
        let mut own = Diagnostics::new();
        experiments.extend(experiment_of_case(files, case, overrides, &mut own));
        found.append(own);
    }
    let kind = match cases.first().map(|case| case.kind) {
        Some(CaseKind::Smp) => FileKind::Smp,
        Some(CaseKind::Native) | None => FileKind::Native,
    };
    let seed = overrides
        .seed
        .or_else(|| experiments.first().map(|experiment| experiment.rig.seed));
    let plan = seed.map(|seed| (LabPlan { experiments, seed }, kind));
    if plan.is_none() && found.is_empty() {
        let error = Diagnostic::error(code::NOTHING_FOUND, "no experiment was named");
        found.push(error.help("name a file, a folder, or a lab"));
    }
    finish(plan, found)
}

fn check_names(cases: &mut Vec<Case>, found: &mut Diagnostics) {
    let mut unique: Vec<Case> = Vec::new();
    for case in cases.drain(..) {
        match unique.iter().find(|other| other.name == case.name) {
            Some(other) if other.folder != case.folder || other.file != case.file => {
                let message = format!("two experiments are called `{}`", case.name);
                let error = Diagnostic::error(code::SAME_NAME, message);
                found.push(error.help(format!(
                    "{} and {}",
                    other.folder.display(),
                    case.folder.display()
                )));
            }
            Some(_) => {}
            None => unique.push(case),
        }
    }
    *cases = unique;
}

fn select(cases: &mut Vec<Case>, only: &[String], found: &mut Diagnostics) {
    if only.is_empty() {
        return;
    }
    for pattern in only {
        if !cases.iter().any(|case| matches(pattern, &case.name)) {
            let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
            let message = format!("`--only {pattern}` means none of the experiments");
            let mut error = Diagnostic::error(code::NOTHING_FOUND, message);
            if let Some(near) = stillwell_legacy::nearest(pattern, names.iter().copied()) {
                error = error.help(format!("did you mean `{near}`?"));
            }
            found.push(error.help(format!("there are: {}", names.join(", "))));
        }
    }
    cases.retain(|case| only.iter().any(|pattern| matches(pattern, &case.name)));
}

fn experiment_of_case(
    files: &dyn Files,
    case: &Case,
    overrides: &LabOverrides,
    found: &mut Diagnostics,
) -> Option<ExperimentPlan> {
    let (mut plan, given) = match case.kind {
        CaseKind::Smp => {
            let case = smp::read_case(files, case, found)?;
            let given = apply::Given {
                program: case.has_program,
                subject: true,
                variants: true,
                place: None,
            };
            (case.plan, given)
        }
        CaseKind::Native => {
            let (mut spec, place) = read_native(files, case.file.as_deref()?, found)?;
            let variants = std::mem::take(&mut spec.variants);
            let given = apply::Given {
                program: true,
                subject: spec.has_subject,
                variants: spec.has_variants,
                place: Some(place),
            };
            let plan = plan_of(spec, case.name.clone(), case.folder.clone(), variants);
            (plan, given)
        }
    };
    if plan.summary.is_none() {
        let readme = files.read(&case.folder.join("README.md"));
        plan.summary = readme.ok().and_then(|text| first_prose(&text));
    }
    apply::to_experiment(&mut plan, overrides, &given, found);
    Some(plan)
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
