//! `stillwell run --on ENGINE --generators N`: pairs of runs, of which each run is on several
//! machines.

mod plans;
mod task;

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use stillwell_capture::{RunOutcome, RunTask, make_private, write_private};
use stillwell_cluster::{
    Allocation, AllocationJob, Engine, FleetError, FleetRun, FleetRunEnd, JobStore, RunJob,
    StoreError, Submission, end_left, failed_target, job_status, store_of_allocation,
};
use stillwell_config::files::read_text;
use stillwell_experiment::{Executor, ExecutorError, Local, Results};
use stillwell_plan::experiment::BinarySource;
use stillwell_plan::stopping::DesignPlan;
use stillwell_plan::{ExperimentPlan, RunRoles, SuitePlan, TaskRole};
use stillwell_run::{Interrupt, Progress, RunRequest, record_failed};
use stillwell_scope::explain;
use stillwell_units::{Nanos, RunId, Seed};
use stillwell_verdict::RunSummary;

pub(crate) use self::task::be_task;
use super::{SuiteRun, load, named_folder, results_folder, store_of};
use crate::arguments::{EngineName, JobArguments, RunArguments};
use crate::command::fleet::{
    could_not, engine_named, logs, open_store, place, print_rendered, shared_line, task_words,
    usage,
};
use crate::command::observe::fleet::merge;
use crate::command::random::random;
use crate::command::{output, select};
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;

/// Ends a suite whose job was cancelled.
const SIGTERM: i32 = 15;
/// File with the name of the job whose tasks may still run.
const HELD: &str = "job";
/// The end of the longest name of an allocation.
const LONGEST: &str = ".999";

/// Has each run done by tasks with roles, one run after the other, and judges all of them here.
pub(super) fn run(
    arguments: &RunArguments,
    (name, generators): (EngineName, u16),
    paint: &Paint,
) -> Result<Exit, CommandError> {
    let upload = store_of(arguments)?;
    let (plan, roles) = planned(arguments, (name, generators), paint)?;
    output::check_outputs(&arguments.output)?;
    let line = shared_line()?;
    let engine = engine_named(name, &arguments.fleet.job)?;
    let named = named_folder(arguments.results.as_deref(), upload.is_some());
    let named = named.map_err(could_not)?;
    let (store, begun) = job_store(arguments, roles, (&line.0, named.as_deref()))?;
    let resume = arguments.resume || begun.is_some();
    let results = match begun {
        Some(results) => results,
        None => results_folder(arguments, upload.as_ref())?,
    };
    let mut executor = RolesExecutor {
        suite: &plan,
        roles,
        engine,
        store,
        job: &arguments.fleet.job,
        line,
        program: std::env::current_exe().map_err(could_not)?,
        folder: results.join(".tasks"),
        results: results.clone(),
        held: None,
        run: None,
        begun: 0,
    };
    let run = SuiteRun {
        resume,
        ..SuiteRun::new(arguments, &plan, upload.as_ref(), results)
    };
    let exit = run.carry_out_by(&mut executor, paint, None);
    executor.close();
    exit
}

/// Prints what the engine would be given.
pub(super) fn render(
    arguments: &RunArguments,
    (name, generators): (EngineName, u16),
    paint: &Paint,
) -> Result<Exit, CommandError> {
    let (plan, roles) = planned(arguments, (name, generators), paint)?;
    let engine = engine_named(name, &arguments.fleet.job)?;
    let store = open_store(&arguments.fleet.job, "suite", false)?;
    let start = TaskStart {
        program: &std::env::current_exe().map_err(could_not)?,
        words: &task_words(&arguments.fleet.job, &store),
        logs: &logs(&store)?,
    };
    let text = engine.render(&start.submission(&store, &plan, roles));
    print_rendered(&text.map_err(could_not)?)
}

/// Reads the suite as the command line names it, and the roles of its tasks.
fn planned(
    arguments: &RunArguments,
    (name, generators): (EngineName, u16),
    paint: &Paint,
) -> Result<(SuitePlan, RunRoles), CommandError> {
    let roles = RunRoles {
        generators,
        sinks: arguments.fleet.sinks,
    };
    let plan = load(arguments, &select::overrides(&arguments.select), paint)?;
    for experiment in &plan.experiments {
        check(experiment, roles, name)
            .map_err(|why| usage(format!("experiment `{}`: {why}", experiment.name)))?;
    }
    Ok((plan, roles))
}

