//! A load of several generators.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use stillwell_cluster::{
    Engine, EngineError, FleetError, FleetLoad, JobStore, KubernetesEngine, KubernetesOptions,
    LocalEngine, RetryBounds, SlurmEngine, Store, StoreError,
};
use stillwell_config::requests::LoadSpecError;
use stillwell_plan::LoadPlan;
use stillwell_plan::load::LoadPlanParts;
use stillwell_report::load::{LoadReportInput, load_report};
use stillwell_run::{Interrupt, LoadCapture};
use stillwell_units::{Nanos, float_from_u64};
use stillwell_verdict::{LoadRules, load_warnings};

use super::remedy::OptionNames;
use super::{add_typed, files, format, not_planned, outcome, random_seed, spec};
use crate::arguments::{EngineName, LoadArguments};
use crate::command::output;
use crate::command::random::random;
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;
use crate::{secrets, signals};

fn could_not(error: impl Into<anyhow::Error>) -> CommandError {
    CommandError::new(Exit::CouldNotRun, error)
}

pub(super) fn run(
    arguments: &LoadArguments,
    name: EngineName,
    paint: &Paint,
) -> Result<Exit, CommandError> {
    output::check_writable_as(&arguments.output, |file| files::format_of(file).map(|_| ()))?;
    let plan = plan(arguments).map_err(not_planned)?;
    let engine = engine_named(name, &arguments.fleet.engine_option)?;
    let store = open(arguments, true)?;
    let capture = conduct(arguments, &plan, &store, &*engine)?;
    report(arguments, capture, paint)
}

/// Prints what the engine would be given.
pub(super) fn render(arguments: &LoadArguments, name: EngineName) -> Result<Exit, CommandError> {
    let plan = plan(arguments).map_err(not_planned)?;
    let engine = engine_named(name, &arguments.fleet.engine_option)?;
    let store = open(arguments, false)?;
    let words = words(arguments, &store);
    let interrupt = Interrupt::new();
    let fleet = fleet(arguments, &plan, &store, &*engine, &words, &interrupt)?;
    let text = fleet.render().map_err(refused)?;
    Paint::data(&text).map_err(could_not)?;
    Ok(Exit::Held)
}

/// Returns the engine with these options.
pub(crate) fn engine_named(
    name: EngineName,
    options: &[String],
) -> Result<Box<dyn Engine>, CommandError> {
    Ok(match name {
        EngineName::Local => Box::new(LocalEngine),
        EngineName::Slurm => Box::new(SlurmEngine {
            options: options.to_vec(),
        }),
        EngineName::Kubernetes => Box::new(KubernetesEngine {
            options: KubernetesOptions::parse(options)
                .map_err(|error| CommandError::new(Exit::Usage, error))?,
        }),
    })
}

/// The plan of one process with the threads of all generators.
fn plan(arguments: &LoadArguments) -> anyhow::Result<LoadPlan> {
    let seed = match arguments.seed {
        Some(seed) => seed,
        None => random_seed()?,
    };
    let parts = spec::parts(arguments, seed)?;
    let generators = arguments.fleet.generators;
    let workers = parts.workers.checked_mul(generators);
    let workers = workers.context("that many threads in all generators")?;
    let parts = LoadPlanParts { workers, ..parts };
    Ok(LoadPlan::try_new(parts).map_err(LoadSpecError::from)?)
}

fn open(arguments: &LoadArguments, is_made: bool) -> Result<JobStore, CommandError> {
    let fleet = &arguments.fleet;
    open_store(
        fleet.store.as_deref(),
        fleet.job.as_deref(),
        "load",
        is_made,
    )
}

/// Returns the objects of a job; its name begins with `kind` if it is random.
pub(crate) fn open_store(
    place: Option<&Path>,
    job: Option<&str>,
    kind: &str,
    is_made: bool,
) -> Result<JobStore, CommandError> {
    let place = place.unwrap_or_else(|| Path::new(""));
    // Generators may run in other folders.
    let place = match place.starts_with("s3:") {
        true => Ok(place.to_owned()),
        false => std::path::absolute(place),
    };
    let store = Store::open(&place.map_err(could_not)?, is_made).map_err(could_not)?;
    let job = match job {
        Some(job) => job.to_owned(),
        None => {
            let number = u32::from_le_bytes(random().map_err(could_not)?);
            format!("{kind}-{number:08x}")
        }
    };
    JobStore::new(store, &job, RetryBounds::default())
        .map_err(|error| CommandError::new(Exit::Usage, error))
}

/// Returns the place of the store, as generators know it.
pub(crate) fn place(typed: Option<&Path>, store: &JobStore) -> PathBuf {
    let folder = store.store().folder().or(typed);
    folder.unwrap_or_else(|| Path::new("")).to_owned()
}

