//! Several experiments: found, opened, chosen, read.

use std::path::{Path, PathBuf};

use stillwell_plan::{ExperimentPlan, FamilyPlan, SuitePlan};
use stillwell_text::{Diagnostic, Diagnostics, code, nearest};

use super::native::NativeFile;
use super::{Loaded, NATIVE, apply, plan_of};
use crate::discover::{Case, CaseKind, Lookup, first_prose, matches};
use crate::files::Files;
use crate::foreign::ForeignFormat;
use crate::matrix::{Cell, names_of};
use crate::overrides::LabOverrides;

/// More names than this are not listed one by one.
const NAMES_SHOWN_MAX: usize = 24;

/// [`Loader::lab`](super::Loader::lab) for absolute `paths`.
pub(super) fn load(
    lookup: Lookup<'_>,
    paths: &[PathBuf],
    overrides: &LabOverrides,
) -> Result<Loaded<SuitePlan>, Diagnostics> {
    let mut found = Diagnostics::new();
    let mut cases: Vec<Case<'_>> = Vec::new();
    for path in paths {
        match lookup.discover(path) {
            Ok(more) => cases.extend(more),
            Err(error) => found.push(*error),
        }
    }
    check_names(&mut cases, &mut found);
    let opened = cases.into_iter().map(Opened::open);
    let mut opened: Vec<Opened<'_>> = opened.collect();
    select(&mut opened, &overrides.only, &mut found);
    check_cells(&opened, &mut found);
    let format = match opened.first().map(|one| one.case.kind) {
        Some(CaseKind::Foreign(format)) => format.name(),
        Some(CaseKind::Native) | None => NATIVE,
    };
    let mut experiments = Vec::new();
    for one in opened {
        experiments.extend(one.experiments(lookup.files, overrides, &mut found));
    }
    let seed = overrides
        .seed
        .or_else(|| experiments.first().map(|experiment| experiment.rig.seed));
    let plan = seed.map(|seed| SuitePlan { experiments, seed });
    if plan.is_none() && found.is_empty() {
        let error = Diagnostic::error(code::NOTHING_FOUND, "no experiment was named");
        found.push(error.help("name a file, a folder, or a suite"));
    }
    Loaded::checked(plan, format, found)
}

/// A case of which it is known which experiments it stands for.
struct Opened<'l> {
    case: Case<'l>,
    /// Of a native case, unless it cannot be opened.
    file: Option<NativeFile>,
    /// One for each experiment, with its name.
    cells: Vec<(String, Cell)>,
    has_matrix: bool,
    /// What was wrong so far.
    found: Diagnostics,
}

impl<'l> Opened<'l> {
    fn open(case: Case<'l>) -> Self {
        let mut found = Diagnostics::new();
        let file = case.native_file();
        let file = file.and_then(|file| NativeFile::parse(file, &mut found));
        let matrix = file.as_ref().and_then(NativeFile::cells);
        let cells = match matrix {
            Some(cells) => {
                let names = names_of(&case.name, cells).into_iter();
                names.zip(cells.iter().cloned()).collect()
            }
            None => vec![(case.name.clone(), Cell::default())],
        };
        Self {
            has_matrix: matrix.is_some(),
            case,
            file,
            cells,
            found,
        }
    }

    /// Its experiments. Each is judged by its own mistakes.
    fn experiments(
        mut self,
        files: &dyn Files,
        overrides: &LabOverrides,
        found: &mut Diagnostics,
    ) -> Vec<ExperimentPlan> {
        let has_errors = self.found.has_errors();
        found.append(std::mem::take(&mut self.found));
        let mut experiments = Vec::new();
        for (name, cell) in &self.cells {
            let mut own = Diagnostics::new();
            let read = match self.case.kind {
                CaseKind::Foreign(format) => read_foreign(format, files, &self.case, &mut own),
                CaseKind::Native => self.read_native(files, name, cell, &mut own),
            };
            if let Some((mut plan, given)) = read {
                if plan.summary.is_none() {
                    let readme = files.read(&self.case.folder.join("README.md"));
                    plan.summary = readme.ok().and_then(|text| first_prose(&text));
                }
                let mut applied = Diagnostics::new();
                let is_right = !has_errors && !own.has_errors();
                apply::to_experiment(&mut plan, overrides, &given, is_right, &mut applied);
                own.append(applied);
                experiments.push(plan);
            }
            found.append(own);
        }
        experiments
    }

