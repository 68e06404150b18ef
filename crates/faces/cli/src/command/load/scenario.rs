//! `stillwell load --scenario`.

mod judge;

use std::path::{Path, PathBuf};

use anyhow::Context;
use stillwell_config::files::Disk;
use stillwell_config::scenario::{ScenarioFlags, load_scenario};
use stillwell_nighthawk::format::LoadFormat;
use stillwell_plan::Validity;
use stillwell_plan::load::LoadProtocol;
use stillwell_plan::scenario::{ScenarioLoadPlan, UsersPlan};
use stillwell_report::load::{BriefTimes, LoadProtocol as ReportedProtocol, NativeLoadFormat};
use stillwell_report::{
    Format, SCENARIO_SCHEMA, ScenarioReport, ScenarioStep, ScenarioUsers, render_scenario,
};
use stillwell_run::{Interrupt, ScenarioResult, conduct_scenario};
use stillwell_scope::clock;
use stillwell_units::{Nanos, float_from_u64};

use crate::arguments::LoadArguments;
use crate::command::load::spec::{cpus, tls};
use crate::command::{output, select};
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;
use crate::secrets;
use crate::signals;

pub(super) fn run(
    arguments: &LoadArguments,
    file: &Path,
    paint: &Paint,
) -> Result<Exit, CommandError> {
    output::check_writable_as(&arguments.output, |file| format_of_file(file).map(drop))?;
    let could_not = |error: anyhow::Error| CommandError::new(Exit::CouldNotRun, error);
    let format = match arguments.output_format {
        LoadFormat::HUMAN => Format::Terminal,
        LoadFormat::Native(NativeLoadFormat::Json) => Format::Json,
        _ => {
            let error = anyhow::anyhow!("a scenario has no result in this format");
            let error = CommandError::new(Exit::Usage, error);
            return Err(error.hint("use --format human or json"));
        }
    };
    if arguments.urls.len() > 1 {
        let error = anyhow::anyhow!("a scenario has one base URL");
        return Err(CommandError::new(Exit::Usage, error));
    }
    let protocol = LoadProtocol::from(arguments.over.protocol);
    if protocol == LoadProtocol::Http3 {
        let error = anyhow::anyhow!("scenarios do not support HTTP/3");
        let error = CommandError::new(Exit::Usage, error);
        return Err(error.hint("use --protocol http1 or http2"));
    }
    let seed = match arguments.seed {
        Some(seed) => seed,
        None => super::random_seed().map_err(could_not)?,
    };
    let flags = ScenarioFlags {
        url: arguments.urls.first().cloned(),
        warmup: arguments.warmup,
        duration: arguments.duration,
        threads: arguments.over.concurrency.workers(cpus(), u32::MAX, 1),
        protocol,
        timeout: arguments.connecting.timeout,
        connect_timeout: arguments.connecting.connect_timeout,
        tls: tls(&arguments.tls),
        seed,
    };
    let loaded = load_scenario(&Disk, file, flags)
        .map_err(|diagnostics| select::refused(&diagnostics, paint))?;
    select::warn(&loaded.warnings, paint);
    let mut plan = loaded.plan;
    plan.has_grace = !arguments.threshold.is_empty();
    let interrupt = Interrupt::new();
    let raised = interrupt.clone();
    let signals = signals::listen(move |signal| raised.raise(signal))
        .map_err(|error| could_not(error.into()))?;
    let started = clock::wall();
    let result = conduct_scenario(plan.clone(), &interrupt);
    signals.close(Nanos::SECOND);
    let result = result.map_err(|error| could_not(error.into()))?;
    let report = report(&plan, (&result, started), arguments);
    let text = render_scenario(&report, format, output::styled(paint));
    let printed = output::print(&text);
    let written = write_files(&report, &arguments.output);
    let exit = exit_of(&report, &result, &interrupt, arguments.strict);
    exit_after(exit, written.and(printed), paint)
}

/// Writes the report to all `files`, each in the format of its extension.
fn write_files(report: &ScenarioReport, files: &[PathBuf]) -> Result<(), CommandError> {
    output::write_each(files, |file| {
        let text = render_scenario(report, format_of_file(file)?, output::plain());
        std::fs::write(file, text)
            .with_context(|| format!("write the result to {}", file.display()))
            .map_err(|error| CommandError::new(Exit::CouldNotRun, error))
    })
}

/// Returns the format that the extension of `file` names.
fn format_of_file(file: &Path) -> Result<Format, CommandError> {
    let extension = file.extension().and_then(|extension| extension.to_str());
    Ok(match extension {
        Some("json") => Format::Json,
        Some("txt") => Format::Terminal,
        Some("md") => Format::Markdown,
        Some("html") => Format::Html,
        _ => {
            let what = file.display();
            let error = anyhow::anyhow!("a scenario has no result in the format of {what}");
            let error = CommandError::new(Exit::Usage, error);
            return Err(error.hint("name it .json, .html, .md or .txt"));
        }
    })
}

