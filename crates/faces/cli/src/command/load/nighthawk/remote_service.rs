//! A load that another service makes.

use stillwell_nighthawk::format::{LoadFormat, render_nighthawk};
use stillwell_nighthawk::service::{Channel, RemoteLoad};
use stillwell_nighthawk::{CommandLineOptions, Output};
use stillwell_scope::{Token, clock};
use stillwell_units::Nanos;

use super::log::Log;
use super::original;
use crate::command::service::access::token_of_environment;
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;
use crate::signals;

/// Has the service at `uri` make the load of `options`, and prints the result without secrets.
/// After a signal, the service ends the load and the result so far is printed; a second signal
/// ends the wait for it.
pub(super) fn execute(
    uri: &str,
    options: &CommandLineOptions,
    format: LoadFormat,
    log: Log,
) -> Result<Exit, CommandError> {
    let could_not = |error: anyhow::Error| CommandError::new(Exit::CouldNotRun, error);
    let load =
        RemoteLoad::new(options.clone()).map_err(|error| CommandError::new(Exit::Usage, error))?;
    let token = token_of_environment()?;
    let load = load.with_token(token.as_ref());
    let channel = Channel::of_uri(uri).map_err(|error| could_not(error.into()))?;
    let (cancelled, aborted) = (Token::new(), Token::new());
    let (cancel, abort) = (cancelled.clone(), aborted.clone());
    let signals = signals::listen(move |_| match cancel.is_cancelled() {
        true => abort.cancel(),
        false => cancel.cancel(),
    });
    let signals = signals.map_err(|error| could_not(error.into()))?;
    let response = load.execute(channel, cancelled, aborted);
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
    if let Some(mut output) = response.output {
        output.options = masked(&output.options);
        let text = render_nighthawk(&output, format, None);
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
fn print_empty(options: &CommandLineOptions, format: LoadFormat) -> Result<(), CommandError> {
    let output = Output {
        options: masked(options),
        timestamp: Some(clock::wall()),
        ..Output::default()
    };
    match render_nighthawk(&output, format, None) {
        Ok(text) => Paint::data(&text).map_err(|error| CommandError::new(Exit::CouldNotRun, error)),
        Err(_) => Ok(()),
    }
}

/// Returns `options` as a result shows them: without secrets.
fn masked(options: &CommandLineOptions) -> CommandLineOptions {
    // A mask may be in place of a number that a service wrote as text: then nothing is shown.
    serde_json::from_value(original(options)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use stillwell_nighthawk::RequestOptions;

    use super::*;

    #[test]
    fn secrets_of_the_options_are_masked_and_the_rest_is_shown() {
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let options = CommandLineOptions {
            uri: Some("http://me:pw@a/?token=abc&page=2".to_owned()),
            requests_per_second: Some(7),
            request_options: Some(RequestOptions {
                request_headers: vec![header("authorization", "Bearer abc"), header("x", "y")],
                ..RequestOptions::default()
            }),
            ..CommandLineOptions::default()
        };
        let masked = masked(&options);
        assert_eq!(
            masked.uri.as_deref(),
            Some("http://***@a/?token=***&page=2")
        );
        assert_eq!(masked.requests_per_second, Some(7));
        let headers = masked.request_options.unwrap().request_headers;
        assert_eq!(headers, [header("authorization", "***"), header("x", "y")]);
    }
}
