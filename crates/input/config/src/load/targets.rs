//! Experiments with several targets.

use std::path::PathBuf;

use stillwell_plan::TargetsPlan;
use stillwell_plan::targets::{RUNS_DEFAULT, RUNS_MAX};
use stillwell_text::{Diagnostic, Diagnostics, Place, code, nearest};

use super::apply;
use super::native::NativeFile;
use super::suite::no_match;
use crate::discover::{Case, Lookup, first_prose, is_selected, matches};
use crate::files::Files;
use crate::loaded::{Loaded, NATIVE};
use crate::matrix::Cell;
use crate::overrides::TargetsOverrides;
use crate::spec::{ExperimentSpec, RateContext};

/// Returns true if a case of the absolute `paths` that `only` selects has `targets`.
pub(super) fn are_there(lookup: Lookup<'_>, paths: &[PathBuf], only: &[String]) -> bool {
    let cases = paths.iter().filter_map(|path| lookup.discover(path).ok());
    let mut cases = cases.flatten();
    cases.any(|case| {
        let file = case.native_file();
        let file = file.filter(|_| is_selected(only, &case.name));
        let file = file.and_then(|file| NativeFile::parse(file, &mut Diagnostics::new()));
        file.is_some_and(|file| file.has_key("targets"))
    })
}

/// [`Loader::targets`](super::Loader::targets) for absolute `paths`.
pub(super) fn load(
    lookup: Lookup<'_>,
    paths: &[PathBuf],
    overrides: &TargetsOverrides,
) -> Result<Loaded<Vec<TargetsPlan>>, Diagnostics> {
    let mut diagnostics = Diagnostics::new();
    let cases = selected_cases(lookup, paths, &overrides.only, &mut diagnostics);
    let mut plans = plans_of(lookup.files, &cases, overrides, &mut diagnostics);
    let known = plans.iter().flat_map(|plan| &plan.targets);
    let known: Vec<String> = known.map(|target| target.name.clone()).collect();
    for plan in &mut plans {
        select(plan, &overrides.targets);
    }
    check_names(&overrides.targets, &known, &mut diagnostics);
    plans.retain(|plan| !plan.targets.is_empty());
    if plans.is_empty() && !diagnostics.has_errors() {
        let message = "there is no experiment with `targets`";
        let error = Diagnostic::error(code::NOTHING_FOUND, message);
        diagnostics.push(error.help("`--targets` chooses among the `targets` of an experiment"));
    }
    Loaded::checked(Some(plans), NATIVE, diagnostics)
}

/// Returns the cases of `paths` that `only` selects. Reports patterns that match none.
fn selected_cases<'l>(
    lookup: Lookup<'l>,
    paths: &[PathBuf],
    only: &[String],
    diagnostics: &mut Diagnostics,
) -> Vec<Case<'l>> {
    let mut cases: Vec<Case<'l>> = Vec::new();
    for path in paths {
        match lookup.discover(path) {
            Ok(more) => cases.extend(more),
            Err(error) => diagnostics.push(*error),
        }
    }
    for pattern in only {
        if !cases.iter().any(|case| matches(pattern, &case.name)) {
            let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
            diagnostics.push(no_match(pattern, names.clone(), names));
        }
    }
    cases.retain(|case| is_selected(only, &case.name));
    cases
}