fn report(
    plan: &ScenarioLoadPlan,
    (result, started): (&ScenarioResult, Nanos),
    arguments: &LoadArguments,
) -> ScenarioReport {
    let flows = plan.scenario.flows.iter();
    let names = flows.flat_map(|flow| flow.steps.iter().map(move |step| (flow, step)));
    let steps: Vec<ScenarioStep> = names
        .zip(&result.steps)
        .map(|((flow, step), result)| ScenarioStep {
            flow: flow.name.clone(),
            name: step.name.clone(),
            requests: result.requests,
            errors: result.failures.values().sum(),
            failures: result
                .failures
                .iter()
                .map(|(reason, count)| (reason.name().to_owned(), *count))
                .collect(),
            first_failure: result.first_failure.clone(),
            status_codes: result.statuses.clone(),
            latency: BriefTimes::of(&result.latency),
        })
        .collect();
    let measured = judge::figures(result);
    let (requests, errors) = (measured.requests, measured.errors);
    let duration = result.measured.as_secs_f64();
    let validity = Validity::from(arguments.validity);
    let (warnings, reliable) = judge::warnings(plan, result, &measured, validity);
    let users = &result.users;
    let command: Vec<String> = secrets::command_words();
    ScenarioReport {
        schema: SCENARIO_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: command.join(" "),
        seed: plan.seed.to_string(),
        target: plan.scenario.authority.clone(),
        load: match plan.users {
            UsersPlan::Closed(1) => "1 user at a time".to_owned(),
            UsersPlan::Closed(users) => format!("{users} users at a time"),
            UsersPlan::Arriving { per_second, .. } => format!("{per_second} users/s arrive"),
        },
        protocol: match plan.scenario.protocol {
            LoadProtocol::Http1 => ReportedProtocol::Http1,
            LoadProtocol::Http2 => ReportedProtocol::Http2,
            LoadProtocol::Http3 => ReportedProtocol::Http3,
        }
        .to_string(),
        open_loop: matches!(plan.users, UsersPlan::Arriving { .. }),
        workers: plan.threads.into(),
        users_max: match plan.users {
            UsersPlan::Closed(users) => users,
            UsersPlan::Arriving { at_a_time_max, .. } => at_a_time_max,
        },
        started_wall_millis: Some(started.as_u64() / 1_000_000),
        duration,
        users: ScenarioUsers {
            started: users.started,
            completed: users.completed,
            failed: users.failed,
            unfinished: users.unfinished,
            not_started: users.not_started,
        },
        requests,
        requests_per_second: float_from_u64(result.requests_in_time) / duration.max(1e-9),
        error_share: float_from_u64(errors) / float_from_u64(requests.max(1)),
        steps,
        latency: BriefTimes::of(&measured.latency),
        validity: validity.name().to_owned(),
        reliable,
        warnings,
        thresholds: judge::thresholds(plan, result, &measured, &arguments.threshold),
    }
}

/// Returns 3 if no counted request was answered, 1 if no user completed the steps or a threshold is
/// broken, with `--strict` 4 if the result is unreliable, and 130 or 143 after a signal.
fn exit_of(
    report: &ScenarioReport,
    result: &ScenarioResult,
    interrupt: &Interrupt,
    is_strict: bool,
) -> Exit {
    if let Some(signal) = interrupt.signal() {
        return Exit::Interrupted(signal);
    }
    let is_answered = report
        .steps
        .iter()
        .any(|step| !step.status_codes.is_empty());
    let is_held = report.thresholds.iter().all(|threshold| threshold.held);
    match (is_answered, result.users.completed_after_warmup) {
        (false, _) => Exit::CouldNotRun,
        (true, 0) => Exit::Failed,
        (true, _) if !is_held => Exit::Failed,
        (true, _) if is_strict && !report.reliable => Exit::Invalid,
        (true, _) => Exit::Held,
    }
}

/// Returns the exit code of a load that ended with `exit`, and whose result was `written` to standard output and to
/// files. An error that is not returned is printed.
///
/// # Errors
/// The error of the result, unless the load failed or a signal ended it.
fn exit_after(
    exit: Exit,
    written: Result<(), CommandError>,
    paint: &Paint,
) -> Result<Exit, CommandError> {
    match (exit, written) {
        (_, Ok(())) => Ok(exit),
        (Exit::Failed | Exit::Interrupted(_), Err(error)) => {
            paint.error(&error);
            Ok(exit)
        }
        (_, Err(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::ColorWhen;

    #[test]
    fn a_failure_and_a_signal_come_before_a_result_that_cannot_be_written() {
        let paint = Paint::new(ColorWhen::Never);
        let after = |exit: Exit, written: Result<(), CommandError>| {
            exit_after(exit, written, &paint).map_err(|error| error.exit)
        };
        let full = || CommandError::new(Exit::CouldNotRun, anyhow::anyhow!("the disk is full"));
        for exit in [Exit::Held, Exit::Invalid, Exit::CouldNotRun] {
            assert_eq!(after(exit, Ok(())), Ok(exit));
            assert_eq!(after(exit, Err(full())), Err(Exit::CouldNotRun));
        }
        for exit in [Exit::Failed, Exit::Interrupted(2)] {
            assert_eq!(after(exit, Ok(())), Ok(exit));
            assert_eq!(after(exit, Err(full())), Ok(exit));
        }
    }
}
