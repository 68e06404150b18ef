//! `nighthawk_adaptive_load_client`: a session in Nighthawk's words. Loads are made
//! by this process and by no service elsewhere.

use std::fs;

use anyhow::{Context, bail};
use clap::Parser;
use stillwell_legacy::nighthawk::adaptive::{
    BenchmarkResult, Controller, ControllerStep, SessionOutput, SessionSpec, read_session,
    session_json,
};
use stillwell_legacy::nighthawk::{
    CommandLineOptions, ConnectionReuse, Endpoint, IdleStrategy, read_json,
};
use stillwell_scope::clock;
use stillwell_units::{Nanos, floor_to_u64};

use super::Watch;
use crate::arguments::NighthawkAdaptiveArguments;
use crate::command::load::nighthawk::load_in_words;
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;

/// The exit is Nighthawk's: 0, or 1 for whatever went wrong; a signal has its own.
pub(crate) fn run_as_nighthawk(paint: &Paint) -> Exit {
    let arguments = NighthawkAdaptiveArguments::parse();
    match session(&arguments) {
        Ok(()) => Exit::Held,
        Err(error) => {
            paint.error(&error);
            match error.exit {
                Exit::Interrupted(signal) => Exit::Interrupted(signal),
                _ => Exit::Failed,
            }
        }
    }
}

fn session(arguments: &NighthawkAdaptiveArguments) -> Result<(), CommandError> {
    let failed = |error: anyhow::Error| CommandError::new(Exit::Failed, error);
    if let Some(address) = &arguments.nighthawk_service_address {
        let error =
            anyhow::anyhow!("loads are made by this process, not by a service at {address}");
        return Err(failed(error).hint("leave --nighthawk-service-address out"));
    }
    let path = &arguments.spec_file;
    let text = fs::read_to_string(path)
        .with_context(|| format!("read {}", path.display()))
        .map_err(failed)?;
    let spec = read_session(&text)
        .with_context(|| format!("understand {}", path.display()))
        .map_err(failed)?;
    // Refused before any load, not after all of them.
    fs::write(&arguments.output_file, "")
        .with_context(|| format!("write to {}", arguments.output_file.display()))
        .map_err(failed)?;
    let watch = Watch::start()?;
    let mut output = SessionOutput {
        thresholds: spec
            .thresholds
            .iter()
            .map(|own| own.message.clone())
            .collect(),
        ..SessionOutput::default()
    };
    let ended = search(&spec, &watch, &mut output);
    let signal = watch.interrupt.signal();
    watch.end();
    // What was found until then is worth keeping.
    fs::write(&arguments.output_file, session_json(&output))
        .with_context(|| format!("write to {}", arguments.output_file.display()))
        .map_err(failed)?;
    match (ended, signal) {
        (Ok(()), _) => Ok(()),
        (Err(error), Some(signal)) => Err(CommandError::new(Exit::Interrupted(signal), error)),
        (Err(error), None) => Err(failed(error)),
    }
}

fn search(spec: &SessionSpec, watch: &Watch, output: &mut SessionOutput) -> anyhow::Result<()> {
    let begin = clock::now();
    let mut controller = Controller::new(spec.search);
    let rate = loop {
        match controller.step() {
            ControllerStep::Converged(rate) => break rate,
            ControllerStep::Doomed => {
                bail!(
                    "thresholds do not hold at the first rate of {} requests/s",
                    spec.search.initial
                )
            }
            ControllerStep::Load(rate) => {
                if clock::now().since(begin) > spec.convergence_deadline {
                    bail!(
                        "the search did not converge within {}: raise convergence_deadline",
                        spec.convergence_deadline
                    );
                }
                let (result, holds) = load(spec, rate, spec.measuring_period, watch)?;
                output.adjusting.push(result);
                controller.observe(holds);
                watch.wait(spec.cooldown);
            }
        }
    };
    Paint::say(&format!(
        "converged at {} requests/s for each worker",
        whole(rate)
    ));
    let (result, holds) = load(spec, rate, spec.testing_stage, watch)?;
    output.testing = Some(result);
    if !holds {
        // The tool says nothing of it.
        Paint::say("warning: thresholds do not hold in the testing stage");
    }
    Ok(())
}

/// One load at this rate, and whether all thresholds held.
fn load(
    spec: &SessionSpec,
    rate: f64,
    length: Nanos,
    watch: &Watch,
) -> anyhow::Result<(BenchmarkResult, bool)> {
    let words = words(&spec.template, whole(rate), length)?;
    let started = clock::wall();
    let text = load_in_words(&words, &watch.interrupt)?;
    let ended = clock::wall();
    if watch.interrupt.signal().is_some() {
        bail!("interrupted");
    }
    let output = read_json(&text).context("understand what a load has told")?;
    let (evaluations, holds) = spec.evaluate(&output)?;
    let told: Vec<String> = evaluations
        .iter()
        .map(|own| format!("{} {:.6}", own.metric_id, own.value))
        .collect();
    let word = if holds { "held" } else { "failed" };
    Paint::say(&format!(
        "{} requests/s: {word}: {}",
        whole(rate),
        told.join(", ")
    ));
    let result = BenchmarkResult {
        output,
        evaluations,
        started,
        ended,
    };
    Ok((result, holds))
}

