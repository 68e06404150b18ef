//! `stillwell load`.

mod files;
pub(crate) mod fleet;
pub(crate) mod format;
pub(crate) mod nighthawk;
mod outcome;
pub(crate) mod remedy;
mod scenario;
mod spec;
pub(super) mod telemetry;

pub(crate) use outcome::redirect_hint;
pub(crate) use spec::{shape, tls};

use std::path::{Path, PathBuf};

use stillwell_config::requests::LoadSpecError;
use stillwell_nighthawk::format::LoadFormat;
use stillwell_plan::LoadPlan;
use stillwell_plan::capacity::CapacityBound;
use stillwell_plan::load::LoadPlanParts;
use stillwell_report::load::{GeneratorHealth, LoadReport, LoadReportInput, load_report, url_of};
use stillwell_run::{
    AddressFamily, AnswerNote, Interrupt, LoadBeside, LoadCapture, LoadEnd, LoadError, LoadSource,
    conduct_load_beside,
};
use stillwell_scope::Place;
use stillwell_units::{Nanos, Seed};
use stillwell_verdict::{LoadRules, load_warnings};

use crate::arguments::LoadArguments;
use crate::command::output;
use crate::command::random::random;
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;
use crate::progress::LoadDisplay;
use crate::secrets;
use crate::signals;
use remedy::OptionNames;

pub(crate) fn run(arguments: &LoadArguments, paint: &Paint) -> Result<Exit, CommandError> {
    if let Some(file) = &arguments.scenario {
        return scenario::run(arguments, file, paint);
    }
    if let Some(engine) = arguments.fleet.on {
        return fleet::run(arguments, engine, paint);
    }
    output::check_writable_as(&arguments.output, |file| files::format_of(file).map(|_| ()))?;
    files::check_capture(arguments.capture.as_deref())?;
    let seed = match arguments.seed {
        Some(seed) => seed,
        None => random_seed().map_err(|error| CommandError::new(Exit::CouldNotRun, error))?,
    };
    let place = |cpu: &u16| Place {
        cpus: Some(vec![*cpu]),
        network: None,
    };
    let job = Job {
        plan: spec::plan(arguments, seed).map_err(not_planned)?,
        family: arguments.connecting.address_family.into(),
        places: arguments.over.cpus.iter().map(place).collect(),
        targets: &arguments.urls,
        labels: &arguments.label,
        option_names: OptionNames::Load,
        original: None,
        keep_going: arguments.keep_going,
        source: None,
        on_note: &|_| {},
        quiet: arguments.quiet,
        format: arguments.output_format,
        capture: arguments.capture.as_deref(),
        thresholds: &arguments.threshold,
        outputs: &arguments.output,
    };
    let result = job.conduct(paint)?;
    Ok(outcome::exit_of(
        &result,
        &arguments.threshold,
        arguments.strict,
    ))
}

/// Prints what the engine of a load of several generators would be given.
pub(crate) fn render(arguments: &LoadArguments) -> Result<Exit, CommandError> {
    match arguments.fleet.on {
        Some(engine) => fleet::render(arguments, engine),
        None => Err(crate::command::fleet::no_engine()),
    }
}

/// A load and its report.
struct Job<'a> {
    plan: LoadPlan,
    family: AddressFamily,
    places: Vec<Place>,
    targets: &'a [String],
    labels: &'a [String],
    /// Words of advice.
    option_names: OptionNames,
    /// The options as another tool names them, if they were used.
    original: Option<serde_json::Value>,
    /// Goes on although nothing can be reached.
    keep_going: bool,
    /// Source of requests, if it is not the plan.
    source: Option<&'a dyn LoadSource>,
    /// Receives the response headers that the plan names.
    on_note: &'a dyn Fn(&AnswerNote),
    quiet: bool,
    format: LoadFormat,
    /// Folder in which the capture is kept, if it is.
    capture: Option<&'a Path>,
    /// Bounds that the result must keep.
    thresholds: &'a [CapacityBound],
    /// Files to which the result is written, too.
    outputs: &'a [PathBuf],
}

