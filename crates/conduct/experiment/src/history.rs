//! Saved results, read as points of a history.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::Deserialize;
use serde_json::{Value, json};
use stillwell_capture::RunStage;
use stillwell_plan::experiment::{BinarySource, GitSource};
use stillwell_plan::goal::Scale;
use stillwell_plan::{ExperimentPlan, VariantPlan, WorkUnit};
use stillwell_verdict::RunSummary;
use stillwell_verdict::across::fits;
use stillwell_verdict::history::{HistoryPoint, Measurement, Origin, Role, condense};

use crate::files::{read_json, sha256};
use crate::results::{Results, SuiteRecord};
use crate::{BinaryIdentity, SuiteError};

/// Points of a set of results folders.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SavedHistory {
    /// One for each experiment of each suite and each variant that was compared, in the order of
    /// reading.
    pub points: Vec<HistoryPoint>,
    /// Results folders that say nothing, or nothing of some experiment or its primary goal, and why.
    pub skipped: Vec<(PathBuf, String)>,
}

impl SavedHistory {
    /// Returns the names of the experiments, each once, in order.
    #[must_use]
    pub fn experiments(&self) -> BTreeSet<&str> {
        self.points.iter().map(|p| p.experiment.as_str()).collect()
    }

    /// Removes the points of experiments that match none of `patterns`; `*` matches any text.
    /// Without patterns nothing is removed.
    pub fn keep_only(&mut self, patterns: &[String]) {
        let is_kept = |name: &str| patterns.iter().any(|pattern| fits(pattern, name));
        if !patterns.is_empty() {
            self.points.retain(|point| is_kept(&point.experiment));
        }
    }
}

/// A path does not name results.
#[derive(Debug, thiserror::Error)]
pub enum ResultsPathError {
    /// There is no such folder.
    #[error("{} does not exist", path.display())]
    Missing {
        /// The path.
        path: PathBuf,
    },
    /// The folder is neither a results folder nor contains one.
    #[error("there are no results in {}", path.display())]
    Empty {
        /// The path.
        path: PathBuf,
    },
    /// The folder cannot be read.
    #[error(transparent)]
    Read(#[from] SuiteError),
}

/// Returns the results folders that `paths` name: themselves, or the folders in them.
///
/// # Errors
/// [`ResultsPathError`] of the first path that names none.
pub fn results_at(paths: &[PathBuf]) -> Result<Vec<PathBuf>, ResultsPathError> {
    let mut folders = Vec::new();
    for path in paths {
        if !path.exists() {
            return Err(ResultsPathError::Missing { path: path.clone() });
        }
        if is_results(path) {
            folders.push(path.clone());
            continue;
        }
        let inside = results_in(path)?;
        if inside.is_empty() {
            return Err(ResultsPathError::Empty { path: path.clone() });
        }
        folders.extend(inside);
    }
    Ok(folders)
}

/// The results folders in `root`, by name; none where there is no such folder.
///
/// # Errors
/// [`SuiteError::Read`] where the folder cannot be looked into.
pub fn results_in(root: &Path) -> Result<Vec<PathBuf>, SuiteError> {
    let unreadable = |source: io::Error| SuiteError::Read {
        path: root.to_path_buf(),
        source,
    };
    let entries = match fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(error)),
    };
    let mut folders = Vec::new();
    for entry in entries {
        let folder = entry.map_err(unreadable)?.path();
        if is_results(&folder) {
            folders.push(folder);
        }
    }
    folders.sort_unstable();
    Ok(folders)
}

/// True if a suite was begun in `folder`.
#[must_use]
pub fn is_results(folder: &Path) -> bool {
    Results::new(folder.to_path_buf()).suite().is_file()
}

