//! `nighthawk_client`: a load by Nighthawk's flags.

mod log;
pub(crate) mod remote;
mod remote_service;
#[cfg(test)]
mod tests;

use stillwell_metric::{Outcome, SourceCount, Trouble};
use stillwell_nighthawk::CommandLineOptions;
use stillwell_nighthawk::envoy::replaced_suites;
use stillwell_nighthawk::format::{LoadFormat, NighthawkFormat, render_as};
use stillwell_nighthawk::request::{LogLevel, NighthawkRequest, RequestError, current_zipkin_uri};
use stillwell_nighthawk::service::RequestSourceClient;
use stillwell_observer::{describe_host, load_host_warnings};
use stillwell_plan::LoadPlan;
use stillwell_plan::tls::Verification;
use stillwell_report::load::{GeneratorHealth, LoadReportInput, load_report};
use stillwell_run::{
    AnswerNote, Interrupt, LoadBeside, LoadCapture, LoadEnd, LoadSource, conduct_load_beside,
};
use stillwell_units::{Nanos, Seed};
use stillwell_verdict::{LoadRules, load_warnings};

use super::remedy::OptionNames;
use super::spec::{cpus, random_run};
use super::{Job, add_typed, telemetry};
use crate::arguments::{Concurrency, NighthawkClientArguments};
use crate::command::nighthawk_line;
use crate::command::service::access::token_of_environment;
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;
use crate::secrets;
use log::Log;

/// Exits as Nighthawk does: 0, or 1 for any failure.
pub(crate) fn run_as_nighthawk(paint: &Paint) -> Exit {
    let request = match nighthawk_line::parse::<NighthawkClientArguments>() {
        Ok(arguments) => NighthawkRequest::from(arguments),
        Err(exit) => return exit,
    };
    match carry_out(&request, paint) {
        Ok(exit) => exit,
        Err(error) if error.exit == Exit::Usage => {
            Paint::print_message(&format!("Bad argument: {error}"));
            Exit::Failed
        }
        Err(error) => {
            paint.error(&error);
            Exit::Failed
        }
    }
}

/// Makes the load of `request`, which `interrupt` ends, and returns its result as
/// Nighthawk's JSON.
pub(crate) fn load_of(request: &NighthawkRequest, interrupt: &Interrupt) -> anyhow::Result<String> {
    request.check()?;
    let options = request.options()?;
    let plan = plan(request)?;
    let family = request.target.address_family;
    let source = source_client(request).map_err(|error| error.error)?;
    let beside = LoadBeside {
        progress: &mut |_| {},
        on_note: &mut |_| {},
        source: source.as_ref().map(|source| source as &dyn LoadSource),
        agree: None,
    };
    let mut capture = conduct_load_beside(plan.clone(), family, &[], interrupt, beside)?;
    if let LoadEnd::PartFailed(what) = &capture.manifest.end {
        anyhow::bail!("{what}");
    }
    let rules = LoadRules::of(&plan);
    let warnings = load_warnings(rules, &capture.evidence());
    for warning in warnings
        .iter()
        .filter(|warning| rules.is_unreliable_by(warning))
    {
        let text = OptionNames::Nighthawk.with_advice(&warning.to_string(), warning.remedy());
        Paint::print_message(&format!("warning: {text}"));
    }
    add_typed(&mut capture, &[], &request.output.label)?;
    let report = load_report(&LoadReportInput {
        capture: &capture,
        original: Some(&original(&options)),
        warnings: &OptionNames::Nighthawk.health_warnings(rules, &warnings),
    });
    Ok(render_as(&report, NighthawkFormat::Json))
}

/// Returns the plan of `request` on this host.
fn plan(request: &NighthawkRequest) -> anyhow::Result<LoadPlan> {
    Ok(request.plan(cpus(), random_run()?, Seed::from_number(1))?)
}

