//! `stillwell run`.

pub(super) mod subjects;

use std::path::{Path, PathBuf};

use stillwell_config::{SuiteOverrides, VariantArgument};
use stillwell_experiment::{Local, Results, SuiteError, SuiteOutcome, latest, run_suite};
use stillwell_plan::SuitePlan;
use stillwell_target::Privileges;
use stillwell_verdict::{GatePolicy, exit_code};

use crate::arguments::{Gate, RunArguments};
use crate::command::conduct::Conductor;
use crate::command::{output, places, select};
use crate::exit::{CommandError, Exit};
use crate::formats::loader;
use crate::paint::Paint;

pub(crate) fn run(
    arguments: &RunArguments,
    paint: &Paint,
    privileges: &Privileges,
) -> Result<Exit, CommandError> {
    let has_targets = !arguments.targets.is_empty() || arguments.runs.is_some();
    if has_targets || loader().has_targets(&arguments.paths) {
        return subjects::run(arguments, paint, privileges);
    }
    if arguments
        .results
        .as_ref()
        .is_some_and(|path| path.starts_with("s3:"))
    {
        let error = anyhow::anyhow!("results of variants cannot be uploaded");
        return Err(CommandError::new(Exit::Usage, error)
            .hint("`--results s3://BUCKET/PREFIX` is for experiments with `targets`"));
    }
    let overrides = select::overrides(&arguments.select);
    let plan = load(arguments, &overrides, paint)?;
    output::check_writable(&arguments.output.output)?;
    let results = results_folder(arguments)?;
    let quiet = arguments.output.quiet;
    let conductor = Conductor::begin(arguments.cache.as_ref(), paint, quiet)?;
    let options = conductor.options(&results, arguments.resume);
    let mut display = conductor.display();
    output::report_privileges(privileges, quiet);
    let interrupt = conductor.interrupt();
    let ran = run_suite(&plan, &options, &mut Local, interrupt, &mut |progress| {
        display.suite(progress);
    });
    display.clear();
    conductor.end();
    let outcome = ran.map_err(|error| suite_error(error, &results))?;
    let exit = match exit_of(&outcome, arguments.gate) {
        Exit::Held | Exit::Failed | Exit::Invalid if arguments.exit_zero => Exit::Held,
        exit => exit,
    };
    match report(arguments, paint, &plan, &outcome, &results) {
        Ok(()) => Ok(exit),
        // It has run, so it is no longer a matter of starting.
        Err(error) if exit == Exit::Held => Err(CommandError {
            exit: Exit::Invalid,
            ..error
        }),
        // What went wrong before goes first: a full disk takes no report either.
        Err(error) => {
            paint.error(&error);
            Ok(exit)
        }
    }
}

fn load(
    arguments: &RunArguments,
    overrides: &SuiteOverrides,
    paint: &Paint,
) -> Result<SuitePlan, CommandError> {
    let loaded = loader()
        .suite(&arguments.paths, overrides)
        .map_err(|diagnostics| select::refused(&diagnostics, paint))?;
    select::warn(&loaded.warnings, paint);
    Ok(loaded.plan)
}

/// Results folder: the one of --results, a new one, or the newest one.
fn results_folder(arguments: &RunArguments) -> Result<PathBuf, CommandError> {
    let could_not = |error: anyhow::Error| CommandError::new(Exit::CouldNotRun, error);
    let found = match (&arguments.results, arguments.resume) {
        (Some(folder), _) => folder.clone(),
        (None, false) => return new_folder(arguments),
        (None, true) => latest(&Path::new(places::HOME).join("results"))
            .map_err(|error| could_not(error.into()))?
            .ok_or_else(|| {
                CommandError::new(
                    Exit::Usage,
                    anyhow::anyhow!("there are no results to resume here"),
                )
                .hint("give --results DIR, or run from the folder that contains .stillwell")
            })?,
    };
    std::path::absolute(&found).map_err(|error| could_not(error.into()))
}

