//! Paths and overrides become plans.

use std::path::{Path, PathBuf};

use stillwell_plan::experiment::BinarySource;
use stillwell_plan::placement::CpuChoice;
use stillwell_plan::target::{
    ChildPlan, ContainerOrigin, EnvironmentPlan, Places, ReadyProbe, STOP_DEFAULT,
};
use stillwell_plan::{ExperimentPlan, RunPlan, SuitePlan, TargetKind, TargetPlan, TargetsPlan};
use stillwell_text::{Diagnostic, Diagnostics, code};

use crate::bench::{self, BenchOptions, BenchTree, LoadedBench};
use crate::discover::{Case, CaseFile, CaseKind, Lookup};
use crate::files::{EntryKind, Files, absolute, read_source};
use crate::foreign::{ForeignFile, ForeignFormat, Linted};
use crate::lint;
use crate::loaded::{Loaded, NATIVE};
use crate::matrix::Cell;
use crate::overrides::{RunOverrides, SuiteOverrides, TargetOverride, TargetsOverrides};
use crate::rules::ready_probe_of;
use crate::spec::{ExperimentSpec, RateContext, name_of_program};

mod adjustable;
mod apply;
mod build_file;
mod native;
mod suite;
mod targets;

use native::NativeFile;

pub use adjustable::AdjustableRun;
pub use apply::{FileTarget, to_run as apply_to_run};

/// Reads configurations in the native format and in a table of others.
#[derive(Clone, Copy, Debug)]
pub struct Loader<'l>(Lookup<'l>);

