//! `captool`: looks into captures.

use std::fmt::Write as _;
use std::path::Path;

use stillwell_lading::capture::{
    LadingError, SeriesSurvey, Validity, list_metrics, survey_metric, validate,
};
use stillwell_metric::{Kind, Labels, Value};

use crate::arguments::{CaptoolArguments, CaptoolCommand};
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;

/// Does what `arguments` say.
pub(crate) fn run(arguments: &CaptoolArguments) -> Result<Exit, CommandError> {
    if let Some(CaptoolCommand::Validate {
        capture,
        min_seconds,
    }) = &arguments.command
    {
        let found = validate(capture, *min_seconds).map_err(unreadable)?;
        return print_validity(capture, &found);
    }
    let Some(capture) = &arguments.capture else {
        let error = anyhow::anyhow!("no capture was given");
        return Err(CommandError::new(Exit::Usage, error));
    };
    match &arguments.metric {
        Some(metric) if !arguments.list_metrics => show(capture, metric, arguments.dump_values),
        _ => list(capture),
    }
}

fn list(capture: &Path) -> Result<Exit, CommandError> {
    let found = list_metrics(capture).map_err(unreadable)?;
    let mut text = String::new();
    for (name, kind) in &found.metrics {
        put(&mut text, format_args!("{}: {name}\n", letter(*kind)));
    }
    print(&text)?;
    warn(found.cut.as_deref());
    Ok(Exit::Held)
}

const fn letter(kind: Kind) -> char {
    match kind {
        Kind::Counter => 'c',
        Kind::Gauge => 'g',
        Kind::Histogram => 'h',
    }
}

fn show(capture: &Path, metric: &str, dump: bool) -> Result<Exit, CommandError> {
    let found = survey_metric(capture, metric, dump).map_err(unreadable)?;
    warn(found.cut.as_deref());
    if found.series.is_empty() {
        let error = anyhow::anyhow!("{} has no metric `{metric}`", capture.display());
        let error = CommandError::new(Exit::Failed, error);
        return Err(error.hint("`captool CAPTURE` lists its metrics"));
    }
    let mut text = String::new();
    for ((_, labels), series) in &found.series {
        put(
            &mut text,
            format_args!(
                "{metric}[{}]: min: {}, mean: {}, max: {}, is_monotonic: {}\n",
                joined(labels),
                series.min,
                series.mean,
                series.max,
                series.is_monotonic
            ),
        );
        dump_values(&mut text, series);
    }
    print(&text)?;
    Ok(Exit::Held)
}

fn joined(labels: &Labels) -> String {
    let pairs: Vec<String> = labels
        .iter()
        .map(|(key, value)| format!("{key}:{value}"))
        .collect();
    pairs.join(",")
}

fn dump_values(text: &mut String, series: &SeriesSurvey) {
    for (tick, value) in &series.values {
        match value {
            Value::Int(value) => put(text, format_args!("{tick}: {value}\n")),
            Value::Float(value) => put(text, format_args!("{tick}: {value}\n")),
            Value::Histogram(_) => put(text, format_args!("{tick}: [hist]\n")),
        }
    }
}

fn print_validity(capture: &Path, found: &Validity) -> Result<Exit, CommandError> {
    let mut text = String::new();
    put(
        &mut text,
        format_args!(
            "{} rows, {} series, {} ticks, {} times\n",
            found.rows, found.series, found.ticks, found.times
        ),
    );
    if found.is_valid() {
        put(&mut text, format_args!("{} is valid\n", capture.display()));
    }
    print(&text)?;
    warn(found.cut.as_deref());
    if found.is_valid() {
        return Ok(Exit::Held);
    }
    if let Some(first) = &found.first {
        Paint::say(&format!("row {}: {}", first.row, first.problem));
    }
    let rules = [
        (found.mapping_violations, "ticks with more than one time"),
        (
            found.series_violations,
            "rows at which a series does not rise",
        ),
    ];
    let mut problems: Vec<String> = rules
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, rule)| format!("{count} {rule}"))
        .collect();
    if let Some(wanted) = found.times_wanted {
        problems.push(format!("{} different times, not {wanted}", found.times));
    }
    let error = anyhow::anyhow!(
        "{} is not valid: {}",
        capture.display(),
        problems.join("; ")
    );
    Err(CommandError::new(Exit::Failed, error))
}

fn warn(cut: Option<&str>) {
    if let Some(cut) = cut {
        Paint::say(&format!("warning: {cut}"));
    }
}

fn unreadable(error: LadingError) -> CommandError {
    CommandError::new(Exit::CouldNotRun, error)
}

fn print(text: &str) -> Result<(), CommandError> {
    Paint::data(text).map_err(|error| CommandError::new(Exit::CouldNotRun, error))
}

/// Writing to a string cannot fail.
fn put(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).unwrap_or_default();
}
