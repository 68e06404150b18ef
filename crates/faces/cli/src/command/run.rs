//! `stillwell run`.

pub(super) mod fleet;
pub(super) mod roles;
pub(super) mod targets;

use std::io;
use std::path::{Path, PathBuf};

use stillwell_config::{SuiteOverrides, VariantArgument};
use stillwell_experiment::{
    Executor, Local, ObjectStore, Problem, Results, SuiteError, SuiteOptions, SuiteOutcome, latest,
    run_suite,
};
use stillwell_plan::SuitePlan;
use stillwell_report::FullReport;
use stillwell_run::{Interrupt, RunTelemetry};
use stillwell_target::Privileges;
use stillwell_units::Seed;
use stillwell_verdict::exit_code;

use crate::arguments::{EngineName, Gate, LoadStatsArguments, OutputArguments, RunArguments};
use crate::command::conduct::Conductor;
use crate::command::fleet::no_engine;
use crate::command::report::runs;
use crate::command::{counters, export, output, places, privileges, problems, programs, select};
use crate::exit::{CommandError, Exit, exit_of_verdicts};
use crate::formats::loader;
use crate::paint::Paint;

/// An experiment of a suite that this process runs as a task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SuitePart<'a> {
    /// Privileges, which were prepared before this process had threads.
    pub(crate) privileges: &'a Privileges,
    /// Seed of the suite, from which the order within pairs follows. Runs have the seeds of their experiment.
    pub(crate) seed: Seed,
}

/// Runs the command. A task passes the `part` of the suite that it runs.
pub(crate) fn run(
    arguments: &RunArguments,
    paint: &Paint,
    part: Option<SuitePart<'_>>,
) -> Result<Exit, CommandError> {
    let result = start(arguments, paint, part);
    problems::keep_error(arguments.results.as_deref(), result)
}

fn start(
    arguments: &RunArguments,
    paint: &Paint,
    part: Option<SuitePart<'_>>,
) -> Result<Exit, CommandError> {
    output::check_resumed(arguments.resume)?;
    export::check(&arguments.stats)?;
    if let Some(engine) = engine_of(arguments)? {
        return match arguments.fleet.generators {
            Some(generators) => roles::run(arguments, (engine, generators), paint),
            None => fleet::run(arguments, engine, paint),
        };
    }
    if has_targets(arguments) {
        return targets::run(arguments, paint, part.map(|part| part.privileges));
    }
    let store = store_of(arguments)?;
    let overrides = select::overrides(&arguments.select);
    let mut plan = load(arguments, &overrides, paint)?;
    if let Some(part) = part {
        plan.seed = part.seed;
    }
    let prepared = part.map(|part| part.privileges.clone());
    let privileges = prepared.or_else(|| privileges::prepare_suite(&plan));
    output::check_outputs(&arguments.output)?;
    if let Some(missing) = programs::missing(&plan).into_iter().next() {
        let error = anyhow::anyhow!(missing);
        return Err(CommandError::new(Exit::CouldNotRun, error)
            .hint("install it, or correct `command` of the target"));
    }
    counters::warn(&plan);
    let results = results_folder(arguments, store.as_ref())?;
    let run = SuiteRun::new(arguments, &plan, store.as_ref(), results);
    run.carry_out(paint, privileges.as_ref())
}

/// Prints what the engine of a suite on several machines would be given.
pub(crate) fn render(arguments: &RunArguments, paint: &Paint) -> Result<Exit, CommandError> {
    let engine = engine_of(arguments)?.ok_or_else(no_engine)?;
    match arguments.fleet.generators {
        Some(generators) => roles::render(arguments, (engine, generators), paint),
        None => fleet::render(arguments, engine, paint),
    }
}

/// Returns the engine, if the suite is one for several machines.
fn engine_of(arguments: &RunArguments) -> Result<Option<EngineName>, CommandError> {
    let Some(engine) = arguments.fleet.on else {
        return Ok(None);
    };
    if has_targets(arguments) {
        let error = anyhow::anyhow!("experiments with several targets run only on this machine");
        return Err(CommandError::new(Exit::Usage, error).hint("leave out --on"));
    }
    export::check(&arguments.stats)?;
    if arguments.stats.has_exporters() {
        let error = anyhow::anyhow!("metrics are exported only by runs on this machine");
        return Err(CommandError::new(Exit::Usage, error)
            .hint("leave out --on, or --stats-sink and --stats-listen"));
    }
    Ok(Some(engine))
}

