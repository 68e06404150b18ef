//! `stillwell history`.

mod export;
mod loads;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use stillwell_experiment::history::{SavedHistory, read_history, results_at};
use stillwell_plan::GoalMetric;
use stillwell_report::history::{HistoryFormat, HistoryReport, render_history};
use stillwell_report::{Format, FullReport};
use stillwell_scope::clock;
use stillwell_stats::change::OtavaOptions;
use stillwell_verdict::history::{HistoryPoint, Method, TrendOptions, trends};

use crate::arguments::{HistoryArguments, HistoryMethod, HistoryOutput, OutputArguments};
use crate::command::{output, places};
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;

/// Default false alarm rate.
const ALARM_RATE: f64 = 0.01;

pub(crate) fn run(arguments: &HistoryArguments, paint: &Paint) -> Result<Exit, CommandError> {
    output::check_writable(&arguments.output)?;
    if arguments.export.is_some() {
        options(arguments)?;
        let mut history = read(arguments)?;
        keep_metrics(&mut history.points, &arguments.metric)?;
        export::write(&history.points, arguments)?;
        print_skipped(&history);
        return Ok(Exit::Held);
    }
    let report = report(arguments)?;
    deliver(&report, arguments, paint)?;
    if report.alarms() > 0 && !arguments.exit_zero {
        Ok(Exit::Failed)
    } else {
        Ok(Exit::Held)
    }
}

/// Removes measurements of other metrics, if some are named.
fn keep_metrics(points: &mut [HistoryPoint], wanted: &[GoalMetric]) -> Result<(), CommandError> {
    if wanted.is_empty() {
        return Ok(());
    }
    let has_some = |point: &HistoryPoint| {
        let mut all = point.measurements.iter();
        all.any(|item| wanted.contains(&item.metric))
    };
    if !points.iter().any(has_some) {
        return Err(nothing_recorded(points, wanted));
    }
    for point in points {
        point
            .measurements
            .retain(|item| wanted.contains(&item.metric));
    }
    Ok(())
}

