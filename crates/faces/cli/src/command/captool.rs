//! `captool`: looks into captures.

use std::path::Path;

use stillwell_lading::capture::{LadingError, Validity, list_metrics, survey_metric, validate};

use crate::arguments::{CaptoolArguments, CaptoolCommand};
use crate::command::output;
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;

/// Does what `arguments` say.
pub(crate) fn run(arguments: &CaptoolArguments) -> Result<Exit, CommandError> {
    if let Some(CaptoolCommand::Validate {
        capture,
        min_seconds,
    }) = &arguments.command
    {
        let validity = validate(capture, *min_seconds).map_err(unreadable)?;
        return print_validity(capture, &validity);
    }
    let Some(capture) = &arguments.capture else {
        let error = anyhow::anyhow!("no capture was given");
        return Err(CommandError::new(Exit::Usage, error).hint("give its path: captool CAPTURE"));
    };
    match &arguments.metric {
        Some(metric) if !arguments.list_metrics => show(capture, metric, arguments.dump_values),
        _ => list(capture),
    }
}

fn list(capture: &Path) -> Result<Exit, CommandError> {
    let metrics = list_metrics(capture).map_err(unreadable)?;
    output::print(&metrics.to_string())?;
    warn(metrics.cut.as_deref());
    Ok(Exit::Held)
}

fn show(capture: &Path, metric: &str, dump: bool) -> Result<Exit, CommandError> {
    let survey = survey_metric(capture, metric, dump).map_err(unreadable)?;
    warn(survey.cut.as_deref());
    if survey.series.is_empty() {
        let error = anyhow::anyhow!("{} has no metric `{metric}`", capture.display());
        let error = CommandError::new(Exit::Failed, error);
        return Err(error.hint("`captool CAPTURE` lists its metrics"));
    }
    output::print(&survey.to_string())?;
    Ok(Exit::Held)
}

fn print_validity(capture: &Path, validity: &Validity) -> Result<Exit, CommandError> {
    let mut text = format!("{validity}\n");
    if validity.is_valid() {
        text.push_str(&format!("{} is valid\n", capture.display()));
    }
    output::print(&text)?;
    warn(validity.cut.as_deref());
    if validity.is_valid() {
        return Ok(Exit::Held);
    }
    if let Some(first) = &validity.first {
        Paint::print_message(&format!("row {}: {}", first.row, first.problem));
    }
    let problems = validity.problems().join("; ");
    let error = anyhow::anyhow!("{} is not valid: {problems}", capture.display());
    Err(CommandError::new(Exit::Failed, error))
}

fn warn(cut: Option<&str>) {
    if let Some(cut) = cut {
        Paint::print_message(&format!("warning: {cut}"));
    }
}

fn unreadable(error: LadingError) -> CommandError {
    CommandError::new(Exit::CouldNotRun, error)
}