/// Reads the suites in these results folders that began in `span`, in milliseconds since 1970; each
/// folder once, however often it is named. A copy of a results folder is skipped.
#[must_use]
pub fn read_history(folders: &[PathBuf], span: &Range<u64>) -> SavedHistory {
    let mut history = SavedHistory::default();
    let mut seen = BTreeSet::new();
    let mut suites = BTreeMap::<_, &PathBuf>::new();
    for folder in folders {
        let place = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        if !seen.insert(place.clone()) {
            continue;
        }
        let suite = match read_suite(&place, span) {
            Ok(Some(suite)) => suite,
            Ok(None) => continue,
            Err(reason) => {
                history.skipped.push((folder.clone(), reason));
                continue;
            }
        };
        let name = place.file_name().map(ToOwned::to_owned);
        match suites.entry((name, suite.identity)) {
            Entry::Occupied(first) => {
                let reason = format!("it is a copy of {}", first.get().display());
                history.skipped.push((folder.clone(), reason));
            }
            Entry::Vacant(new) => {
                new.insert(folder);
                let describe = suite.without_verdict.into_iter();
                history
                    .skipped
                    .extend(describe.map(|why| (folder.clone(), why)));
                history.points.extend(suite.points);
            }
        }
    }
    history
}

/// Points of one suite.
struct SuitePoints {
    /// Start, in milliseconds since 1970, and SHA-256 of the plan.
    identity: (u64, String),
    points: Vec<HistoryPoint>,
    /// Experiments without a number of any goal, or of their primary goal, one sentence each.
    without_verdict: Vec<String>,
}

/// One suite; `None` where it began outside of `span`.
fn read_suite(folder: &Path, span: &Range<u64>) -> Result<Option<SuitePoints>, String> {
    let describe = |error: SuiteError| {
        let cause = std::error::Error::source(&error);
        cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
    };
    let results = Results::new(folder.to_path_buf());
    let record = results.record().map_err(describe)?;
    if !span.contains(&record.started_wall_millis) {
        return Ok(None);
    }
    let mut suite = SuitePoints {
        identity: (record.started_wall_millis, record.fingerprint.clone()),
        points: Vec::new(),
        without_verdict: Vec::new(),
    };
    for experiment in &record.plan.experiments {
        let runs = results.summaries(experiment).map_err(describe)?;
        for variant in experiment.variants.iter().skip(1) {
            let measurements = condense(experiment, &runs, &variant.name);
            if measurements.iter().all(|item| item.role == Role::Recorded) {
                let name = &experiment.name;
                suite
                    .without_verdict
                    .push(format!("`{name}` has no valid pair for any goal"));
                continue;
            }
            let note = without_primary(experiment, variant, &runs, &measurements);
            suite.without_verdict.extend(note);
            suite.points.push(HistoryPoint {
                experiment: experiment.name.clone(),
                comparison: variant.name.clone(),
                work: WorkUnit::of(&experiment.run_plan.generators),
                origin: origin(&results, &record, experiment, variant),
                measurements,
            });
        }
    }
    if suite.points.is_empty() {
        return Err("no experiment has a valid pair for any goal".to_owned());
    }
    Ok(Some(suite))
}

/// Returns a note if the primary goal of an experiment was not measured. What the machine cannot
/// count is skipped, as in a verdict; an erratic experiment has no primary goal.
fn without_primary(
    experiment: &ExperimentPlan,
    variant: &VariantPlan,
    runs: &[RunSummary],
    measurements: &[Measurement],
) -> Option<String> {
    let mut measured = measurements.iter();
    if experiment.erratic || measured.any(|item| item.role == Role::Primary) {
        return None;
    }
    let mut metrics = experiment.goals.iter().map(|goal| &goal.metric);
    let metric = metrics.find(|metric| !metric.needs_instructions())?;
    let compared = [&experiment.variants.first()?.name, &variant.name];
    let is_zero = |run: &RunSummary| {
        let identity = run.identity.as_ref();
        identity.is_some_and(|identity| compared.contains(&&identity.variant))
            && run.warning_about(metric).is_none()
            && run.value(metric).is_some_and(|value| value <= 0.0)
    };
    let reason = match metric.scale() {
        Scale::Ratio if runs.iter().any(is_zero) => ": numbers of 0 have no ratio",
        Scale::Ratio | Scale::Difference => "",
    };
    let name = &experiment.name;
    Some(format!("`{name}` has no valid pair for `{metric}`{reason}"))
}