/// Returns the folder of the logs of a job.
pub(crate) fn logs(store: &JobStore) -> Result<PathBuf, CommandError> {
    match store.store().folder() {
        Some(folder) => Ok(folder.join(store.job()).join("logs")),
        None => {
            std::path::absolute(PathBuf::from(format!("{}-logs", store.job()))).map_err(could_not)
        }
    }
}

/// Returns the arguments of each generator.
fn words(arguments: &LoadArguments, store: &JobStore) -> Vec<String> {
    let mut words = vec![
        "cluster".to_owned(),
        "generate".to_owned(),
        format!(
            "--store={}",
            place(arguments.fleet.store.as_deref(), store).display()
        ),
        format!("--job={}", store.job()),
    ];
    if secrets::handling() == stillwell_units::Secrets::Kept {
        words.push("--keep-secrets".to_owned());
    }
    words
}

fn say(text: &str) {
    Paint::say(text);
}

fn fleet<'a>(
    arguments: &LoadArguments,
    plan: &'a LoadPlan,
    store: &'a JobStore,
    engine: &'a dyn Engine,
    words: &'a [String],
    interrupt: &'a Interrupt,
) -> Result<FleetLoad<'a>, CommandError> {
    Ok(FleetLoad {
        plan,
        generators: arguments.fleet.generators,
        family: arguments.connecting.address_family.into(),
        version: env!("CARGO_PKG_VERSION"),
        store,
        engine,
        program: std::env::current_exe().map_err(could_not)?,
        arguments: words,
        logs: logs(store)?,
        secrets: secrets::handling(),
        interrupt,
        say: if arguments.quiet { &|_| {} } else { &say },
    })
}

fn conduct(
    arguments: &LoadArguments,
    plan: &LoadPlan,
    store: &JobStore,
    engine: &dyn Engine,
) -> Result<LoadCapture, CommandError> {
    let interrupt = Interrupt::new();
    let words = words(arguments, store);
    let fleet = fleet(arguments, plan, store, engine, &words, &interrupt)?;
    let raised = interrupt.clone();
    let signals = signals::listen(move |signal| raised.raise(signal)).map_err(could_not)?;
    let (folder, job) = (place(arguments.fleet.store.as_deref(), store), store.job());
    let place = folder.display();
    (fleet.say)(&format!(
        "job {job} in {place}; watch it with: stillwell cluster status --store {place} --job {job}"
    ));
    let capture = fleet.conduct();
    signals.close(Nanos::SECOND);
    if let (Some(signal), Err(_)) = (interrupt.signal(), &capture) {
        let why = anyhow::anyhow!("interrupted before the start");
        return Err(CommandError::new(Exit::Interrupted(signal), why));
    }
    capture.map_err(refused)
}

pub(crate) fn refused(error: FleetError) -> CommandError {
    match error {
        FleetError::Store(StoreError::Taken(_))
        | FleetError::Engine(EngineError::Option { .. }) => CommandError::new(Exit::Usage, error),
        _ => could_not(error),
    }
}

fn report(
    arguments: &LoadArguments,
    mut capture: LoadCapture,
    paint: &Paint,
) -> Result<Exit, CommandError> {
    add_typed(&mut capture, &arguments.urls, &arguments.label).map_err(could_not)?;
    if let Some(folder) = &arguments.capture {
        capture
            .write(folder, secrets::handling())
            .map_err(could_not)?;
    }
    let rules = LoadRules::of(&capture.manifest.plan);
    let warnings = load_warnings(rules, &capture.evidence());
    let report = load_report(&LoadReportInput {
        capture: &capture,
        original: None,
        warnings: &OptionNames::Load.health_warnings(rules, &warnings),
    });
    let text = format::render(
        &report,
        arguments.output_format,
        None,
        output::styled(paint),
    );
    let text = text.map_err(|error| CommandError::new(Exit::Invalid, error))?;
    let lines = outcome::threshold_lines(&capture, &arguments.threshold, arguments.output_format);
    Paint::data(&(text + &lines)).map_err(could_not)?;
    files::write(&report, &arguments.output)?;
    if !arguments.quiet {
        Paint::say(&cost(&capture));
    }
    Ok(outcome::exit_of(
        &(capture, report.health),
        &arguments.threshold,
        arguments.strict,
    ))
}

/// Describes the generators and what they cost.
fn cost(capture: &LoadCapture) -> String {
    let Some(fleet) = &capture.manifest.fleet else {
        return String::new();
    };
    let (complete, all) = (fleet.results().count(), fleet.generators.len());
    let minutes = float_from_u64(fleet.held().as_u64()) / 60e9;
    let (engine, machines) = (&fleet.engine, fleet.machines());
    let noun = if machines == 1 { "machine" } else { "machines" };
    format!(
        "{complete} of {all} generators on {machines} {noun} ({engine}), {minutes:.2} node minutes; \
         starts within {} of the agreed time, by each one's clock",
        stillwell_units::human::nanos(fleet.start_delay_max())
    )
}