/// Returns true if the suite compares several targets instead of variants.
fn has_targets(arguments: &RunArguments) -> bool {
    let are_named = !arguments.targets.is_empty() || arguments.runs.is_some();
    are_named || loader().has_targets(&arguments.paths, &arguments.select.changes.only)
}

/// A suite to be run and reported.
pub(crate) struct SuiteRun<'a> {
    pub(crate) plan: &'a SuitePlan,
    /// Title of the report.
    pub(crate) title: String,
    /// Names of the baseline and of the comparison.
    pub(crate) labels: (String, String),
    pub(crate) results: PathBuf,
    /// Store that the table of results is uploaded to.
    pub(crate) store: Option<&'a ObjectStore>,
    /// True if the same command can continue it.
    pub(crate) can_resume: bool,
    /// True if it continues the one in `results`.
    pub(crate) resume: bool,
    /// True if nothing is run: what other machines have measured is judged.
    pub(crate) judge_only: bool,
    /// Problems of experiments on other machines.
    pub(crate) problems: Vec<Problem>,
    /// Folder of builds, if it is not the usual one.
    pub(crate) cache: Option<&'a PathBuf>,
    pub(crate) gate: Gate,
    pub(crate) exit_zero: bool,
    pub(crate) output: &'a OutputArguments,
    /// Exporters of metrics.
    pub(crate) stats: Option<&'a LoadStatsArguments>,
}

impl<'a> SuiteRun<'a> {
    /// Returns the suite of `plan` as its command line says.
    fn new(
        arguments: &'a RunArguments,
        plan: &'a SuitePlan,
        store: Option<&'a ObjectStore>,
        results: PathBuf,
    ) -> Self {
        Self {
            plan,
            title: plan_title(arguments),
            labels: labels(arguments, plan),
            results,
            store,
            can_resume: true,
            resume: arguments.resume,
            judge_only: false,
            problems: Vec::new(),
            cache: arguments.cache.as_ref(),
            gate: arguments.gate,
            exit_zero: arguments.exit_zero,
            output: &arguments.output,
            stats: Some(&arguments.stats),
        }
    }
}

