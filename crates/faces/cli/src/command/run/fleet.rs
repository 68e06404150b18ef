//! `stillwell run --on`: each experiment runs entirely on one node.

use std::path::{Path, PathBuf};

use stillwell_cluster::{
    Attempt, Created, ExperimentNode, FleetSuite, JobStore, SuiteJob, SuiteTask,
};
use stillwell_experiment::{BinaryIdentity, ObjectStore, Results, SuiteRecord, fingerprint};
use stillwell_plan::SuitePlan;
use stillwell_run::Interrupt;
use stillwell_target::{Privileges, prepare_privileges};
use stillwell_units::Nanos;

use super::{SuiteRun, load, results_folder, store_of};
use crate::arguments::{Command, EngineName, RunArguments};
use crate::command::fleet::{
    could_not, engine_named, logs, open_store, place, print_rendered, refused, shared_line,
    task_words, typed_line, usage,
};
use crate::command::{output, select};
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;
use crate::{secrets, signals};

/// Has each experiment run on a node, and judges all of them here.
pub(super) fn run(
    arguments: &RunArguments,
    name: EngineName,
    paint: &Paint,
) -> Result<Exit, CommandError> {
    if arguments.resume {
        return Err(usage(
            "--resume needs --generators with --on; to continue this suite, repeat the command with \
             the same --job",
        ));
    }
    let upload = store_of(arguments)?;
    let plan = load(arguments, &select::overrides(&arguments.select), paint)?;
    output::check_writable(&arguments.output.output)?;
    let results = results_folder(arguments, upload.as_ref())?;
    if Results::new(results.clone()).suite().exists() {
        return Err(usage(format!(
            "{} has results of an earlier suite: name another folder",
            results.display()
        )));
    }
    let fleet = &arguments.fleet;
    let engine = engine_named(name, &fleet.job)?;
    let store = open_store(&fleet.job, "suite", true)?;
    let interrupt = Interrupt::new();
    let raised = interrupt.clone();
    let signals = signals::listen(move |signal| raised.raise(signal)).map_err(could_not)?;
    let is_quiet = arguments.output.quiet;
    let print_message = |text: &str| {
        if !is_quiet {
            Paint::print_message(text);
        }
    };
    let place = place(&fleet.job, &store);
    let words = task_words(&fleet.job, &store);
    let suite = FleetSuite {
        store: &store,
        engine: &*engine,
        program: std::env::current_exe().map_err(could_not)?,
        arguments: &words,
        logs: logs(&store)?,
        interrupt: &interrupt,
        print_message: &print_message,
    };
    print_message(&format!("job {} in {}", store.job(), place.display()));
    let job = suite.job(job_of(&plan)?).map_err(refused)?;
    let unpacked = results.join(".tasks");
    let ends = suite.conduct(&job, &unpacked).map_err(refused);
    signals.close(Nanos::SECOND);
    let ends = ends?;
    let merged = merge(&job, &ends, &unpacked, &results, &print_message)?;
    let merged = MergedSuite {
        names: merged,
        results,
        upload,
    };
    judge(arguments, plan, &job, merged, paint)
}

/// Results of all nodes in one folder.
struct MergedSuite {
    /// Names of the experiments that have some.
    names: Vec<String>,
    results: PathBuf,
    /// Store that the table of results is uploaded to.
    upload: Option<ObjectStore>,
}

/// Prints what the engine would be given.
pub(super) fn render(
    arguments: &RunArguments,
    name: EngineName,
    paint: &Paint,
) -> Result<Exit, CommandError> {
    let plan = load(arguments, &select::overrides(&arguments.select), paint)?;
    let fleet = &arguments.fleet;
    let engine = engine_named(name, &fleet.job)?;
    let store = open_store(&fleet.job, "suite", false)?;
    let suite = FleetSuite {
        store: &store,
        engine: &*engine,
        program: std::env::current_exe().map_err(could_not)?,
        arguments: &task_words(&fleet.job, &store),
        logs: logs(&store)?,
        interrupt: &Interrupt::new(),
        print_message: &|_| {},
    };
    let text = suite.render(plan.experiments.len()).map_err(refused)?;
    print_rendered(&text)
}

/// Returns the job of the command line of this process.
fn job_of(plan: &SuitePlan) -> Result<SuiteJob, CommandError> {
    let (folder, words) = shared_line()?;
    let names = plan
        .experiments
        .iter()
        .map(|experiment| experiment.name.clone());
    Ok(SuiteJob::new(
        env!("CARGO_PKG_VERSION"),
        folder,
        words,
        plan.seed.to_string(),
        names.collect(),
    ))
}

