//! `nighthawk_adaptive_load_client`: a session in Nighthawk's words. Loads are made
//! by this process and by no service elsewhere.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use clap::Parser;
use stillwell_nighthawk::adaptive::{
    BenchmarkResult, Controller, ControllerStep, SessionOutput, SessionSpec, read_session,
    session_json, session_text,
};
use stillwell_nighthawk::request::{NighthawkRequest, RequestError};
use stillwell_nighthawk::{CommandLineOptions, read_json};
use stillwell_scope::clock;
use stillwell_units::{Nanos, floor_to_u64};

use super::Watch;
use crate::arguments::NighthawkAdaptiveArguments;
use crate::command::load::nighthawk::load_of;
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
    fs::write(
        &arguments.output_file,
        told(&arguments.output_file, &output).map_err(failed)?,
    )
    .with_context(|| format!("write to {}", arguments.output_file.display()))
    .map_err(failed)?;
    match (ended, signal) {
        (Ok(()), _) => Ok(()),
        (Err(error), Some(signal)) => Err(CommandError::new(Exit::Interrupted(signal), error)),
        (Err(error), None) => Err(failed(error)),
    }
}

/// As text proto, as Nighthawk has it, or as JSON where the file's name says so.
fn told(file: &Path, output: &SessionOutput) -> anyhow::Result<String> {
    match file.extension().is_some_and(|own| own == "json") {
        true => Ok(session_json(output)),
        false => Ok(session_text(output)?),
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
    let request = request(&spec.template, whole(rate), length)?;
    let started = clock::wall();
    let text = load_of(&request, &watch.interrupt)?;
    let ended = clock::wall();
    if watch.interrupt.signal().is_some() {
        bail!("interrupted");
    }
    let output = read_json(&text).context("read the result of a load")?;
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

/// Returns the load of `template` at this rate.
fn request(
    template: &CommandLineOptions,
    rate: u64,
    length: Nanos,
) -> anyhow::Result<NighthawkRequest> {
    if let Some(name) = without_effect(template).first() {
        bail!("nighthawk_traffic_template.{name} has no effect here: leave it out");
    }
    if template.nighthawk_service.is_some() {
        bail!(
            "nighthawk_traffic_template.nighthawk_service is of another: this process makes loads"
        );
    }
    if template.uri.is_none() && template.multi_target.is_none() {
        bail!("nighthawk_traffic_template has neither uri nor multi_target");
    }
    let is_bare = template.failure_predicates.is_empty();
    let asked = CommandLineOptions {
        requests_per_second: Some(u32::try_from(rate).unwrap_or(u32::MAX)),
        duration: Some(length),
        no_duration: None,
        // A search must see loads that fail.
        open_loop: Some(template.open_loop.unwrap_or(true)),
        no_default_failure_predicates: Some(is_bare)
            .filter(|is_bare| *is_bare)
            .or(template.no_default_failure_predicates),
        ..template.clone()
    };
    NighthawkRequest::try_from(&asked).map_err(|error| {
        let why = error.to_string();
        if let RequestError::Value { .. } = error {
            return anyhow::anyhow!("Bad argument: {why}");
        }
        let why = why.strip_prefix("options.").unwrap_or(&why);
        anyhow::anyhow!("nighthawk_traffic_template.{why}")
    })
}

/// Fields of a template that would be read and change nothing.
fn without_effect(template: &CommandLineOptions) -> Vec<&str> {
    let own = [
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
    own.map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use stillwell_nighthawk::format::LoadFormat;
    use stillwell_nighthawk::request::{LogLevel, NighthawkLoad, NighthawkTarget, SequencerIdle};
    use stillwell_nighthawk::{IdleStrategy, Protocol};

    use super::*;

    #[test]
    fn a_template_is_the_request_that_it_stands_for() {
        let mut template = CommandLineOptions {
            uri: Some("http://a/".to_owned()),
            connections: Some(3),
            timeout: Some(Nanos::from_secs(5)),
            h2: Some(true),
            ..CommandLineOptions::default()
        };
        let read = request(&template, 7, Nanos::from_millis(1500)).unwrap();
        let expected = NighthawkLoad {
            rps: 7,
            connections: 3,
            duration: Some(Nanos::from_millis(1500)),
            timeout: Nanos::from_secs(5),
            open_loop: true,
            no_default_failure_predicates: true,
            ..NighthawkLoad::DEFAULT
        };
        assert_eq!(read.load, expected);
        assert_eq!(read.uri.as_deref(), Some("http://a/"));
        let expected = NighthawkTarget {
            h2: true,
            ..NighthawkTarget::default()
        };
        assert_eq!(read.target, expected);
        assert_eq!(read.output.verbosity, LogLevel::Warn);
        assert_eq!(read.output.output_format, LoadFormat::Json);
        template.stats_flush_interval = Some(2);
        template.sequencer_idle_strategy = Some(IdleStrategy::Sleep);
        let tunnel =
            serde_json::json!({"tunnel_uri": "http://p", "tunnel_protocol": {"value": "HTTP2"}});
        template.other.insert("tunnel_options".to_owned(), tunnel);
        let read = request(&template, 7, Nanos::SECOND).unwrap();
        assert_eq!(read.load.sequencer_idle_strategy, SequencerIdle::Sleep);
        assert_eq!(read.output.stats_flush_interval, Some(2));
        assert_eq!(read.target.tunnel_uri.as_deref(), Some("http://p"));
        assert_eq!(read.target.tunnel_protocol, Some(Protocol::Http2));
        template.uri = None;
        let error = request(&template, 7, Nanos::SECOND)
            .unwrap_err()
            .to_string();
        assert!(error.contains("neither uri nor multi_target"), "{error}");
    }

    /// They were read, and nothing came of them.
    #[test]
    fn fields_without_an_effect_are_refused_by_name() {
        let mut template = CommandLineOptions {
            uri: Some("http://a/".to_owned()),
            ..CommandLineOptions::default()
        };
        template
            .other
            .insert("nobody_knows".to_owned(), "{}".into());
        let error = request(&template, 7, Nanos::SECOND)
            .unwrap_err()
            .to_string();
        assert!(error.contains("template.nobody_knows"), "{error}");
        template.scheduled_start = Some(Nanos::SECOND);
        let error = request(&template, 7, Nanos::SECOND)
            .unwrap_err()
            .to_string();
        assert!(error.contains("template.scheduled_start"), "{error}");
    }
}