    fn read_native(
        &self,
        files: &dyn Files,
        name: &str,
        cell: &Cell,
        found: &mut Diagnostics,
    ) -> Option<(ExperimentPlan, apply::Given)> {
        let (mut spec, place) = self.file.as_ref()?.read(files, cell, found)?;
        let variants = std::mem::take(&mut spec.variants);
        let given = apply::Given {
            program: true,
            subject: spec.has_subject,
            variants: spec.has_variants,
            contenders: spec.has_contenders,
            place: Some(place),
        };
        let folder = self.case.folder.clone();
        let mut plan = plan_of(spec, name.to_owned(), folder, variants);
        plan.family = self.has_matrix.then(|| FamilyPlan {
            name: self.case.name.clone(),
            parameters: cell.parameters(),
        });
        Some((plan, given))
    }
}

fn read_foreign(
    format: &dyn ForeignFormat,
    files: &dyn Files,
    case: &Case<'_>,
    found: &mut Diagnostics,
) -> Option<(ExperimentPlan, apply::Given)> {
    let case = format.read_case(&case.as_folder(files), found)?;
    let given = apply::Given {
        program: case.has_program,
        subject: true,
        variants: true,
        contenders: false,
        place: None,
    };
    Some((case.plan, given))
}

fn check_names(cases: &mut Vec<Case<'_>>, found: &mut Diagnostics) {
    let mut unique: Vec<Case<'_>> = Vec::new();
    for case in cases.drain(..) {
        match unique.iter().find(|other| other.name == case.name) {
            Some(other) if other.folder != case.folder || path_of(other) != path_of(&case) => {
                report_twins(&case.name, other, &case, found);
            }
            Some(_) => {}
            None => unique.push(case),
        }
    }
    *cases = unique;
}

fn path_of<'c>(case: &'c Case<'_>) -> Option<&'c Path> {
    case.file.as_ref().map(|file| file.path.as_path())
}

/// The cell of one case may be called like another case.
fn check_cells(opened: &[Opened<'_>], found: &mut Diagnostics) {
    for (index, one) in opened.iter().enumerate() {
        for other in &opened[..index] {
            let mut names = one.cells.iter().map(|(name, _)| name);
            let twin = names.find(|name| other.cells.iter().any(|(known, _)| known == *name));
            if let Some(twin) = twin {
                report_twins(twin, &other.case, &one.case, found);
            }
        }
    }
}

fn report_twins(name: &str, one: &Case<'_>, other: &Case<'_>, found: &mut Diagnostics) {
    let message = format!("two experiments are called `{name}`");
    let error = Diagnostic::error(code::SAME_NAME, message);
    let (one, other) = (one.folder.display(), other.folder.display());
    found.push(error.help(format!("{one} and {other}")));
}

/// Keeps what `only` means: whole cases, or cells of their matrices.
fn select(opened: &mut Vec<Opened<'_>>, only: &[String], found: &mut Diagnostics) {
    if only.is_empty() {
        return;
    }
    for pattern in only {
        let is_meant = |one: &Opened<'_>| {
            let mut names = one.cells.iter().map(|(name, _)| name);
            matches(pattern, &one.case.name) || names.any(|name| matches(pattern, name))
        };
        if !opened.iter().any(is_meant) {
            found.push(no_match(pattern, opened));
        }
    }
    let is_meant = |name: &str| only.iter().any(|pattern| matches(pattern, name));
    for one in opened.iter_mut().filter(|one| !is_meant(&one.case.name)) {
        one.cells.retain(|(name, _)| is_meant(name));
    }
    opened.retain(|one| !one.cells.is_empty());
}

fn no_match(pattern: &str, opened: &[Opened<'_>]) -> Diagnostic {
    let cells = opened.iter().flat_map(|one| &one.cells);
    let cells: Vec<&str> = cells.map(|(name, _)| name.as_str()).collect();
    let cases = opened.iter().map(|one| one.case.name.as_str());
    let cases: Vec<&str> = cases.collect();
    let message = format!("`--only {pattern}` means none of the experiments");
    let mut error = Diagnostic::error(code::NOTHING_FOUND, message);
    if let Some(near) = nearest(pattern, cases.iter().chain(&cells).copied()) {
        error = error.help(format!("did you mean `{near}`?"));
    }
    let shown = if cells.len() > NAMES_SHOWN_MAX {
        cases
    } else {
        cells
    };
    error.help(format!("there are: {}", shown.join(", ")))
}