/// Puts the results of all experiments into one folder, and returns the names of those that have
/// some.
fn merge(
    job: &SuiteJob,
    ends: &[Result<ExperimentNode, String>],
    unpacked: &Path,
    results: &Path,
    print_message: &dyn Fn(&str),
) -> Result<Vec<String>, CommandError> {
    let mut whole: Option<SuiteRecord> = None;
    let mut names = Vec::new();
    let all = Results::new(results.to_path_buf());
    for (task, (name, end)) in job.experiments.iter().zip(ends).enumerate() {
        let node = match end {
            Ok(node) => node,
            Err(why) => {
                Paint::print_message(&format!("warning: {name} has no result: {why}"));
                continue;
            }
        };
        let minutes = Nanos::new(node.ended.saturating_sub(node.began).as_u64());
        print_message(&format!(
            "{name}: ran on {} for {}",
            node.node,
            stillwell_units::human::nanos(minutes)
        ));
        let part = Results::new(unpacked.join(task.to_string()));
        let record = part.record().map_err(could_not)?;
        std::fs::rename(part.experiment(name), all.experiment(name)).map_err(could_not)?;
        let text = serde_json::to_vec_pretty(node).map_err(could_not)?;
        let file = all.experiment(name).join("node.json");
        stillwell_capture::write_private(&file, text).map_err(could_not)?;
        names.push(name.clone());
        match &mut whole {
            None => whole = Some(record),
            Some(whole) => {
                warn_of_others(whole, &record);
                whole.plan.experiments.extend(record.plan.experiments);
                whole.binaries.extend(record.binaries);
            }
        }
    }
    let Some(mut whole) = whole else {
        return Err(could_not(anyhow::anyhow!("no experiment has a result")));
    };
    whole.command = secrets::command_words();
    whole.fingerprint = fingerprint(&whole.plan).map_err(could_not)?;
    let text = serde_json::to_vec_pretty(&whole).map_err(could_not)?;
    stillwell_capture::write_private(&all.suite(), text).map_err(could_not)?;
    // Nothing is left in it that the results do not have.
    drop(std::fs::remove_dir_all(unpacked));
    Ok(names)
}

/// Warns of an executable that is not the same on all nodes.
fn warn_of_others(whole: &SuiteRecord, record: &SuiteRecord) {
    for binary in &record.binaries {
        let differs = |earlier: &&BinaryIdentity| {
            earlier.path == binary.path && binary.path.is_some() && earlier.sha256 != binary.sha256
        };
        if let (Some(earlier), Some(path)) = (whole.binaries.iter().find(differs), &binary.path) {
            Paint::print_message(&format!(
                "warning: {} is not the same file on the nodes of {} and {}",
                path.display(),
                earlier.experiment,
                binary.experiment
            ));
            return;
        }
    }
}

/// Judges what the nodes have measured. This machine need not have the targets.
fn judge(
    arguments: &RunArguments,
    mut plan: SuitePlan,
    job: &SuiteJob,
    merged: MergedSuite,
    paint: &Paint,
) -> Result<Exit, CommandError> {
    if plan.seed.to_string() != job.seed {
        let seed = job.seed.parse().map_err(|_| {
            usage("the seed of the job is not valid: start it again under another --job")
        })?;
        let mut overrides = select::overrides(&arguments.select);
        overrides.seed = Some(seed);
        plan = load(arguments, &overrides, paint)?;
    }
    let all = plan.experiments.len();
    plan.experiments
        .retain(|experiment| merged.names.contains(&experiment.name));
    let is_whole = plan.experiments.len() == all;
    let run = SuiteRun {
        can_resume: false,
        resume: true,
        judge_only: true,
        ..SuiteRun::new(arguments, &plan, merged.upload.as_ref(), merged.results)
    };
    let exit = run.carry_out(paint, None)?;
    Ok(match exit {
        Exit::Held if !is_whole && !arguments.exit_zero => Exit::Invalid,
        exit => exit,
    })
}

/// Runs one task: an experiment of a suite.
pub(crate) fn be_task(
    job: &SuiteJob,
    store: &JobStore,
    attempt: &Attempt,
) -> Result<Exit, CommandError> {
    let experiment = job.experiments.get(usize::from(attempt.task));
    let experiment = experiment.ok_or_else(|| usage("the suite has no such task"))?;
    // Only a process with a single thread can enter new namespaces.
    let privileges = prepare_privileges();
    let Some(task) = SuiteTask::begin(store, attempt, &Interrupt::new()).map_err(could_not)? else {
        Paint::print_message("this experiment already has a result");
        return Ok(Exit::Held);
    };
    let results = std::env::temp_dir().join(format!("stillwell-{}", attempt.name));
    let exit = run_experiment(job, experiment, &results, &privileges);
    let committed = match &exit {
        Ok(Exit::Interrupted(signal)) => {
            task.fail(format!("interrupted by signal {signal}"));
            Ok(Created::Before)
        }
        Err(error) => {
            task.fail(format!("{error}"));
            Ok(Created::Before)
        }
        Ok(_) => task.commit(&results).map_err(could_not),
    };
    // What counts is in the store; what could not be packed is left for its user.
    if committed.is_ok() {
        drop(std::fs::remove_dir_all(&results));
    }
    Paint::print_message(match committed? {
        Created::Now => "the result is in the store",
        Created::Before => "another attempt of this task is used instead, or this one failed",
    });
    exit
}

/// Runs one experiment as the command line of the job names it.
fn run_experiment(
    job: &SuiteJob,
    experiment: &str,
    results: &Path,
    privileges: &Privileges,
) -> Result<Exit, CommandError> {
    let line = (job.folder.as_path(), job.words.as_slice());
    let (command, seed) = typed_line(&job.version, line, &job.seed)?;
    let Command::Run(mut run) = command else {
        return Err(usage(
            "the job in the store was not made by `stillwell run`",
        ));
    };
    run.fleet.on = None;
    run.results = Some(results.to_path_buf());
    run.select.changes.only = vec![experiment.to_owned()];
    run.select.changes.seed = Some(seed);
    run.output.output.clear();
    run.output.assets = None;
    super::run(
        &run,
        &Paint::new(crate::arguments::ColorWhen::Never),
        privileges,
    )
}