impl SuiteRun<'_> {
    /// Runs the suite, reports it, and returns its exit code. Runs in the network of the host
    /// need no `privileges`.
    pub(crate) fn carry_out(
        self,
        paint: &Paint,
        privileges: Option<&Privileges>,
    ) -> Result<Exit, CommandError> {
        self.carry_out_by(&mut Local, paint, privileges)
    }

    /// The same with runs by `executor`.
    fn carry_out_by(
        self,
        executor: &mut dyn Executor,
        paint: &Paint,
        privileges: Option<&Privileges>,
    ) -> Result<Exit, CommandError> {
        let (results, quiet) = (&self.results, self.output.quiet);
        let conductor = Conductor::begin(self.cache, paint, quiet)?;
        let telemetry = self.stats.map(export::start).transpose()?.flatten();
        let options = SuiteOptions {
            judge_only: self.judge_only,
            problems: self.problems.clone(),
            metrics: telemetry.as_ref().map(RunTelemetry::metrics),
            ..conductor.options(results, self.resume)
        };
        let mut display = conductor.display();
        output::report_privileges(privileges, quiet);
        let interrupt = conductor.interrupt();
        display.begin();
        let ran = run_suite(self.plan, &options, executor, interrupt, &mut |progress| {
            display.suite(progress);
        });
        display.clear();
        export::finish(telemetry, interrupt, quiet);
        let result = self.conclude(ran, paint, interrupt);
        conductor.end();
        result
    }

    /// Reports a suite that has ended, uploads its table, and returns its exit code. `interrupt` ends the upload.
    fn conclude(
        &self,
        ran: Result<SuiteOutcome, SuiteError>,
        paint: &Paint,
        interrupt: &Interrupt,
    ) -> Result<Exit, CommandError> {
        let results = &self.results;
        let outcome = ran.map_err(|error| suite_error(error, results))?;
        let has_nothing = outcome.verdicts.is_empty() && outcome.problems.is_empty();
        let has_begun = Results::new(results.clone()).suite().exists();
        // In the builds there is nothing to report yet, and reports of an earlier session stay.
        if outcome.interrupted.is_some() && has_nothing && (self.resume || !has_begun) {
            print_interrupted(results, self.can_resume && has_begun);
            return Ok(exit_of(&outcome, self.gate));
        }
        problems::keep_outcome(results, &outcome);
        let exit = exit_of_verdicts(exit_of(&outcome, self.gate), self.exit_zero);
        let reported = self.report(paint, &outcome);
        let uploaded = self.upload(interrupt);
        output::exit_after(exit, output::with_upload(reported, uploaded), paint)
    }

    /// Uploads the table of results, if there is a store.
    fn upload(&self, interrupt: &Interrupt) -> Result<(), CommandError> {
        let Some(store) = self.store else {
            return Ok(());
        };
        let name = self.results.file_name().unwrap_or_default();
        let table =
            Results::new(self.results.clone()).write_variants_table(&name.to_string_lossy());
        let uploaded = table.map_err(anyhow::Error::from).and_then(|table| {
            let store = store.ending_with(interrupt);
            put_table(&store, &self.results, table, self.output.quiet)
        });
        uploaded.map_err(|error| upload_error(error, interrupt))
    }

    fn report(&self, paint: &Paint, outcome: &SuiteOutcome) -> Result<(), CommandError> {
        let shown = output::show_path(&self.results);
        let folder = Results::new(self.results.clone());
        let mut next = Vec::new();
        if self.can_resume && (outcome.interrupted.is_some() || !outcome.problems.is_empty()) {
            next.push(output::resume_line(&shown));
        }
        next.push(output::report_line(&shown));
        let problems = problems::shown(problems::of_outcome(outcome));
        let report = stillwell_report::SuiteReport {
            title: self.title.clone(),
            baseline: self.labels.0.clone(),
            comparison: self.labels.1.clone(),
            experiments: outcome.verdicts.clone(),
            budget: outcome.budget.clone(),
            problems: problems::with_not_run(problems, self.plan, &outcome.verdicts),
            results_folder: shown,
            command: output::command_line(),
            seed: self.plan.seed.to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            host: folder.host_facts(self.plan),
            elapsed: outcome.elapsed,
            next,
            runs: runs::read(&folder, &self.plan.experiments, &outcome.verdicts),
        };
        // Both, even if one fails: what cannot be kept can still be read.
        let report = FullReport::from(&report);
        let delivered = output::deliver(self.output, paint, &report);
        let kept = output::keep(&report, &self.results);
        delivered.and(kept)
    }
}

/// Prints that a suite was interrupted before its first run, and how to continue.
fn print_interrupted(results: &Path, can_resume: bool) {
    let again = match can_resume {
        true => output::resume_line(&output::show_path(results)),
        false => output::repeat_line(),
    };
    Paint::print_message(&format!(
        "interrupted before the first run; to continue: {again}"
    ));
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
    let mut plan = loaded.plan;
    if let Some(validity) = arguments.validity {
        for experiment in &mut plan.experiments {
            experiment.run_plan.observer.validity = validity.into();
        }
    }
    Ok(plan)
}

/// Returns the object store that --results names, if it does.
fn store_of(arguments: &RunArguments) -> Result<Option<ObjectStore>, CommandError> {
    let store = arguments.results.as_deref().map(ObjectStore::from_env);
    let store = store.transpose().map(Option::flatten);
    let store = store.map_err(|error| CommandError::new(Exit::Usage, error))?;
    if store.is_some() && arguments.resume {
        let error = anyhow::anyhow!("results in an object store cannot be resumed");
        return Err(CommandError::new(Exit::Usage, error)
            .hint("resume on the host that made them, with --results .stillwell/results/NAME"));
    }
    if store.is_none() {
        places::refuse_store(arguments.results.as_deref())
            .map_err(|error| error.hint("write s3://BUCKET/PREFIX, or give a folder"))?;
    }
    Ok(store)
}

/// Uploads `table`, the one of the results in `folder`.
fn put_table(
    store: &ObjectStore,
    folder: &Path,
    table: Vec<u8>,
    quiet: bool,
) -> anyhow::Result<()> {
    let place = store.put(folder, table)?;
    if !quiet {
        Paint::print_message(&format!("results: {place}"));
    }
    Ok(())
}

/// Returns the error of an upload; if a signal came, with its exit code.
fn upload_error(error: anyhow::Error, interrupt: &Interrupt) -> CommandError {
    let exit = interrupt.signal().map_or(Exit::Invalid, Exit::Interrupted);
    CommandError::new(exit, error)
}

