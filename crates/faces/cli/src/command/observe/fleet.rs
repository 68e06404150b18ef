//! `stillwell observe --on`: one run on several machines.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use stillwell_capture::{Capture, merge_runs};
use stillwell_cluster::{
    Attempt, FleetRun, FleetRunEnd, JobStore, RunJob, RunTaskContext, RunTaskEnd,
};
use stillwell_plan::{RunPlan, RunRoles};
use stillwell_run::{Interrupt, Progress};
use stillwell_target::prepare_privileges;
use stillwell_units::{Nanos, RunId};
use stillwell_verdict::{RunWarning, summarise};

use super::{check_results, deliver, exit_of, keep, plan, request};
use crate::arguments::{Command, EngineName, ObserveArguments};
use crate::command::fleet::{
    could_not, engine_named, interrupted_by, logs, no_engine, open_store, place, print_rendered,
    refused, shared_line, task_words, typed_line, usage,
};
use crate::command::random::random;
use crate::command::{output, places};
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;
use crate::progress::ProgressDisplay;
use crate::{secrets, signals};

/// Has target, sinks and generators run as tasks, and reports the run as a whole.
pub(super) fn run(
    arguments: &ObserveArguments,
    name: EngineName,
    paint: &Paint,
) -> Result<Exit, CommandError> {
    places::refuse_store(arguments.results.as_deref())?;
    let (plan, roles) = planned(arguments, paint)?;
    let fleet = &arguments.fleet;
    output::check_outputs(&arguments.output)?;
    let folder = arguments
        .results
        .clone()
        .unwrap_or_else(|| places::fresh("runs", &places::name_of(&arguments.file)));
    check_results(&folder)?;
    let engine = engine_named(name, &fleet.job)?;
    let store = open_store(&fleet.job, "run", true)?;
    let interrupt = Interrupt::new();
    let raised = interrupt.clone();
    let signals = signals::listen(move |signal| raised.raise(signal)).map_err(could_not)?;
    let is_quiet = arguments.output.quiet;
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let display = ProgressDisplay::new(paint, is_quiet, &interrupt).named(&name);
    let display = RefCell::new(display);
    let show = |progress: Progress| display.borrow_mut().run(&progress);
    let print_message = |text: &str| {
        if !is_quiet {
            display.borrow().print_message(text);
        }
    };
    let place = place(&fleet.job, &store);
    let words = task_words(&fleet.job, &store);
    let controller = FleetRun {
        plan: &plan,
        store: &store,
        engine: &*engine,
        program: std::env::current_exe().map_err(could_not)?,
        arguments: &words,
        logs: logs(&store)?,
        interrupt: &interrupt,
        print_message: &print_message,
        show: &show,
    };
    print_message(&format!("job {} in {}", store.job(), place.display()));
    let job = controller.job(job_of(&plan, roles)?).map_err(refused);
    let job = interrupted_by(&interrupt, job)?;
    let tasks = folder.join(".tasks");
    let end = controller.conduct(&job, &tasks).map_err(refused);
    display.borrow_mut().clear();
    signals.close(Nanos::SECOND);
    let merged = merge(interrupted_by(&interrupt, end)?, &folder);
    // Nothing is left in it that the capture does not have.
    drop(std::fs::remove_dir_all(&tasks));
    merged.map_err(could_not)?;
    let capture = Capture::open(&folder).map_err(could_not)?;
    let summary = summarise(&capture);
    let exit = exit_of(&summary);
    let kept = keep(&summary, &folder);
    let kept = kept.map_err(|error| CommandError::new(Exit::Invalid, error));
    let delivered = deliver(arguments, summary, &capture, (&folder, paint));
    output::exit_after(exit, kept.and(delivered), paint)
}

/// Prints what the engine would be given.
pub(crate) fn render(arguments: &ObserveArguments, paint: &Paint) -> Result<Exit, CommandError> {
    let fleet = &arguments.fleet;
    let engine = engine_named(fleet.on.ok_or_else(no_engine)?, &fleet.job)?;
    let (plan, roles) = planned(arguments, paint)?;
    let store = open_store(&fleet.job, "run", false)?;
    let controller = FleetRun {
        plan: &plan,
        store: &store,
        engine: &*engine,
        program: std::env::current_exe().map_err(could_not)?,
        arguments: &task_words(&fleet.job, &store),
        logs: logs(&store)?,
        interrupt: &Interrupt::new(),
        print_message: &|_| {},
        show: &|_| {},
    };
    print_rendered(&controller.render(roles).map_err(refused)?)
}

/// Reads the plan of the run as the command line names it, and the roles of its tasks.
fn planned(
    arguments: &ObserveArguments,
    paint: &Paint,
) -> Result<(RunPlan, RunRoles), CommandError> {
    let plan = plan(arguments, paint)?;
    let roles = RunRoles {
        generators: arguments.fleet.generators,
        sinks: arguments.fleet.sinks,
    };
    plan.over(roles).map_err(usage)?;
    Ok((plan, roles))
}