impl<'l> Loader<'l> {
    /// Reads `files`; beside native ones those of `formats`; the first one that
    /// recognises a file or folder reads it.
    #[must_use]
    pub const fn new(files: &'l dyn Files, formats: &'l [&'l dyn ForeignFormat]) -> Self {
        Self(Lookup { files, formats })
    }

    /// Reads one observed run from `path`: a native single run or experiment (its first
    /// variant), a run of another format, or the folder of an experiment.
    ///
    /// # Errors
    /// Every mistake in the files, with its place; or that they cannot be read.
    pub fn run_plan(
        &self,
        path: &Path,
        overrides: &RunOverrides,
    ) -> Result<Loaded<RunPlan>, Diagnostics> {
        let loaded = self.adjustable_run(path, overrides)?;
        Ok(Loaded {
            plan: loaded.plan.run_plan,
            warnings: loaded.warnings,
            format: loaded.format,
        })
    }

    /// Reads one run as [`Loader::run_plan`] does, for runs at other rates than those of its file.
    ///
    /// # Errors
    /// As those of [`Loader::run_plan`].
    pub fn adjustable_run(
        &self,
        path: &Path,
        overrides: &RunOverrides,
    ) -> Result<Loaded<AdjustableRun>, Diagnostics> {
        let mut diagnostics = Diagnostics::new();
        let path = absolute(path);
        let read = if self.0.files.kind(&path) == Some(EntryKind::Folder) {
            run_of_folder(self.0, &path, overrides, &mut diagnostics)
        } else {
            run_of_file(self.0, &path, overrides, &mut diagnostics)
        };
        let Some((mut run, format, target)) = read else {
            return Loaded::checked(None, NATIVE, diagnostics);
        };
        apply::to_run(&mut run.run_plan, overrides, target, &mut diagnostics);
        run.run_plan = run.run_plan.recording(&[]);
        suite::warn_of_checks(&run.run_plan, "", &mut diagnostics);
        Loaded::checked(Some(run), format, diagnostics)
    }

    /// Reads the experiments of `paths`: files, folders of experiments,
    /// or folders somewhere below which they are.
    ///
    /// # Errors
    /// Every mistake in all files, with its place; names that are not unique; an
    /// `only` that means none of them.
    pub fn suite(
        &self,
        paths: &[PathBuf],
        overrides: &SuiteOverrides,
    ) -> Result<Loaded<SuitePlan>, Diagnostics> {
        suite::load(self.0, &absolutes(paths), overrides)
    }

    /// Returns true if the file at `path` is in the native format and compares something: it has `variants` or
    /// `targets`, valid or invalid, or `overrides` have variants. Pipes, which can be read only once, are not read.
    #[must_use]
    pub fn is_experiment(&self, path: &Path, overrides: &SuiteOverrides) -> bool {
        let path = absolute(path);
        if self.0.files.kind(&path) != Some(EntryKind::File) {
            return false;
        }
        let cases = self.0.discover(&path).unwrap_or_default();
        let are_named = overrides.baseline.is_some() || overrides.comparison.is_some();
        let mut files = cases.iter().filter_map(Case::native_file);
        files.any(|file| are_named || compares(file))
    }

    /// Returns true if an experiment of `paths` that `only` selects has `targets`, valid or invalid.
    #[must_use]
    pub fn has_targets(&self, paths: &[PathBuf], only: &[String]) -> bool {
        targets::are_there(self.0, &absolutes(paths), only)
    }

    /// Reads the experiments of `paths`, each with several targets.
    ///
    /// # Errors
    /// Every mistake in all files, with its place; an experiment without `targets`; a target that
    /// was named and that no experiment has; flags that do not fit.
    pub fn targets(
        &self,
        paths: &[PathBuf],
        overrides: &TargetsOverrides,
    ) -> Result<Loaded<Vec<TargetsPlan>>, Diagnostics> {
        targets::load(self.0, &absolutes(paths), overrides)
    }

    /// Reads the bench of the file at `path`, if there is one; `flags` go before the file.
    ///
    /// # Errors
    /// Every mistake in the file, with its place; what is missing or does not go
    /// together.
    pub fn bench(
        &self,
        path: Option<&Path>,
        flags: BenchOptions,
    ) -> Result<LoadedBench, Diagnostics> {
        bench::load_bench(self.0, path, flags)
    }

    /// Reads the folders of benches at and below `root`.
    ///
    /// # Errors
    /// Every mistake in the files around them, with its place; that there is none.
    pub fn bench_tree(&self, root: &Path) -> Result<BenchTree, Diagnostics> {
        bench::load_bench_tree(self.0, &absolute(root))
    }

    /// Looks for old spellings of other formats in `paths`: files, or folders somewhere
    /// below which they are. Files of any other kind have none.
    ///
    /// # Errors
    /// What cannot be read; and a file whose rewriting would change what it means,
    /// which would be a defect of ours.
    pub fn lint(&self, paths: &[PathBuf]) -> Result<Vec<Linted>, Diagnostics> {
        lint::lint(self.0, paths)
    }
}

fn compares(file: &CaseFile) -> bool {
    let file = NativeFile::parse(file, &mut Diagnostics::new());
    file.is_some_and(|file| file.has_key("variants") || file.has_key("targets"))
}

fn absolutes(paths: &[PathBuf]) -> Vec<PathBuf> {
    paths.iter().map(|path| absolute(path)).collect()
}

/// A run, the name of its format, and how a program takes the place of its target.
type ReadRun = (AdjustableRun, &'static str, FileTarget);

fn run_of_folder(
    lookup: Lookup<'_>,
    path: &Path,
    overrides: &RunOverrides,
    diagnostics: &mut Diagnostics,
) -> Option<ReadRun> {
    let cases = match lookup.discover(path) {
        Ok(cases) => cases,
        Err(error) => {
            diagnostics.push(*error);
            return None;
        }
    };
    let [case] = cases.as_slice() else {
        let message = format!("{} holds {} experiments", path.display(), cases.len());
        let error = Diagnostic::error(code::NOTHING_FOUND, message);
        diagnostics.push(error.help("name the folder of one of them"));
        return None;
    };
    run_of_case(lookup, case, overrides, diagnostics)
}

fn run_of_case(
    lookup: Lookup<'_>,
    case: &Case<'_>,
    overrides: &RunOverrides,
    diagnostics: &mut Diagnostics,
) -> Option<ReadRun> {
    let format = match case.kind {
        CaseKind::Foreign(format) => format,
        CaseKind::Native => {
            let file = case.file.as_ref()?;
            let run = run_of_native(lookup.files, file, &overrides.target, diagnostics)?;
            return Some((run, NATIVE, FileTarget::Whole));
        }
    };
    let read = format.read_case(&case.as_folder(lookup.files), diagnostics)?;
    if !read.has_program && matches!(overrides.target, TargetOverride::FromFile) {
        let message = format!("{}: its target names no `command`", case.name);
        let error = Diagnostic::error(code::NO_TARGET, message);
        diagnostics.push(error.help("name the program on the command line"));
    }
    let baseline = read.plan.variants.first()?;
    let target = read.plan.target_of(baseline, None);
    let run_plan = RunPlan {
        target,
        ..read.plan.run_plan
    };
    let run = AdjustableRun::new(run_plan, RateContext::default());
    Some((run, format.name(), FileTarget::Layout))
}

fn run_of_file(
    lookup: Lookup<'_>,
    path: &Path,
    overrides: &RunOverrides,
    diagnostics: &mut Diagnostics,
) -> Option<ReadRun> {
    let source = read_source(lookup.files, path);
    if let Ok(source) = &source
        && let Some(format) = lookup.format_of_run(source.text())
    {
        let file = ForeignFile {
            files: lookup.files,
            path,
            source,
        };
        let run_plan = format.read_run(&file, overrides.target.is_something(), diagnostics)?;
        let run = AdjustableRun::new(run_plan, RateContext::default());
        return Some((run, format.name(), FileTarget::Never(format.name())));
    }
    let is_experiment = path
        .file_name()
        .is_some_and(|name| name == "experiment.yaml");
    if is_experiment && let Ok(cases) = lookup.discover(path) {
        return run_of_case(lookup, cases.first()?, overrides, diagnostics);
    }
    let path = path.to_path_buf();
    let file = CaseFile { path, source };
    let run = run_of_native(lookup.files, &file, &overrides.target, diagnostics)?;
    Some((run, NATIVE, FileTarget::Whole))
}

/// Reads a native file as a run: its first cell, its first variant.
fn run_of_native(
    files: &dyn Files,
    file: &CaseFile,
    target: &TargetOverride,
    diagnostics: &mut Diagnostics,
) -> Option<AdjustableRun> {
    let file = NativeFile::parse(file, diagnostics)?;
    let none = Cell::default();
    let cells = file.cells().unwrap_or_else(|| std::slice::from_ref(&none));
    if cells.len() > 1 {
        let message = format!(
            "only the first of the {} combinations of its matrix is run",
            cells.len()
        );
        diagnostics.push(Diagnostic::note(code::MATRIX, message));
    }
    let (spec, _) = file.read(files, cells.first()?, diagnostics)?;
    let rate_context = spec.rate_context.clone();
    let run_plan = run_of_spec(spec, target, diagnostics);
    Some(AdjustableRun::new(run_plan, rate_context))
}

/// The run of a file: its first variant, if it has any. No variant is built if `target` replaces its program.
fn run_of_spec(
    mut spec: ExperimentSpec,
    target: &TargetOverride,
    diagnostics: &mut Diagnostics,
) -> RunPlan {
    let point = spec.operating_point;
    apply::set_rates_and_blocks(point, &mut spec.run_plan, &spec.rate_context);
    if let Some(first) = spec.targets.first() {
        let message = format!("only the first of its targets is run, `{}`", first.name);
        let note = Diagnostic::note(code::VARIANTS, message);
        diagnostics.push(note.help("`stillwell run` runs all of them, or those of `--targets`"));
        spec.run_plan.target = first.target.clone();
        return spec.run_plan;
    }
    let variants = std::mem::take(&mut spec.variants);
    let Some(variant) = variants.into_iter().next() else {
        return spec.run_plan.around(spec.run_plan.target.clone());
    };
    let binary = match &variant.binary {
        BinarySource::Path(path) => Some(path.clone()),
        BinarySource::AsPlanned => None,
        BinarySource::Git(_) => {
            if matches!(target, TargetOverride::FromFile) {
                let message = format!("variant `{}` must be built first", variant.name);
                let error = Diagnostic::error(code::BUILD_INCOMPLETE, message);
                let help = "`stillwell run` builds; `observe` needs an executable";
                diagnostics.push(error.help(help));
            }
            None
        }
    };
    let plan = plan_of(spec, variant.name.clone(), PathBuf::new(), vec![variant]);
    let Some(variant) = plan.variants.first() else {
        return plan.run_plan;
    };
    let target = plan.target_of(variant, binary.as_deref());
    let run_plan = plan.run_plan.around(target);
    match &variant.files {
        Some(files) => run_plan.filled(&Places::only_files(files.clone())),
        None => run_plan,
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
        run_plan: spec.run_plan.recording(&spec.goals),
        variants,
        goals: spec.goals,
        stopping: spec.stopping,
        design: spec.design,
        warmup: spec.warmup,
        max_time: spec.max_time,
        confirm: spec.confirm,
        builds: spec.builds,
        family: None,
        operating_point: spec.operating_point,
        stated_max: spec.stated_max,
        report_links: spec.report_links,
        erratic: spec.erratic,
    }
}

/// Target of a command line.
fn target_from_override(target: &TargetOverride, run_plan: &RunPlan) -> Option<TargetPlan> {
    let sinks = run_plan.sinks.iter();
    let (name, kind, ready) = match target {
        TargetOverride::FromFile => return None,
        TargetOverride::None => return Some(TargetPlan::none()),
        TargetOverride::Pid(pid) => (
            format!("pid {pid}"),
            TargetKind::Pid(*pid),
            ReadyProbe::Immediately,
        ),
        TargetOverride::Container(container) => {
            let (name, ready) = match &container.origin {
                ContainerOrigin::Named(name) => (name, ReadyProbe::Immediately),
                ContainerOrigin::Image(image) => {
                    (&image.image, ready_probe_of(&run_plan.generators, sinks))
                }
            };
            let kind = TargetKind::Container(Box::new(container.clone()));
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
                log_limit: stillwell_plan::target::LOG_LIMIT_DEFAULT,
            };
            (
                name_of_program(&program, &given.arguments),
                TargetKind::Child(child),
                ready_probe_of(&run_plan.generators, sinks),
            )
        }
    };
    Some(TargetPlan {
        name,
        kind,
        ready,
        cpus: CpuChoice::Auto,
        memory: None,
        stop: STOP_DEFAULT,
    })
}