/// Returns the objects of the job, and the results that an earlier session of this command has
/// begun. Without --resume, a job is refused if its command is another one or did not start in
/// `folder`, or if its results are not in the `named` folder.
fn job_store(
    arguments: &RunArguments,
    roles: RunRoles,
    (folder, named): (&Path, Option<&Path>),
) -> Result<(JobStore, Option<PathBuf>), CommandError> {
    let store = open_store(&arguments.fleet.job, "suite", true)?;
    let job = store.job();
    if store.beside(&format!("{job}{LONGEST}")).is_err() {
        return Err(usage(format!("the job name `{job}` is too long")));
    }
    let quiet = Interrupt::new();
    if arguments.resume || job_status(&store, &quiet).map_err(could_not)?.is_none() {
        return Ok((store, None));
    }
    let taken =
        |hint: &str| Err(usage(format!("the store already has a job {job}")).hint(hint.to_owned()));
    let begun = AllocationJob::read(&store, &quiet).map_err(could_not)?;
    let Some(begun) = begun.filter(|begun| begun.is_of(roles, folder)) else {
        return taken("it is of another command: choose another name for --job");
    };
    if named.is_some_and(|named| named != begun.results) || !holds_suite(&begun.results) {
        let results = begun.results.display();
        return taken(&format!(
            "its results are in {results} of the machine that started it: resume it there, or \
             choose another name for --job"
        ));
    }
    let results = begun.results;
    Ok((store, Some(results)))
}

/// Returns true if `folder` has results that can be resumed.
fn holds_suite(folder: &Path) -> bool {
    Results::new(folder.to_path_buf()).suite().exists()
}

/// Refuses an experiment whose runs cannot be on several machines.
fn check(experiment: &ExperimentPlan, roles: RunRoles, engine: EngineName) -> Result<(), String> {
    if experiment.design != DesignPlan::Paired {
        return Err(format!(
            "`design: {}` runs both variants at once on one machine: use `design: paired`",
            experiment.design.name()
        ));
    }
    experiment.run_plan.over(roles)?;
    let mut variants = experiment.variants.iter();
    let is_built = variants.find(|variant| matches!(variant.binary, BinarySource::Git(_)));
    match (is_built, engine) {
        (Some(variant), EngineName::Kubernetes) => Err(format!(
            "variant `{}` is built here, and the image of Kubernetes does not have it: give the \
             path of a program in the image",
            variant.name
        )),
        _ => Ok(()),
    }
}

/// Program, arguments and logs of tasks.
struct TaskStart<'a> {
    program: &'a Path,
    words: &'a [String],
    logs: &'a Path,
}

impl<'a> TaskStart<'a> {
    /// Returns the tasks of `roles` for all runs of `suite`.
    fn submission(
        &self,
        store: &'a JobStore,
        suite: &SuitePlan,
        roles: RunRoles,
    ) -> Submission<'a> {
        Submission {
            job: store.job(),
            tasks: roles.tasks(),
            cpus: cpus(suite),
            connects_tasks: true,
            program: self.program,
            arguments: self.words,
            folder: store.store().folder(),
            logs: self.logs,
            secrets: None,
            end_max: end_max(suite),
        }
    }
}

/// Most threads of generators that a task has in any run.
fn cpus(suite: &SuitePlan) -> u16 {
    let workers = suite.experiments.iter().map(|experiment| {
        let generators = experiment.run_plan.generators.iter();
        let workers = generators.map(|generator| generator.concurrency.workers());
        workers.fold(0, u16::saturating_add)
    });
    workers.max().unwrap_or(1).max(1)
}

/// Longest time from a request for the early end to the end of any run.
pub(super) fn end_max(suite: &SuitePlan) -> Nanos {
    let ends = suite.experiments.iter().map(|experiment| {
        let plan = &experiment.run_plan;
        plan.target.stop.grace + plan.phases.close
    });
    ends.max().unwrap_or_default()
}

/// Carries runs out by the tasks of an allocation.
struct RolesExecutor<'a> {
    suite: &'a SuitePlan,
    roles: RunRoles,
    engine: Box<dyn Engine>,
    /// Objects of the first allocation; the names of others begin with its name.
    store: JobStore,
    job: &'a JobArguments,
    /// The command line, with its folder.
    line: (PathBuf, Vec<String>),
    program: PathBuf,
    /// Folder of results.
    results: PathBuf,
    /// Folder of files that the results do not need.
    folder: PathBuf,
    held: Option<HeldMachines>,
    /// Objects of the last run.
    run: Option<JobStore>,
    /// Allocations that were begun.
    begun: u32,
}

/// The machines of the tasks.
struct HeldMachines {
    allocation: Allocation,
    /// Role, node and boot of each task.
    nodes: Vec<(TaskRole, String, String)>,
}