/// Nighthawk's rates are whole.
fn whole(rate: f64) -> u64 {
    floor_to_u64(rate).max(1)
}

/// The command line of `nighthawk_client` that asks for this load.
fn words(template: &CommandLineOptions, rate: u64, length: Nanos) -> anyhow::Result<Vec<String>> {
    if let Some(name) = without_effect(template).first() {
        bail!("nighthawk_traffic_template.{name} has no effect here: leave it out");
    }
    let mut words = vec!["nighthawk_client".to_owned()];
    let mut flag = |name: &str, value: Option<String>| {
        words.extend(value.map(|value| format!("--{name}={value}")));
    };
    let number = |value: Option<u32>| value.map(|own| own.to_string());
    flag("rps", Some(rate.to_string()));
    flag("duration", Some(length.to_string()));
    flag("connections", number(template.connections));
    flag("timeout", template.timeout.map(|own| own.to_string()));
    flag("concurrency", template.concurrency.clone());
    flag("burst-size", number(template.burst_size));
    flag(
        "jitter-uniform",
        template.jitter_uniform.map(|own| own.to_string()),
    );
    flag(
        "max-pending-requests",
        number(template.max_pending_requests),
    );
    flag("max-active-requests", number(template.max_active_requests));
    flag(
        "max-requests-per-connection",
        number(template.max_requests_per_connection),
    );
    flag(
        "max-concurrent-streams",
        number(template.max_concurrent_streams),
    );
    flag(
        "protocol",
        template.protocol.map(|own| own.name().to_lowercase()),
    );
    flag(
        "address-family",
        template.address_family.map(|own| own.name().to_lowercase()),
    );
    words.extend(requests(template));
    words.extend(telling(template));
    words.extend(switches(template));
    targets(template, &mut words)?;
    Ok(words)
}

/// Predicates, what requests are, and messages of Envoy.
fn requests(template: &CommandLineOptions) -> Vec<String> {
    let mut words = Vec::new();
    let mut flag = |name: &str, value: Option<String>| {
        words.extend(value.map(|value| format!("--{name}={value}")));
    };
    for (name, threshold) in &template.termination_predicates {
        flag("termination-predicate", Some(format!("{name}:{threshold}")));
    }
    for (name, threshold) in &template.failure_predicates {
        flag("failure-predicate", Some(format!("{name}:{threshold}")));
    }
    if let Some(request) = &template.request_options {
        flag(
            "request-method",
            request.request_method.map(|own| own.name().to_owned()),
        );
        flag(
            "request-body-size",
            request.request_body_size.map(|own| own.to_string()),
        );
        for (name, value) in &request.request_headers {
            flag("request-header", Some(format!("{name}:{value}")));
        }
    }
    for label in &template.labels {
        flag("label", Some(label.clone()));
    }
    for name in PASSED_ON {
        let value = template.other.get(name);
        flag(&name.replace('_', "-"), value.map(ToString::to_string));
    }
    words
}

/// How workers wait and connections are chosen, and who is told of the load.
fn telling(template: &CommandLineOptions) -> Vec<String> {
    let mut words = Vec::new();
    let mut flag = |name: &str, value: Option<String>| {
        words.extend(value.map(|value| format!("--{name}={value}")));
    };
    let idle = template.sequencer_idle_strategy;
    let idle = idle.filter(|own| *own != IdleStrategy::Default);
    flag(
        "sequencer-idle-strategy",
        idle.map(|own| own.name().to_lowercase()),
    );
    let reuse = template.experimental_h1_connection_reuse_strategy;
    let reuse = reuse.filter(|own| *own != ConnectionReuse::Default);
    flag(
        "experimental-h1-connection-reuse-strategy",
        reuse.map(|own| own.name().to_lowercase()),
    );
    flag("trace", template.trace.clone());
    flag(
        "latency-response-header-name",
        template.latency_response_header_name.clone(),
    );
    for sink in &template.stats_sinks {
        flag("stats-sinks", Some(sink.to_string()));
    }
    let seconds = template.stats_flush_interval;
    flag("stats-flush-interval", seconds.map(|own| own.to_string()));
    let time = template.stats_flush_interval_duration;
    flag(
        "stats-flush-interval-duration",
        time.map(|own| own.to_string()),
    );
    words
}