/// Returns the client of the request source of `request`, if there is one, with the token of the
/// environment.
fn source_client(request: &NighthawkRequest) -> Result<Option<RequestSourceClient>, CommandError> {
    let source = request.source_client();
    let source = source.map_err(|error| CommandError::new(Exit::Usage, error))?;
    let Some(source) = source else {
        return Ok(None);
    };
    let token = token_of_environment()?;
    Ok(Some(source.with_token(token.as_ref())))
}

fn carry_out(request: &NighthawkRequest, paint: &Paint) -> Result<Exit, CommandError> {
    let bad = |error: RequestError| CommandError::new(Exit::Usage, error);
    request.check().map_err(bad)?;
    let options = request.options().map_err(bad)?;
    let log = Log::new(request.output.verbosity);
    if let Some(uri) = &request.output.nighthawk_service {
        return remote_service::execute(uri, &options, format_of(request), log);
    }
    let plan = plan(request).map_err(|error| CommandError::new(Exit::Usage, error))?;
    warn(request, &plan, log);
    for warning in load_host_warnings(&describe_host(), usize::from(plan.workers)) {
        log.warn(&warning);
    }
    announce(request, &plan, log);
    let uri = request.uri.iter();
    let targets: Vec<String> = uri
        .chain(&request.target.multi_target_endpoint)
        .cloned()
        .collect();
    let source = source_client(request)?;
    let job = Job {
        plan,
        family: request.target.address_family,
        places: Vec::new(),
        targets: &targets,
        labels: &request.output.label,
        option_names: OptionNames::Nighthawk,
        original: Some(original(&options)),
        keep_going: true,
        source: source.as_ref().map(|source| source as &dyn LoadSource),
        on_note: &|note| log_note(note, log),
        quiet: request.output.verbosity > LogLevel::Debug,
        format: format_of(request),
        capture: None,
        thresholds: &[],
        outputs: &[],
    };
    let (capture, health) = job.conduct(paint)?;
    log_problems(&capture, &health, log);
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

/// Options as a report keeps them.
fn original(options: &CommandLineOptions) -> serde_json::Value {
    let options = serde_json::to_value(options);
    secrets::handling().json(options.expect("every key is a text and every number finite"))
}

/// Returns the format; readers get Nighthawk's layout.
const fn format_of(request: &NighthawkRequest) -> LoadFormat {
    match request.output.output_format {
        LoadFormat::HUMAN => LoadFormat::Nighthawk(NighthawkFormat::Human),
        other => other,
    }
}

/// Warns of options that may not do what the user expects.
fn warn(request: &NighthawkRequest, plan: &LoadPlan, log: Log) {
    let uses_tls = plan
        .endpoints
        .iter()
        .any(|endpoint| endpoint.tls_host.is_some());
    let tunnel = plan
        .client
        .tunnel
        .as_ref()
        .filter(|tunnel| tunnel.tls_host.is_some());
    if tunnel.is_some_and(|tunnel| tunnel.tls.verification == Verification::None) {
        log.warn(
            "The certificate of the proxy is not checked. Name an authority in \
             --tunnel-tls-context, under common_tls_context.validation_context.trusted_ca, to \
             have it checked.",
        );
    }
    if uses_tls && plan.client.tls.verification == Verification::None {
        log.warn(
            "Certificates are not checked. Name an authority in --transport-socket, under \
             common_tls_context.validation_context.trusted_ca, to have them checked.",
        );
    }
    let socket = [
        ("--tls-context", &request.target.tls_context),
        ("--transport-socket", &request.target.transport_socket),
    ];
    for (flag, value) in socket {
        if value.is_some() && !uses_tls {
            log.warn(&format!("{flag} has no effect: the target is not https."));
        }
    }
    for (_, text) in socket {
        for (old, new) in replaced_suites(text.as_deref().unwrap_or_default()) {
            log.warn(&format!(
                "The cipher suite {old} is not supported, because it lacks ECDHE or AEAD; {new} is offered instead."
            ));
        }
    }
    if request.target.tls_context.is_some() {
        log.warn("--tls-context is deprecated, use --transport-socket instead.");
    }
    if plan.telemetry.sinks.len() < request.output.stats_sinks.len() {
        log.warn(
            "--stats-sinks: nothing is sent to the cluster of `tcp_cluster_name`. Say where it is with \
             --stats-sink-address HOST:PORT.",
        );
    }
    let trace = request.output.trace.as_deref().unwrap_or_default();
    if current_zipkin_uri(trace) != trace {
        log.warn("--trace: version 2 of Zipkin's interface is used, not version 1.");
    }
    if request.load.experimental_h2_use_multiple_connections {
        log.warn(
            "--experimental-h2-use-multiple-connections is deprecated, set \
             --max-concurrent-streams to one instead.",
        );
    }
}

/// Logs the load before its start.
fn announce(request: &NighthawkRequest, plan: &LoadPlan, log: Log) {
    log.trace("Node: nighthawk_service_node, zone nighthawk_service_zone.");
    let workers = u32::from(plan.workers);
    if request.load.concurrency == Concurrency::Auto {
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
    let connections = plan.client.connecting.connections;
    let rate = u64::from(request.load.rps) * u64::from(workers);
    log.info(&format!(
        "Global targets: {connections} connections and {rate} calls per second."
    ));
    if workers > 1 {
        log.info(&format!(
            "   (Per-worker targets: {} connections and {} calls per second)",
            connections / workers,
            request.load.rps
        ));
    }
}

/// Logs a response header with the text of Nighthawk's plugin, and the end of an answer with one line
/// of Envoy's codec and one of its client.
fn log_note(note: &AnswerNote, log: Log) {
    match note {
        AnswerNote::Header { name, value } => log.info(&format!(
            "Received Header with name {name} and value {value}"
        )),
        AnswerNote::Complete { connection, status } => {
            log.trace(&format!("[C{connection}] message complete"));
            log.trace(&format!(
                "[C{connection}] message complete, status {status}"
            ));
        }
    }
}

/// Returns a warning if one worker sent clearly fewer requests than another. Every other figure hides that.
fn uneven(sent: &[u64]) -> Option<String> {
    let (least, most) = (sent.iter().min()?, sent.iter().max()?);
    // The ends of workers are a few requests apart.
    let is_uneven = most - least > 10 && least * 10 < most * 9;
    is_uneven.then(|| {
        format!(
            "Workers differ: one sent {least} requests, another {most}. Use fewer workers, or CPUs that nothing \
             else uses."
        )
    })
}

/// Logs problems of the load.
fn log_problems(capture: &LoadCapture, health: &GeneratorHealth, log: Log) {
    let mut counts = capture.counts();
    let of_connect = counts.find_map(|counts| counts.connect_trouble.as_ref());
    let mut counts = capture.counts();
    let of_answer = counts.find_map(|counts| counts.answer_trouble.as_ref());
    for trouble in [of_connect, of_answer] {
        let is_shown = |trouble: &&Trouble| {
            let mut warnings = health.warnings.iter();
            warnings.any(|warning| warning.text.contains(&trouble.why))
        };
        if let Some(trouble) = trouble.filter(|trouble| !is_shown(trouble)) {
            log.warn(&OptionNames::Nighthawk.with_advice(&trouble.why, trouble.remedy));
        }
    }
    for line in telemetry::summary_lines(&capture.manifest.telemetry) {
        log.info(&line);
    }
    let of_source = |count| capture.sum(|counts| counts.source.value(count));
    if of_source(SourceCount::Ended) > 0 {
        let requests = of_source(SourceCount::Requests);
        log.info(&format!(
            "The request source has ended: it supplied {requests} requests."
        ));
    }
    for warning in &health.warnings {
        log.warn(&warning.text);
    }
    let sent: Vec<u64> = capture.counts().map(|counts| counts.sent).collect();
    if let Some(warning) = uneven(&sent) {
        log.warn(&warning);
    }
    if capture.sum(|counts| counts.ended(Outcome::Unfinished)) > 0 {
        log.warn("Wait for the connection pool drain timed out, proceeding to hard shutdown.");
    }
}
