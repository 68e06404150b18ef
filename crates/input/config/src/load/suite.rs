//! Several experiments: found, opened, chosen, read.

use std::path::{Path, PathBuf};

use stillwell_plan::experiment::FamilyPlan;
use stillwell_plan::{ExperimentPlan, RunPlan, SuitePlan};
use stillwell_text::{Diagnostic, Diagnostics, code, nearest};

use super::build_file::RepositoryBuild;
use super::native::NativeFile;
use super::{apply, build_file, plan_of};
use crate::discover::{Case, CaseKind, Lookup, first_prose, is_selected, matches};
use crate::files::Files;
use crate::foreign::ForeignFormat;
use crate::loaded::{Loaded, NATIVE};
use crate::matrix::{Cell, names_of};
use crate::overrides::SuiteOverrides;
use crate::rules::is_built;
use crate::spec::RateContext;

/// More names than this are not listed one by one.
const NAMES_SHOWN_MAX: usize = 24;

/// [`Loader::suite`](super::Loader::suite) for absolute `paths`.
pub(super) fn load(
    lookup: Lookup<'_>,
    paths: &[PathBuf],
    overrides: &SuiteOverrides,
) -> Result<Loaded<SuitePlan>, Diagnostics> {
    let mut diagnostics = Diagnostics::new();
    let mut cases: Vec<Case<'_>> = Vec::new();
    for path in paths {
        match lookup.discover(path) {
            Ok(more) => cases.extend(more),
            Err(error) => diagnostics.push(*error),
        }
    }
    check_names(&mut cases, &mut diagnostics);
    let opened = cases.into_iter().map(Opened::open);
    let mut opened: Vec<Opened<'_>> = opened.collect();
    select(&mut opened, &overrides.only, &mut diagnostics);
    check_cells(&opened, &mut diagnostics);
    let format = match opened.first().map(|opened| opened.case.kind) {
        Some(CaseKind::Foreign(format)) => format.name(),
        Some(CaseKind::Native) | None => NATIVE,
    };
    let build = build_file::read(lookup.files, overrides, &mut diagnostics);
    let changes = (overrides, build.as_ref());
    let mut experiments = Vec::new();
    for opened in opened {
        experiments.extend(opened.experiments(lookup.files, changes, &mut diagnostics));
    }
    apply::check_commands(&experiments, overrides, &mut diagnostics);
    check_build_flags(&experiments, overrides, &mut diagnostics);
    let seed = overrides.seed.or_else(|| {
        experiments
            .first()
            .map(|experiment| experiment.run_plan.seed)
    });
    let plan = seed.map(|seed| SuitePlan { experiments, seed });
    if plan.is_none() && diagnostics.is_empty() {
        let error = Diagnostic::error(code::NOTHING_FOUND, "no experiment was named");
        diagnostics.push(error.help("name a file, a folder, or a suite"));
    }
    Loaded::checked(plan, format, diagnostics)
}

/// A case with its experiments.
struct Opened<'l> {
    case: Case<'l>,
    /// Of a native case, unless it cannot be opened.
    file: Option<NativeFile>,
    /// One for each experiment, with its name.
    cells: Vec<(String, Cell)>,
    has_matrix: bool,
    /// Mistakes so far.
    diagnostics: Diagnostics,
}

