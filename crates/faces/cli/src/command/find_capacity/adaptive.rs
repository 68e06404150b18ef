//! `nighthawk_adaptive_load_client`: a session in Nighthawk's words. Loads are made
//! by this process and by no service elsewhere.

use std::error::Error;
use std::fs;
use std::path::Path;

use anyhow::Context;
use stillwell_config::files::read_text;
use stillwell_nighthawk::adaptive::{
    SessionEvent, SessionLoads, SessionOutput, read_session, session_json, session_text,
};
use stillwell_nighthawk::request::NighthawkRequest;
use stillwell_nighthawk::{Output, read_json};
use stillwell_units::Nanos;

use super::Watch;
use crate::arguments::NighthawkAdaptiveArguments;
use crate::command::load::nighthawk::load_of;
use crate::command::nighthawk_line;
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;

/// Exits as Nighthawk does: 0, or 1 for any failure; a signal has its own code.
pub(crate) fn run_as_nighthawk(paint: &Paint) -> Exit {
    let arguments = match nighthawk_line::parse::<NighthawkAdaptiveArguments>() {
        Ok(arguments) => arguments,
        Err(exit) => return exit,
    };
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
    let text = read_text(path)
        .with_context(|| format!("read {}", path.display()))
        .map_err(failed)?;
    let spec = read_session(&text)
        .with_context(|| format!("parse {}", path.display()))
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
            .map(|threshold| threshold.message.clone())
            .collect(),
        ..SessionOutput::default()
    };
    let ended = spec.run(&mut ShownLoads { watch: &watch }, &mut output);
    let ended = ended.map_err(anyhow::Error::from);
    let signal = watch.interrupt.signal();
    watch.end();
    // What was found until then is worth keeping.
    fs::write(
        &arguments.output_file,
        output_text(&arguments.output_file, &output).map_err(failed)?,
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
fn output_text(file: &Path, output: &SessionOutput) -> anyhow::Result<String> {
    match file
        .extension()
        .is_some_and(|extension| extension == "json")
    {
        true => Ok(session_json(output)),
        false => Ok(session_text(output)?),
    }
}

/// Makes the loads of a session in this process, and shows them.
struct ShownLoads<'w> {
    watch: &'w Watch,
}

impl SessionLoads for ShownLoads<'_> {
    fn load(&mut self, request: &NighthawkRequest) -> Result<Output, Box<dyn Error + Send + Sync>> {
        let text = load_of(request, &self.watch.interrupt)?;
        Ok(read_json(&text).context("read the result of a load")?)
    }

    fn is_interrupted(&self) -> bool {
        self.watch.interrupt.signal().is_some()
    }

    fn report(&mut self, event: SessionEvent<'_>) {
        Paint::print_message(&match event {
            SessionEvent::Loaded {
                rate,
                holds,
                evaluations,
            } => {
                let shown = evaluations
                    .iter()
                    .map(|metric| format!("{} {:.6}", metric.metric_id, metric.value));
                let shown: Vec<String> = shown.collect();
                let word = if holds { "held" } else { "failed" };
                format!("{rate} requests/s: {word}: {}", shown.join(", "))
            }
            SessionEvent::Converged { rate } => {
                format!("converged at {rate} requests/s for each worker")
            }
            // Nighthawk's tool does not warn.
            SessionEvent::TestingFailed => {
                "warning: thresholds do not hold in the testing stage".to_owned()
            }
        });
    }

    fn cool_down(&self, length: Nanos) {
        self.watch.wait(length);
    }
}
