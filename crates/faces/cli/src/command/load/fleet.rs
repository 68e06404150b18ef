//! A load of several generators.

use anyhow::Context as _;
use stillwell_cluster::{Engine, FleetLoad, JobStore};
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
use crate::command::fleet::{self, could_not};
use crate::command::output;
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;
use crate::{secrets, signals};

pub(super) fn run(
    arguments: &LoadArguments,
    name: EngineName,
    paint: &Paint,
) -> Result<Exit, CommandError> {
    output::check_writable_as(&arguments.output, |file| files::format_of(file).map(|_| ()))?;
    files::check_capture(arguments.capture.as_deref())?;
    let plan = plan(arguments).map_err(not_planned)?;
    let engine = fleet::engine_named(name, &arguments.fleet.job)?;
    let store = fleet::open_store(&arguments.fleet.job, "load", true)?;
    let capture = conduct(arguments, &plan, &store, &*engine)?;
    report(arguments, capture, paint)
}

/// Prints what the engine would be given.
pub(super) fn render(arguments: &LoadArguments, name: EngineName) -> Result<Exit, CommandError> {
    let plan = plan(arguments).map_err(not_planned)?;
    let engine = fleet::engine_named(name, &arguments.fleet.job)?;
    let store = fleet::open_store(&arguments.fleet.job, "load", false)?;
    let words = fleet::task_words(&arguments.fleet.job, &store);
    let interrupt = Interrupt::new();
    let load = fleet_load(arguments, &plan, &store, &*engine, &words, &interrupt)?;
    fleet::print_rendered(&load.render().map_err(fleet::refused)?)
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
    let workers = workers.context("--threads times --generators is too large")?;
    let parts = LoadPlanParts { workers, ..parts };
    Ok(LoadPlan::try_new(parts).map_err(LoadSpecError::from)?)
}

fn print_message(text: &str) {
    Paint::print_message(text);
}

fn fleet_load<'a>(
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
        logs: fleet::logs(store)?,
        secrets: secrets::handling(),
        interrupt,
        print_message: if arguments.quiet {
            &|_| {}
        } else {
            &print_message
        },
    })
}

fn conduct(
    arguments: &LoadArguments,
    plan: &LoadPlan,
    store: &JobStore,
    engine: &dyn Engine,
) -> Result<LoadCapture, CommandError> {
    let interrupt = Interrupt::new();
    let words = fleet::task_words(&arguments.fleet.job, store);
    let load = fleet_load(arguments, plan, store, engine, &words, &interrupt)?;
    let raised = interrupt.clone();
    let signals = signals::listen(move |signal| raised.raise(signal)).map_err(could_not)?;
    let (folder, job) = (fleet::place(&arguments.fleet.job, store), store.job());
    let place = folder.display();
    (load.print_message)(&format!(
        "job {job} in {place}; watch it with: stillwell cluster status --store {place} --job {job}"
    ));
    let capture = load.conduct();
    signals.close(Nanos::SECOND);
    fleet::interrupted_by(&interrupt, capture.map_err(fleet::refused))
}

fn report(
    arguments: &LoadArguments,
    mut capture: LoadCapture,
    paint: &Paint,
) -> Result<Exit, CommandError> {
    add_typed(&mut capture, &arguments.urls, &arguments.label).map_err(could_not)?;
    let kept = files::write_capture(&capture, arguments.capture.as_deref());
    let rules = LoadRules::of(&capture.manifest.plan);
    let warnings = load_warnings(rules, &capture.evidence());
    let report = load_report(&LoadReportInput {
        capture: &capture,
        original: None,
        warnings: &OptionNames::Load.health_warnings(rules, &warnings),
    });
    let written = files::write(&report, &arguments.output);
    let text = format::render(
        &report,
        arguments.output_format,
        None,
        output::styled(paint),
    );
    let text = text.map_err(|error| CommandError::new(Exit::Invalid, error))?;
    let lines = outcome::threshold_lines(&capture, &arguments.threshold, arguments.output_format);
    let printed = Paint::data(&(text + &lines)).map_err(could_not);
    kept.and(written).and(printed)?;
    if !arguments.quiet {
        Paint::print_message(&cost(&capture));
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
         starts within {} of the agreed time, by each generator's clock",
        stillwell_units::human::nanos(fleet.start_delay_max())
    )
}
