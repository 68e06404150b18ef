//! A load that another service makes.

use stillwell_nighthawk::format::{LoadFormat, render_nighthawk};
use stillwell_nighthawk::service::{Channel, RemoteLoad};
use stillwell_nighthawk::{CommandLineOptions, Output};
use stillwell_scope::{Token, clock};
use stillwell_units::Nanos;

use super::log::Log;
use crate::command::service::access::token_of_environment;
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;
use crate::signals;

/// Has the service at `uri` make the load of `options`, and prints what it found. A
/// signal is passed on to it: what it found until then is printed.
pub(super) fn execute(
    uri: &str,
    options: CommandLineOptions,
    format: LoadFormat,
    log: Log,
) -> Result<Exit, CommandError> {
    let could_not = |error: anyhow::Error| CommandError::new(Exit::CouldNotRun, error);
    let load =
        RemoteLoad::new(options.clone()).map_err(|error| CommandError::new(Exit::Usage, error))?;
    let token = token_of_environment()?;
    let load = load.with_token(token.as_ref());
    let channel = Channel::of_uri(uri).map_err(|error| could_not(error.into()))?;
    let cancelled = Token::new();
    let cancel = cancelled.clone();
    let signals = signals::listen(move |_| cancel.cancel());
    let signals = signals.map_err(|error| could_not(error.into()))?;
    let response = load.execute(channel, cancelled);
    signals.close(Nanos::SECOND);
    let response = match response {
        Ok(response) => response,
        Err(error) => {
            print_empty(options, format)?;
            let error = anyhow::Error::from(error);
            let what = format!("request the load from the service at {uri}");
            return Err(could_not(error.context(what)));
        }
    };
    if let Some(output) = &response.output {
        let text = render_nighthawk(output, format, None);
        let text = text.map_err(|error| CommandError::new(Exit::Invalid, error))?;
        Paint::data(&text).map_err(|error| could_not(error.into()))?;
    }
    // A failure there is a failure here.
    let failed = response.error_detail.filter(|detail| detail.code != 0);
    if let Some(detail) = failed {
        log.error(&format!("The service has failed: {}", detail.message));
        return Ok(Exit::Failed);
    }
    log.info("Done.");
    Ok(Exit::Held)
}

/// Prints the result of a load that no service made, as Nighthawk does: its options alone.
/// Formats for readers need a result of all workers.
fn print_empty(options: CommandLineOptions, format: LoadFormat) -> Result<(), CommandError> {
    let output = Output {
        options,
        timestamp: Some(clock::wall()),
        ..Output::default()
    };
    match render_nighthawk(&output, format, None) {
        Ok(text) => Paint::data(&text).map_err(|error| CommandError::new(Exit::CouldNotRun, error)),
        Err(_) => Ok(()),
    }
}