impl Executor for RolesExecutor<'_> {
    fn pause(&mut self, length: Nanos, interrupt: &Interrupt) {
        Local.pause(length, interrupt);
    }

    fn execute(
        &mut self,
        request: RunRequest,
        interrupt: &Interrupt,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<RunSummary, ExecutorError> {
        let progress = RefCell::new(progress);
        let show = |event: Progress| (*progress.borrow_mut())(event);
        let print = |text: &str| show(Progress::Note(text.to_owned()));
        let mut ended = self.conduct(&request, interrupt, &show);
        let is_whole = matches!(&ended, Ok(end) if end.manifest.outcome.is_completed());
        if !is_whole {
            // Its tasks have ended, or are in an unknown state.
            let held = self.held.as_ref();
            if held.is_some_and(|held| held.allocation.is_cancelled()) {
                interrupt.raise(SIGTERM);
            }
            self.release(&print);
            let run = self.run.take().filter(|_| ended.is_err());
            let target = run.and_then(|run| failed_target(&run, &request.plan, &self.unpacked()));
            ended = target.map_or(ended, Ok);
        }
        match ended {
            Ok(mut end) => {
                if let (Some(signal), false) = (interrupt.signal(), is_whole) {
                    end.manifest.outcome = RunOutcome::Interrupted { signal };
                }
                let merged = merge(end, &request.folder);
                merged.map_err(|error| ExecutorError::Merge(format!("{error:#}")))?;
            }
            Err(error) => {
                let outcome = outcome_of(error, interrupt);
                record_failed(&request, outcome)
                    .map_err(|source| ExecutorError::Conduct { source })?;
            }
        }
        // Nothing is left in it that the capture does not have.
        drop(std::fs::remove_dir_all(self.unpacked()));
        self.sum_up(&request.folder, Nanos::ZERO)
    }

    fn execute_pair(
        &mut self,
        requests: [RunRequest; 2],
        _design: DesignPlan,
        _turns: &Seed,
        interrupt: &Interrupt,
        progress: &mut dyn FnMut(usize, Progress),
    ) -> [Result<RunSummary, ExecutorError>; 2] {
        // Only runs one after the other are accepted.
        let mut place = 0..;
        requests.map(|request| {
            let run = place.next().unwrap_or_default();
            self.execute(request, interrupt, &mut |event| progress(run, event))
        })
    }
}

