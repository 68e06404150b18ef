//! `nighthawk_client`: the same load, asked for in Nighthawk's words.

mod check;
mod log;
mod options;
mod plan;
pub(crate) mod remote;
mod remote_service;
mod request;
#[cfg(test)]
mod tests;
mod tunnel;

use std::error::Error as _;

use clap::Parser;
use clap::error::{ContextKind, ErrorKind};
use stillwell_metric::{Outcome, SourceCount, Trouble};
use stillwell_nighthawk::format::{LoadFormat, render_load};
use stillwell_nighthawk::service::conduct_load_from;
use stillwell_plan::{LoadPacing, LoadPlan, Verification};
use stillwell_report::Style;
use stillwell_report::load::{GeneratorHealth, LoadReportInput, load_report};
use stillwell_run::{AnswerHeader, Interrupt, LoadCapture, LoadEnd};
use stillwell_units::{Nanos, Seed};
use stillwell_verdict::load_doubts;

use super::remedy::Words;
use super::{Job, add_typed, original, telemetry};
use crate::arguments::{Concurrency, NighthawkClientArguments, NighthawkVerbosity};
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;
use log::Log;

/// The exit is Nighthawk's: 0, or 1 for whatever went wrong.
pub(crate) fn run_as_nighthawk(paint: &Paint) -> Exit {
    // Nighthawk has two names for the end of flags.
    let words = std::env::args_os().map(|word| {
        let is_end = word == "--ignore_rest";
        if is_end { "--".into() } else { word }
    });
    let arguments = match NighthawkClientArguments::try_parse_from(words) {
        Ok(arguments) => arguments,
        Err(error) if error.use_stderr() => {
            Paint::say(&refusal(&error));
            return Exit::Failed;
        }
        // Help and version are no errors.
        Err(told) => {
            let text = match told.kind() {
                ErrorKind::DisplayHelp => format!("USAGE:\n\n{told}"),
                _ => told.to_string(),
            };
            return match Paint::data(&text) {
                Ok(()) => Exit::Held,
                Err(_) => Exit::Failed,
            };
        }
    };
    match carry_out(&arguments, paint) {
        Ok(exit) => exit,
        Err(error) if error.exit == Exit::Usage => {
            Paint::say(&format!("Bad argument: {error}"));
            Exit::Failed
        }
        Err(error) => {
            paint.error(&error);
            Exit::Failed
        }
    }
}

/// Makes the load of this command line, which `interrupt` ends, and tells what it
/// found as Nighthawk's JSON.
pub(crate) fn load_in_words(words: &[String], interrupt: &Interrupt) -> anyhow::Result<String> {
    let arguments = NighthawkClientArguments::try_parse_from(words);
    let arguments = arguments.map_err(|error| anyhow::anyhow!("{}", refusal(&error)))?;
    let seed = Seed::from_number(1);
    check::check(&arguments)?;
    let options = options::of(&arguments)?;
    let plan = plan::plan(&arguments, seed)?;
    let family = arguments.target.address_family.into();
    let source = request::source_client(&arguments)?;
    let source = source.as_ref();
    let mut capture = conduct_load_from(
        &plan,
        source,
        family,
        &[],
        interrupt,
        &mut |_| {},
        &mut |_| {},
    )?;
    if let LoadEnd::PartFailed(what) = &capture.manifest.end {
        anyhow::bail!("{what}");
    }
    let doubts = load_doubts(LoadPacing::of(&plan), &capture.evidence());
    for doubt in doubts.iter().filter(|doubt| doubt.invalidates()) {
        let told = Words::Nighthawk.told(&doubt.to_string(), doubt.remedy());
        Paint::say(&format!("warning: {told}"));
    }
    add_typed(&mut capture, &[], &arguments.telling.label);
    let report = load_report(&LoadReportInput {
        capture: &capture,
        original: Some(&original(&options)),
        findings: &Words::Nighthawk.findings(&doubts),
    });
    Ok(render_load(
        &report,
        LoadFormat::Json,
        None,
        Style::default(),
    )?)
}

/// Why the command line is not understood, in Nighthawk's words.
fn refusal(error: &clap::Error) -> String {
    let argument = error.get(ContextKind::InvalidArg);
    let argument = argument.map_or_else(String::new, ToString::to_string);
    if error.kind() == ErrorKind::ValueValidation
        && let Some(why) = error.source()
    {
        let flag = argument.split_whitespace().next().unwrap_or_default();
        let why = why.to_string();
        return if why.contains(flag) || why.contains(" predicate ") {
            format!("Bad argument: {why}")
        } else {
            format!("Bad argument: Invalid value for {flag}: {why}")
        };
    }
    format!("PARSE ERROR: Argument: {argument}\n{error}")
}

