//! The two formats as implementations of the loader's interface.

use std::path::Path;
use std::sync::Arc;

use stillwell_config::files::Files;
use stillwell_config::foreign::{
    CaseFolder, ForeignCase, ForeignFile, ForeignFormat, Linted, has_key,
};
use stillwell_plan::{RunPlan, TargetPlan};
use stillwell_text::{Diagnostic, Diagnostics, Source, code};

use crate::file::LadingFile;
use crate::{case, experiment, file, spelling};

/// Name of lading's format.
pub(crate) const LADING: &str = "lading";

/// Both formats.
pub const FORMATS: &[&dyn ForeignFormat] = &[&LadingFiles, &SmpCases];

/// `lading.yaml`: one run.
#[derive(Clone, Copy, Debug)]
pub struct LadingFiles;

impl ForeignFormat for LadingFiles {
    fn name(&self) -> &'static str {
        LADING
    }

    fn is_single_run(&self, text: &str) -> bool {
        let keys = ["generator", "blackhole", "target_metrics", "telemetry"];
        has_key(text, &keys) && !has_key(text, &["workload", "variants"])
    }

    fn read_run(
        &self,
        file: &ForeignFile<'_>,
        has_subject: bool,
        diagnostics: &mut Diagnostics,
    ) -> Option<RunPlan> {
        let load = case::read_text(file.files, file.path, file.source, has_subject, diagnostics)?;
        Some(case::run_of(load, TargetPlan::none()))
    }

    fn lint(&self, file: &ForeignFile<'_>, diagnostics: &mut Diagnostics) -> Option<Linted> {
        let meaning = |source: &Arc<Source>| meaning_of_run(file.files, file.path, source);
        self.is_single_run(file.source.text())
            .then(|| lint(file, meaning, diagnostics))
    }
}

/// SMP's folders of cases: `experiment.yaml`, `lading/lading.yaml` and folders to show.
#[derive(Clone, Copy, Debug)]
pub struct SmpCases;

impl ForeignFormat for SmpCases {
    fn name(&self) -> &'static str {
        "smp"
    }

    fn case_files(&self) -> &'static [&'static str] {
        &case::LOADS
    }

    fn is_case(&self, folder: &CaseFolder<'_>) -> bool {
        case::is_case(folder)
    }

    fn read_case(
        &self,
        folder: &CaseFolder<'_>,
        diagnostics: &mut Diagnostics,
    ) -> Option<ForeignCase> {
        case::read_case(folder, diagnostics)
    }

    fn lint(&self, file: &ForeignFile<'_>, diagnostics: &mut Diagnostics) -> Option<Linted> {
        file.path
            .ends_with("experiment.yaml")
            .then(|| lint(file, meaning_of_experiment, diagnostics))
    }
}

/// Meaning of a text, for comparison, and its number of errors.
type Meaning = (String, usize);

fn lint(
    file: &ForeignFile<'_>,
    meaning: impl Fn(&Arc<Source>) -> Meaning,
    diagnostics: &mut Diagnostics,
) -> Linted {
    let source = file.source;
    let findings = spelling::lint(source);
    let fixed = Some(spelling::fix(source)).filter(|fixed| fixed != source.text());
    if let Some(text) = &fixed {
        let fixed = Source::new(source.path(), text.as_str());
        if meaning(source) != meaning(&fixed) {
            let message = format!(
                "{}: its meaning would change with the current spelling, so the file was not changed",
                source.path().display()
            );
            diagnostics.push(Diagnostic::error(code::UNREAD_KEY, message));
        }
    }
    Linted {
        path: file.path.to_path_buf(),
        fixable: findings
            .iter()
            .filter(|finding| finding.is_fixable())
            .count(),
        diagnostics: findings
            .into_iter()
            .map(|finding| finding.diagnostic)
            .collect(),
        fixed,
    }
}

fn meaning_of_run(files: &dyn Files, path: &Path, source: &Arc<Source>) -> Meaning {
    let named = case::named_files(files, path, source);
    let (run_plan, diagnostics) = file::read(source, false, named);
    let plan = |run_plan: LadingFile| {
        format!(
            "{:?}",
            (
                run_plan.seed,
                run_plan.generators,
                run_plan.sinks,
                run_plan.observer
            )
        )
    };
    (run_plan.map(plan).unwrap_or_default(), diagnostics.errors())
}

fn meaning_of_experiment(source: &Arc<Source>) -> Meaning {
    let (experiment, diagnostics) = experiment::read(source);
    let checks = experiment.map(|experiment| format!("{:?}", experiment.checks));
    (checks.unwrap_or_default(), diagnostics.errors())
}