fn origin(
    results: &Results,
    record: &SuiteRecord,
    experiment: &ExperimentPlan,
    variant: &VariantPlan,
) -> Origin {
    let identity = |variant: &VariantPlan| {
        let mut binaries = record.binaries.iter();
        binaries.find(|item| item.experiment == experiment.name && item.variant == variant.name)
    };
    let baseline = experiment.variants.first();
    let compared = identity(variant);
    let commit = compared.and_then(|item| item.revision.clone());
    let git = match &variant.binary {
        BinarySource::Git(source) => Some(source.clone()),
        BinarySource::AsPlanned | BinarySource::Path(_) => None,
    };
    let name = results.root().file_name().unwrap_or_default();
    let folder = &experiment.folder;
    Origin {
        time_millis: record.started_wall_millis,
        run: name.to_string_lossy().into_owned(),
        version: version(git.as_ref(), commit.as_deref()),
        commit,
        executable: compared.and_then(|item| item.sha256.clone()),
        anchor: baseline.and_then(|baseline| anchor(baseline, identity(baseline)?, folder)),
        machine: machine(results, experiment),
        workload: workload(experiment),
        folder: folder.clone(),
        git,
    }
}

/// The revision as typed, unless it is the commit, whole or in part.
fn version(git: Option<&GitSource>, commit: Option<&str>) -> Option<String> {
    let typed = &git?.revision;
    (!commit?.starts_with(typed.as_str())).then(|| typed.clone())
}

/// Identity of a baseline of the experiment in `folder`: the program and its start command.
fn anchor(variant: &VariantPlan, identity: &BinaryIdentity, folder: &Path) -> Option<String> {
    let program = identity
        .revision
        .clone()
        .or_else(|| identity.sha256.clone())?;
    let mut settings = json!([
        variant.command,
        variant.arguments,
        variant.environment,
        variant.files
    ]);
    replace_folder(&mut settings, folder);
    Some(format!("{program} {settings}"))
}

/// The kind of machine, by the facts of the first run that has any.
fn machine(results: &Results, experiment: &ExperimentPlan) -> Option<String> {
    #[derive(Deserialize)]
    struct Facts {
        host: Value,
    }
    let baseline = &experiment.variants.first()?.name;
    let mut pairs = results.pairs(&experiment.name).into_iter();
    let host = pairs.find_map(|(stage, pair): (RunStage, u32)| {
        let folder = results.run_of(&experiment.name, stage, pair, baseline);
        read_json::<Facts>(&folder.join("manifest.json")).ok()
    });
    let host = host?.host;
    let model = host["cpu_model"].as_str()?;
    let cpus = host["cpus"].as_array().map_or(0, Vec::len);
    let machine = host["machine"].as_str().unwrap_or_default();
    Some(format!("{machine} {model} x{cpus}").trim().to_owned())
}

/// A hash of what is sent and received and at which rate. Seeds are no part of
/// it: they change what every byte is, and not what the work is.
fn workload(experiment: &ExperimentPlan) -> String {
    let mut work = json!([
        experiment.run_plan.generators,
        experiment.run_plan.sinks,
        experiment.operating_point
    ]);
    // Services that run already: those of other addresses are other services.
    let urls = experiment.variants.iter();
    let urls: Vec<&String> = urls.filter_map(|variant| variant.url.as_ref()).collect();
    if let (Value::Array(work), false) = (&mut work, urls.is_empty()) {
        work.push(json!(urls));
    }
    remove_seeds(&mut work);
    replace_folder(&mut work, &experiment.folder);
    sha256(work.to_string().as_bytes())
}

fn remove_seeds(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("seed");
            fields.values_mut().for_each(remove_seeds);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_seeds),
        _ => {}
    }
}

/// Replaces `folder` at the start of each text by its placeholder: the same experiment may be in another folder.
fn replace_folder(value: &mut Value, folder: &Path) {
    match value {
        Value::Object(fields) => {
            let values = fields.values_mut();
            values.for_each(|value| replace_folder(value, folder));
        }
        Value::Array(items) => {
            let items = items.iter_mut();
            items.for_each(|item| replace_folder(item, folder));
        }
        Value::String(text) => {
            if let Ok(below) = Path::new(text.as_str()).strip_prefix(folder) {
                let replaced = Path::new("{experiment}").join(below);
                *text = replaced.to_string_lossy().into_owned();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests;