impl Job<'_> {
    /// Sends the load and prints its report.
    fn conduct(self, paint: &Paint) -> Result<(LoadCapture, GeneratorHealth), CommandError> {
        let could_not = |error: anyhow::Error| CommandError::new(Exit::CouldNotRun, error);
        let interrupt = Interrupt::new();
        let raised = interrupt.clone();
        let signals = signals::listen(move |signal| raised.raise(signal))
            .map_err(|error| could_not(error.into()))?;
        let mut is_unreachable = false;
        let mut display = LoadDisplay::new(paint, self.quiet, &self.target(), &self.plan);
        let beside = LoadBeside {
            progress: &mut |snapshot| {
                if !self.keep_going && snapshot.is_unreached() {
                    is_unreachable = true;
                    interrupt.raise(outcome::STOP_SIGNAL);
                }
                display.show(snapshot);
            },
            on_note: &mut |note| (self.on_note)(note),
            source: self.source,
            agree: None,
        };
        let plan = self.plan.clone();
        let capture = conduct_load_beside(plan, self.family, &self.places, &interrupt, beside);
        // Clears the display before other messages.
        drop(display);
        signals.close(Nanos::SECOND);
        let mut capture = capture.map_err(refused)?;
        if is_unreachable {
            capture.manifest.end = LoadEnd::PartFailed(outcome::ENDED_EARLY.to_owned());
        }
        if !self.quiet {
            telemetry::summary_lines(&capture.manifest.telemetry)
                .iter()
                .for_each(|line| Paint::print_message(line));
        }
        let rules = LoadRules::of(&self.plan);
        let warnings = load_warnings(rules, &capture.evidence());
        let added = add_typed(&mut capture, self.targets, self.labels);
        added.map_err(|error| could_not(error.into()))?;
        let kept = files::write_capture(&capture, self.capture);
        let report = load_report(&LoadReportInput {
            capture: &capture,
            original: self.original.as_ref(),
            warnings: &self.option_names.health_warnings(rules, &warnings),
        });
        let is_silent = is_unreachable && self.format == LoadFormat::HUMAN;
        // Files of a long load take time; the reader waits for the result.
        let printed = if is_silent {
            Ok(())
        } else {
            self.print(&report, &capture, paint)
        };
        let written = files::write(&report, self.outputs);
        let delivered = kept.and(written).and(printed);
        if is_unreachable {
            // The target is the cause of all that is missing.
            if let Err(error) = &delivered {
                paint.error(error);
            }
            return Err(outcome::unreachable(&report));
        }
        delivered?;
        Ok((capture, report.health))
    }

    /// Prints the result.
    fn print(
        &self,
        report: &LoadReport,
        capture: &LoadCapture,
        paint: &Paint,
    ) -> Result<(), CommandError> {
        let text = format::render(report, self.format, None, output::styled(paint));
        let text = text.map_err(|error| CommandError::new(Exit::Invalid, error))?;
        if let Some(hint) = outcome::hint(capture).filter(|_| !self.quiet) {
            Paint::print_message(&format!("hint: {hint}"));
        }
        let text = text + &outcome::threshold_lines(capture, self.thresholds, self.format);
        Paint::data(&text).map_err(|error| CommandError::new(Exit::CouldNotRun, error))
    }

    /// Targets of requests, for messages.
    fn target(&self) -> String {
        let named = self.targets.first();
        let named = named.map(|target| secrets::handling().text(target));
        let of_plan = || self.plan.endpoints.first().map(url_of);
        let more = self.plan.endpoints.len().saturating_sub(1);
        let mut target = named.or_else(of_plan).unwrap_or_default();
        if more > 0 {
            target.push_str(&format!(" and {more} more"));
        }
        target
    }
}

/// Adds this version and what was typed to `capture`, and masks its secrets.
fn add_typed(
    capture: &mut LoadCapture,
    targets: &[String],
    labels: &[String],
) -> Result<(), serde_json::Error> {
    let manifest = &mut capture.manifest;
    env!("CARGO_PKG_VERSION").clone_into(&mut manifest.version);
    manifest.command = secrets::command_words();
    manifest.targets = secrets::texts(targets);
    manifest.labels = labels.to_vec();
    *manifest = manifest.masked(secrets::handling())?;
    Ok(())
}

/// Most often that is what was typed.
fn not_planned(error: anyhow::Error) -> CommandError {
    let failure = error.downcast_ref::<LoadSpecError>();
    let exit = match failure.is_some_and(LoadSpecError::is_unreachable) {
        true => Exit::CouldNotRun,
        false => Exit::Usage,
    };
    CommandError::new(exit, error)
}

pub(crate) fn random_seed() -> anyhow::Result<Seed> {
    Ok(Seed::from_number(u32::from_le_bytes(random()?).into()))
}

/// Converts `arguments` to a request for a load.
pub(crate) fn planned(
    arguments: &LoadArguments,
    seed: Seed,
) -> Result<LoadPlanParts, CommandError> {
    spec::parts(arguments, seed).map_err(not_planned)
}

pub(crate) fn refused(error: LoadError) -> CommandError {
    let exit = match &error {
        LoadError::Prepare(_) => Exit::Usage,
        LoadError::Resolve(_)
        | LoadError::NoStart
        | LoadError::Start(_)
        | LoadError::Telemetry(_) => Exit::CouldNotRun,
    };
    CommandError::new(exit, error)
}