impl RolesExecutor<'_> {
    fn unpacked(&self) -> PathBuf {
        self.folder.join("run")
    }

    /// Makes the run of `request`, on machines that are kept for the next one.
    fn conduct(
        &mut self,
        request: &RunRequest,
        interrupt: &Interrupt,
        show: &dyn Fn(Progress),
    ) -> Result<FleetRunEnd, FleetError> {
        let print = |text: &str| show(Progress::Note(text.to_owned()));
        self.run = None;
        let is_first = request.identity.as_ref();
        let is_first = is_first.is_none_or(|identity| identity.position == 0);
        // Tasks end by themselves if they wait for long, or by a limit of their engine.
        let has_ended = self.held.as_ref().is_some_and(|held| {
            let allocation = &held.allocation;
            !allocation.is_whole(&*self.engine) && !allocation.is_cancelled()
        });
        if is_first && has_ended {
            self.release(&print);
        }
        let mut held = match self.held.take() {
            Some(held) => held,
            None => self.begin(interrupt, &print)?,
        };
        let end = self.conduct_on(&mut held, request, interrupt, show);
        self.held = Some(held);
        end
    }

    fn conduct_on(
        &mut self,
        held: &mut HeldMachines,
        request: &RunRequest,
        interrupt: &Interrupt,
        show: &dyn Fn(Progress),
    ) -> Result<FleetRunEnd, FleetError> {
        let print = |text: &str| show(Progress::Note(text.to_owned()));
        let planned = plans::shared(self.suite, request).map_err(no_run)?;
        let store = held.allocation.next_run(interrupt)?;
        self.run = Some(store.clone());
        let is_first = held.allocation.runs() == 1;
        let controller = FleetRun {
            plan: &request.plan,
            store: &store,
            engine: &*self.engine,
            program: self.program.clone(),
            arguments: &[],
            logs: PathBuf::new(),
            interrupt,
            // The others differ in nothing.
            print_message: if is_first { &print } else { &|_| {} },
            show,
        };
        let seed = request.plan.seed.to_string();
        let version = env!("CARGO_PKG_VERSION");
        let job = RunJob::new(version, self.line.clone(), seed, request.run, self.roles);
        let job = controller.job(job.planned(planned))?;
        let mut end = controller.conduct(&job, &self.unpacked())?;
        if end.manifest.outcome.is_completed() {
            let machines = end.manifest.machines.iter();
            let tasks = machines.flat_map(|machines| &machines.tasks);
            let moved = held.moved(tasks);
            end.manifest.outcome = moved.unwrap_or(RunOutcome::Completed);
        }
        Ok(end)
    }

    /// Has the engine start the tasks.
    fn begin(
        &mut self,
        interrupt: &Interrupt,
        print: &dyn Fn(&str),
    ) -> Result<HeldMachines, FleetError> {
        self.end_left()?;
        // Of a controller that was killed.
        drop(std::fs::remove_dir_all(self.unpacked()));
        loop {
            self.begun += 1;
            let store = store_of_allocation(&self.store, self.begun)?;
            let job = store.job().to_owned();
            match self.allocate(store, interrupt) {
                // An earlier session had it.
                Err(FleetError::Store(StoreError::Taken(_))) => {}
                Err(error) => return Err(error),
                Ok(allocation) => {
                    let place = place(self.job, &self.store);
                    print(&format!("job {job} in {}", place.display()));
                    return Ok(HeldMachines {
                        allocation,
                        nodes: Vec::new(),
                    });
                }
            }
        }
    }

    fn allocate(&self, store: JobStore, interrupt: &Interrupt) -> Result<Allocation, FleetError> {
        let id = RunId::from_bytes(random().map_err(no_run)?);
        let seed = self.suite.seed.to_string();
        let version = env!("CARGO_PKG_VERSION");
        let job = AllocationJob::new(version, self.line.clone(), seed, id, self.roles)
            .with_results(self.results.clone());
        let start = TaskStart {
            program: &self.program,
            words: &task_words(self.job, &store),
            logs: &logs(&store).map_err(no_run)?,
        };
        let submission = start.submission(&store, self.suite, self.roles);
        let engine = &*self.engine;
        let allocation = Allocation::begin(store.clone(), &job, engine, &submission, interrupt)?;
        let written = make_private(&self.folder)
            .and_then(|()| write_private(&self.folder.join(HELD), store.job().as_bytes()));
        match written {
            Ok(()) => Ok(allocation),
            Err(error) => {
                allocation.end(&*self.engine)?;
                Err(no_run(error))
            }
        }
    }

    /// Ends the tasks, and waits until they have ended.
    fn release(&mut self, print: &dyn Fn(&str)) {
        let Some(held) = self.held.take() else {
            return;
        };
        match held.allocation.end(&*self.engine) {
            Ok(()) => drop(std::fs::remove_file(self.folder.join(HELD))),
            Err(error) => print(&explain(&error)),
        }
    }

    /// Ends tasks whose controller is gone: two runs at once would disturb each other.
    fn end_left(&self) -> Result<(), FleetError> {
        let file = self.folder.join(HELD);
        let Ok(name) = read_text(&file) else {
            return Ok(());
        };
        end_left(&self.store.beside(&name)?)?;
        drop(std::fs::remove_file(file));
        Ok(())
    }

    fn close(mut self) {
        self.release(&|text| Paint::print_message(text));
        // Another process may use the folder of a suite that did not begin here.
        if self.begun > 0 && !self.folder.join(HELD).exists() {
            drop(std::fs::remove_dir_all(&self.folder));
        }
    }
}

impl HeldMachines {
    /// Returns the outcome of a run of which a task is on another machine than before, as that of a
    /// task which its engine has started again.
    fn moved<'t>(&mut self, tasks: impl Iterator<Item = &'t RunTask>) -> Option<RunOutcome> {
        let nodes: Vec<_> = tasks
            .filter_map(|task| {
                let result = task.result.as_ref().ok()?;
                Some((task.role, result.node.clone(), result.boot.clone()))
            })
            .collect();
        if self.nodes.is_empty() {
            self.nodes = nodes;
            return None;
        }
        let mut pairs = self.nodes.iter().zip(&nodes);
        let ((role, before, _), (_, now, _)) = pairs.find(|(before, now)| before != now)?;
        Some(RunOutcome::PartFailed {
            part: format!("{} on {now}", role.name()),
            reason: format!(
                "it was on {before} before, and runs that are compared need the same machines"
            ),
        })
    }
}

fn no_run(why: impl ToString) -> FleetError {
    FleetError::NoRun {
        part: None,
        why: why.to_string(),
    }
}

/// Returns the outcome of a run without a capture.
fn outcome_of(error: FleetError, interrupt: &Interrupt) -> RunOutcome {
    if let Some(signal) = interrupt.signal() {
        return RunOutcome::Interrupted { signal };
    }
    match error {
        FleetError::NoRun {
            part: Some(part),
            why: reason,
        } if part != TaskRole::Target.name() => RunOutcome::PartFailed { part, reason },
        FleetError::NoRun { why: reason, .. } => RunOutcome::CouldNotStart { reason },
        error => RunOutcome::CouldNotStart {
            reason: explain(&error),
        },
    }
}
