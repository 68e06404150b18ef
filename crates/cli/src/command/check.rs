//! `stillwell check`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use stillwell_config::{LabOverrides, RigOverrides};
use stillwell_plan::{ExperimentPlan, LabPlan, OperatingPoint, RateShape, RateUnit, RigPlan};
use stillwell_units::{ByteSize, EventRate, floor_to_u64};

use crate::arguments::CheckArguments;
use crate::command::select;
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;

const EXPERIMENT: &str = "experiment.yaml";

pub(crate) fn run(arguments: &CheckArguments, paint: &Paint) -> Result<Exit, CommandError> {
    let text = match arguments.paths.as_slice() {
        [file] if is_rig(file) => check_rig(file, arguments.plan, paint)?,
        paths => {
            let overrides = select::overrides(&arguments.select);
            check_lab(paths, &overrides, arguments.plan, paint)?
        }
    };
    Paint::data(&text).map_err(|error| CommandError::new(Exit::CouldNotRun, error))?;
    Ok(Exit::Held)
}

/// A file that is no experiment is one for `rig`.
fn is_rig(path: &Path) -> bool {
    path.is_file() && path.file_name().is_some_and(|name| name != EXPERIMENT)
}

fn check_rig(file: &Path, whole: bool, paint: &Paint) -> Result<String, CommandError> {
    let loaded = stillwell_config::load_rig(file, &RigOverrides::default())
        .map_err(|diagnostics| select::refused(&diagnostics, paint))?;
    select::warn(&loaded.warnings, paint);
    if whole {
        return json(&loaded.plan);
    }
    let mut text = format!("{}: fine, one run\n", file.display());
    describe_rig(&loaded.plan, &mut text);
    Ok(text)
}

fn check_lab(
    paths: &[PathBuf],
    overrides: &LabOverrides,
    whole: bool,
    paint: &Paint,
) -> Result<String, CommandError> {
    let loaded = stillwell_config::load_lab(paths, overrides)
        .map_err(|diagnostics| select::refused(&diagnostics, paint))?;
    select::warn(&loaded.warnings, paint);
    if whole {
        return json(&loaded.plan);
    }
    Ok(describe_lab(&loaded.plan))
}

fn json(plan: &impl serde::Serialize) -> Result<String, CommandError> {
    serde_json::to_string_pretty(plan)
        .map(|text| text + "\n")
        .map_err(|error| CommandError::new(Exit::CouldNotRun, error))
}

fn describe_lab(plan: &LabPlan) -> String {
    let mut text = String::new();
    for experiment in &plan.experiments {
        describe_experiment(experiment, &mut text);
    }
    let count = plan.experiments.len();
    let plural = if count == 1 { "" } else { "s" };
    line(
        &mut text,
        format_args!("{count} experiment{plural}, all fine"),
    );
    text
}

fn describe_experiment(plan: &ExperimentPlan, text: &mut String) {
    let summary = plan.summary.as_deref().unwrap_or("no description");
    line(text, format_args!("{}: {summary}", plan.name));
    let variants: Vec<&str> = plan.variants.iter().map(|v| v.name.as_str()).collect();
    line(
        text,
        format_args!("  variants   {}", variants.join(" against ")),
    );
    let goals: Vec<String> = plan
        .goals
        .iter()
        .map(|goal| format!("{} ±{}", goal.metric.name(), goal.tolerance))
        .collect();
    line(
        text,
        format_args!("  goals      {} (the first gates)", goals.join(", ")),
    );
    let rate = match plan.operating_point {
        OperatingPoint::Stated => "as stated".to_owned(),
        OperatingPoint::Max => "as fast as the subject takes it".to_owned(),
        OperatingPoint::Probe { share, length } => {
            let percent = share * 100.0;
            format!("{percent:.0} % of capacity, found by a probe of {length}")
        }
    };
    line(text, format_args!("  rate       {rate}"));
    let phases = plan.rig.phases;
    line(
        text,
        format_args!(
            "  runs       {} pairs of {} warm-up and {} measured",
            plan.pairs, phases.warmup, phases.measure
        ),
    );
    describe_rig(&plan.rig, text);
}

fn describe_rig(plan: &RigPlan, text: &mut String) {
    for generator in &plan.generators {
        line(
            text,
            format_args!(
                "  generator  {}: {} over {}, {}, {} connection(s), {} worker(s)",
                generator.id,
                generator.payload.format.name(),
                generator.transport.name(),
                rate(generator.rate.unit, generator.rate.shape),
                generator.connections,
                generator.workers,
            ),
        );
    }
    for sink in &plan.sinks {
        line(
            text,
            format_args!("  sink       {}: {}", sink.id, sink.protocol.name()),
        );
    }
    line(text, format_args!("  subject    {}", plan.subject.name));
}

/// A rate in words.
fn rate(unit: RateUnit, shape: RateShape) -> String {
    let one = |per_second: f64| match unit {
        RateUnit::Bytes => format!("{}/s", ByteSize::new(floor_to_u64(per_second))),
        RateUnit::Events => EventRate::try_new(per_second)
            .map_or_else(|_| "0/s".to_owned(), |rate| format!("{rate} events")),
        RateUnit::Blocks => format!("{per_second} blocks/s"),
    };
    match shape {
        RateShape::Max => "at full speed".to_owned(),
        RateShape::Constant { per_second } => one(per_second),
        RateShape::Ramp {
            initial_per_second,
            maximum_per_second,
            ..
        } => format!(
            "from {} to {}",
            one(initial_per_second),
            one(maximum_per_second)
        ),
    }
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    writeln!(text, "{line}").unwrap_or_default();
}