/// Envoy's messages that a load takes as they stand.
const PASSED_ON: [&str; 5] = [
    "tls_context",
    "transport_socket",
    "upstream_bind_config",
    "request_source_plugin_config",
    "rate_limiter_plugin_config",
];

/// Fields of a template that would be read and change nothing.
fn without_effect(template: &CommandLineOptions) -> Vec<&str> {
    let request = template.request_options.as_ref();
    let own = [
        (
            "request_options.json_body",
            request.is_some_and(|own| !own.json_body.is_empty()),
        ),
        ("scheduled_start", template.scheduled_start.is_some()),
        ("execution_id", template.execution_id.is_some()),
        (
            "user_defined_plugin_configs",
            !template.user_defined_plugin_configs.is_empty(),
        ),
        ("verbosity", template.verbosity.is_some()),
        ("output_format", template.output_format.is_some()),
    ];
    let own = own.into_iter().filter(|(_, is_set)| *is_set);
    let other = template.other.keys().map(String::as_str);
    let other = other.filter(|name| !PASSED_ON.contains(name));
    own.map(|(name, _)| name).chain(other).collect()
}

fn switches(template: &CommandLineOptions) -> impl Iterator<Item = String> {
    // A search must see loads that fail.
    let is_open = template.open_loop.unwrap_or(true);
    let switches = [
        ("open-loop", is_open),
        (
            "no-default-failure-predicates",
            template.failure_predicates.is_empty()
                || template.no_default_failure_predicates == Some(true),
        ),
        (
            "experimental-h2-use-multiple-connections",
            template.experimental_h2_use_multiple_connections == Some(true),
        ),
        ("h2", template.h2 == Some(true)),
        (
            "prefetch-connections",
            template.prefetch_connections == Some(true),
        ),
        ("simple-warmup", template.simple_warmup == Some(true)),
    ];
    let on = switches.into_iter().filter(|(_, is_on)| *is_on);
    on.map(|(name, _)| format!("--{name}"))
}

fn targets(template: &CommandLineOptions, words: &mut Vec<String>) -> anyhow::Result<()> {
    if template.request_source.is_some() || template.nighthawk_service.is_some() {
        bail!("request_source and nighthawk_service are of a service: there is none here");
    }
    match (&template.uri, &template.multi_target) {
        (Some(uri), _) => words.push(uri.clone()),
        (None, Some(targets)) => {
            for Endpoint { address, port } in &targets.endpoints {
                let (address, port) = (address.clone().unwrap_or_default(), port.unwrap_or(80));
                words.push(format!("--multi-target-endpoint={address}:{port}"));
            }
            words.extend(
                targets
                    .path
                    .as_ref()
                    .map(|path| format!("--multi-target-path={path}")),
            );
            if targets.use_https == Some(true) {
                words.push("--multi-target-use-https".to_owned());
            }
        }
        (None, None) => bail!("nighthawk_traffic_template has neither uri nor multi_target"),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_the_command_line_that_it_stands_for() {
        let mut template = CommandLineOptions {
            uri: Some("http://a/".to_owned()),
            connections: Some(3),
            timeout: Some(Nanos::from_secs(5)),
            h2: Some(true),
            ..CommandLineOptions::default()
        };
        let told = words(&template, 7, Nanos::from_millis(1500)).unwrap();
        let expected = "nighthawk_client --rps=7 --duration=1.5s --connections=3 --timeout=5s \
                        --open-loop --no-default-failure-predicates --h2 http://a/";
        assert_eq!(told.join(" "), expected);
        template.stats_flush_interval = Some(2);
        template.sequencer_idle_strategy = Some(IdleStrategy::Sleep);
        let told = words(&template, 7, Nanos::SECOND).unwrap().join(" ");
        assert!(told.contains("--sequencer-idle-strategy=sleep --stats-flush-interval=2"));
        template.uri = None;
        let error = words(&template, 7, Nanos::SECOND).unwrap_err().to_string();
        assert!(error.contains("neither uri nor multi_target"), "{error}");
    }

    /// They were read, and nothing came of them.
    #[test]
    fn fields_without_an_effect_are_refused_by_name() {
        let mut template = CommandLineOptions::default();
        template.other.insert("tls_context".to_owned(), "{}".into());
        assert!(without_effect(&template).is_empty());
        template
            .other
            .insert("tunnel_options".to_owned(), "{}".into());
        template.scheduled_start = Some(Nanos::SECOND);
        assert_eq!(
            without_effect(&template),
            ["scheduled_start", "tunnel_options"]
        );
        let error = words(&template, 7, Nanos::SECOND).unwrap_err().to_string();
        assert!(error.contains("template.scheduled_start"), "{error}");
    }
}