fn carry_out(arguments: &NighthawkClientArguments, paint: &Paint) -> Result<Exit, CommandError> {
    let bad = |error: anyhow::Error| CommandError::new(Exit::Usage, error);
    let seed = Seed::from_number(1);
    check::check(arguments).map_err(bad)?;
    let options = options::of(arguments).map_err(bad)?;
    let log = Log::new(arguments.telling.verbosity);
    if let Some(uri) = &arguments.telling.nighthawk_service {
        return remote_service::execute(uri, options, format_of(arguments), log);
    }
    let plan = plan::plan(arguments, seed).map_err(bad)?;
    warn(arguments, &plan, log);
    announce(arguments, &plan, log);
    let uri = arguments.uri.iter();
    let targets: Vec<String> = uri
        .chain(&arguments.target.multi_target_endpoint)
        .cloned()
        .collect();
    let job = Job {
        plan,
        family: arguments.target.address_family.into(),
        places: Vec::new(),
        targets: &targets,
        labels: &arguments.telling.label,
        nighthawk: Some(options),
        source: request::source_client(arguments).map_err(bad)?,
        heard: &|header| tell_header(header, log),
        quiet: arguments.telling.verbosity > NighthawkVerbosity::Debug,
        format: format_of(arguments),
        capture: None,
    };
    let (capture, health) = job.conduct(paint)?;
    tell_troubles(&capture, &health, log);
    let exit = match &capture.manifest.end {
        LoadEnd::Failure(_) => {
            log.error("Exiting due to failing termination predicate");
            Exit::Failed
        }
        LoadEnd::PartFailed(what) => {
            log.error(what);
            Exit::Failed
        }
        LoadEnd::Duration
        | LoadEnd::Requests
        | LoadEnd::Termination(_)
        | LoadEnd::Interrupted(_) => Exit::Held,
    };
    log.info("Done.");
    Ok(exit)
}

/// People get what Nighthawk tells them.
const fn format_of(arguments: &NighthawkClientArguments) -> LoadFormat {
    match arguments.telling.output_format {
        LoadFormat::Human => LoadFormat::NighthawkHuman,
        other => other,
    }
}

/// What is done all the same, and may not be what was meant.
fn warn(arguments: &NighthawkClientArguments, plan: &LoadPlan, log: Log) {
    let speaks_tls = plan.endpoints.iter().any(|it| it.tls_host.is_some());
    let tunnel = plan.tunnel.as_ref().filter(|it| it.tls_host.is_some());
    if tunnel.is_some_and(|it| it.tls.verification == Verification::None) {
        log.warn(
            "The certificate of the proxy is not checked. Name an authority in \
             --tunnel-tls-context, under common_tls_context.validation_context.trusted_ca, to \
             have it checked.",
        );
    }
    if speaks_tls && plan.tls.verification == Verification::None {
        log.warn(
            "Certificates are not checked. Name an authority in --transport-socket, under \
             common_tls_context.validation_context.trusted_ca, to have them checked.",
        );
    }
    let socket = [
        ("--tls-context", &arguments.target.tls_context),
        ("--transport-socket", &arguments.target.transport_socket),
    ];
    for (flag, value) in socket {
        if value.is_some() && !speaks_tls {
            log.warn(&format!("{flag} has no effect: the target is not https."));
        }
    }
    if arguments.target.tls_context.is_some() {
        log.warn("--tls-context is deprecated, use --transport-socket instead.");
    }
    let trace = arguments.telling.trace.as_deref().unwrap_or_default();
    if plan::v2_of(trace) != trace {
        log.warn("--trace: version 2 of Zipkin's interface is spoken, not version 1.");
    }
    if arguments.shape.experimental_h2_use_multiple_connections {
        log.warn(
            "--experimental-h2-use-multiple-connections is deprecated, set \
             --max-concurrent-streams to one instead.",
        );
    }
}

/// What is about to be done.
fn announce(arguments: &NighthawkClientArguments, plan: &LoadPlan, log: Log) {
    let workers = u32::from(plan.workers);
    if arguments.shape.concurrency == Concurrency::Auto {
        log.info(&format!("Detected {workers} (v)CPUs with affinity.."));
    }
    let limit = plan.until.duration.map_or_else(
        || "No time limit.".to_owned(),
        |limit| match limit.as_u64() % Nanos::SECOND.as_u64() {
            0 => format!("Time limit: {} seconds.", limit.as_u64() / 1_000_000_000),
            _ => format!("Time limit: {limit}."),
        },
    );
    log.info(&format!(
        "Starting {workers} threads / event loops. {limit}"
    ));
    let connections = plan.connecting.connections;
    let rate = u64::from(arguments.shape.rps) * u64::from(workers);
    log.info(&format!(
        "Global targets: {connections} connections and {rate} calls per second."
    ));
    if workers > 1 {
        log.info(&format!(
            "   (Per-worker targets: {} connections and {} calls per second)",
            connections / workers,
            arguments.shape.rps
        ));
    }
}

/// A header of an answer, in the words of Nighthawk's plugin.
fn tell_header(header: &AnswerHeader, log: Log) {
    let AnswerHeader { name, value } = header;
    log.info(&format!(
        "Received Header with name {name} and value {value}"
    ));
}

/// What went wrong on the way, if anything.
fn tell_troubles(capture: &LoadCapture, health: &GeneratorHealth, log: Log) {
    let mut counts = capture.counts();
    let of_connect = counts.find_map(|counts| counts.connect_trouble.as_ref());
    let mut counts = capture.counts();
    let of_answer = counts.find_map(|counts| counts.answer_trouble.as_ref());
    for trouble in [of_connect, of_answer] {
        let is_told = |it: &&Trouble| health.findings.iter().any(|own| own.text.contains(&it.why));
        if let Some(trouble) = trouble.filter(|it| !is_told(it)) {
            log.warn(&Words::Nighthawk.told(&trouble.why, trouble.remedy));
        }
    }
    for line in telemetry::told(&capture.manifest.telemetry) {
        log.info(&line);
    }
    let of_source = |count| capture.sum(|counts| counts.source.value(count));
    if of_source(SourceCount::Ended) > 0 {
        let requests = of_source(SourceCount::Requests);
        log.info(&format!(
            "The request source has ended: it handed {requests} requests out."
        ));
    }
    for finding in &health.findings {
        log.warn(&finding.text);
    }
    if capture.sum(|counts| counts.ended(Outcome::Unfinished)) > 0 {
        log.warn("Wait for the connection pool drain timed out, proceeding to hard shutdown.");
    }
}