/// Returns the history.
pub(crate) fn report(arguments: &HistoryArguments) -> Result<HistoryReport, CommandError> {
    let options = options(arguments)?;
    let history = read(arguments)?;
    let trends = trends(&history.points, &options);
    if trends.is_empty() {
        return Err(nothing_recorded(&history.points, &options.metrics));
    }
    let skipped = history.skipped.iter();
    let skipped = skipped.map(|(folder, reason)| (output::show_path(folder), reason.clone()));
    Ok(HistoryReport {
        trends,
        method: options.method,
        skipped: skipped.collect(),
        branch: arguments.branch.clone(),
        command: output::command_line(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

fn options(arguments: &HistoryArguments) -> Result<TrendOptions, CommandError> {
    let refuse = |flag: &str, method: &str| {
        let error = anyhow::anyhow!("{flag} needs --method {method}");
        Err(CommandError::new(Exit::Usage, error))
    };
    let method = match arguments.method {
        HistoryMethod::Stillwell if arguments.p_value.is_some() => return refuse("-P", "otava"),
        HistoryMethod::Stillwell if arguments.window.is_some() => {
            return refuse("--window", "otava");
        }
        HistoryMethod::Otava if arguments.alarm_rate.is_some() => {
            return refuse("--alarm-rate", "stillwell");
        }
        HistoryMethod::Stillwell => Method::Stillwell {
            alarm_rate: arguments.alarm_rate.map_or(ALARM_RATE, |rate| rate.share()),
        },
        HistoryMethod::Otava => {
            let usual = OtavaOptions::default();
            let window = arguments.window.unwrap_or(usual.window);
            if window < 2 {
                let error = anyhow::anyhow!("--window {window}: a window has at least 2 results");
                return Err(CommandError::new(Exit::Usage, error));
            }
            Method::Otava(OtavaOptions {
                window,
                p_value: arguments.p_value.unwrap_or(usual.p_value),
                ..usual
            })
        }
    };
    Ok(TrendOptions {
        method,
        magnitude: arguments.magnitude.map_or(0.0, |size| size.share()),
        metrics: arguments.metric.clone(),
        last: arguments.last,
    })
}

/// The points of all results that are meant; at least one.
fn read(arguments: &HistoryArguments) -> Result<SavedHistory, CommandError> {
    let (loads, paths): (Vec<_>, Vec<_>) =
        (arguments.paths.iter().cloned()).partition(|path| loads::is_load(path));
    let folders = match paths.is_empty() && !loads.is_empty() {
        true => Vec::new(),
        false => folders(&paths)?,
    };
    let now = clock::wall().as_u64() / 1_000_000;
    let since = arguments.since.map_or(0, |when| when.millis(now));
    let until = arguments.until.map_or(u64::MAX, |when| when.millis(now));
    let mut history = read_history(&folders, &(since..until));
    loads::read(&loads, &(since..until), &mut history);
    if history.points.is_empty() {
        let places = counted(folders.len(), loads.len());
        let error = anyhow::anyhow!("there are no results to show in {places}");
        let error = CommandError::new(Exit::Usage, error);
        return Err(match history.skipped.first() {
            Some((folder, reason)) => {
                error.hint(format!("{}: {reason}", output::show_path(folder)))
            }
            None => error.hint("no suite or load started between --since and --until"),
        });
    }
    let known = history.experiments().into_iter().collect::<Vec<_>>();
    let known = known.join(", ");
    history.keep_only(&arguments.only);
    if history.points.is_empty() {
        let only = arguments.only.join(" ");
        let error = anyhow::anyhow!("--only {only} matches no experiment");
        return Err(
            CommandError::new(Exit::Usage, error).hint(format!("the experiments are: {known}"))
        );
    }
    Ok(history)
}

/// The results folders that are meant.
fn folders(paths: &[PathBuf]) -> Result<Vec<PathBuf>, CommandError> {
    let home = [Path::new(places::HOME).join("results")];
    let (paths, hint) = if paths.is_empty() {
        let hint = "give folders of results; the default is below the working directory";
        (home.as_slice(), hint)
    } else {
        (
            paths,
            "give results folders of `stillwell run`, a folder that contains them, or JSON files \
             and captures of `stillwell load`",
        )
    };
    results_at(paths).map_err(|error| CommandError::new(Exit::Usage, error).hint(hint.to_owned()))
}

fn counted(folders: usize, loads: usize) -> String {
    let name = |count: usize, singular: &str| match count {
        1 => format!("1 {singular}"),
        _ => format!("{count} {singular}s"),
    };
    match (folders, loads) {
        (_, 0) => name(folders, "results folder"),
        (0, _) => name(loads, "saved load"),
        _ => format!(
            "{} and {}",
            name(folders, "results folder"),
            name(loads, "saved load")
        ),
    }
}

/// Error for metrics that no suite has recorded.
fn nothing_recorded(points: &[HistoryPoint], metrics: &[GoalMetric]) -> CommandError {
    let requested: Vec<_> = metrics.iter().map(GoalMetric::name).collect();
    let error = anyhow::anyhow!("no suite has recorded {}", requested.join(" or "));
    let known = points.iter().flat_map(|point| &point.measurements);
    let known: BTreeSet<_> = known.map(|series| series.metric.name()).collect();
    let known: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
    CommandError::new(Exit::Usage, error).hint(format!("recorded metrics: {}", known.join(", ")))
}

fn deliver(
    report: &HistoryReport,
    arguments: &HistoryArguments,
    paint: &Paint,
) -> Result<(), CommandError> {
    let format = match arguments.format {
        HistoryOutput::Terminal => Format::Terminal,
        HistoryOutput::Markdown => Format::Markdown,
        HistoryOutput::Json => Format::Json,
        HistoryOutput::Html => Format::Html,
        HistoryOutput::OtavaJson => {
            return print_otava(report, arguments, HistoryFormat::OtavaJson);
        }
        HistoryOutput::RegressionsOnly => {
            return print_otava(report, arguments, HistoryFormat::RegressionsOnly);
        }
    };
    let output = OutputArguments {
        format,
        output: arguments.output.clone(),
        assets: None,
        quiet: true,
    };
    output::deliver(&output, paint, &FullReport::from(report))
}

/// Prints the history in a format of another tool; files have their own formats.
fn print_otava(
    report: &HistoryReport,
    arguments: &HistoryArguments,
    format: HistoryFormat,
) -> Result<(), CommandError> {
    let printed = output::print(&render_history(report, format, output::plain()));
    let written = output::write_files(&arguments.output, &FullReport::from(report), None);
    printed.and(written)
}

/// An export holds numbers alone.
fn print_skipped(history: &SavedHistory) {
    for (folder, reason) in &history.skipped {
        let folder = output::show_path(folder);
        Paint::print_message(&format!("note: {folder}: {reason}"));
    }
}
