//! Experiments with several subjects.

use std::path::PathBuf;

use stillwell_plan::{OperatingPoint, RUNS_DEFAULT, RUNS_MAX, RateShape, TargetsPlan};
use stillwell_text::{Diagnostic, Diagnostics, code, nearest};

use super::native::NativeFile;
use super::{Loaded, NATIVE, apply};
use crate::discover::{Case, Lookup, first_prose, matches};
use crate::files::Files;
use crate::matrix::Cell;
use crate::overrides::SubjectsOverrides;
use crate::spec::ExperimentSpec;

/// Returns true if any of the files that the absolute `paths` stand for has `subjects`.
pub(super) fn are_there(lookup: Lookup<'_>, paths: &[PathBuf]) -> bool {
    let cases = paths.iter().filter_map(|path| lookup.discover(path).ok());
    cases.flatten().any(|case| {
        case.native_file().is_some_and(|file| {
            NativeFile::parse(file, &mut Diagnostics::new())
                .is_some_and(|file| file.has_key("targets"))
        })
    })
}

/// [`Loader::subjects`](super::Loader::subjects) for absolute `paths`.
pub(super) fn load(
    lookup: Lookup<'_>,
    paths: &[PathBuf],
    overrides: &SubjectsOverrides,
) -> Result<Loaded<Vec<TargetsPlan>>, Diagnostics> {
    let mut found = Diagnostics::new();
    let mut plans: Vec<TargetsPlan> = Vec::new();
    let mut known: Vec<String> = Vec::new();
    let mut passed_over = 0_usize;
    for path in paths {
        let cases = match lookup.discover(path) {
            Ok(cases) => cases,
            Err(error) => {
                found.push(*error);
                continue;
            }
        };
        let is_meant = |case: &Case<'_>| {
            let only = &overrides.only;
            only.is_empty() || only.iter().any(|pattern| matches(pattern, &case.name))
        };
        for case in cases.into_iter().filter(is_meant) {
            match plan_of_case(lookup.files, &case, overrides, &mut found) {
                Some(plan) if plans.iter().any(|other| other.name == plan.name) => {
                    let message = format!("two experiments are called `{}`", plan.name);
                    found.push(Diagnostic::error(code::SAME_NAME, message));
                }
                Some(plan) => plans.push(plan),
                None => passed_over += 1,
            }
        }
    }
    for plan in &mut plans {
        known.extend(plan.targets.iter().map(|one| one.name.clone()));
        select(plan, &overrides.subjects);
    }
    check_names(&overrides.subjects, &known, &mut found);
    plans.retain(|plan| !plan.targets.is_empty());
    if plans.is_empty() && !found.has_errors() {
        let message = match passed_over {
            0 => "no experiment was found under that name",
            _ => "there is no experiment with `targets`",
        };
        let error = Diagnostic::error(code::NOTHING_FOUND, message);
        found.push(error.help("`--targets` chooses among the `targets` of an experiment"));
    }
    Loaded::checked(Some(plans), NATIVE, found)
}

/// The plan of a native case with subjects; `None` for any other, and where it is
/// too wrong.
fn plan_of_case(
    files: &dyn Files,
    case: &Case<'_>,
    overrides: &SubjectsOverrides,
    found: &mut Diagnostics,
) -> Option<TargetsPlan> {
    let file = NativeFile::parse(case.native_file()?, found)?;
    if !file.has_key("targets") {
        return None;
    }
    if file.cells().is_some() {
        let message = format!("{}: a matrix and `targets` exclude each other", case.name);
        found.push(Diagnostic::error(code::MATRIX, message));
    }
    let (spec, _) = file.read(files, &Cell::default(), found)?;
    let mut plan = plan_of(spec, case, found);
    if plan.summary.is_none() {
        let readme = files.read(&case.folder.join("README.md"));
        plan.summary = readme.ok().and_then(|text| first_prose(&text));
    }
    apply_overrides(&mut plan, overrides, found);
    Some(plan)
}

fn plan_of(spec: ExperimentSpec, case: &Case<'_>, found: &mut Diagnostics) -> TargetsPlan {
    let mut rig = spec.rig;
    match spec.operating_point {
        OperatingPoint::Stated => {}
        // Each takes what it can: there is no one rate that all are found at.
        OperatingPoint::Max | OperatingPoint::Probe { .. } => {
            for generator in &mut rig.generators {
                generator.rate.shape = RateShape::Max;
            }
        }
    }
    if rig.generators.is_empty() {
        let message = format!("{}: nothing is sent to its targets", case.name);
        let error = Diagnostic::error(code::NOTHING_MEASURED, message);
        found.push(error.help("list generators under `workload`"));
    }
    TargetsPlan {
        name: case.name.clone(),
        summary: spec.description,
        folder: case.folder.clone(),
        seed: rig.seed,
        rig,
        targets: spec.contenders,
        runs: spec.runs.unwrap_or(RUNS_DEFAULT),
    }
}

fn apply_overrides(plan: &mut TargetsPlan, overrides: &SubjectsOverrides, found: &mut Diagnostics) {
    let (warmup, measure) = (overrides.warmup, overrides.measure);
    apply::times(&mut plan.rig.phases, warmup, measure, found);
    if let Some(seed) = overrides.seed {
        apply::reseed(&mut plan.rig, seed);
        plan.seed = seed;
    }
    if let Some(rate) = &overrides.rate {
        apply::set_rate(&mut plan.rig.generators, rate, found);
    }
    if let Some(runs) = overrides.runs {
        plan.runs = runs;
        if !(1..=RUNS_MAX).contains(&runs) {
            let message = format!("`--runs {runs}`: from 1 to {RUNS_MAX}");
            found.push(Diagnostic::error(code::OUT_OF_RANGE, message));
        }
    }
    let phases = &plan.rig.phases;
    if plan.rig.timeline.iter().any(|step| !step.comes_in(phases)) {
        let message = format!(
            "{}: a step of its timeline comes after the {} that are measured",
            plan.name, phases.measure
        );
        found.push(Diagnostic::error(code::OUT_OF_RANGE, message));
    }
}

/// Keeps the contenders that were named, in that order; all if none was.
fn select(plan: &mut TargetsPlan, names: &[String]) {
    if names.is_empty() {
        return;
    }
    let all = std::mem::take(&mut plan.targets);
    for name in names {
        let is_there = plan.targets.iter().any(|one| one.name == *name);
        let named = all.iter().find(|one| one.name == *name);
        plan.targets.extend(named.filter(|_| !is_there).cloned());
    }
}

fn check_names(names: &[String], known: &[String], found: &mut Diagnostics) {
    for name in names.iter().filter(|name| !known.contains(name)) {
        let message = format!("`--targets {name}`: no experiment has a target of that name");
        let mut error = Diagnostic::error(code::UNKNOWN_WORD, message);
        if let Some(near) = nearest(name, known.iter().map(String::as_str)) {
            error = error.help(format!("did you mean `{near}`?"));
        }
        let mut all: Vec<&str> = known.iter().map(String::as_str).collect();
        all.sort_unstable();
        all.dedup();
        found.push(error.help(format!("there are: {}", all.join(", "))));
    }
}