/// Returns the plans of cases, all of which must have `targets`.
fn plans_of(
    files: &dyn Files,
    cases: &[Case<'_>],
    overrides: &TargetsOverrides,
    diagnostics: &mut Diagnostics,
) -> Vec<TargetsPlan> {
    let mut plans: Vec<TargetsPlan> = Vec::new();
    let mut without_targets: Vec<&str> = Vec::new();
    for case in cases {
        let Some(file) = case.native_file() else {
            without_targets.push(&case.name);
            continue;
        };
        let Some(file) = NativeFile::parse(file, diagnostics) else {
            continue;
        };
        if !file.has_key("targets") {
            without_targets.push(&case.name);
            continue;
        }
        let Some(plan) = plan_of_case(files, case, &file, overrides, diagnostics) else {
            continue;
        };
        match plans.iter().find(|earlier| earlier.name == plan.name) {
            Some(earlier) => {
                let message = format!("two experiments are called `{}`", plan.name);
                let error = Diagnostic::error(code::SAME_NAME, message);
                let (this, earlier) = (plan.folder.display(), earlier.folder.display());
                diagnostics.push(error.help(format!("{this} and {earlier}")));
            }
            None => plans.push(plan),
        }
    }
    if let (Some(name), Some(plan)) = (without_targets.first(), plans.first()) {
        let message = format!("{name}: it has no `targets`, but `{}` has them", plan.name);
        let error = Diagnostic::error(code::VARIANTS, message);
        let error = error.help(apply::SEPARATE_COMMANDS);
        diagnostics.push(error.help("`--only` selects experiments of a folder"));
    }
    plans
}

/// Returns the plan of a case whose `file` has several targets; `None` if it cannot be read.
fn plan_of_case(
    files: &dyn Files,
    case: &Case<'_>,
    file: &NativeFile,
    overrides: &TargetsOverrides,
    diagnostics: &mut Diagnostics,
) -> Option<TargetsPlan> {
    if file.cells().is_some() {
        let message = format!("{}: a matrix and `targets` exclude each other", case.name);
        let error = Diagnostic::error(code::MATRIX, message).at(file.place());
        diagnostics.push(error.help("remove one of them"));
    }
    let (mut spec, _) = file.read(files, &Cell::default(), diagnostics)?;
    let rate_context = std::mem::take(&mut spec.rate_context);
    // Each target takes what it can where no rate is stated: there is no probe.
    apply::set_rates_and_blocks(spec.operating_point, &mut spec.run_plan, &rate_context);
    let mut plan = plan_of(spec, case, file.place(), diagnostics);
    if plan.summary.is_none() {
        let readme = files.read(&case.folder.join("README.md"));
        plan.summary = readme.ok().and_then(|text| first_prose(&text));
    }
    apply_overrides(&mut plan, overrides, &rate_context, diagnostics);
    Some(plan)
}

fn plan_of(
    spec: ExperimentSpec,
    case: &Case<'_>,
    place: Place,
    diagnostics: &mut Diagnostics,
) -> TargetsPlan {
    let run_plan = spec.run_plan;
    if run_plan.generators.is_empty() {
        let message = format!("{}: nothing is sent to its targets", case.name);
        let error = Diagnostic::error(code::NOTHING_MEASURED, message).at(place);
        diagnostics.push(error.help("list generators under `workload`"));
    }
    TargetsPlan {
        name: case.name.clone(),
        summary: spec.description,
        folder: case.folder.clone(),
        seed: run_plan.seed,
        run_plan,
        targets: spec.targets,
        runs: spec.runs.unwrap_or(RUNS_DEFAULT),
    }
}

fn apply_overrides(
    plan: &mut TargetsPlan,
    overrides: &TargetsOverrides,
    rate_context: &RateContext,
    diagnostics: &mut Diagnostics,
) {
    let (warmup, measure) = (overrides.warmup, overrides.measure);
    apply::times(&mut plan.run_plan.phases, warmup, measure, diagnostics);
    if let Some(seed) = overrides.seed {
        apply::reseed(&mut plan.run_plan, seed);
        plan.seed = seed;
    }
    if let Some(rate) = &overrides.rate {
        let generators = &mut plan.run_plan.generators;
        apply::set_rate(generators, rate, rate_context, diagnostics);
    }
    if let Some(runs) = overrides.runs {
        plan.runs = runs;
        if !(1..=RUNS_MAX).contains(&runs) {
            let message = format!("`--runs {runs}`: from 1 to {RUNS_MAX}");
            diagnostics.push(Diagnostic::error(code::OUT_OF_RANGE, message));
        }
    }
    apply::check_timeline(&plan.name, &plan.run_plan, diagnostics);
}

/// Keeps the targets that were named, in that order; all if none was.
fn select(plan: &mut TargetsPlan, names: &[String]) {
    if names.is_empty() {
        return;
    }
    let all = std::mem::take(&mut plan.targets);
    for name in names {
        let is_there = plan.targets.iter().any(|target| target.name == *name);
        let named = all.iter().find(|target| target.name == *name);
        plan.targets.extend(named.filter(|_| !is_there).cloned());
    }
}

fn check_names(names: &[String], known: &[String], diagnostics: &mut Diagnostics) {
    for name in names.iter().filter(|name| !known.contains(name)) {
        let message = format!("`--targets {name}`: no experiment has a target of that name");
        let mut error = Diagnostic::error(code::UNKNOWN_WORD, message);
        if let Some(near) = nearest(name, known.iter().map(String::as_str)) {
            error = error.help(format!("did you mean `{near}`?"));
        }
        let mut all: Vec<&str> = known.iter().map(String::as_str).collect();
        all.sort_unstable();
        all.dedup();
        diagnostics.push(error.help(format!("the targets are: {}", all.join(", "))));
    }
}
