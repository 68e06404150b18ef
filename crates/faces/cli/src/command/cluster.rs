//! `stillwell cluster`.

mod state;

use std::path::Path;

use stillwell_cluster::{
    AllocationJob, Attempt, Engine, GeneratorEnd, GeneratorProgress, JobStatus, JobStore,
    LocalEngine, RetryBounds, RunJob, Store, SuiteJob, allocations, cancel_job, end_left,
    engine_of, generate, job_status,
};
use stillwell_config::files::read_text;
use stillwell_run::Interrupt;
use stillwell_scope::explain;
use stillwell_units::Nanos;

pub(crate) use self::state::JobState;
use crate::arguments::{
    ClusterArguments, ClusterCommand, ClusterJobArguments, ClusterStatusArguments,
    GenerateArguments, RenderCommand, StatusForm,
};
use crate::command::fleet::could_not;
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;
use crate::{secrets, signals};

pub(crate) fn run(arguments: &ClusterArguments, paint: &Paint) -> Result<Exit, CommandError> {
    match &arguments.command {
        ClusterCommand::Status(job) => status(job),
        ClusterCommand::Logs(job) => logs(job),
        ClusterCommand::Cancel(job) => cancel(job),
        ClusterCommand::Render(render) => match &render.command {
            None => super::load::render(&render.load),
            Some(RenderCommand::Load(load)) => super::load::render(load),
            Some(RenderCommand::Observe(observe)) => super::observe::fleet::render(observe, paint),
            Some(RenderCommand::Run(run)) => super::run::render(run, paint),
        },
        ClusterCommand::Generate(job) => be_generator(job),
    }
}

fn open(arguments: &ClusterJobArguments) -> Result<JobStore, CommandError> {
    let store = Store::open(&arguments.store, false).map_err(could_not)?;
    JobStore::new(store, &arguments.job, RetryBounds::default())
        .map_err(|error| CommandError::new(Exit::Usage, error))
}

/// Returns the objects of a job, and those of its earlier tasks: a suite may have had others.
fn open_job(arguments: &ClusterJobArguments) -> Result<(JobStore, Vec<JobStore>), CommandError> {
    allocations(&open(arguments)?, &Interrupt::new()).map_err(could_not)
}

fn status_of(store: &JobStore) -> Result<JobStatus, CommandError> {
    let status = job_status(store, &Interrupt::new()).map_err(could_not)?;
    status.ok_or_else(|| could_not(anyhow::anyhow!("the store has no job {}", store.job())))
}

fn status(arguments: &ClusterStatusArguments) -> Result<Exit, CommandError> {
    let (store, _) = open_job(&arguments.job)?;
    let state = JobState::of(store.job(), &status_of(&store)?);
    let text = match arguments.format {
        StatusForm::Text => state.text(),
        StatusForm::Json => serde_json::to_string_pretty(&state).map_err(could_not)? + "\n",
    };
    Paint::data(&text).map_err(could_not)?;
    Ok(Exit::Held)
}

/// Returns the states of the newest jobs of a store.
pub(crate) fn states(place: &Path) -> Result<Vec<JobState>, CommandError> {
    let jobs = Store::open(place, false).map_err(could_not)?;
    let jobs = jobs.jobs().map_err(could_not)?;
    let states = jobs.into_iter().map(|job| {
        let arguments = ClusterJobArguments {
            store: place.to_path_buf(),
            job,
        };
        // Other folders may lie in a store.
        let status = status_of(&open(&arguments).ok()?).ok()?;
        Some(JobState::of(&arguments.job, &status))
    });
    Ok(states.flatten().collect())
}

fn logs(arguments: &ClusterJobArguments) -> Result<Exit, CommandError> {
    let status = status_of(&open_job(arguments)?.0)?;
    let Some(handle) = &status.handle else {
        return Err(could_not(anyhow::anyhow!("the job has not started yet")));
    };
    if let Err(error) = engine_of(handle).and_then(|engine| engine.save_logs(handle)) {
        // What was saved before can still be read.
        Paint::print_message(&format!("warning: {}", explain(&error)));
    }
    for index in 0..status.generators.len() {
        let file = handle.log(index);
        let log = read_text(&file);
        let log = log.unwrap_or_else(|error| format!("{}: {error}\n", file.display()));
        for line in log.lines() {
            Paint::data(&format!("{index}: {line}\n")).map_err(could_not)?;
        }
    }
    Ok(Exit::Held)
}

fn cancel(arguments: &ClusterJobArguments) -> Result<Exit, CommandError> {
    let (store, earlier) = open_job(arguments)?;
    let status = status_of(&store)?;
    let engine: Box<dyn Engine> = match &status.handle {
        Some(handle) => engine_of(handle).map_err(could_not)?,
        None => Box::new(LocalEngine),
    };
    cancel_job(&store, &*engine, status.handle.as_ref(), "cancelled").map_err(could_not)?;
    for store in &earlier {
        end_left(store).map_err(could_not)?;
    }
    let job = store.job();
    if status.handle.is_none() {
        return Err(could_not(anyhow::anyhow!(
            "nothing was started by job {job} so far; tasks that its engine starts later end at once"
        )));
    }
    if !status.generators.iter().any(GeneratorProgress::is_open) {
        Paint::print_message(&format!(
            "all tasks of job {job} have ended already; if its command starts new ones, cancel it again"
        ));
    }
    Ok(Exit::Held)
}

/// Runs one generator of a load.
fn be_generator(arguments: &GenerateArguments) -> Result<Exit, CommandError> {
    let attempt = Attempt::from_env().map_err(|error| CommandError::new(Exit::Usage, error))?;
    let store = open(&arguments.job)?;
    let interrupt = Interrupt::new();
    if let Some(suite) = SuiteJob::read(&store, &interrupt).map_err(could_not)? {
        return super::run::fleet::be_task(&suite, &store, &attempt);
    }
    if let Some(allocation) = AllocationJob::read(&store, &interrupt).map_err(could_not)? {
        return super::run::roles::be_task(&allocation, &store, &attempt);
    }
    if let Some(run) = RunJob::read(&store, &interrupt).map_err(could_not)? {
        return super::observe::fleet::be_task(&run, &store, &attempt);
    }
    let raised = interrupt.clone();
    let signals = signals::listen(move |signal| raised.raise(signal)).map_err(could_not)?;
    let version = env!("CARGO_PKG_VERSION");
    let typed = arguments.secrets.as_deref();
    let handling = secrets::handling();
    let end = generate(&store, &attempt, version, typed, handling, &interrupt);
    signals.close(Nanos::SECOND);
    Paint::print_message(match end.map_err(could_not)? {
        GeneratorEnd::Committed => "the result is in the store",
        GeneratorEnd::NotNeeded => "another attempt of this task is used instead",
        GeneratorEnd::GivenUp => "the load was cancelled before its start",
    });
    Ok(Exit::Held)
}
