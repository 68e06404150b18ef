//! `stillwell run --on`: each experiment runs entirely on one node.

use std::path::{Path, PathBuf};

use stillwell_cluster::{
    Attempt, Created, ExperimentNode, FleetSuite, JobStore, SuiteJob, SuiteTask,
};
use stillwell_experiment::{
    BinaryIdentity, ObjectStore, Problem, ProblemKind, Results, SuiteRecord, fingerprint,
};
use stillwell_plan::{ExperimentPlan, SuitePlan};
use stillwell_run::Interrupt;
use stillwell_target::{Privileges, prepare_privileges};
use stillwell_units::{Nanos, Seed};

use super::roles::end_max;
use super::{SuitePart, SuiteRun, load, results_folder, store_of};
use crate::arguments::{Command, EngineName, RunArguments};
use crate::command::fleet::{
    could_not, engine_named, interrupted_by, logs, open_store, place, print_rendered, refused,
    shared_line, task_words, typed_line, usage,
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
            "--resume needs --generators with --on; if the command was killed, repeat it with the same \
             --job",
        ));
    }
    let upload = store_of(arguments)?;
    let plan = load(arguments, &select::overrides(&arguments.select), paint)?;
    output::check_outputs(&arguments.output)?;
    let results = results_folder(arguments, upload.as_ref())?;
    if Results::new(results.clone()).has_results() {
        return Err(usage(format!(
            "{} already contains results: name another folder",
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
        end_max: end_max(&plan),
        print_message: &print_message,
    };
    print_message(&format!("job {} in {}", store.job(), place.display()));
    let job = interrupted_by(&interrupt, suite.job(job_of(&plan)?).map_err(refused))?;
    let plan = with_seeds_of(&job, plan, arguments, paint)?;
    let unpacked = results.join(".tasks");
    let ends = suite.conduct(&job, &unpacked).map_err(refused);
    signals.close(Nanos::SECOND);
    let judged = ends.and_then(|ends| {
        let merged = MergedSuite {
            problems: merge((&job, &plan), &ends, &unpacked, &results, &print_message)?,
            results,
            upload,
        };
        judge(arguments, &plan, merged, paint)
    });
    let exit = interrupted_by(&interrupt, judged)?;
    let Some(signal) = interrupt.signal() else {
        return Ok(exit);
    };
    print_message("interrupted: run the rest under another --job, with --only NAME");
    Ok(Exit::Interrupted(signal))
}

/// Results of all nodes in one folder.
struct MergedSuite {
    /// Problems of the experiments on their nodes, or of those without results.
    problems: Vec<Problem>,
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
        end_max: end_max(&plan),
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
    let fingerprint = fingerprint_without_seeds(plan).map_err(could_not)?;
    Ok(SuiteJob::new(
        env!("CARGO_PKG_VERSION"),
        folder,
        words,
        plan.seed.to_string(),
        names.collect(),
        fingerprint,
    ))
}

/// Returns the fingerprint of `plan` apart from its seeds: a command with another --seed continues a job with the seeds
/// of the job.
fn fingerprint_without_seeds(plan: &SuitePlan) -> Result<String, serde_json::Error> {
    let seed = Seed::from_number(0);
    let mut plan = SuitePlan {
        seed,
        ..plan.clone()
    };
    for experiment in &mut plan.experiments {
        let run_plan = &mut experiment.run_plan;
        run_plan.seed = seed;
        for generator in &mut run_plan.generators {
            generator.seed = seed;
        }
    }
    fingerprint(&plan)
}

/// Returns the plan with the seeds of the job, which a command with another --seed may have made.
fn with_seeds_of(
    job: &SuiteJob,
    plan: SuitePlan,
    arguments: &RunArguments,
    paint: &Paint,
) -> Result<SuitePlan, CommandError> {
    let (run, seed) = typed_run(job)?;
    let typed = run.select.changes.seed;
    let mut overrides = select::overrides(&arguments.select);
    let plan = if overrides.seed == typed {
        plan
    } else {
        overrides.seed = typed;
        load(arguments, &overrides, paint)?
    };
    Ok(SuitePlan { seed, ..plan })
}

/// Reads the command line of the job, and the seed of its suite.
fn typed_run(job: &SuiteJob) -> Result<(Box<RunArguments>, Seed), CommandError> {
    let line = (job.folder.as_path(), job.words.as_slice());
    let (command, seed) = typed_line(&job.version, line, &job.seed)?;
    let Command::Run(run) = command else {
        return Err(usage(
            "the job in the store was not made by `stillwell run`",
        ));
    };
    Ok((run, seed))
}

/// Puts the results of all experiments into one folder, with a record of the whole plan. Returns
/// their problems.
fn merge(
    (job, plan): (&SuiteJob, &SuitePlan),
    ends: &[Result<ExperimentNode, String>],
    unpacked: &Path,
    results: &Path,
    print_message: &dyn Fn(&str),
) -> Result<Vec<Problem>, CommandError> {
    let mut whole: Option<SuiteRecord> = None;
    let mut problems = missing_problems(job, ends);
    let all = Results::new(results.to_path_buf());
    for (task, (name, end)) in job.experiments.iter().zip(ends).enumerate() {
        let Ok(node) = end else { continue };
        let minutes = Nanos::new(node.ended.saturating_sub(node.began).as_u64());
        print_message(&format!(
            "{name}: ran on {} for {}",
            node.node,
            stillwell_units::human::nanos(minutes)
        ));
        let part = Results::new(unpacked.join(task.to_string()));
        let record = part.record().map_err(could_not)?;
        problems.extend(saved_problems(name, &part)?);
        std::fs::rename(part.experiment(name), all.experiment(name)).map_err(could_not)?;
        let text = serde_json::to_vec_pretty(node).map_err(could_not)?;
        let file = all.experiment(name).join("node.json");
        stillwell_capture::write_private(&file, text).map_err(could_not)?;
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
        let reasons = missing(job, ends).map(|(name, why)| format!("{name}: {why}"));
        let reasons = reasons.collect::<Vec<_>>().join("; ");
        let error = anyhow::anyhow!("no experiment has a result: {reasons}");
        return Err(could_not(error));
    };
    whole.command = secrets::command_words();
    whole.plan.experiments = all_planned(&plan.experiments, &whole.plan.experiments);
    whole.fingerprint = fingerprint(&whole.plan).map_err(could_not)?;
    let whole = secrets::handling().json(serde_json::to_value(&whole).map_err(could_not)?);
    let text = serde_json::to_vec_pretty(&whole).map_err(could_not)?;
    stillwell_capture::write_private(&all.suite(), text).map_err(could_not)?;
    // Nothing is left in it that the results do not have.
    drop(std::fs::remove_dir_all(unpacked));
    Ok(problems)
}

/// Returns the plans of all experiments: of those with a result as their nodes have recorded them. Several experiments
/// are corrected for their planned number, also if a node is lost.
fn all_planned(planned: &[ExperimentPlan], recorded: &[ExperimentPlan]) -> Vec<ExperimentPlan> {
    let plans = planned.iter().map(|plan| {
        let mut recorded = recorded.iter();
        let of_node = recorded.find(|experiment| experiment.name == plan.name);
        of_node.unwrap_or(plan).clone()
    });
    plans.collect()
}

/// Returns the names of the experiments that have no result, each with the reason.
fn missing<'a>(
    job: &'a SuiteJob,
    ends: &'a [Result<ExperimentNode, String>],
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let ends = job.experiments.iter().zip(ends);
    ends.filter_map(|(name, end)| Some((name.as_str(), end.as_ref().err()?.as_str())))
}

/// Returns the same as problems of the suite.
fn missing_problems(job: &SuiteJob, ends: &[Result<ExperimentNode, String>]) -> Vec<Problem> {
    let missing = missing(job, ends).map(|(name, why)| Problem {
        experiment: name.to_owned(),
        kind: ProblemKind::GivenUp,
        reason: format!("it has no result: {why}"),
    });
    missing.collect()
}

/// Returns the problems that the node of an experiment has saved with its results.
fn saved_problems(name: &str, part: &Results) -> Result<Vec<Problem>, CommandError> {
    let saved = part.problems().map_err(could_not)?;
    let saved = saved.map_or_else(Vec::new, |record| record.problems);
    let problems = saved.into_iter().map(|problem| Problem {
        experiment: name.to_owned(),
        kind: match Exit::from_code(problem.exit_code) {
            Exit::CouldNotRun => ProblemKind::CouldNotStart,
            _ => ProblemKind::GivenUp,
        },
        reason: problem.reason,
    });
    Ok(problems.collect())
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
    plan: &SuitePlan,
    merged: MergedSuite,
    paint: &Paint,
) -> Result<Exit, CommandError> {
    let run = SuiteRun {
        can_resume: false,
        resume: true,
        judge_only: true,
        problems: merged.problems,
        ..SuiteRun::new(arguments, plan, merged.upload.as_ref(), merged.results)
    };
    run.carry_out(paint, None)
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
        Paint::print_message(
            "this experiment has a result, the suite has ended, or another command runs it",
        );
        return Ok(Exit::Held);
    };
    let results = std::env::temp_dir().join(format!("stillwell-{}", attempt.name));
    remove_earlier(&results).map_err(could_not)?;
    let exit = run_experiment(job, experiment, &results, &privileges);
    let has_runs = Results::new(results.clone())
        .experiment(experiment)
        .is_dir();
    let committed = match nothing_to_commit(&exit, has_runs) {
        Some(why) => {
            task.fail(why);
            Ok(Created::Before)
        }
        None => task.commit(&results).map_err(could_not),
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

/// Removes files that a task of the same name has left, if any. A new installation of an engine uses the same numbers
/// again, and results of an earlier job must not become those of this job.
fn remove_earlier(results: &Path) -> std::io::Result<()> {
    match std::fs::remove_dir_all(results) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Returns the reason why an experiment has no result. If it has runs, they are its result, also after
/// an interruption or an error: finished pairs count, and the report names it as incomplete.
fn nothing_to_commit(exit: &Result<Exit, CommandError>, has_runs: bool) -> Option<String> {
    match exit {
        _ if has_runs => None,
        Err(error) => Some(error.to_string()),
        Ok(Exit::Interrupted(signal)) => Some(format!(
            "interrupted by signal {signal} before its first run"
        )),
        Ok(_) => Some("it ended before its first run; see the log of its task".to_owned()),
    }
}

/// Runs one experiment as the command line of the job names it.
fn run_experiment(
    job: &SuiteJob,
    experiment: &str,
    results: &Path,
    privileges: &Privileges,
) -> Result<Exit, CommandError> {
    let (mut run, seed) = typed_run(job)?;
    run.fleet.on = None;
    run.results = Some(results.to_path_buf());
    run.select.changes.only = vec![experiment.to_owned()];
    run.output.output.clear();
    run.output.assets = None;
    super::run(
        &run,
        &Paint::new(crate::arguments::ColorWhen::Never),
        Some(SuitePart { privileges, seed }),
    )
}

#[cfg(test)]
mod tests {
    use stillwell_experiment::{SUITE_SCHEMA, SavedProblem};
    use stillwell_units::Secrets;
    use stillwell_verdict::synthetic;

    use super::*;

    /// They were committed as the results of the new task, since it refused to start among them.
    #[test]
    fn results_of_an_earlier_task_of_the_same_name_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let results = folder.path().join("stillwell-slurm-8-1-0");
        std::fs::create_dir_all(results.join("e1")).unwrap();
        remove_earlier(&results).unwrap();
        assert!(!results.exists());
        remove_earlier(&results).unwrap();
    }

    #[test]
    fn pairs_of_an_experiment_that_was_interrupted_are_its_result() {
        for exit in [Exit::Held, Exit::Interrupted(15), Exit::CouldNotRun] {
            assert_eq!(nothing_to_commit(&Ok(exit), true), None, "{exit:?}");
            assert!(nothing_to_commit(&Ok(exit), false).is_some(), "{exit:?}");
        }
        let failed = || Err(could_not(anyhow::anyhow!("no disk")));
        assert_eq!(nothing_to_commit(&failed(), true), None);
        let why = nothing_to_commit(&failed(), false);
        assert_eq!(why.as_deref(), Some("no disk"));
    }

    /// A suite of the experiments `a` and `b`; the node of `b` is lost.
    fn half_lost() -> (SuiteJob, [Result<ExperimentNode, String>; 2]) {
        let names = ["a", "b"].map(str::to_owned).to_vec();
        let job = SuiteJob::new(
            "1",
            PathBuf::new(),
            Vec::new(),
            "s".to_owned(),
            names,
            String::new(),
        );
        let node = ExperimentNode {
            attempt: "1".to_owned(),
            node: "n".to_owned(),
            boot: "b".to_owned(),
            began: Nanos::ZERO,
            ended: Nanos::ZERO,
        };
        (job, [Ok(node), Err("its process ended".to_owned())])
    }

    fn suite_of(names: &[&str]) -> SuitePlan {
        let plans = names.iter().map(|name| synthetic::plan(name, Vec::new()));
        SuitePlan {
            experiments: plans.collect(),
            seed: Seed::from_number(1),
        }
    }

    /// A command with another measured phase waited for the whole suite before its plan was refused.
    #[test]
    fn plans_that_differ_in_seeds_alone_have_one_fingerprint() {
        let plan = suite_of(&["a"]);
        let fingerprint_of = |plan: &SuitePlan| fingerprint_without_seeds(plan).unwrap();
        let mut seeded = plan.clone();
        seeded.seed = Seed::from_number(2);
        let run_plan = &mut seeded.experiments[0].run_plan;
        run_plan.seed = seeded.seed;
        for generator in &mut run_plan.generators {
            generator.seed = seeded.seed;
        }
        assert_ne!(seeded, plan);
        assert_eq!(fingerprint_of(&seeded), fingerprint_of(&plan));
        let mut longer = plan.clone();
        longer.experiments[0].run_plan.phases.measure += Nanos::SECOND;
        assert_ne!(fingerprint_of(&longer), fingerprint_of(&plan));
    }

    /// Makes the results of the experiment `a` in `unpacked`, and returns their record.
    fn result_of_a(unpacked: &Path) -> SuiteRecord {
        let part = Results::new(unpacked.join("0"));
        std::fs::create_dir_all(part.experiment("a")).unwrap();
        let mut record = SuiteRecord {
            schema: SUITE_SCHEMA.to_owned(),
            version: "0.1.0".to_owned(),
            command: Vec::new(),
            started_wall_millis: 1_795_269_933_000,
            fingerprint: String::new(),
            binaries: Vec::new(),
            plan: suite_of(&["a"]),
            health: Vec::new(),
        };
        // Plans that differ are refused later, so the one of the node is kept.
        record.plan.experiments[0].summary = Some("of the node".to_owned());
        std::fs::write(part.suite(), serde_json::to_vec(&record).unwrap()).unwrap();
        record
    }

    /// Verdicts were corrected for the experiments with a result alone.
    #[test]
    fn the_merged_record_has_the_whole_plan_also_if_a_node_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let results = Results::new(folder.path().to_path_buf());
        let unpacked = folder.path().join(".tasks");
        let record = result_of_a(&unpacked);
        let (job, ends) = half_lost();
        let plan = suite_of(&["a", "b"]);
        merge((&job, &plan), &ends, &unpacked, results.root(), &|_| {}).unwrap();
        let whole = results.record().unwrap().plan;
        assert_eq!(whole.experiments[0], record.plan.experiments[0]);
        assert_eq!(whole.experiments[1], plan.experiments[1]);
        assert_eq!(whole.experiments.len(), 2);
        let has_folder = |name: &str| results.experiment(name).is_dir();
        assert_eq!(["a", "b"].map(has_folder), [true, false]);
    }

    /// The reason of a node was replaced by a hint to its log, and its exit code by 4.
    #[test]
    fn problems_of_nodes_and_experiments_without_a_result_are_problems_of_the_suite() {
        let problem = |name: &str, kind, reason: &str| Problem {
            experiment: name.to_owned(),
            kind,
            reason: reason.to_owned(),
        };
        for (exit, kind) in [
            (Exit::CouldNotRun, ProblemKind::CouldNotStart),
            (Exit::Invalid, ProblemKind::GivenUp),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let unpacked = folder.path().join(".tasks");
            result_of_a(&unpacked);
            let saved = SavedProblem {
                experiment: Some("a".to_owned()),
                exit_code: exit.code(),
                reason: "a port is taken".to_owned(),
            };
            let part = Results::new(unpacked.join("0"));
            part.write_problems(Vec::new(), vec![saved], Secrets::Masked)
                .unwrap();
            let (job, ends) = half_lost();
            let plan = suite_of(&["a", "b"]);
            let problems = merge((&job, &plan), &ends, &unpacked, folder.path(), &|_| {});
            let lost = "it has no result: its process ended";
            let expected = [
                problem("b", ProblemKind::GivenUp, lost),
                problem("a", kind, "a port is taken"),
            ];
            assert_eq!(problems.unwrap(), expected);
        }
    }
}