/// Results folder: the one of --results, a new one, or the newest one. Beside an object store it is
/// a new one.
fn results_folder(
    arguments: &RunArguments,
    store: Option<&ObjectStore>,
) -> Result<PathBuf, CommandError> {
    let could_not = |error: anyhow::Error| CommandError::new(Exit::CouldNotRun, error);
    let named = named_folder(arguments.results.as_deref(), store.is_some());
    if let Some(folder) = named.map_err(|error| could_not(error.into()))? {
        return Ok(folder);
    }
    if !arguments.resume {
        return new_folder(&name_of(arguments));
    }
    let newest = latest(&Path::new(places::HOME).join("results"))
        .map_err(|error| could_not(error.into()))?
        .ok_or_else(|| {
            CommandError::new(
                Exit::Usage,
                anyhow::anyhow!("there are no results to resume here"),
            )
            .hint("give --results DIR, or run from the folder that contains .stillwell")
        })?;
    std::path::absolute(&newest).map_err(|error| could_not(error.into()))
}

/// Returns the folder that --results names, as an absolute path. An object store is no folder.
fn named_folder(results: Option<&Path>, is_store: bool) -> io::Result<Option<PathBuf>> {
    let folder = results.filter(|_| !is_store);
    folder.map(std::path::absolute).transpose()
}

/// Name of what is run.
fn name_of(arguments: &RunArguments) -> String {
    let first = arguments.paths.first();
    first.map_or_else(String::new, |path| places::name_of(path))
}

/// A new folder, named by the time and `name`.
pub(crate) fn new_folder(name: &str) -> Result<PathBuf, CommandError> {
    std::path::absolute(places::fresh("results", name))
        .map_err(|error| CommandError::new(Exit::CouldNotRun, error))
}

fn suite_error(error: SuiteError, results: &Path) -> CommandError {
    let about_results = !matches!(error, SuiteError::Builds { .. } | SuiteError::Design { .. });
    let usage = matches!(
        error,
        SuiteError::AlreadyThere { .. }
            | SuiteError::NothingToResume { .. }
            | SuiteError::PlanChanged { .. }
            | SuiteError::Builds { .. }
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
    let judged = Exit::from_code(exit_code(&outcome.verdicts, gate.into()));
    match (judged, outcome.most_severe()) {
        // A regression takes precedence over other problems.
        (Exit::Failed, _) => Exit::Failed,
        (_, Some(problem)) if problem.kind.is_about_starting() => Exit::CouldNotRun,
        (_, Some(_)) => Exit::Invalid,
        (judged, None) => judged,
    }
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::arguments::{Arguments, ColorWhen, Command};

    /// Parses `stillwell run absent` with these words.
    fn parsed(words: &str) -> RunArguments {
        let line = ["stillwell", "run", "absent"].into_iter();
        let line = line.chain(words.split_whitespace());
        match Arguments::try_parse_from(line).unwrap().command {
            Command::Run(run) => *run,
            command => panic!("{command:?}"),
        }
    }

    #[test]
    fn options_without_an_effect_are_refused_before_the_suite_is_loaded() {
        let paint = Paint::new(ColorWhen::Never);
        for words in ["--stats-label team=a", "--stats-flush-interval 1s"] {
            let error = start(&parsed(words), &paint, None).unwrap_err();
            assert_eq!(error.exit, Exit::Usage);
            assert!(error.to_string().contains("has no effect"), "{error}");
        }
    }

    #[test]
    fn an_address_with_one_slash_is_neither_a_store_nor_a_folder() {
        for results in ["s3:/bench/x", "s3:/", "s3:"] {
            let error = store_of(&parsed(&format!("--results {results}"))).unwrap_err();
            assert_eq!(error.exit, Exit::Usage);
            let hint = "write s3://BUCKET/PREFIX, or give a folder";
            assert_eq!(error.hint.as_deref(), Some(hint), "{results}");
        }
        for words in ["", "--results kept", "--results ./s3:/bench"] {
            assert!(store_of(&parsed(words)).unwrap().is_none(), "{words}");
        }
    }

    #[test]
    fn an_object_store_names_no_results_folder() {
        let folder = std::path::absolute("kept").unwrap();
        for (results, is_store, named) in [
            (None, false, None),
            (Some("kept"), false, Some(folder)),
            (Some("s3://b/p"), true, None),
        ] {
            let results = results.map(Path::new);
            assert_eq!(named_folder(results, is_store).unwrap(), named);
        }
    }
}