impl<'l> Opened<'l> {
    fn open(case: Case<'l>) -> Self {
        let mut diagnostics = Diagnostics::new();
        let file = case.native_file();
        let file = file.and_then(|file| NativeFile::parse(file, &mut diagnostics));
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
            diagnostics,
        }
    }

    /// Its experiments. Each is judged by its own mistakes.
    fn experiments(
        mut self,
        files: &dyn Files,
        (overrides, build): (&SuiteOverrides, Option<&RepositoryBuild>),
        diagnostics: &mut Diagnostics,
    ) -> Vec<ExperimentPlan> {
        let has_errors = self.diagnostics.has_errors();
        diagnostics.append(std::mem::take(&mut self.diagnostics));
        let mut experiments = Vec::new();
        for (name, cell) in &self.cells {
            let mut diagnostics_of_case = Diagnostics::new();
            let read = match self.case.kind {
                CaseKind::Foreign(format) => {
                    read_foreign(format, files, &self.case, &mut diagnostics_of_case)
                }
                CaseKind::Native => self.read_native(files, name, cell, &mut diagnostics_of_case),
            };
            if let Some((mut plan, mut given)) = read {
                given.build = build.cloned();
                if plan.summary.is_none() {
                    let readme = files.read(&self.case.folder.join("README.md"));
                    plan.summary = readme.ok().and_then(|text| first_prose(&text));
                }
                let mut applied = Diagnostics::new();
                let is_right = !has_errors && !diagnostics_of_case.has_errors();
                apply::to_experiment(&mut plan, overrides, &given, is_right, &mut applied);
                diagnostics_of_case.append(applied);
                plan.run_plan = plan.run_plan.recording(&plan.goals);
                let of = format!(" of {}", plan.name);
                warn_of_checks(&plan.run_plan, &of, &mut diagnostics_of_case);
                experiments.push(plan);
            }
            diagnostics.append(diagnostics_of_case);
        }
        experiments
    }

    fn read_native(
        &self,
        files: &dyn Files,
        name: &str,
        cell: &Cell,
        diagnostics: &mut Diagnostics,
    ) -> Option<(ExperimentPlan, apply::Given)> {
        let (mut spec, place) = self.file.as_ref()?.read(files, cell, diagnostics)?;
        let variants = std::mem::take(&mut spec.variants);
        let rate_context = std::mem::take(&mut spec.rate_context);
        let given = apply::Given {
            program: true,
            target: spec.has_target,
            variants: spec.has_variants,
            several_targets: spec.has_several_targets,
            place: Some(place),
            rate_context,
            workload: Some(spec.workload.clone()),
            build: None,
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

/// Reports flags about builds if nothing is built. They may be for experiments that `--only` leaves out.
fn check_build_flags(
    experiments: &[ExperimentPlan],
    overrides: &SuiteOverrides,
    diagnostics: &mut Diagnostics,
) {
    let flags = [
        ("--repo", overrides.repository.is_some()),
        ("--build", overrides.build.is_some()),
        ("--build-output", overrides.build_output.is_some()),
    ];
    let Some((flag, _)) = flags.into_iter().find(|(_, is_given)| *is_given) else {
        return;
    };
    let mut variants = experiments
        .iter()
        .flat_map(|experiment| &experiment.variants);
    if variants.any(is_built) || diagnostics.has_errors() {
        return;
    }
    let message = format!("`{flag}` has no effect: no variant comes from a revision");
    let diagnostic = match overrides.only.is_empty() {
        true => Diagnostic::error(code::NO_EFFECT, message),
        false => Diagnostic::warning(code::NO_EFFECT, message),
    };
    diagnostics
        .push(diagnostic.help("leave it out, or name a revision, e.g. `--comparison git:REV`"));
}

/// Warns of checks that fail because nothing records their series.
pub(super) fn warn_of_checks(run_plan: &RunPlan, of: &str, diagnostics: &mut Diagnostics) {
    for (check, reason) in run_plan.unmeasurable_checks() {
        let message = format!(
            "check `{}`{of} cannot be measured, so it fails: {reason}",
            check.name
        );
        let warning = Diagnostic::warning(code::CHECK_UNMEASURABLE, message);
        diagnostics.push(warning.help(format!("it bounds the series `{}`", check.series.metric)));
    }
}

fn read_foreign(
    format: &dyn ForeignFormat,
    files: &dyn Files,
    case: &Case<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<(ExperimentPlan, apply::Given)> {
    let case = format.read_case(&case.as_folder(files), diagnostics)?;
    let given = apply::Given {
        program: case.has_program,
        target: true,
        variants: true,
        several_targets: false,
        place: None,
        rate_context: RateContext::default(),
        workload: None,
        build: None,
    };
    Some((case.plan, given))
}

fn check_names(cases: &mut Vec<Case<'_>>, diagnostics: &mut Diagnostics) {
    let mut unique: Vec<Case<'_>> = Vec::new();
    for case in cases.drain(..) {
        match unique.iter().find(|earlier| earlier.name == case.name) {
            Some(earlier)
                if earlier.folder != case.folder || path_of(earlier) != path_of(&case) =>
            {
                report_twins(&case.name, earlier, &case, diagnostics);
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
fn check_cells(opened: &[Opened<'_>], diagnostics: &mut Diagnostics) {
    for (index, case) in opened.iter().enumerate() {
        for earlier in &opened[..index] {
            let mut names = case.cells.iter().map(|(name, _)| name);
            let twin = names.find(|name| earlier.cells.iter().any(|(known, _)| known == *name));
            if let Some(twin) = twin {
                report_twins(twin, &earlier.case, &case.case, diagnostics);
            }
        }
    }
}

fn report_twins(name: &str, case: &Case<'_>, earlier: &Case<'_>, diagnostics: &mut Diagnostics) {
    let message = format!("two experiments are called `{name}`");
    let error = Diagnostic::error(code::SAME_NAME, message);
    let (case, earlier) = (case.folder.display(), earlier.folder.display());
    diagnostics.push(error.help(format!("{case} and {earlier}")));
}

/// Keeps what `only` means: whole cases, or cells of their matrices.
fn select(opened: &mut Vec<Opened<'_>>, only: &[String], diagnostics: &mut Diagnostics) {
    if only.is_empty() {
        return;
    }
    for pattern in only {
        let is_meant = |case: &Opened<'_>| {
            let mut names = case.cells.iter().map(|(name, _)| name);
            matches(pattern, &case.case.name) || names.any(|name| matches(pattern, name))
        };
        if !opened.iter().any(is_meant) {
            let cases = opened.iter().map(|opened| opened.case.name.as_str());
            let cells = opened.iter().flat_map(|opened| &opened.cells);
            let cells = cells.map(|(name, _)| name.as_str());
            diagnostics.push(no_match(pattern, cases.collect(), cells.collect()));
        }
    }
    let cases = opened.iter_mut();
    for case in cases.filter(|case| !is_selected(only, &case.case.name)) {
        case.cells.retain(|(name, _)| is_selected(only, name));
    }
    opened.retain(|case| !case.cells.is_empty());
}

/// Returns the error about a `pattern` that matches neither a case nor a cell, by their names.
pub(super) fn no_match(pattern: &str, cases: Vec<&str>, cells: Vec<&str>) -> Diagnostic {
    let message = format!("`--only {pattern}` matches no experiment");
    let mut error = Diagnostic::error(code::NOTHING_FOUND, message);
    if let Some(near) = nearest(pattern, cases.iter().chain(&cells).copied()) {
        error = error.help(format!("did you mean `{near}`?"));
    }
    let shown = if cells.len() > NAMES_SHOWN_MAX {
        cases
    } else {
        cells
    };
    error.help(format!("the names are: {}", shown.join(", ")))
}