/// A new folder, named by the time and what is run.
fn new_folder(arguments: &RunArguments) -> Result<PathBuf, CommandError> {
    let first = arguments.paths.first();
    let name = first.map_or_else(String::new, |path| places::name_of(path));
    std::path::absolute(places::fresh("results", &name))
        .map_err(|error| CommandError::new(Exit::CouldNotRun, error))
}

fn suite_error(error: SuiteError, results: &Path) -> CommandError {
    let about_results = !matches!(error, SuiteError::Design { .. });
    let usage = matches!(
        error,
        SuiteError::AlreadyThere { .. }
            | SuiteError::NothingToResume { .. }
            | SuiteError::PlanChanged { .. }
            | SuiteError::Design { .. }
    );
    let exit = if usage {
        Exit::Usage
    } else {
        Exit::CouldNotRun
    };
    let error = CommandError::new(exit, error);
    if usage && about_results {
        error.hint(format!("the results are in {}", results.display()))
    } else {
        error
    }
}

/// Returns the exit code of the suite.
fn exit_of(outcome: &SuiteOutcome, gate: Gate) -> Exit {
    if let Some(signal) = outcome.interrupted {
        return Exit::Interrupted(signal);
    }
    let policy = match gate {
        Gate::Normal => GatePolicy::Normal,
        Gate::Strict => GatePolicy::Strict,
    };
    let judged = Exit::from_code(exit_code(&outcome.verdicts, policy));
    match (judged, outcome.most_severe()) {
        // A regression takes precedence over other problems.
        (Exit::Failed, _) => Exit::Failed,
        (_, Some(problem)) if problem.kind.is_about_starting() => Exit::CouldNotRun,
        (_, Some(_)) => Exit::Invalid,
        (judged, None) => judged,
    }
}

fn report(
    arguments: &RunArguments,
    paint: &Paint,
    plan: &SuitePlan,
    outcome: &SuiteOutcome,
    results: &Path,
) -> Result<(), CommandError> {
    let shown = output::show_path(results);
    let (baseline, comparison) = labels(arguments, plan);
    let host = Results::new(results.to_path_buf()).host_facts(plan);
    let mut next = Vec::new();
    let command = output::command_line();
    if outcome.interrupted.is_some() || !outcome.problems.is_empty() {
        next.push(output::resume_line(&shown));
    }
    next.push(format!("stillwell report {shown} --format markdown"));
    let report = stillwell_report::SuiteReport {
        title: plan_title(arguments),
        baseline,
        comparison,
        experiments: outcome.verdicts.clone(),
        budget: outcome.budget.clone(),
        results_folder: shown,
        command,
        seed: plan.seed.to_string(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        host,
        elapsed: outcome.elapsed,
        next,
    };
    // Both, even if one fails: what cannot be kept can still be read.
    let delivered = output::deliver(&report, &arguments.output, paint);
    let kept = output::keep(&report, results);
    delivered.and(kept)
}

fn plan_title(arguments: &RunArguments) -> String {
    let paths: Vec<String> = arguments
        .paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    paths.join(", ")
}

/// Names of the two sides: as in the arguments, or as in the file.
fn labels(arguments: &RunArguments, plan: &SuitePlan) -> (String, String) {
    let named = |at: usize, default: &str| {
        let names = plan.experiments.first().map(|e| e.variants.as_slice());
        names
            .and_then(|variants| variants.get(at))
            .map_or_else(|| default.to_owned(), |variant| variant.name.clone())
    };
    let side = |typed: Option<&VariantArgument>, at: usize, default: &str| {
        typed.map_or_else(|| named(at, default), ToString::to_string)
    };
    (
        side(arguments.select.baseline.as_ref(), 0, "baseline"),
        side(arguments.select.comparison.as_ref(), 1, "comparison"),
    )
}