/// Returns the job of the command line of this process.
fn job_of(plan: &RunPlan, roles: RunRoles) -> Result<RunJob, CommandError> {
    let line = shared_line()?;
    let run = RunId::from_bytes(random().map_err(could_not)?);
    let version = env!("CARGO_PKG_VERSION");
    let seed = plan.seed.to_string();
    Ok(RunJob::new(version, line, seed, run, roles))
}

/// Merges the captures of all tasks into `folder`. Each is judged alone, too, as on one machine.
pub(crate) fn merge(end: FleetRunEnd, folder: &Path) -> anyhow::Result<()> {
    let FleetRunEnd {
        mut manifest,
        parts,
    } = end;
    for part in &parts {
        let capture = Capture::open(&part.folder)?;
        let limits = summarise(&capture).warnings.into_iter();
        let limits = limits.filter(RunWarning::is_of_limit);
        let limits = limits.filter_map(|warning| serde_json::to_value(warning).ok());
        let tasks = manifest.machines.iter_mut().flat_map(|all| &mut all.tasks);
        if let Some(task) = tasks.into_iter().find(|task| task.role == part.role) {
            task.warnings = limits.collect();
        }
    }
    manifest.command = secrets::command_words();
    merge_runs(folder, manifest, &parts, secrets::handling())?;
    Ok(())
}

/// Runs one task: a part of a run.
pub(crate) fn be_task(
    job: &RunJob,
    store: &JobStore,
    attempt: &Attempt,
) -> Result<Exit, CommandError> {
    // Only a process with a single thread can enter new namespaces.
    output::report_privileges(Some(&prepare_privileges()), false);
    let interrupt = Interrupt::new();
    let raised = interrupt.clone();
    let signals = signals::listen(move |signal| raised.raise(signal)).map_err(could_not)?;
    let task = RunTaskContext {
        store,
        attempt,
        job,
        interrupt: &interrupt,
    };
    let end = carry_out(&task);
    signals.close(Nanos::SECOND);
    Paint::print_message(match end? {
        RunTaskEnd::Committed => "the result is in the store",
        RunTaskEnd::NotNeeded => "another attempt of this task is used instead",
        RunTaskEnd::GivenUp => "the run was cancelled before its start",
    });
    Ok(Exit::Held)
}

fn carry_out(task: &RunTaskContext<'_>) -> Result<RunTaskEnd, CommandError> {
    let (plan, file) = match typed(task.job) {
        Ok(typed) => typed,
        Err(error) => {
            task.fail(error.to_string());
            return Err(error);
        }
    };
    let folder = std::env::temp_dir().join(format!("stillwell-{}", task.attempt.name));
    let end = task.carry_out(&plan, |part, fleet| {
        let mut request = request(part, folder, &file).map_err(|error| format!("{error:#}"))?;
        request.run = task.job.run;
        request.fleet = Some(fleet);
        Ok(request)
    });
    end.map_err(could_not)
}

/// Reads the plan as the command line of the job names it.
fn typed(job: &RunJob) -> Result<(RunPlan, PathBuf), CommandError> {
    let line = (job.folder.as_path(), job.words.as_slice());
    let (command, _) = typed_line(&job.version, line, &job.seed)?;
    let Command::Observe(observe) = command else {
        return Err(usage(
            "the job in the store was not made by `stillwell observe`",
        ));
    };
    let paint = Paint::new(crate::arguments::ColorWhen::Never);
    Ok((plan(&observe, &paint)?, observe.file))
}

#[cfg(test)]
mod tests {
    use stillwell_units::Seed;

    use super::*;

    /// A generator of lading with a seed.
    const LADING: &str = "
generator:
  - tcp:
      seed: [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4, 3, 3, 8, 3, 2, 7, 9, 5]
      addr: 127.0.0.1:1
      variant: syslog5424
      bytes_per_second: 1 MiB
      maximum_prebuild_cache_size_bytes: 4 MiB
";

    /// Tasks derived it from the seed of the job.
    #[test]
    fn generators_of_tasks_have_the_seeds_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lading.yaml");
        std::fs::write(&file, LADING).unwrap();
        let words = ["stillwell", "observe", &file.to_string_lossy()].map(str::to_owned);
        let line = (std::env::current_dir().unwrap(), words.to_vec());
        let roles = RunRoles {
            generators: 1,
            sinks: 0,
        };
        let seed = Seed::from_number(1).to_string();
        let run = RunId::from_bytes([1; 16]);
        let job = RunJob::new(env!("CARGO_PKG_VERSION"), line, seed, run, roles);
        let (plan, _) = typed(&job).unwrap();
        let seed = plan.generators[0].seed.to_string();
        assert!(seed.starts_with("0301040105090206"), "{seed}");
    }
}
